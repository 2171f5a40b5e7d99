#include "waves.h"

#include "binding.h"

namespace fouriershap {

static void train_waves(In<float, 2> inputs, In<float, 2> targets, In<int32_t, 2> order,
                        In<float, 2> schedule, int64_t n_waves, Out<float, 1> parameters,
                        Out<float, 2> moments) {
  const int64_t n_columns = length(inputs, 1), n_outputs = length(targets, 1), n = length(parameters);
  check_length("parameters", n, n_waves * (n_columns + 1 + n_outputs) + n_outputs * (n_columns + 1));
  check_shape("targets", targets, {length(inputs)});
  check_shape("moments", moments, {2, n});
  check_shape("schedule", schedule, {length(order), 3});
  check(length(order, 1) % 16 == 0, "`order` must have a multiple of 16 columns.");
  check_range("order", view(order).flat(), 0, length(inputs));
  train({view(inputs), view(targets)}, {view(order), view(schedule)},
        {view(parameters), view(moments), n_waves});
}

template <class T>
static void write_factors(Exactly<const T, 2> values, In<int32_t, 2> slot, Exactly<const T, 2> frequencies,
                          In<int32_t, 1> player, Out<T, 4> out) {
  check_shape("slot", slot, {length(values), length(values, 1)});
  check_range("slot", view(slot).flat(), 0, length(frequencies));
  check_length("player", length(player), length(values, 1));
  check_range("player", view(player), 0, length(out, 1));
  check_shape("out", out, {length(values), -1, 2, length(frequencies, 1)});
  check(length(frequencies, 1) % 16 == 0, "`frequencies` must have a multiple of 16 columns.");
  factors<T>({view(values), view(slot)}, {view(frequencies), view(player), length(out, 1)}, out.data());
}

void bind_waves(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("waves", "Waves: their training, and the factors of rows.");
  m.def("train", &train_waves, FreeGil());
  m.def("factors", &write_factors<float>, FreeGil());
  m.def("factors", &write_factors<double>, FreeGil());
}

}  // namespace fouriershap
