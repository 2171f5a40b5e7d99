// Numbers out of text. The twin, numbers_numpy.py, documents every array. Compiled once: the standard library
// may be used.
#pragma once
#include <cstdint>

namespace fouriershap {

// How many of the first `n` numbers of the text were read.
int64_t parse(const uint8_t* text, int64_t n_bytes, double* out, int64_t n);

}  // namespace fouriershap
