// The kernels of the family walk. walk_numpy.py is the specification.
#pragma once
#include "walk_hybrids.h"
#include "walk_joint.h"
#include "walk_paths.h"
#include "walk_rows.h"
#include "walk_sets.h"

namespace fouriershap {

namespace {

// Cuts n rows into pieces of at most `most`, as equal as possible: their number and size.
struct Pieces {
  int64_t count, size;
  Pieces(int64_t n, int64_t most) : count((n + most - 1) / most), size(count ? (n + count - 1) / count : 0) {}
};

struct Interventional {
  const WalkTrees& trees;
  const WalkRows& rows;
  const WalkBackground& background;
  const WalkValues& values;
  Index background_index{trees}, row_index{trees};
  Weights leaf_weights{};

  // Trees with more than kMaxSlots players on a path are walked row by row.
  bool joint_serves(int64_t tree) const { return trees.tree_players[tree] <= kMaxSlots; }

  template <int NW>
  void joint(int64_t first_background, int64_t n_background) {
    int32_t slots = 0;
    for (int64_t t = 0; t < trees.n_trees(); ++t)
      if (joint_serves(t) && trees.tree_players[t] > slots) slots = trees.tree_players[t];
    const Pieces blocks(rows.n(), kMaxRows);
    Joint<NW> walk(trees, background_index, row_index, leaf_weights,
                   background.weights + first_background - background.first, n_background, values, slots,
                   blocks.size);
    for (int64_t first = rows.first; first < rows.last; first += blocks.size) {
      walk.n_rows = rows.last - first < blocks.size ? rows.last - first : blocks.size;
      walk.out = values.row(first);
      row_index.build(rows, first, walk.n_rows, NW);
      for (int64_t t = 0; t < trees.n_trees(); ++t)
        if (joint_serves(t)) walk.walk(t);
    }
  }

  template <int COUNT>
  void row_by_row(const WalkBackground& some, bool all_trees) {
    RowWalk<COUNT> walk(trees, some, leaf_weights, values);
    const Scratch<int32_t> codes(trees.n_features());
    for (int64_t row = rows.first; row < rows.last; ++row) {
      for (int64_t f = 0; f < trees.n_features(); ++f) codes[f] = rows.codes[trees.features[f]][row];
      for (int64_t t = 0; t < trees.n_trees(); ++t)
        if (all_trees || !joint_serves(t)) walk.walk(t, codes, values.row(row));
    }
  }

  void run_row_by_row(bool all_trees) {
    const Pieces chunks(background.n(), kListedRows);
    for (int64_t first = background.first; first < background.last; first += chunks.size) {
      const int64_t last = background.last - first < chunks.size ? background.last : first + chunks.size;
      const WalkBackground some = {{background.codes, first, last},
                                   {background.weights + first - background.first, last - first}};
      trees.width() == 1 ? row_by_row<1>(some, all_trees) : row_by_row<0>(some, all_trees);
    }
  }

  void run_joint() {
    const Pieces chunks(background.n(), kMaxRows);
    const Pieces blocks(rows.n(), kMaxRows);
    const int64_t larger = chunks.size > blocks.size ? chunks.size : blocks.size;
    const int64_t words = larger <= 64 ? 1 : larger <= 128 ? 2 : 4;
    background_index.allocate(chunks.size, words);
    row_index.allocate(blocks.size, words);
    for (int64_t first = background.first; first < background.last; first += chunks.size) {
      const int64_t n = background.last - first < chunks.size ? background.last - first : chunks.size;
      background_index.build(background, first, n, words);
      words == 1 ? joint<1>(first, n) : words == 2 ? joint<2>(first, n) : joint<4>(first, n);
    }
  }

