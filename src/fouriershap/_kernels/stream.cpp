#include "stream.h"

#include "walk_binding.h"

namespace fouriershap {

class BoundIndex : Owner, public StreamIndex {
 public:
  BoundIndex(In<double, 1> the_nodes, In<int64_t, 1> the_start, In<double, 2> the_moments, bool adds_up)
      : StreamIndex{keep(the_nodes), keep(the_start), keep(the_moments), adds_up} {
    check_starts("nodes_start", start, kMostStreamPlayers + 2, nodes.size);
    check_at_least("moments", moments.rows, kMostStreamPlayers + 2);
    check_length("moments.shape[1]", moments.columns, moments.rows);
  }
};

static void check_padded(const BoundTrees& trees, const In<int32_t, 2>& codes, int64_t first_row,
                         const In<int32_t, 2>& background) {
  check(trees.most_players <= kMostStreamPlayers, "`trees` have more than 30 players on a path.");
  check(first_row % 8 == 0 && length(codes, 1) % 8 == 0 && length(background, 1) % 8 == 0,
        "`codes`, `background` and `first_row` must be padded to a multiple of 8 columns.");
}

static StreamSettings settings_of(int32_t dense_bits, int32_t class_bits, int32_t merged_nodes) {
  check(dense_bits >= 0 && dense_bits <= kMostStreamPlayers && class_bits >= 0 && merged_nodes >= 0,
        "`dense_bits`, `class_bits` and `merged_nodes` must be at least 0, `dense_bits` at most 30.");
  return {dense_bits, class_bits, merged_nodes};
}

static void explain(const BoundTrees& trees, In<int32_t, 2> codes, int64_t first_row, int64_t last_row,
                    In<int32_t, 2> background, In<double, 1> weights, const BoundIndex& index,
                    int32_t dense_bits, int32_t class_bits, int32_t merged_nodes, bool single,
                    Out<double, 3> out) {
  check_padded(trees, codes, first_row, background);
  check_at_least("weights", length(weights), 1);
  stream_values(trees, trees.rows(codes, first_row, last_row), trees.background(background, weights), index,
                settings_of(dense_bits, class_bits, merged_nodes), single,
                trees.out(out, last_row, trees.n_players));
}

static void explain_mixed(const BoundTrees& trees, In<int32_t, 2> codes, int64_t first_row, int64_t last_row,
                          In<int32_t, 2> background, In<double, 2> weights, In<double, 2> mix,
                          const BoundIndex& index, int32_t dense_bits, int32_t class_bits, bool single,
                          Out<double, 3> out) {
  check_padded(trees, codes, first_row, background);
  check(trees.n_outputs == 1 && trees.width() == 1, "`trees` must have one output.");
  check_at_least("weights", length(weights), 1);
  check(index.efficient, "`index` must be efficient.");
  check_at_least("weights.shape[1]", length(weights, 1), 1);
  check_at_least("background.shape[1]", length(background, 1), length(weights));
  check_at_least("mix", length(mix), last_row);
  check_length("mix.shape[1]", length(mix, 1), length(weights, 1));
  stream_mixed(trees, trees.rows(codes, first_row, last_row),
               trees.rows(background, 0, length(weights), "background"), {view(weights), view(mix)}, index,
               settings_of(dense_bits, class_bits, 0), single, trees.out(out, last_row, trees.n_players));
}

static void count(const BoundTrees& trees, Out<int64_t, 2> counts) {
  check_length("counts", length(counts), trees.n_trees());
  check_at_least("counts.shape[1]", length(counts, 1), 1);
  count_bottom_subtrees(trees, view(counts));
}

void bind_stream(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("stream", "SHAP values of deep trees, a bottom subtree at a time.");
  nb::class_<BoundIndex>(m, "Index").def(nb::init<In<double, 1>, In<int64_t, 1>, In<double, 2>, bool>());
  m.def("interventional", &explain, FreeGil());
  m.def("mixed", &explain_mixed, FreeGil());
  m.def("count_bottom_subtrees", &count, FreeGil());
}

}  // namespace fouriershap
