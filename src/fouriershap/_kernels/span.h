// Views of arrays with their extents. Indices are checked in debug builds.
#pragma once
#include <cassert>
#include <cstdint>

namespace fouriershap {

template <class T>
struct Span {
  T* data = nullptr;
  int64_t size = 0;

  operator T*() const { return data; }
  template <class I>
  T& operator[](I i) const {
    assert(static_cast<int64_t>(i) >= 0 && static_cast<int64_t>(i) < size);
    return data[i];
  }
  T* begin() const { return data; }
  T* end() const { return data + size; }
};

// (rows, columns), row after row.
template <class T>
struct Matrix {
  T* data = nullptr;
  int64_t rows = 0, columns = 0;

  operator T*() const { return data; }
  template <class I>
  T* operator[](I row) const {
    assert(static_cast<int64_t>(row) >= 0 && static_cast<int64_t>(row) < rows);
    return data + row * columns;
  }
  Span<T> flat() const { return {data, rows * columns}; }
};

}  // namespace fouriershap
