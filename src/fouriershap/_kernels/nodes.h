// The nodes of ensembles: checked, put on codes, packed. The twin, nodes_numpy.py, documents every array.
// Compiled once: the standard library may be used.
#pragma once
#include <cstdint>

namespace fouriershap {

struct NodeArrays {
  const int32_t *roots, *feature, *left, *right;
  int64_t n_trees, n_nodes;
};

bool are_trees(const NodeArrays& nodes);

// Distinct levels, the first so many of `found`. T: float or double; features are >= 0 and below n_features.
template <class T>
int64_t levels(const int32_t* feature, const T* level, int64_t n, int64_t n_features, int64_t* start,
               int64_t* position, T* found);

struct Packed {
  const int32_t *feature, *cut, *left, *right, *category_set;
  const uint8_t* missing_left;  // truth values; bytes of a file may be any numbers
  int64_t n_nodes, n_features;
  int32_t *place, *nodes;
};

void pack(const Packed& packed);

}  // namespace fouriershap
