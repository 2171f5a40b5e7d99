// Raw values to codes: a search among sorted levels, 16 comparisons at a time. encode_numpy.py is the
// specification.
#pragma once
#include <cassert>

#include "simd.h"
#include "span.h"

namespace fouriershap {

template <class T>
struct Levels {
  Span<const T> tiers;
  Span<const int64_t> tier_start, n_levels;
  Span<const uint8_t> categorical;

  int64_t n_features() const { return categorical.size; }
};

constexpr int64_t kFan = 16;  // levels of a tier that are compared at once

// Where codes go: by `column` to lines of `narrow` and `wide`; or, where `column` is empty, feature f to line
// f of `full`.
struct CodeLines {
  Span<const int32_t> column;
  Matrix<uint8_t> narrow;
  Matrix<uint16_t> wide;
  Matrix<int32_t> full;
};

// to[first_line + p][r] = lut[offset[p] + from[source[p]][r]] for each p.
struct ByteRemap {
  Span<const int32_t> source;
  Span<const int64_t> offset;
  Span<const uint8_t> lut;
  int64_t first_line;
};

namespace {

constexpr int kMostTiers = 8;  // 16^8 levels, as many as an int32 can count

// Returns how many of 16 sorted levels (padded with NaN) are <= x.
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

// Levels of a feature in tiers: tier 0 has all of them, tier i + 1 every 16th of tier i.
template <class T>
struct Search {
  const T* tiers[kMostTiers];
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
bool encode_column(const T* rows, int64_t n_rows, int64_t row_stride, const Search<T>& search,
                   bool categorical, C* out) {
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

// Whether any of the values (n_rows, n_features) is missing.
template <class T>
bool encode(const Levels<T>& levels, const Matrix<const T>& rows, const CodeLines& codes) {
  constexpr int64_t kRows = 128;  // rows whose values stay in the first-level cache over all features
  const int64_t n_features = rows.columns;
  bool any_missing = false;
  for (int64_t r0 = 0; r0 < rows.rows; r0 += kRows) {
    const int64_t n = rows.rows - r0 < kRows ? rows.rows - r0 : kRows;
    for (int64_t f = 0; f < n_features; ++f) {
      if (codes.column && codes.column[f] == INT32_MAX) continue;
      Search<T> search;
      search.n_levels = levels.n_levels[f];
      search.n_tiers = 0;
      const T* tier = levels.tiers + levels.tier_start[f];
      for (int64_t n_here = levels.n_levels[f];; n_here = (n_here + kFan - 1) / kFan) {
        assert(search.n_tiers < kMostTiers);
        search.tiers[search.n_tiers++] = tier;
        const int64_t padded = (n_here + kFan - 1) / kFan * kFan;
        if (padded <= kFan) break;
        tier += padded;
      }
      const auto encode_to = [&](auto* line) {
        any_missing |= encode_column(rows.data + r0 * n_features + f, n, n_features, search,
                                     levels.categorical[f] != 0, line + r0);
      };
      if (!codes.column)
        encode_to(codes.full[f]);
      else if (codes.column[f] >= 0)
        encode_to(codes.narrow[codes.column[f]]);
      else
        encode_to(codes.wide[~codes.column[f]]);
    }
  }
  return any_missing;
}

void remap(const ByteRemap& remap, const Matrix<const uint16_t>& from, int64_t n_rows, Matrix<uint8_t> to) {
  for (int64_t p = 0; p < remap.source.size; ++p) {
    const uint16_t* line = from[remap.source[p]];
    const uint8_t* table = remap.lut + remap.offset[p];
    uint8_t* mine = to[remap.first_line + p];
    for (int64_t r = 0; r < n_rows; ++r) mine[r] = table[line[r]];
  }
}

}  // namespace
}  // namespace fouriershap
