#include "walk_binding.h"
#include "walk_bits.h"
#include "walk_values.h"

namespace fouriershap {

class BoundPaths : Owner, public WalkPaths {
 public:
  BoundPaths(In<double, 1> cover_ratio, In<int32_t, 1> counts, In<int64_t, 1> start, In<double, 1> at,
             In<double, 1> at_weights)
      : WalkPaths{keep(cover_ratio), keep(counts), keep(start), keep(at), keep(at_weights)} {
    check_length("point_start", point_start.size, n_points.size);
    check_length("weights", weights.size, points.size);
    check_range("n_points", n_points, 4, INT32_MAX);
    for (int64_t t = 0; t < n_points.size; ++t) {
      check(n_points[t] % 4 == 0, "`n_points` must be multiples of 4.");
      check_slice("points", point_start[t], point_start[t] + n_points[t], points.size);
    }
  }

  const WalkPaths& of(const BoundTrees& trees) const {
    check_length("ratio", ratio.size, trees.nodes.size);
    check_length("n_points", n_points.size, trees.n_trees());
    return *this;
  }
};

// The leaves of an ensemble as bits, in words of the size that suits its trees.
class BoundLeafBits {
 public:
  explicit BoundLeafBits(const BoundTrees& the_trees) : trees(the_trees) {
    int64_t n_leaves = 0;
    for (const Node& node : trees.nodes) n_leaves += node.leaf();
    if (n_leaves <= 32 * trees.n_trees())
      narrow = std::make_shared<LeafBits<uint32_t>>(trees);
    else
      wide = std::make_shared<LeafBits<uint64_t>>(trees);
  }

  // Column i of `others` is a background row.
  void chains(const In<int32_t, 2>& codes, int64_t row, const In<int32_t, 2>& others,
              const In<int64_t, 3>& places, const Out<double, 4>& out) const {
    const int64_t n = trees.n_players, n_others = length(others, 1);
    check_shape("places", places, {n_others, 2, n});
    check_shape("out", out, {n_others, 2, std::max<int64_t>(n - 1, 0), -1});
    check_at_least("out.shape[3]", length(out, 3), trees.n_outputs);
    std::vector<int64_t> met(n, -1);
    for (int64_t i = 0; i < 2 * n_others; ++i)
      for (int64_t p = 0; p < n; ++p) {
        const int64_t place = places.data()[i * n + p];
        check(place >= 0 && place < n && met[place] < i, "`places` must hold every place once.");
        met[place] = i;
      }
    use([&](const auto& bits) {
      bit_chains(bits, trees.rows(codes, row, row + 1), trees.rows(others, 0, n_others, "others"), n,
                 places.data(), length(out, 3), out.data());
    });
  }

  void coalitions(const In<int32_t, 2>& codes, int64_t row, const In<int32_t, 2>& others,
                  const Out<double, 3>& out) const {
    const int64_t n = trees.n_players, n_others = length(others, 1);
    check(n < 31, "`trees` have more than 30 players.");
    check_shape("out", out, {n_others, int64_t{1} << n, -1});
    check_at_least("out.shape[2]", length(out, 2), trees.n_outputs);
    use([&](const auto& bits) {
      bit_coalitions(bits, trees.rows(codes, row, row + 1), trees.rows(others, 0, n_others, "others"), n,
                     length(out, 2), out.data());
    });
  }

 private:
  BoundTrees trees;
  std::shared_ptr<LeafBits<uint32_t>> narrow;
  std::shared_ptr<LeafBits<uint64_t>> wide;

  template <class Use>
  void use(Use with) const {
    narrow ? with(*narrow) : with(*wide);
  }
};

// No sum of steps on a path is beyond the counts: it is at most that of as many players of each step as there
// are, or as a path has.
static WalkClasses classes_of(const BoundTrees& trees, const In<int32_t, 1>& steps,
                              const In<double, 3>& pairs) {
  const int64_t n_counts = length(pairs);
  check_shape("pairs", pairs, {n_counts, n_counts, 2});
  check_length("steps", length(steps), trees.n_players);
  check_range("steps", view(steps), 0, INT32_MAX);
  std::vector<int32_t> sorted(view(steps).begin(), view(steps).end());
  std::sort(sorted.begin(), sorted.end());
  int64_t most = 0, alike = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    alike = i && sorted[i] == sorted[i - 1] ? alike + 1 : 1;
    if (alike <= trees.most_players) most += sorted[i];
  }
  check(most < n_counts, "`pairs` has no weights for the largest sums of `steps`.");
  return {view(steps), pairs.data(), n_counts};
}

