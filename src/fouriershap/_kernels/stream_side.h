// One side of the pairs, rows or background: which slots each row fails on the way to a node, and its keys.
#pragma once
#include "walk_index.h"

namespace fouriershap {

// Points and weights of the integral over u players, end to end from start[u] on: points, then as many
// weights, padded with weights of 0. `efficient`: values of all players add up to the output's change.
struct StreamIndex {
  Span<const double> nodes;
  Span<const int64_t> start;  // (most_players + 2,)
  Moments moments;
  bool efficient = false;
};

// Sizes beyond which a table does not pay. They change values by no more than rounding.
struct StreamSettings {
  int32_t dense_bits;    // with more other players on the path, rows are split into classes by some of them
  int32_t class_bits;    // players of a table then
  int32_t merged_nodes;  // most inner nodes of a subtree before which equal rows are merged; 0: never
};

constexpr int64_t kMostStreamPlayers = 30;  // on a path

namespace {

constexpr int kLanes = 8;
constexpr int kMostSlots = kMostStreamPlayers;  // a key is a slot a bit, and two bits of state
typedef int32_t i32x8 __attribute__((vector_size(32)));
typedef uint32_t u32x8 __attribute__((vector_size(32)));

template <class T>
struct Lanes;
template <>
struct Lanes<float> {
  typedef float type __attribute__((vector_size(32)));
  typedef int32_t integer;
  typedef int32_t mask __attribute__((vector_size(32)));
};
template <>
struct Lanes<double> {
  typedef double type __attribute__((vector_size(64)));
  typedef int64_t integer;
  typedef int64_t mask __attribute__((vector_size(64)));
};

// A bottom subtree: a node with one or two leaves below it, and the slots (players) on the way to it.
struct BottomSubtree {
  Node node;
  int n_slots;  // open on the way
  int own;      // slot of the node's own player; n_slots where it is not on the way
  bool repeated, has_left, has_right;

  int n_others() const { return repeated ? n_slots - 1 : n_slots; }
  // A row goes left, right or, where it failed the own player further up, nowhere. Where there is one leaf,
  // nowhere and away from the leaf are the same.
  int n_states() const { return repeated && has_left && has_right ? 3 : 2; }
  // Lane of each slot -> its bit in a key from which the own slot is squeezed out, 0 where it has none.
  uint32_t bit(int slot) const {
    if (slot >= n_slots || (repeated && slot == own)) return 0;
    return 1u << (repeated && slot > own ? slot - 1 : slot);
  }
};

struct Side {
  int64_t n = 0, stride = 0;                // rows; rounded up
  const int32_t* const* columns = nullptr;  // codes of each feature, readable up to n rounded up to 8
  const double* weights = nullptr;          // of a background
  uint32_t* masks = nullptr;                // (depths, stride) slots failed on the way to a node
  uint32_t* keys = nullptr;                 // (stride,)
  int first_depth = 0;                      // that of the first masks

  uint32_t* mask(int depth) const { return masks + (depth - first_depth) * stride; }
};

// Calls use(goes_right), where goes_right(row) is -1 in the lanes of rows row ... row + 7 that go right.
template <class Use>
inline void with_split(const WalkTrees& trees, const Node& node, const int32_t* codes, Use use) {
  if (node.test < 0) {
    use([&trees, &node, codes](int64_t row) {
      i32x8 right;
      for (int lane = 0; lane < kLanes; ++lane)
        right[lane] = code_goes_left(trees, node, codes[row + lane]) - 1;
      return right;
    });
  } else if (node.missing_left()) {
    const i32x8 cut = i32x8{} + node.test, missing = i32x8{} + (trees.n_codes[node.feature()] - 1);
    use([=](int64_t row) {
      const i32x8 code = load<i32x8>(codes + row);
      return (i32x8)((code >= cut) & (code != missing));
    });
  } else {
    const i32x8 cut = i32x8{} + node.test;
    use([=](int64_t row) { return (i32x8)(load<i32x8>(codes + row) >= cut); });
  }
}

// The slots failed on the way to a child, from those on the way to its parent.
inline void enter_child(const WalkTrees& trees, const Node& node, const Side& side, int depth, int slot,
                        bool left) {
  const uint32_t* from = side.mask(depth);
  uint32_t* to = side.mask(depth + 1);
  const i32x8 bit = i32x8{} + static_cast<int32_t>(1u << slot), flip = i32x8{} - (left ? 0 : 1);
  with_split(trees, node, side.columns[node.feature()], [&](auto goes_right) {
    for (int64_t row = 0; row < side.n; row += kLanes)
      store(to + row, load<i32x8>(from + row) | ((goes_right(row) ^ flip) & bit));
  });
}

// Keys: state << state_bit, and below it the other slots that a row fails (or passes). Where `swapped`, bits
// 0-2 and 3-5 change places: the transform, which transposes, puts them back.
struct KeyForm {
  int state_bit;
  bool passes, swapped;
};

inline void make_keys(const WalkTrees& trees, const BottomSubtree& bottom, const Side& side, int depth,
                      KeyForm form) {
  const uint32_t* masks = side.mask(depth);
  const int own = bottom.own;
  const bool three = bottom.n_states() == 3;
  const i32x8 low = i32x8{} + static_cast<int32_t>((1u << own) - 1);
  const i32x8 others = i32x8{} + static_cast<int32_t>((1u << bottom.n_others()) - 1);
  const i32x8 right_state = i32x8{} + (1 << form.state_bit);
  const i32x8 nowhere = three ? right_state * 2 : bottom.has_left ? right_state : i32x8{};
  const i32x8 flip = form.passes ? others : i32x8{};
  with_split(trees, bottom.node, side.columns[bottom.node.feature()], [&](auto goes_right) {
    for (int64_t row = 0; row < side.n; row += kLanes) {
      i32x8 mask = load<i32x8>(masks + row), state = goes_right(row) & right_state;
      if (bottom.repeated) {
        const i32x8 failed = -((mask >> own) & 1);
        mask = (mask & low) | ((mask >> 1) & ~low);
        state = (state & ~failed) | (nowhere & failed);
      }
      mask ^= flip;
      if (form.swapped) mask = (mask & ~63) | ((mask & 7) << 3) | ((mask >> 3) & 7);
      store(side.keys + row, mask | state);
    }
  });
}

}  // namespace
}  // namespace fouriershap
