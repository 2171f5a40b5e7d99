// Trees against a background without stored tables: the tables of each bottom subtree are built, read by all
// rows, and dropped. stream_numpy.py is the specification, and defines bottom subtrees.
//
// A row (of either side) is in a state: it goes left at the node (0), right (1), or it failed the own player
// further up (2). With probability t each player is the row's own, else the background's. Let X be the slots
// that a background row fails, b its state, and c_b[X] the share of such rows. For an explained row in state
// a that passes the slots P and fails the z others, both leaves go into one sum over the X within P:
//
//   y(t)[P] = sum over X of t^|X| sum over b of c_b[X] (value of a at t, of b at 1 - t)
//
// and integrals of y over t are all that its values need: where fails(z) = (1 - t)^(z - 1),
//
//   gain[P] = (1 - t)^z y[P] / t      without[P] = fails(z) y[P] / t      lost[P] = -fails(z) y[P]
#pragma once
#include "stream_merge.h"
#include "stream_mixed.h"
#include "stream_wide.h"

namespace fouriershap {

namespace {

// Running sums of the current rows, per output: a line of slots per row, and a line of rows per player.
template <class T>
struct Sums {
  T* slots = nullptr;    // (outputs, rows, width)
  T* players = nullptr;  // (outputs, players, stride)
  int64_t rows = 0, width = 0, n_players = 0, stride = 0;

  Target<T> of(int64_t output, int32_t player) const {
    return {slots + output * rows * width, width, of_player(output, player)};
  }
  T* of_player(int64_t output, int64_t player) const {
    return players + (output * n_players + player) * stride;
  }
};

template <class T>
class Stream {
 public:
  Stream(const WalkTrees& the_trees, const StreamIndex& the_index, const StreamSettings& the_settings,
         const WalkValues& the_values)
      : trees(the_trees),
        nodes(the_trees.nodes),
        index(the_index),
        settings(the_settings),
        values(the_values),
        wide(the_index, integrator) {}

  // Mixes channels of the background, row by row, instead of summing over it with one weight per row.
  void run_mixed(const WalkRows& the_rows, const WalkBackground& the_background,
                 const StreamChannels& the_channels) {
    channels.allocate(index, the_channels, the_rows);
    is_mixed = true;
    run(the_rows, the_background);
  }

  void run(const WalkRows& the_rows, const WalkBackground& the_background) {
    const int64_t depth = trees.most_depth + 1;
    const int64_t width = (trees.most_players + kLanes) / kLanes * kLanes;
    whole.allocate(trees, the_rows, nullptr, depth);
    all_background.allocate(trees, the_background, the_background.weights, depth);
    resize_all(values.n_columns, slot_of, touched);
    rows = whole.side;
    background = all_background.side;
    sums = {nullptr, nullptr, rows.stride, width, values.n_columns, rows.stride};
    const int64_t n_outputs = trees.width() > 1 ? trees.width() : 1;
    slot_sums.reserve(n_outputs * rows.stride * width);
    player_sums.reserve(n_outputs * values.n_columns * rows.stride);
    sums.slots = slot_sums;
    sums.players = player_sums;
    for (int64_t p = 0; p < values.n_columns; ++p) slot_of[p] = -1, touched[p] = 0;
    for (int64_t t = 0; t < trees.n_trees(); ++t) {
      outputs = Outputs(trees, t);
      if (!nodes[trees.roots[t]].leaf()) enter(trees.roots[t], 0);
      const bool ends = t + 1 == trees.n_trees() || trees.tree_output[t + 1] != trees.tree_output[t];
      if (ends || t % kTreesPerTotal == kTreesPerTotal - 1) add_totals(the_rows.first);
    }
  }

 private:
  using V = typename Lanes<T>::type;
  static constexpr int kTreesPerTotal = 16;  // summed in T before they are added to totals in double
  // Merging pays where at most this share is left.
  static constexpr double kMostRowsLeft = 0.6, kMostBackgroundLeft = 0.8;

  // A side with its memory.
  struct WholeSide {
    Scratch<const int32_t*> columns;
    AlignedScratch<uint32_t> masks, keys;
    Side side;

