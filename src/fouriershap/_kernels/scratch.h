// Scratch memory of a kernel, not initialised unless a value is given. It throws std::bad_alloc where memory
// is exhausted, which Python sees as a MemoryError.
#pragma once
#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#if defined(_WIN32)
#include <malloc.h>  // Windows has no aligned_alloc; its replacement needs a free of its own
#endif

namespace fouriershap {

// Vectors that cross a cache line cost twice, so arrays that are accessed by vectors start at one.
constexpr int64_t kCacheLine = 64;

// `std::vector` would set every value first. Indices are checked in debug builds.
template <class T, int64_t Alignment = alignof(T)>
class Scratch {
 public:
  Scratch() = default;
  explicit Scratch(int64_t n) : data_(obtain(n)), size_(n) {}
  Scratch(int64_t n, T value) : Scratch(n) { std::fill_n(data_, n, value); }
  ~Scratch() { release(data_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  operator T*() const { return data_; }
  template <class I>
  T& operator[](I i) const {
    assert(static_cast<int64_t>(i) >= 0 && static_cast<int64_t>(i) < size_);
    return data_[i];
  }

  // Make room for n values and keep the first ones.
  void resize(int64_t n, int64_t n_kept = 0) {
    T* larger = obtain(n);
    if (n_kept) std::memcpy(static_cast<void*>(larger), data_, n_kept * sizeof(T));
    release(data_);
    data_ = larger;
    size_ = n;
  }

 private:
  static constexpr bool kPlain = Alignment <= static_cast<int64_t>(alignof(std::max_align_t));

  static T* obtain(int64_t n) {
    assert(n >= 0);
    if (n < 0 || n >= INT64_MAX / 2 / static_cast<int64_t>(sizeof(T))) throw std::bad_alloc();
    const int64_t bytes = n > 0 ? n * static_cast<int64_t>(sizeof(T)) : 1;
    void* data = nullptr;
    if constexpr (kPlain) {
      data = std::malloc(bytes);
    } else {
#if defined(_WIN32)
      data = _aligned_malloc(bytes, Alignment);
#else
      data = std::aligned_alloc(Alignment, (bytes + Alignment - 1) / Alignment * Alignment);
#endif
    }
    if (!data) throw std::bad_alloc();
    return static_cast<T*>(data);
  }

  static void release(T* data) {
#if defined(_WIN32)
    if constexpr (!kPlain) return _aligned_free(data);
#endif
    std::free(data);
  }

  T* data_ = nullptr;
  int64_t size_ = 0;
};

template <class T>
using AlignedScratch = Scratch<T, kCacheLine>;

// Memory that only grows. Growing loses its values; new memory is zero.
template <class T>
class Room {
 public:
  void reserve(int64_t n) {
    if (n <= capacity) return;
    data.resize(n);
    std::memset(reinterpret_cast<void*>(static_cast<T*>(data)), 0, n * sizeof(T));
    capacity = n;
  }
  operator T*() const { return data; }

 private:
  AlignedScratch<T> data;
  int64_t capacity = 0;
};

// Room for n values in each.
template <class... R>
void reserve_all(int64_t n, R&... rooms) {
  (rooms.reserve(n), ...);
}

template <class... S>
void resize_all(int64_t n, S&... scratches) {
  (scratches.resize(n), ...);
}

}  // namespace fouriershap
