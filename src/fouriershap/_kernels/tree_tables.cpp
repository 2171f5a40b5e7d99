// The tables of trees: what each leaf adds for every pattern of its block.
#include <cstdlib>

#include "build.h"
#include "simd.h"

namespace fouriershap {
namespace FS_LEVEL {

namespace {

constexpr int kWidth = 8;
typedef Vec<double>::type V;
constexpr int L = Vec<double>::lanes;

inline double* allocate(int64_t n) {
  return static_cast<double*>(std::aligned_alloc(64, (n * sizeof(double) + 127) / 64 * 64));
}

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

// Column of each player (order 1) or of each pair of players (order 2) of a leaf, -1 for none. Pairs i < j are
// numbered j (j - 1) / 2 + i, those of the leaf's players as those of the block's.
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
  double power[33][32];
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
  double power[33][32];
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

// Three integrals for each set P of players that a row holds, in lines of 4: what a failing player loses, what a
// passing player gains as long as it is held, and what is left of that gain once it is not (P is without it then).
// Gains divide by t; the constant z[{}] cancels in their difference and goes first, for precision.
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
    if (column[j] >= 0) player[n_shown] = j, to[n_shown++] = column[j];
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
          line[to] = integral(twice.power[n_failed], all, no_i, n) - integral(twice.power[n_failed], no_j, neither, n);
        }
      }
  }
}

// phi for the path-dependent game: a missing player passes with probability ratio[j].
void path_dependent(const double* ratio, int u, const Quadrature& q, int64_t order, const int32_t* column,
                    double* phi) {
  const int64_t size = int64_t{1} << u;
  double before[33], after[33], factor[32], change[32];
  for (int64_t f = 0; f < size; ++f) {
    double* line = phi + f * kWidth;
    for (int c8 = 0; c8 < kWidth; ++c8) line[c8] = 0.0;
    for (int64_t k = 0; k < q.n; ++k) {
      before[0] = q.w[k];
      for (int j = 0; j < u; ++j) {
        const double passes = f >> j & 1 ? 0.0 : 1.0;
        change[j] = passes - ratio[j];
        factor[j] = passes * q.t[k] + (1.0 - q.t[k]) * ratio[j];
        before[j + 1] = before[j] * factor[j];
      }
      after[u] = 1.0;
      for (int j = u - 1; j >= 0; --j) after[j] = after[j + 1] * factor[j];
      for (int i = 0; i < u; ++i) {
        if (order == 1) {
          if (column[i] >= 0) line[column[i]] += change[i] * before[i] * after[i + 1];
          continue;
        }
        double between = change[i] * before[i];
        for (int j = i + 1; j < u; ++j) {
          const int32_t to = column[pair_of(i, j)];
          if (to >= 0) line[to] += between * change[j] * after[j + 1];
          between *= factor[j];
        }
      }
    }
  }
}

}  // namespace

