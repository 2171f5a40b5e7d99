#include "binding.h"

#define FS_LEVEL baseline
#include "bits.h"
#undef FS_LEVEL
#define FS_LEVEL avx2
#include "bits.h"
#undef FS_LEVEL

namespace fouriershap {

static Terms make_terms(const In<int64_t, 1>& start, const In<int32_t, 1>& atoms,
                        const In<double, 2>& coefficients) {
  return {start.data(), atoms.data(), coefficients.data(), length(coefficients), length(coefficients, 1)};
}

static void evaluate(In<uint64_t, 2> columns, In<int64_t, 1> start, In<int32_t, 1> atoms,
                     In<double, 2> coefficients, int64_t first_word, int64_t last_word,
                     Out<uint64_t, 1> parity, Out<double, 2> out) {
  FS_PICK(evaluate)({columns.data(), length(columns, 1), first_word, last_word},
                    make_terms(start, atoms, coefficients), length(out), parity.data(), out.data());
}

static void direct(In<uint8_t, 2> rows, In<uint64_t, 2> background, int64_t n_background,
                   In<double, 1> weights, In<int64_t, 1> start, In<int32_t, 1> atoms,
                   In<int32_t, 1> atom_player, In<double, 2> coefficients, Out<double, 3> out) {
  require(FS_PICK(direct)({rows.data(), length(rows), length(rows, 1)},
                          {background.data(), length(background, 1), n_background, optional(weights)},
                          make_terms(start, atoms, coefficients), atom_player.data(), length(out, 1),
                          out.data()));
}

void bind_bits(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("bits", "Spectra on bit-sliced rows.");
  m.def("evaluate", &evaluate, FreeGil());
  m.def("direct", &direct, FreeGil());
}

}  // namespace fouriershap
