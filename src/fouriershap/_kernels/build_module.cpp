#include "binding.h"
#include "tree_blocks.h"

#define FS_LEVEL baseline
#include "build.h"
#undef FS_LEVEL
#define FS_LEVEL avx2
#include "build.h"
#undef FS_LEVEL

namespace fouriershap {

static void spectrum_tables(In<int32_t, 1> block_bits, In<int64_t, 1> histogram_offset,
                            In<double, 1> histograms, In<int64_t, 1> term_start, In<uint32_t, 1> term_mask,
                            In<double, 2> coefficients, In<double, 3> shares, In<int32_t, 1> table_block,
                            In<int64_t, 1> table_offset, In<int32_t, 2> table_slots, int64_t order,
                            int64_t first_table, int64_t last_table, Out<double, 1> values) {
  FS_PICK(spectrum_tables)(block_bits.data(), histogram_offset.data(), histograms.data(), term_start.data(),
                           term_mask.data(), coefficients.data(), coefficients.shape(1), shares.data(),
                           shares.shape(1), table_block.data(), table_offset.data(), table_slots.data(),
                           table_slots.shape(1), order, first_table, last_table, values.data());
}

static int64_t cover(In<int64_t, 1> start, In<int32_t, 1> atoms, int64_t n_atoms, int64_t max_atoms,
                     In<int64_t, 1> weights, Out<int32_t, 1> block_of_term, Out<int64_t, 1> block_start,
                     Out<int32_t, 1> block_atoms) {
  return FS_PICK(cover)(start.data(), atoms.data(), start.shape(0) - 1, n_atoms, max_atoms, weights.data(),
                        block_of_term.data(), block_start.data(), block_atoms.data());
}

static int64_t group(In<int64_t, 1> start, In<int32_t, 1> players, In<int32_t, 1> kinds, int64_t n_players,
                     int64_t most_tables, int64_t reach, Out<int32_t, 1> group_of_table, Out<int32_t, 2> group_players) {
  return FS_PICK(group)(start.data(), players.data(), kinds.data(), kinds.shape(0), n_players, most_tables, reach,
                        group_of_table.data(), group_players.data());
}

template <class T>
static void tree_tables(In<double, 1> histograms, In<int64_t, 1> histogram_offset, In<int32_t, 1> block_patterns,
                        In<int64_t, 1> feature_start, In<int32_t, 1> feature_states,
                        In<int64_t, 1> leaf_start, In<int32_t, 1> leaf_node,
                        In<int64_t, 1> leaf_player_start, In<int32_t, 1> leaf_players,
                        In<double, 1> leaf_ratio, In<int64_t, 1> fail_start, In<uint32_t, 1> fail,
                        In<double, 2> leaf_values, In<double, 1> nodes, In<int64_t, 1> nodes_start,
                        In<int32_t, 1> table_block, In<int64_t, 1> table_offset,
                        In<int32_t, 2> table_slots, int64_t order, int64_t first_table,
                        int64_t last_table, Out<T, 1> values, Out<double, 1> reached) {
  FS_PICK(tree_tables<T>)(histograms.shape(0) ? histograms.data() : nullptr, histogram_offset.data(),
                          block_patterns.data(), feature_start.data(), feature_states.data(),
                          leaf_start.data(), leaf_node.data(), leaf_player_start.data(),
                          leaf_players.data(), leaf_ratio.data(), fail_start.data(), fail.data(),
                          leaf_values.data(), leaf_values.shape(1), nodes.data(), nodes_start.data(),
                          table_block.data(), table_offset.data(), table_slots.data(),
                          table_slots.shape(1), order, first_table, last_table, values.data(), reached.data());
}

// Arrays whose length the kernel decides come back as NumPy arrays that own their memory.
template <class T>
static nb::object own(std::vector<T>&& values) {
  auto* kept = new std::vector<T>(std::move(values));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept->data(), {kept->size()}, owner));
}

static Trees make_trees(const In<int32_t, 1>& roots, const In<int32_t, 1>& feature, const In<int32_t, 1>& cut,
                        const In<bool, 1>& missing_left, const In<int32_t, 1>& left,
                        const In<int32_t, 1>& right, const In<int32_t, 1>& category_set,
                        const In<uint64_t, 2>& set_bits, const In<int32_t, 1>& n_codes,
                        const In<int32_t, 1>& player, const In<double, 1>& cover, const In<bool, 1>& wanted) {
  Trees t;
  t.roots = roots.data(), t.feature = feature.data(), t.cut = cut.data(), t.left = left.data();
  t.right = right.data(), t.category_set = category_set.data(), t.n_codes = n_codes.data();
  t.player = player.data(), t.missing_left = missing_left.data(), t.wanted = wanted.data();
  t.set_bits = set_bits.data(), t.cover = cover.data();
  t.n_trees = roots.shape(0), t.n_nodes = feature.shape(0), t.set_words = set_bits.shape(1);
  return t;
}

static nb::dict blocks_of_trees(In<int32_t, 1> roots, In<int32_t, 1> feature, In<int32_t, 1> cut,
                                In<bool, 1> missing_left, In<int32_t, 1> left, In<int32_t, 1> right,
                                In<int32_t, 1> category_set, In<uint64_t, 2> set_bits,
                                In<int32_t, 1> n_codes, In<int32_t, 1> player, In<double, 1> cover,
                                In<bool, 1> wanted, int64_t max_patterns, int64_t max_players,
                                double cost_table, double cost_cut, double cost_pattern) {
  const Trees trees = make_trees(roots, feature, cut, missing_left, left, right, category_set, set_bits,
                                 n_codes, player, cover, wanted);
  BlockArrays b;
  {
    nb::gil_scoped_release free_gil;
    b = tree_blocks(trees, {max_patterns, max_players, cost_table, cost_cut, cost_pattern});
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

static void profile_of_trees(In<int32_t, 1> roots, In<int32_t, 1> feature, In<int32_t, 1> left,
                             In<int32_t, 1> right, In<int32_t, 1> player, Out<double, 2> out) {
  Trees t = {};
  t.roots = roots.data(), t.feature = feature.data(), t.left = left.data(), t.right = right.data();
  t.player = player.data(), t.n_trees = roots.shape(0), t.n_nodes = feature.shape(0);
  tree_profile(t, out.data());
}

void bind_build(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("build", "Blocks, groups, and the tables of spectra and trees.");
  const auto free_gil = nb::call_guard<nb::gil_scoped_release>();
  const nb::arg in;
  const auto exactly = nb::arg().noconvert();  // outputs are written in place: a converted copy would be lost
  m.def("tree_tables", &tree_tables<float>, in, in, in, in, in, in, in, in, in, in, in, in, in, in, in, in, in,
        in, in, in, in, exactly, exactly, free_gil);
  m.def("tree_tables", &tree_tables<double>, in, in, in, in, in, in, in, in, in, in, in, in, in, in, in, in, in,
        in, in, in, in, exactly, exactly, free_gil);
  m.def("tree_blocks", &blocks_of_trees);
  m.def("tree_profile", &profile_of_trees, in, in, in, in, in, exactly, free_gil);
  m.def("spectrum_tables", &spectrum_tables, in, in, in, in, in, in, in, in, in, in, in, in, in, exactly, free_gil);
  m.def("cover", &cover, in, in, in, in, in, exactly, exactly, exactly, free_gil);
  m.def("group", &group, in, in, in, in, in, in, exactly, exactly, free_gil);
}

}  // namespace fouriershap
