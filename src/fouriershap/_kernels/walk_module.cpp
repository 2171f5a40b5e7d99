#include <new>

#include "binding.h"

#define FS_LEVEL baseline
#include "walk.h"
#undef FS_LEVEL
#define FS_LEVEL avx2
#include "walk.h"
#undef FS_LEVEL

namespace fouriershap {

// The ensemble, as the first arguments of every function.
#define FS_TREES                                                                                             \
  In<int32_t, 2> nodes, In<double, 2> values, In<int32_t, 1> roots, In<int32_t, 1> tree_output,              \
      In<int32_t, 1> tree_players, In<int32_t, 1> tree_depth, In<int32_t, 1> features,                       \
      In<int32_t, 1> n_codes, In<int32_t, 1> players, In<bool, 1> categorical, In<uint64_t, 2> set_bits
#define FS_TREES_GIVEN                                                                                       \
  WalkTrees {                                                                                                \
    nodes.data(), values.data(), static_cast<int64_t>(values.shape(1)), roots.data(), tree_output.data(),    \
        tree_players.data(), tree_depth.data(), static_cast<int64_t>(roots.shape(0)), features.data(),       \
        n_codes.data(), players.data(), reinterpret_cast<const uint8_t*>(categorical.data()),                \
        static_cast<int64_t>(features.shape(0)), set_bits.data(), static_cast<int64_t>(set_bits.shape(1))    \
  }
#define FS_TREES_ARGS                                                                                        \
  nb::arg("nodes"), nb::arg("values"), nb::arg("roots"), nb::arg("tree_output"), nb::arg("tree_players"),    \
      nb::arg("tree_depth"), nb::arg("features"), nb::arg("n_codes"), nb::arg("players"),                    \
      nb::arg("categorical"), nb::arg("set_bits")

static WalkRows columns(const In<int32_t, 2>& codes, int64_t first, int64_t last) {
  return {codes.data(), static_cast<int64_t>(codes.shape(1)), first, last};
}

static WalkRows columns(const In<int32_t, 2>& codes) {
  return columns(codes, 0, static_cast<int64_t>(codes.shape(1)));
}

static WalkMoments given(const In<double, 2>& moments) {
  return {moments.data(), static_cast<int64_t>(moments.shape(0))};
}

static WalkPairs given(const In<int32_t, 2>& pair_column, const Out<double, 3>& out) {
  return {pair_column.data(), static_cast<int64_t>(pair_column.shape(0)), static_cast<int64_t>(out.shape(1))};
}

static void require(bool ok) {
  if (!ok) throw std::bad_alloc();
}

static void interventional_joint(FS_TREES, In<int32_t, 2> codes, int64_t first_row, int64_t last_row,
                                 In<int32_t, 2> background, In<double, 1> weights, In<double, 2> moments,
                                 Out<double, 3> out) {
  require(FS_PICK(interventional_joint)(FS_TREES_GIVEN, columns(codes, first_row, last_row),
                                        columns(background), weights.data(), given(moments), out.shape(1), out.shape(2),
                                        out.data()));
}

static void interventional_rows(FS_TREES, In<int32_t, 2> codes, int64_t first_row, int64_t last_row,
                                In<int32_t, 2> background, In<double, 1> weights, In<double, 2> moments,
                                 Out<double, 3> out) {
  require(FS_PICK(interventional_rows)(FS_TREES_GIVEN, columns(codes, first_row, last_row),
                                       columns(background), weights.data(), given(moments), out.shape(1), out.shape(2),
                                       out.data()));
}

static void path_dependent(FS_TREES, In<double, 1> ratio, In<int32_t, 1> n_points,
                           In<int64_t, 1> point_start, In<double, 1> points, In<double, 1> point_weights,
                           In<int32_t, 2> codes, int64_t first_row, int64_t last_row, Out<double, 3> out) {
  require(FS_PICK(path_dependent)(FS_TREES_GIVEN, ratio.data(), n_points.data(), point_start.data(),
                                  points.data(), point_weights.data(),
                                  columns(codes, first_row, last_row), out.shape(1), out.shape(2),
                                  out.data()));
}

static void interventional_pairs(FS_TREES, In<int32_t, 2> codes, int64_t first_row, int64_t last_row,
                                 In<int32_t, 2> background, In<double, 1> weights, In<double, 2> moments,
                                 In<int32_t, 2> pair_column, Out<double, 3> out) {
  require(FS_PICK(interventional_pairs)(FS_TREES_GIVEN, columns(codes, first_row, last_row), columns(background),
                                        weights.data(), given(moments), given(pair_column, out), out.shape(2),
                                        out.data()));
}

static void path_dependent_pairs(FS_TREES, In<double, 1> ratio, In<int32_t, 1> n_points,
                                 In<int64_t, 1> point_start, In<double, 1> points,
                                 In<double, 1> point_weights, In<int32_t, 2> codes, int64_t first_row,
                                 int64_t last_row, In<int32_t, 2> pair_column, Out<double, 3> out) {
  require(FS_PICK(path_dependent_pairs)(FS_TREES_GIVEN, ratio.data(), n_points.data(), point_start.data(),
                                        points.data(), point_weights.data(), columns(codes, first_row, last_row),
                                        given(pair_column, out), out.shape(2), out.data()));
}

static void predict(FS_TREES, In<int32_t, 2> codes, int64_t first_row, int64_t last_row,
                    Out<double, 2> out) {
  require(FS_PICK(predict)(FS_TREES_GIVEN, columns(codes, first_row, last_row), out.shape(1), out.data()));
}

static void leaf_visits(FS_TREES, In<int32_t, 2> codes, In<int32_t, 2> background, int64_t n_players,
                        Out<double, 1> out) {
  require(
      FS_PICK(leaf_visits)(FS_TREES_GIVEN, columns(codes), columns(background), n_players, out.data()));
}

static void path_shape(FS_TREES, int64_t n_players, Out<int32_t, 1> most_players, Out<int32_t, 1> depth) {
  require(FS_PICK(path_shape)(FS_TREES_GIVEN, n_players, most_players.data(), depth.data()));
}

void bind_walk(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("walk", "SHAP values of trees without tables.");
  const auto free_gil = nb::call_guard<nb::gil_scoped_release>();
  const auto out = nb::arg("out").noconvert();
  m.def("interventional_joint", &interventional_joint, FS_TREES_ARGS, nb::arg("codes"),
        nb::arg("first_row"), nb::arg("last_row"), nb::arg("background"), nb::arg("weights"), nb::arg("moments"), out,
        free_gil);
  m.def("interventional_rows", &interventional_rows, FS_TREES_ARGS, nb::arg("codes"), nb::arg("first_row"),
        nb::arg("last_row"), nb::arg("background"), nb::arg("weights"), nb::arg("moments"), out,
        free_gil);
  m.def("path_dependent", &path_dependent, FS_TREES_ARGS, nb::arg("ratio"), nb::arg("n_points"),
        nb::arg("point_start"), nb::arg("points"), nb::arg("point_weights"), nb::arg("codes"),
        nb::arg("first_row"), nb::arg("last_row"), out, free_gil);
  m.def("interventional_pairs", &interventional_pairs, FS_TREES_ARGS, nb::arg("codes"), nb::arg("first_row"),
        nb::arg("last_row"), nb::arg("background"), nb::arg("weights"), nb::arg("moments"),
        nb::arg("pair_column"), out, free_gil);
  m.def("path_dependent_pairs", &path_dependent_pairs, FS_TREES_ARGS, nb::arg("ratio"), nb::arg("n_points"),
        nb::arg("point_start"), nb::arg("points"), nb::arg("point_weights"), nb::arg("codes"),
        nb::arg("first_row"), nb::arg("last_row"), nb::arg("pair_column"), out, free_gil);
  m.def("predict", &predict, FS_TREES_ARGS, nb::arg("codes"), nb::arg("first_row"), nb::arg("last_row"), out,
        free_gil);
  m.def("leaf_visits", &leaf_visits, FS_TREES_ARGS, nb::arg("codes"), nb::arg("background"),
        nb::arg("n_players"), out, free_gil);
  m.def("path_shape", &path_shape, FS_TREES_ARGS, nb::arg("n_players"), nb::arg("most_players").noconvert(),
        nb::arg("depth").noconvert(), free_gil);
}

}  // namespace fouriershap
