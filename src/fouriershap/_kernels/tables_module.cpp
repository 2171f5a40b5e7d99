#include <algorithm>
#include <limits>
#include <tuple>

#include "binding.h"
#include "tables.h"

namespace fouriershap {

class BoundBlocks : Owner, public Blocks {
 public:
  int64_t n_narrow = 0, n_wide = 0;  // lines of codes, at least

  BoundBlocks(In<int32_t, 1> start, In<int32_t, 1> missing, In<int32_t, 1> column, In<uint16_t, 1> at,
              In<int32_t, 1> weight, In<int32_t, 1> block_base, In<int32_t, 1> patterns)
      : Blocks{keep(start),  keep(missing),    keep(column),  keep(at),
               keep(weight), keep(block_base), keep(patterns)} {
    check_starts("cut_start", cut_start, n(), cut_column.size);
    check_length("cut_missing", cut_missing.size, n());
    check_length("cut_at", cut_at.size, cut_column.size);
    check_length("cut_weight", cut_weight.size, cut_column.size);
    check_length("n_patterns", n_patterns.size, n());
    check_range("n_patterns", n_patterns, 1, 65537);
    for (const int32_t line : cut_column)
      line >= 0 ? n_narrow = std::max(n_narrow, int64_t{line} + 1)
                : n_wide = std::max(n_wide, -int64_t{line});
    for (int64_t c = 0; c < cut_at.size; ++c)
      check(cut_column[c] < 0 || cut_at[c] < kBytePatterns, "`cut_at` has a cut beyond a byte.");
    for (int64_t b = 0; b < n(); ++b) {
      check_slice("cut_missing", cut_missing[b] - cut_start[b], cut_start[b + 1] - cut_start[b],
                  cut_start[b + 1] - cut_start[b]);
      check_patterns(b, cut_missing[b]);
      check_patterns(b, cut_start[b + 1]);
    }
  }

  Codes codes(const In<uint8_t, 2>& narrow, const In<uint16_t, 2>& wide, int64_t n_rows, bool missing) const {
    check_at_least("codes8", length(narrow), n_narrow);
    check_at_least("codes16", length(wide), n_wide);
    check_length("codes16.shape[1]", length(wide, 1), length(narrow, 1));
    check_slice("rows", 0, n_rows, length(narrow, 1));
    check(length(narrow, 1) % 64 == 0, "`codes8` must be padded to a multiple of 64 columns.");
    return {view(narrow), view(wide), n_rows, missing};
  }

 private:
  std::vector<std::tuple<int32_t, uint16_t, int32_t>> cuts;

  // No codes may lead to a pattern out of range by the cuts before `last`: bounds the sum over lines of what
  // they add.
  void check_patterns(int64_t b, int64_t last) {
    cuts.clear();
    for (int64_t c = cut_start[b]; c < last; ++c) cuts.emplace_back(cut_column[c], cut_at[c], cut_weight[c]);
    std::sort(cuts.begin(), cuts.end());
    int64_t least = base[b], most = base[b], sum = 0, low = 0, high = 0;
    for (size_t i = 0; i < cuts.size(); ++i) {
      sum += std::get<2>(cuts[i]);
      const bool same_line = i + 1 < cuts.size() && std::get<0>(cuts[i]) == std::get<0>(cuts[i + 1]);
      if (same_line && std::get<1>(cuts[i]) == std::get<1>(cuts[i + 1])) continue;
      low = std::min(low, sum);
      high = std::max(high, sum);
      if (same_line) continue;
      least += low;
      most += high;
      sum = low = high = 0;
    }
    check(least >= 0 && most < n_patterns[b],
          "`cut_weight` leads to a pattern that its block does not have.");
  }
};

template <class T>
class BoundTables : Owner, public TableSet<T> {
 public:
  const BoundBlocks& blocks;

