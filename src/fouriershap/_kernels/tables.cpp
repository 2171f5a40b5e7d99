#include "tables.h"

#include <cstdlib>

#include "patterns.h"
#include "simd.h"
#include "transpose.h"

namespace fouriershap {
namespace FS_LEVEL {

namespace {

constexpr int kWidth = 8;            // players of a table
constexpr int64_t kFlushTables = 96;  // float32 sums go into float64 totals after about so many tables

inline int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

template <class T>
inline T* allocate(int64_t n) {
  return static_cast<T*>(std::aligned_alloc(64, round_up(n * sizeof(T) + 64, 64)));
}

// Sums the tables of a group for n_rows rows and adds them to the 8 columns of their players.
template <class T, class P>
__attribute__((noinline)) void add_group(const T* const* tables, int64_t n_tables, const P* patterns, int64_t pattern_stride,
               int64_t n_rows, T* const* columns) {
  typedef typename Vec<T>::type V;
  constexpr int L = Vec<T>::lanes, H = kWidth / L;
  for (int64_t r = 0; r < n_rows; r += L) {
    V sum[H][L] = {};
    for (int64_t t = 0; t < n_tables; ++t) {
      const T* table = tables[t];
      const P* pattern = patterns + t * pattern_stride + r;
#pragma GCC unroll 8
      for (int i = 0; i < L; ++i) {
        const T* entry = table + static_cast<int64_t>(pattern[i]) * kWidth;
#pragma GCC unroll 8
        for (int h = 0; h < H; ++h) sum[h][i] += load<V>(entry + h * L);
      }
    }
#pragma GCC unroll 8
    for (int h = 0; h < H; ++h) {
      transpose(sum[h]);
#pragma GCC unroll 8
      for (int i = 0; i < L; ++i) {
        T* column = columns[h * L + i] + r;
        store(column, load<V>(column) + sum[h][i]);
      }
    }
  }
}

// Sums of one block of rows, a line per (player, output): in T, and in double where T is float.
template <class T>
struct Totals {
  T* sums;
  double* totals;
  int64_t n_columns, stride;
};

template <class T>
void flush(const Totals<T>& total) {
  if (!total.totals) return;
  const int64_t n = total.n_columns * total.stride;
  for (int64_t i = 0; i < n; ++i) {
    total.totals[i] += static_cast<double>(total.sums[i]);
    total.sums[i] = 0;
  }
}

template <class T>
void write_out(const Totals<T>& total, int64_t n_rows, double* out) {
  for (int64_t r0 = 0; r0 < n_rows; r0 += 16) {
    const int64_t rows = n_rows - r0 < 16 ? n_rows - r0 : 16;
    for (int64_t c = 0; c < total.n_columns; ++c)
      for (int64_t r = r0; r < r0 + rows; ++r)
        out[r * total.n_columns + c] +=
            total.totals ? total.totals[c * total.stride + r] : static_cast<double>(total.sums[c * total.stride + r]);
  }
}

}  // namespace

void histogram(const uint8_t* codes8, const uint16_t* codes16, int64_t stride, int64_t n_rows, bool missing,
               const double* weights, const int32_t* cut_start, const int32_t* cut_missing,
               const int32_t* cut_column, const uint16_t* cut_at, const int32_t* cut_weight, const int32_t* block_base,
               const int32_t* block_patterns, const int64_t* offset, int64_t first_block,
               int64_t last_block, double* out) {
  constexpr int64_t kRows = 4096;
  uint16_t* wide = allocate<uint16_t>(kRows);
  uint8_t* narrow = allocate<uint8_t>(kRows);
  uint32_t* counts = allocate<uint32_t>(4 * 256);
  for (int64_t b = first_block; b < last_block; ++b) {
    const int64_t last_cut = missing ? cut_start[b + 1] : cut_missing[b];
    const Cuts cuts = {cut_column, cut_at, cut_weight, cut_start[b], last_cut, block_base[b]};
    double* mine = out + offset[b];
    const int64_t n_patterns = block_patterns[b];
    const bool count = n_patterns <= 256 && !weights;
    if (count) std::memset(counts, 0, 4 * 256 * sizeof(uint32_t));
    for (int64_t r0 = 0; r0 < n_rows; r0 += kRows) {
      const int64_t rows = n_rows - r0 < kRows ? n_rows - r0 : kRows;
      const int64_t padded = round_up(rows, kPatternRows);
      if (count) {
        // Four counters per pattern: rows in a row often share one, and a counter would wait for itself.
        make_patterns(codes8, codes16, stride, r0, padded, cuts, narrow);
        int64_t r = 0;
        for (; r + 4 <= rows; r += 4)
          for (int i = 0; i < 4; ++i) ++counts[256 * i + narrow[r + i]];
        for (; r < rows; ++r) ++counts[narrow[r]];
      } else {
        make_patterns(codes8, codes16, stride, r0, padded, cuts, wide);
        for (int64_t r = 0; r < rows; ++r) mine[wide[r]] += weights ? weights[r0 + r] : 1.0;
      }
    }
    if (count)
      for (int64_t p = 0; p < n_patterns; ++p)
        mine[p] += static_cast<double>(counts[p]) + counts[256 + p] + counts[512 + p] + counts[768 + p];
  }
  std::free(counts);
  std::free(narrow);
  std::free(wide);
}

template <class T>
void explain(const uint8_t* codes8, const uint16_t* codes16, int64_t stride, int64_t n_rows, bool missing,
             const int32_t* cut_start, const int32_t* cut_missing, const int32_t* cut_column, const uint16_t* cut_at,
             const int32_t* cut_weight, const int32_t* block_base, const int32_t* block_patterns,
             const int32_t* table_block, const int64_t* table_offset, const int32_t* group_start,
             const int32_t* group_players, const int32_t* group_output, const int32_t* group_width,
             int64_t n_groups, const T* values, int64_t rows_per_block, int64_t n_players,
             int64_t n_outputs, double* out) {
  int64_t most_tables = 1;
  for (int64_t g = 0; g < n_groups; ++g)
    if (group_start[g + 1] - group_start[g] > most_tables) most_tables = group_start[g + 1] - group_start[g];
  if (rows_per_block > n_rows) rows_per_block = n_rows;
  rows_per_block = round_up(rows_per_block, kPatternRows);
  const int64_t n_columns = n_players * n_outputs;
  // Strides that are not a multiple of 4096 bytes: columns would fight for the same cache sets.
  const int64_t row_stride = rows_per_block + 16;
  const int64_t pattern_stride = rows_per_block + 64;
  uint16_t* patterns = allocate<uint16_t>(most_tables * pattern_stride);
  const T** tables = allocate<const T*>(most_tables);
  // One line more than there are columns: unused table columns are added there.
  const int64_t n_sums = (n_columns + 1) * row_stride;
  constexpr bool exact = sizeof(T) == sizeof(double);
  Totals<T> total = {allocate<T>(n_sums), exact ? nullptr : allocate<double>(n_columns * row_stride),
                     n_columns, row_stride};
  for (int64_t r0 = 0; r0 < n_rows; r0 += rows_per_block) {
    const int64_t rows = n_rows - r0 < rows_per_block ? n_rows - r0 : rows_per_block;
    const int64_t padded = round_up(rows, kPatternRows), lanes = round_up(rows, Vec<T>::lanes);
    std::memset(total.sums, 0, n_sums * sizeof(T));
    if (total.totals) std::memset(total.totals, 0, n_columns * row_stride * sizeof(double));
    int64_t since_flush = 0;
    for (int64_t g = 0; g < n_groups; ++g) {
      const int64_t first = group_start[g], n_tables = group_start[g + 1] - first;
      const bool narrow = block_patterns[table_block[first]] <= 256;  // the same for all tables of a group
      for (int64_t t = 0; t < n_tables; ++t) {
        const int32_t b = table_block[first + t];
        const int64_t last_cut = missing ? cut_start[b + 1] : cut_missing[b];
        const Cuts cuts = {cut_column, cut_at, cut_weight, cut_start[b], last_cut, block_base[b]};
        if (narrow)
          make_patterns(codes8, codes16, stride, r0, padded, cuts,
                        reinterpret_cast<uint8_t*>(patterns) + t * pattern_stride);
        else
          make_patterns(codes8, codes16, stride, r0, padded, cuts, patterns + t * pattern_stride);
      }
      for (int64_t w = 0; w < group_width[g]; ++w) {
        T* columns[kWidth];
        for (int c = 0; c < kWidth; ++c) {
          const int64_t player = group_players[g * kWidth + c];
          const int64_t column = player < 0 ? n_columns : player * n_outputs + group_output[g] + w;
          columns[c] = total.sums + column * row_stride;
        }
        for (int64_t t = 0; t < n_tables; ++t)
          tables[t] = values + table_offset[first + t] + w * block_patterns[table_block[first + t]] * kWidth;
        if (narrow)
          add_group(tables, n_tables, reinterpret_cast<const uint8_t*>(patterns), pattern_stride, lanes, columns);
        else
          add_group(tables, n_tables, patterns, pattern_stride, lanes, columns);
      }
      since_flush += n_tables;
      if (since_flush >= kFlushTables + 2 * n_columns) {
        flush(total);
        since_flush = 0;
      }
    }
    flush(total);
    write_out(total, rows, out + r0 * n_columns);
  }
  std::free(total.totals);
  std::free(total.sums);
  std::free(tables);
  std::free(patterns);
}

#define FS_INSTANTIATE(T)                                                                                    \
  template void explain<T>(const uint8_t*, const uint16_t*, int64_t, int64_t, bool, const int32_t*,          \
                           const int32_t*, const int32_t*, const uint16_t*, const int32_t*, const int32_t*, \
                           const int32_t*, const int32_t*, const int64_t*, const int32_t*, const int32_t*,  \
                           const int32_t*, const int32_t*, int64_t, const T*, int64_t, int64_t, int64_t, double*);
FS_INSTANTIATE(float)
FS_INSTANTIATE(double)

}  // namespace FS_LEVEL
}  // namespace fouriershap
