// Path-dependent SHAP values of a block of rows, a tree at a time: the integral
//   phi_i = int_0^1 (a_i - b_i) prod_{k != i} (t a_k + (1-t) b_k) dt
// over each leaf's path, with a_k = 1 if the row satisfies player k's conditions, b_k the product of its
// cover ratios. The product is carried down the tree at every quadrature point. A player's missing factor
// is corrected on the way up: each of its edges adds the leaves below it, times the change of
// (a - b) / (t a + (1-t) b) over that edge.
#pragma once
#include "walk_index.h"

namespace fouriershap {
namespace {

constexpr int64_t kPathRows = 16;

typedef int8_t Flags __attribute__((vector_size(kPathRows)));  // 0 or 1 per row

struct PathFrame {
  Flags left;       // rows that go left at the node
  Flags a;          // rows that satisfy the player's conditions before the edge
  Flags state;      // 0: failed them before the edge, 1: fails them here, 2: satisfies them
  double b;         // of the player before the edge
  int64_t inverse;  // where its 1 / (t + (1-t) b) is, -1 for ones
  int32_t node, player;
  int8_t next_child;
};

struct PathWalk {
  const WalkTrees* trees;
  const double* ratio;
  int64_t n_outputs;

  // Of the tree: its quadrature, and its outputs.
  int64_t n_points = 0;
  const double *t = nullptr, *weights = nullptr;
  Outputs outputs;

  // Scratch. Between trees every player has a = all, b = 1, inverse = -1.
  Scratch<int32_t> codes;  // (n_features, kPathRows) of the block, padded with some row
  Scratch<Flags> a;
  Scratch<double> b;
  Scratch<int64_t> inverse_of;
  Scratch<double> phi;        // (n_players, n_outputs, kPathRows)
  Scratch<PathFrame> frames;  // (depth + 1,)
  Scratch<double> levels;     // per depth what `level_size` counts
  Scratch<double> ones;       // (n_points,)
  Scratch<double> failed;     // (n_points,) -1 / (1-t)

  PathWalk(const WalkTrees& the_trees, const WalkPaths& paths, const WalkValues& values)
      : trees(&the_trees),
        ratio(paths.ratio),
        n_outputs(values.n_outputs),
        codes(trees->n_features() * kPathRows),
        a(values.n_columns, Flags{} + 1),
        b(values.n_columns, 1.0),
        inverse_of(values.n_columns, -1),
        phi(values.n_columns * n_outputs * kPathRows),
        frames(trees->most_depth + 1),
        levels(most_levels(the_trees, paths)),
        ones(most_of(paths.n_points), 1.0),
        failed(most_of(paths.n_points)) {}

  static int64_t most_levels(const WalkTrees& trees, const WalkPaths& paths) {
    int64_t most = 1;
    for (int64_t tree = 0; tree < trees.n_trees(); ++tree) {
      const int64_t size = (trees.tree_depth[tree] + 2) * level_size(paths.n_points[tree], trees.width());
      if (size > most) most = size;
    }
    return most;
  }

  // A level: products (kPathRows, n_points); sums (kPathRows, outputs, n_points), of the leaves below; the
  // inverse of the player of the edge that led here; that edge's coefficients and factors, for each of the
  // three states that a row can be in (see `states`).
  static int64_t level_size(int64_t n_points, int64_t n_outputs) {
    return n_points * (kPathRows * (1 + n_outputs) + 7);
  }
  double* products(int64_t depth) const { return levels + depth * level_size(n_points, outputs.count); }
  double* sums(int64_t depth) const { return products(depth) + kPathRows * n_points; }
  double* inverse(int64_t depth) const { return sums(depth) + kPathRows * outputs.count * n_points; }
  double* coefficients(int64_t depth) const { return inverse(depth) + n_points; }
  double* factors(int64_t depth) const { return inverse(depth) + 4 * n_points; }

  Flags rows_going_left(const Node& node) const {
    typedef int32_t Codes __attribute__((vector_size(4 * kPathRows)));
    const int32_t* mine = codes + node.feature() * kPathRows;
    Flags left = {};
    if (node.test >= 0) {
      const Codes all = load<Codes>(mine);
      const int32_t missing = node.missing_left() ? trees->n_codes[node.feature()] - 1 : -1;
      return __builtin_convertvector((all < node.test) | (all == missing), Flags) & 1;
    }
    for (int64_t r = 0; r < kPathRows; ++r) left[r] = code_goes_left(*trees, node, mine[r]);
    return left;
  }

