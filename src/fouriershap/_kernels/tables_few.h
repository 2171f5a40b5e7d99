// Looking up single rows: patterns by one comparison after the other, then tables that are prefetched.
#pragma once
#include "patterns.h"
#include "scratch.h"
#include "simd.h"

namespace fouriershap {
namespace {

constexpr int64_t kFewRows = 4;  // from here on, 64 rows at a time are faster

template <class T>
class FewRows {
 public:
  // `tables_per_flush`: number of tables after which sums are added to totals.
  FewRows(const Blocks& the_blocks, const TableSet<T>& the_tables, const Codes& the_codes,
          int64_t tables_per_flush)
      : codes(the_codes),
        blocks(the_blocks),
        tables(the_tables),
        n_tables(tables.table_block.size),
        n_columns(tables.n_players * tables.n_outputs),
        flush_after(tables_per_flush),
        code(codes.wide.rows + codes.narrow.rows),
        patterns(blocks.n()),
        sums(n_columns + 1),
        totals(n_columns) {}

  void add(int64_t row, double* out) {
    for (int64_t c = 0; c < n_columns; ++c) sums[c] = 0, totals[c] = 0.0;
    sums[n_columns] = 0;
    for (int64_t c = 0; c < codes.wide.rows; ++c) code[codes.wide.rows + ~c] = codes.wide[c][row];
    for (int64_t c = 0; c < codes.narrow.rows; ++c) code[codes.wide.rows + c] = codes.narrow[c][row];
    for (int64_t b = 0; b < blocks.n(); ++b) patterns[b] = pattern(b);
    int64_t asked = 0, since_flush = 0;
    for (int64_t g = 0; g < tables.n_groups(); ++g) {
      const int64_t first = tables.group_start[g], last = tables.group_start[g + 1];
      // Tables are fetched from memory while those before them are added.
      for (const int64_t until = last + kAhead < n_tables ? last + kAhead : n_tables; asked < until; ++asked)
        __builtin_prefetch(entry(asked));
      for (int64_t w = 0; w < tables.group_width[g]; ++w) add_group(g, w);
      // At the same tables as for many rows, so that a row's values do not depend on the other rows.
      since_flush += last - first;
      if (since_flush >= flush_after) {
        flush();
        since_flush = 0;
      }
    }
    flush();
    for (int64_t c = 0; c < n_columns; ++c) out[c] += totals[c];
  }

 private:
  static constexpr int64_t kAhead = 24;

  const T* entry(int64_t table) const {
    return tables.values + tables.table_offset[table] + patterns[tables.table_block[table]] * int64_t{kWidth};
  }

  int32_t pattern(int64_t block) const {
    const Cuts cuts = cuts_of(blocks, block, codes.missing);
    const int32_t* mine = code + codes.wide.rows;
    int32_t sum = cuts.base;
    // A branch would be mispredicted half of the time.
    for (int64_t c = cuts.first; c < cuts.last; ++c)
      sum += -static_cast<int32_t>(mine[cuts.column[c]] >= cuts.at[c]) & cuts.weight[c];
    assert(sum >= 0 && sum < blocks.n_patterns[block]);
    return sum;
  }

  void flush() {
    for (int64_t c = 0; c < n_columns; ++c) {
      totals[c] += static_cast<double>(sums[c]);
      sums[c] = 0;
    }
  }

  void add_group(int64_t g, int64_t w) {
    typedef typename Vec<T>::type V;
    constexpr int L = Vec<T>::lanes, H = kWidth / L;
    V vectors[H] = {};
    for (int64_t t = tables.group_start[g]; t < tables.group_start[g + 1]; ++t) {
      const T* mine = entry(t);
      if (w) mine += w * blocks.n_patterns[tables.table_block[t]] * kWidth;
      for (int h = 0; h < H; ++h) vectors[h] += load<V>(mine + h * L);
    }
    T sum[kWidth];
    for (int h = 0; h < H; ++h) store(sum + h * L, vectors[h]);
    const int32_t* players = tables.group_players[g];
    const int64_t output = tables.group_output[g] + w;
    for (int c = 0; c < kWidth; ++c) {
      const int64_t nobody = n_columns;
      sums[players[c] < 0 ? nobody : players[c] * tables.n_outputs + output] += sum[c];
    }
  }

  const Codes& codes;
  const Blocks& blocks;
  const TableSet<T>& tables;
  int64_t n_tables, n_columns, flush_after;
  Scratch<int32_t> code;      // of the row in each column: wide ones from the last to the first, narrow ones
  Scratch<int32_t> patterns;  // of the row in each block
  Scratch<T> sums;            // and one for columns without a player
  Scratch<double> totals;
};

}  // namespace
}  // namespace fouriershap