    void allocate(const WalkTrees& trees, const WalkRows& given, const double* weights, int64_t depth) {
      side.n = given.n();
      side.stride = round_up(side.n, 64);
      columns.resize(trees.n_features());
      masks.resize(depth * side.stride);
      keys.resize(side.stride);
      for (int64_t f = 0; f < trees.n_features(); ++f)
        columns[f] = given.codes[trees.features[f]] + given.first;
      std::memset(masks, 0, side.stride * sizeof(uint32_t));
      std::memset(keys, 0, side.stride * sizeof(uint32_t));
      side.columns = columns;
      side.weights = weights;
      side.masks = masks;
      side.keys = keys;
    }
  };

  int32_t player_of(const Node& node) const { return trees.players[node.feature()]; }

  void enter(int32_t at, int depth) {
    if (may_merge) {
      const Subtree subtree(nodes, at, settings.merged_nodes);
      if (subtree.n_nodes > 1 && subtree.n_nodes + n_slots <= kMostSlots) {
        may_merge = false;  // neither within a merged subtree, nor again after a failure
        merged(at, depth, subtree);
        may_merge = true;
        return;
      }
    }
    enter_unmerged(at, depth);
  }

  // Explains the subtree for the distinct rows alone, if they are few enough.
  void merged(int32_t at, int depth, const Subtree& subtree) {
    if (!few_rows.merge(trees, rows, subtree, depth, n_slots, kMostRowsLeft) ||
        !few_background.merge(trees, background, subtree, depth, n_slots, kMostBackgroundLeft))
      return enter_unmerged(at, depth);
    const Side all_rows = rows, whole_background = background;
    const Sums<T> all_sums = sums;
    begin_merged(subtree);
    enter_unmerged(at, depth);
    const Sums<T> few_sums = sums;
    rows = all_rows;
    background = whole_background;
    sums = all_sums;
    add_merged(subtree, few_sums);
  }

  void begin_merged(const Subtree& subtree) {
    rows = few_rows.side;
    background = few_background.side;
    sums.rows = sums.stride = rows.stride;
    few_slot_sums.reserve(outputs.count * rows.stride * sums.width);
    few_player_sums.reserve(outputs.count * sums.n_players * rows.stride);
    few_lines.reserve(rows.stride * kLanes);
    sums.slots = few_slot_sums;
    sums.players = few_player_sums;
    for (int64_t i = 0; i < outputs.count * rows.stride * sums.width; ++i) sums.slots[i] = 0;
    for (int i = 0; i < subtree.n_nodes; ++i)
      for (int64_t o = 0; o < outputs.count; ++o) {
        T* mine = sums.of_player(o, player_of(nodes[subtree.nodes[i]]));
        for (int64_t row = 0; row < rows.n; ++row) mine[row] = 0;
      }
  }

  void add_merged(const Subtree& subtree, const Sums<T>& few) {
    const int32_t* of = few_rows.distinct.of;
    const int64_t n_lanes = (n_slots + kLanes - 1) / kLanes * kLanes;
    for (int64_t o = 0; o < outputs.count; ++o) {
      const Target<T> to = sums.of(o, 0), from = few.of(o, 0);
      for (int64_t row = 0; row < rows.n; ++row)
        for (int64_t lane = 0; lane < n_lanes; lane += kLanes) {
          T* sum = to.sums + row * sums.width + lane;
          store(sum, load<V>(sum) + load<V>(from.sums + of[row] * sums.width + lane));
        }
    }
    int32_t players[kMostMerged];
    const int n_players = fresh_players(subtree, players);
    for (int64_t o = 0; o < outputs.count; ++o)
      for (int first = 0; first < n_players; first += kLanes)
        add_merged_players(players + first, n_players - first < kLanes ? n_players - first : kLanes, o, few);
  }

  // Players of a subtree that are not on the path to it; the values of those that are go to slots.
  int fresh_players(const Subtree& subtree, int32_t* players) const {
    int n = 0;
    for (int i = 0; i < subtree.n_nodes; ++i) {
      const int32_t player = player_of(nodes[subtree.nodes[i]]);
      bool again = slot_of[player] >= 0;
      for (int before = 0; before < n; ++before) again |= players[before] == player;
      if (!again) players[n++] = player;
    }
    return n;
  }

