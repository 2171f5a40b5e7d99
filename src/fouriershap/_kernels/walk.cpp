#include "walk.h"

#include "walk_index.h"
#include "walk_joint.h"
#include "walk_pairs.h"
#include "walk_paths.h"
#include "walk_rows.h"

namespace fouriershap {
namespace FS_LEVEL {

namespace {

// Cuts n rows into pieces of at most `most`, as equal as possible: how many, and how large.
struct Pieces {
  int64_t count, size;
  Pieces(int64_t n, int64_t most) : count((n + most - 1) / most), size(count ? (n + count - 1) / count : 0) {}
};

struct Interventional {
  const WalkTrees& trees;
  const WalkRows& rows;
  const WalkRows& background;
  const double* weights;
  const WalkMoments& moments;
  const WalkValues& values;
  Index background_index{trees}, row_index{trees};
  Weights leaf_weights{};

  // Trees with more than kMaxSlots players on a path are walked row by row.
  bool joint_serves(int64_t tree) const { return trees.tree_players[tree] <= kMaxSlots; }

  double* out_of(int64_t row) const { return values.out + row * values.n_columns * values.n_outputs; }

  template <int NW>
  bool joint(int64_t first_background, int64_t n_background) {
    int32_t slots = 0;
    for (int64_t t = 0; t < trees.n_trees; ++t)
      if (joint_serves(t) && trees.tree_players[t] > slots) slots = trees.tree_players[t];
    const Pieces blocks(rows.last - rows.first, kMaxRows);
    Joint<NW> walk(trees, background_index, row_index, leaf_weights,
                   weights + first_background - background.first, n_background, values, slots, blocks.size);
    if (!walk.ok()) return false;
    for (int64_t first = rows.first; first < rows.last; first += blocks.size) {
      walk.n_rows = rows.last - first < blocks.size ? rows.last - first : blocks.size;
      walk.out = out_of(first);
      row_index.build(rows, first, walk.n_rows, NW);
      for (int64_t t = 0; t < trees.n_trees; ++t)
        if (joint_serves(t) && !walk.walk(t)) return false;
    }
    return true;
  }

  template <int COUNT>
  bool row_by_row(const WalkRows& some_background, const double* some_weights, bool all_trees) {
    RowWalk<COUNT> walk(trees, some_background, leaf_weights, some_weights, values);
    const Scratch<int32_t> codes(trees.n_features);
    if (!walk.ok() || !codes) return false;
    for (int64_t row = rows.first; row < rows.last; ++row) {
      for (int64_t f = 0; f < trees.n_features; ++f)
        codes[f] = rows.codes[trees.features[f] * rows.stride + row];
      for (int64_t t = 0; t < trees.n_trees; ++t)
        if (all_trees || !joint_serves(t)) walk.walk(t, codes, out_of(row));
    }
    return true;
  }

  bool run_row_by_row(bool all_trees) {
    const Pieces chunks(background.last - background.first, kListedRows);
    for (int64_t first = background.first; first < background.last; first += chunks.size) {
      const int64_t last = background.last - first < chunks.size ? background.last : first + chunks.size;
      const WalkRows some = {background.codes, background.stride, first, last};
      const double* mine = weights + first - background.first;
      if (!(trees.width == 1 ? row_by_row<1>(some, mine, all_trees) : row_by_row<0>(some, mine, all_trees)))
        return false;
    }
    return true;
  }

  bool run_joint() {
    const Pieces chunks(background.last - background.first, kMaxRows);
    const Pieces blocks(rows.last - rows.first, kMaxRows);
    const int64_t larger = chunks.size > blocks.size ? chunks.size : blocks.size;
    const int64_t words = larger <= 64 ? 1 : larger <= 128 ? 2 : 4;
    if (!background_index.allocate(chunks.size, words) || !row_index.allocate(blocks.size, words))
      return false;
    bool ok = true;
    for (int64_t first = background.first; ok && first < background.last; first += chunks.size) {
      const int64_t n = background.last - first < chunks.size ? background.last - first : chunks.size;
      background_index.build(background, first, n, words);
      ok = words == 1 ? joint<1>(first, n) : words == 2 ? joint<2>(first, n) : joint<4>(first, n);
    }
    return ok;
  }

