#include "leaves.h"

#include "binding.h"

namespace fouriershap {

template <class T>
class BoundPlainTrees : Owner, public PlainTrees<T> {
 public:
  int64_t n_features = 0;  // at least

  BoundPlainTrees(In<int32_t, 1> the_roots, In<int32_t, 1> features, Exactly<const T, 1> thresholds,
                  In<int32_t, 1> lefts, In<int32_t, 1> rights, In<bool, 1> missing, In<int32_t, 1> sets,
                  In<int64_t, 1> start, In<int64_t, 1> categories)
      : PlainTrees<T>{keep(the_roots), keep(features), keep(thresholds), keep(lefts),     keep(rights),
                      keep(missing),   keep(sets),     keep(start),      keep(categories)} {
    const auto& [roots, feature, threshold, left, right, missing_left, category_set, set_start,
                 set_categories] = static_cast<const PlainTrees<T>&>(*this);
    const int64_t n = feature.size;
    for (const int64_t size : {threshold.size, left.size, right.size, missing_left.size, category_set.size})
      check_length("nodes", size, n);
    check_range("roots", roots, 0, n);
    check_at_least("set_start", set_start.size, 1);
    check_starts("set_start", set_start, set_start.size - 1, set_categories.size);
    check_range("category_set", category_set, -1, set_start.size - 1);
    bool follows = true;
    for (int64_t v = 0; v < n; ++v) {
      if (feature[v] < 0) continue;
      n_features = std::max(n_features, int64_t{feature[v]} + 1);
      follows &= std::min(left[v], right[v]) > v && std::max(left[v], right[v]) < n;
    }
    check(follows, "`left` or `right` has a child that does not follow its parent.");
  }
};

template <class T>
static void find_leaves(const BoundPlainTrees<T>& trees, Exactly<const T, 2> rows, Out<int32_t, 2> out) {
  check_at_least("rows.shape[1]", length(rows, 1), trees.n_features);
  check_shape("out", out, {length(rows), trees.roots.size});
  find<T>(trees, view(rows), view(out));
}

template <class T>
static void bind_trees(nb::module_& m, const char* name) {
  using Ints = In<int32_t, 1>;
  def_maker<BoundPlainTrees<T>, Ints, Ints, Exactly<const T, 1>, Ints, Ints, In<bool, 1>, Ints,
            In<int64_t, 1>, In<int64_t, 1>>(m, "Trees", name);
  m.def("find", &find_leaves<T>, FreeGil());
}

void bind_leaves(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("leaves", "The leaves that rows reach in trees.");
  bind_trees<float>(m, "_Trees32");
  bind_trees<double>(m, "_Trees64");
}

}  // namespace fouriershap
