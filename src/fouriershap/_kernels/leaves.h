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

namespace {

constexpr int64_t kRows = 256;  // explained together while the nodes of a tree are in cache

template <class T>
bool in_set(const PlainTrees<T>& trees, int32_t set, T x) {
  if (!(x > T(-1)) || !(x < T(9e18))) return false;
  const int64_t category = static_cast<int64_t>(x);
  int64_t first = trees.set_start[set], last = trees.set_start[set + 1];
  while (first < last) {
    const int64_t middle = (first + last) / 2;
    if (trees.set_categories[middle] < category)
      first = middle + 1;
    else
      last = middle;
  }
  return first < trees.set_start[set + 1] && trees.set_categories[first] == category;
}

template <class T>
int32_t leaf_of(const T* row, const PlainTrees<T>& trees, int32_t node) {
  for (int32_t feature = trees.feature[node]; feature >= 0; feature = trees.feature[node]) {
    const T x = row[feature];
    bool goes_left = !(x >= trees.threshold[node]);
    if (trees.category_set[node] >= 0) goes_left = in_set(trees, trees.category_set[node], x);
    if (x != x) goes_left = trees.missing_left[node];
    node = goes_left ? trees.left[node] : trees.right[node];
  }
  return node;
}

// out (n_rows, n_trees).
template <class T>
void find(const PlainTrees<T>& trees, const Matrix<const T>& rows, Matrix<int32_t> out) {
  for (int64_t first = 0; first < rows.rows; first += kRows) {
    const int64_t end = first + kRows < rows.rows ? first + kRows : rows.rows;
    for (int64_t t = 0; t < trees.roots.size; ++t)
      for (int64_t r = first; r < end; ++r) out[r][t] = leaf_of(rows[r], trees, trees.roots[t]);
  }
}

}  // namespace
}  // namespace fouriershap
