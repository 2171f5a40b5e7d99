// Trees cut into blocks. tree_blocks_numpy.py is the specification.
#pragma once
#include <vector>

#include "span.h"

namespace fouriershap {

struct TreeShape {
  Span<const int32_t> roots, feature, left, right;
  Span<const int32_t> player;  // (n_features,)

  int64_t n_trees() const { return roots.size; }
  int64_t n_nodes() const { return feature.size; }
};

// An ensemble on codes (trees/codes.py).
struct CodedTrees : TreeShape {
  Span<const int32_t> cut, category_set;
  Span<const uint8_t> missing_left;
  Matrix<const uint64_t> set_bits;
  Span<const int32_t> n_codes;
  Span<const double> cover;
};

struct Limits {
  int64_t max_patterns, max_players;
  double cost_table, cost_cut, cost_pattern;
};

struct BlockArrays {
  std::vector<int32_t> cut_start{0}, cut_missing, cut_column, cut_weight, base, n_patterns, tree, players,
      feature_states, leaf_node, leaf_players;
  std::vector<uint16_t> cut_at;
  std::vector<uint8_t> feasible;  // of each tree: all its leaves fit, so its blocks are here
  std::vector<uint32_t> fail;
  std::vector<double> leaf_ratio;
  std::vector<int64_t> player_start{0}, feature_start{0}, leaf_start{0}, leaf_player_start{0}, fail_start{0};
};

BlockArrays cut_trees(const CodedTrees& trees, Span<const uint8_t> wanted, const Limits& limits);

// Per tree: leaves, depth, most distinct players on a path, and the sum over leaves of 2^players.
void profile_trees(const TreeShape& trees, Matrix<double> out);

}  // namespace fouriershap
