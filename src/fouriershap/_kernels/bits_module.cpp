#include "binding.h"

#define FS_LEVEL baseline
#include "bits.h"
#undef FS_LEVEL
#define FS_LEVEL avx2
#include "bits.h"
#undef FS_LEVEL

namespace fouriershap {

static void evaluate(In<uint64_t, 2> columns, In<int64_t, 1> start, In<int32_t, 1> atoms,
                     In<double, 2> coefficients, int64_t first_word, int64_t last_word,
                     Out<uint64_t, 1> parity, Out<double, 2> out) {
  FS_PICK(evaluate)(columns.data(), columns.shape(1), start.data(), atoms.data(), coefficients.shape(0),
                    coefficients.data(), coefficients.shape(1), first_word, last_word, out.shape(0),
                    parity.data(), out.data());
}

static void direct(In<uint8_t, 2> rows, In<uint64_t, 2> background, int64_t n_background,
                   In<double, 1> weights, In<int64_t, 1> start, In<int32_t, 1> atoms,
                   In<int32_t, 1> atom_player, In<double, 2> coefficients, Out<double, 3> out) {
  FS_PICK(direct)(rows.data(), rows.shape(0), rows.shape(1), background.data(), background.shape(1),
                  n_background, weights.shape(0) ? weights.data() : nullptr, start.data(), atoms.data(),
                  atom_player.data(), coefficients.shape(0), coefficients.data(), coefficients.shape(1),
                  out.shape(1), out.data());
}

void bind_bits(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("bits", "Spectra on bit-sliced rows.");
  const auto free_gil = nb::call_guard<nb::gil_scoped_release>();
  m.def("evaluate", &evaluate, nb::arg("columns"), nb::arg("start"), nb::arg("atoms"),
        nb::arg("coefficients"), nb::arg("first_word"), nb::arg("last_word"),
        nb::arg("parity").noconvert(), nb::arg("out").noconvert(), free_gil);
  m.def("direct", &direct, nb::arg("rows"), nb::arg("background"), nb::arg("n_background"),
        nb::arg("weights"), nb::arg("start"), nb::arg("atoms"), nb::arg("atom_player"),
        nb::arg("coefficients"), nb::arg("out").noconvert(), free_gil);
}

}  // namespace fouriershap
