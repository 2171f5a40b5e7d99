#include "tables.h"

#include <cassert>

#include "patterns.h"
#include "scratch.h"
#include "simd.h"
#include "tables_few.h"
#include "transpose.h"

namespace fouriershap {

namespace {

constexpr int64_t kFlushTables = 192;  // about so many tables are summed in float32 before float64

// Reads a number of every cache line of a table in order, which hardware prefetches; patterns are in no
// order, so that each line would be waited for. The sum is not needed, but must be used.
template <class T>
T fetch(const T* table, int64_t n) {
  constexpr int64_t kLine = kCacheLine / static_cast<int64_t>(sizeof(T));
  T sum[4] = {};
  int64_t i = 0;
  for (; i + 3 * kLine < n; i += 4 * kLine)
    for (int64_t j = 0; j < 4; ++j) sum[j] += table[i + j * kLine];
  for (; i < n; i += kLine) sum[0] += table[i];
  return sum[0] + sum[1] + sum[2] + sum[3];
}

template <class T>
int64_t flush_after(const TableSet<T>& tables) {
  if (sizeof(T) == sizeof(double)) return INT64_MAX;
  return kFlushTables + 4 * tables.n_players * tables.n_outputs;
}

// Sums the tables of a group for n_rows rows and adds them to the 8 columns of their players.
template <class T, class P>
__attribute__((noinline)) void add_group(const T* const* tables, int64_t n_tables, const P* patterns,
                                         int64_t pattern_stride, int64_t n_rows, T* const* columns) {
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

// Asserts that patterns are within their tables, which follows from the checks of codes, cuts and weights.
template <class P>
void assert_below([[maybe_unused]] const P* patterns, [[maybe_unused]] int64_t n_rows,
                  [[maybe_unused]] int64_t n_patterns) {
#ifndef NDEBUG
  for (int64_t r = 0; r < n_rows; ++r) assert(patterns[r] < n_patterns);
#endif
}

// Looks up blocks of rows in all tables.
template <class T>
struct LookUp {
  const Codes& codes;
  const Blocks& blocks;
  const TableSet<T>& tables;
  int64_t n_columns;  // (player, output)
  // Strides are not multiples of 4096 bytes, for which columns would compete for the same cache sets.
  int64_t row_stride, pattern_stride;
  AlignedScratch<uint16_t> patterns;  // of the tables of a group
  Scratch<const T*> chosen;           // these tables
  // The sums of a block of rows, a line per column: in T, and in double where T is float. One line more than
  // there are columns takes the columns of tables that have no player.
  AlignedScratch<T> sums;
  AlignedScratch<double> totals;

  static constexpr bool kExact = sizeof(T) == sizeof(double);

  LookUp(const Blocks& the_blocks, const TableSet<T>& the_tables, const Codes& the_codes,
         int64_t rows_per_block)
      : codes(the_codes),
        blocks(the_blocks),
        tables(the_tables),
        n_columns(tables.n_players * tables.n_outputs),
        row_stride(rows_per_block + 16),
        pattern_stride(rows_per_block + 64),
        patterns(most_tables() * pattern_stride),
        chosen(most_tables()),
        sums((n_columns + 1) * row_stride),
        totals(kExact ? 0 : n_columns * row_stride) {}

  int64_t most_tables() const {
    int64_t most = 1;
    for (int64_t g = 0; g < tables.n_groups(); ++g)
      if (tables.group_start[g + 1] - tables.group_start[g] > most)
        most = tables.group_start[g + 1] - tables.group_start[g];
    return most;
  }

  void clear() {
    std::memset(sums, 0, (n_columns + 1) * row_stride * sizeof(T));
    if (!kExact) std::memset(totals, 0, n_columns * row_stride * sizeof(double));
  }

  void flush() {
    if (kExact) return;
    T* from = sums;
    double* to = totals;
    const int64_t n = n_columns * row_stride;
    for (int64_t i = 0; i < n; ++i) {
      to[i] += static_cast<double>(from[i]);
      from[i] = 0;
    }
  }

  void write_out(int64_t n_rows, double* out) const {
    for (int64_t r0 = 0; r0 < n_rows; r0 += 16) {
      const int64_t rows = n_rows - r0 < 16 ? n_rows - r0 : 16;
      for (int64_t c = 0; c < n_columns; ++c)
        for (int64_t r = r0; r < r0 + rows; ++r) {
          const int64_t at = c * row_stride + r;
          out[r * n_columns + c] += kExact ? static_cast<double>(sums[at]) : totals[at];
        }
    }
  }

  // P: uint8_t where the patterns of the group's blocks fit into it.
  template <class P>
  void add_tables(int64_t group, int64_t first_row, int64_t n_rows) {
    const int64_t first = tables.group_start[group], n_tables = tables.group_start[group + 1] - first;
    P* mine = reinterpret_cast<P*>(static_cast<uint16_t*>(patterns));
    for (int64_t t = 0; t < n_tables; ++t) {
      const int32_t block = tables.table_block[first + t];
      assert(blocks.n_patterns[block] <= int64_t{1} << 8 * sizeof(P));
      make_patterns(codes, first_row, round_up(n_rows, kPatternRows), cuts_of(blocks, block, codes.missing),
                    mine + t * pattern_stride);
      assert_below(mine + t * pattern_stride, round_up(n_rows, Vec<T>::lanes), blocks.n_patterns[block]);
    }
    for (int64_t w = 0; w < tables.group_width[group]; ++w) {
      T* columns[kWidth];
      for (int c = 0; c < kWidth; ++c) {
        const int64_t player = tables.group_players[group][c];
        const int64_t output = tables.group_output[group] + w;
        assert(player < tables.n_players && output < tables.n_outputs);
        columns[c] = sums + (player < 0 ? n_columns : player * tables.n_outputs + output) * row_stride;
      }
      for (int64_t t = 0; t < n_tables; ++t) {
        const int64_t size = blocks.n_patterns[tables.table_block[first + t]] * kWidth;
        chosen[t] = tables.values + tables.table_offset[first + t] + w * size;
        // Where most lines will be read. The line of sums without a player takes the sum.
        if (n_rows * kWidth > size / 2) sums[n_columns * row_stride] += fetch(chosen[t], size);
      }
      add_group(static_cast<const T* const*>(chosen), n_tables, mine, pattern_stride,
                round_up(n_rows, Vec<T>::lanes), columns);
    }
  }

  void run(int64_t first_row, int64_t n_rows, double* out) {
    clear();
    int64_t since_flush = 0;
    for (int64_t g = 0; g < tables.n_groups(); ++g) {
      // The same for all tables of a group.
      if (blocks.n_patterns[tables.table_block[tables.group_start[g]]] <= kBytePatterns)
        add_tables<uint8_t>(g, first_row, n_rows);
      else
        add_tables<uint16_t>(g, first_row, n_rows);
      since_flush += tables.group_start[g + 1] - tables.group_start[g];
      if (since_flush >= flush_after(tables)) {
        flush();
        since_flush = 0;
      }
    }
    flush();
    write_out(n_rows, out);
  }
};

}  // namespace

// Four sums per pattern: consecutive rows often share a pattern, and one sum would wait for itself.
template <class T, class Weight>
void add_bytes(const uint8_t* pattern, int64_t n_rows, Weight weight, T* sums) {
  int64_t r = 0;
  for (; r + 4 <= n_rows; r += 4)
    for (int i = 0; i < 4; ++i) sums[256 * i + pattern[r + i]] += weight(r + i);
  for (; r < n_rows; ++r) sums[pattern[r]] += weight(r);
}

void histogram(const Blocks& blocks, const Codes& codes, const Histograms& histograms) {
  constexpr int64_t kRows = 4096;
  alignas(kCacheLine) uint16_t wide[kRows];
  alignas(kCacheLine) uint8_t narrow[kRows];
  alignas(kCacheLine) uint32_t counts[4 * 256];
  alignas(kCacheLine) double sums[4 * 256];
  const bool weighted = histograms.weights.rows > 0;
  const int64_t n_channels = histograms.out.columns;
  for (int64_t b = histograms.first_block; b < histograms.last_block; ++b) {
    const Cuts cuts = cuts_of(blocks, b, codes.missing);
    double* mine = histograms.out.data + histograms.offset[b] * n_channels;
    const int64_t n_patterns = blocks.n_patterns[b];
    const bool bytes = n_patterns <= kBytePatterns && n_channels == 1;
    if (bytes) {
      std::memset(counts, 0, sizeof counts);
      std::memset(sums, 0, sizeof sums);
    }
    for (int64_t r0 = 0; r0 < codes.n_rows; r0 += kRows) {
      const int64_t rows = codes.n_rows - r0 < kRows ? codes.n_rows - r0 : kRows;
      const int64_t padded = round_up(rows, kPatternRows);
      if (bytes) {
        make_patterns(codes, r0, padded, cuts, narrow);
        assert_below(narrow, rows, n_patterns);
        if (weighted) {
          const double* from = histograms.weights[r0];
          add_bytes(narrow, rows, [from](int64_t r) { return from[r]; }, sums);
        } else {
          add_bytes(narrow, rows, [](int64_t) { return 1u; }, counts);
        }
      } else {
        make_patterns(codes, r0, padded, cuts, wide);
        assert_below(wide, rows, n_patterns);
        if (!weighted)
          for (int64_t r = 0; r < rows; ++r) mine[wide[r]] += 1.0;
        for (int64_t r = 0; weighted && r < rows; ++r) {
          const double* from = histograms.weights[r0 + r];
          double* to = mine + wide[r] * n_channels;
          for (int64_t q = 0; q < n_channels; ++q) to[q] += from[q];
        }
      }
    }
    for (int64_t p = 0; bytes && p < n_patterns; ++p)
      for (int i = 0; i < 4; ++i) mine[p] += weighted ? sums[256 * i + p] : counts[256 * i + p];
  }
}

template <class T>
void explain(const Blocks& blocks, const TableSet<T>& tables, const Codes& codes, int64_t rows_per_block,
             double* out) {
  if (codes.n_rows < kFewRows) {
    FewRows<T> few(blocks, tables, codes, flush_after(tables));
    for (int64_t row = 0; row < codes.n_rows; ++row)
      few.add(row, out + row * tables.n_players * tables.n_outputs);
    return;
  }
  const int64_t rows = round_up(rows_per_block < codes.n_rows ? rows_per_block : codes.n_rows, kPatternRows);
  LookUp<T> look_up(blocks, tables, codes, rows);
  for (int64_t r0 = 0; r0 < codes.n_rows; r0 += rows)
    look_up.run(r0, codes.n_rows - r0 < rows ? codes.n_rows - r0 : rows, out + r0 * look_up.n_columns);
}

template void explain(const Blocks&, const TableSet<float>&, const Codes&, int64_t, double*);
template void explain(const Blocks&, const TableSet<double>&, const Codes&, int64_t, double*);

}  // namespace fouriershap
