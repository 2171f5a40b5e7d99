// Interactions of sets of players in trees, of any index: a tree is walked once for all rows and all
// background rows. orders_numpy.py is the specification.
//
// Rows that fail the same players of a path are one group, with the word of these players; so are background
// rows. A leaf depends on words alone: hybrids of a group of rows and a group of background rows reach it
// where no player is in both words, and then each set of players in the two words gets a share that depends
// on sizes.
//
// A node's two sides are complementary, "right" is 1 minus "left". So a tree is a sum over inner nodes, of
// the path to one child times the difference of two leaves: half of the paths are shorter than those to
// leaves. Either child may be chosen: there are fewer pairs of groups where fewer rows go.
//
// Values of a row are kept by sets of positions, contiguous, as long as the path has the same players there.
// When the walk leaves a player's node, the sets whose last player it is are added to their columns, for all
// rows at once.
#pragma once
#include "orders_groups.h"
#include "transpose.h"

namespace fouriershap {

namespace {

typedef double f64x2 __attribute__((vector_size(16)));
constexpr int64_t kLanes = sizeof(f64x4) / sizeof(double);
constexpr int64_t kTile = 64;    // groups of rows whose sums are made together
constexpr int64_t kApart = 8;    // padding between these, so that they do not all start in the same cache set
constexpr int64_t kAsked = 256;  // background rows that are sampled to choose a child
constexpr int64_t kMostAtOnce = 2048;  // background rows

// WIDTH: sums side by side, by how many players the row fails; more than the order, and whole vectors.
// ORDER: where it is known here, else 0.
template <int64_t ORDER, int64_t WIDTH>
class OrderWalk {
 public:
  OrderWalk(const WalkTrees& the_trees, const WalkValues& the_values)
      : trees(the_trees), nodes(the_trees.nodes), values(the_values) {}

  void allocate(int64_t most_rows, int64_t most_background, const OrderShares& given, const OrderSets& sets) {
    const int64_t levels = trees.most_depth + 1;
    const int64_t most = trees.most_players;
    order = given.order;
    side = most + 1;
    assert(order < WIDTH);
    path.allocate(most, order, sets);
    small.allocate(most, order);
    const int64_t n_long = path.slots.count > small.count() ? path.slots.count : small.count();
    sum_stride = small.n_sums() + kApart;
    const int64_t n_sums = sum_stride * kTile > n_long * WIDTH ? sum_stride * kTile : n_long * WIDTH;
    held_stride = round_up(small.count() + kLanes - 1, kLanes);  // vectors that begin at any set
    row_stride = round_up(most_rows, kLanes);
    n_held = row_stride * trees.width() * held_stride + kLanes;
    n_totals = (values.n_columns + 1) * values.n_outputs * row_stride;  // the last one is not read
    rows.allocate(trees, most_rows, levels);
    background.allocate(trees, most_background, levels);
    frames.resize(levels);
    term_left.resize(trees.nodes.size);
    shares.resize(side * side * (order + 1) * WIDTH);
    sums.resize(n_sums);
    group_weight.resize(most_background);
    meetings.allocate(most, most_rows, most_background);
    anyone.resize(rows.n_words);
    columns.resize(n_long);
    parts.resize(n_long + kLanes);
    change.resize(trees.width());
    held.resize(n_held);
    totals.resize(n_totals);
    std::memset(sums, 0, n_sums * sizeof(double));
    std::memset(held, 0, n_held * sizeof(double));
    lay_out_shares(given);
  }

  // All trees for these rows, no more than were allocated for.
  void explain(const WalkRows& some, const WalkBackground& others, int64_t most_background) {
    std::memset(totals, 0, n_totals * sizeof(double));
    rows.start(some);
    for (int64_t first = others.first; first < others.last; first += most_background) {
      const int64_t last = first + most_background < others.last ? first + most_background : others.last;
      background.start({others.codes, first, last});
      weigh_alike(others.weights + (first - others.first));
      choose_terms({others.codes, first, last - first < kAsked ? last : first + kAsked});
      for (int64_t tree = 0; tree < trees.n_trees(); ++tree) walk(tree);
    }
    add_totals(some);
  }

 private:
  struct Frame {
    int32_t node;
    int32_t next;     // 0: the term's side, 1: the other, 2: both are done
    bool met_player;  // the path met its player here
  };

