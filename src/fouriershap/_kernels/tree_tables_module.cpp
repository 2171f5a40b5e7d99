#include "binding.h"
#include "tree_tables.h"

namespace fouriershap {

class BoundTreeBlocks : Owner, public TreeBlocks {
 public:
  int64_t n_blocks() const { return n_patterns.size; }

  BoundTreeBlocks(In<int32_t, 1> patterns, In<int64_t, 1> the_feature_start, In<int32_t, 1> states,
                  In<int64_t, 1> the_leaf_start, In<int32_t, 1> node, In<int64_t, 1> player_start,
                  In<int32_t, 1> players, In<double, 1> ratio, In<int64_t, 1> the_fail_start,
                  In<uint32_t, 1> fails, In<double, 2> values, In<double, 1> quadrature,
                  In<int64_t, 1> starts)
      : TreeBlocks{
            keep(patterns),     keep(the_feature_start), keep(states), keep(the_leaf_start), keep(node),
            keep(player_start), keep(players),           keep(ratio),  keep(the_fail_start), keep(fails),
            keep(values),       keep(quadrature),        keep(starts)} {
    check_starts("feature_start", feature_start, n_blocks(), feature_states.size);
    check_starts("leaf_start", leaf_start, n_blocks(), leaf_node.size);
    check_starts("leaf_player_start", leaf_player_start, leaf_node.size, leaf_players.size);
    check_starts("fail_start", fail_start, leaf_node.size, fail.size);
    check_length("leaf_ratio", leaf_ratio.size, leaf_players.size);
    check_range("leaf_node", leaf_node, 0, leaf_values.rows);
    check_range("leaf_players", leaf_players, 0, INT32_MAX);
    check_range("feature_states", feature_states, 1, 65537);
    check_starts("nodes_start", nodes_start, nodes_start.size - 1, nodes.size);
    for (int64_t b = 0; b < n_blocks(); ++b) check_block(b);
  }

 private:
  void check_block(int64_t b) const {
    int64_t product = 1, n_states = 0;
    for (int64_t f = feature_start[b]; f < feature_start[b + 1] && product <= n_patterns[b]; ++f) {
      product *= feature_states[f];
      n_states += feature_states[f];
    }
    check_length("n_patterns", n_patterns[b], product);
    for (int64_t l = leaf_start[b]; l < leaf_start[b + 1]; ++l) {
      const int u = n_players(l);
      check(u <= kMostPlayers && u + 1 < nodes_start.size,
            "`leaf_player_start` gives a leaf too many players.");
      check_length("fail", fail_start[l + 1] - fail_start[l], n_states);
      const int64_t n_nodes = (nodes_start[u + 1] - nodes_start[u]) / 2;
      check(n_nodes <= kMostNodes && n_nodes % 4 == 0,
            "`nodes` must be 4, 8, 12 or 16 for each number of players.");
      check_range("fail", Span<const uint32_t>{fail + fail_start[l], n_states}, 0, int64_t{1} << u);
    }
  }
};

class BoundLayout : Owner, public TreeLayout {
 public:
  BoundLayout(In<int32_t, 1> table_block, In<int64_t, 1> table_offset, In<int32_t, 2> table_slots,
              int64_t set_size)
      : TreeLayout{keep(table_block), keep(table_offset), keep(table_slots), set_size} {
    check(order == 1 || order == 2, "`order` must be 1 or 2.");
    check_length("table_offset", offset.size, block.size);
    check_length("table_slots", slots.rows, block.size);
    check_range("table_slots", slots.flat(), -1, 8);
  }
};

class BoundGames : Owner, public TreeGames {
 public:
  BoundGames(In<int32_t, 1> owner, In<int32_t, 1> game, In<int32_t, 2> unit, In<int32_t, 2> unit_class,
             In<int32_t, 2> class_laws)
      : TreeGames{keep(owner), keep(game), keep(unit), keep(unit_class), keep(class_laws)} {
    check_length("kind", kind.rows, merged.rows);
    check_length("laws", laws.rows, merged.rows);
    check_length("merged.shape[1]", merged.columns, game_of.size);
    check_length("kind.shape[1]", kind.columns, game_of.size);
    check_range("leaf_owner", leaf_owner, 0, game_of.size);
    check_range("game_of", game_of, 0, merged.rows);
    check_range("kind", kind.flat(), 0, laws.columns);
    check_range("laws", laws.flat(), kUniform, kNever + 1);
    for (int64_t player = 0; player < game_of.size; ++player)
      check(kind[game_of[player]][player] == 0, "`kind` of a player in its own game must be 0.");
    for (int64_t game_row = 0; game_row < laws.rows; ++game_row)
      check(laws[game_row][0] == kUniform, "`laws` of class 0 must be 0.");
  }

