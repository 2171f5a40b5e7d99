#include "binding.h"

#define FS_LEVEL baseline
#include "products.h"
#undef FS_LEVEL
#define FS_LEVEL avx2
#include "products.h"
#undef FS_LEVEL

namespace fouriershap {

template <class T>
using Terms = Exactly<const T, 4>;

template <class T>
static Factors<T> given(const Terms<T>& factors) {
  return {factors.data(), length(factors), length(factors, 1), length(factors, 3)};
}

template <class T>
static void components(Terms<T> rows, Terms<T> mixture, Exactly<const T, 1> weights,
                       Exactly<const T, 1> points, Exactly<const T, 1> point_weights,
                       Exactly<const T, 3> coefficients, Out<double, 3> out) {
  require(FS_PICK(components<T>)(given(rows), given(mixture), weights.data(),
                                 Nodes<T>{points.data(), point_weights.data(), length(points)},
                                 coefficients.data(), length(coefficients), out.data()));
}

static void subset_sums(Terms<double> rows, In<double, 1> weights, Out<double, 3> out) {
  require(FS_PICK(subset_sums)(given(rows), weights.data(), out.data()));
}

static void games(Terms<double> rows, In<double, 4> table, Out<double, 3> out) {
  require(FS_PICK(games)(given(rows), table.data(), length(table), out.data()));
}

void bind_products(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("products", "Sums of products over players.");
  m.def("components", &components<float>, FreeGil());
  m.def("components", &components<double>, FreeGil());
  m.def("subset_sums", &subset_sums, FreeGil());
  m.def("games", &games, FreeGil());
}

}  // namespace fouriershap
