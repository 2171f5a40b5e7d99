// SHAP values by walking the trees, without tables. walk_numpy.py is the specification.
#pragma once
#include <algorithm>
#include <vector>

#include "scratch.h"
#include "span.h"

namespace fouriershap {

struct Node {
  int32_t head;  // 2 * feature + missing_left, -1 at a leaf
  int32_t test;  // the cut, or -1 - set at a categorical node
  int32_t left, right;

  bool leaf() const { return head < 0; }
  int32_t feature() const { return head >> 1; }
  bool missing_left() const { return head & 1; }
};

// An ensemble on codes. "Feature" means a position in `features`: only the features that some node tests.
struct WalkTrees {
  Span<const Node> nodes;
  Matrix<const double> values;       // (n_nodes, width)
  Span<const int32_t> roots;         // (n_trees,)
  Span<const int32_t> tree_output;   // (n_trees,) the output that a tree adds to, -1 for all
  Span<const int32_t> tree_players;  // (n_trees,) most distinct players on a path
  Span<const int32_t> tree_depth;    // (n_trees,) most edges on a path
  Span<const int32_t> features;      // (n_features,) row of the code matrix
  Span<const int32_t> n_codes;       // (n_features,) the last code is the missing value
  Span<const int32_t> players;       // (n_features,) who owns the feature
  Span<const uint8_t> categorical;   // (n_features,)
  Matrix<const uint64_t> set_bits;   // (n_sets, words)
  int64_t n_players = 0;
  int64_t most_players = 0, most_depth = 0;  // of any tree

  int64_t n_trees() const { return roots.size; }
  int64_t n_features() const { return features.size; }
  int64_t width() const { return values.columns; }
};

// Columns [first, last) of a code matrix (all features, columns).
struct WalkRows {
  Matrix<const int32_t> codes;
  int64_t first, last;

  int64_t n() const { return last - first; }
};

// Background rows with their weights.
struct WalkBackground : WalkRows {
  Span<const double> weights;
};

// Integral of t^p (1-t)^q by p and q, up to the most players on a path.
using Moments = Matrix<const double>;

// Players of several classes: what each adds to the count of those that a row, or a background row, fails,
// and the weights (n_counts, n_counts, 2) by the counts of both.
struct WalkClasses {
  Span<const int32_t> steps;
  const double* pairs;
  int64_t n_counts;
};

// Path-dependent values. ratio: (n_nodes,) cover of a node over its parent's. Tree t integrates over
// n_points[t] (a multiple of 4) points in (0, 1), which start at point_start[t].
struct WalkPaths {
  Span<const double> ratio;
  Span<const int32_t> n_points;
  Span<const int64_t> point_start;
  Span<const double> points, weights;
};

// (rows, n_columns, n_outputs), added to; its row 0 is row 0 of the code matrix. A column is a player, a pair
// or a set.
struct WalkValues {
  double* out;
  int64_t n_rows, n_columns, n_outputs;

  double* row(int64_t i) const {
    assert(i >= 0 && i < n_rows);
    return out + i * n_columns * n_outputs;
  }
};

// Computes tree_players and tree_depth, which are not read here.
inline void path_shape(const WalkTrees& trees, Span<int32_t> players, Span<int32_t> depth) {
  struct Step {
    int32_t node, next_child;
  };
  const Node* nodes = trees.nodes;
  std::vector<Step> path;
  const Scratch<int32_t> times(trees.n_players, 0);  // nodes of the player on the path
  for (int64_t t = 0; t < trees.n_trees(); ++t) {
    int32_t distinct = 0;
    players[t] = depth[t] = 0;
    path.push_back({trees.roots[t], 0});
    while (!path.empty()) {
      Step& here = path.back();
      const Node& node = nodes[here.node];
      if (!node.leaf() && here.next_child == 0 && times[trees.players[node.feature()]]++ == 0) ++distinct;
      if (!node.leaf() && here.next_child < 2) {
        path.push_back({here.next_child++ == 0 ? node.left : node.right, 0});
        continue;
      }
      if (node.leaf()) {
        players[t] = std::max(players[t], distinct);
        depth[t] = std::max(depth[t], static_cast<int32_t>(path.size() - 1));
      } else if (--times[trees.players[node.feature()]] == 0) {
        --distinct;
      }
      path.pop_back();
    }
  }
}

}  // namespace fouriershap