  // At most 8 players: a line of them for each distinct row first, so that a row reads one place.
  void add_merged_players(const int32_t* players, int n_players, int64_t output, const Sums<T>& few) {
    V v[kLanes] = {};
    for (int64_t row = 0; row < few.rows; row += kLanes) {
      for (int i = 0; i < n_players; ++i) v[i] = load<V>(few.of_player(output, players[i]) + row);
      transpose8(v);
      for (int i = 0; i < kLanes; ++i) store(few_lines + (row + i) * kLanes, v[i]);
      for (int i = n_players; i < kLanes; ++i) v[i] = V{};
    }
    const int32_t* of = few_rows.distinct.of;
    for (int64_t row = 0; row < rows.n; row += kLanes) {
      for (int i = 0; i < kLanes; ++i) v[i] = load<V>(few_lines + of[row + i] * kLanes);
      transpose8(v);
      for (int i = 0; i < n_players; ++i) {
        T* to = sums.of_player(output, players[i]) + row;
        store(to, load<V>(to) + v[i]);
      }
    }
  }

  void enter_unmerged(int32_t at, int depth) {
    const Node& node = nodes[at];
    const Node &left = nodes[node.left], &right = nodes[node.right];
    const int32_t player = player_of(node);
    touched[player] = 1;
    const bool fresh = slot_of[player] < 0;
    if (left.leaf() || right.leaf()) {
      const BottomSubtree bottom = {node,   n_slots,     fresh ? n_slots : slot_of[player],
                                    !fresh, left.leaf(), right.leaf()};
      add_bottom(bottom, depth);
      if (left.leaf() && right.leaf()) return;
    }
    if (fresh) slot_of[player] = n_slots++;
    for (int side = 0; side < 2; ++side) {
      const bool is_left = side == 0;
      const int32_t child = is_left ? node.left : node.right;
      if (nodes[child].leaf()) continue;
      enter_child(trees, node, rows, depth, slot_of[player], is_left);
      enter_child(trees, node, background, depth, slot_of[player], is_left);
      enter(child, depth + 1);
    }
    if (fresh) close_slot(player);
  }

  void close_slot(int32_t player) {
    const int slot = --n_slots;
    assert(slot_of[player] == slot);
    slot_of[player] = -1;
    for (int64_t o = 0; o < outputs.count; ++o) {
      const Target<T> target = sums.of(o, player);
      for (int64_t row = 0; row < rows.n; ++row) {
        T& sum = target.sums[row * sums.width + slot];
        target.own[row] += sum;
        sum = 0;
      }
    }
  }

  void add_bottom(const BottomSubtree& bottom, int depth) {
    const bool dense = bottom.n_others() <= settings.dense_bits;
    const bool padded = dense && !is_mixed;
    const int state_bit = padded ? table_bits(bottom.n_others()) : bottom.n_others();
    make_keys(trees, bottom, background, depth, {state_bit, false, padded});
    make_keys(trees, bottom, rows, depth, {state_bit, dense, false});
    const int32_t player = player_of(bottom.node);
    const double* left = bottom.has_left ? outputs.of_leaf(bottom.node.left) : nullptr;
    const double* right = bottom.has_right ? outputs.of_leaf(bottom.node.right) : nullptr;
    if (is_mixed) {
      const double value[3] = {left ? *left : 0.0, right ? *right : 0.0, 0.0};
      return add_mixed(bottom, dense, value, sums.of(0, player));
    }
    if (dense) count_background(bottom);
    const int n_leaves = bottom.has_left + bottom.has_right;
    if (outputs.count <= n_leaves) {
      for (int64_t o = 0; o < outputs.count; ++o) {
        const double value[3] = {left ? left[o] : 0.0, right ? right[o] : 0.0, 0.0};
        add_values(bottom, dense, value, sums.of(o, player));
      }
      return;
    }
    // More outputs than leaves: each leaf once with a value of 1, and outputs are sums of the two.
    for (int side = 0; side < 2; ++side) {
      const bool is_left = side == 0;
      const double* leaf = is_left ? left : right;
      if (!leaf) continue;
      const double value[3] = {is_left ? 1.0 : 0.0, is_left ? 0.0 : 1.0, 0.0};
      const Target<T> one = empty_target();
      add_values(bottom, dense, value, one);
      for (int64_t o = 0; o < outputs.count; ++o)
        add_scaled(one, static_cast<T>(leaf[o]), sums.of(o, player));
    }
  }

