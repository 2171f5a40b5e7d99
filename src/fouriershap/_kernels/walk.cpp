#include "walk.h"

#include "walk_index.h"
#include "walk_joint.h"
#include "walk_pairs.h"
#include "walk_paths.h"
#include "walk_rows.h"

namespace fouriershap {
namespace FS_LEVEL {

namespace {

template <class T>
T* allocate(int64_t n) {
  return static_cast<T*>(std::malloc((n > 0 ? n : 1) * sizeof(T)));
}

template <class T>
T* allocate_filled(int64_t n, T value) {
  T* array = allocate<T>(n);
  if (array)
    for (int64_t i = 0; i < n; ++i) array[i] = value;
  return array;
}

// Cuts n rows into pieces of at most kMaxRows, as equal as possible: how many, and how large.
struct Pieces {
  int64_t count, size;
  explicit Pieces(int64_t n)
      : count((n + kMaxRows - 1) / kMaxRows), size(count ? (n + count - 1) / count : 0) {}
};

struct Interventional {
  const WalkTrees& trees;
  const WalkRows& rows;
  const WalkRows& background;
  const double* weights;
  const WalkMoments& moments;
  int64_t n_players, n_outputs;
  double* out;
  Index background_index, row_index;
  Weights leaf_weights;

  // Trees with more than kMaxSlots players on a path are walked row by row.
  bool joint_serves(int64_t tree) const { return trees.tree_players[tree] <= kMaxSlots; }

  template <int NW>
  bool joint(int64_t first_background, int64_t n_background) {
    int32_t slots = 0;
    for (int64_t t = 0; t < trees.n_trees; ++t)
      if (joint_serves(t) && trees.tree_players[t] > slots) slots = trees.tree_players[t];
    const Pieces blocks(rows.last - rows.first);
    const int64_t padded = (slots + 3) / 4 * 4;
    auto* walk = allocate<Joint<NW>>(1);
    if (!walk) return false;
    walk->trees = &trees;
    walk->background = &background_index;
    walk->rows = &row_index;
    walk->weights = &leaf_weights;
    walk->row_weight = weights + first_background - background.first;
    walk->n_background = n_background;
    walk->n_players = n_players;
    walk->n_outputs = n_outputs;
    walk->slot_of = allocate_filled<int32_t>(n_players, -1);
    walk->frames = allocate<JointFrame<NW>>(most_of(trees.tree_depth, trees.n_trees) + 1);
    walk->capacity = 16 * blocks.size;
    walk->pool = allocate<Entry<NW>>(walk->capacity);
    walk->fails = allocate_filled<double>(64 * NW * padded, 0.0);
    walk->sums = allocate_filled<double>(blocks.size * trees.width * padded, 0.0);
    for (uint32_t& count : walk->n_fails) count = 0;
    bool ok = walk->slot_of && walk->frames && walk->pool && walk->fails && walk->sums;
    for (int64_t first = rows.first; ok && first < rows.last; first += blocks.size) {
      walk->n_rows = rows.last - first < blocks.size ? rows.last - first : blocks.size;
      walk->out = out + first * n_players * n_outputs;
      row_index.build(rows, first, walk->n_rows, NW);
      for (int64_t t = 0; ok && t < trees.n_trees; ++t)
        if (joint_serves(t)) ok = walk->walk(t);
    }
    std::free(walk->slot_of);
    std::free(walk->frames);
    std::free(walk->pool);
    std::free(walk->fails);
    std::free(walk->sums);
    std::free(walk);
    return ok;
  }

