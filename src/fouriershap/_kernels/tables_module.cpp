#include "binding.h"

#define FS_LEVEL baseline
#include "tables.h"
#undef FS_LEVEL
#define FS_LEVEL avx2
#include "tables.h"
#undef FS_LEVEL

namespace fouriershap {

static void histogram(In<uint8_t, 2> codes8, In<uint16_t, 2> codes16, int64_t n_rows, bool missing,
                      In<double, 1> weights, In<int32_t, 1> cut_start, In<int32_t, 1> cut_missing, In<int32_t, 1> cut_column, In<uint16_t, 1> cut_at,
                      In<int32_t, 1> cut_weight, In<int32_t, 1> block_base, In<int32_t, 1> block_patterns,
                      In<int64_t, 1> offset, int64_t first_block, int64_t last_block, Out<double, 1> out) {
  FS_PICK(histogram)(codes8.data(), codes16.data(), codes8.shape(1), n_rows, missing,
                     weights.shape(0) ? weights.data() : nullptr, cut_start.data(), cut_missing.data(), cut_column.data(),
                     cut_at.data(), cut_weight.data(), block_base.data(), block_patterns.data(),
                     offset.data(), first_block, last_block, out.data());
}

template <class T>
static void explain(In<uint8_t, 2> codes8, In<uint16_t, 2> codes16, int64_t n_rows, bool missing,
                    In<int32_t, 1> cut_start, In<int32_t, 1> cut_missing, In<int32_t, 1> cut_column, In<uint16_t, 1> cut_at,
                    In<int32_t, 1> cut_weight, In<int32_t, 1> block_base, In<int32_t, 1> block_patterns,
                    In<int32_t, 1> table_block, In<int64_t, 1> table_offset, In<int32_t, 1> group_start,
                    In<int32_t, 2> group_players, In<int32_t, 1> group_output, In<int32_t, 1> group_width,
                    In<T, 1> values, int64_t rows_per_block, Out<double, 3> out) {
  FS_PICK(explain<T>)(codes8.data(), codes16.data(), codes8.shape(1), n_rows, missing, cut_start.data(),
                      cut_missing.data(), cut_column.data(), cut_at.data(), cut_weight.data(), block_base.data(),
                      block_patterns.data(), table_block.data(), table_offset.data(), group_start.data(),
                      group_players.data(), group_output.data(), group_width.data(),
                      group_output.shape(0), values.data(), rows_per_block, out.shape(1), out.shape(2),
                      out.data());
}

template <class T>
static bool encode(In<T, 2> rows, In<T, 1> tiers, In<int64_t, 1> tier_start, In<int64_t, 1> n_levels,
                   In<bool, 1> categorical, In<int32_t, 1> column, Out<uint8_t, 2> codes8,
                   Out<uint16_t, 2> codes16) {
  return FS_PICK(encode<T>)(rows.data(), rows.shape(0), rows.shape(1), tiers.data(), tier_start.data(),
                            n_levels.data(), categorical.data(), column.data(), codes8.data(),
                            codes16.data(), nullptr, codes8.shape(1));
}

template <class T>
static bool encode32(In<T, 2> rows, In<T, 1> tiers, In<int64_t, 1> tier_start, In<int64_t, 1> n_levels,
                     In<bool, 1> categorical, Out<int32_t, 2> codes) {
  return FS_PICK(encode<T>)(rows.data(), rows.shape(0), rows.shape(1), tiers.data(), tier_start.data(),
                            n_levels.data(), categorical.data(), nullptr, nullptr, nullptr, codes.data(),
                            codes.shape(1));
}

static void pages(In<uint16_t, 2> codes16, int64_t n_rows, In<int32_t, 1> source, In<int64_t, 1> offset,
                  In<uint8_t, 1> lut, int64_t first_line, Out<uint8_t, 2> codes8) {
  FS_PICK(pages)(codes16.data(), codes16.shape(1), n_rows, source.data(), offset.data(), source.shape(0),
                 lut.data(), first_line, codes8.data());
}

void bind_tables(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("tables", "Patterns, histograms and look-ups.");
  const auto free_gil = nb::call_guard<nb::gil_scoped_release>();
  const nb::arg in;
  const auto exactly = nb::arg().noconvert();  // outputs are written in place: a converted copy would be lost
  m.def("histogram", &histogram, in, in, in, in, in, in, in, in, in, in, in, in, in, in, in, exactly, free_gil);
  // The type of the values decides the precision, so they are never converted either.
  m.def("explain", &explain<float>, in, in, in, in, in, in, in, in, in, in, in, in, in, in, in, in, in, exactly, in,
        exactly, free_gil);
  m.def("explain", &explain<double>, in, in, in, in, in, in, in, in, in, in, in, in, in, in, in, in, in, exactly, in,
        exactly, free_gil);
  // The type of the rows is that of the levels.
  m.def("encode", &encode<float>, exactly, exactly, in, in, in, in, exactly, exactly, free_gil);
  m.def("encode", &encode<double>, exactly, exactly, in, in, in, in, exactly, exactly, free_gil);
  m.def("pages", &pages, in, in, in, in, in, in, exactly, free_gil);
  m.def("encode32", &encode32<float>, exactly, exactly, in, in, in, exactly, free_gil);
  m.def("encode32", &encode32<double>, exactly, exactly, in, in, in, exactly, free_gil);
}

}  // namespace fouriershap