  const WalkTrees& trees;
  const Node* nodes;
  const WalkValues values;
  Outputs outputs;
  Side rows, background;
  Meetings meetings;
  PathSets path;
  SmallSets<ORDER, WIDTH> small;
  int64_t order = 0, side = 0;
  Scratch<Frame> frames;
  Scratch<uint8_t> term_left;  // (nodes,) which child's path is a term of the sum
  Scratch<double> shares;      // (z, c, i, j): see lay_out_shares
  // (groups of rows, small sets, WIDTH), or (slots, WIDTH), of sets of players that background rows fail. 0
  // between terms.
  int64_t sum_stride = 0;
  AlignedScratch<double> sums;
  const double* row_weight = nullptr;  // of the background rows at hand
  bool alike = false;                  // they weigh the same
  Scratch<double> group_weight;
  Scratch<uint64_t> anyone;  // (words of rows,)
  Scratch<int32_t> columns;  // where the sets of a group of rows add to,
  Scratch<double> parts;     // and what
  Scratch<double> change;    // (outputs,)
  int64_t n_parts = 0;
  // (rows, outputs of the tree, small sets) of the path, 0 where it has no player.
  int64_t held_stride = 0, n_held = 0;
  AlignedScratch<double> held;
  int64_t row_stride = 0, n_totals = 0;
  AlignedScratch<double> totals;  // (columns, outputs, rows)

  void walk(int64_t tree) {
    if (nodes[trees.roots[tree]].leaf() || !rows.n) return;
    outputs = Outputs(trees, tree);
    path.length = 0;
    int64_t level = 0;
    frames[0] = {trees.roots[tree], 0, false};
    while (level >= 0) {
      Frame& frame = frames[level];
      const Node& node = nodes[frame.node];
      if (frame.next == 2) {
        if (frame.met_player) leave_player(level);
        --level;
        continue;
      }
      const int32_t player = trees.players[node.feature()];
      int64_t position = path.find(player);
      if (position < 0) {
        position = path.length;
        path.push(player);
        frame.met_player = true;
      }
      if (frame.next == 0) {
        rows.ask(level, node);
        background.ask(level, node);
      }
      // First the side whose path is a term of the sum; the other one only where it goes on.
      const bool to_left = term_left[frame.node] == (frame.next++ == 0);
      const bool is_term = frame.next == 1, again = !frame.met_player;
      const int32_t child = to_left ? node.left : node.right;
      const bool goes_on = !nodes[child].leaf();
      if (!is_term && !goes_on) continue;
      const uint64_t bit = uint64_t{1} << position;
      rows.descend(level, to_left, bit, again);
      background.descend(level, to_left, bit, again);
      const int64_t below = level + 1;
      meetings.find(rows.fails(below), rows.count(below), background.fails(below), background.count(below),
                    path.length);
      if (is_term) add_term(below, child, to_left ? node.right : node.left);
      if (!goes_on) continue;
      rows.keep(below, meetings.who());
      background.keep(below, meetings.which_others());
      if (rows.count(below)) frames[++level] = {child, 0, false};
    }
  }

  // What i players that only the background fails, together with j that only the row fails, get where it
  // fails z and the background c: side by side for all j, and zeros up to whole vectors.
  void lay_out_shares(const OrderShares& given) {
    double* to = shares;
    for (int64_t z = 0; z < side; ++z)
      for (int64_t c = 0; c < side; ++c)
        for (int64_t i = 0; i <= order; ++i)
          for (int64_t j = 0; j < WIDTH; ++j) {
            const bool there = z + c < side && i <= c && j <= z && i + j <= order;
            const double share =
                there ? given.shares[((c + j) * given.side + z - j) * (order + 1) + i + j] : 0.0;
            *to++ = j & 1 ? -share : share;
          }
  }

  // Chooses the path to an inner child, if there is one, else to the child that fewer background rows reach.
  void choose_terms(const WalkRows& some) {
    for (int64_t k = 0; k < trees.nodes.size; ++k) {
      const Node& node = nodes[k];
      if (node.leaf()) continue;
      const bool left_ends = nodes[node.left].leaf(), right_ends = nodes[node.right].leaf();
      int64_t n_right = 0;
      if (left_ends == right_ends) {
        const int32_t* codes = some.codes[trees.features[node.feature()]];
        with_test(trees, node, [&](auto goes_right) {
          for (int64_t b = some.first; b < some.last; ++b) n_right += goes_right(codes[b]);
        });
      }
      term_left[k] = left_ends == right_ends ? 2 * n_right >= some.last - some.first : right_ends;
    }
  }

