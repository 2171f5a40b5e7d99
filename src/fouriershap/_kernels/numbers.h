// Parsing numbers. numbers_numpy.py is the specification.
#pragma once
#include "span.h"

namespace fouriershap {

// Returns the number of lines that were read; each start is within the text.
int64_t parse_lines(Span<const uint8_t> text, Span<const int64_t> start, Span<const int64_t> count,
                    double* out);

}  // namespace fouriershap
