#include <stdexcept>

#include "binding.h"
#include "numbers.h"

namespace fouriershap {

static int64_t parse_lines_of(In<uint8_t, 1> text, In<int64_t, 1> start, In<int64_t, 1> count,
                              Out<double, 1> out) {
  int64_t left = length(out);
  for (int64_t i = 0; i < length(start); ++i) {
    if (i >= length(count) || count(i) < 0 || count(i) > left || start(i) < 0 || start(i) > length(text))
      throw std::invalid_argument("lines and their numbers do not fit the text or the answer");
    left -= count(i);
  }
  return parse_lines(text.data(), length(text), start.data(), count.data(), length(start), out.data());
}

void bind_numbers(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("numbers", "Numbers out of text.");
  m.def("parse_lines", &parse_lines_of, FreeGil());
}

}  // namespace fouriershap
