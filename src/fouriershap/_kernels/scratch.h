// Scratch memory of a kernel, freed where it goes out of scope. Nothing is thrown: where there is no memory a
// `Scratch` is a null pointer, the kernel returns false, and its binding raises MemoryError.
#pragma once
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#if defined(_WIN32)
#include <malloc.h>  // there is no aligned_alloc there, and what takes its place has its own free
#endif

namespace fouriershap {

// Anonymous, so that every kernel has a copy of its own: the linker would share one across instruction sets,
// and AVX2 code could run on a processor without it.
namespace {

// Vectors that cross a cache line cost twice: what is read and written by vectors starts at one.
constexpr int64_t kCacheLine = 64;

// Room for n values, not set to anything unless a value is given.
template <class T, int64_t Alignment = alignof(T)>
class Scratch {
 public:
  Scratch() = default;
  explicit Scratch(int64_t n) : data_(obtain(n)) {}
  Scratch(int64_t n, T value) : data_(obtain(n)) {
    if (data_)
      for (int64_t i = 0; i < n; ++i) data_[i] = value;
  }
  ~Scratch() { release(data_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  operator T*() const { return data_; }

  // Makes room for n values and keeps the first ones. False, and all is as before, where there is no memory.
  bool grow(int64_t n, int64_t n_kept) {
    T* larger = obtain(n);
    if (!larger) return false;
    if (n_kept) std::memcpy(static_cast<void*>(larger), data_, n_kept * sizeof(T));
    release(data_);
    data_ = larger;
    return true;
  }

 private:
  static constexpr bool kPlain = Alignment <= static_cast<int64_t>(alignof(std::max_align_t));

  static T* obtain(int64_t n) {
    assert(n >= 0);
    if (n < 0 || n >= INT64_MAX / 2 / static_cast<int64_t>(sizeof(T))) return nullptr;
    const int64_t bytes = n > 0 ? n * static_cast<int64_t>(sizeof(T)) : 1;
    if constexpr (kPlain) return static_cast<T*>(std::malloc(bytes));
#if defined(_WIN32)
    return static_cast<T*>(_aligned_malloc(bytes, Alignment));
#else
    return static_cast<T*>(std::aligned_alloc(Alignment, (bytes + Alignment - 1) / Alignment * Alignment));
#endif
  }

  static void release(T* data) {
#if defined(_WIN32)
    if constexpr (!kPlain) return _aligned_free(data);
#endif
    std::free(data);
  }

  T* data_ = nullptr;
};

template <class T>
using AlignedScratch = Scratch<T, kCacheLine>;

}  // namespace
}  // namespace fouriershap