  BoundTables(const BoundBlocks& the_blocks, In<int32_t, 1> block, In<int64_t, 1> offset,
              In<int32_t, 1> start, In<int32_t, 2> group_players, In<int32_t, 1> group_output,
              In<int32_t, 1> group_width, Exactly<const T, 1> numbers, int64_t n_players, int64_t n_outputs)
      : TableSet<T>{keep(block),         keep(offset),       keep(start),
                    keep(group_players), keep(group_output), keep(group_width),
                    keep(numbers),       n_players,          n_outputs},
        blocks(the_blocks) {
    const TableSet<T>& t = *this;
    check_range("table_block", t.table_block, 0, blocks.n());
    check_length("table_offset", t.table_offset.size, t.table_block.size);
    check_starts("group_start", t.group_start, t.n_groups(), t.table_block.size);
    check_length("group_start[-1]", t.group_start[t.n_groups()], t.table_block.size);
    check_length("group_players", t.group_players.rows, t.n_groups());
    check_length("group_players.shape[1]", t.group_players.columns, kWidth);
    check_range("group_players", t.group_players.flat(), -1, n_players);
    check_length("group_width", t.group_width.size, t.n_groups());
    for (int64_t g = 0; g < t.n_groups(); ++g) {
      check_slice("group_output", t.group_output[g], t.group_output[g] + t.group_width[g], n_outputs);
      check_group(g);
    }
  }

 private:
  void check_group(int64_t g) const {
    const int64_t first = this->group_start[g], last = this->group_start[g + 1];
    check(first < last && this->group_width[g] > 0, "`group_start` has a group without tables or outputs.");
    for (int64_t i = first; i < last; ++i) {
      const int64_t n_patterns = blocks.n_patterns[this->table_block[i]];
      check((n_patterns <= kBytePatterns) == (blocks.n_patterns[this->table_block[first]] <= kBytePatterns),
            "`group_start` puts tables of more than 256 patterns together with others.");
      check_slice("values", this->table_offset[i],
                  this->table_offset[i] + this->group_width[g] * n_patterns * kWidth, this->values.size);
    }
  }
};

static void count_patterns(const BoundBlocks& blocks, In<uint8_t, 2> codes8, In<uint16_t, 2> codes16,
                           int64_t n_rows, bool missing, In<double, 2> weights, In<int64_t, 1> offset,
                           int64_t first_block, int64_t last_block, Out<double, 2> out) {
  const Codes codes = blocks.codes(codes8, codes16, n_rows, missing);
  if (length(weights)) check_length("weights", length(weights), n_rows);
  check_length("out.shape[1]", length(out, 1), length(weights) ? length(weights, 1) : 1);
  check_length("offset", length(offset), blocks.n() + 1);
  check_slice("blocks", first_block, last_block, blocks.n());
  for (int64_t b = first_block; b < last_block; ++b)
    check_slice("out", view(offset)[b], view(offset)[b] + blocks.n_patterns[b], length(out));
  histogram(blocks, codes, {view(weights), view(offset), first_block, last_block, view(out)});
}

template <class T>
static void look_up(const BoundTables<T>& tables, In<uint8_t, 2> codes8, In<uint16_t, 2> codes16,
                    int64_t n_rows, bool missing, int64_t rows_per_block, Out<double, 3> out) {
  const Codes codes = tables.blocks.codes(codes8, codes16, n_rows, missing);
  check_length("out", length(out), n_rows);
  check_length("out.shape[1]", length(out, 1), tables.n_players);
  check_length("out.shape[2]", length(out, 2), tables.n_outputs);
  check(rows_per_block > 0, "`rows_per_block` must be positive.");
  explain<T>(tables.blocks, tables, codes, rows_per_block, out.data());
}

template <class T>
static void bind_tables_of(nb::module_& m, const char* name) {
  nb::class_<BoundTables<T>>(m, name);
  m.def(
      "TableSet",
      [](const BoundBlocks& blocks, In<int32_t, 1> table_block, In<int64_t, 1> table_offset,
         In<int32_t, 1> group_start, In<int32_t, 2> group_players, In<int32_t, 1> group_output,
         In<int32_t, 1> group_width, Exactly<const T, 1> values, int64_t n_players, int64_t n_outputs) {
        return new BoundTables<T>(blocks, table_block, table_offset, group_start, group_players, group_output,
                                  group_width, values, n_players, n_outputs);
      },
      nb::keep_alive<0, 1>());
  m.def("explain", &look_up<T>, FreeGil());
}

void bind_tables(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("tables", "Patterns, histograms and look-ups.");
  nb::class_<BoundBlocks>(m, "Blocks")
      .def(nb::init<In<int32_t, 1>, In<int32_t, 1>, In<int32_t, 1>, In<uint16_t, 1>, In<int32_t, 1>,
                    In<int32_t, 1>, In<int32_t, 1>>());
  m.def("histogram", &count_patterns, FreeGil());
  bind_tables_of<float>(m, "_TableSet32");
  bind_tables_of<double>(m, "_TableSet64");
}

}  // namespace fouriershap