template <class T>
void tree_tables(const double* histograms, const int64_t* histogram_offset, const int32_t* block_patterns,
                 const int64_t* feature_start, const int32_t* feature_states, const int64_t* leaf_start,
                 const int32_t* leaf_node, const int64_t* leaf_player_start, const int32_t* leaf_players,
                 const double* leaf_ratio, const int64_t* fail_start, const uint32_t* fail,
                 const double* leaf_values, int64_t width, const double* nodes, const int64_t* nodes_start,
                 const int32_t* table_block, const int64_t* table_offset, const int32_t* table_slots,
                 int64_t slots_stride, int64_t order, int64_t first_table, int64_t last_table, T* values, double* reached) {
  int64_t most_patterns = 1, most_subsets = 1;
  for (int64_t t = first_table; t < last_table; ++t) {
    const int32_t b = table_block[t];
    if (block_patterns[b] > most_patterns) most_patterns = block_patterns[b];
    for (int64_t l = leaf_start[b]; l < leaf_start[b + 1]; ++l) {
      const int64_t size = int64_t{1} << (leaf_player_start[l + 1] - leaf_player_start[l]);
      if (size > most_subsets) most_subsets = size;
    }
  }
  uint32_t* masks = reinterpret_cast<uint32_t*>(allocate(most_patterns));
  double* sums = allocate(most_patterns * kWidth * width);
  double* phi = allocate(most_subsets * kWidth);
  double* c = allocate(most_subsets);
  double* z = allocate(most_subsets * 16);
  double* found = allocate(most_subsets * 4);
  int64_t held_leaf = -1;  // whose masks, c, z and integrals are there: a block of one leaf may have many tables
  for (int64_t t = first_table; t < last_table; ++t) {
    const int32_t b = table_block[t];
    const int64_t n_patterns = block_patterns[b];
    std::memset(sums, 0, n_patterns * kWidth * width * sizeof(double));
    for (int64_t l = leaf_start[b]; l < leaf_start[b + 1]; ++l) {
      const int u = static_cast<int>(leaf_player_start[l + 1] - leaf_player_start[l]);
      const int64_t size = int64_t{1} << u;
      const double* ratio = leaf_ratio + leaf_player_start[l];
      const Quadrature q = {nodes + nodes_start[u], nodes + nodes_start[u] + (nodes_start[u + 1] - nodes_start[u]) / 2,
                            (nodes_start[u + 1] - nodes_start[u]) / 2};
      int32_t column[32 * 31 / 2];
      choose_columns(leaf_players + leaf_player_start[l], u, order, table_slots + t * slots_stride, column);
      if (l != held_leaf) {
        held_leaf = l;
        make_fail_masks(fail + fail_start[l], feature_states + feature_start[b],
                        feature_start[b + 1] - feature_start[b], masks);
        if (histograms) {
          const double* h = histograms + histogram_offset[b];
          std::memset(c, 0, size * sizeof(double));
          for (int64_t p = 0; p < n_patterns; ++p) c[masks[p]] += h[p];
          reached[l] = c[0];
          subset_sums(c, u, q, z);
          if (order == 1) integrals(z, u, q, found);
        } else {
          reached[l] = 1.0;
          for (int j = 0; j < u; ++j) reached[l] *= ratio[j];
        }
      }
      if (!histograms)
        path_dependent(ratio, u, q, order, column, phi);
      else if (order == 1)
        interventional(found, u, column, phi);
      else
        interventional_pairs(z, u, q, column, phi);
      for (int64_t o = 0; o < width; ++o) {
        const double value = leaf_values[static_cast<int64_t>(leaf_node[l]) * width + o];
        double* line = sums + o * n_patterns * kWidth;
        for (int64_t p = 0; p < n_patterns; ++p, line += kWidth)
          for (int i = 0; i < kWidth; i += L)
            store(line + i, load<V>(line + i) + load<V>(phi + masks[p] * kWidth + i) * value);
      }
    }
    T* out = values + table_offset[t];
    for (int64_t i = 0; i < n_patterns * kWidth * width; ++i) out[i] = static_cast<T>(sums[i]);
  }
  std::free(found);
  std::free(z);
  std::free(c);
  std::free(phi);
  std::free(sums);
  std::free(masks);
}

#define FS_INSTANTIATE(T)                                                                                   \
  template void tree_tables<T>(                                                                             \
      const double*, const int64_t*, const int32_t*, const int64_t*, const int32_t*, const int64_t*,        \
      const int32_t*, const int64_t*, const int32_t*, const double*, const int64_t*, const uint32_t*,       \
      const double*, int64_t, const double*, const int64_t*, const int32_t*, const int64_t*, const int32_t*, \
      int64_t, int64_t, int64_t, int64_t, T*, double*);
FS_INSTANTIATE(float)
FS_INSTANTIATE(double)

}  // namespace FS_LEVEL
}  // namespace fouriershap