  template <int NW>
  bool row_by_row(int64_t first_background, int64_t n_background, bool all_trees) {
    const int64_t depth = most_of(trees.tree_depth, trees.n_trees) + 1, count = trees.width;
    auto* walk = allocate<RowWalk<NW>>(1);
    if (!walk) return false;
    walk->trees = &trees;
    walk->background = &background_index;
    walk->weights = &leaf_weights;
    walk->row_weight = weights + first_background - background.first;
    walk->n_background = n_background;
    walk->n_outputs = n_outputs;
    walk->row_fails = allocate_filled<uint8_t>(n_players, 0);
    walk->satisfies = allocate_filled<Bits<NW>>(n_players, filled<NW>(~0ULL));
    walk->frames = allocate<RowFrame<NW>>(depth);
    walk->totals = allocate<double>(2 * depth * count);
    walk->returned = allocate<double>(count);
    walk->sums = allocate<double>(64 * NW * count);
    for (uint32_t& fails : walk->n_fails) fails = 0;
    int32_t* codes = allocate<int32_t>(trees.n_features);
    const bool ok = walk->row_fails && walk->satisfies && walk->frames && walk->totals && walk->returned &&
                    walk->sums && codes;
    for (int64_t row = rows.first; ok && row < rows.last; ++row) {
      for (int64_t f = 0; f < trees.n_features; ++f)
        codes[f] = rows.codes[trees.features[f] * rows.stride + row];
      for (int64_t t = 0; t < trees.n_trees; ++t)
        if (all_trees || !joint_serves(t)) walk->walk(t, codes, out + row * n_players * n_outputs);
    }
    std::free(codes);
    std::free(walk->row_fails);
    std::free(walk->satisfies);
    std::free(walk->frames);
    std::free(walk->totals);
    std::free(walk->returned);
    std::free(walk->sums);
    std::free(walk);
    return ok;
  }

  template <int NW>
  bool chunk(int64_t first, int64_t n, bool all_row_by_row) {
    background_index.build(background, first, n, NW);
    bool any = all_row_by_row, all = true;
    for (int64_t t = 0; t < trees.n_trees; ++t) {
      any |= !joint_serves(t);
      all &= !joint_serves(t);
    }
    return (!any || row_by_row<NW>(first, n, all_row_by_row)) &&
           (all || all_row_by_row || joint<NW>(first, n));
  }

