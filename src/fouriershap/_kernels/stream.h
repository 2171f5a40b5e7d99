// Trees against a background without stored tables: those of each twig are built, read by every row, and
// dropped. The twin is stream_numpy.py. Included once per instruction set: only the structs are guarded.
#include "walk.h"

#ifndef FOURIERSHAP_STREAM_ARRAYS
#define FOURIERSHAP_STREAM_ARRAYS
namespace fouriershap {

// Points and weights of the integral over u players, end to end from start[u] on: points, then as many
// weights, padded with weights of 0. `efficient`: values of all players add up to the output's change.
struct StreamIndex {
  const double* nodes;
  const int64_t* start;  // (most_players + 2,)
  WalkMoments moments;
  bool efficient;
};

// Where a twig's table stops to pay. None of them changes a value by more than rounding.
struct StreamSettings {
  int32_t dense_bits;    // twigs with more other players on their path are conditioned on some of them
  int32_t class_bits;    // players that are left to a table then
  int32_t merged_nodes;  // most inner nodes of a subtree before which equal rows are merged; 0: never
};

}  // namespace fouriershap
#endif

namespace fouriershap {
namespace FS_LEVEL {

// Sum over the background of weight * value, added to `values`. Tables are float32 or float64. Both code
// matrices are padded to a multiple of 8 columns, and rows.first is such a multiple. Every tree has at most
// 30 players on a path. False where there is no memory.
bool stream_values(const WalkTrees& trees, const WalkRows& rows, const WalkRows& background,
                   const double* weights, const StreamIndex& index, const StreamSettings& settings,
                   bool single, const WalkValues& values);

// counts: (n_trees, side) += twigs by the number of other players on their path.
bool count_twigs(const WalkTrees& trees, int64_t n_players, int64_t side, int64_t* counts);

}  // namespace FS_LEVEL
}  // namespace fouriershap
