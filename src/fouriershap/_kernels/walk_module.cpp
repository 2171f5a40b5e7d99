#include "binding.h"

#define FS_LEVEL baseline
#include "walk.h"
#undef FS_LEVEL
#define FS_LEVEL avx2
#include "walk.h"
#undef FS_LEVEL
#include "walk_binding.h"

namespace fouriershap {

static void interventional_joint(FS_TREES, In<int32_t, 2> codes, int64_t first_row, int64_t last_row,
                                 In<int32_t, 2> background, In<double, 1> weights, In<double, 2> moments,
                                 Out<double, 3> out) {
  require(FS_PICK(interventional_joint)(FS_TREES_GIVEN, columns(codes, first_row, last_row),
                                        columns(background), weights.data(), given(moments), given(out)));
}

static void interventional_rows(FS_TREES, In<int32_t, 2> codes, int64_t first_row, int64_t last_row,
                                In<int32_t, 2> background, In<double, 1> weights, In<double, 2> moments,
                                Out<double, 3> out) {
  require(FS_PICK(interventional_rows)(FS_TREES_GIVEN, columns(codes, first_row, last_row),
                                       columns(background), weights.data(), given(moments), given(out)));
}

static void path_dependent(FS_TREES, In<double, 1> ratio, In<int32_t, 1> n_points, In<int64_t, 1> point_start,
                           In<double, 1> points, In<double, 1> point_weights, In<int32_t, 2> codes,
                           int64_t first_row, int64_t last_row, Out<double, 3> out) {
  require(FS_PICK(path_dependent)(
      FS_TREES_GIVEN,
      {ratio.data(), n_points.data(), point_start.data(), points.data(), point_weights.data()},
      columns(codes, first_row, last_row), given(out)));
}

static void interventional_pairs(FS_TREES, In<int32_t, 2> codes, int64_t first_row, int64_t last_row,
                                 In<int32_t, 2> background, In<double, 1> weights, In<double, 2> moments,
                                 In<int32_t, 2> pair_column, Out<double, 3> out) {
  require(FS_PICK(interventional_pairs)(FS_TREES_GIVEN, columns(codes, first_row, last_row),
                                        columns(background), weights.data(), given(moments),
                                        given(pair_column), given(out)));
}

static void path_dependent_pairs(FS_TREES, In<double, 1> ratio, In<int32_t, 1> n_points,
                                 In<int64_t, 1> point_start, In<double, 1> points,
                                 In<double, 1> point_weights, In<int32_t, 2> codes, int64_t first_row,
                                 int64_t last_row, In<int32_t, 2> pair_column, Out<double, 3> out) {
  require(FS_PICK(path_dependent_pairs)(
      FS_TREES_GIVEN,
      {ratio.data(), n_points.data(), point_start.data(), points.data(), point_weights.data()},
      columns(codes, first_row, last_row), given(pair_column), given(out)));
}

static void predict(FS_TREES, In<int32_t, 2> codes, int64_t first_row, int64_t last_row, Out<double, 2> out) {
  require(FS_PICK(predict)(FS_TREES_GIVEN, columns(codes, first_row, last_row), length(out, 1), out.data()));
}

static void leaf_visits(FS_TREES, In<int32_t, 2> codes, In<int32_t, 2> background, int64_t n_players,
                        Out<double, 1> out) {
  require(FS_PICK(leaf_visits)(FS_TREES_GIVEN, columns(codes), columns(background), n_players, out.data()));
}

static void path_shape(FS_TREES, int64_t n_players, Out<int32_t, 1> most_players, Out<int32_t, 1> depth) {
  require(FS_PICK(path_shape)(FS_TREES_GIVEN, n_players, most_players.data(), depth.data()));
}

void bind_walk(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("walk", "SHAP values of trees without tables.");
  m.def("interventional_joint", &interventional_joint, FreeGil());
  m.def("interventional_rows", &interventional_rows, FreeGil());
  m.def("path_dependent", &path_dependent, FreeGil());
  m.def("interventional_pairs", &interventional_pairs, FreeGil());
  m.def("path_dependent_pairs", &path_dependent_pairs, FreeGil());
  m.def("predict", &predict, FreeGil());
  m.def("leaf_visits", &leaf_visits, FreeGil());
  m.def("path_shape", &path_shape, FreeGil());
}

}  // namespace fouriershap
