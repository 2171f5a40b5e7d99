// Interactions of sets of players in trees, of any index. orders_numpy.py is the specification.
#pragma once
#include "walk.h"

namespace fouriershap {

// (side, side, order + 1) shares of a leaf, by the players that only the row brings to it, those that only
// the background row brings, and the size of the set.
struct OrderShares {
  const double* shares;
  int64_t side, order;
};

// The sets that are wanted, as ascending keys: a digit p + 1 of this radix for each player p.
struct OrderSets {
  Span<const int64_t> keys;
  int64_t radix;
};

constexpr int64_t kMostPositions = 64;  // players on a path: a set of positions is a word

// A column of `values` is a set.
void interventional_orders(const WalkTrees& trees, const WalkRows& rows, const WalkBackground& background,
                           const OrderShares& shares, const OrderSets& sets, const WalkValues& values);

}  // namespace fouriershap
