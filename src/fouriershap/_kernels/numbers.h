// Parsing numbers. numbers_numpy.py is the specification.
#pragma once
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <system_error>
#if defined(__APPLE__)
#include <xlocale.h>
#endif

#include "span.h"

namespace fouriershap {

namespace {

// Reads all of [first, last) as a number; returns false where it is not a number.
bool read(const char* first, const char* last, double* out) {
#if defined(__cpp_lib_to_chars)
  const auto [stop, error] = std::from_chars(first, last, *out);
  if (error == std::errc()) return stop == last;
  // A number out of range falls through to strtod, which rounds it.
  if (error != std::errc::result_out_of_range) return false;
#endif
  constexpr int64_t kMost = 512;  // longer than any number
  char word[kMost];
  if (last - first >= kMost) return false;
  std::memcpy(word, first, last - first);
  word[last - first] = '\0';
  char* end = nullptr;
#if defined(__APPLE__)
  *out = strtod_l(word, &end, nullptr);  // in the C locale, not the program's
#else
  *out = std::strtod(word, &end);
#endif
  return end == word + (last - first);
}

// Fast path for integers of few digits, the most common case; returns false for anything else.
bool read_whole(const char* first, const char* last, double* out) {
  constexpr int64_t kMost = 15;  // digits that a double holds
  const bool negative = first < last && *first == '-';
  const char* at = first + negative;
  if (at == last || last - at > kMost) return false;
  int64_t number = 0;
  for (; at < last; ++at) {
    if (*at < '0' || *at > '9') return false;
    number = 10 * number + (*at - '0');
  }
  if (negative && number == 0) return false;  // -0.0
  *out = static_cast<double>(negative ? -number : number);
  return true;
}

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

// Read `count` numbers from [at, end), and nothing else.
bool read_line(const char* at, const char* end, int64_t count, double* out) {
  for (int64_t i = 0;; ++i) {
    while (at < end && is_space(*at)) ++at;
    if (at == end) return i == count;
    if (i == count) return false;
    const char* first = at;
    while (at < end && !is_space(*at)) ++at;
    double number;
    if (!read_whole(first, at, &number) && !read(first, at, &number)) return false;
    out[i] = number;
  }
}

// Returns the number of lines that were read; each start is within the text.
int64_t parse_lines(Span<const uint8_t> text, Span<const int64_t> start, Span<const int64_t> count,
                    double* out) {
  const char* all = reinterpret_cast<const char*>(text.data);
  for (int64_t line = 0; line < start.size; out += count[line++]) {
    const char* first = all + start[line];
    const void* newline = std::memchr(first, '\n', text.size - start[line]);
    const char* end = newline ? static_cast<const char*>(newline) : all + text.size;
    if (!read_line(first, end, count[line], out)) return line;
  }
  return start.size;
}

}  // namespace
}  // namespace fouriershap
