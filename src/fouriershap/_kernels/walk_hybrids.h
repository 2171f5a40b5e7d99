// The leaves that the hybrids of two rows reach.
#pragma once
#include "walk_index.h"

namespace fouriershap {
namespace {

// Visits the leaves that the hybrids of one row and one background row reach.
struct HybridWalk {
  struct Fork {
    int32_t player, other;
    bool first;  // the row's side is being walked
  };
  enum : uint8_t { kOpen, kRow, kBackground };  // whom the hybrids follow at a player's nodes

  const WalkTrees* trees;
  Scratch<Fork> forks;      // (depth,)
  Scratch<uint8_t> follow;  // (n_players,) kOpen between walks
  int64_t depth = 0;

  explicit HybridWalk(const WalkTrees& the_trees)
      : trees(&the_trees), forks(trees->most_depth), follow(trees->n_players, kOpen) {}

  // Descends to a leaf; where the two rows separate, along the row, with the other child stacked.
  int32_t go_down(int32_t node, const WalkRows& rows, int64_t row, const WalkRows& others, int64_t other) {
    const Node* nodes = trees->nodes;
    while (!nodes[node].leaf()) {
      const Node& here = nodes[node];
      const int64_t column = trees->features[here.feature()];
      const bool left = code_goes_left(*trees, here, rows.codes[column][row]);
      const bool other_left = code_goes_left(*trees, here, others.codes[column][other]);
      const int32_t player = trees->players[here.feature()];
      const bool to_left = follow[player] == kBackground ? other_left : left;
      if (left != other_left && follow[player] == kOpen) {
        assert(depth < trees->most_depth);
        forks[depth++] = {player, left ? here.right : here.left, true};
        follow[player] = kRow;
      }
      node = to_left ? here.left : here.right;
    }
    return node;
  }

  // Returns the next stacked child, -1 without one.
  int32_t go_up() {
    while (depth && !forks[depth - 1].first) follow[forks[--depth].player] = kOpen;
    if (!depth) return -1;
    forks[depth - 1].first = false;
    follow[forks[depth - 1].player] = kBackground;
    return forks[depth - 1].other;
  }
};

}  // namespace
}  // namespace fouriershap
