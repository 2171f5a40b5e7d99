// Trees against a background without stored tables: the tables of each bottom subtree are built, read by all
// rows, and dropped. stream_numpy.py is the specification, and defines bottom subtrees.
//
// A row (of either side) is in a state: it goes left at the node (0), right (1), or it failed the own player
// further up (2). With probability t each player is the row's own, else the background's. Let X be the slots
// that a background row fails, b its state, and c_b[X] the share of such rows. For an explained row in state
// a that passes the slots P and fails the z others, both leaves go into one sum over the X within P:
//
//   y(t)[P] = sum over X of t^|X| sum over b of c_b[X] (value of a at t, of b at 1 - t)
//
// and integrals of y over t are all that its values need: where fails(z) = (1 - t)^(z - 1),
//
//   gain[P] = (1 - t)^z y[P] / t      without[P] = fails(z) y[P] / t      lost[P] = -fails(z) y[P]
#pragma once
#include "walk.h"

namespace fouriershap {

// Points and weights of the integral over u players, end to end from start[u] on: points, then as many
// weights, padded with weights of 0. `efficient`: values of all players add up to the output's change.
struct StreamIndex {
  Span<const double> nodes;
  Span<const int64_t> start;  // (most_players + 2,)
  Moments moments;
  bool efficient = false;
};

// Sizes beyond which a table does not pay. They change values by no more than rounding.
struct StreamSettings {
  int32_t dense_bits;    // with more other players on the path, rows are split into classes by some of them
  int32_t class_bits;    // players of a table then
  int32_t merged_nodes;  // most inner nodes of a subtree before which equal rows are merged; 0: never
};

constexpr int64_t kMostStreamPlayers = 30;  // on a path

// Sum over the background of weight * value, added to `values`. Tables are float32 (`single`) or float64.
// Both code matrices are padded to a multiple of 8 columns, and rows.first is such a multiple.
void stream_values(const WalkTrees& trees, const WalkRows& rows, const WalkBackground& background,
                   const StreamIndex& index, const StreamSettings& settings, bool single,
                   const WalkValues& values);

// counts: (n_trees, side) += bottom subtrees by the number of other players on their path.
void count_bottom_subtrees(const WalkTrees& trees, Matrix<int64_t> counts);

}  // namespace fouriershap
