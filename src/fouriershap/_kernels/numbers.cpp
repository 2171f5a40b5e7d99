#include "numbers.h"

#include "binding.h"

namespace fouriershap {

static int64_t parse(In<uint8_t, 1> text, In<int64_t, 1> start, In<int64_t, 1> count, Out<double, 1> out) {
  check_length("count", length(count), length(start));
  check_range("start", view(start), 0, length(text) + 1);
  check_range("count", view(count), 0, length(out) + 1);
  int64_t total = 0;
  for (const int64_t n : view(count)) check_at_least("out", length(out), total += n);
  return parse_lines(view(text), view(start), view(count), out.data());
}

void bind_numbers(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("numbers", "Numbers out of text.");
  m.def("parse_lines", &parse, FreeGil());
}

}  // namespace fouriershap
