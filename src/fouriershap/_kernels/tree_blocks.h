// Trees cut into blocks: subtrees whose leaves share one table. tree_blocks_numpy.py is the specification.
#pragma once
#include <algorithm>
#include <cassert>
#include <cmath>
#include <memory>
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

namespace {

constexpr int64_t kMostPatterns = 65536;  // of a block: patterns are 16-bit numbers

// A condition on codes: a node and the side of it.
struct Split {
  int32_t node;
  bool left;  // the side that the path takes; unused for the inner nodes of the block's own subtree
};

// A feature of a block: the conditions above the block, the nodes inside it, and the states of its codes.
struct Feature {
  int32_t feature;
  std::vector<Split> path;
  std::vector<int32_t> inner;
  std::vector<int32_t> cut;    // codes at which the state may change, ascending, the first is 0
  std::vector<int32_t> state;  // of each interval between cuts
  int32_t missing_state;
  std::vector<uint64_t> meaning;  // of each state: bit i set where inner node i is left
  std::vector<uint8_t> fails;
};

struct Builder {
  const CodedTrees& t;
  std::vector<int32_t> parent;
  // The features of the block at hand, ascending. They live in a pool whose vectors keep their memory:
  // thousands of blocks are described, and allocating would cost more than the work itself.
  std::vector<Feature*> features;
  std::vector<std::unique_ptr<Feature>> pool;
  std::vector<int32_t> stack, seen;

  explicit Builder(const CodedTrees& trees) : t(trees), parent(trees.n_nodes(), -1) {
    for (int64_t v = 0; v < t.n_nodes(); ++v)
      if (t.feature[v] >= 0) parent[t.left[v]] = parent[t.right[v]] = static_cast<int32_t>(v);
  }

  bool goes_left(int32_t node, int32_t code) const {
    const int32_t set = t.category_set[node];
    assert(code >= 0 && code < t.n_codes[t.feature[node]]);
    if (set >= 0) return t.set_bits[set][code / 64] >> (code % 64) & 1;
    if (code == t.n_codes[t.feature[node]] - 1) return t.missing_left[node];
    return code < t.cut[node];
  }

  Feature& feature_of(int32_t node) {
    size_t at = 0;
    while (at < features.size() && features[at]->feature < t.feature[node]) ++at;
    if (at < features.size() && features[at]->feature == t.feature[node]) return *features[at];
    if (features.size() == pool.size()) pool.push_back(std::make_unique<Feature>());
    // Unused members of the pool, those that `features` does not point to, are at its end.
    Feature* f = pool[features.size()].get();
    f->feature = t.feature[node];
    f->path.clear();
    f->inner.clear();
    features.insert(features.begin() + at, f);
    return *f;
  }

  void gather(int32_t block_root) {
    features.clear();
    for (int32_t v = block_root; parent[v] >= 0; v = parent[v])
      feature_of(parent[v]).path.push_back({parent[v], t.left[parent[v]] == v});
    stack.assign(1, block_root);
    while (!stack.empty()) {
      const int32_t v = stack.back();
      stack.pop_back();
      if (t.feature[v] < 0) continue;
      feature_of(v).inner.push_back(v);
      stack.push_back(t.right[v]);
      stack.push_back(t.left[v]);
    }
  }

  void find_cuts(Feature& f) {
    const int32_t last = t.n_codes[f.feature] - 1;  // the missing code
    f.cut.assign(1, 0);
    const auto add = [&](int32_t node) {
      if (t.category_set[node] < 0) {
        if (t.cut[node] > 0 && t.cut[node] < last) f.cut.push_back(t.cut[node]);
      } else {
        for (int32_t c = 1; c < last; ++c)
          if (goes_left(node, c) != goes_left(node, c - 1)) f.cut.push_back(c);
      }
    };
    for (const Split& s : f.path) add(s.node);
    for (const int32_t v : f.inner) add(v);
    std::sort(f.cut.begin(), f.cut.end());
    f.cut.erase(std::unique(f.cut.begin(), f.cut.end()), f.cut.end());
  }

  // State of a code: one common state where the path fails, else the sides of the inner nodes.
  int32_t state_of(Feature& f, int32_t code) {
    bool fails = false;
    for (const Split& s : f.path) fails = fails || goes_left(s.node, code) != s.left;
    uint64_t meaning = 0;
    if (!fails)
      for (size_t i = 0; i < f.inner.size(); ++i)
        meaning |= static_cast<uint64_t>(goes_left(f.inner[i], code)) << i;
    for (size_t s = 0; s < f.meaning.size(); ++s)
      if (f.fails[s] == fails && f.meaning[s] == meaning) return static_cast<int32_t>(s);
    f.meaning.push_back(meaning);
    f.fails.push_back(fails);
    return static_cast<int32_t>(f.meaning.size() - 1);
  }

