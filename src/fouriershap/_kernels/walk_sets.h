// Path-dependent interactions of sets of players without tables, leaf by leaf. Rows that fail the same
// players of a path share what its leaf gives to each set.
#pragma once
#include "walk_rows.h"

namespace fouriershap {

// The wanted sets of `size` players: see `key_of` in walk_numpy.py.
struct WantedSets {
  Span<const int64_t> keys;
  int64_t radix, size;
};

constexpr int64_t kMostPathSets = int64_t{1} << 20;

// Sets of so many of the players of a path, or one more than the most that there may be.
inline int64_t count_path_sets(int64_t n_players, int64_t size) {
  double n = 1;
  for (int64_t k = 0; k < size; ++k) n = n * static_cast<double>(n_players - k) / static_cast<double>(k + 1);
  return n <= static_cast<double>(kMostPathSets) ? static_cast<int64_t>(n + 0.5) : kMostPathSets + 1;
}

namespace {

class PathSetWalk {
 public:
  static constexpr int64_t kRows = 256;  // in a block, at most
  static constexpr int64_t kShares = int64_t{1} << 22;
  static constexpr int64_t kMostPlayers = 64;

  PathSetWalk(const WalkTrees& the_trees, const WalkPaths& the_paths, const WantedSets& sets,
              const WalkValues& the_values)
      : trees(the_trees),
        paths(the_paths),
        wanted(sets),
        values(the_values),
        frames(trees.most_depth + 1),
        fails((trees.most_depth + 1) * kRows),
        position_of(trees.n_players, -1),
        slopes(trees.most_players * most_of(paths.n_points)),
        prefix((wanted.size + 1) * most_of(paths.n_points)),
        seen(kSlots),
        seen_at(kSlots, -1),
        slot(kSlots) {
    const int64_t most = count_path_sets(trees.most_players, wanted.size);
    n_block = std::min(kRows, std::max(kShares / std::max(most, int64_t{1}), int64_t{1}));
    members.resize(most * wanted.size);
    first_new.resize(most);
    target.resize(most);
    shares.resize(most * n_block);
  }

  int64_t block() const { return n_block; }

  // All trees for no more rows than a block.
  void explain(const WalkRows& some) {
    rows = some;
    for (int64_t t = 0; t < trees.n_trees(); ++t) {
      n_points = paths.n_points[t];
      at = paths.points + paths.point_start[t];
      weights = paths.weights + paths.point_start[t];
      outputs = Outputs(trees, t);
      if (trees.tree_players[t] >= wanted.size) walk(trees.roots[t]);
    }
  }

 private:
  static constexpr int64_t kSlots = 1024;  // of a hash table of words, four times as many as rows

  struct Frame {
    int32_t node, next_child, position;
    bool is_new;  // the path meets its player here
    double ratio_before;
  };

  const WalkTrees& trees;
  const WalkPaths& paths;
  const WantedSets wanted;
  const WalkValues values;
  WalkRows rows{};
  Outputs outputs;
  const double *at = nullptr, *weights = nullptr;
  int64_t n_block = 0, n_points = 0, n_players = 0, n_sets = 0, n_leaves = 0;
  int32_t players[kMostPlayers];  // on the path, by position
  double ratio[kMostPlayers];     // share of the training rows that pass the edges of each
  Scratch<Frame> frames;
  Scratch<uint64_t> fails;       // (levels, rows) the positions that a row fails
  Scratch<int32_t> position_of;  // (players,) -1: not on the path
  Scratch<int32_t> members;      // (sets, size) positions
  Scratch<int32_t> first_new;    // (sets,) the first member that is not that of the set before
  Scratch<int64_t> target;       // (sets,) where a row adds it
  Scratch<double> slopes;        // (positions, points) derivative over value of a player's factor
  Scratch<double> prefix;        // (size + 1, points) weight times all factors, times the slopes of members
  Scratch<double> shares;        // (words, sets)
  Scratch<uint64_t> seen;        // (slots,) words of rows at a leaf,
  Scratch<int64_t> seen_at;      // the leaf at which they were,
  Scratch<int32_t> slot;         // and their line of `shares`

  void walk(int32_t root) {
    const Node* nodes = trees.nodes;
    int64_t level = 0;
    n_players = 0;
    frames[0] = {root, 0, -1, false, 1.0};
    std::memset(fails, 0, rows.n() * sizeof(uint64_t));
    while (level >= 0) {
      Frame& frame = frames[level];
      const Node& node = nodes[frame.node];
      const int32_t player = trees.players[node.feature()];
      if (frame.next_child == 0) {
        frame.is_new = position_of[player] < 0;
        if (frame.is_new) {
          assert(n_players < trees.most_players);
          players[n_players] = player;
          ratio[n_players] = 1.0;
          position_of[player] = static_cast<int32_t>(n_players++);
        }
        frame.position = position_of[player];
        frame.ratio_before = ratio[frame.position];
      }
      ratio[frame.position] = frame.ratio_before;
      if (frame.next_child == 2) {
        if (frame.is_new) position_of[players[--n_players]] = -1;
        --level;
        continue;
      }
      const bool to_left = frame.next_child++ == 0;
      const int32_t child = to_left ? node.left : node.right;
      ratio[frame.position] *= paths.ratio[child];
      descend(level, node, to_left, frame.position);
      if (nodes[child].leaf())
        add_leaf(level + 1, outputs.of_leaf(child));
      else
        frames[++level] = {child, 0, -1, false, 1.0};
    }
  }

