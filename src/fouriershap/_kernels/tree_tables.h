// The tables of blocks of trees. tree_tables_numpy.py is the specification.
#pragma once
#include "span.h"

namespace fouriershap {

// Blocks and their leaves, as `tree_blocks` cuts them, and the quadrature for u players, from nodes_start[u]
// on: first the nodes, then the weights.
struct TreeBlocks {
  Span<const int32_t> n_patterns;
  Span<const int64_t> feature_start;
  Span<const int32_t> feature_states;
  Span<const int64_t> leaf_start;
  Span<const int32_t> leaf_node;
  Span<const int64_t> leaf_player_start;
  Span<const int32_t> leaf_players;
  Span<const double> leaf_ratio;
  Span<const int64_t> fail_start;
  Span<const uint32_t> fail;
  Matrix<const double> leaf_values;  // (n_nodes, width)
  Span<const double> nodes;
  Span<const int64_t> nodes_start;

  int64_t width() const { return leaf_values.columns; }
  int n_players(int64_t leaf) const {
    return static_cast<int>(leaf_player_start[leaf + 1] - leaf_player_start[leaf]);
  }
};

struct TreeLayout {
  Span<const int32_t> block;
  Span<const int64_t> offset;
  Matrix<const int32_t> slots;  // by table
  int64_t order;
};

// The share of the background on each pattern, from row offset[block] on; empty for path-dependent values.
// Each channel, a column, weights the background on its own, and makes outputs of its own.
struct PatternShares {
  Matrix<const double> shares;
  Span<const int64_t> offset;

  int64_t n_channels() const { return shares.rows ? shares.columns : 1; }
};

// Games of a structured index: which of them gives a player its value, and by game and player the player of
// the merged game, and the class of that; by game and class, the law of t.
enum : int32_t { kUniform, kAlways, kNever };
struct TreeGames {
  Span<const int32_t> leaf_owner;  // as leaf_players, among all players
  Span<const int32_t> game_of;
  Matrix<const int32_t> merged, kind, laws;
};

// Longer paths are left to `walk`. An index needs as many nodes as players at most (Gauss' rules half of
// them).
constexpr int kMostPlayers = 16;
constexpr int kMostNodes = kMostPlayers;

// Tables [first, last) are written to `values`, and `reached` of their leaves. T: float or double. games: of
// a structured index, or none.
template <class T>
void fill(const TreeBlocks& blocks, const TreeLayout& layout, const PatternShares& background, int64_t first,
          int64_t last, Span<T> values, Matrix<double> reached, const TreeGames* games);

}  // namespace fouriershap
