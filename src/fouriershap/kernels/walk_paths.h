// Path-dependent SHAP values of a block of rows, a tree at a time: the integral
//   phi_i = int_0^1 (a_i - b_i) prod_{k != i} (t a_k + (1-t) b_k) dt
// over each leaf's path, with a_k = 1 if the row satisfies player k's conditions, b_k the product of its
// cover ratios. The product is carried down the tree at every quadrature point. A player's missing factor
// is put right on the way up: each of its edges adds the leaves below it, times the change of
// (a - b) / (t a + (1-t) b) over that edge.
#pragma once
#include "walk_index.h"

namespace fouriershap {
namespace FS_LEVEL {
namespace {

constexpr int64_t kPathRows = 16;

struct PathFrame {
  double b;           // of the player before the edge
  int64_t inverse;    // where its 1 / (t + (1-t) b) is, -1 for ones
  uint32_t a, a_here; // rows that satisfy its conditions before and after the edge
  int32_t node, player;
  int8_t next_child;
};

struct PathWalk {
  const WalkTrees* trees;
  const double* ratio;
  int64_t n_rows, n_outputs;  // rows of the block
  const int32_t* codes;       // (n_features, kPathRows)

  // Of the tree: its quadrature, and its outputs.
  int64_t n_points;
  const double *t, *weights;
  Outputs outputs;

  // Scratch. Between trees every player has a = all, b = 1, inverse = -1.
  uint32_t* a;
  double* b;
  int64_t* inverse_of;
  double* phi;        // (n_players, n_outputs, kPathRows)
  PathFrame* frames;  // (depth + 1,)
  double* levels;     // per depth what `level_size` counts
  double* ones;       // (n_points,)

  // A level: products (kPathRows, n_points); sums (kPathRows, outputs, n_points), of the leaves below;
  // the inverse of the player of the edge that led here; the edge's coefficients where the row just failed
  // the player, and where it still satisfies it; two factors, which are needed for a moment only.
  static int64_t level_size(int64_t n_points, int64_t n_outputs) {
    return n_points * (kPathRows * (1 + n_outputs) + 5);
  }
  double* products(int64_t depth) const { return levels + depth * level_size(n_points, outputs.count); }
  double* sums(int64_t depth) const { return products(depth) + kPathRows * n_points; }
  double* inverse(int64_t depth) const { return sums(depth) + kPathRows * outputs.count * n_points; }
  double* coefficients(int64_t depth) const { return inverse(depth) + n_points; }
  double* factors(int64_t depth) const { return inverse(depth) + 3 * n_points; }

  uint32_t rows_going_left(const Node& node) const {
    const int32_t* mine = codes + node.feature() * kPathRows;
    uint32_t left = 0;
    if (node.test >= 0) {
      const int32_t missing = node.missing_left() ? trees->n_codes[node.feature()] - 1 : -1;
      for (int64_t r = 0; r < kPathRows; ++r)
        left |= static_cast<uint32_t>((mine[r] < node.test) | (mine[r] == missing)) << r;
      return left;
    }
    for (int64_t r = 0; r < n_rows; ++r)
      left |= static_cast<uint32_t>(code_goes_left(*trees, node, mine[r])) << r;
    return left;
  }

  // The state of the edge's player, and what the edge does to products and sums: the same for all rows.
  void enter_edge(PathFrame& frame, int64_t depth, bool to_left, double r) {
    const Node& node = nodes_of(*trees)[frame.node];
    const int32_t player = frame.player = trees->players[node.feature()];
    const uint32_t left = rows_going_left(node);
    frame.a = a[player];
    frame.b = b[player];
    frame.inverse = inverse_of[player];
    const double* before = frame.inverse < 0 ? ones : inverse(frame.inverse);
    const double b_here = frame.b * r;
    double* now = inverse(depth + 1);
    double* coefficient = coefficients(depth + 1);
    double* factor = factors(depth + 1);
    for (int64_t k = 0; k < n_points; ++k) {
      const double low = (1.0 - t[k]) * b_here, high = t[k] + low;
      now[k] = 1.0 / high;
      const double old = (1.0 - frame.b) * before[k];
      factor[k] = low * before[k];
      factor[n_points + k] = high * before[k];
      coefficient[k] = -1.0 / (1.0 - t[k]) - old;
      coefficient[n_points + k] = (1.0 - b_here) * now[k] - old;
    }
    a[player] = frame.a_here = frame.a & (to_left ? left : ~left);
    b[player] = b_here;
    inverse_of[player] = depth + 1;
  }

  void leave_edge(const PathFrame& frame) {
    a[frame.player] = frame.a;
    b[frame.player] = frame.b;
    inverse_of[frame.player] = frame.inverse;
  }

  // 0: the row failed the player before this edge; 1: it fails it here; 2: it still satisfies it.
  static int state(const PathFrame& frame, int64_t row) {
    return (frame.a >> row & 1) + (frame.a_here >> row & 1);
  }

  // NK: vectors of four points, 0 where only known at run time.
  template <int NK>
  struct At {
    static constexpr int64_t vectors(int64_t n_points) { return NK ? NK : n_points / 4; }
  };

