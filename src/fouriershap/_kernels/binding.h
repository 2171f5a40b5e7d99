// What every family's binding needs: array types, and the choice of instruction set.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

namespace nb = nanobind;

namespace fouriershap {

// Inputs may be converted or copied by nanobind; outputs never (they are written in place).
template <class T, int N>
using In = nb::ndarray<const T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
template <class T, int N>
using Out = nb::ndarray<T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;

bool has_avx2();

}  // namespace fouriershap

#ifdef FS_HAS_AVX2
#define FS_PICK(function) \
  (::fouriershap::has_avx2() ? ::fouriershap::avx2::function : ::fouriershap::baseline::function)
#else
#define FS_PICK(function) ::fouriershap::baseline::function
#endif
