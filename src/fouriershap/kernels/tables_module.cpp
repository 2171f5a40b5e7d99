#include "binding.h"

#define FS_LEVEL baseline
#include "tables.h"
#undef FS_LEVEL
#define FS_LEVEL avx2
#include "tables.h"
#undef FS_LEVEL

namespace fouriershap {

static void histogram(In<uint8_t, 2> codes8, In<uint16_t, 2> codes16, int64_t n_rows, In<double, 1> weights,
                      In<int32_t, 1> cut_start, In<int32_t, 1> cut_column, In<uint16_t, 1> cut_at,
                      In<int32_t, 1> cut_weight, In<int32_t, 1> block_base, In<int32_t, 1> block_patterns,
                      In<int64_t, 1> offset, int64_t first_block, int64_t last_block, Out<double, 1> out) {
  FS_PICK(histogram)(codes8.data(), codes16.data(), codes8.shape(1), n_rows,
                     weights.shape(0) ? weights.data() : nullptr, cut_start.data(), cut_column.data(),
                     cut_at.data(), cut_weight.data(), block_base.data(), block_patterns.data(),
                     offset.data(), first_block, last_block, out.data());
}

template <class T>
static void explain(In<uint8_t, 2> codes8, In<uint16_t, 2> codes16, int64_t n_rows,
                    In<int32_t, 1> cut_start, In<int32_t, 1> cut_column, In<uint16_t, 1> cut_at,
                    In<int32_t, 1> cut_weight, In<int32_t, 1> block_base, In<int32_t, 1> block_patterns,
                    In<int32_t, 1> table_block, In<int64_t, 1> table_offset, In<int32_t, 1> group_start,
                    In<int32_t, 2> group_players, In<int32_t, 1> group_output, In<int32_t, 1> group_width,
                    In<T, 1> values, int64_t rows_per_block, Out<double, 3> out) {
  FS_PICK(explain<T>)(codes8.data(), codes16.data(), codes8.shape(1), n_rows, cut_start.data(),
                      cut_column.data(), cut_at.data(), cut_weight.data(), block_base.data(),
                      block_patterns.data(), table_block.data(), table_offset.data(), group_start.data(),
                      group_players.data(), group_output.data(), group_width.data(),
                      group_output.shape(0), values.data(), rows_per_block, out.shape(1), out.shape(2),
                      out.data());
}

static void spectrum_tables(In<int32_t, 1> block_bits, In<int64_t, 1> histogram_offset,
                            In<double, 1> histograms, In<int64_t, 1> term_start, In<uint32_t, 1> term_mask,
                            In<double, 2> coefficients, In<double, 3> shares, In<int32_t, 1> table_block,
                            In<int64_t, 1> table_offset, In<int32_t, 2> table_slots, int64_t first_table,
                            int64_t last_table, Out<double, 1> values) {
  FS_PICK(spectrum_tables)(block_bits.data(), histogram_offset.data(), histograms.data(), term_start.data(),
                           term_mask.data(), coefficients.data(), coefficients.shape(1), shares.data(),
                           shares.shape(1), table_block.data(), table_offset.data(), table_slots.data(),
                           table_slots.shape(1), first_table, last_table, values.data());
}

static int64_t cover(In<int64_t, 1> start, In<int32_t, 1> atoms, int64_t n_atoms, int64_t max_atoms,
                     In<int64_t, 1> weights, Out<int32_t, 1> block_of_term, Out<int64_t, 1> block_start,
                     Out<int32_t, 1> block_atoms) {
  return FS_PICK(cover)(start.data(), atoms.data(), start.shape(0) - 1, n_atoms, max_atoms, weights.data(),
                        block_of_term.data(), block_start.data(), block_atoms.data());
}

static int64_t group(In<int64_t, 1> start, In<int32_t, 1> players, In<int32_t, 1> kinds, int64_t n_players,
                     int64_t most_tables, Out<int32_t, 1> group_of_table, Out<int32_t, 2> group_players) {
  return FS_PICK(group)(start.data(), players.data(), kinds.data(), kinds.shape(0), n_players, most_tables,
                        group_of_table.data(), group_players.data());
}

void bind_tables(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("tables", "Patterns, histograms and look-ups.");
  const auto free_gil = nb::call_guard<nb::gil_scoped_release>();
  const nb::arg in;
  const auto exactly = nb::arg().noconvert();  // outputs are written in place: a converted copy would be lost
  m.def("histogram", &histogram, in, in, in, in, in, in, in, in, in, in, in, in, in, exactly, free_gil);
  // The type of the values decides the precision, so they are never converted either.
  m.def("explain", &explain<float>, in, in, in, in, in, in, in, in, in, in, in, in, in, in, in, exactly, in,
        exactly, free_gil);
  m.def("explain", &explain<double>, in, in, in, in, in, in, in, in, in, in, in, in, in, in, in, exactly, in,
        exactly, free_gil);
  m.def("spectrum_tables", &spectrum_tables, in, in, in, in, in, in, in, in, in, in, in, in, exactly, free_gil);
  m.def("cover", &cover, in, in, in, in, in, exactly, exactly, exactly, free_gil);
  m.def("group", &group, in, in, in, in, in, exactly, exactly, free_gil);
}

}  // namespace fouriershap
