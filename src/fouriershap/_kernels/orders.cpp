// Interactions of sets of players: a tree is walked once for all rows and all background rows.
//
// Rows that fail the same players of a path are one group, with the word of these players; so are background
// rows. A leaf sees words alone: a group of rows and one of background rows meet in hybrids that reach it
// where no player is in both words, and then each set of players in the two words gets a share that depends
// on sizes.
//
// A node's two sides are complementary, "right" is 1 minus "left". So a tree is a sum over inner nodes, of
// the path to one child times the difference of two leaves: half of the paths are shorter than those to
// leaves.
#include "orders.h"

#include "orders_sets.h"
#include "walk_rows.h"

namespace fouriershap {
namespace FS_LEVEL {
namespace {

struct Group {
  uint64_t fails;  // positions of the path whose players these rows fail
  const int32_t *first, *last;
};

// Rows, or background rows, in groups: a list of groups for each level of the walk.
struct Side {
  const WalkTrees* trees = nullptr;
  WalkRows rows;
  int64_t n = 0;
  Scratch<int32_t> members;  // (levels, n)
  Scratch<Group> groups;     // (levels, n) none is empty
  Scratch<int32_t> n_groups;

  bool allocate(const WalkTrees& the_trees, const WalkRows& the_rows, int64_t levels) {
    trees = &the_trees;
    rows = the_rows;
    n = rows.last - rows.first;
    if (!members.grow(levels * n, 0) || !groups.grow(levels * n, 0) || !n_groups.grow(levels, 0))
      return false;
    for (int64_t i = 0; i < n; ++i) members[i] = static_cast<int32_t>(i);
    n_groups[0] = n > 0;
    if (n) groups[0] = {0, members, members + n};
    return true;
  }

  Group* at(int64_t level) const { return groups + level * n; }

  // The groups of a child at the next level: those that fail the player already stay whole.
  void descend(int64_t level, const Node& node, bool to_left, uint64_t player) {
    const Group *from = at(level), *end = from + n_groups[level];
    Group* to = at(level + 1);
    int32_t* pass = members + (level + 1) * n;
    const int32_t* codes = rows.codes + trees->features[node.feature()] * rows.stride + rows.first;
    with_test(*trees, node, [&](auto goes_right) {
      for (; from < end; ++from) {
        if (from->fails & player) {
          *to++ = *from;
          continue;
        }
        // Those that pass from the front of the room of the group, those that fail from its end.
        const int64_t size = from->last - from->first;
        int32_t *front = pass, *back = pass + size;
        for (const int32_t* member = from->first; member < from->last; ++member) {
          const int64_t fails = goes_right(codes[*member]) ^ !to_left;
          *front = *member;
          back[-1] = *member;
          front += !fails;
          back -= fails;
        }
        if (front > pass) *to++ = {from->fails, pass, front};
        if (front < pass + size) *to++ = {from->fails | player, front, pass + size};
        pass += size;
      }
    });
    n_groups[level + 1] = static_cast<int32_t>(to - at(level + 1));
  }

  // Keep the groups that some group of the other side meets in a hybrid.
  void keep_alive(int64_t level, const Side& other) {
    Group *mine = at(level), *to = mine, *end = mine + n_groups[level];
    const Group *theirs = other.at(level), *last = theirs + other.n_groups[level];
    for (; mine < end; ++mine)
      for (const Group* one = theirs; one < last; ++one)
        if (!(mine->fails & one->fails)) {
          *to++ = *mine;
          break;
        }
    n_groups[level] = static_cast<int32_t>(to - at(level));
  }
};

constexpr int64_t kLanes = sizeof(f64x4) / sizeof(double);

// WIDTH: sums side by side, by how many players the row fails; more than the order, and whole vectors.
template <int64_t WIDTH>
class OrderWalk {
 public:
  OrderWalk(const WalkTrees& the_trees, const double* background_weights, const WalkValues& the_values)
      : trees(the_trees), nodes(nodes_of(the_trees)), weights(background_weights), values(the_values) {}

