#include "products.h"

#include "binding.h"

namespace fouriershap {

template <class T>
using Terms = Exactly<const T, 4>;

template <class T>
static Factors<T> factors_of(const char* name, const Terms<T>& factors) {
  if (length(factors, 2) != 2 || length(factors, 3) % 16)
    refuse(name, "must be (n_rows, n_players, 2, n_terms), with n_terms a multiple of 16");
  return {factors.data(), length(factors), length(factors, 1), length(factors, 3)};
}

template <class T>
static void add_components(Terms<T> rows, Terms<T> mixture, Exactly<const T, 1> weights,
                           Exactly<const T, 2> points, Exactly<const T, 1> point_weights,
                           Exactly<const T, 3> coefficients, Out<double, 3> out) {
  const Factors<T> mine = factors_of("rows", rows), others = factors_of("mixture", mixture);
  const int64_t n_outputs = length(coefficients);
  check_shape("mixture", mixture, {others.n_rows, mine.n_players, 2, mine.n_terms});
  check_shape("weights", weights, {others.n_rows});
  check_shape("points", points, {length(point_weights), mine.n_players});
  check_shape("coefficients", coefficients, {n_outputs, 2, mine.n_terms});
  check_shape("out", out, {mine.n_rows, mine.n_players, n_outputs});
  components<T>(mine, others, view(weights), {view(points).flat(), view(point_weights)}, coefficients.data(),
                n_outputs, out.data());
}

// Every set of the players has a place.
static int64_t n_sets(const Factors<double>& rows) {
  check(rows.n_players < 60, "`rows` has too many players for a table of all sets of them.");
  return int64_t{1} << rows.n_players;
}

static void add_subset_sums(Terms<double> rows, In<double, 1> weights, Out<double, 3> out) {
  const Factors<double> mine = factors_of("rows", rows);
  check_shape("weights", weights, {mine.n_rows});
  check_shape("out", out, {n_sets(mine), 2, mine.n_terms});
  subset_sums(mine, view(weights), out.data());
}

static void write_games(Terms<double> rows, In<double, 4> table, Out<double, 3> out) {
  const Factors<double> mine = factors_of("rows", rows);
  check_shape("table", table, {length(table), n_sets(mine), 2, mine.n_terms});
  check_shape("out", out, {mine.n_rows, n_sets(mine), length(table)});
  games(mine, table.data(), length(table), out.data());
}

void bind_products(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("products", "Sums of products over players.");
  m.def("components", &add_components<float>, FreeGil());
  m.def("components", &add_components<double>, FreeGil());
  m.def("subset_sums", &add_subset_sums, FreeGil());
  m.def("games", &write_games, FreeGil());
}

}  // namespace fouriershap
