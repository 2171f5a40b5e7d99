// Tables of trees: the values of each leaf for every pattern of its block.
#include "tree_tables.h"

#include <cassert>
#include <optional>

#include "scratch.h"
#include "simd.h"
#include "tree_tables_games.h"

namespace fouriershap {

namespace {

constexpr int kWidth = 8;
typedef Vec<double>::type V;
constexpr int L = Vec<double>::lanes;

inline double sum_lanes(V v) {
  double s = 0;
  for (int i = 0; i < L; ++i) s += v[i];
  return s;
}

// Which players of the leaf fail, for every pattern of the block: mixed radix, first feature fastest.
void make_fail_masks(const uint32_t* fail, const int32_t* states, int64_t n_features, uint32_t* out) {
  int64_t n = 1;
  out[0] = 0;
  for (int64_t j = 0; j < n_features; ++j) {
    for (int32_t s = states[j] - 1; s >= 0; --s)
      for (int64_t i = 0; i < n; ++i) out[s * n + i] = out[i] | fail[s];
    // State 0 was written last, over its own input: out[i] |= fail[0] read each out[i] before changing it.
    fail += states[j];
    n *= states[j];
  }
}

struct Quadrature {
  const double *t, *w;
  int64_t n;  // nodes, padded with zero weights to a multiple of 4
};

// Column of each player (order 1) or of each pair of players (order 2) of a leaf, -1 for none. Pairs i < j
// are numbered j (j - 1) / 2 + i, those of the leaf's players as those of the block's.
inline int64_t pair_of(int64_t i, int64_t j) { return i < j ? j * (j - 1) / 2 + i : i * (i - 1) / 2 + j; }

void choose_columns(const int32_t* players, int u, int64_t order, const int32_t* slots, int32_t* column) {
  for (int j = 0; j < u; ++j) {
    if (order == 1) column[j] = slots[players[j]];
    for (int i = 0; order == 2 && i < j; ++i) column[pair_of(i, j)] = slots[pair_of(players[i], players[j])];
  }
}

// z[P][node]: the sum of c[X] t^|X| over the subsets X of P.
void subset_sums(const double* c, int u, const Quadrature& q, double* z) {
  const int64_t size = int64_t{1} << u, n = q.n;
  double power[kMostPlayers + 1][kMostNodes];
  for (int64_t k = 0; k < n; ++k) power[0][k] = 1.0;
  for (int i = 1; i <= u; ++i)
    for (int64_t k = 0; k < n; ++k) power[i][k] = power[i - 1][k] * q.t[k];
  for (int64_t x = 0; x < size; ++x) {
    const double* p = power[__builtin_popcountll(x)];
    for (int64_t k = 0; k < n; k += L) store(z + x * n + k, load<V>(p + k) * c[x]);
  }
  for (int b = 0; b < u; ++b)
    for (int64_t x = 0; x < size; ++x)
      if (x >> b & 1)
        for (int64_t k = 0; k < n; k += L) {
          double* to = z + x * n + k;
          store(to, load<V>(to) + load<V>(z + (x ^ (int64_t{1} << b)) * n + k));
        }
}

// power[i] = w (1 - t)^i / t^divisions by node.
struct Powers {
  double power[kMostPlayers + 1][kMostNodes];
  Powers(int u, const Quadrature& q, int divisions) {
    for (int64_t k = 0; k < q.n; ++k) {
      power[0][k] = q.w[k];
      for (int d = 0; d < divisions; ++d) power[0][k] /= q.t[k];
      for (int i = 1; i <= u; ++i) power[i][k] = power[i - 1][k] * (1.0 - q.t[k]);
    }
  }
};

inline double integral(const double* weight, const double* z, int64_t n) {
  V sum = {};
  for (int64_t k = 0; k < n; k += L) sum += load<V>(weight + k) * load<V>(z + k);
  return sum_lanes(sum);
}

inline double integral(const double* weight, const double* with, const double* without, int64_t n) {
  V sum = {};
  for (int64_t k = 0; k < n; k += L) sum += load<V>(weight + k) * (load<V>(with + k) - load<V>(without + k));
  return sum_lanes(sum);
}

// Three integrals for each set P of players that a row holds, in lines of 4: what a failing player loses,
// what a passing player gains as long as it is held, and what is left of that gain once it is not (P is
// without it then). Gains divide by t; the constant z[{}] cancels in their difference and goes first, for
// precision.
void integrals(const double* z, int u, const Quadrature& q, double* out) {
  const int64_t size = int64_t{1} << u, n = q.n;
  const Powers plain(u, q, 0), divided(u, q, 1);
  for (int64_t p = 0; p < size; ++p) {
    const int n_failed = u - __builtin_popcountll(p);
    const double* zp = z + p * n;
    out[4 * p] = n_failed ? -integral(plain.power[n_failed - 1], zp, n) : 0.0;
    out[4 * p + 1] = integral(divided.power[n_failed], zp, z, n);
    out[4 * p + 2] = n_failed ? integral(divided.power[n_failed - 1], zp, z, n) : 0.0;
  }
}

// phi[F][column] of one leaf of value 1, F the players that the row fails, from the leaf's `integrals`.
void interventional(const double* found, int u, const int32_t* column, double* phi) {
  int player[kWidth], to[kWidth], n_shown = 0;
  for (int j = 0; j < u; ++j)
    if (column[j] >= 0) {
      assert(n_shown < kWidth && column[j] < kWidth);
      player[n_shown] = j;
      to[n_shown++] = column[j];
    }
  const int64_t size = int64_t{1} << u;
  for (int64_t f = 0; f < size; ++f) {
    const int64_t held = (size - 1) & ~f;
    const double lost = found[4 * held], gained = found[4 * held + 1];
    double* line = phi + f * kWidth;
    for (int i = 0; i < kWidth; ++i) line[i] = 0.0;
    for (int i = 0; i < n_shown; ++i) {
      const int64_t bit = int64_t{1} << player[i];
      line[to[i]] = f & bit ? lost : gained - found[4 * (held & ~bit) + 2];
    }
  }
}

// The same for pairs: each of the two either fails (and so do n_failed players in all) or passes.
void interventional_pairs(const double* z, int u, const Quadrature& q, const int32_t* column, double* phi) {
  const int64_t size = int64_t{1} << u, n = q.n;
  const Powers plain(u, q, 0), once(u, q, 1), twice(u, q, 2);
  for (int64_t f = 0; f < size; ++f) {
    const int64_t held = (size - 1) & ~f;
    const int n_failed = __builtin_popcountll(f);
    const double* all = z + held * n;
    const double both_fail = n_failed > 1 ? integral(plain.power[n_failed - 2], all, n) : 0.0;
    double* line = phi + f * kWidth;
    for (int c8 = 0; c8 < kWidth; ++c8) line[c8] = 0.0;
    for (int j = 1; j < u; ++j)
      for (int i = 0; i < j; ++i) {
        const int32_t to = column[pair_of(i, j)];
        if (to < 0) continue;
        const int64_t bit_i = int64_t{1} << i, bit_j = int64_t{1} << j;
        if (f & bit_i && f & bit_j) {
          line[to] = both_fail;
        } else if (f & (bit_i | bit_j)) {
          const int64_t without = held & ~(bit_i | bit_j);  // one of the two was not held anyway
          line[to] = -integral(once.power[n_failed - 1], all, z + without * n, n);
        } else {
          const double *no_i = z + (held ^ bit_i) * n, *no_j = z + (held ^ bit_j) * n;
          const double* neither = z + (held ^ bit_i ^ bit_j) * n;
          line[to] = integral(twice.power[n_failed], all, no_i, n) -
                     integral(twice.power[n_failed], no_j, neither, n);
        }
      }
  }
}

// phi for path-dependent values: a player outside the coalition passes with probability ratio[j].
void path_dependent(const double* ratio, int u, const Quadrature& q, int64_t order, const int32_t* column,
                    double* phi) {
  const int64_t size = int64_t{1} << u;
  double passes[kMostPlayers], change[kMostPlayers];
  V before[kMostPlayers + 1], after[kMostPlayers + 1], factor[kMostPlayers];
  for (int64_t f = 0; f < size; ++f) {
    double* line = phi + f * kWidth;
    for (int c8 = 0; c8 < kWidth; ++c8) line[c8] = 0.0;
    for (int j = 0; j < u; ++j) {
      passes[j] = f >> j & 1 ? 0.0 : 1.0;
      change[j] = passes[j] - ratio[j];
    }
    for (int64_t k = 0; k < q.n; k += L) {
      const V t = load<V>(q.t + k);
      before[0] = load<V>(q.w + k);
      for (int j = 0; j < u; ++j) {
        factor[j] = passes[j] * t + (1.0 - t) * ratio[j];
        before[j + 1] = before[j] * factor[j];
      }
      after[u] = V{} + 1.0;
      for (int j = u - 1; j >= 0; --j) after[j] = after[j + 1] * factor[j];
      for (int i = 0; i < u; ++i) {
        if (order == 1) {
          if (column[i] >= 0) line[column[i]] += change[i] * sum_lanes(before[i] * after[i + 1]);
          continue;
        }
        V between = change[i] * before[i];
        for (int j = i + 1; j < u; ++j) {
          const int32_t to = column[pair_of(i, j)];
          if (to >= 0) line[to] += change[j] * sum_lanes(between * after[j + 1]);
          between *= factor[j];
        }
      }
    }
  }
}

// Fills tables one after the other.
template <class T>
struct Filler {
  const TreeBlocks& blocks;
  const TreeLayout& tables;
  const PatternShares& background;
  Span<T> values;
  Matrix<double> reached;
  const TreeGames* games;
  const int64_t n_channels = background.n_channels();
  int64_t most_patterns = 1, most_subsets = 1;
  AlignedScratch<uint32_t> masks{};  // of the held leaf: which players fail, by pattern
  AlignedScratch<double> sums{};     // the table: (channels, width, patterns, kWidth)
  AlignedScratch<double> phi{};      // of a leaf of value 1: (subsets, kWidth)
  AlignedScratch<double> c{};      // of the held leaf: share of the background by the players that it fails,
  AlignedScratch<double> z{};      // `subset_sums`,
  AlignedScratch<double> found{};  // and `integrals` of each channel
  int64_t held_leaf = -1;          // a block of one leaf may have many tables
  std::optional<LeafGames> by_games{};

