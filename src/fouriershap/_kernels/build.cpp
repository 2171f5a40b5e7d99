#include "build.h"

#include "binding.h"

namespace fouriershap {

class BoundSpectrumBlocks : Owner, public SpectrumBlocks {
 public:
  BoundSpectrumBlocks(In<int32_t, 1> block_bits, In<int64_t, 1> offset, In<double, 1> the_histograms,
                      In<int64_t, 1> the_term_start, In<uint32_t, 1> mask, In<double, 2> the_coefficients,
                      In<double, 3> the_shares)
      : SpectrumBlocks{.bits = keep(block_bits),
                       .histogram_offset = keep(offset),
                       .histograms = keep(the_histograms),
                       .term_start = keep(the_term_start),
                       .term_mask = keep(mask),
                       .coefficients = keep(the_coefficients),
                       .shares = keep(the_shares),
                       .shares_side = length(the_shares, 1),
                       .order = length(the_shares, 2) - 1} {
    check(order == 1 || order == 2, "`shares` must be of players or of pairs.");
    check_length("shares", length(the_shares), shares_side);
    check_length("coefficients", coefficients.rows, term_mask.size);
    check_range("block_bits", bits, 0, 32);
    check_starts("histogram_offset", histogram_offset, bits.size, histograms.size);
    check_starts("term_start", term_start, bits.size, term_mask.size);
    for (int64_t b = 0; b < bits.size; ++b) {
      const int64_t size = int64_t{1} << bits[b];
      check_length("histograms", histogram_offset[b + 1] - histogram_offset[b], size);
      for (int64_t k = term_start[b]; k < term_start[b + 1]; ++k)
        check(term_mask[k] < size && __builtin_popcount(term_mask[k]) < shares_side,
              "`term_mask` has more atoms than its block or `shares` has.");
    }
  }
};

static void fill(const BoundSpectrumBlocks& blocks, In<int32_t, 1> table_block, In<int64_t, 1> table_offset,
                 In<int32_t, 2> table_slots, Out<double, 1> values) {
  const SpectrumTables tables = {view(table_block), view(table_offset), view(table_slots), view(values)};
  check_range("table_block", tables.block, 0, blocks.bits.size);
  check_length("table_offset", tables.offset.size, tables.block.size);
  check_length("table_slots", tables.slots.rows, tables.block.size);
  check_range("table_slots", tables.slots.flat(), -1, 8);
  for (int64_t t = 0; t < tables.block.size; ++t) {
    const int64_t bits = blocks.bits[tables.block[t]], size = (8 * blocks.n_outputs()) << bits;
    check_at_least("table_slots.shape[1]", tables.slots.columns,
                   blocks.order == 1 ? bits : bits * (bits - 1) / 2);
    check_slice("values", tables.offset[t], tables.offset[t] + size, tables.values.size);
  }
  spectrum_tables(blocks, tables);
}

static int64_t cover_terms(In<int64_t, 1> start, In<int32_t, 1> atoms, int64_t n_atoms, int64_t max_atoms,
                           In<int64_t, 1> weights, Out<int32_t, 1> block_of_term, Out<int64_t, 1> block_start,
                           Out<int32_t, 1> block_atoms) {
  const CoverTerms terms = {view(start), view(atoms), n_atoms, max_atoms, view(weights)};
  check_starts("start", terms.start, length(start) - 1, terms.atoms.size);
  check_range("atoms", terms.atoms, 0, n_atoms);
  check_length("weights", terms.weights.size, max_atoms + 1);
  check_length("block_of_term", length(block_of_term), terms.n());
  check_length("block_start", length(block_start), terms.n() + 1);
  int64_t most = 0;  // each block begins with another term, and is filled up
  for (int64_t k = 0; k < terms.n(); ++k) most += std::max(max_atoms, terms.start[k + 1] - terms.start[k]);
  check_at_least("block_atoms", length(block_atoms), most);
  return cover(terms, {view(block_of_term), view(block_start), view(block_atoms)});
}

static int64_t group_tables(In<int64_t, 1> start, In<int32_t, 1> players, In<int32_t, 1> kinds,
                            int64_t n_players, int64_t most_tables, int64_t reach,
                            Out<int32_t, 1> group_of_table, Out<int32_t, 2> group_players) {
  const GroupTables tables = {view(start), view(players), view(kinds), n_players, most_tables, reach};
  check_starts("start", tables.start, tables.n(), tables.players.size);
  check_range("players", tables.players, 0, n_players);
  for (int64_t t = 0; t < tables.n(); ++t)
    check(tables.start[t + 1] - tables.start[t] <= 8, "`start` gives a table more than 8 players.");
  check_length("group_of_table", length(group_of_table), tables.n());
  check_shape("group_players", group_players, {tables.n(), 8});
  return group(tables, {view(group_of_table), view(group_players)});
}

void bind_build(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("build", "Blocks of terms, groups of tables, tables of spectra.");
  nb::class_<BoundSpectrumBlocks>(m, "SpectrumBlocks")
      .def(nb::init<In<int32_t, 1>, In<int64_t, 1>, In<double, 1>, In<int64_t, 1>, In<uint32_t, 1>,
                    In<double, 2>, In<double, 3>>());
  m.def("spectrum_tables", &fill, FreeGil());
  m.def("cover", &cover_terms, FreeGil());
  m.def("group", &group_tables, FreeGil());
}

}  // namespace fouriershap