  void open(PathFrame& frame, int32_t node) {
    frame.node = node;
    frame.next_child = 0;
    frame.player = trees->players[trees->nodes[node].feature()];
    frame.left = rows_going_left(trees->nodes[node]);
  }

  // The state of the edge's player, and what the edge does to products and sums: the same for all rows.
  template <int NK>
  void enter_edge(PathFrame& frame, int64_t depth, bool to_left, double r) {
    const int32_t player = frame.player;
    frame.a = a[player];
    frame.b = b[player];
    frame.inverse = inverse_of[player];
    const double* before = frame.inverse < 0 ? ones : inverse(frame.inverse);
    const double b_here = frame.b * r;
    double* now = inverse(depth + 1);
    double* coefficient = coefficients(depth + 1);
    double* factor = factors(depth + 1);
    const double *at_points = t, *failed_here = failed, b_before = frame.b;
    const int64_t n = NK ? 4 * NK : n_points;
    for (int64_t k = 0; k < n; k += 4) {
      const f64x4 at = load<f64x4>(at_points + k), rest = 1.0 - at, inverse_before = load<f64x4>(before + k);
      const f64x4 low = rest * b_here, high = at + low, inverse_now = 1.0 / high;
      const f64x4 old = (1.0 - b_before) * inverse_before;
      store(now + k, inverse_now);
      store(factor + k, f64x4{} + r);
      store(factor + n + k, low * inverse_before);
      store(factor + 2 * n + k, high * inverse_before);
      store(coefficient + k, f64x4{});
      store(coefficient + n + k, load<f64x4>(failed_here + k) - old);
      store(coefficient + 2 * n + k, (1.0 - b_here) * inverse_now - old);
    }
    a[player] = frame.a & (to_left ? frame.left : 1 - frame.left);
    frame.state = frame.a + a[player];
    b[player] = b_here;
    inverse_of[player] = depth + 1;
  }

  void leave_edge(const PathFrame& frame) {
    a[frame.player] = frame.a;
    b[frame.player] = frame.b;
    inverse_of[frame.player] = frame.inverse;
  }

  // Adds the four totals of four rows to phi.
  static void add_totals(double* phi, f64x4 t0, f64x4 t1, f64x4 t2, f64x4 t3) {
    const f64x4 u = __builtin_shufflevector(t0, t1, 0, 4, 2, 6) + __builtin_shufflevector(t0, t1, 1, 5, 3, 7);
    const f64x4 w = __builtin_shufflevector(t2, t3, 0, 4, 2, 6) + __builtin_shufflevector(t2, t3, 1, 5, 3, 7);
    store(phi, load<f64x4>(phi) + __builtin_shufflevector(u, w, 0, 1, 4, 5) +
                   __builtin_shufflevector(u, w, 2, 3, 6, 7));
  }

  // NK: vectors of four points, 0 where only known at run time.
  template <int NK>
  void multiply(const PathFrame& frame, int64_t depth) {
    const int64_t nk = NK ? NK : n_points / 4;
    const Flags state = frame.state;
    const double* from = products(depth);
    const double* factors_here = factors(depth + 1);
    double* to = products(depth + 1);
    for (int64_t row = 0; row < kPathRows; ++row, from += 4 * nk, to += 4 * nk) {
      const double* factor = factors_here + state[row] * 4 * nk;
      for (int64_t k = 0; k < nk; ++k)
        store(to + 4 * k, load<f64x4>(from + 4 * k) * load<f64x4>(factor + 4 * k));
    }
  }

