// Leaves that rows reach in trees. leaves_numpy.py is the specification.
#pragma once
#include "span.h"

namespace fouriershap {

template <class T>
struct PlainTrees {
  Span<const int32_t> roots;  // (n_trees,)
  // By node.
  Span<const int32_t> feature;
  Span<const T> threshold;
  Span<const int32_t> left, right;
  Span<const uint8_t> missing_left;
  Span<const int32_t> category_set;
  Span<const int64_t> set_start, set_categories;
};

// out (n_rows, n_trees).
template <class T>
void find(const PlainTrees<T>& trees, const Matrix<const T>& rows, Matrix<int32_t> out);

}  // namespace fouriershap