  void allocate(int64_t first, int64_t last) {
    for (int64_t t = first; t < last; ++t) {
      const int32_t b = tables.block[t];
      most_patterns = std::max(most_patterns, int64_t{blocks.n_patterns[b]});
      for (int64_t l = blocks.leaf_start[b]; l < blocks.leaf_start[b + 1]; ++l)
        most_subsets = std::max(most_subsets, int64_t{1} << blocks.n_players(l));
    }
    masks.resize(most_patterns);
    sums.resize(n_channels * most_patterns * blocks.width() * kWidth);
    phi.resize(most_subsets * kWidth);
    c.resize(n_channels * most_subsets);
    z.resize(most_subsets * kMostNodes);
    found.resize(n_channels * most_subsets * 4);
    if (games) by_games.emplace(blocks, *games, most_subsets);
  }

  // Prepares a leaf for all tables that contain it.
  void hold(int64_t leaf, int32_t block, const Quadrature& q) {
    if (leaf == held_leaf) return;
    held_leaf = leaf;
    const int u = blocks.n_players(leaf);
    const int64_t n_patterns = blocks.n_patterns[block], first_feature = blocks.feature_start[block];
    make_fail_masks(blocks.fail + blocks.fail_start[leaf], blocks.feature_states + first_feature,
                    blocks.feature_start[block + 1] - first_feature, masks);
    if (background.shares.rows) {
      const int64_t size = int64_t{1} << u;
      std::memset(c, 0, n_channels * size * sizeof(double));
      for (int64_t p = 0; p < n_patterns; ++p) {
        assert(masks[p] >> u == 0);
        const double* h = background.shares[background.offset[block] + p];
        for (int64_t k = 0; k < n_channels; ++k) c[k * size + masks[p]] += h[k];
      }
      for (int64_t k = 0; k < n_channels; ++k) {
        reached[leaf][k] = c[k * size];
        if (games) continue;
        subset_sums(c + k * size, u, q, z);
        if (tables.order == 1) integrals(z, u, q, found + k * size * 4);
      }
    } else {
      double share = 1.0;
      for (int j = 0; j < u; ++j) share *= blocks.leaf_ratio[blocks.leaf_player_start[leaf] + j];
      reached[leaf][0] = share;
    }
  }

