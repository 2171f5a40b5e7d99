#include "binding.h"

#define FS_LEVEL baseline
#include "tables.h"
#undef FS_LEVEL
#define FS_LEVEL avx2
#include "tables.h"
#undef FS_LEVEL

namespace fouriershap {

static void histogram(In<uint8_t, 2> codes8, In<uint16_t, 2> codes16, int64_t n_rows, bool missing,
                      In<double, 1> weights, In<int32_t, 1> cut_start, In<int32_t, 1> cut_missing,
                      In<int32_t, 1> cut_column, In<uint16_t, 1> cut_at, In<int32_t, 1> cut_weight,
                      In<int32_t, 1> block_base, In<int32_t, 1> block_patterns, In<int64_t, 1> offset,
                      int64_t first_block, int64_t last_block, Out<double, 1> out) {
  FS_PICK(histogram)(
      {codes8.data(), codes16.data(), length(codes8), length(codes16), length(codes8, 1), n_rows, missing},
      {cut_start.data(), cut_missing.data(), cut_column.data(), cut_at.data(), cut_weight.data(),
       block_base.data(), block_patterns.data(), length(block_base)},
      {optional(weights), offset.data(), first_block, last_block, out.data()});
}

template <class T>
static void explain(In<uint8_t, 2> codes8, In<uint16_t, 2> codes16, int64_t n_rows, bool missing,
                    In<int32_t, 1> cut_start, In<int32_t, 1> cut_missing, In<int32_t, 1> cut_column,
                    In<uint16_t, 1> cut_at, In<int32_t, 1> cut_weight, In<int32_t, 1> block_base,
                    In<int32_t, 1> block_patterns, In<int32_t, 1> table_block, In<int64_t, 1> table_offset,
                    In<int32_t, 1> group_start, In<int32_t, 2> group_players, In<int32_t, 1> group_output,
                    In<int32_t, 1> group_width, Exactly<const T, 1> values, int64_t rows_per_block,
                    Out<double, 3> out) {
  const TableSet<T> tables = {
      table_block.data(), table_offset.data(),  group_start.data(), group_players.data(), group_output.data(),
      group_width.data(), length(group_output), values.data(),      length(out, 1),       length(out, 2)};
  require(FS_PICK(explain<T>)(
      {codes8.data(), codes16.data(), length(codes8), length(codes16), length(codes8, 1), n_rows, missing},
      {cut_start.data(), cut_missing.data(), cut_column.data(), cut_at.data(), cut_weight.data(),
       block_base.data(), block_patterns.data(), length(block_base)},
      tables, rows_per_block, out.data()));
}

void bind_tables(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("tables", "Patterns, histograms and look-ups.");
  m.def("histogram", &histogram, FreeGil());
  m.def("explain", &explain<float>, FreeGil());
  m.def("explain", &explain<double>, FreeGil());
}

}  // namespace fouriershap