  bool allocate(const WalkRows& the_rows, const WalkRows& the_background, const OrderShares& given,
                const OrderSets& sets) {
    const int64_t levels = most_of(trees.tree_depth, trees.n_trees) + 1;
    const int64_t most = most_of(trees.tree_players, trees.n_trees);
    order = given.order;
    side = most + 1;
    assert(order < WIDTH);
    if (!path.allocate(most, order, sets)) return false;
    const int64_t n_short = int64_t{1} << (most < kShortPath ? most : kShortPath);
    const int64_t n_sums = path.slots.count > n_short ? path.slots.count : n_short;
    if (!rows.allocate(trees, the_rows, levels) || !background.allocate(trees, the_background, levels) ||
        !parts_of.allocate(most, order) || !frames.grow(levels, 0) ||
        !shares.grow(side * side * (order + 1) * WIDTH, 0) || !sums.grow(n_sums * WIDTH, 0) ||
        !words.grow(background.n, 0) || !group_weight.grow(background.n, 0) ||
        !failed_by.grow(most * word_count(background.n), 0) || !distinct.grow(rows.n + background.n, 0) ||
        !next.grow(rows.n, 0) || !columns.grow(n_sums, 0) || !parts.grow(n_sums, 0) ||
        !change.grow(trees.width, 0))
      return false;
    std::memset(sums, 0, n_sums * WIDTH * sizeof(double));
    for (int32_t& group : group_of_word) group = -1;
    lay_out_shares(given);
    return true;
  }