  void add_leaf(int64_t leaf, int64_t table) {
    const int u = blocks.n_players(leaf);
    const int32_t block = tables.block[table];
    const int64_t first_player = blocks.leaf_player_start[leaf], n_patterns = blocks.n_patterns[block];
    const int64_t n_nodes = (blocks.nodes_start[u + 1] - blocks.nodes_start[u]) / 2;
    const double* nodes = blocks.nodes + blocks.nodes_start[u];
    const Quadrature q = {nodes, nodes + n_nodes, n_nodes};
    assert(n_nodes <= kMostNodes && n_nodes % 4 == 0);
    int32_t column[kMostPlayers * (kMostPlayers - 1) / 2];
    choose_columns(blocks.leaf_players + first_player, u, tables.order, tables.slots[table], column);
    hold(leaf, block, q);
    for (int64_t k = 0; k < n_channels; ++k) {
      if (!background.shares.rows)
        path_dependent(blocks.leaf_ratio + first_player, u, q, tables.order, column, phi);
      else if (games)
        by_games->add(games->leaf_owner + first_player, u, c + (k << u), column, phi);
      else if (tables.order == 1)
        interventional(found + k * (int64_t{4} << u), u, column, phi);
      else
        interventional_pairs(z, u, q, column, phi);  // in one channel
      add_gains(leaf, n_patterns, sums + k * blocks.width() * n_patterns * kWidth);
    }
  }

