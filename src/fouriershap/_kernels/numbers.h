// Numbers out of text. The twin, numbers_numpy.py, documents every array. Compiled once: the standard library
// may be used.
#pragma once
#include <cstdint>

namespace fouriershap {

// See numbers_numpy.py. Lines that were read; each start is inside of the text.
int64_t parse_lines(const uint8_t* text, int64_t n_bytes, const int64_t* start, const int64_t* count,
                    int64_t n_lines, double* out);

}  // namespace fouriershap