  void descend(int64_t level, const Node& node, bool to_left, int32_t position) {
    const uint64_t* from = fails + level * kRows;
    uint64_t* to = fails + (level + 1) * kRows;
    const int32_t* codes = rows.codes[trees.features[node.feature()]] + rows.first;
    const int64_t n = rows.n();
    with_test(trees, node, [&](auto goes_right) {
      for (int64_t r = 0; r < n; ++r)
        to[r] = from[r] | static_cast<uint64_t>(goes_right(codes[r]) == to_left) << position;
    });
  }

  void add_leaf(int64_t level, const double* leaf) {
    if (n_players < wanted.size) return;
    find_sets();
    if (!n_sets) return;
    ++n_leaves;
    int32_t n_words = 0;
    const double scale = outputs.count == 1 ? leaf[0] : 1.0;
    const uint64_t* words = fails + level * kRows;
    for (int64_t r = 0; r < rows.n(); ++r) {
      const double* mine = shares + find_word(words[r], scale, n_words) * n_sets;
      double* out = values.row(rows.first + r) + outputs.first;
      if (outputs.count == 1) {
        for (int64_t k = 0; k < n_sets; ++k) out[target[k]] += mine[k];
        continue;
      }
      for (int64_t k = 0; k < n_sets; ++k)
        for (int64_t o = 0; o < outputs.count; ++o) out[target[k] + o] += mine[k] * leaf[o];
    }
  }

  // The line of a word, computed where the leaf has not seen it.
  int64_t find_word(uint64_t word, double scale, int32_t& n_words) {
    uint64_t h = word * 0x9E3779B97F4A7C15ULL >> 54;
    for (; seen_at[h] == n_leaves; h = (h + 1) & (kSlots - 1))
      if (seen[h] == word) return slot[h];
    seen_at[h] = n_leaves;
    seen[h] = word;
    slot[h] = n_words;
    compute(word, scale, shares + n_words * n_sets);
    return n_words++;
  }

  // All wanted sets of the path, in the order of their players.
  void find_sets() {
    int32_t sorted[kMostPlayers];
    for (int32_t i = 0; i < n_players; ++i) {
      int32_t k = i;
      for (; k > 0 && players[sorted[k - 1]] > players[i]; --k) sorted[k] = sorted[k - 1];
      sorted[k] = i;
    }
    const int64_t size = wanted.size;
    int32_t chosen[kMostPlayers];
    for (int32_t i = 0; i < size; ++i) chosen[i] = i;
    n_sets = 0;
    int64_t changed = 0;  // the first member that differs from the set that was kept last
    while (true) {
      int64_t key = 0;
      for (int64_t i = 0; i < size; ++i) key = key * wanted.radix + players[sorted[chosen[i]]] + 1;
      const int64_t* found = std::lower_bound(wanted.keys.begin(), wanted.keys.end(), key);
      if (found != wanted.keys.end() && *found == key) {
        for (int64_t i = 0; i < size; ++i) members[n_sets * size + i] = sorted[chosen[i]];
        first_new[n_sets] = static_cast<int32_t>(changed);
        target[n_sets++] = (found - wanted.keys.begin()) * values.n_outputs;
        changed = size;
      }
      int64_t i = size - 1;
      while (i >= 0 && chosen[i] == n_players - size + i) --i;
      if (i < 0) return;
      ++chosen[i];
      for (int64_t k = i + 1; k < size; ++k) chosen[k] = chosen[k - 1] + 1;
      changed = std::min(changed, i);
    }
  }

  // What each set gets from a leaf of value `scale`, for rows that fail the players of a word.
  void compute(uint64_t word, double scale, double* out) {
    constexpr int64_t L = sizeof(f64x4) / sizeof(double);
    for (int64_t q = 0; q < n_points; ++q) prefix[q] = weights[q] * scale;
    for (int64_t i = 0; i < n_players; ++i) {
      const double passes = word >> i & 1 ? 0.0 : 1.0, change = passes - ratio[i];
      for (int64_t q = 0; q < n_points; ++q) {
        const double factor = at[q] * passes + (1.0 - at[q]) * ratio[i];
        prefix[q] *= factor;
        slopes[i * n_points + q] = factor > 0.0 ? change / factor : 0.0;  // 0: nothing reaches the leaf
      }
    }
    const int64_t size = wanted.size;
    for (int64_t k = 0; k < n_sets; ++k) {
      const int32_t* mine = members + k * size;
      for (int64_t i = first_new[k]; i < size - 1; ++i)
        for (int64_t q = 0; q < n_points; q += L)
          store(prefix + (i + 1) * n_points + q,
                load<f64x4>(prefix + i * n_points + q) * load<f64x4>(slopes + mine[i] * n_points + q));
      f64x4 sum = {};
      for (int64_t q = 0; q < n_points; q += L)
        sum += load<f64x4>(prefix + (size - 1) * n_points + q) *
               load<f64x4>(slopes + mine[size - 1] * n_points + q);
      out[k] = sum[0] + sum[1] + sum[2] + sum[3];
    }
  }
};

}  // namespace
}  // namespace fouriershap
