#include "waves.h"

#include "binding.h"

namespace fouriershap {

static void train_waves(In<float, 2> inputs, In<float, 2> targets, In<int32_t, 2> order,
                        In<float, 2> schedule, int64_t n_waves, Out<float, 1> parameters,
                        Out<float, 2> moments) {
  const int64_t n_columns = length(inputs, 1), n_outputs = length(targets, 1), n = length(parameters);
  check_length("parameters", n, n_waves * (n_columns + 1 + n_outputs) + n_outputs * (n_columns + 1));
  check_length("targets", length(targets), length(inputs));
  check_length("moments", length(moments), 2);
  check_length("moments.shape[1]", length(moments, 1), n);
  check_length("schedule", length(schedule), length(order));
  check_length("schedule.shape[1]", length(schedule, 1), 3);
  check(length(order, 1) % 16 == 0, "`order` must have a multiple of 16 columns.");
  check_range("order", view(order).flat(), 0, length(inputs));
  train({view(inputs), view(targets)}, {view(order), view(schedule)},
        {view(parameters), view(moments), n_waves});
}

template <class T>
static void write_factors(Exactly<const T, 2> values, In<int32_t, 2> slot, Exactly<const T, 2> frequencies,
                          In<int32_t, 1> player, Out<T, 4> out) {
  check_length("slot", length(slot), length(values));
  check_length("slot.shape[1]", length(slot, 1), length(values, 1));
  check_range("slot", view(slot).flat(), 0, length(frequencies));
  check_length("player", length(player), length(values, 1));
  check_range("player", view(player), 0, length(out, 1));
  check_length("out", length(out), length(values));
  check_length("out.shape[2]", length(out, 2), 2);
  check_length("out.shape[3]", length(out, 3), length(frequencies, 1));
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
