// The arguments of every function on trees that are walked, and what the kernels take of them.
#pragma once
#include "binding.h"

namespace fouriershap {

// The ensemble, as the first arguments of every function.
#define FS_TREES                                                                                \
  In<int32_t, 2> nodes, In<double, 2> values, In<int32_t, 1> roots, In<int32_t, 1> tree_output, \
      In<int32_t, 1> tree_players, In<int32_t, 1> tree_depth, In<int32_t, 1> features,          \
      In<int32_t, 1> n_codes, In<int32_t, 1> players, In<bool, 1> categorical, In<uint64_t, 2> set_bits
#define FS_TREES_GIVEN                                                                                       \
  WalkTrees {                                                                                                \
    .nodes = nodes.data(), .values = values.data(), .width = length(values, 1), .roots = roots.data(),       \
    .tree_output = tree_output.data(), .tree_players = tree_players.data(), .tree_depth = tree_depth.data(), \
    .n_trees = length(roots), .features = features.data(), .n_codes = n_codes.data(),                        \
    .players = players.data(), .categorical = reinterpret_cast<const uint8_t*>(categorical.data()),          \
    .n_features = length(features), .set_bits = set_bits.data(), .set_words = length(set_bits, 1),           \
    .n_nodes = length(nodes)                                                                                 \
  }

inline WalkRows columns(const In<int32_t, 2>& codes, int64_t first, int64_t last) {
  return {codes.data(), length(codes, 1), first, last};
}

inline WalkRows columns(const In<int32_t, 2>& codes) { return columns(codes, 0, length(codes, 1)); }

inline WalkMoments given(const In<double, 2>& moments) { return {moments.data(), length(moments)}; }

inline WalkPairs given(const In<int32_t, 2>& pair_column) {
  return {pair_column.data(), length(pair_column)};
}

inline WalkValues given(const Out<double, 3>& out) { return {out.data(), length(out, 1), length(out, 2)}; }

}  // namespace fouriershap