  // Returns the leaf that remains of a subtree when all its terms are taken out.
  int32_t leaf_of(int32_t node) const {
    while (!nodes[node].leaf()) node = term_left[node] ? nodes[node].right : nodes[node].left;
    return node;
  }

  void weigh_alike(const double* of_rows) {
    row_weight = of_rows;
    alike = true;
    for (int64_t b = 1; b < background.n; ++b) alike &= of_rows[b] == of_rows[0];
  }

  void weigh_groups(int64_t level) {
    const int64_t n = background.count(level), n_words = background.n_words;
    for (int64_t g = 0; g < n; ++g) {
      const uint64_t* members = background.members(level, g);
      double total = 0.0;
      if (alike) {
        int64_t count = 0;
        for (int64_t w = 0; w < n_words; ++w) count += count_bits(members[w]);
        total = row_weight[0] * static_cast<double>(count);
      } else {
        for_each_bit(members, n_words, [&](int64_t b) { total += row_weight[b]; });
      }
      group_weight[g] = total;
    }
  }

  void add_term(int64_t level, int32_t child, int32_t other) {
    const double *mine = outputs.of_leaf(leaf_of(child)), *theirs = outputs.of_leaf(leaf_of(other));
    bool differ = false;
    for (int64_t o = 0; o < outputs.count; ++o) {
      change[o] = mine[o] - theirs[o];
      differ |= change[o] != 0.0;
    }
    if (!differ) return;
    weigh_groups(level);
    uint64_t any = 0;
    for (int64_t g = 0; g < background.count(level); ++g) any |= background.fails(level)[g];
    for (int64_t g = 0; g < rows.count(level); ++g) any |= rows.fails(level)[g];
    any >> kShortPath ? add_long(level) : add_short(level);
  }

  const double* shares_of(uint64_t row_fails, uint64_t other_fails) const {
    return shares + (count_bits(row_fails) * side + count_bits(other_fails)) * (order + 1) * WIDTH;
  }

  // By vectors, since the compiler does not know that these two never overlap.
  template <int64_t LANES>
  static void add_share(double* sum, const double* share, double weight) {
    using Lanes = std::conditional_t<LANES == 1, double, std::conditional_t<LANES == 2, f64x2, f64x4>>;
    for (int64_t j = 0; j < LANES; j += kLanes)
      store(sum + j, load<Lanes>(sum + j) + weight * load<Lanes>(share + j));
  }

  // Adds the shares of all sets in the hybrids of rows and background rows: first for sets of players that
  // the background fails, then joined with players that the rows fail.
  void add_short(int64_t level) {
    const uint64_t *fails = rows.fails(level), *others = background.fails(level);
    const int64_t n = rows.count(level), n_others = background.count(level);
    for (int64_t first = 0; first < n; first += kTile) {
      const int64_t here = n - first < kTile ? n - first : kTile;
      const double* of_group[kTile];
      for (int64_t g = 0; g < here; ++g) of_group[g] = shares_of(fails[first + g], 0);
      uint64_t touched = 0;
      for (int64_t b = 0; b < n_others; ++b) {
        const uint64_t met = meetings.with(b, first / kTile);
        touched |= met;
        add_other(others[b], met, of_group, group_weight[b]);
      }
      for (; touched; touched &= touched - 1) {
        const int64_t g = __builtin_ctzll(touched);
        take_sums(g, fails[first + g], rows.members(level, first + g));
      }
    }
  }

  // Words with a number of players that is known at compile time need no check for the last part.
  void add_other(uint64_t word, uint64_t met, const double* const* of_group, double weight) {
    const auto list = small.within(word);
    const int64_t skipped = count_bits(word) * (order + 1) * WIDTH;
    const auto add = [&](auto add_parts) {
      for (; met; met &= met - 1) {
        const int64_t g = __builtin_ctzll(met);
        add_parts(list, sums + g * sum_stride, of_group[g] + skipped, weight);
      }
    };
    if constexpr (ORDER > 0) switch (count_bits(word)) {
        case 0: return add(AddParts<0>());
        case 1: return add(AddParts<1>());
        case 2: return add(AddParts<2>());
        case 3: return add(AddParts<3>());
        case 4: return add(AddParts<4>());
        case 5: return add(AddParts<5>());
      }
    add([](const auto& parts, double* mine, const double* of_sizes, double part_weight) {
      for (const auto& part : parts) {
        if (ORDER > 0 && part.shares == ORDER * WIDTH)
          add_share<1>(mine + part.sums, of_sizes + part.shares, part_weight);
        else if (ORDER > 0 && part.shares == (ORDER - 1) * WIDTH)
          add_share<2>(mine + part.sums, of_sizes + part.shares, part_weight);
        else
          add_share<WIDTH>(mine + part.sums, of_sizes + part.shares, part_weight);
      }
    });
  }