  void add_gains(int64_t leaf, int64_t n_patterns, double* line) const {
    const uint32_t* mine = masks;
    const double* gained = phi;
    for (int64_t o = 0; o < blocks.width(); ++o) {
      const double value = blocks.leaf_values[blocks.leaf_node[leaf]][o];
      for (int64_t p = 0; p < n_patterns; ++p, line += kWidth)
        for (int i = 0; i < kWidth; i += L)
          store(line + i, load<V>(line + i) + load<V>(gained + mine[p] * kWidth + i) * value);
    }
  }

  void fill(int64_t table) {
    const int32_t b = tables.block[table];
    const int64_t size = n_channels * blocks.n_patterns[b] * blocks.width() * kWidth;
    std::memset(sums, 0, size * sizeof(double));
    for (int64_t l = blocks.leaf_start[b]; l < blocks.leaf_start[b + 1]; ++l) add_leaf(l, table);
    const double* from = sums;
    T* out = values + tables.offset[table];
    for (int64_t i = 0; i < size; ++i) out[i] = static_cast<T>(from[i]);
  }
};

}  // namespace

template <class T>
void fill(const TreeBlocks& blocks, const TreeLayout& layout, const PatternShares& background, int64_t first,
          int64_t last, Span<T> values, Matrix<double> reached, const TreeGames* games) {
  Filler<T> filler{blocks, layout, background, values, reached, games};
  filler.allocate(first, last);
  for (int64_t t = first; t < last; ++t) filler.fill(t);
}

template void fill(const TreeBlocks&, const TreeLayout&, const PatternShares&, int64_t, int64_t, Span<float>,
                   Matrix<double>, const TreeGames*);
template void fill(const TreeBlocks&, const TreeLayout&, const PatternShares&, int64_t, int64_t, Span<double>,
                   Matrix<double>, const TreeGames*);

}  // namespace fouriershap
