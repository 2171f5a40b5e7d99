#include "binding.h"

#define FS_LEVEL baseline
#include "orders.h"
#undef FS_LEVEL
#define FS_LEVEL avx2
#include "orders.h"
#undef FS_LEVEL
#include "walk_binding.h"

namespace fouriershap {

static void interventional(FS_TREES, In<int32_t, 2> codes, int64_t first_row, int64_t last_row,
                           In<int32_t, 2> background, In<double, 1> weights, In<double, 3> shares,
                           In<int64_t, 1> keys, int64_t radix, Out<double, 3> out) {
  require(FS_PICK(interventional_orders)(FS_TREES_GIVEN, columns(codes, first_row, last_row),
                                         columns(background), weights.data(),
                                         {shares.data(), length(shares), length(shares, 2) - 1},
                                         {keys.data(), length(keys), radix}, given(out)));
}

void bind_orders(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("orders", "Interactions of sets of players in trees.");
  m.def("interventional", &interventional, FreeGil());
}

}  // namespace fouriershap