  // Fills `features` for the block at a node. Returns the number of patterns, 0 where it is beyond the limit.
  int64_t describe(int32_t block_root, int64_t limit) {
    gather(block_root);
    int64_t n_patterns = 1;
    for (Feature* item : features) {
      Feature& f = *item;
      if (f.inner.size() > 64) return 0;
      find_cuts(f);
      f.meaning.clear();
      f.fails.clear();
      f.state.clear();
      for (const int32_t c : f.cut) f.state.push_back(state_of(f, c));
      f.missing_state = state_of(f, t.n_codes[f.feature] - 1);
      n_patterns *= static_cast<int64_t>(f.meaning.size());
      if (n_patterns > limit) return 0;
    }
    return n_patterns;
  }

  int64_t count_players() {
    find_players(seen);
    return static_cast<int64_t>(seen.size());
  }

  void find_players(std::vector<int32_t>& out) const {
    out.clear();
    for (const Feature* f : features) out.push_back(t.player[f->feature]);
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
  }

  int64_t count_cuts() const {
    int64_t n = 0;
    for (const Feature* f : features)
      for (size_t i = 1; i < f->state.size(); ++i) n += f->state[i] != f->state[i - 1];
    return n;
  }

  // Nanoseconds per row of a block's tables: look-up, a share of the spreading, cuts, memory traffic.
  double cost(int64_t n_patterns, const Limits& limits) {
    const double tables = static_cast<double>((count_players() + 7) / 8);
    return tables * limits.cost_table + static_cast<double>(count_cuts()) * limits.cost_cut +
           tables * static_cast<double>(n_patterns) * limits.cost_pattern;
  }

