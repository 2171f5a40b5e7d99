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

// phi[F][column] of one leaf of value 1, F the players that the row fails, from the background's failing
// sets c[X]. z: scratch of 2^u * n. (DESIGN: subset sums of c[X] t^|X|, then the integral over t.)
void interventional(const double* c, int u, const Quadrature& q, const int32_t* column, double* z, double* phi) {
  const int64_t size = int64_t{1} << u, n = q.n;
  double power[33][32];  // power[i] = t^i by node; also used below for (1 - t)^i * w
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
  for (int64_t k = 0; k < n; ++k) power[0][k] = q.w[k];
  for (int i = 1; i <= u; ++i)
    for (int64_t k = 0; k < n; ++k) power[i][k] = power[i - 1][k] * (1.0 - q.t[k]);
  double inverse[32];
  for (int64_t k = 0; k < n; ++k) inverse[k] = 1.0 / q.t[k];
  for (int64_t f = 0; f < size; ++f) {
    const int64_t held = (size - 1) & ~f;
    const int n_failed = __builtin_popcountll(f);
    const double* zp = z + held * n;
    V outside = {};
    if (n_failed)
      for (int64_t k = 0; k < n; k += L) outside -= load<V>(power[n_failed - 1] + k) * load<V>(zp + k);
    const double lost = sum_lanes(outside);
    double* line = phi + f * kWidth;
    for (int c8 = 0; c8 < kWidth; ++c8) line[c8] = 0.0;
    for (int j = 0; j < u; ++j) {
      if (column[j] < 0) continue;
      if (f >> j & 1) {
        line[column[j]] = lost;
        continue;
      }
      const double* zm = z + (held ^ (int64_t{1} << j)) * n;
      V inside = {};
      for (int64_t k = 0; k < n; k += L)
        inside += load<V>(power[n_failed] + k) * load<V>(inverse + k) * (load<V>(zp + k) - load<V>(zm + k));
      line[column[j]] = sum_lanes(inside);
    }
  }
}

// The same for the path-dependent game: a missing player passes with probability ratio[j].
void path_dependent(const double* ratio, int u, const Quadrature& q, const int32_t* column, double* phi) {
  const int64_t size = int64_t{1} << u;
  double before[33], factor[32];
  for (int64_t f = 0; f < size; ++f) {
    double* line = phi + f * kWidth;
    for (int c8 = 0; c8 < kWidth; ++c8) line[c8] = 0.0;
    for (int64_t k = 0; k < q.n; ++k) {
      before[0] = q.w[k];
      for (int j = 0; j < u; ++j) {
        factor[j] = (f >> j & 1 ? 0.0 : q.t[k]) + (1.0 - q.t[k]) * ratio[j];
        before[j + 1] = before[j] * factor[j];
      }
      double after = 1.0;
      for (int j = u - 1; j >= 0; --j) {
        if (column[j] >= 0) line[column[j]] += ((f >> j & 1 ? 0.0 : 1.0) - ratio[j]) * before[j] * after;
        after *= factor[j];
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
                 int64_t slots_stride, int64_t first_table, int64_t last_table, T* values, double* reached) {
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
  for (int64_t t = first_table; t < last_table; ++t) {
    const int32_t b = table_block[t];
    const int64_t n_patterns = block_patterns[b];
    std::memset(sums, 0, n_patterns * kWidth * width * sizeof(double));
    for (int64_t l = leaf_start[b]; l < leaf_start[b + 1]; ++l) {
      const int u = static_cast<int>(leaf_player_start[l + 1] - leaf_player_start[l]);
      const int64_t size = int64_t{1} << u;
      make_fail_masks(fail + fail_start[l], feature_states + feature_start[b],
                      feature_start[b + 1] - feature_start[b], masks);
      const Quadrature q = {nodes + nodes_start[u], nodes + nodes_start[u] + (nodes_start[u + 1] - nodes_start[u]) / 2,
                            (nodes_start[u + 1] - nodes_start[u]) / 2};
      int32_t column[32];
      for (int j = 0; j < u; ++j) column[j] = table_slots[t * slots_stride + leaf_players[leaf_player_start[l] + j]];
      if (histograms) {
        const double* h = histograms + histogram_offset[b];
        std::memset(c, 0, size * sizeof(double));
        for (int64_t p = 0; p < n_patterns; ++p) c[masks[p]] += h[p];
        reached[l] = c[0];
        interventional(c, u, q, column, z, phi);
      } else {
        reached[l] = 1.0;
        for (int j = 0; j < u; ++j) reached[l] *= leaf_ratio[leaf_player_start[l] + j];
        path_dependent(leaf_ratio + leaf_player_start[l], u, q, column, phi);
      }
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
      int64_t, int64_t, int64_t, T*, double*);
FS_INSTANTIATE(float)
FS_INSTANTIATE(double)

}  // namespace FS_LEVEL
}  // namespace fouriershap
