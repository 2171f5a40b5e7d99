#include "numbers.h"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <system_error>
#if defined(__APPLE__)
#include <xlocale.h>
#endif

namespace fouriershap {

namespace {

// Reads a number from [first, last), all of it: false where it is none.
bool read(const char* first, const char* last, double* out) {
#if defined(__cpp_lib_to_chars)
  const auto [stop, error] = std::from_chars(first, last, *out);
  if (error == std::errc()) return stop == last;
  // Too large or too small a number, which C's function rounds to what is nearest, falls through.
  if (error != std::errc::result_out_of_range) return false;
#endif
  constexpr int64_t kMost = 512;  // no number is so long
  char word[kMost];
  if (last - first >= kMost) return false;
  std::memcpy(word, first, last - first);
  word[last - first] = '\0';
  char* end = nullptr;
#if defined(__APPLE__)
  *out = strtod_l(word, &end, nullptr);  // in the locale of C, whatever the program's is
#else
  *out = std::strtod(word, &end);
#endif
  return end == word + (last - first);
}

}  // namespace

int64_t parse(const uint8_t* text, int64_t n_bytes, double* out, int64_t n) {
  const char* at = reinterpret_cast<const char*>(text);
  const char* end = at + n_bytes;
  for (int64_t i = 0; i < n; ++i) {
    while (at < end && *at == ' ') ++at;
    const char* first = at;
    while (at < end && *at != ' ') ++at;
    double number;
    if (first == at || !read(first, at, &number)) return i;
    out[i] = number;
  }
  return n;
}

}  // namespace fouriershap
