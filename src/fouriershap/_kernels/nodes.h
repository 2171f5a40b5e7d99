// The nodes of ensembles: checked, put on codes, packed. nodes_numpy.py is the specification.
#pragma once
#include "span.h"

namespace fouriershap {

struct NodeArrays {
  Span<const int32_t> roots, feature, left, right;
};

bool are_trees(const NodeArrays& nodes);

// Returns the number of distinct levels, which are the first ones of `found`. Features are >= 0 and below
// start.size - 1.
template <class T>
int64_t levels(Span<const int32_t> feature, Span<const T> level, Span<int64_t> start, Span<int64_t> position,
               Span<T> found);

struct CodedNodes {
  Span<const int32_t> feature, cut, left, right, category_set;
  Span<const uint8_t> missing_left;
};

void pack(const CodedNodes& coded, Span<int32_t> place, Matrix<int32_t> nodes);

}  // namespace fouriershap
