// A row's pattern in a block, for many rows at a time: one comparison, one mask and one addition per cut.
#pragma once
#include "simd.h"
#include "tables.h"

namespace fouriershap {

// The cuts of one block.
struct Cuts {
  const int32_t* column;
  const uint16_t* at;
  const int32_t* weight;
  int64_t first, last;
  int32_t base;
};

static inline Cuts cuts_of(const Blocks& blocks, int64_t block, bool missing) {
  const int64_t last = missing ? blocks.cut_start[block + 1] : blocks.cut_missing[block];
  return {blocks.cut_column,       blocks.cut_at, blocks.cut_weight,
          blocks.cut_start[block], last,          blocks.base[block]};
}

// Signed lanes of a comparison's result, half or double width of FS_VECTOR_BYTES.
typedef int8_t s8_half __attribute__((vector_size(FS_VECTOR_BYTES / 2)));
typedef uint8_t u8_half __attribute__((vector_size(FS_VECTOR_BYTES / 2)));
typedef int8_t s8_full __attribute__((vector_size(FS_VECTOR_BYTES)));
typedef uint8_t u8_full __attribute__((vector_size(FS_VECTOR_BYTES)));
typedef int16_t s16_full __attribute__((vector_size(FS_VECTOR_BYTES)));
typedef uint16_t u16_full __attribute__((vector_size(FS_VECTOR_BYTES)));

// The masks of two comparisons of 16-bit lanes as one of 8-bit lanes. Putting the halves together through
// memory would stall every time: a wide load cannot be served from two narrower stores.
static inline u8_full narrow(s16_full low, s16_full high) {
#if defined(__AVX2__)
  typedef char c8 __attribute__((vector_size(32)));
  typedef long long q4 __attribute__((vector_size(32)));
  const c8 packed = __builtin_ia32_packsswb256((s16_full)low, (s16_full)high);
  return (u8_full)__builtin_ia32_permdi256((q4)packed, 0xd8);
#elif defined(__SSE2__)
  return (u8_full)__builtin_ia32_packsswb128(low, high);
#else
  const s8_half a = __builtin_convertvector(low, s8_half), b = __builtin_convertvector(high, s8_half);
  return (u8_full)__builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
#endif
}

// Rows are worked on kPatternRows at a time: codes and patterns are padded to a multiple of it.
constexpr int kPatternRows = 64;

// Patterns below 256: bytes, wrapping additions (the final sum is in range, whatever the signs of weights).
static void __attribute__((noinline)) make_patterns(const Codes& codes, int64_t first_row, int64_t n_rows,
                                                    const Cuts& cuts, uint8_t* out) {
  const Matrix<const uint8_t> codes8 = codes.narrow;  // copies, which `out` cannot point at
  const Matrix<const uint16_t> codes16 = codes.wide;
  constexpr int L = FS_VECTOR_BYTES, N = kPatternRows / L;
  for (int64_t r = 0; r < n_rows; r += kPatternRows) {
    u8_full sum[N];
    for (int v = 0; v < N; ++v) sum[v] = u8_full{} + static_cast<uint8_t>(cuts.base);
    for (int64_t c = cuts.first; c < cuts.last; ++c) {
      const u8_full weight = u8_full{} + static_cast<uint8_t>(cuts.weight[c]);
      if (cuts.column[c] >= 0) {
        const u8_full at = u8_full{} + static_cast<uint8_t>(cuts.at[c]);
        const uint8_t* line = codes8[cuts.column[c]] + first_row + r;
        for (int v = 0; v < N; ++v) sum[v] += (u8_full)(load<u8_full>(line + v * L) >= at) & weight;
      } else {
        const u16_full at = u16_full{} + cuts.at[c];
        const uint16_t* line = codes16[~cuts.column[c]] + first_row + r;
        for (int v = 0; v < N; ++v) {
          const s16_full low = load<u16_full>(line + v * L) >= at;
          const s16_full high = load<u16_full>(line + v * L + L / 2) >= at;
          sum[v] += narrow(low, high) & weight;
        }
      }
    }
    for (int v = 0; v < N; ++v) store(out + r + v * L, sum[v]);
  }
}

// Patterns up to 65,535.
static void __attribute__((noinline)) make_patterns(const Codes& codes, int64_t first_row, int64_t n_rows,
                                                    const Cuts& cuts, uint16_t* out) {
  const Matrix<const uint8_t> codes8 = codes.narrow;
  const Matrix<const uint16_t> codes16 = codes.wide;
  constexpr int L = FS_VECTOR_BYTES / 2, N = kPatternRows / L;
  for (int64_t r = 0; r < n_rows; r += kPatternRows) {
    u16_full sum[N];
    for (int v = 0; v < N; ++v) sum[v] = u16_full{} + static_cast<uint16_t>(cuts.base);
    for (int64_t c = cuts.first; c < cuts.last; ++c) {
      const u16_full weight = u16_full{} + static_cast<uint16_t>(cuts.weight[c]);
      if (cuts.column[c] >= 0) {
        const u8_half at = u8_half{} + static_cast<uint8_t>(cuts.at[c]);
        const uint8_t* line = codes8[cuts.column[c]] + first_row + r;
        for (int v = 0; v < N; ++v) {
          const s8_half mask = load<u8_half>(line + v * L) >= at;
          sum[v] += (u16_full) __builtin_convertvector(mask, s16_full) & weight;
        }
      } else {
        const u16_full at = u16_full{} + cuts.at[c];
        const uint16_t* line = codes16[~cuts.column[c]] + first_row + r;
        for (int v = 0; v < N; ++v) sum[v] += (u16_full)(load<u16_full>(line + v * L) >= at) & weight;
      }
    }
    for (int v = 0; v < N; ++v) store(out + r + v * L, sum[v]);
  }
}

}  // namespace fouriershap
