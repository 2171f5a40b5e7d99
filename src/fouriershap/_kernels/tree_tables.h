// The tables of blocks of trees. The twin, tree_tables_numpy.py, documents every array.
// Included once per instruction set: only the structs are guarded.
#include <cstdint>

#ifndef FOURIERSHAP_TREE_TABLES_ARGUMENTS
#define FOURIERSHAP_TREE_TABLES_ARGUMENTS
namespace fouriershap {

// Blocks and their leaves, as `tree_blocks` cuts them.
struct TreeBlocks {
  const int32_t* n_patterns;
  const int64_t* feature_start;
  const int32_t* feature_states;
  const int64_t* leaf_start;
  const int32_t* leaf_node;
  const int64_t* leaf_player_start;
  const int32_t* leaf_players;
  const double* leaf_ratio;
  const int64_t* fail_start;
  const uint32_t* fail;
  const double* leaf_values;  // (n_nodes, width)
  int64_t width;
};

// What the values are an expectation over: the background's histograms, null for path-dependent values; and
// the quadrature for u players, from nodes_start[u] on: first the nodes, then the weights.
struct TreeGame {
  const double* histograms;
  const int64_t* histogram_offset;
  const double* nodes;
  const int64_t* nodes_start;
};

// Tables [first, last) are written, and `reached` of their leaves.
template <class T>
struct TreeTables {
  const int32_t* block;
  const int64_t* offset;
  const int32_t* slots;  // (n_tables, slots_stride)
  int64_t slots_stride, order, first, last;
  T* values;
  double* reached;
};

}  // namespace fouriershap
#endif

namespace fouriershap {
namespace FS_LEVEL {

// T: float or double. False: out of memory.
template <class T>
bool fill(const TreeBlocks& blocks, const TreeGame& game, const TreeTables<T>& tables);

}  // namespace FS_LEVEL
}  // namespace fouriershap