  Target<T> empty_target() {
    leaf_sums.reserve(rows.n * (sums.width + 1));
    for (int64_t i = 0; i < rows.n * (sums.width + 1); ++i) leaf_sums[i] = 0;
    return {leaf_sums, sums.width, leaf_sums + rows.n * sums.width};
  }

  void add_mixed(const BottomSubtree& bottom, bool dense, const double* value, const Target<T>& target) {
    if (dense) return channels.add(bottom, value, rows, background, target);
    const double* given = background.weights;
    for (int64_t q = 0; q < channels.count(); ++q) {
      background.weights = channels.weights_of(q, background.n);
      const Target<T> one = empty_target();
      add_values(bottom, false, value, one);
      for (int64_t row = 0; row < rows.n; ++row) {
        const T factor = channels.factor(row, q);
        for (int64_t i = row * sums.width; i < (row + 1) * sums.width; ++i)
          target.sums[i] += factor * one.sums[i];
        target.own[row] += factor * one.own[row];
      }
    }
    background.weights = given;
  }

  void add_scaled(const Target<T>& from, T value, const Target<T>& to) const {
    for (int64_t i = 0; i < rows.n * sums.width; ++i) to.sums[i] += value * from.sums[i];
    for (int64_t row = 0; row < rows.n; ++row) to.own[row] += value * from.own[row];
  }

  // Sums the weights of the background rows with each key.
  void count_background(const BottomSubtree& bottom) {
    const int64_t all = bottom.n_states() << table_bits(bottom.n_others());
    histogram.reserve(all);
    std::memset(histogram, 0, all * sizeof(double));
    for (int64_t row = 0; row < background.n; ++row)
      histogram[background.keys[row]] += background.weights[row];
  }

  void add_values(const BottomSubtree& bottom, bool dense, const double* value, const Target<T>& target) {
    switch ((bottom.n_slots + kLanes - 1) / kLanes) {
      case 0:
      case 1: return dense ? add_dense<1>(bottom, value, target) : add_wide<1>(bottom, value, target);
      case 2: return dense ? add_dense<2>(bottom, value, target) : add_wide<2>(bottom, value, target);
      case 3: return dense ? add_dense<3>(bottom, value, target) : add_wide<3>(bottom, value, target);
      default: return dense ? add_dense<4>(bottom, value, target) : add_wide<4>(bottom, value, target);
    }
  }

  template <int W>
  void add_wide(const BottomSubtree& bottom, const double* value, const Target<T>& target) {
    wide.template add<W>(bottom, value, rows, background, settings, target);
  }

  template <int W>
  void add_dense(const BottomSubtree& bottom, const double* value, const Target<T>& target) {
    const int n_others = bottom.n_others(), n_states = bottom.n_states();
    const int64_t size = 1LL << table_bits(n_others), all = n_states * size;
    integrator.allocate(index, size);
    tables.reserve(4 * all);
    shares.reserve(2 * size);
    const Integrals<T> mine = {tables, tables + all, tables + 2 * all,
                               index.efficient ? nullptr : tables + 3 * all};
    Unfailing unfailing;
    const Source<T> source = make_source<T>(histogram, size, n_states, value, 0, shares, unfailing);
    integrator.integrate({n_others, 0, n_others + 1}, n_states, value, &source, 1, unfailing, mine);
    const Rest rest = {{value[0], value[1], 0.0}, unfailing.worth, n_others};
    if (2 * rows.n <= all) {
      gather<T, W>(bottom, mine, rest, rows, target);
      return;
    }
    lines.allocate(all, W);
    lines.template fill<W>(bottom, mine, rest);
    lines.template read<W>(bottom, rows, target);
  }

