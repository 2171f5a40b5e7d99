// Interventional SHAP values of one row against a chunk of the background, a tree at a time.
//
// The walk follows the row. Where background rows separate from it, it walks the other child with them as
// well. A player's gain over these background rows is the change of their sums while the row's own side is
// walked; its loss is the sum that the other side returns. The background rows at a node are a list: deep
// down they are few, and the cost of a node is the length of its list.
#pragma once
#include "walk_index.h"

namespace fouriershap {
namespace {

constexpr int64_t kListedRows = 2048;  // background rows in a chunk, whose sums stay in the nearest cache

// Calls use(goes_right), where goes_right(code) is 1 or 0: the test of a node, chosen outside of the loop.
template <class Use>
inline void with_test(const WalkTrees& trees, const Node& node, Use use) {
  if (node.test < 0) {
    use([&](int32_t code) { return int64_t{!code_goes_left(trees, node, code)}; });
  } else if (node.missing_left()) {
    const int32_t cut = node.test, missing = trees.n_codes[node.feature()] - 1;
    use([=](int32_t code) { return static_cast<int64_t>((code >= cut) & (code != missing)); });
  } else {
    const int32_t cut = node.test;
    use([=](int32_t code) { return static_cast<int64_t>(code >= cut); });
  }
}

// COUNT: outputs of a leaf, 0 where their number is not known here.
template <int COUNT>
class RowWalk {
 public:
  RowWalk(const WalkTrees& the_trees, const WalkBackground& the_background, const Weights& leaf_weights,
          const WalkValues& values)
      : trees(the_trees),
        steps(leaf_weights.steps),
        nodes(the_trees.nodes),
        background(the_background),
        weights(leaf_weights),
        row_weight(the_background.weights),
        n(the_background.n()),
        n_outputs(values.n_outputs),
        depths(trees.most_depth + 1),
        row_fails(values.n_columns, 0),
        slot_of(values.n_columns, -1),
        failed(n * (trees.most_players + 1), 0),
        n_failed(n, 0),
        lists(2 * n * (depths + 1)),
        frames(depths),
        totals(2 * depths * trees.width()),
        returned(trees.width()),
        sums(n * trees.width()) {}

  // codes: of the row, (n_features,). phi: (n_players, n_outputs).
  void walk(int64_t tree, const int32_t* codes, double* phi) {
    at = {trees.roots[tree], 0, lists, n};
    if (nodes[at.node].leaf()) return;
    outputs = Outputs(trees, tree);
    assert(COUNT == 0 || outputs.count == COUNT);
    for (int64_t b = 0; b < n; ++b) lists[b] = static_cast<int32_t>(b);
    std::memset(sums, 0, n * count() * sizeof(double));
    free = lists + n;
    depth = 0;
    do {
      while (!nodes[at.node].leaf() && go_down(codes, phi)) {
      }
      if (nodes[at.node].leaf()) leaf();
    } while (go_up(phi));
  }

 private:
  enum : int8_t { kFollowLeft, kFollowRight, kPartRow, kPartOther };

  // A node, and the background rows whose hybrids with the row reach it.
  struct Place {
    int32_t node;
    int32_t n_row_fails;  // count of the players that the row fails
    int32_t* list;
    int64_t length;
  };

  struct Frame {
    Place other;  // that is walked second
    int32_t* free;
    int32_t player;
    int8_t kind;  // what to do when the walk returns here
    bool fresh;   // the player has its slot since this node
  };

  int64_t count() const { return COUNT ? COUNT : outputs.count; }
  const int32_t* codes_of(const Node& node) const {
    return background.codes[trees.features[node.feature()]] + background.first;
  }
  bool is_leaf(int32_t node) const { return nodes[node].leaf(); }

  void leaf() {
    const double* values = outputs.of_leaf(at.node);
    const double* weight = weights.row(at.n_row_fails);
    double lost = 0.0;
    for (int64_t i = 0; i < at.length; ++i) {
      const int64_t b = at.list[i];
      const double* pair = weight + 2 * n_failed[b];
      const double gained = row_weight[b] * pair[0];
      lost += row_weight[b] * pair[1];
      for (int64_t o = 0; o < count(); ++o) sums[b * count() + o] += values[o] * gained;
    }
    for (int64_t o = 0; o < count(); ++o) returned[o] = values[o] * lost;
  }

