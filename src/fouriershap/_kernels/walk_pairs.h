// Path-dependent interactions of pairs of players without tables: leaf by leaf, so the time grows with the
// square of the players on a path. And the leaves that hybrids of two rows reach.
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

// Path-dependent values of one row: a player outside the coalition passes with the share of training rows.
struct PathPairWalk {
  struct Literal {
    double ratio;     // share of the training rows that pass the player's edges so far
    int32_t passes;   // whether the row does
    int32_t n_nodes;  // nodes of the player on the path
  };
  struct Frame {
    int32_t node, next_child;
    Literal before;
  };

  const WalkTrees* trees;
  const double* ratio;
  const PairColumns* pairs;
  const double *t = nullptr, *weights = nullptr;
  int64_t n_points = 0, n_outputs;
  Outputs outputs;
  double* out = nullptr;  // (n_pairs, n_outputs)

  Scratch<int32_t> codes;     // of the row, (n_features,)
  Scratch<Literal> literals;  // (n_players,) {1, 1, 0} between trees
  Scratch<Frame> frames;      // (depth + 1,)
  Scratch<int32_t> on_path;   // the distinct players of the path
  Scratch<double> slopes;     // (players, n_points) derivative over value of a player's factor
  Scratch<double> product;    // (n_points,) weight times all factors

  PathPairWalk(const WalkTrees& the_trees, const WalkPaths& paths, const PairColumns& wanted,
               const WalkValues& values)
      : trees(&the_trees),
        ratio(paths.ratio),
        pairs(&wanted),
        n_outputs(values.n_outputs),
        codes(trees->n_features()),
        literals(wanted.rows, Literal{1.0, 1, 0}),
        frames(trees->most_depth + 1),
        on_path(trees->most_players),
        slopes(trees->most_players * most_of(paths.n_points)),
        product(most_of(paths.n_points)) {}

  // The product of the factors t a + (1-t) b, and for each player (a-b) / factor. No factor is 0: the walk
  // skips nodes where a = b = 0.
  void add_leaf(int64_t n_players, const double* values) {
    for (int64_t k = 0; k < n_points; ++k) product[k] = weights[k];
    for (int64_t i = 0; i < n_players; ++i) {
      const Literal& mine = literals[on_path[i]];
      double* slope = slopes + i * n_points;
      for (int64_t k = 0; k < n_points; ++k) {
        const double factor = t[k] * mine.passes + (1.0 - t[k]) * mine.ratio;
        product[k] *= factor;
        slope[k] = (mine.passes - mine.ratio) / factor;
      }
    }
    for (int64_t j = 1; j < n_players; ++j) {
      const int32_t* columns = (*pairs)[on_path[j]];
      const double* slope = slopes + j * n_points;
      for (int64_t i = 0; i < j; ++i) {
        const int32_t column = columns[on_path[i]];
        if (column < 0) continue;
        const double* other = slopes + i * n_points;
        double total = 0.0;
        for (int64_t k = 0; k < n_points; ++k) total += product[k] * slope[k] * other[k];
        for (int64_t o = 0; o < outputs.count; ++o)
          out[column * n_outputs + outputs.first + o] += total * values[o];
      }
    }
  }

  void run(int32_t root) {
    const Node* nodes = trees->nodes;
    if (nodes[root].leaf()) return;
    int64_t depth = 0, n_players = 0;
    frames[0] = {root, 0, {}};
    while (depth >= 0) {
      Frame& frame = frames[depth];
      const Node& node = nodes[frame.node];
      const int32_t player = trees->players[node.feature()];
      Literal& literal = literals[player];
      if (frame.next_child > 0) {  // back from a child
        if (--literal.n_nodes == 0) --n_players;
        literal = frame.before;
      }
      if (frame.next_child == 2) {
        --depth;
        continue;
      }
      frame.before = literal;
      const bool to_left = frame.next_child++ == 0;
      const int32_t child = to_left ? node.left : node.right;
      if (literal.n_nodes++ == 0) {
        assert(n_players < trees->most_players);
        on_path[n_players++] = player;
      }
      literal.ratio *= ratio[child];
      literal.passes &= code_goes_left(*trees, node, codes[node.feature()]) == to_left;
      if (!literal.passes && literal.ratio == 0.0) continue;  // no row reaches the child
      if (nodes[child].leaf())
        add_leaf(n_players, outputs.of_leaf(child));
      else
        frames[++depth] = {child, 0, {}};
    }
  }
};

}  // namespace
}  // namespace fouriershap
