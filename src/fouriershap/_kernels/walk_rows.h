// Interventional SHAP values of one row against a chunk of the background, a tree at a time.
//
// The walk follows the row and, where background rows part from it, takes these along the other way. What a
// player gains over the background rows that part is the change of their sums while the row's own side is
// walked; what it loses is the sum that comes back from the other side.
#pragma once
#include "walk_index.h"

namespace fouriershap {
namespace FS_LEVEL {
namespace {

template <int NW>
struct RowFrame {
  Bits<NW> part;          // parting: the background rows that part; following: those still to be taken right
  int32_t player, other;  // the child that is walked second
  int32_t n_failed;       // players that the row fails at this node
  int8_t kind;            // what the walk does when it comes back here
};

template <int NW>
struct RowWalk {
  enum : int8_t { kFollowLeft, kFollowRight, kPartRow, kPartOther };

  const WalkTrees* trees;
  const Index* background;
  const Weights* weights;
  const double* row_weight;
  int64_t n_background, n_outputs;

  // Scratch. `row_fails` is 0, `satisfies` all ones, `n_fails` and `sums` 0 between trees.
  Scratch<uint8_t> row_fails;    // (n_players,)
  Scratch<Bits<NW>> satisfies;   // (n_players,) background rows that satisfy the player's literal so far
  Scratch<RowFrame<NW>> frames;  // (depth,)
  Scratch<double> totals;        // (depth, 2 * outputs): gain, and sum of the first child
  Scratch<double> returned;      // (outputs,)
  Scratch<double> sums;          // (64 * NW, outputs)
  uint32_t n_fails[64 * NW];
  Outputs outputs;

  RowWalk(const WalkTrees& the_trees, const Index& background_index, const Weights& leaf_weights,
          const double* background_weight, int64_t background_rows, const WalkValues& values)
      : trees(&the_trees),
        background(&background_index),
        weights(&leaf_weights),
        row_weight(background_weight),
        n_background(background_rows),
        n_outputs(values.n_outputs),
        row_fails(values.n_columns, 0),
        satisfies(values.n_columns, filled<NW>(~0ULL)),
        frames(most_of(trees->tree_depth, trees->n_trees) + 1),
        totals(2 * (most_of(trees->tree_depth, trees->n_trees) + 1) * trees->width),
        returned(trees->width),
        sums(64 * NW * trees->width) {
    for (uint32_t& count : n_fails) count = 0;
  }

  bool ok() const { return row_fails && satisfies && frames && totals && returned && sums; }

  void leaf(int64_t node, const Bits<NW>& alive, int32_t n_failed) {
    const double* values = outputs.of_leaf(node);
    const double* weight = weights->row(n_failed);
    double lost = 0.0;
    for_each(alive, [&](int64_t b) {
      const double* pair = weight + 2 * n_fails[b];
      const double gained = row_weight[b] * pair[0];
      lost += row_weight[b] * pair[1];
      for (int64_t o = 0; o < outputs.count; ++o) sums[b * outputs.count + o] += values[o] * gained;
    });
    for (int64_t o = 0; o < outputs.count; ++o) returned[o] = values[o] * lost;
  }

  void add_sums(const Bits<NW>& part, double sign, double* gain) {
    for_each(part, [&](int64_t b) {
      for (int64_t o = 0; o < outputs.count; ++o) gain[o] += sign * sums[b * outputs.count + o];
    });
  }

  // codes: of the row, (n_features,). phi: (n_players, n_outputs).
  void walk(int64_t tree, const int32_t* codes, double* phi) {
    const Node* nodes = nodes_of(*trees);
    outputs = Outputs(*trees, tree);
    int32_t node = trees->roots[tree], n_failed = 0;
    if (nodes[node].leaf()) return;
    Bits<NW> alive = first_rows<NW>(n_background);
    std::memset(sums, 0, 64 * NW * outputs.count * sizeof(double));
    int64_t depth = 0;
    while (true) {
      if (go_down(nodes, codes, node, alive, n_failed, depth)) continue;
      leaf(node, alive, n_failed);
      if (!go_up(node, alive, n_failed, depth, phi)) return;
    }
  }

  // One edge down. False at a leaf.
  bool go_down(const Node* nodes, const int32_t* codes, int32_t& node, Bits<NW>& alive, int32_t n_failed,
               int64_t& depth) {
    const Node& here = nodes[node];
    if (here.leaf()) return false;
    const int32_t player = trees->players[here.feature()];
    const Bits<NW> left = background->template goes_left<NW>(here);
    assert(depth <= most_of(trees->tree_depth, trees->n_trees));
    RowFrame<NW>& frame = frames[depth];
    if (row_fails[player]) {  // the hybrids go where the background rows go
      const Bits<NW> to_left = alive & left, to_right = alive & ~left;
      if (to_left.any() && to_right.any()) {
        frame = {to_right, player, here.right, n_failed, kFollowLeft};
        ++depth;
      }
      const bool goes_left = to_left.any();
      node = goes_left ? here.left : here.right;
      alive = goes_left ? to_left : to_right;
      return true;
    }
    const bool row_left = code_goes_left(*trees, here, codes[here.feature()]);
    const Bits<NW> part = alive & satisfies[player] & (row_left ? ~left : left);
    node = row_left ? here.left : here.right;
    if (!part.any()) return true;
    frame = {part, player, row_left ? here.right : here.left, n_failed, kPartRow};
    double* gain = totals + depth * 2 * outputs.count;
    for (int64_t o = 0; o < outputs.count; ++o) gain[o] = 0.0;
    add_sums(part, -1.0, gain);
    for_each(part, [&](int64_t b) { ++n_fails[b]; });
    satisfies[player] = satisfies[player] & ~part;
    ++depth;
    return true;
  }

  // Back up to the next child that is to be walked. False when the tree is done.
  bool go_up(int32_t& node, Bits<NW>& alive, int32_t& n_failed, int64_t& depth, double* phi) {
    const int64_t count = outputs.count;
    while (depth > 0) {
      RowFrame<NW>& frame = frames[depth - 1];
      double* gain = totals + (depth - 1) * 2 * count;
      double* first = gain + count;
      if (frame.kind == kFollowLeft || frame.kind == kPartRow) {
        std::memcpy(first, returned, count * sizeof(double));
        node = frame.other;
        alive = frame.part;
        n_failed = frame.n_failed;
        if (frame.kind == kPartRow) {
          for_each(frame.part, [&](int64_t b) { --n_fails[b]; });
          satisfies[frame.player] = satisfies[frame.player] | frame.part;
          add_sums(frame.part, 1.0, gain);
          row_fails[frame.player] = 1;
          ++n_failed;
        }
        frame.kind = frame.kind == kPartRow ? kPartOther : kFollowRight;
        return true;
      }
      if (frame.kind == kPartOther) {
        row_fails[frame.player] = 0;
        double* mine = phi + frame.player * n_outputs + outputs.first;
        for (int64_t o = 0; o < count; ++o) mine[o] += gain[o] - returned[o];
      }
      for (int64_t o = 0; o < count; ++o) returned[o] += first[o];
      --depth;
    }
    return false;
  }
};

}  // namespace
}  // namespace FS_LEVEL
}  // namespace fouriershap
