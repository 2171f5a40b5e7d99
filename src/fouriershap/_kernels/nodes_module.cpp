#include "binding.h"
#include "nodes.h"

namespace fouriershap {

static bool are_trees_of(In<int32_t, 1> roots, In<int32_t, 1> feature, In<int32_t, 1> left,
                         In<int32_t, 1> right) {
  if (length(left) != length(feature) || length(right) != length(feature)) return false;
  return are_trees({roots.data(), feature.data(), left.data(), right.data(), length(roots), length(feature)});
}

template <class T>
static int64_t levels_of(In<int32_t, 1> feature, Exactly<const T, 1> level, Out<int64_t, 1> start,
                         Out<int64_t, 1> position, Exactly<T, 1> found) {
  return levels(feature.data(), level.data(), length(feature), length(start) - 1, start.data(),
                position.data(), found.data());
}

static void pack_of(In<int32_t, 1> feature, In<int32_t, 1> cut, In<bool, 1> missing_left,
                    In<int32_t, 1> category_set, In<int32_t, 1> left, In<int32_t, 1> right,
                    Out<int32_t, 1> place, Out<int32_t, 2> nodes) {
  pack({.feature = feature.data(),
        .cut = cut.data(),
        .left = left.data(),
        .right = right.data(),
        .category_set = category_set.data(),
        .missing_left = reinterpret_cast<const uint8_t*>(missing_left.data()),
        .n_nodes = length(feature),
        .n_features = length(place),
        .place = place.data(),
        .nodes = nodes.data()});
}

void bind_nodes(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("nodes", "The nodes of ensembles.");
  m.def("are_trees", &are_trees_of, FreeGil());
  m.def("levels", &levels_of<float>, FreeGil());
  m.def("levels", &levels_of<double>, FreeGil());
  m.def("pack", &pack_of, FreeGil());
}

}  // namespace fouriershap