  void run(bool all_row_by_row) {
    if (all_row_by_row) return run_row_by_row(true);
    bool any = false, all = true;
    for (int64_t t = 0; t < trees.n_trees(); ++t) {
      any |= !joint_serves(t);
      all &= !joint_serves(t);
    }
    if (any) run_row_by_row(false);
    if (!all) run_joint();
  }
};

// Sum over the background of weight * SHAP value. Trees are walked once for a block of rows and a chunk of
// the background, or, `by_row`, once per row.
void interventional(const WalkTrees& trees, const WalkRows& rows, const WalkBackground& background,
                    const Moments& moments, bool by_row, const WalkValues& values) {
  Interventional job{trees, rows, background, values};
  job.leaf_weights.allocate(trees, moments);
  job.run(by_row);
}

// The same with players of several classes, once per row.
void interventional_classes(const WalkTrees& trees, const WalkRows& rows, const WalkBackground& background,
                            const WalkClasses& classes, const WalkValues& values) {
  Interventional job{trees, rows, background, values};
  job.leaf_weights.allocate(trees, classes);
  job.run(true);
}

void path_dependent(const WalkTrees& trees, const WalkPaths& paths, const WalkRows& rows,
                    const WalkValues& values) {
  const int64_t n_values = values.n_columns * values.n_outputs;
  PathWalk walk(trees, paths, values);
  for (int64_t first = rows.first; first < rows.last; first += kPathRows) {
    const int64_t n_rows = rows.last - first < kPathRows ? rows.last - first : kPathRows;
    for (int64_t f = 0; f < trees.n_features(); ++f)
      for (int64_t r = 0; r < kPathRows; ++r)
        walk.codes[f * kPathRows + r] = rows.codes[trees.features[f]][first + (r < n_rows ? r : 0)];
    for (int64_t i = 0; i < n_values * kPathRows; ++i) walk.phi[i] = 0.0;
    for (int64_t t = 0; t < trees.n_trees(); ++t) {
      walk.n_points = paths.n_points[t];
      walk.t = paths.points + paths.point_start[t];
      walk.weights = paths.weights + paths.point_start[t];
      walk.outputs = Outputs(trees, t);
      walk.run(t);
    }
    for (int64_t r = 0; r < n_rows; ++r)
      for (int64_t i = 0; i < n_values; ++i) values.row(first + r)[i] += walk.phi[i * kPathRows + r];
  }
}

void path_dependent_sets(const WalkTrees& trees, const WalkPaths& paths, const WalkRows& rows,
                         const WantedSets& sets, const WalkValues& values) {
  PathSetWalk walk(trees, paths, sets, values);
  for (int64_t first = rows.first; first < rows.last; first += walk.block())
    walk.explain({rows.codes, first, std::min(first + walk.block(), rows.last)});
}

// By the codes of a row, those of head 2 f + 1 with the missing value below all others; anything at a leaf.
inline bool goes_left(const WalkTrees& trees, const Node& node, const int32_t* codes) {
  const int32_t code = codes[node.head];
  if (node.test < 0 && !node.leaf()) [[unlikely]] {  // a set knows the missing value by its code, the last
    const int32_t known = code < 0 ? trees.n_codes[node.feature()] - 1 : code;
    return trees.set_bits[-1 - node.test][known >> 6] >> (known & 63) & 1;
  }
  return code < node.test;
}

// out: (rows, n_outputs) += values of the leaves reached.
//
// Some rows go down together, without a branch that depends on them: a processor would mispredict it.
void predict(const WalkTrees& trees, const WalkRows& rows, Matrix<double> out) {
  constexpr int64_t kBlock = 64;  // rows whose codes stay in cache while a tree's nodes do
  constexpr int64_t kTogether = 8, kLevels = 4;
  const Node* nodes = trees.nodes;
  const int64_t width = 2 * trees.n_features();
  const Scratch<int32_t> codes(width * kBlock + 1);
  codes[0] = 0;  // what a leaf, of head -1, would compare
  for (int64_t first = rows.first; first < rows.last; first += kBlock) {
    const int64_t n = rows.last - first < kBlock ? rows.last - first : kBlock;
    for (int64_t f = 0; f < trees.n_features(); ++f)
      for (int64_t r = 0; r < kBlock; ++r) {
        const int32_t code = rows.codes[trees.features[f]][first + (r < n ? r : 0)];
        int32_t* mine = codes + 1 + r * width + 2 * f;
        mine[0] = code;
        mine[1] = code == trees.n_codes[f] - 1 ? -1 : code;
      }
    for (int64_t t = 0; t < trees.n_trees(); ++t) {
      const Outputs outputs(trees, t);
      for (int64_t some = 0; some < n; some += kTogether) {
        int32_t at[kTogether];
        for (int32_t& node : at) node = trees.roots[t];
        for (int32_t left = trees.tree_depth[t], open = left; open > 0 && left > 0; left -= kLevels) {
          open = 0;
          for (int64_t level = 0; level < kLevels; ++level)
            for (int64_t k = 0; k < kTogether; ++k) {
              const Node& node = nodes[at[k]];
              const int32_t below =
                  goes_left(trees, node, codes + 1 + (some + k) * width) ? node.left : node.right;
              at[k] = node.leaf() ? at[k] : below;
            }
          for (const int32_t node : at) open += !nodes[node].leaf();
        }
        for (int64_t k = 0; k < std::min(kTogether, n - some); ++k) {
          const double* values = outputs.of_leaf(at[k]);
          for (int64_t o = 0; o < outputs.count; ++o) out[first + some + k][outputs.first + o] += values[o];
        }
      }
    }
  }
}

// out: (n_trees,) = leaves that the hybrids of row i and background row i reach, mean over i.
void leaf_visits(const WalkTrees& trees, const WalkRows& rows, const WalkRows& background, Span<double> out) {
  const int64_t n = rows.n();
  HybridWalk walk(trees);
  for (int64_t t = 0; t < trees.n_trees(); ++t) {
    int64_t visits = 0;
    for (int64_t i = 0; i < n; ++i)
      for (int32_t node = trees.roots[t]; node >= 0; node = walk.go_up()) {
        walk.go_down(node, rows, rows.first + i, background, background.first + i);
        ++visits;
      }
    out[t] = n ? static_cast<double>(visits) / static_cast<double>(n) : 0.0;
  }
}

}  // namespace
}  // namespace fouriershap