  static double add_up(f64x4 v) { return (v[0] + v[2]) + (v[1] + v[3]); }

  template <int NK>
  void multiply(const PathFrame& frame, int64_t depth, double r) {
    const int64_t nk = At<NK>::vectors(n_points);
    for (int64_t row = 0; row < n_rows; ++row) {
      const double* from = products(depth) + row * 4 * nk;
      double* to = products(depth + 1) + row * 4 * nk;
      const int s = state(frame, row);
      const double* factor = factors(depth + 1) + (s == 2 ? 4 * nk : 0);
      if (s == 0)
        for (int64_t k = 0; k < nk; ++k) store(to + 4 * k, load<f64x4>(from + 4 * k) * r);
      else
        for (int64_t k = 0; k < nk; ++k)
          store(to + 4 * k, load<f64x4>(from + 4 * k) * load<f64x4>(factor + 4 * k));
    }
  }

  // The edge leads to a leaf: its products are not kept, they go into the sums at once.
  template <int NK>
  void add_leaf(const PathFrame& frame, int64_t depth, double r, const double* values, bool first) {
    const int64_t nk = At<NK>::vectors(n_points), count = outputs.count;
    double* mine = phi + (frame.player * n_outputs + outputs.first) * kPathRows;
    const double* factor = factors(depth + 1);
    for (int64_t row = 0; row < n_rows; ++row) {
      const double* from = products(depth) + row * 4 * nk;
      double* product = products(depth + 1);
      double* sum = sums(depth) + row * count * 4 * nk;
      const int s = state(frame, row);
      const int64_t which = s == 2 ? 4 * nk : 0;
      f64x4 total = {};
      for (int64_t k = 0; k < nk; ++k) {
        const f64x4 by = s ? load<f64x4>(factor + which + 4 * k) : f64x4{} + r;
        const f64x4 p = load<f64x4>(from + 4 * k) * by;
        store(product + 4 * k, p);
        total += p * load<f64x4>(coefficients(depth + 1) + which + 4 * k);
      }
      const double share = s ? add_up(total) : 0.0;
      for (int64_t o = 0; o < count; ++o, sum += 4 * nk) {
        mine[o * kPathRows + row] += values[o] * share;
        for (int64_t k = 0; k < nk; ++k) {
          const f64x4 p = values[o] * load<f64x4>(product + 4 * k);
          store(sum + 4 * k, first ? p : load<f64x4>(sum + 4 * k) + p);
        }
      }
    }
  }

  // Back from the subtree below the edge.
  template <int NK>
  void add_subtree(const PathFrame& frame, int64_t depth, bool first) {
    const int64_t nk = At<NK>::vectors(n_points), count = outputs.count;
    double* mine = phi + (frame.player * n_outputs + outputs.first) * kPathRows;
    for (int64_t row = 0; row < n_rows; ++row) {
      const int s = state(frame, row);
      const double* coefficient = coefficients(depth + 1) + (s == 2 ? 4 * nk : 0);
      const double* from = sums(depth + 1) + row * count * 4 * nk;
      double* to = sums(depth) + row * count * 4 * nk;
      for (int64_t o = 0; o < count; ++o, from += 4 * nk, to += 4 * nk) {
        f64x4 total = {};
        for (int64_t k = 0; k < nk; ++k) {
          const f64x4 p = load<f64x4>(from + 4 * k);
          total += p * load<f64x4>(coefficient + 4 * k);
          store(to + 4 * k, first ? p : load<f64x4>(to + 4 * k) + p);
        }
        if (s) mine[o * kPathRows + row] += add_up(total);
      }
    }
  }

  template <int NK>
  void walk(int64_t tree) {
    const Node* nodes = nodes_of(*trees);
    if (nodes[trees->roots[tree]].leaf()) return;
    for (int64_t i = 0; i < kPathRows * n_points; ++i) products(0)[i] = weights[i % n_points];
    int64_t depth = 0;
    frames[0].node = trees->roots[tree];
    frames[0].next_child = 0;
    while (true) {
      PathFrame& frame = frames[depth];
      if (frame.next_child == 2) {
        if (depth-- == 0) return;
        add_subtree<NK>(frames[depth], depth, frames[depth].next_child == 1);
        leave_edge(frames[depth]);
        continue;
      }
      const bool to_left = frame.next_child++ == 0;
      const int32_t child = to_left ? nodes[frame.node].left : nodes[frame.node].right;
      enter_edge(frame, depth, to_left, ratio[child]);
      if (nodes[child].leaf()) {
        add_leaf<NK>(frame, depth, ratio[child], outputs.of_leaf(child), to_left);
        leave_edge(frame);
        continue;
      }
      multiply<NK>(frame, depth, ratio[child]);
      ++depth;
      frames[depth].node = child;
      frames[depth].next_child = 0;
    }
  }

  void run(int64_t tree) {
    switch (n_points / 4) {
      case 1: walk<1>(tree); break;
      case 2: walk<2>(tree); break;
      case 3: walk<3>(tree); break;
      case 4: walk<4>(tree); break;
      default: walk<0>(tree); break;
    }
  }
};

}  // namespace
}  // namespace FS_LEVEL
}  // namespace fouriershap