  const TreeGames* of(const TreeBlocks& blocks, int64_t order) const {
    check_length("leaf_owner", leaf_owner.size, blocks.leaf_players.size);
    check(order == 1, "`order` must be 1 for games.");
    check_at_least("nodes_start", blocks.nodes_start.size, kMostPlayers + 2);
    for (int64_t n = 1; n <= kMostPlayers / 2; ++n)
      check_at_least("nodes", blocks.nodes_start[2 * n] - blocks.nodes_start[2 * n - 1], 2 * n);
    return this;
  }
};

template <class T>
static void fill_tables(const BoundTreeBlocks& blocks, const BoundLayout& layout, In<double, 2> histograms,
                        In<int64_t, 1> histogram_offset, int64_t first_table, int64_t last_table,
                        Out<T, 1> values, Out<double, 2> reached, const BoundGames* games) {
  const PatternShares background = {view(histograms), view(histogram_offset)};
  check_slice("tables", first_table, last_table, layout.block.size);
  check_length("reached", length(reached), blocks.leaf_node.size);
  check_length("reached.shape[1]", length(reached, 1), background.n_channels());
  check(layout.order == 1 || background.n_channels() == 1, "`histograms` of pairs have one channel.");
  check_at_least("histogram_offset", length(histogram_offset), blocks.n_blocks());
  check_range("table_block", Span<const int32_t>{layout.block + first_table, last_table - first_table}, 0,
              blocks.n_blocks());
  for (int64_t t = first_table; t < last_table; ++t) {
    const int64_t b = layout.block[t],
                  size = background.n_channels() * blocks.n_patterns[b] * blocks.width() * 8;
    check_slice("values", layout.offset[t], layout.offset[t] + size, length(values));
    if (length(histograms))
      check_slice("histograms", background.offset[b], background.offset[b] + blocks.n_patterns[b],
                  length(histograms));
    int64_t most = 0;
    for (int64_t l = blocks.leaf_start[b]; l < blocks.leaf_start[b + 1]; ++l)
      for (int64_t i = blocks.leaf_player_start[l]; i < blocks.leaf_player_start[l + 1]; ++i)
        most = std::max(most, int64_t{blocks.leaf_players[i]} + 1);
    check_at_least("table_slots.shape[1]", layout.slots.columns,
                   layout.order == 1 ? most : most * (most - 1) / 2);
  }
  fill<T>(blocks, layout, background, first_table, last_table, view(values), view(reached),
          games ? games->of(blocks, layout.order) : nullptr);
}

void bind_tree_tables(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("tree_tables", "The tables of blocks of trees.");
  nb::class_<BoundTreeBlocks>(m, "Blocks")
      .def(nb::init<In<int32_t, 1>, In<int64_t, 1>, In<int32_t, 1>, In<int64_t, 1>, In<int32_t, 1>,
                    In<int64_t, 1>, In<int32_t, 1>, In<double, 1>, In<int64_t, 1>, In<uint32_t, 1>,
                    In<double, 2>, In<double, 1>, In<int64_t, 1>>());
  nb::class_<BoundLayout>(m, "Layout")
      .def(nb::init<In<int32_t, 1>, In<int64_t, 1>, In<int32_t, 2>, int64_t>());
  nb::class_<BoundGames>(m, "Games")
      .def(nb::init<In<int32_t, 1>, In<int32_t, 1>, In<int32_t, 2>, In<int32_t, 2>, In<int32_t, 2>>());
  m.def("fill", &fill_tables<float>, FreeGil(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
        nb::arg(), nb::arg(), nb::arg(), nb::arg().none());
  m.def("fill", &fill_tables<double>, FreeGil(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
        nb::arg(), nb::arg(), nb::arg(), nb::arg().none());
}

}  // namespace fouriershap