  template <int64_t COUNT>
  struct AddParts {
    template <class List>
    void operator()(const List& list, double* mine, const double* of_sizes, double weight) const {
      const auto* part = list.begin();
      part = add<0, 1>(part, mine, of_sizes, weight);
      part = add<1, COUNT>(part, mine, of_sizes, weight);
      part = add<2, COUNT*(COUNT - 1) / 2>(part, mine, of_sizes, weight);
      add<3, COUNT*(COUNT - 1) * (COUNT - 2) / 6>(part, mine, of_sizes, weight);
    }

    template <int64_t SIZE, int64_t N, class Part>
    static const Part* add(const Part* part, double* mine, const double* of_sizes, double weight) {
      if constexpr (SIZE <= ORDER && N > 0)
        for (int64_t k = 0; k < N; ++k, ++part)
          add_share<SmallSets<ORDER, WIDTH>::lanes(SIZE)>(mine + part->sums, of_sizes + SIZE * WIDTH, weight);
      return part;
    }
  };

  void take_sums(int64_t g, uint64_t row_fails, const uint64_t* members) {
    double *const mine = sums + g * sum_stride, *const my_parts = parts;
    const int64_t positions = path.length < kShortPath ? path.length : kShortPath;
    const int64_t n = small.count(positions);
    const auto* places = small.places_of(row_fails);
    for (int64_t k = 0; k < n; k += kLanes)
      store(my_parts + k,
            f64x4{mine[places[k]], mine[places[k + 1]], mine[places[k + 2]], mine[places[k + 3]]});
    for_each_bit(members, rows.n_words, [&](int64_t row) { hold(row, n); });
    std::memset(mine, 0, small.n_sums(positions) * sizeof(double));
  }

  void hold(int64_t row, int64_t n) {
    double* to = held + row * outputs.count * held_stride;
    const double* my_parts = parts;
    for (int64_t o = 0; o < outputs.count; ++o, to += held_stride) {
      const double scale = change[o];
      for (int64_t k = 0; k < n; k += kLanes)
        store(to + k, load<f64x4>(to + k) + scale * load<f64x4>(my_parts + k));
    }
  }

  // The walk leaves the node where the path met its last player: the values of its sets are complete.
  void leave_player(int64_t level) {
    const int64_t position = path.length - 1;
    if (position < kShortPath) {
      const int64_t first = small.count(position), n = small.count(path.length) - first;
      for (int64_t k = 0; k < n; ++k) columns[k] = path.column(small[first + k]);
      std::memset(anyone, 0, rows.n_words * sizeof(uint64_t));
      for (int64_t g = 0; g < rows.count(level); ++g) {
        const uint64_t* members = rows.members(level, g);
        for (int64_t w = 0; w < rows.n_words; ++w) anyone[w] |= members[w];
      }
      for (int64_t k = 0; k < n; k += kLanes)
        release(first + k, columns + k, n - k < kLanes ? n - k : kLanes);
    }
    path.pop();
  }

  // From `held` to the totals, at most kLanes sets that begin with this one.
  void release(int64_t first, const int32_t* to_columns, int64_t n) {
    const int64_t apart = outputs.count * held_stride;
    for (int64_t o = 0; o < outputs.count; ++o) {
      double *from = held + o * held_stride + first, *to[kLanes];
      for (int64_t i = 0; i < kLanes; ++i) {
        const int64_t column = i < n && to_columns[i] >= 0 ? to_columns[i] : values.n_columns;
        to[i] = totals + (column * values.n_outputs + outputs.first + o) * row_stride;
      }
      for (int64_t row = 0; row < rows.n; row += kLanes, from += kLanes * apart) {
        if (!(anyone[row >> 6] >> (row & 63) & ((1 << kLanes) - 1))) continue;
        f64x4 block[kLanes];
        for (int64_t i = 0; i < kLanes; ++i) {
          block[i] = load<f64x4>(from + i * apart);
          store(from + i * apart, f64x4{});
        }
        transpose4(block);
        for (int64_t i = 0; i < kLanes; ++i) store(to[i] + row, load<f64x4>(to[i] + row) + block[i]);
      }
    }
  }

