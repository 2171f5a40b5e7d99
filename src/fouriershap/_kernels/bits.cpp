#include "bits.h"

#include "binding.h"

namespace fouriershap {

class BoundTerms : Owner, public Terms {
 public:
  int64_t n_atoms = 0;  // at least

  BoundTerms(In<int64_t, 1> the_start, In<int32_t, 1> the_atoms, In<double, 2> the_coefficients)
      : Terms{keep(the_start), keep(the_atoms), keep(the_coefficients)} {
    check_starts("start", start, n(), atoms.size);
    check_range("atoms", atoms, 0, INT32_MAX);
    for (const int32_t atom : atoms) n_atoms = atom + 1 > n_atoms ? atom + 1 : n_atoms;
  }
};

static void evaluate_terms(const BoundTerms& terms, In<uint64_t, 2> columns, int64_t first_word,
                           int64_t last_word, Out<double, 2> out) {
  check_at_least("columns", length(columns), terms.n_atoms);
  check_slice("words", first_word, last_word, length(columns, 1));
  check_at_least("out", length(out), 64 * (last_word - 1));
  check_length("out.shape[1]", length(out, 1), terms.n_outputs());
  evaluate(terms, view(columns), first_word, last_word, view(out));
}

static void direct_values(const BoundTerms& terms, In<uint8_t, 2> rows, In<uint64_t, 2> background,
                          int64_t n_background, In<double, 1> weights, In<int32_t, 1> atom_player,
                          Out<double, 3> out) {
  check_at_least("rows.shape[1]", length(rows, 1), terms.n_atoms);
  check_at_least("background", length(background), terms.n_atoms);
  check_length("background.shape[1]", length(background, 1), (n_background + 63) / 64);
  if (length(weights)) check_length("weights", length(weights), 64 * length(background, 1));
  check_at_least("atom_player", length(atom_player), terms.n_atoms);
  check_range("atom_player", view(atom_player), 0, length(out, 1));
  check_shape("out", out, {length(rows), -1, terms.n_outputs()});
  direct(terms, view(rows), {view(background), n_background, view(weights)}, view(atom_player),
         length(out, 1), out.data());
}

void bind_bits(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("bits", "Spectra on bit-sliced rows.");
  nb::class_<BoundTerms>(m, "Terms").def(nb::init<In<int64_t, 1>, In<int32_t, 1>, In<double, 2>>());
  m.def("evaluate", &evaluate_terms, FreeGil());
  m.def("direct", &direct_values, FreeGil());
}

}  // namespace fouriershap
