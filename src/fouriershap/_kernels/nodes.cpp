#include "nodes.h"

#include "binding.h"

namespace fouriershap {

static bool check_trees(In<int32_t, 1> roots, In<int32_t, 1> feature, In<int32_t, 1> left,
                        In<int32_t, 1> right) {
  return are_trees({view(roots), view(feature), view(left), view(right)});
}

template <class T>
static int64_t find_levels(In<int32_t, 1> feature, Exactly<const T, 1> level, Out<int64_t, 1> start,
                           Out<int64_t, 1> position, Out<T, 1> found) {
  check_at_least("start", length(start), 1);
  check_range("feature", view(feature), 0, length(start) - 1);
  check_length("level", length(level), length(feature));
  check_length("position", length(position), length(feature));
  check_length("found", length(found), length(feature));
  return levels<T>(view(feature), view(level), view(start), view(position), view(found));
}

static void pack_nodes(In<int32_t, 1> feature, In<int32_t, 1> cut, In<bool, 1> missing_left,
                       In<int32_t, 1> category_set, In<int32_t, 1> left, In<int32_t, 1> right,
                       Out<int32_t, 1> place, Out<int32_t, 2> nodes) {
  const CodedNodes coded = {view(feature), view(cut),          view(left),
                            view(right),   view(category_set), view(missing_left)};
  const int64_t n = length(nodes);
  check_length("nodes.shape[1]", length(nodes, 1), 4);
  for (const int64_t size : {coded.feature.size, coded.cut.size, coded.left.size, coded.right.size,
                             coded.category_set.size, coded.missing_left.size})
    check_length("nodes", n, size);
  check_range("feature", coded.feature, INT32_MIN, length(place));
  pack(coded, view(place), view(nodes));
}

void bind_nodes(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("nodes", "The nodes of ensembles.");
  m.def("are_trees", &check_trees, FreeGil());
  m.def("levels", &find_levels<float>, FreeGil());
  m.def("levels", &find_levels<double>, FreeGil());
  m.def("pack", &pack_nodes, FreeGil());
}

}  // namespace fouriershap