  // In blocks of rows, so that a block of the output stays in the cache.
  void add_totals(int64_t first_row) {
    constexpr int64_t kBlock = 64;
    for (int64_t begin = 0; begin < rows.n; begin += kBlock) {
      const int64_t end = begin + kBlock < rows.n ? begin + kBlock : rows.n;
      for (int64_t o = 0; o < outputs.count; ++o)
        for (int64_t p = 0; p < values.n_columns; ++p) {
          if (!touched[p]) continue;
          T* from = sums.of_player(o, p);
          double* to = values.row(first_row + begin) + p * values.n_outputs + outputs.first + o;
          for (int64_t row = begin; row < end; ++row, to += values.n_columns * values.n_outputs) {
            *to += from[row];
            from[row] = 0;
          }
        }
    }
    for (int64_t p = 0; p < values.n_columns; ++p) touched[p] = 0;
  }

  const WalkTrees& trees;
  const Node* nodes;
  const StreamIndex& index;
  const StreamSettings& settings;
  const WalkValues& values;
  Integrator<T> integrator;
  WideSubtrees<T> wide;
  LineTable<T> lines;
  MixedTables<T> channels;
  bool is_mixed = false;
  WholeSide whole, all_background;
  Side rows, background;
  Sums<T> sums;
  MergedSide few_rows, few_background;
  Room<T> few_slot_sums, few_player_sums, few_lines;
  bool may_merge = settings.merged_nodes > 1;
  Outputs outputs;
  Scratch<int32_t> slot_of;  // (players,) -1 where the player is not on the way
  Scratch<uint8_t> touched;  // (players,) since the last totals
  int n_slots = 0;
  Room<T> slot_sums, player_sums, leaf_sums, shares, tables;
  Room<double> histogram;
};

struct BottomCounter {
  const WalkTrees& trees;
  const Node* nodes;
  int32_t* open;  // (players,) nodes of the player on the way
  int64_t* counts;
  int64_t side;

  void enter(int32_t at, int n_slots) const {
    const Node& node = nodes[at];
    if (node.leaf()) return;
    int32_t& mine = open[trees.players[node.feature()]];
    const int others = mine ? n_slots - 1 : n_slots;
    if (nodes[node.left].leaf() || nodes[node.right].leaf()) ++counts[others < side ? others : side - 1];
    n_slots += !mine;
    ++mine;
    enter(node.left, n_slots);
    enter(node.right, n_slots);
    --mine;
  }
};

// Sum over the background of weight * value, added to `values`. Tables are float32 (`single`) or float64.
// Both code matrices are padded to a multiple of 8 columns, and rows.first is such a multiple.
void stream_values(const WalkTrees& trees, const WalkRows& rows, const WalkBackground& background,
                   const StreamIndex& index, const StreamSettings& settings, bool single,
                   const WalkValues& values) {
  if (single)
    Stream<float>(trees, index, settings, values).run(rows, background);
  else
    Stream<double>(trees, index, settings, values).run(rows, background);
}

// Each row's own mix of channels of the background, added to `values`. Trees have one output.
void stream_mixed(const WalkTrees& trees, const WalkRows& rows, const WalkRows& background,
                  const StreamChannels& channels, const StreamIndex& index, const StreamSettings& settings,
                  bool single, const WalkValues& values) {
  const WalkBackground unweighted = {background, {nullptr, background.n()}};
  StreamIndex of_sums = index;
  of_sums.efficient = false;  // where a table is not for all channels: their weights have any sum
  if (single)
    Stream<float>(trees, of_sums, settings, values).run_mixed(rows, unweighted, channels);
  else
    Stream<double>(trees, of_sums, settings, values).run_mixed(rows, unweighted, channels);
}

// counts: (n_trees, side) += bottom subtrees by the number of other players on their path.
void count_bottom_subtrees(const WalkTrees& trees, Matrix<int64_t> counts) {
  const Scratch<int32_t> open(trees.n_players, 0);
  for (int64_t t = 0; t < trees.n_trees(); ++t)
    BottomCounter{trees, trees.nodes, open, counts[t], counts.columns}.enter(trees.roots[t], 0);
}

}  // namespace
}  // namespace fouriershap