  // Walks one edge down. Returns false where the walk has to turn: both leaves below, or everything, are
  // done.
  bool go_down(const int32_t* codes, double* phi) {
    const Node& here = nodes[at.node];
    const int32_t player = trees.players[here.feature()];
    if (row_fails[player]) return follow(here);
    const bool row_left = code_goes_left(trees, here, codes[here.feature()]);
    const int32_t own = row_left ? here.left : here.right, other = row_left ? here.right : here.left;
    if (is_leaf(own) && is_leaf(other)) {
      slot_of[player] < 0 ? part_leaves<false>(here, own, other, phi)
                          : part_leaves<true>(here, own, other, phi);
      return false;
    }
    int32_t* part = free;
    const int64_t n_part = slot_of[player] < 0 ? split<false>(here, row_left) : split<true>(here, row_left);
    at.node = own;
    if (!n_part) return true;
    const int32_t step = steps[player];
    Frame& frame = push();
    frame = {{other, at.n_row_fails + step, part, n_part}, free, player, kPartRow, slot_of[player] < 0};
    free += n_part;
    if (frame.fresh) slot_of[player] = n_slots++;
    uint8_t* mine = failed + slot_of[player] * n;
    double* gain = totals + (depth - 1) * 2 * count();
    for (int64_t o = 0; o < count(); ++o) gain[o] = 0.0;
    for (int64_t i = 0; i < n_part; ++i) {
      const int64_t b = part[i];
      mine[b] = 1;
      n_failed[b] += step;
      for (int64_t o = 0; o < count(); ++o) gain[o] -= sums[b * count() + o];
    }
    return true;
  }

  Frame& push() {
    assert(depth < depths);
    return frames[depth++];
  }

  // Lists the rows that separate from the row at this node; those that failed its player before stay with it.
  template <bool REPEATED>
  int64_t split(const Node& here, bool row_left) {
    const int32_t *codes = codes_of(here), *list = at.list;
    const uint8_t* before = REPEATED ? failed + slot_of[trees.players[here.feature()]] * n : nullptr;
    int32_t* part = free;
    int64_t n_part = 0;
    const int64_t length = at.length, left = row_left ? 0 : 1;
    with_test(trees, here, [&](auto goes_right) {
      for (int64_t i = 0; i < length; ++i) {
        const int32_t b = list[i];
        part[n_part] = b;
        int64_t parts = goes_right(codes[b]) ^ left;
        if (REPEATED) parts &= before[b] ^ 1;
        n_part += parts;
      }
    });
    return n_part;
  }

  // The row fails the player: the hybrids go where the background rows go.
  bool follow(const Node& here) {
    if (is_leaf(here.left) && is_leaf(here.right)) {
      follow_leaves(here);
      return false;
    }
    const int32_t *codes = codes_of(here), *list = at.list;
    int32_t *left = free, *right = free + at.length;
    int64_t n_left = 0, n_right = 0;
    with_test(trees, here, [&](auto goes_right) {
      for (int64_t i = 0; i < at.length; ++i) {
        const int32_t b = list[i];
        const int64_t away = goes_right(codes[b]);
        left[n_left] = right[n_right] = b;
        n_left += 1 - away;
        n_right += away;
      }
    });
    if (n_left && n_right) {
      push() = {{here.right, at.n_row_fails, right, n_right}, free, -1, kFollowLeft, false};
      free = right + n_right;
      at = {here.left, at.n_row_fails, left, n_left};
    } else {
      at.node = n_left ? here.left : here.right;
    }
    return true;
  }

  // Both children are leaves: walks both in one pass.
  template <bool REPEATED>
  void part_leaves(const Node& here, int32_t own, int32_t other, double* phi) {
    const int32_t player = trees.players[here.feature()], step = steps[player];
    const int32_t* codes = codes_of(here);
    const uint8_t* before = REPEATED ? failed + slot_of[player] * n : nullptr;
    const double *mine = weights.row(at.n_row_fails), *others = weights.row(at.n_row_fails + step);
    const double *own_value = outputs.of_leaf(own), *other_value = outputs.of_leaf(other);
    const int64_t left = here.left == own ? 0 : 1;
    double gained = 0.0, lost = 0.0, lost_other = 0.0;
    with_test(trees, here, [&](auto goes_right) {
      for (int64_t i = 0; i < at.length; ++i) {
        const int64_t b = at.list[i];
        int64_t parts = goes_right(codes[b]) ^ left;
        if (REPEATED) parts &= before[b] ^ 1;
        const double weight = row_weight[b], parted = weight * static_cast<double>(parts);
        const double* pair = mine + 2 * (n_failed[b] + parts * step);
        const double* other_pair = others + 2 * n_failed[b];
        const double gain = weight * pair[0], other_gain = parted * other_pair[0];
        gained += parted * pair[0];
        lost += weight * pair[1];
        lost_other += parted * other_pair[1];
        for (int64_t o = 0; o < count(); ++o)
          sums[b * count() + o] += own_value[o] * gain + other_value[o] * other_gain;
      }
    });
    double* to = phi + player * n_outputs + outputs.first;
    for (int64_t o = 0; o < count(); ++o) {
      to[o] += own_value[o] * gained - other_value[o] * lost_other;
      returned[o] = own_value[o] * lost + other_value[o] * lost_other;
    }
  }

