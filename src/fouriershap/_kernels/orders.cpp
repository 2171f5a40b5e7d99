#include "orders.h"

#include "walk_binding.h"

namespace fouriershap {

static void explain(const BoundTrees& trees, In<int32_t, 2> codes, int64_t first_row, int64_t last_row,
                    In<int32_t, 2> background, In<double, 1> weights, In<double, 3> shares,
                    In<int64_t, 1> keys, int64_t radix, Out<double, 3> out) {
  check(trees.most_players <= kMostPositions, "`trees` have more than 64 players on a path.");
  check_at_least("shares", length(shares), trees.most_players + 1);
  check_length("shares.shape[1]", length(shares, 1), length(shares));
  check(length(shares, 2) >= 2 && length(shares, 2) <= kMostPositions + 1,
        "`shares` must be of an order 1 to 64.");
  check_length("weights", length(weights), length(background, 1));
  check(radix > trees.n_players, "`radix` must be larger than the number of players.");
  check_range("keys", view(keys), 1, INT64_MAX);
  interventional_orders(trees, trees.rows(codes, first_row, last_row), trees.background(background, weights),
                        {shares.data(), length(shares), length(shares, 2) - 1}, {view(keys), radix},
                        trees.out(out, last_row, length(keys)));
}

void bind_orders(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("orders", "Interactions of sets of players in trees.");
  m.def("interventional", &explain, FreeGil());
}

}  // namespace fouriershap
