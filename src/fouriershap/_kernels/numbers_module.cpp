#include "binding.h"
#include "numbers.h"

namespace fouriershap {

static int64_t parse_numbers(In<uint8_t, 1> text, Out<double, 1> out) {
  return parse(text.data(), length(text), out.data(), length(out));
}

void bind_numbers(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("numbers", "Numbers out of text.");
  m.def("parse", &parse_numbers, FreeGil());
}

}  // namespace fouriershap
