// Interactions of sets of players in trees, of any index. The twin, orders_numpy.py, documents every array.
// Included once per instruction set: only the structs are guarded.
#include "walk.h"

#ifndef FOURIERSHAP_ORDERS_ARGUMENTS
#define FOURIERSHAP_ORDERS_ARGUMENTS
namespace fouriershap {

// (side, side, order + 1) shares of a leaf, by the players that only the row brings to it, those that only
// the background row brings, and the size of the set.
struct OrderShares {
  const double* shares;
  int64_t side, order;
};

// (n,) the sets that are wanted, as ascending keys: a digit p + 1 of this radix for each player p.
struct OrderSets {
  const int64_t* keys;
  int64_t n, radix;
};

}  // namespace fouriershap
#endif

namespace fouriershap {
namespace FS_LEVEL {

// Returns false where there is no memory. A column of `values` is a set.
bool interventional_orders(const WalkTrees& trees, const WalkRows& rows, const WalkRows& background,
                           const double* weights, const OrderShares& shares, const OrderSets& sets,
                           const WalkValues& values);

}  // namespace FS_LEVEL
}  // namespace fouriershap