  // The edge leads to a leaf: its products are not kept, they go into the sums at once.
  template <int NK, bool FIRST, bool ONE>
  void add_leaf(const PathFrame& frame, int64_t depth, const double* values) {
    const int64_t nk = NK ? NK : n_points / 4, count = ONE ? 1 : outputs.count;
    const double value = values[0];
    const Flags state = frame.state;
    const double *from = products(depth), *factor = factors(depth + 1),
                 *coefficient = coefficients(depth + 1);
    double* mine = phi + (frame.player * n_outputs + outputs.first) * kPathRows;
    double* sum = sums(depth);
    for (int64_t quad = 0; quad < kPathRows; quad += 4) {
      f64x4 totals[4];
      for (int64_t row = 0; row < 4; ++row, from += 4 * nk, sum += 4 * nk * count) {
        const int64_t which = state[quad + row] * 4 * nk;
        totals[row] = f64x4{};
        for (int64_t k = 0; k < nk; ++k) {
          const f64x4 p = load<f64x4>(from + 4 * k) * load<f64x4>(factor + which + 4 * k);
          totals[row] += p * load<f64x4>(coefficient + which + 4 * k);
          for (int64_t o = 0; o < count; ++o) {
            double* to = sum + (o * nk + k) * 4;
            const f64x4 part = (ONE ? value : values[o]) * p;
            store(to, FIRST ? part : load<f64x4>(to) + part);
          }
        }
      }
      for (int64_t o = 0; o < count; ++o)
        add_totals(mine + o * kPathRows + quad, values[o] * totals[0], values[o] * totals[1],
                   values[o] * totals[2], values[o] * totals[3]);
    }
  }

  // Back from the subtree below the edge.
  template <int NK, bool FIRST>
  void add_subtree(const PathFrame& frame, int64_t depth) {
    const int64_t nk = NK ? NK : n_points / 4, count = outputs.count;
    const Flags state = frame.state;
    const double* coefficient = coefficients(depth + 1);
    double* mine = phi + (frame.player * n_outputs + outputs.first) * kPathRows;
    for (int64_t o = 0; o < count; ++o) {
      const double* from = sums(depth + 1) + o * 4 * nk;
      double* to = sums(depth) + o * 4 * nk;
      for (int64_t quad = 0; quad < kPathRows; quad += 4) {
        f64x4 totals[4];
        for (int64_t row = 0; row < 4; ++row, from += 4 * nk * count, to += 4 * nk * count) {
          const double* mine_here = coefficient + state[quad + row] * 4 * nk;
          totals[row] = f64x4{};
          for (int64_t k = 0; k < nk; ++k) {
            const f64x4 p = load<f64x4>(from + 4 * k);
            totals[row] += p * load<f64x4>(mine_here + 4 * k);
            store(to + 4 * k, FIRST ? p : load<f64x4>(to + 4 * k) + p);
          }
        }
        add_totals(mine + o * kPathRows + quad, totals[0], totals[1], totals[2], totals[3]);
      }
    }
  }

  template <int NK>
  void walk(int64_t tree) {
    const Node* nodes = trees->nodes;
    if (nodes[trees->roots[tree]].leaf()) return;
    for (int64_t k = 0; k < n_points; ++k) failed[k] = -1.0 / (1.0 - t[k]);
    for (int64_t i = 0; i < kPathRows * n_points; ++i) products(0)[i] = weights[i % n_points];
    int64_t depth = 0;
    open(frames[0], trees->roots[tree]);
    while (true) {
      PathFrame& frame = frames[depth];
      if (frame.next_child == 2) {
        if (depth-- == 0) return;
        if (frames[depth].next_child == 1)
          add_subtree<NK, true>(frames[depth], depth);
        else
          add_subtree<NK, false>(frames[depth], depth);
        leave_edge(frames[depth]);
        continue;
      }
      const bool to_left = frame.next_child++ == 0;
      const int32_t child = to_left ? nodes[frame.node].left : nodes[frame.node].right;
      enter_edge<NK>(frame, depth, to_left, ratio[child]);
      if (nodes[child].leaf()) {
        const double* values = outputs.of_leaf(child);
        if (outputs.count > 1)
          to_left ? add_leaf<NK, true, false>(frame, depth, values)
                  : add_leaf<NK, false, false>(frame, depth, values);
        else
          to_left ? add_leaf<NK, true, true>(frame, depth, values)
                  : add_leaf<NK, false, true>(frame, depth, values);
        leave_edge(frame);
        continue;
      }
      multiply<NK>(frame, depth);
      assert(depth < trees->tree_depth[tree]);
      open(frames[++depth], child);
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
}  // namespace fouriershap
