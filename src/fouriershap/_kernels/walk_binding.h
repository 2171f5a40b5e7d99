// Bound trees, and the other arguments that the families walk, stream and orders share.
#pragma once
#include <algorithm>

#include "binding.h"
#include "walk.h"

namespace fouriershap {

// An ensemble whose arrays were checked once, with what can be derived from them.
class BoundTrees : Owner, public WalkTrees {
 public:
  int64_t n_lines = 0;    // of a code matrix, at least
  int64_t n_outputs = 0;  // at least

  BoundTrees(In<int32_t, 2> the_nodes, In<double, 2> the_values, In<int32_t, 1> the_roots,
             In<int32_t, 1> the_outputs, In<int32_t, 1> the_features, In<int32_t, 1> code_counts,
             In<int32_t, 1> owners, In<bool, 1> is_categorical, In<uint64_t, 2> sets, int64_t player_count) {
    check_length("nodes.shape[1]", length(the_nodes, 1), 4);
    const Matrix<const int32_t> numbers = keep(the_nodes);
    nodes = {reinterpret_cast<const Node*>(numbers.data), numbers.rows};
    values = keep(the_values);
    roots = keep(the_roots);
    tree_output = keep(the_outputs);
    features = keep(the_features);
    n_codes = keep(code_counts);
    players = keep(owners);
    categorical = keep(is_categorical);
    set_bits = keep(sets);
    n_players = player_count;
    check_arrays();
    for (int64_t v = 0; v < nodes.size; ++v)
      if (!nodes[v].leaf()) check_node(v);
    for (const int32_t f : features) n_lines = std::max(n_lines, int64_t{f} + 1);
    measure_paths();
  }

  // Some of the trees: their nodes were checked with the whole.
  BoundTrees part(In<int32_t, 1> some_roots, In<int32_t, 1> some_outputs) const {
    BoundTrees out = *this;
    out.roots = out.keep(some_roots);
    out.tree_output = out.keep(some_outputs);
    out.check_trees();
    out.measure_paths();
    return out;
  }

  WalkRows rows(const In<int32_t, 2>& codes, int64_t first, int64_t last, const char* name = "codes") const {
    check_at_least(name, length(codes), n_lines);
    check_slice("rows", first, last, length(codes, 1));
    const WalkRows out = {view(codes), first, last};
    for (int64_t f = 0; f < n_features(); ++f)
      check_range(name, Span<const int32_t>{out.codes[features[f]] + first, last - first}, 0, n_codes[f]);
    return out;
  }

  // Columns after the weights are padding.
  WalkBackground background(const In<int32_t, 2>& codes, const In<double, 1>& weights) const {
    check_at_least("background.shape[1]", length(codes, 1), length(weights));
    return {rows(codes, 0, length(weights), "background"), view(weights)};
  }

  Moments moments(const In<double, 2>& given) const {
    check_at_least("moments", length(given), most_players + 1);
    check_length("moments.shape[1]", length(given, 1), length(given));
    return view(given);
  }

  // Values of `n_columns` players, pairs or sets in rows up to `last`.
  WalkValues out(const Out<double, 3>& given, int64_t last, int64_t n_columns) const {
    check_at_least("out", length(given), last);
    check_length("out.shape[1]", length(given, 1), n_columns);
    check_at_least("out.shape[2]", length(given, 2), n_outputs);
    return {given.data(), length(given), length(given, 1), length(given, 2)};
  }

 private:
  std::vector<int32_t> shape;

  void check_arrays() const {
    check_length("values", values.rows, nodes.size);
    check_at_least("values.shape[1]", values.columns, 1);
    check_length("n_codes", n_codes.size, features.size);
    check_length("players", players.size, features.size);
    check_length("categorical", categorical.size, features.size);
    check_trees();
    check_range("features", features, 0, INT32_MAX);
    check_range("n_codes", n_codes, 1, INT32_MAX);
    check_range("players", players, 0, n_players);
  }

  void check_trees() const {
    check_length("tree_output", tree_output.size, roots.size);
    check_range("roots", roots, 0, nodes.size);
    check_range("tree_output", tree_output, -1, width() > 1 ? width() : INT32_MAX);
  }

  void measure_paths() {
    n_outputs = most_players = most_depth = 0;
    for (const int32_t output : tree_output)
      n_outputs = std::max(n_outputs, output < 0 ? width() : int64_t{output} + 1);
    shape.assign(2 * n_trees(), 0);
    path_shape(*this, {shape.data(), n_trees()}, {shape.data() + n_trees(), n_trees()});
    tree_players = {shape.data(), n_trees()};
    tree_depth = {shape.data() + n_trees(), n_trees()};
    for (const int32_t most : tree_players) most_players = std::max(most_players, int64_t{most});
    for (const int32_t most : tree_depth) most_depth = std::max(most_depth, int64_t{most});
  }

  // Children come after their parents, so that every walk ends.
  void check_node(int64_t v) const {
    const Node& node = nodes[v];
    check(node.feature() < n_features(), "`nodes` tests a feature that is not there.");
    check(std::min(node.left, node.right) > v && std::max(node.left, node.right) < nodes.size,
          "`nodes` has a child that does not follow its parent.");
    if (node.test >= 0) {
      check(node.test < n_codes[node.feature()], "`nodes` has a cut beyond the codes of its feature.");
      return;
    }
    check(-1 - node.test < set_bits.rows && n_codes[node.feature()] <= 64 * set_bits.columns,
          "`nodes` has a category set that is not in `set_bits`.");
    check(categorical[node.feature()], "`nodes` has a category set at a feature that is not categorical.");
  }
};

}  // namespace fouriershap
