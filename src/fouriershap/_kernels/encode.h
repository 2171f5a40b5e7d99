// Raw values to codes. The twin, encode_numpy.py, documents every array.
// Included once per instruction set: only the structs are guarded.
#include <cstdint>

#ifndef FOURIERSHAP_ENCODE_ARGUMENTS
#define FOURIERSHAP_ENCODE_ARGUMENTS
namespace fouriershap {

// (n_rows, n_features), T: float or double.
template <class T>
struct RawRows {
  const T* values;
  int64_t n_rows, n_features;
};

template <class T>
struct Levels {
  const T* tiers;
  const int64_t *tier_start, *n_levels;
  const bool* categorical;
};

// Where codes go: by `column` to lines of `narrow` and `wide`; or, where `column` is null, feature f to line
// f of `full`.
struct CodeLines {
  const int32_t* column;
  uint8_t* narrow;
  uint16_t* wide;
  int32_t* full;
  int64_t stride;
};

// to[first_line + p][r] = lut[offset[p] + from[source[p]][r]] for each page p; from and to have the same
// stride.
struct Pages {
  const uint16_t* from;
  int64_t stride, n_rows;
  const int32_t* source;
  const int64_t* offset;
  int64_t n_pages;
  const uint8_t* lut;
  int64_t first_line;
  uint8_t* to;
};

}  // namespace fouriershap
#endif

namespace fouriershap {
namespace FS_LEVEL {

// Whether any value is missing.
template <class T>
bool encode(const RawRows<T>& rows, const Levels<T>& levels, const CodeLines& codes);

void pages(const Pages& pages);

}  // namespace FS_LEVEL
}  // namespace fouriershap