  void add_totals(const WalkRows& some) const {
    const int64_t width = values.n_columns * values.n_outputs;
    double* out = values.row(some.first);
    for (int64_t row = 0; row < rows.n; row += kLanes) {
      const int64_t n = rows.n - row < kLanes ? rows.n - row : kLanes;
      for (int64_t k = 0; k < width; ++k)
        for (int64_t i = 0; i < n; ++i) out[(row + i) * width + k] += totals[k * row_stride + row + i];
    }
  }

  // The same as add_short where the path is too long for lists.
  void add_long(int64_t level) {
    const uint64_t *fails = rows.fails(level), *others = background.fails(level);
    for (int64_t g = 0; g < rows.count(level); ++g) {
      uint64_t players = 0;
      for (int64_t b = 0; b < background.count(level); ++b) {
        if (!(meetings.with(b, g / 64) >> (g & 63) & 1)) continue;
        add_subsets(others[b], 0, 0, shares_of(fails[g], others[b]), group_weight[b]);
        players |= others[b];
      }
      n_parts = 0;
      collect(players, 0, 0, 0, fails[g]);
      for_each_bit(rows.members(level, g), rows.n_words, [&](int64_t row) {
        for (int64_t k = 0; k < n_parts; ++k)
          for (int64_t o = 0; o < outputs.count; ++o)
            totals[(columns[k] * values.n_outputs + outputs.first + o) * row_stride + row] +=
                change[o] * parts[k];
      });
    }
  }

  void add_part(int32_t column, double part) {
    columns[n_parts] = column;
    parts[n_parts] = part;
    n_parts += (column >= 0) & (part != 0.0);
  }

  // Add to the sums of a set, whose rank among those of its size is given, and of its unions with players of
  // `rest`, which come after its own on the path.
  void add_subsets(uint64_t rest, int64_t size, int64_t rank, const double* of_sizes, double weight) {
    add_share<WIDTH>(sums + (path.slots.start[size] + rank) * WIDTH, of_sizes + size * WIDTH, weight);
    if (size == order) return;
    for (; rest; rest &= rest - 1) {
      const int64_t position = __builtin_ctzll(rest);
      add_subsets(rest & (rest - 1), size + 1, rank + path.slots.ways(position, size + 1), of_sizes, weight);
    }
  }

  // Take the sums of all these sets, joined with the sets of players that the row fails.
  void collect(uint64_t rest, uint64_t word, int64_t size, int64_t rank, uint64_t row_fails) {
    double* sum = sums + (path.slots.start[size] + rank) * WIDTH;
    join(row_fails, word, size, 0, sum);
    std::memset(sum, 0, WIDTH * sizeof(double));
    if (size == order) return;
    for (; rest; rest &= rest - 1)
      collect(rest & (rest - 1), word | (rest & -rest), size + 1,
              rank + path.slots.ways(__builtin_ctzll(rest), size + 1), row_fails);
  }

  void join(uint64_t rest, uint64_t word, int64_t size, int64_t joined, const double* sum) {
    if (word) add_part(path.long_column(word), sum[joined]);
    if (size == order) return;
    for (; rest; rest &= rest - 1) join(rest & (rest - 1), word | (rest & -rest), size + 1, joined + 1, sum);
  }
};

// A column of `values` is a set.
void interventional_orders(const WalkTrees& trees, const WalkRows& rows, const WalkBackground& background,
                           const OrderShares& shares, const OrderSets& sets, const WalkValues& values) {
  if (!background.n() || !rows.n()) return;
  const int64_t at_once = std::min(background.n(), kMostAtOnce);
  const auto run = [&](auto&& walk) {
    walk.allocate(rows.n(), at_once, shares, sets);
    walk.explain(rows, background, at_once);
  };
  if (shares.order == 2)
    run(OrderWalk<2, 4>(trees, values));
  else if (shares.order == 3)
    run(OrderWalk<3, 4>(trees, values));
  else if (shares.order < 8)
    run(OrderWalk<0, 8>(trees, values));
  else
    run(OrderWalk<0, kMostPositions + kLanes>(trees, values));
}

}  // namespace
}  // namespace fouriershap