  void emit(int32_t block_root, int32_t tree, int64_t n_patterns, BlockArrays& out);
  void emit_leaf(int32_t leaf, int32_t block_root, const std::vector<int32_t>& players, BlockArrays& out);
};

void Builder::emit(int32_t block_root, int32_t tree, int64_t n_patterns, BlockArrays& out) {
  assert(n_patterns > 0 && n_patterns <= kMostPatterns);
  std::vector<int32_t> players;
  find_players(players);
  int64_t base = 0, stride = 1;
  std::vector<int32_t> missing_column, missing_weight;
  for (const Feature* item : features) {
    const Feature& f = *item;
    assert(t.n_codes[f.feature] <= 65536);  // cuts are 16-bit numbers
    base += stride * f.state[0];
    for (size_t i = 1; i < f.state.size(); ++i)
      if (f.state[i] != f.state[i - 1]) {
        out.cut_column.push_back(f.feature);
        out.cut_at.push_back(static_cast<uint16_t>(f.cut[i]));
        out.cut_weight.push_back(static_cast<int32_t>(stride * (f.state[i] - f.state[i - 1])));
      }
    if (f.missing_state != f.state.back()) {
      missing_column.push_back(f.feature);
      missing_weight.push_back(static_cast<int32_t>(stride * (f.missing_state - f.state.back())));
    }
    stride *= static_cast<int64_t>(f.meaning.size());
    out.feature_states.push_back(static_cast<int32_t>(f.meaning.size()));
  }
  out.cut_missing.push_back(static_cast<int32_t>(out.cut_column.size()));
  for (size_t i = 0; i < missing_column.size(); ++i) {
    out.cut_column.push_back(missing_column[i]);
    out.cut_at.push_back(static_cast<uint16_t>(t.n_codes[missing_column[i]] - 1));
    out.cut_weight.push_back(missing_weight[i]);
  }
  out.cut_start.push_back(static_cast<int32_t>(out.cut_column.size()));
  out.base.push_back(static_cast<int32_t>(base));
  out.n_patterns.push_back(static_cast<int32_t>(n_patterns));
  out.tree.push_back(tree);
  out.players.insert(out.players.end(), players.begin(), players.end());
  out.player_start.push_back(static_cast<int64_t>(out.players.size()));
  out.feature_start.push_back(static_cast<int64_t>(out.feature_states.size()));
  stack.assign(1, block_root);
  while (!stack.empty()) {
    const int32_t v = stack.back();
    stack.pop_back();
    if (t.feature[v] < 0) {
      emit_leaf(v, block_root, players, out);
    } else {
      stack.push_back(t.right[v]);
      stack.push_back(t.left[v]);
    }
  }
  out.leaf_start.push_back(static_cast<int64_t>(out.leaf_node.size()));
}

// The players of a leaf, and for each state of each feature which of them it makes fail.
void Builder::emit_leaf(int32_t leaf, int32_t block_root, const std::vector<int32_t>& players,
                        BlockArrays& out) {
  std::vector<int32_t> mine;
  std::vector<double> ratio;
  for (int32_t v = leaf; parent[v] >= 0; v = parent[v]) {
    const int32_t player = t.player[t.feature[parent[v]]];
    size_t i = std::find(mine.begin(), mine.end(), player) - mine.begin();
    if (i == mine.size()) {
      mine.push_back(player);
      ratio.push_back(1.0);
    }
    const double above = t.cover[parent[v]];
    ratio[i] *= above > 0 ? t.cover[v] / above : 0.5;  // without training rows, halves: they sum to 1
  }
  assert(mine.size() <= 32);  // Python leaves trees with more than 16 features on a path to `walk`
  const auto bit_of = [&](int32_t player) {
    const size_t i = std::find(mine.begin(), mine.end(), player) - mine.begin();
    return i < mine.size() ? 1u << i : 0u;
  };
  for (const Feature* item : features) {
    const Feature& f = *item;
    const uint32_t bit = bit_of(t.player[f.feature]);
    for (size_t s = 0; s < f.meaning.size(); ++s) {
      bool fails = f.fails[s];
      for (int32_t v = leaf; !fails && v != block_root; v = parent[v])
        if (t.feature[parent[v]] == f.feature) {
          const size_t i = std::find(f.inner.begin(), f.inner.end(), parent[v]) - f.inner.begin();
          fails = (f.meaning[s] >> i & 1) != (t.left[parent[v]] == v);
        }
      out.fail.push_back(fails ? bit : 0u);
    }
  }
  out.fail_start.push_back(static_cast<int64_t>(out.fail.size()));
  for (size_t i = 0; i < mine.size(); ++i) {
    out.leaf_players.push_back(
        static_cast<int32_t>(std::lower_bound(players.begin(), players.end(), mine[i]) - players.begin()));
    out.leaf_ratio.push_back(ratio[i]);
  }
  out.leaf_player_start.push_back(static_cast<int64_t>(out.leaf_players.size()));
  out.leaf_node.push_back(leaf);
}

BlockArrays cut_trees(const CodedTrees& trees, Span<const uint8_t> wanted, const Limits& limits) {
  Builder builder(trees);
  BlockArrays out;
  std::vector<double> cost(trees.n_nodes(), -1.0);  // of the block at a node; negative: not one block
  for (int64_t k = 0; k < trees.n_trees(); ++k) {
    const int64_t first = trees.roots[k],
                  last = k + 1 < trees.n_trees() ? trees.roots[k + 1] : trees.n_nodes();
    out.feasible.push_back(0);
    if (!wanted[k]) continue;
    bool feasible = true;
    // Children come after their parents, so walking backwards sees every subtree before its root.
    for (int64_t v = last - 1; v >= first && feasible; --v) {
      const bool leaf = trees.feature[v] < 0;
      const double apart = leaf ? 0.0 : cost[trees.left[v]] + cost[trees.right[v]];
      if (!leaf && (cost[trees.left[v]] < 0 || cost[trees.right[v]] < 0)) continue;
      const int64_t n = builder.describe(static_cast<int32_t>(v), leaf ? kMostPatterns : limits.max_patterns);
      if (leaf && n == 0) feasible = false;
      if (n == 0 || (!leaf && builder.count_players() > limits.max_players)) continue;
      const double together = builder.cost(n, limits);
      if (leaf || together <= apart) cost[v] = together;
    }
    if (!feasible) continue;
    out.feasible.back() = 1;
    for (int64_t v = first; v < last; ++v) {
      const int32_t up = builder.parent[v];
      if (cost[v] < 0 || (up >= 0 && cost[up] >= 0)) continue;
      const int64_t n = builder.describe(static_cast<int32_t>(v), kMostPatterns);
      builder.emit(static_cast<int32_t>(v), static_cast<int32_t>(k), n, out);
    }
  }
  return out;
}

// Per tree: leaves, depth, most distinct players on a path, and the sum over leaves of 2^players.
void profile_trees(const TreeShape& trees, Matrix<double> out) {
  int32_t n_players = 0;
  for (int64_t v = 0; v < trees.n_nodes(); ++v)
    if (trees.feature[v] >= 0) n_players = std::max(n_players, trees.player[trees.feature[v]] + 1);
  std::vector<int32_t> depth(trees.n_nodes(), 0), stack;
  std::vector<int32_t> uses(n_players, 0);  // how often the current path tests each player
  for (int64_t k = 0; k < trees.n_trees(); ++k) {
    double leaves = 0, deepest = 0, most = 0, patterns = 0;
    int64_t distinct = 0;
    // Depth first; a node met a second time (bitwise complement) is left again.
    stack.assign(1, trees.roots[k]);
    depth[trees.roots[k]] = 0;
    while (!stack.empty()) {
      const int32_t v = stack.back();
      stack.pop_back();
      if (v < 0) {
        distinct -= --uses[trees.player[trees.feature[~v]]] == 0;
      } else if (trees.feature[v] < 0) {
        leaves += 1;
        deepest = std::max(deepest, static_cast<double>(depth[v]));
        most = std::max(most, static_cast<double>(distinct));
        patterns += distinct < 1000 ? std::ldexp(1.0, static_cast<int>(distinct)) : HUGE_VAL;
      } else {
        distinct += uses[trees.player[trees.feature[v]]]++ == 0;
        depth[trees.left[v]] = depth[trees.right[v]] = depth[v] + 1;
        stack.push_back(~v);
        stack.push_back(trees.right[v]);
        stack.push_back(trees.left[v]);
      }
    }
    const double row[4] = {leaves, deepest, most, patterns};
    std::copy(row, row + 4, out[k]);
  }
}

}  // namespace
}  // namespace fouriershap