  bool run(bool all_row_by_row) {
    if (!leaf_weights.allocate(most_of(trees.tree_players, trees.n_trees), moments)) return false;
    if (all_row_by_row) return run_row_by_row(true);
    bool any = false, all = true;
    for (int64_t t = 0; t < trees.n_trees; ++t) {
      any |= !joint_serves(t);
      all &= !joint_serves(t);
    }
    return (!any || run_row_by_row(false)) && (all || run_joint());
  }
};

}  // namespace

bool interventional_joint(const WalkTrees& trees, const WalkRows& rows, const WalkRows& background,
                          const double* weights, const WalkMoments& moments, const WalkValues& values) {
  return Interventional{trees, rows, background, weights, moments, values}.run(false);
}

bool interventional_rows(const WalkTrees& trees, const WalkRows& rows, const WalkRows& background,
                         const double* weights, const WalkMoments& moments, const WalkValues& values) {
  return Interventional{trees, rows, background, weights, moments, values}.run(true);
}

bool path_dependent(const WalkTrees& trees, const WalkPaths& paths, const WalkRows& rows,
                    const WalkValues& values) {
  const int64_t n_values = values.n_columns * values.n_outputs;
  PathWalk walk(trees, paths, values);
  if (!walk.ok()) return false;
  for (int64_t first = rows.first; first < rows.last; first += kPathRows) {
    const int64_t n_rows = rows.last - first < kPathRows ? rows.last - first : kPathRows;
    for (int64_t f = 0; f < trees.n_features; ++f)
      for (int64_t r = 0; r < kPathRows; ++r)
        walk.codes[f * kPathRows + r] =
            rows.codes[trees.features[f] * rows.stride + first + (r < n_rows ? r : 0)];
    for (int64_t i = 0; i < n_values * kPathRows; ++i) walk.phi[i] = 0.0;
    for (int64_t t = 0; t < trees.n_trees; ++t) {
      walk.n_points = paths.n_points[t];
      walk.t = paths.points + paths.point_start[t];
      walk.weights = paths.weights + paths.point_start[t];
      walk.outputs = Outputs(trees, t);
      walk.run(t);
    }
    for (int64_t r = 0; r < n_rows; ++r)
      for (int64_t i = 0; i < n_values; ++i)
        values.out[(first + r) * n_values + i] += walk.phi[i * kPathRows + r];
  }
  return true;
}

bool interventional_pairs(const WalkTrees& trees, const WalkRows& rows, const WalkRows& background,
                          const double* weights, const WalkMoments& moments, const WalkPairs& pairs,
                          const WalkValues& values) {
  HybridWalk walk(trees, pairs.n_players);
  if (!walk.ok()) return false;
  for (int64_t row = rows.first; row < rows.last; ++row)
    for (int64_t t = 0; t < trees.n_trees; ++t) {
      const Outputs outputs(trees, t);
      double* mine = values.out + row * values.n_columns * values.n_outputs + outputs.first;
      for (int64_t b = background.first; b < background.last; ++b)
        for (int32_t node = trees.roots[t]; node >= 0; node = walk.go_up()) {
          node = walk.go_down(node, rows.codes + row, rows.stride, background.codes + b, background.stride);
          walk.add_pairs(outputs, outputs.of_leaf(node), weights[b - background.first], moments, pairs,
                         values.n_outputs, mine);
        }
    }
  return true;
}

bool path_dependent_pairs(const WalkTrees& trees, const WalkPaths& paths, const WalkRows& rows,
                          const WalkPairs& pairs, const WalkValues& values) {
  PathPairWalk walk(trees, paths, pairs, values);
  if (!walk.ok()) return false;
  for (int64_t row = rows.first; row < rows.last; ++row) {
    for (int64_t f = 0; f < trees.n_features; ++f)
      walk.codes[f] = rows.codes[trees.features[f] * rows.stride + row];
    walk.out = values.out + row * values.n_columns * values.n_outputs;
    for (int64_t t = 0; t < trees.n_trees; ++t) {
      walk.n_points = paths.n_points[t];
      walk.t = paths.points + paths.point_start[t];
      walk.weights = paths.weights + paths.point_start[t];
      walk.outputs = Outputs(trees, t);
      walk.run(trees.roots[t]);
    }
  }
  return true;
}

bool predict(const WalkTrees& trees, const WalkRows& rows, int64_t n_outputs, double* out) {
  constexpr int64_t kBlock = 64;  // rows whose codes stay in cache while a tree's nodes do
  const Node* nodes = nodes_of(trees);
  const Scratch<int32_t> codes(trees.n_features * kBlock);
  if (!codes) return false;
  for (int64_t first = rows.first; first < rows.last; first += kBlock) {
    const int64_t n = rows.last - first < kBlock ? rows.last - first : kBlock;
    for (int64_t f = 0; f < trees.n_features; ++f)
      for (int64_t r = 0; r < n; ++r)
        codes[r * trees.n_features + f] = rows.codes[trees.features[f] * rows.stride + first + r];
    for (int64_t t = 0; t < trees.n_trees; ++t) {
      const Outputs outputs(trees, t);
      for (int64_t r = 0; r < n; ++r) {
        const int32_t* mine = codes + r * trees.n_features;
        int32_t node = trees.roots[t];
        while (!nodes[node].leaf())
          node = code_goes_left(trees, nodes[node], mine[nodes[node].feature()]) ? nodes[node].left
                                                                                 : nodes[node].right;
        const double* values = outputs.of_leaf(node);
        for (int64_t o = 0; o < outputs.count; ++o)
          out[(first + r) * n_outputs + outputs.first + o] += values[o];
      }
    }
  }
  return true;
}

bool leaf_visits(const WalkTrees& trees, const WalkRows& rows, const WalkRows& background, int64_t n_players,
                 double* out) {
  const int64_t n = rows.last - rows.first;
  HybridWalk walk(trees, n_players);
  if (!walk.ok()) return false;
  for (int64_t t = 0; t < trees.n_trees; ++t) {
    int64_t visits = 0;
    for (int64_t i = 0; i < n; ++i)
      for (int32_t node = trees.roots[t]; node >= 0; node = walk.go_up()) {
        walk.go_down(node, rows.codes + rows.first + i, rows.stride, background.codes + background.first + i,
                     background.stride);
        ++visits;
      }
    out[t] = n ? static_cast<double>(visits) / static_cast<double>(n) : 0.0;
  }
  return true;
}

bool path_shape(const WalkTrees& trees, int64_t n_players, int32_t* players, int32_t* depth) {
  struct Step {
    int32_t node, next_child;
  };
  const Node* nodes = nodes_of(trees);
  int64_t capacity = 1024;
  Scratch<Step> path(capacity);
  const Scratch<int32_t> times(n_players, 0);  // nodes of the player on the path
  if (!path || !times) return false;
  for (int64_t t = 0; t < trees.n_trees; ++t) {
    int32_t distinct = 0;
    int64_t length = 0;
    players[t] = depth[t] = 0;
    path[length++] = {trees.roots[t], 0};
    while (length) {
      Step& here = path[length - 1];
      const Node& node = nodes[here.node];
      if (!node.leaf() && here.next_child == 0 && times[trees.players[node.feature()]]++ == 0) ++distinct;
      if (node.leaf() || here.next_child == 2) {
        if (node.leaf()) {
          if (distinct > players[t]) players[t] = distinct;
          if (length - 1 > depth[t]) depth[t] = static_cast<int32_t>(length - 1);
        } else if (--times[trees.players[node.feature()]] == 0) {
          --distinct;
        }
        --length;
        continue;
      }
      const int32_t child = here.next_child++ == 0 ? node.left : node.right;
      if (length == capacity) {
        if (!path.grow(2 * capacity, capacity)) return false;
        capacity *= 2;
      }
      path[length++] = {child, 0};
    }
  }
  return true;
}

}  // namespace FS_LEVEL
}  // namespace fouriershap
