// Merging of the rows of a side that no node of a subtree distinguishes: they are one row there.
#pragma once
#include "stream_pairs.h"

namespace fouriershap {
namespace {

constexpr int kMostMerged = 16;  // inner nodes of a subtree

// The inner nodes of a subtree, none at all where they are more than `most`.
struct Subtree {
  int32_t nodes[kMostMerged];
  int n_nodes = 0;

  Subtree(const Node* all, int32_t root, int most) {
    int32_t stack[2 * kMostMerged + 2];
    int n_stack = 0;
    stack[n_stack++] = root;
    while (n_stack) {
      const int32_t at = stack[--n_stack];
      if (all[at].leaf()) continue;
      if (n_nodes == most || n_nodes == kMostMerged) {
        n_nodes = 0;
        return;
      }
      nodes[n_nodes++] = at;
      stack[n_stack++] = all[at].left;
      stack[n_stack++] = all[at].right;
    }
  }
};

class MergedSide {
 public:
  Side side;
  Distinct distinct;

  // Merges a side at a node with so many open slots on its path, if at most `most_left` of its rows are
  // distinct; else changes nothing and returns false.
  bool merge(const WalkTrees& trees, const Side& from, const Subtree& subtree, int depth, int n_slots,
             double most_left) {
    keys.reserve(from.stride);
    std::memcpy(keys, from.mask(depth), from.n * sizeof(uint32_t));
    for (int64_t first = 0; first < from.n; first += kBlock) {  // so that keys stay in the nearest cache
      const int64_t last = first + kBlock < from.n ? first + kBlock : from.n;
      for (int i = 0; i < subtree.n_nodes; ++i)
        add_bit(trees, from, subtree.nodes[i], n_slots + i, first, last);
    }
    const int64_t most = static_cast<int64_t>(most_left * from.n);
    distinct.find(keys, from.n, n_slots + subtree.n_nodes, most);
    if (distinct.count > most) return false;
    gather(trees, from, subtree, depth);
    return true;
  }

 private:
  static constexpr int64_t kBlock = 1024;

  void add_bit(const WalkTrees& trees, const Side& from, int32_t at, int bit, int64_t first, int64_t last) {
    const Node& node = trees.nodes[at];
    const i32x8 here = i32x8{} + (1 << bit);
    with_split(trees, node, from.columns[node.feature()], [&](auto goes_right) {
      for (int64_t row = first; row < last; row += kLanes)
        store(keys + row, load<i32x8>(keys + row) | (goes_right(row) & here));
    });
  }

  void gather(const WalkTrees& trees, const Side& from, const Subtree& subtree, int depth) {
    const int64_t n = distinct.count, stride = round_up(n, 64);
    columns.reserve(trees.n_features());
    codes.reserve(subtree.n_nodes * stride);
    masks.reserve((subtree.n_nodes + 1) * stride);
    weights.reserve(n);
    side.n = n;
    side.stride = stride;
    side.first_depth = depth;
    for (int i = 0; i < subtree.n_nodes; ++i) {
      const int32_t feature = trees.nodes[subtree.nodes[i]].feature();
      int32_t* to = codes + i * stride;
      for (int64_t row = 0; row < n; ++row) to[row] = from.columns[feature][distinct.first[row]];
      for (int64_t row = n; row < stride; ++row) to[row] = 0;
      columns[feature] = to;
    }
    const uint32_t* old = from.mask(depth);
    for (int64_t row = 0; row < n; ++row) masks[row] = old[distinct.first[row]];
    if (from.weights) {
      for (int64_t row = 0; row < n; ++row) weights[row] = 0.0;
      for (int64_t row = 0; row < from.n; ++row) weights[distinct.of[row]] += from.weights[row];
    }
    side.columns = columns;
    side.weights = from.weights ? static_cast<double*>(weights) : nullptr;
    side.masks = masks;
    side.keys = keys;  // no longer needed for finding
  }

  Room<uint32_t> keys, masks;
  Room<const int32_t*> columns;
  Room<int32_t> codes;
  Room<double> weights;
};

}  // namespace
}  // namespace fouriershap
