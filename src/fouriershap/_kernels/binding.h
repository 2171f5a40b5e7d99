// Shared by all bindings: array types, their views, and checks of arguments from Python.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "span.h"

namespace nb = nanobind;

namespace fouriershap {

template <class T, int N>
using Array = nb::ndarray<T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;

// Inputs may be converted or copied by nanobind.
template <class T, int N>
using In = Array<const T, N>;

// Never converted: outputs are written in place, and a copy would be lost; the type of some inputs decides
// which function is called.
template <class T, int N>
struct Exactly : Array<T, N> {};
template <class T, int N>
using Out = Exactly<T, N>;

template <class A>
int64_t length(const A& array, size_t axis = 0) {
  return static_cast<int64_t>(array.shape(axis));
}

// Booleans read from a file may be any bytes.
template <class T>
using Plain = std::conditional_t<std::is_same_v<T, const bool>, const uint8_t, T>;

template <class T>
Span<Plain<T>> view(const Array<T, 1>& array) {
  return {reinterpret_cast<Plain<T>*>(array.data()), length(array)};
}

template <class T>
Matrix<T> view(const Array<T, 2>& array) {
  return {array.data(), length(array), length(array, 1)};
}

// Arrays of more dimensions are passed flat.
template <class T>
Span<T> view(const Array<T, 3>& array) {
  return {array.data(), static_cast<int64_t>(array.size())};
}

// First base class of bound classes: keeps the arrays alive that the other bases view.
class Owner {
 public:
  template <class A>
  auto keep(const A& array) {
    kept.push_back(std::make_shared<A>(array));
    return view(array);
  }

 private:
  std::vector<std::shared_ptr<void>> kept;
};

// Checks. Python sees a ValueError that names the argument.

[[noreturn]] inline void refuse(const std::string& name, const std::string& what) {
  throw std::invalid_argument("`" + name + "` " + what + ".");
}

inline void check(bool holds, const char* message) {
  if (!holds) throw std::invalid_argument(message);
}

inline void check_length(const char* name, int64_t got, int64_t wanted) {
  if (got != wanted)
    refuse(name, "has length " + std::to_string(got) + ", but needs " + std::to_string(wanted));
}

// A negative length: any.
template <class A>
void check_shape(const std::string& name, const A& array, std::initializer_list<int64_t> wanted) {
  size_t axis = 0;
  for (const int64_t size : wanted) {
    const std::string mine = axis ? name + ".shape[" + std::to_string(axis) + "]" : name;
    if (size >= 0) check_length(mine.c_str(), length(array, axis), size);
    ++axis;
  }
}

inline void check_at_least(const char* name, int64_t got, int64_t wanted) {
  if (got < wanted)
    refuse(name, "has length " + std::to_string(got) + ", but needs at least " + std::to_string(wanted));
}

// All values are in [low, high).
template <class T>
void check_range(const char* name, Span<T> values, int64_t low, int64_t high) {
  const auto fits = [=](int64_t value) { return value >= low && value < high; };
  bool all = true;
  for (const auto value : values) all &= fits(value);
  if (all) return;
  for (const auto value : values)
    if (!fits(value))
      refuse(name, "contains " + std::to_string(value) + ", which is outside " + std::to_string(low) +
                       " to " + std::to_string(high - 1));
}

// Where each of n lists begins, end to end: n + 1 values that ascend from 0 to at most `total`.
template <class T>
void check_starts(const char* name, Span<T> start, int64_t n, int64_t total) {
  check_length(name, start.size, n + 1);
  bool ascends = start[0] == 0 && start[n] <= total;
  for (int64_t i = 0; i < n; ++i) ascends &= start[i] <= start[i + 1];
  if (!ascends) refuse(name, "must ascend from 0 to at most " + std::to_string(total));
}

inline void check_slice(const char* name, int64_t first, int64_t last, int64_t size) {
  if (first < 0 || first > last || last > size)
    refuse(name, std::to_string(first) + " to " + std::to_string(last) + " are outside 0 to " +
                     std::to_string(size));
}

using FreeGil = nb::call_guard<nb::gil_scoped_release>;

// A function `name` that makes a C, for one of several types of arrays.
template <class C, class... Arrays>
void def_maker(nb::module_& m, const char* name, const char* class_name) {
  nb::class_<C>(m, class_name);
  m.def(name, [](Arrays... arrays) { return new C(arrays...); });
}

}  // namespace fouriershap

namespace nanobind::detail {

template <class T, int N>
struct type_caster<fouriershap::Exactly<T, N>> {
  using Plain = make_caster<fouriershap::Array<T, N>>;
  using Exact = fouriershap::Exactly<T, N>;
  NB_TYPE_CASTER(Exact, Plain::Name)

  template <class Flags>
  bool from_python(handle source, Flags flags, cleanup_list* cleanup) noexcept {
    Plain plain;
    const auto kept = static_cast<Flags>(flags & ~static_cast<Flags>(cast_flags::convert));
    if (!plain.from_python(source, kept, cleanup)) return false;
    static_cast<fouriershap::Array<T, N>&>(value) = std::move(plain.value);
    return true;
  }
};

}  // namespace nanobind::detail
