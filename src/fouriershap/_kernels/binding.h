// What every family's binding needs: array types, out of memory, and the choice of instruction set.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <new>
#include <utility>

namespace nb = nanobind;

namespace fouriershap {

template <class T, int N>
using Array = nb::ndarray<T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;

// Inputs may be converted or copied by nanobind.
template <class T, int N>
using In = Array<const T, N>;

// Never converted: outputs are written in place, and a copy would be lost; of some inputs the type decides
// which function is called.
template <class T, int N>
struct Exactly : Array<T, N> {};
template <class T, int N>
using Out = Exactly<T, N>;

template <class A>
int64_t length(const A& array, size_t axis = 0) {
  return static_cast<int64_t>(array.shape(axis));
}

// Null for an array that was left out, which in Python is an empty one.
template <class T>
const T* optional(const In<T, 1>& array) {
  return array.shape(0) ? array.data() : nullptr;
}

// Kernels return false where they find no memory for their scratch; Python sees a MemoryError.
inline void require(bool found_memory) {
  if (!found_memory) throw std::bad_alloc();
}

using FreeGil = nb::call_guard<nb::gil_scoped_release>;

bool has_avx2();

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

#ifdef FS_HAS_AVX2
#define FS_PICK(function) \
  (::fouriershap::has_avx2() ? ::fouriershap::avx2::function : ::fouriershap::baseline::function)
#else
#define FS_PICK(function) ::fouriershap::baseline::function
#endif
