#include "binding.h"

#define FS_LEVEL baseline
#include "leaves.h"
#undef FS_LEVEL
#define FS_LEVEL avx2
#include "leaves.h"
#undef FS_LEVEL

namespace fouriershap {

template <class T>
static void find(Exactly<const T, 2> rows, In<int32_t, 1> roots, In<int32_t, 1> feature,
                 Exactly<const T, 1> threshold, In<int32_t, 1> left, In<int32_t, 1> right,
                 In<bool, 1> missing_left, In<int32_t, 1> category_set, In<int64_t, 1> set_start,
                 In<int64_t, 1> set_categories, Out<int32_t, 2> out) {
  FS_PICK(find<T>)(
      PlainRows<T>{rows.data(), length(rows), length(rows, 1)},
      PlainTrees<T>{roots.data(), length(roots), feature.data(), threshold.data(), left.data(), right.data(),
                    missing_left.data(), category_set.data(), set_start.data(), set_categories.data()},
      out.data());
}

void bind_leaves(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("leaves", "The leaves that rows reach in trees.");
  m.def("find", &find<float>, FreeGil());
  m.def("find", &find<double>, FreeGil());
}

}  // namespace fouriershap
