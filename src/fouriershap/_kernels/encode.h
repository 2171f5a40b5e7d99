// Raw values to codes. encode_numpy.py is the specification.
#pragma once
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

// Whether any of the values (n_rows, n_features) is missing.
template <class T>
bool encode(const Levels<T>& levels, const Matrix<const T>& rows, const CodeLines& codes);

void remap(const ByteRemap& remap, const Matrix<const uint16_t>& from, int64_t n_rows, Matrix<uint8_t> to);

}  // namespace fouriershap
