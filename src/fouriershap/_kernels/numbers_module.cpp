#include "binding.h"
#include "numbers.h"

namespace fouriershap {

static int64_t parse_lines_of(In<uint8_t, 1> text, In<int64_t, 1> start, In<int64_t, 1> count,
                              Out<double, 1> out) {
  return parse_lines(text.data(), length(text), start.data(), count.data(), length(start), out.data());
}

void bind_numbers(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("numbers", "Numbers out of text.");
  m.def("parse_lines", &parse_lines_of, FreeGil());
}

}  // namespace fouriershap
