// Shared by all walks: nodes, bit sets of rows, and the rows of a chunk that go left at a node.
#pragma once

#include "scratch.h"
#include "simd.h"
#include "walk.h"

namespace fouriershap {
namespace {

typedef double f64x4 __attribute__((vector_size(32)));

constexpr int64_t kMaxWords = 4;
constexpr int64_t kMaxRows = 64 * kMaxWords;  // rows in a block, background rows in a chunk

inline bool code_goes_left(const WalkTrees& trees, const Node& node, int32_t code) {
  if (node.test < 0) {
    return trees.set_bits[-1 - node.test][code >> 6] >> (code & 63) & 1;
  }
  return code < node.test || (node.missing_left() && code == trees.n_codes[node.feature()] - 1);
}

template <int NW>
struct Bits {
  uint64_t word[NW];

  bool any() const {
    uint64_t all = 0;
    for (int i = 0; i < NW; ++i) all |= word[i];
    return all != 0;
  }
};

#define FS_BITWISE(op)                                                \
  template <int NW>                                                   \
  inline Bits<NW> operator op(const Bits<NW>& a, const Bits<NW>& b) { \
    Bits<NW> c;                                                       \
    for (int i = 0; i < NW; ++i) c.word[i] = a.word[i] op b.word[i];  \
    return c;                                                         \
  }
FS_BITWISE(&)
FS_BITWISE(|)
#undef FS_BITWISE

template <int NW>
inline Bits<NW> operator~(const Bits<NW>& a) {
  Bits<NW> c;
  for (int i = 0; i < NW; ++i) c.word[i] = ~a.word[i];
  return c;
}

template <int NW>
inline Bits<NW> filled(uint64_t value) {
  Bits<NW> c;
  for (int i = 0; i < NW; ++i) c.word[i] = value;
  return c;
}

template <int NW>
inline Bits<NW> first_rows(int64_t n_rows) {
  Bits<NW> c;
  for (int i = 0; i < NW; ++i) {
    const int64_t here = n_rows - 64 * i;
    c.word[i] = here >= 64 ? ~0ULL : here > 0 ? (1ULL << here) - 1 : 0;
  }
  return c;
}

template <int NW, class Visit>
inline void for_each(const Bits<NW>& bits, Visit visit) {
  for (int i = 0; i < NW; ++i)
    for (uint64_t word = bits.word[i]; word; word &= word - 1) visit(64 * i + __builtin_ctzll(word));
}

// Which rows of a chunk (at most kMaxRows) go left at a node. Those of a cut are all rows with a smaller
// code: a prefix of the rows sorted by code, found through `rank` (code -> number of distinct codes
// below it that occur in the chunk). A category set is the union of the rows of its codes.
struct Index {
  const WalkTrees* trees;
  int64_t n_words = 0;
  Scratch<int64_t> rank_start;  // (n_features,)
  Scratch<uint16_t> rank;       // per feature (n_codes,)
  Scratch<int32_t> present;     // per feature (kMaxRows,): the codes that occur, of categorical features
  Scratch<int32_t> n_present;   // (n_features,)
  Scratch<int64_t> set_start;   // (n_features,) in words
  Scratch<uint64_t> sets;
  Scratch<uint64_t> missing;  // (n_features, n_words)

  explicit Index(const WalkTrees& model) : trees(&model) {}

  void allocate(int64_t most_rows, int64_t words) {
    const int64_t n = trees->n_features();
    resize_all(n, rank_start, set_start, n_present);
    int64_t ranks = 0, sets_total = 0, categorical = 0;
    for (int64_t f = 0; f < n; ++f) {
      const int64_t n_codes = trees->n_codes[f];
      rank_start[f] = ranks;
      set_start[f] = sets_total;
      ranks += n_codes;
      sets_total += ((n_codes < most_rows ? n_codes : most_rows) + 1) * words;
      categorical += trees->categorical[f];
    }
    rank.resize(ranks);
    sets.resize(sets_total);
    missing.resize(n * words);
    if (categorical) present.resize(n * kMaxRows);
  }

  // Index rows [first, first + n_rows); no more rows and words than were allocated for.
  void build(const WalkRows& rows, int64_t first, int64_t n_rows, int64_t words) {
    assert(n_rows <= 64 * words && words <= kMaxWords);
    n_words = words;
    for (int64_t f = 0; f < trees->n_features(); ++f)
      build_feature(f, rows.codes[trees->features[f]] + first, n_rows);
  }

  // The ranks of a deep forest are far larger than the nearest cache, and are read in no order.
  void prefetch(const Node& node) const {
    if (!node.leaf() && node.test >= 0) __builtin_prefetch(rank + rank_start[node.feature()] + node.test);
  }