  void walk(int64_t tree) {
    if (nodes[trees.roots[tree]].leaf() || !rows.n || !background.n) return;
    outputs = Outputs(trees, tree);
    path.length = 0;
    int64_t level = 0;
    frames[0] = {trees.roots[tree], 0, false};
    while (level >= 0) {
      Frame& frame = frames[level];
      const Node& node = nodes[frame.node];
      if (frame.met_player && frame.next == 2) path.pop();
      if (frame.next == 2) {
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
      // First the side whose path is a term of the sum; the other one only where it goes on.
      const bool to_left = term_is_left(node) == (frame.next++ == 0);
      const bool is_term = frame.next == 1;
      const int32_t child = to_left ? node.left : node.right;
      if (!is_term && nodes[child].leaf()) continue;
      const uint64_t bit = uint64_t{1} << position;
      rows.descend(level, node, to_left, bit);
      background.descend(level, node, to_left, bit);
      if (path.length > 2 && !nodes[child].leaf()) {
        rows.keep_alive(level + 1, background);
        background.keep_alive(level + 1, rows);
      }
      if (!rows.n_groups[level + 1]) continue;
      if (is_term) add_term(level + 1, child, to_left ? node.right : node.left);
      if (!nodes[child].leaf()) frames[++level] = {child, 0, false};
    }
  }

 private:
  struct Frame {
    int32_t node;
    int32_t next;     // 0: the term's side, 1: the other, 2: both are done
    bool met_player;  // the path met its player here
  };

  const WalkTrees& trees;
  const Node* nodes;
  const double* weights;
  const WalkValues values;
  Outputs outputs;
  Side rows, background;
  PathSets path;
  int64_t order = 0, side = 0;
  Scratch<Frame> frames;
  Parts parts_of;
  Scratch<double> shares;  // (z, c, i, j): see lay_out_shares
  // (words or slots, WIDTH) of sets of players that background rows fail, 0 between groups.
  Scratch<double> sums;
  Scratch<uint64_t> words;       // of the background's groups, each once,
  Scratch<double> group_weight;  // and what they weigh
  Scratch<uint64_t> failed_by;   // (positions, word_count) the words that have a player
  int64_t n_words = 0;
  int32_t group_of_word[1 << kShortPath];  // -1 between calls
  Scratch<int32_t> distinct, next;         // groups of distinct words, and others of the same word
  int64_t n_distinct = 0;
  Scratch<int32_t> columns;  // where the sets of a group of rows add to,
  Scratch<double> parts;     // and what
  Scratch<double> change;    // (outputs,)
  int64_t n_parts = 0;

  static int64_t word_count(int64_t n) { return (n + 63) / 64; }

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

  bool term_is_left(const Node& node) const { return nodes[node.right].leaf() || !nodes[node.left].leaf(); }

  // The leaf that stands for a subtree: what is left of it when all its terms are taken out.
  int32_t leaf_of(int32_t node) const {
    while (!nodes[node].leaf()) node = term_is_left(nodes[node]) ? nodes[node].right : nodes[node].left;
    return node;
  }

  void add_term(int64_t level, int32_t child, int32_t other) {
    const double *mine = outputs.of_leaf(leaf_of(child)), *theirs = outputs.of_leaf(leaf_of(other));
    bool differ = false;
    for (int64_t o = 0; o < outputs.count; ++o) {
      change[o] = mine[o] - theirs[o];
      differ |= change[o] != 0.0;
    }
    if (!differ) return;
    const uint64_t any = weigh_background(level);
    const Group* groups = rows.at(level);
    const int64_t n = rows.n_groups[level];
    for (int64_t g = 0; g < n; ++g) next[g] = -1;
    merge_words(
        n, [&](int64_t g) { return groups[g].fails; },
        [&](int64_t g, int64_t same) { next[g] = next[same], next[same] = static_cast<int32_t>(g); });
    for (int64_t k = 0; k < n_distinct; ++k) {
      const uint64_t row_fails = groups[distinct[k]].fails;
      n_parts = 0;
      if ((any | row_fails) >> kShortPath)
        take_long(row_fails);
      else
        take_short(row_fails);
      for (int32_t g = distinct[k]; g >= 0; g = next[g]) add_parts(groups[g]);
    }
  }

  // Several groups have the same word where a path meets a player twice. Lists one of each, and calls
  // merge(g, the_one) for the others; those of long paths count as distinct.
  template <class Word, class Merge>
  void merge_words(int64_t n, Word word, Merge merge) {
    n_distinct = 0;
    for (int64_t g = 0; g < n; ++g) {
      if (word(g) >> kShortPath) {
        distinct[n_distinct++] = static_cast<int32_t>(g);
      } else if (group_of_word[word(g)] < 0) {
        group_of_word[word(g)] = distinct[n_distinct++] = static_cast<int32_t>(g);
      } else {
        merge(g, group_of_word[word(g)]);
      }
    }
    for (int64_t k = 0; k < n_distinct; ++k)
      if (!(word(distinct[k]) >> kShortPath)) group_of_word[word(distinct[k])] = -1;
  }

  // All players that some group of the background fails.
  uint64_t weigh_background(int64_t level) {
    const Group* groups = background.at(level);
    const int64_t n = background.n_groups[level];
    for (int64_t g = 0; g < n; ++g) {
      double total = 0.0;
      for (const int32_t* b = groups[g].first; b < groups[g].last; ++b) total += weights[*b];
      group_weight[g] = total;
    }
    merge_words(
        n, [&](int64_t g) { return groups[g].fails; },
        [&](int64_t g, int64_t same) { group_weight[same] += group_weight[g]; });
    uint64_t any = 0;
    n_words = n_distinct;
    const int64_t stride = word_count(n_words);
    std::memset(failed_by, 0, path.length * stride * sizeof(uint64_t));
    for (int64_t k = 0; k < n_words; ++k) {
      words[k] = groups[distinct[k]].fails;
      group_weight[k] = group_weight[distinct[k]];  // k <= distinct[k]
      any |= words[k];
      for (uint64_t rest = words[k]; rest; rest &= rest - 1)
        failed_by[__builtin_ctzll(rest) * stride + k / 64] |= uint64_t{1} << (k & 63);
    }
    return any;
  }

  // Visits the words of the background that fail none of these players.
  template <class Visit>
  void for_each_met(uint64_t row_fails, Visit visit) const {
    const int64_t stride = word_count(n_words);
    for (int64_t w = 0; w < stride; ++w) {
      uint64_t met = n_words - 64 * w >= 64 ? ~uint64_t{0} : (uint64_t{1} << (n_words & 63)) - 1;
      for (uint64_t rest = row_fails; rest; rest &= rest - 1)
        met &= ~failed_by[__builtin_ctzll(rest) * stride + w];
      for (; met; met &= met - 1) visit(64 * w + __builtin_ctzll(met));
    }
  }

  void add_parts(const Group& group) const {
    const int64_t step = values.n_outputs;
    for (const int32_t* row = group.first; row < group.last; ++row) {
      double* out = values.out + (rows.rows.first + *row) * values.n_columns * step + outputs.first;
      if (outputs.count == 1) {
        const double scale = change[0];
        const int32_t* my_columns = columns;
        const double* my_parts = parts;
        const int64_t n = n_parts;
        if (step == 1)
          for (int64_t k = 0; k < n; ++k) out[my_columns[k]] += scale * my_parts[k];
        else
          for (int64_t k = 0; k < n; ++k) out[my_columns[k] * step] += scale * my_parts[k];
        continue;
      }
      for (int64_t k = 0; k < n_parts; ++k)
        for (int64_t o = 0; o < outputs.count; ++o) out[columns[k] * step + o] += change[o] * parts[k];
    }
  }

  void add_part(int32_t column, double part) {
    columns[n_parts] = column;
    parts[n_parts] = part;
    n_parts += (column >= 0) & (part != 0.0);
  }

  void add_share(double* sum, const double* share, double weight) const {
    // By vectors, since the compiler does not know that these two never overlap.
    for (int64_t j = 0; j < WIDTH; j += kLanes)
      store(sum + j, load<f64x4>(sum + j) + weight * load<f64x4>(share + j));
  }

  const double* shares_of(uint64_t row_fails, uint64_t other_fails) const {
    return shares + (count_bits(row_fails) * side + count_bits(other_fails)) * (order + 1) * WIDTH;
  }

  // What all sets get of the hybrids of a row, which fails these players, and the groups of the background:
  // for sets of players that the background fails first, then joined with those that the row fails.
  void take_short(uint64_t row_fails) {
    double* const my_sums = sums;
    uint64_t together = 0;
    bool any = false;
    for_each_met(row_fails, [&](int64_t g) {
      const uint64_t word = words[g];
      const double weight = group_weight[g], *of_sizes = shares_of(row_fails, word);
      const Parts::List list = parts_of[word];
      for (const Parts::Part* part = list.first; part < list.last; ++part)
        add_share(my_sums + part->word * WIDTH, of_sizes + part->size * WIDTH, weight);
      together |= word;
      any = true;
    });
    if (!any) return;
    const Parts::List all = parts_of[together | row_fails];
    int32_t* const my_columns = columns;
    double* const my_parts = parts;
    int64_t n = 0;
    for (const Parts::Part* part = all.first; part < all.last - 1; ++part) {  // the last one is empty
      const uint64_t mine = part->word & row_fails;
      const int32_t column = path.short_column(part->word);
      my_columns[n] = column;
      my_parts[n] = my_sums[(part->word ^ mine) * WIDTH + count_bits(mine)];
      n += (column >= 0) & (my_parts[n] != 0.0);
    }
    n_parts = n;
    const Parts::List used = parts_of[together];
    for (const Parts::Part* part = used.first; part < used.last; ++part)
      std::memset(my_sums + part->word * WIDTH, 0, WIDTH * sizeof(double));
  }

  // The same where the path is too long for lists.
  void take_long(uint64_t row_fails) {
    uint64_t together = 0;
    for_each_met(row_fails, [&](int64_t g) {
      add_subsets(words[g], 0, 0, shares_of(row_fails, words[g]), group_weight[g]);
      together |= words[g];
    });
    collect(together, 0, 0, 0, row_fails);
  }

  // Add to the sums of a set, whose rank among those of its size is given, and of its unions with players of
  // `rest`, which come after its own on the path.
  void add_subsets(uint64_t rest, int64_t size, int64_t rank, const double* of_sizes, double weight) {
    add_share(sums + (path.slots.start[size] + rank) * WIDTH, of_sizes + size * WIDTH, weight);
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

}  // namespace

bool interventional_orders(const WalkTrees& trees, const WalkRows& rows, const WalkRows& background,
                           const double* weights, const OrderShares& shares, const OrderSets& sets,
                           const WalkValues& values) {
  const auto run = [&](auto walk) {
    if (!walk->allocate(rows, background, shares, sets)) return false;
    for (int64_t tree = 0; tree < trees.n_trees; ++tree) walk->walk(tree);
    return true;
  };
  if (shares.order < 4) {
    OrderWalk<4> walk(trees, weights, values);
    return run(&walk);
  }
  if (shares.order < 8) {
    OrderWalk<8> walk(trees, weights, values);
    return run(&walk);
  }
  OrderWalk<kMostPositions + kLanes> walk(trees, weights, values);
  return run(&walk);
}

}  // namespace FS_LEVEL
}  // namespace fouriershap
