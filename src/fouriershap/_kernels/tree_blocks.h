// Trees cut into blocks. The twin, tree_blocks_numpy.py, documents every array. Compiled once, so there is no
// instruction set in here, and the standard library may be used: it throws std::bad_alloc.
#pragma once
#include <cstdint>
#include <vector>

namespace fouriershap {

// A coded ensemble (trees/_codes.py), as flat arrays.
struct Trees {
  const int32_t *roots, *feature, *cut, *left, *right, *category_set, *n_codes, *player;
  const bool *missing_left, *wanted;
  const uint64_t* set_bits;
  const double* cover;
  int64_t n_trees, n_nodes, set_words;
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

BlockArrays cut_trees(const Trees& trees, const Limits& limits);

// Per tree: leaves, depth, most distinct players on a path, and the sum over leaves of 2^players.
void profile_trees(const Trees& trees, double* out);

}  // namespace fouriershap