  template <int NW>
  Bits<NW> goes_left(const Node& node) const {
    const int32_t f = node.feature();
    if (node.test < 0) return in_set<NW>(node, f);
    Bits<NW> left;
    const uint64_t* rows = sets + set_start[f] + rank[rank_start[f] + node.test] * NW;
    std::memcpy(left.word, rows, sizeof left.word);
    if (node.missing_left())
      for (int i = 0; i < NW; ++i) left.word[i] |= missing[f * NW + i];
    return left;
  }

 private:
  void build_feature(int64_t f, const int32_t* codes, int64_t n_rows) {
    const int32_t n_codes = trees->n_codes[f];
    const bool categorical = trees->categorical[f];
    uint16_t* my_rank = rank + rank_start[f];
    uint64_t* my_sets = sets + set_start[f];
    uint64_t* my_missing = missing + f * n_words;
    std::memset(my_rank, 0, n_codes * sizeof(uint16_t));
    for (int64_t r = 0; r < n_rows; ++r) {
      assert(codes[r] >= 0 && codes[r] < n_codes);
      my_rank[codes[r]] = 1;
    }
    uint16_t below = 0;
    for (int32_t c = 0; c < n_codes; ++c) {
      const uint16_t occurs = my_rank[c];
      if (categorical && occurs) present[f * kMaxRows + below] = c;
      my_rank[c] = below;
      below += occurs;
    }
    n_present[f] = below;
    std::memset(my_sets, 0, (below + 1) * n_words * sizeof(uint64_t));
    std::memset(my_missing, 0, n_words * sizeof(uint64_t));
    for (int64_t r = 0; r < n_rows; ++r) {
      const uint64_t bit = 1ULL << (r & 63);
      my_sets[(my_rank[codes[r]] + 1) * n_words + (r >> 6)] |= bit;
      if (codes[r] == n_codes - 1) my_missing[r >> 6] |= bit;
    }
    if (!categorical)
      for (int64_t i = n_words; i < (below + 1) * n_words; ++i) my_sets[i] |= my_sets[i - n_words];
  }

  template <int NW>
  Bits<NW> in_set(const Node& node, int32_t f) const {
    Bits<NW> left = filled<NW>(0);
    for (int32_t k = 0; k < n_present[f]; ++k)
      if (code_goes_left(*trees, node, present[f * kMaxRows + k]))
        for (int i = 0; i < NW; ++i) left.word[i] |= sets[set_start[f] + (k + 1) * NW + i];
    return left;
  }
};

// Weights of a leaf: z players that the row fails, c that the background row fails, disjoint sets. With
// moments[p][q] the integral of t^p (1-t)^q, pair(z, c)[0] = moments[c-1][z] is the share of a player that
// the background fails (0 if c = 0), pair(z, c)[1] = moments[c][z-1] of one that the row fails (0 if z = 0).
// With classes of players, z and c are sums of their `steps`, and all pairs are given.
struct Weights {
  Scratch<int32_t> steps;  // (n_players,) what a player adds to z or c: 1
  const double* pairs = nullptr;
  int64_t stride = 0;  // in pairs

  void allocate(const WalkTrees& trees, const Moments& moments) {
    assert(trees.most_players < moments.rows);
    stride = trees.most_players + 1;
    data.resize(2 * stride * stride);
    for (int64_t z = 0; z < stride; ++z)
      for (int64_t c = 0; c < stride; ++c) {
        data[2 * (z * stride + c)] = c ? moments[(c - 1)][z] : 0.0;
        data[2 * (z * stride + c) + 1] = z ? moments[c][z - 1] : 0.0;
      }
    pairs = data;
    steps.resize(trees.n_players);
    for (int64_t p = 0; p < trees.n_players; ++p) steps[p] = 1;
  }

  void allocate(const WalkTrees& trees, const WalkClasses& classes) {
    pairs = classes.pairs;
    stride = classes.n_counts;
    steps.resize(trees.n_players);
    for (int64_t p = 0; p < trees.n_players; ++p) steps[p] = classes.steps[p];
  }

  const double* row(int64_t z) const { return pairs + 2 * z * stride; }

 private:
  Scratch<double> data;
};

inline int64_t most_of(Span<const int32_t> values) {
  return values.size ? *std::max_element(values.begin(), values.end()) : 0;
}

// The columns of `out` that a tree adds to, and where their values are in a leaf's row of `values`.
struct Outputs {
  int64_t first, count;
  const double* values;
  int64_t width;

  Outputs() : first(0), count(0), values(nullptr), width(0) {}
  Outputs(const WalkTrees& trees, int64_t tree)
      : first(trees.tree_output[tree] < 0 ? 0 : trees.tree_output[tree]),
        count(trees.tree_output[tree] < 0 ? trees.width() : 1),
        values(trees.values + (trees.width() > 1 ? first : 0)),
        width(trees.width()) {}
  const double* of_leaf(int64_t node) const { return values + node * width; }
};

}  // namespace
}  // namespace fouriershap