  bool run(bool all_row_by_row) {
    const Pieces chunks(background.last - background.first);
    const Pieces blocks(all_row_by_row ? 1 : rows.last - rows.first);
    const int64_t larger = chunks.size > blocks.size ? chunks.size : blocks.size;
    const int64_t words = larger <= 64 ? 1 : larger <= 128 ? 2 : 4;
    bool ok = background_index.allocate(trees, chunks.size, words) &&
              row_index.allocate(trees, blocks.size, words) &&
              leaf_weights.allocate(most_of(trees.tree_players, trees.n_trees), moments.moments, moments.side);
    for (int64_t first = background.first; ok && first < background.last; first += chunks.size) {
      const int64_t n = background.last - first < chunks.size ? background.last - first : chunks.size;
      ok = words == 1   ? chunk<1>(first, n, all_row_by_row)
           : words == 2 ? chunk<2>(first, n, all_row_by_row)
                        : chunk<4>(first, n, all_row_by_row);
    }
    background_index.free();
    row_index.free();
    leaf_weights.free();
    return ok;
  }
};

}  // namespace

bool interventional_joint(const WalkTrees& trees, const WalkRows& rows, const WalkRows& background,
                          const double* weights, const WalkMoments& moments, int64_t n_players,
                          int64_t n_outputs, double* out) {
  Interventional job{trees, rows, background, weights, moments, n_players, n_outputs, out, {}, {}, {}};
  return job.run(false);
}

bool interventional_rows(const WalkTrees& trees, const WalkRows& rows, const WalkRows& background,
                         const double* weights, const WalkMoments& moments, int64_t n_players,
                         int64_t n_outputs, double* out) {
  Interventional job{trees, rows, background, weights, moments, n_players, n_outputs, out, {}, {}, {}};
  return job.run(true);
}

bool path_dependent(const WalkTrees& trees, const double* ratio, const int32_t* n_points,
                    const int64_t* point_start, const double* points, const double* point_weights,
                    const WalkRows& rows, int64_t n_players, int64_t n_outputs, double* out) {
  int64_t levels = 1;
  for (int64_t t = 0; t < trees.n_trees; ++t) {
    const int64_t size = (trees.tree_depth[t] + 2) * PathWalk::level_size(n_points[t], trees.width);
    if (size > levels) levels = size;
  }
  PathWalk walk{};
  walk.trees = &trees;
  walk.ratio = ratio;
  walk.n_outputs = n_outputs;
  walk.a = allocate_filled<Flags>(n_players, Flags{} + 1);
  walk.b = allocate_filled<double>(n_players, 1.0);
  walk.inverse_of = allocate_filled<int64_t>(n_players, -1);
  walk.phi = allocate<double>(n_players * n_outputs * kPathRows);
  walk.frames = allocate<PathFrame>(most_of(trees.tree_depth, trees.n_trees) + 1);
  walk.levels = allocate<double>(levels);
  walk.ones = allocate_filled<double>(most_of(n_points, trees.n_trees), 1.0);
  walk.failed = allocate<double>(most_of(n_points, trees.n_trees));
  int32_t* codes = allocate<int32_t>(trees.n_features * kPathRows);
  const bool ok = walk.a && walk.b && walk.inverse_of && walk.phi && walk.frames && walk.levels &&
                  walk.ones && walk.failed && codes;
  for (int64_t first = rows.first; ok && first < rows.last; first += kPathRows) {
    const int64_t n_rows = rows.last - first < kPathRows ? rows.last - first : kPathRows;
    walk.codes = codes;
    for (int64_t f = 0; f < trees.n_features; ++f)
      for (int64_t r = 0; r < kPathRows; ++r)
        codes[f * kPathRows + r] =
            rows.codes[trees.features[f] * rows.stride + first + (r < n_rows ? r : 0)];
    for (int64_t i = 0; i < n_players * n_outputs * kPathRows; ++i) walk.phi[i] = 0.0;
    for (int64_t t = 0; t < trees.n_trees; ++t) {
      walk.n_points = n_points[t];
      walk.t = points + point_start[t];
      walk.weights = point_weights + point_start[t];
      walk.outputs = Outputs(trees, t);
      walk.run(t);
    }
    for (int64_t r = 0; r < n_rows; ++r)
      for (int64_t i = 0; i < n_players * n_outputs; ++i)
        out[(first + r) * n_players * n_outputs + i] += walk.phi[i * kPathRows + r];
  }
  std::free(codes);
  std::free(walk.a);
  std::free(walk.b);
  std::free(walk.inverse_of);
  std::free(walk.phi);
  std::free(walk.frames);
  std::free(walk.levels);
  std::free(walk.ones);
  std::free(walk.failed);
  return ok;
}

bool interventional_pairs(const WalkTrees& trees, const WalkRows& rows, const WalkRows& background,
                          const double* weights, const WalkMoments& moments, const WalkPairs& pairs,
                          int64_t n_outputs, double* out) {
  HybridWalk walk{&trees, allocate<HybridWalk::Fork>(most_of(trees.tree_depth, trees.n_trees) + 1),
                  allocate_filled<uint8_t>(pairs.n_players, HybridWalk::kOpen), 0};
  const bool ok = walk.forks && walk.follow;
  for (int64_t row = rows.first; ok && row < rows.last; ++row)
    for (int64_t t = 0; t < trees.n_trees; ++t) {
      const Outputs outputs(trees, t);
      double* mine = out + row * pairs.n_pairs * n_outputs + outputs.first;
      for (int64_t b = background.first; b < background.last; ++b)
        for (int32_t node = trees.roots[t]; node >= 0; node = walk.go_up()) {
          node = walk.go_down(node, rows.codes + row, rows.stride, background.codes + b, background.stride);
          walk.add_pairs(outputs, outputs.of_leaf(node), weights[b - background.first], moments, pairs, n_outputs,
                         mine);
        }
    }
  std::free(walk.forks);
  std::free(walk.follow);
  return ok;
}

bool path_dependent_pairs(const WalkTrees& trees, const double* ratio, const int32_t* n_points,
                          const int64_t* point_start, const double* points, const double* point_weights,
                          const WalkRows& rows, const WalkPairs& pairs, int64_t n_outputs, double* out) {
  const int64_t most_players = most_of(trees.tree_players, trees.n_trees);
  const int64_t most_points = most_of(n_points, trees.n_trees);
  PathPairWalk walk{};
  walk.trees = &trees;
  walk.ratio = ratio;
  walk.pairs = &pairs;
  walk.n_outputs = n_outputs;
  walk.literals = allocate_filled<PathPairWalk::Literal>(pairs.n_players, {1.0, 1, 0});
  walk.frames = allocate<PathPairWalk::Frame>(most_of(trees.tree_depth, trees.n_trees) + 1);
  walk.on_path = allocate<int32_t>(most_players + 1);
  walk.slopes = allocate<double>((most_players + 1) * most_points);
  walk.product = allocate<double>(most_points);
  int32_t* codes = allocate<int32_t>(trees.n_features);
  const bool ok =
      walk.literals && walk.frames && walk.on_path && walk.slopes && walk.product && codes;
  walk.codes = codes;
  for (int64_t row = rows.first; ok && row < rows.last; ++row) {
    for (int64_t f = 0; f < trees.n_features; ++f) codes[f] = rows.codes[trees.features[f] * rows.stride + row];
    walk.out = out + row * pairs.n_pairs * n_outputs;
    for (int64_t t = 0; t < trees.n_trees; ++t) {
      walk.n_points = n_points[t];
      walk.t = points + point_start[t];
      walk.weights = point_weights + point_start[t];
      walk.outputs = Outputs(trees, t);
      walk.run(trees.roots[t]);
    }
  }
  std::free(codes);
  std::free(walk.literals);
  std::free(walk.frames);
  std::free(walk.on_path);
  std::free(walk.slopes);
  std::free(walk.product);
  return ok;
}

bool predict(const WalkTrees& trees, const WalkRows& rows, int64_t n_outputs, double* out) {
  constexpr int64_t kBlock = 64;  // rows whose codes stay in cache while a tree's nodes do
  const Node* nodes = nodes_of(trees);
  int32_t* codes = allocate<int32_t>(trees.n_features * kBlock);
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
  std::free(codes);
  return true;
}

bool leaf_visits(const WalkTrees& trees, const WalkRows& rows, const WalkRows& background,
                 int64_t n_players, double* out) {
  const int64_t n = rows.last - rows.first;
  HybridWalk walk{&trees, allocate<HybridWalk::Fork>(most_of(trees.tree_depth, trees.n_trees) + 1),
                allocate_filled<uint8_t>(n_players, HybridWalk::kOpen), 0};
  const bool ok = walk.forks && walk.follow;
  for (int64_t t = 0; ok && t < trees.n_trees; ++t) {
    int64_t visits = 0;
    for (int64_t i = 0; i < n; ++i)
      for (int32_t node = trees.roots[t]; node >= 0; node = walk.go_up()) {
        walk.go_down(node, rows.codes + rows.first + i, rows.stride,
                     background.codes + background.first + i, background.stride);
        ++visits;
      }
    out[t] = n ? static_cast<double>(visits) / static_cast<double>(n) : 0.0;
  }
  std::free(walk.forks);
  std::free(walk.follow);
  return ok;
}

bool path_shape(const WalkTrees& trees, int64_t n_players, int32_t* players, int32_t* depth) {
  struct Step {
    int32_t node, next_child;
  };
  const Node* nodes = nodes_of(trees);
  int64_t capacity = 1024;
  Step* path = allocate<Step>(capacity);
  int32_t* times = allocate_filled<int32_t>(n_players, 0);  // nodes of the player on the path
  bool ok = path && times;
  for (int64_t t = 0; ok && t < trees.n_trees; ++t) {
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
        Step* moved = static_cast<Step*>(std::realloc(path, 2 * capacity * sizeof(Step)));
        ok = moved != nullptr;
        if (!ok) break;
        path = moved;
        capacity *= 2;
      }
      path[length++] = {child, 0};
    }
  }
  std::free(path);
  std::free(times);
  return ok;
}

}  // namespace FS_LEVEL
}  // namespace fouriershap
