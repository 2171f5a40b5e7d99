#include <memory>

#include "binding.h"
#include "tree_blocks.h"

namespace fouriershap {

// Arrays whose length the kernel decides come back as NumPy arrays that own their memory.
template <class T>
static nb::object own(std::vector<T>&& values) {
  auto kept = std::make_unique<std::vector<T>>(std::move(values));
  nb::capsule owner(kept.get(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  std::vector<T>* array = kept.release();
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(array->data(), {array->size()}, owner));
}

static nb::dict cut(In<int32_t, 1> roots, In<int32_t, 1> feature, In<int32_t, 1> node_cut,
                    In<bool, 1> missing_left, In<int32_t, 1> left, In<int32_t, 1> right,
                    In<int32_t, 1> category_set, In<uint64_t, 2> set_bits, In<int32_t, 1> n_codes,
                    In<int32_t, 1> player, In<double, 1> cover, In<bool, 1> wanted, int64_t max_patterns,
                    int64_t max_players, double cost_table, double cost_cut, double cost_pattern) {
  const Trees trees = {.roots = roots.data(),
                       .feature = feature.data(),
                       .cut = node_cut.data(),
                       .left = left.data(),
                       .right = right.data(),
                       .category_set = category_set.data(),
                       .n_codes = n_codes.data(),
                       .player = player.data(),
                       .missing_left = missing_left.data(),
                       .wanted = wanted.data(),
                       .set_bits = set_bits.data(),
                       .cover = cover.data(),
                       .n_trees = length(roots),
                       .n_nodes = length(feature),
                       .set_words = length(set_bits, 1)};
  BlockArrays b;
  {
    nb::gil_scoped_release free_gil;
    b = cut_trees(trees, {max_patterns, max_players, cost_table, cost_cut, cost_pattern});
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
  const Trees trees = {.roots = roots.data(),
                       .feature = feature.data(),
                       .left = left.data(),
                       .right = right.data(),
                       .player = player.data(),
                       .n_trees = length(roots),
                       .n_nodes = length(feature)};
  profile_trees(trees, out.data());
}

void bind_tree_blocks(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("tree_blocks", "Trees cut into blocks.");
  m.def("cut_trees", &cut);
  m.def("profile_trees", &profile, FreeGil());
}

}  // namespace fouriershap
