#include "tree_blocks.h"

#include <algorithm>

#include "binding.h"

namespace fouriershap {

static void check_trees(const TreeShape& trees) {
  check_length("left", trees.left.size, trees.n_nodes());
  check_length("right", trees.right.size, trees.n_nodes());
  check_range("roots", trees.roots, 0, trees.n_nodes());
  check_range("feature", trees.feature, INT32_MIN, trees.player.size);
  check_range("player", trees.player, 0, INT32_MAX);
  for (int64_t k = 0; k + 1 < trees.n_trees(); ++k)
    check(trees.roots[k] < trees.roots[k + 1], "`roots` must ascend.");
  bool follows = true;
  for (int64_t v = 0; v < trees.n_nodes(); ++v)
    if (trees.feature[v] >= 0)
      follows &= std::min(trees.left[v], trees.right[v]) > v &&
                 std::max(trees.left[v], trees.right[v]) < trees.n_nodes();
  check(follows, "`left` or `right` has a child that does not follow its parent.");
}

class BoundCodedTrees : Owner, public CodedTrees {
 public:
  BoundCodedTrees(In<int32_t, 1> the_roots, In<int32_t, 1> features, In<int32_t, 1> cuts, In<bool, 1> missing,
                  In<int32_t, 1> lefts, In<int32_t, 1> rights, In<int32_t, 1> sets, In<uint64_t, 2> bits,
                  In<int32_t, 1> code_counts, In<int32_t, 1> owners, In<double, 1> covers)
      : CodedTrees{{keep(the_roots), keep(features), keep(lefts), keep(rights), keep(owners)},
                   keep(cuts),
                   keep(sets),
                   keep(missing),
                   keep(bits),
                   keep(code_counts),
                   keep(covers)} {
    check_trees(*this);
    check_length("cut", cut.size, n_nodes());
    check_length("category_set", category_set.size, n_nodes());
    check_length("missing_left", missing_left.size, n_nodes());
    check_length("cover", cover.size, n_nodes());
    check_length("n_codes", n_codes.size, player.size);
    check_range("category_set", category_set, -1, set_bits.rows);
    for (int64_t v = 0; v < n_nodes(); ++v)
      if (feature[v] >= 0 && category_set[v] >= 0)
        check(n_codes[feature[v]] <= 64 * set_bits.columns,
              "`set_bits` has fewer bits than there are codes.");
  }
};

// Arrays whose length the kernel decides come back as NumPy arrays that own their memory.
template <class T>
static nb::object own(std::vector<T>&& values) {
  auto kept = std::make_unique<std::vector<T>>(std::move(values));
  nb::capsule owner(kept.get(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  std::vector<T>* array = kept.release();
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(array->data(), {array->size()}, owner));
}

static nb::dict cut(const BoundCodedTrees& trees, In<bool, 1> wanted, int64_t max_patterns,
                    int64_t max_players, double cost_table, double cost_cut, double cost_pattern) {
  check_length("wanted", length(wanted), trees.n_trees());
  check(max_patterns <= 65536, "`max_patterns` must be at most 65,536.");
  BlockArrays b;
  {
    nb::gil_scoped_release free_gil;
    b = cut_trees(trees, view(wanted), {max_patterns, max_players, cost_table, cost_cut, cost_pattern});
  }
  nb::dict out;
#define FS_FIELD(name) out[#name] = own(std::move(b.name))
  FS_FIELD(cut_start), FS_FIELD(cut_missing), FS_FIELD(cut_column), FS_FIELD(cut_at), FS_FIELD(cut_weight);
  FS_FIELD(base), FS_FIELD(n_patterns), FS_FIELD(tree), FS_FIELD(player_start), FS_FIELD(players);
  FS_FIELD(feature_start), FS_FIELD(feature_states), FS_FIELD(leaf_start), FS_FIELD(leaf_node);
  FS_FIELD(leaf_player_start), FS_FIELD(leaf_players), FS_FIELD(leaf_ratio), FS_FIELD(fail_start);
  FS_FIELD(fail), FS_FIELD(feasible);
#undef FS_FIELD
  return out;
}

static void profile(In<int32_t, 1> roots, In<int32_t, 1> feature, In<int32_t, 1> left, In<int32_t, 1> right,
                    In<int32_t, 1> player, Out<double, 2> out) {
  const TreeShape trees = {view(roots), view(feature), view(left), view(right), view(player)};
  check_trees(trees);
  check_shape("out", out, {trees.n_trees(), 4});
  profile_trees(trees, view(out));
}

void bind_tree_blocks(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("tree_blocks", "Trees cut into blocks.");
  nb::class_<BoundCodedTrees>(m, "Trees")
      .def(nb::init<In<int32_t, 1>, In<int32_t, 1>, In<int32_t, 1>, In<bool, 1>, In<int32_t, 1>,
                    In<int32_t, 1>, In<int32_t, 1>, In<uint64_t, 2>, In<int32_t, 1>, In<int32_t, 1>,
                    In<double, 1>>());
  m.def("cut_trees", &cut);
  m.def("profile_trees", &profile, FreeGil());
}

}  // namespace fouriershap
