// Raw values to codes: a search among sorted levels, 16 comparisons at a time.
#include "simd.h"
#include "tables.h"

namespace fouriershap {
namespace FS_LEVEL {

namespace {

constexpr int kFan = 16;

// How many of 16 sorted levels (padded with NaN) are <= x.
inline int count(const float* levels, float x) {
#if defined(__AVX__)
  typedef float V __attribute__((vector_size(32)));
  const V v = V{} + x;
  const int low = __builtin_ia32_movmskps256((V)(load<V>(levels) <= v));
  const int high = __builtin_ia32_movmskps256((V)(load<V>(levels + 8) <= v));
  return __builtin_popcount(low | high << 8);
#else
  int n = 0;
  for (int i = 0; i < kFan; ++i) n += levels[i] <= x;
  return n;
#endif
}

inline int count(const double* levels, double x) {
#if defined(__AVX__)
  typedef double V __attribute__((vector_size(32)));
  const V v = V{} + x;
  int mask = 0;
  for (int i = 0; i < kFan; i += 4) mask |= __builtin_ia32_movmskpd256((V)(load<V>(levels + i) <= v)) << i;
  return __builtin_popcount(mask);
#else
  int n = 0;
  for (int i = 0; i < kFan; ++i) n += levels[i] <= x;
  return n;
#endif
}

// The levels of a feature stand in tiers: tier 0 holds all of them, tier i + 1 every 16th of tier i.
template <class T>
struct Search {
  const T* tiers[6];
  int n_tiers;
  int64_t n_levels;

  // The number of levels <= x.
  inline int64_t operator()(T x) const {
    int64_t at = 0;
    for (int i = n_tiers - 1; i >= 0; --i) {
      const int64_t group = at > 0 ? at : 0;
      at = group * kFan + count(tiers[i] + group * kFan, x) - 1;
    }
    return at + 1;
  }
};

template <class T, class C>
bool encode_column(const T* rows, int64_t n_rows, int64_t row_stride, const Search<T>& search, bool categorical,
                   C* out) {
  bool any_missing = false;
  const C missing = static_cast<C>(search.n_levels + 1);
  if (search.n_levels == 0) {  // a feature that no tree tests
    for (int64_t r = 0; r < n_rows; ++r) {
      const T x = rows[r * row_stride];
      any_missing |= x != x;
      out[r] = x != x ? missing : 0;
    }
    return any_missing;
  }
  for (int64_t r = 0; r < n_rows; ++r) {
    T x = rows[r * row_stride];
    const bool is_missing = x != x;
    any_missing |= is_missing;
    C code;
    if (categorical) {
      x = __builtin_trunc(x);
      const int64_t below = search(x);
      code = static_cast<C>(below > 0 && search.tiers[0][below - 1] == x ? below - 1 : search.n_levels);
    } else {
      code = static_cast<C>(search(x));
    }
    out[r] = is_missing ? missing : code;
  }
  return any_missing;
}

}  // namespace

template <class T>
bool encode(const T* rows, int64_t n_rows, int64_t n_features, const T* tiers, const int64_t* tier_start,
            const int64_t* n_levels, const bool* categorical, const int32_t* column, uint8_t* codes8,
            uint16_t* codes16, int32_t* codes32, int64_t stride) {
  constexpr int64_t kRows = 128;  // rows whose values stay in the first-level cache over all features
  bool any_missing = false;
  for (int64_t r0 = 0; r0 < n_rows; r0 += kRows) {
    const int64_t n = n_rows - r0 < kRows ? n_rows - r0 : kRows;
    for (int64_t f = 0; f < n_features; ++f) {
      if (column && column[f] == INT32_MAX) continue;
      Search<T> search;
      search.n_levels = n_levels[f];
      search.n_tiers = 0;
      const T* tier = tiers + tier_start[f];
      for (int64_t n_here = n_levels[f];; n_here = (n_here + kFan - 1) / kFan) {
        search.tiers[search.n_tiers++] = tier;
        const int64_t padded = (n_here + kFan - 1) / kFan * kFan;
        if (padded <= kFan) break;
        tier += padded;
      }
      const T* values = rows + r0 * n_features + f;
      if (codes32)
        any_missing |= encode_column(values, n, n_features, search, categorical[f], codes32 + f * stride + r0);
      else if (column[f] >= 0)
        any_missing |=
            encode_column(values, n, n_features, search, categorical[f], codes8 + column[f] * stride + r0);
      else
        any_missing |=
            encode_column(values, n, n_features, search, categorical[f], codes16 + ~column[f] * stride + r0);
    }
  }
  return any_missing;
}

void pages(const uint16_t* codes16, int64_t stride, int64_t n_rows, const int32_t* source,
           const int64_t* offset, int64_t n_pages, const uint8_t* lut, int64_t first_line, uint8_t* codes8) {
  for (int64_t p = 0; p < n_pages; ++p) {
    const uint16_t* from = codes16 + source[p] * stride;
    const uint8_t* table = lut + offset[p];
    uint8_t* to = codes8 + (first_line + p) * stride;
    for (int64_t r = 0; r < n_rows; ++r) to[r] = table[from[r]];
  }
}

template bool encode<float>(const float*, int64_t, int64_t, const float*, const int64_t*, const int64_t*,
                            const bool*, const int32_t*, uint8_t*, uint16_t*, int32_t*, int64_t);
template bool encode<double>(const double*, int64_t, int64_t, const double*, const int64_t*, const int64_t*,
                             const bool*, const int32_t*, uint8_t*, uint16_t*, int32_t*, int64_t);

}  // namespace FS_LEVEL
}  // namespace fouriershap