  void follow_leaves(const Node& here) {
    const int32_t* codes = codes_of(here);
    const double* weight = weights.row(at.n_row_fails);
    const double* values[2] = {outputs.of_leaf(here.left), outputs.of_leaf(here.right)};
    double lost[2] = {0.0, 0.0};
    with_test(trees, here, [&](auto goes_right) {
      for (int64_t i = 0; i < at.length; ++i) {
        const int64_t b = at.list[i], side = goes_right(codes[b]);
        const double* pair = weight + 2 * n_failed[b];
        const double gain = row_weight[b] * pair[0];
        lost[side] += row_weight[b] * pair[1];
        for (int64_t o = 0; o < count(); ++o) sums[b * count() + o] += values[side][o] * gain;
      }
    });
    for (int64_t o = 0; o < count(); ++o) returned[o] = values[0][o] * lost[0] + values[1][o] * lost[1];
  }

  // Returns to the next child to walk; false when the tree is done.
  bool go_up(double* phi) {
    while (depth > 0) {
      Frame& frame = frames[depth - 1];
      double *gain = totals + (depth - 1) * 2 * count(), *first = gain + count();
      if (frame.kind == kFollowLeft || frame.kind == kPartRow) {
        for (int64_t o = 0; o < count(); ++o) first[o] = returned[o];
        at = frame.other;
        free = at.list + at.length;
        if (frame.kind == kPartRow) turn(frame, gain);
        frame.kind = frame.kind == kPartRow ? kPartOther : kFollowRight;
        return true;
      }
      if (frame.kind == kPartOther) {
        row_fails[frame.player] = 0;
        double* mine = phi + frame.player * n_outputs + outputs.first;
        for (int64_t o = 0; o < count(); ++o) mine[o] += gain[o] - returned[o];
      }
      for (int64_t o = 0; o < count(); ++o) returned[o] += first[o];
      free = frame.free;
      --depth;
    }
    return false;
  }

  // Moves from the row's own side to the other one, where it fails the player and the separated rows do not.
  void turn(const Frame& frame, double* gain) {
    uint8_t* mine = failed + slot_of[frame.player] * n;
    for (int64_t i = 0; i < at.length; ++i) {
      const int64_t b = at.list[i];
      mine[b] = 0;
      n_failed[b] -= steps[frame.player];
      for (int64_t o = 0; o < count(); ++o) gain[o] += sums[b * count() + o];
    }
    if (frame.fresh) {
      slot_of[frame.player] = -1;
      --n_slots;
    }
    row_fails[frame.player] = 1;
  }

  const WalkTrees& trees;
  const int32_t* steps;  // what each player adds to a count
  const Node* nodes;
  const WalkBackground& background;
  const Weights& weights;
  const double* row_weight;
  const int64_t n, n_outputs, depths;
  Outputs outputs;
  Place at = {};
  int32_t* free = nullptr;  // behind the lists in use
  int64_t depth = 0;
  int32_t n_slots = 0;

  // `row_fails`, `failed` and `n_failed` are 0, `slot_of` is -1 between trees.
  Scratch<uint8_t> row_fails;  // (n_players,)
  Scratch<int32_t> slot_of;    // (n_players,) of the players that some row fails on the way
  Scratch<uint8_t> failed;     // (slots, n)
  Scratch<int32_t> n_failed;   // (n,) count of the players that the background row fails
  Scratch<int32_t> lists;
  Scratch<Frame> frames;     // (depths,)
  Scratch<double> totals;    // (depths, 2 * outputs): gain, and sum of the first child
  Scratch<double> returned;  // (outputs,)
  Scratch<double> sums;      // (n, outputs)
};

}  // namespace
}  // namespace fouriershap
