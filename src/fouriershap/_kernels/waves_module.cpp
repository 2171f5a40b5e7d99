#include <stdexcept>

#include "binding.h"

#define FS_LEVEL baseline
#include "waves.h"
#undef FS_LEVEL
#define FS_LEVEL avx2
#include "waves.h"
#undef FS_LEVEL

namespace fouriershap {

static void train(In<float, 2> inputs, In<float, 2> targets, In<int32_t, 2> order, In<float, 2> schedule,
                  int64_t n_waves, Out<float, 1> parameters, Out<float, 2> moments) {
  const int64_t n_columns = length(inputs, 1), n_outputs = length(targets, 1), n = length(parameters);
  if (n != n_waves * (n_columns + 1 + n_outputs) + n_outputs * (n_columns + 1) || length(moments) != 2 ||
      length(moments, 1) != n || length(schedule) != length(order) || length(schedule, 1) != 3)
    throw std::invalid_argument("parameters, moments or schedule do not fit the waves");
  require(FS_PICK(train)({inputs.data(), targets.data(), length(inputs, 1), length(targets, 1)},
                         {order.data(), length(order), length(order, 1), schedule.data()},
                         {parameters.data(), moments.data(), n_waves, length(parameters)}));
}

template <class T>
static void factors(Exactly<const T, 2> values, In<int32_t, 2> slot, Exactly<const T, 2> frequencies,
                    In<int32_t, 1> player, Out<T, 4> out) {
  FS_PICK(factors<T>)(
      WaveRows<T>{values.data(), slot.data(), length(values), length(values, 1)},
      WaveFrequencies<T>{frequencies.data(), length(frequencies, 1), player.data(), length(out, 1)},
      out.data());
}

void bind_waves(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("waves", "Waves: their training, and the factors of rows.");
  m.def("train", &train, FreeGil());
  m.def("factors", &factors<float>, FreeGil());
  m.def("factors", &factors<double>, FreeGil());
}

}  // namespace fouriershap
