#include "binding.h"

#define FS_LEVEL baseline
#include "tree_tables.h"
#undef FS_LEVEL
#define FS_LEVEL avx2
#include "tree_tables.h"
#undef FS_LEVEL

namespace fouriershap {

template <class T>
static void fill(In<double, 1> histograms, In<int64_t, 1> histogram_offset, In<int32_t, 1> block_patterns,
                 In<int64_t, 1> feature_start, In<int32_t, 1> feature_states, In<int64_t, 1> leaf_start,
                 In<int32_t, 1> leaf_node, In<int64_t, 1> leaf_player_start, In<int32_t, 1> leaf_players,
                 In<double, 1> leaf_ratio, In<int64_t, 1> fail_start, In<uint32_t, 1> fail,
                 In<double, 2> leaf_values, In<double, 1> nodes, In<int64_t, 1> nodes_start,
                 In<int32_t, 1> table_block, In<int64_t, 1> table_offset, In<int32_t, 2> table_slots,
                 int64_t order, int64_t first_table, int64_t last_table, Out<T, 1> values,
                 Out<double, 1> reached) {
  const TreeBlocks blocks = {.n_patterns = block_patterns.data(),
                             .feature_start = feature_start.data(),
                             .feature_states = feature_states.data(),
                             .leaf_start = leaf_start.data(),
                             .leaf_node = leaf_node.data(),
                             .leaf_player_start = leaf_player_start.data(),
                             .leaf_players = leaf_players.data(),
                             .leaf_ratio = leaf_ratio.data(),
                             .fail_start = fail_start.data(),
                             .fail = fail.data(),
                             .leaf_values = leaf_values.data(),
                             .width = length(leaf_values, 1)};
  require(FS_PICK(fill<T>)(
      blocks, {optional(histograms), histogram_offset.data(), nodes.data(), nodes_start.data()},
      {table_block.data(), table_offset.data(), table_slots.data(), length(table_slots, 1), order,
       first_table, last_table, values.data(), reached.data()}));
}

void bind_tree_tables(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("tree_tables", "The tables of blocks of trees.");
  m.def("fill", &fill<float>, FreeGil());
  m.def("fill", &fill<double>, FreeGil());
}

}  // namespace fouriershap