void bind_walk(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("walk", "SHAP values of trees without tables.");
  nb::class_<BoundTrees>(m, "Trees")
      .def(nb::init<In<int32_t, 2>, In<double, 2>, In<int32_t, 1>, In<int32_t, 1>, In<int32_t, 1>,
                    In<int32_t, 1>, In<int32_t, 1>, In<bool, 1>, In<uint64_t, 2>, int64_t>())
      .def("part", &BoundTrees::part)
      .def("path_shape", [](const BoundTrees& trees, Out<int32_t, 2> out) {
        check_shape("out", out, {2, trees.n_trees()});
        std::copy(trees.tree_players.begin(), trees.tree_players.end(), view(out)[0]);
        std::copy(trees.tree_depth.begin(), trees.tree_depth.end(), view(out)[1]);
      });
  nb::class_<BoundPaths>(m, "Paths")
      .def(nb::init<In<double, 1>, In<int32_t, 1>, In<int64_t, 1>, In<double, 1>, In<double, 1>>());
  nb::class_<BoundLeafBits>(m, "LeafBits").def(nb::init<const BoundTrees&>());
  m.def(
      "chains",
      [](const BoundLeafBits& bits, In<int32_t, 2> codes, int64_t row, In<int32_t, 2> others,
         In<int64_t, 3> places, Out<double, 4> out) { bits.chains(codes, row, others, places, out); },
      FreeGil());
  m.def(
      "coalitions",
      [](const BoundLeafBits& bits, In<int32_t, 2> codes, int64_t row, In<int32_t, 2> others,
         Out<double, 3> out) { bits.coalitions(codes, row, others, out); },
      FreeGil());
  m.def(
      "interventional",
      [](const BoundTrees& trees, In<int32_t, 2> codes, int64_t first, int64_t last,
         In<int32_t, 2> background, In<double, 1> weights, In<double, 2> moments, bool by_row,
         Out<double, 3> out) {
        check_length("weights", length(weights), length(background, 1));
        interventional(trees, trees.rows(codes, first, last), trees.background(background, weights),
                       trees.moments(moments), by_row, trees.out(out, last, trees.n_players));
      },
      FreeGil());
  m.def(
      "interventional_classes",
      [](const BoundTrees& trees, In<int32_t, 2> codes, int64_t first, int64_t last,
         In<int32_t, 2> background, In<double, 1> weights, In<int32_t, 1> steps, In<double, 3> pairs,
         Out<double, 3> out) {
        check_length("weights", length(weights), length(background, 1));
        interventional_classes(trees, trees.rows(codes, first, last), trees.background(background, weights),
                               classes_of(trees, steps, pairs), trees.out(out, last, trees.n_players));
      },
      FreeGil());
  m.def(
      "path_dependent",
      [](const BoundTrees& trees, const BoundPaths& paths, In<int32_t, 2> codes, int64_t first, int64_t last,
         Out<double, 3> out) {
        path_dependent(trees, paths.of(trees), trees.rows(codes, first, last),
                       trees.out(out, last, trees.n_players));
      },
      FreeGil());
  m.def(
      "path_dependent_sets",
      [](const BoundTrees& trees, const BoundPaths& paths, In<int32_t, 2> codes, int64_t first, int64_t last,
         int64_t size, In<int64_t, 1> keys, int64_t radix, Out<double, 3> out) {
        check(trees.most_players <= PathSetWalk::kMostPlayers,
              "`trees` have more than 64 players on a path.");
        check(size >= 1 && size <= PathSetWalk::kMostPlayers, "`size` must be from 1 to 64.");
        check(count_path_sets(trees.most_players, size) <= kMostPathSets,
              "`trees` have more than 2^20 sets of `size` players on a path.");
        check(radix > trees.n_players, "`radix` must be larger than the number of players.");
        path_dependent_sets(trees, paths.of(trees), trees.rows(codes, first, last), {view(keys), radix, size},
                            trees.out(out, last, length(keys)));
      },
      FreeGil());
  m.def(
      "predict",
      [](const BoundTrees& trees, In<int32_t, 2> codes, int64_t first, int64_t last, Out<double, 2> out) {
        check_at_least("out", length(out), last);
        check_at_least("out.shape[1]", length(out, 1), trees.n_outputs);
        predict(trees, trees.rows(codes, first, last), view(out));
      },
      FreeGil());
  m.def(
      "leaf_visits",
      [](const BoundTrees& trees, In<int32_t, 2> codes, In<int32_t, 2> background, Out<double, 1> out) {
        check_length("background.shape[1]", length(background, 1), length(codes, 1));
        check_length("out", length(out), trees.n_trees());
        leaf_visits(trees, trees.rows(codes, 0, length(codes, 1)),
                    trees.rows(background, 0, length(background, 1), "background"), view(out));
      },
      FreeGil());
}

}  // namespace fouriershap
