// Interventional SHAP values of a block of rows against a chunk of the background, a tree at a time.
//
// At a leaf let F_x be the players whose literal the row x fails, F_b those that the background row b fails.
// A hybrid of x and b reaches the leaf iff F_x and F_b are disjoint, and its SHAP values depend on
// |F_x|, |F_b| alone. So all bookkeeping is per row, not per pair; and the background rows that are alive
// with x are a function of F_x, so that rows with the same F_x share one entry: near the root, and all over
// shallow trees, that is nearly all of them. Deeper down hardly any do, and entries of one row are faster.
#pragma once
#include "walk_index.h"

namespace fouriershap {
namespace {

constexpr int64_t kMaxSlots = 64;     // players on a path: a mask in one word
constexpr int64_t kRowsPerGroup = 2;  // measured: from here down single rows are faster

template <int NW>
struct Entry {
  Bits<NW> alive;  // background rows whose hybrids with these rows reach the node
  union {
    Bits<NW> rows;  // explained rows that fail the same slots
    int64_t row;    // the only one, in a list of single rows
  };
  uint64_t fails;  // slots that they fail
};

template <int NW>
struct JointFrame {
  Bits<NW> left;       // background rows that go left here
  Bits<NW> satisfied;  // of the slot before this node, put back after each child
  Bits<NW> failed;     // background rows that fail the slot on the edge being walked
  Bits<NW> rows_left;  // explained rows that go left here
  int64_t list, n_entries;
  int32_t node, slot, player;
  int8_t next_child;
  bool fresh;
  bool single;  // entries of one row each
};

template <int NW>
struct Joint {
  const WalkTrees* trees;
  const Index *background, *rows;
  const Weights* weights;
  const double* row_weight;  // of the chunk
  int64_t n_background, n_rows = 0;
  int64_t n_players, n_outputs;
  double* out = nullptr;  // of the block

  // Scratch. Sums and `fails` are zero and slot_of is -1 between trees.
  Scratch<int32_t> slot_of;  // (n_players,)
  Scratch<JointFrame<NW>> frames;
  int64_t capacity;
  Scratch<Entry<NW>> pool;
  Bits<NW> satisfies[kMaxSlots];  // background rows that satisfy the slot's literal so far
  uint32_t n_fails[64 * NW];      // |F_b|
  Scratch<double> fails;          // (64 * NW, stride): the row's weight where it fails the slot, else 0
  Scratch<double> sums;           // (rows, outputs of the tree, stride)
  int64_t stride = 0;
  int32_t n_slots = 0;
  Outputs outputs;

  // For trees of at most most_slots players on a path, and blocks of at most most_rows rows.
  Joint(const WalkTrees& the_trees, const Index& background_index, const Index& row_index,
        const Weights& leaf_weights, const double* background_weight, int64_t background_rows,
        const WalkValues& values, int64_t most_slots, int64_t most_rows)
      : trees(&the_trees),
        background(&background_index),
        rows(&row_index),
        weights(&leaf_weights),
        row_weight(background_weight),
        n_background(background_rows),
        n_players(values.n_columns),
        n_outputs(values.n_outputs),
        slot_of(n_players, -1),
        frames(trees->most_depth + 1),
        capacity(16 * most_rows),
        pool(capacity),
        fails(64 * NW * round_up(most_slots, 4), 0.0),
        sums(most_rows * trees->width() * round_up(most_slots, 4), 0.0) {
    for (uint32_t& count : n_fails) count = 0;
  }

  void reserve(int64_t n_entries) {
    if (n_entries <= capacity) return;
    const int64_t larger = 2 * capacity > n_entries ? 2 * capacity : n_entries;
    pool.resize(larger, capacity);
    capacity = larger;
  }

  // Adds a leaf's shares to the sums of slots [first, first + 4 * NV).
  template <int NV, bool SINGLE>
  void add_leaf(const double* values, const Entry<NW>* entries, int64_t n_entries, int64_t first) {
    typedef uint64_t u64x4 __attribute__((vector_size(32)));
    const int64_t n_values = outputs.count;
    for (int64_t e = 0; e < n_entries; ++e) {
      const uint64_t mine = entries[e].fails;
      const double* weight = weights->row(__builtin_popcountll(mine));
      f64x4 gains[NV] = {};
      double loss = 0.0;
      for_each(entries[e].alive, [&](int64_t b) {
        const double* pair = weight + 2 * n_fails[b];
        const double* failing = fails + b * stride + first;
        loss += pair[1] * row_weight[b];
        for (int v = 0; v < NV; ++v) gains[v] += pair[0] * load<f64x4>(failing + 4 * v);
      });
      u64x4 bit = {1, 2, 4, 8};
      for (int v = 0; v < NV; ++v) {
        const u64x4 here = (u64x4{} + (mine >> (first + 4 * v))) & bit;
        gains[v] -= (f64x4)((u64x4)(here == bit) & (u64x4)(f64x4{} + loss));
      }
      const auto add_to = [&](int64_t row) {
        double* sum = sums + row * n_values * stride + first;
        for (int64_t o = 0; o < n_values; ++o, sum += stride)
          for (int v = 0; v < NV; ++v) store(sum + 4 * v, load<f64x4>(sum + 4 * v) + values[o] * gains[v]);
      };
      if (SINGLE)
        add_to(entries[e].row);
      else
        for_each(entries[e].rows, add_to);
    }
  }

  template <bool SINGLE>
  void leaf(int64_t node, const Entry<NW>* entries, int64_t n_entries) {
    const double* values = outputs.of_leaf(node);
    for (int64_t first = 0; first < n_slots; first += 32) {
      switch ((n_slots - first + 3) / 4) {
        case 1: add_leaf<1, SINGLE>(values, entries, n_entries, first); break;
        case 2: add_leaf<2, SINGLE>(values, entries, n_entries, first); break;
        case 3: add_leaf<3, SINGLE>(values, entries, n_entries, first); break;
        case 4: add_leaf<4, SINGLE>(values, entries, n_entries, first); break;
        case 5: add_leaf<5, SINGLE>(values, entries, n_entries, first); break;
        case 6: add_leaf<6, SINGLE>(values, entries, n_entries, first); break;
        case 7: add_leaf<7, SINGLE>(values, entries, n_entries, first); break;
        default: add_leaf<8, SINGLE>(values, entries, n_entries, first); break;
      }
    }
  }

  void open(JointFrame<NW>& frame) {
    const Node& node = trees->nodes[frame.node];
    frame.player = trees->players[node.feature()];
    frame.fresh = slot_of[frame.player] < 0;
    if (frame.fresh) {
      assert(n_slots < kMaxSlots && n_slots < stride);
      slot_of[frame.player] = n_slots;
      satisfies[n_slots++] = filled<NW>(~0ULL);
    }
    frame.slot = slot_of[frame.player];
    frame.satisfied = satisfies[frame.slot];
    frame.left = background->template goes_left<NW>(node);
    frame.rows_left = rows->template goes_left<NW>(node);
    const int32_t children[2] = {node.left, node.right};
    for (const int32_t child : children) {
      background->prefetch(trees->nodes[child]);
      rows->prefetch(trees->nodes[child]);
    }
    frame.next_child = 0;
  }

  // Moves one entry over an edge without branches: it is always written, and counted if it stays alive.
  static int64_t pass_single(const Entry<NW>& entry, Entry<NW>* to, int32_t slot, const Bits<NW>& here,
                             const Bits<NW>& still, Bits<NW>& united) {
    const uint64_t away = ~(here.word[entry.row >> 6] >> (entry.row & 63)) & 1;
    const uint64_t fails = entry.fails | away << slot;
    const Bits<NW> alive = entry.alive & (still | filled<NW>((fails >> slot & 1) - 1));
    to->row = entry.row;
    to->alive = alive;
    to->fails = fails;
    united = united | alive;
    return alive.any();
  }

  // The rows that go over the edge with the slot as it was, then those that fail the slot from here on.
  static int64_t pass_group(const Entry<NW> entry, Entry<NW>* to, int32_t slot, const Bits<NW>& here,
                            const Bits<NW>& still, Bits<NW>& united) {
    const uint64_t failed = -(entry.fails >> slot & 1);
    const Bits<NW> stay = entry.rows & (here | filled<NW>(failed));
    const Bits<NW> alive = entry.alive & (still | filled<NW>(~failed));
    const Bits<NW> leave = entry.rows & ~stay, rest = entry.alive & still;
    const bool some_stay = stay.any() & alive.any(), some_leave = leave.any() & rest.any();
    to[0].alive = alive;
    to[0].rows = stay;
    to[0].fails = entry.fails;
    to += some_stay;
    to[0].alive = rest;
    to[0].rows = leave;
    to[0].fails = entry.fails | 1ULL << slot;
    united = united | (alive & filled<NW>(-static_cast<uint64_t>(some_stay))) |
             (rest & filled<NW>(-static_cast<uint64_t>(some_leave)));
    return some_stay + some_leave;
  }

  // Turns a frame's groups into single rows where they hold few rows each.
  void split(JointFrame<NW>& frame) {
    if (frame.single) return;
    int64_t n_alive = 0;
    for (int64_t e = 0; e < frame.n_entries; ++e)
      for (uint64_t word : pool[frame.list + e].rows.word) n_alive += __builtin_popcountll(word);
    if (n_alive > kRowsPerGroup * frame.n_entries) return;
    reserve(frame.list + n_alive);
    frame.single = true;
    // From behind: the place of an entry is never before the places of the rows of those before it.
    int64_t to = frame.list + n_alive;
    for (int64_t e = frame.n_entries; e-- > 0;) {
      const Entry<NW> group = pool[frame.list + e];
      for_each(group.rows, [&](int64_t row) {
        pool[--to].row = row;
        pool[to].alive = group.alive;
        pool[to].fails = group.fails;
      });
    }
    frame.n_entries = n_alive;
  }

  // Walks one edge: writes the entries that stay alive after the frame's own, updates the state of the
  // background, and returns how many stayed. Changes nothing where none does.
  template <bool SINGLE>
  int64_t descend(JointFrame<NW>& frame, bool to_left) {
    const Bits<NW> side = to_left ? frame.left : ~frame.left;
    const Bits<NW> still = frame.satisfied & side;
    const Bits<NW> here = to_left ? frame.rows_left : ~frame.rows_left;
    const Entry<NW>* from = pool + frame.list;
    Entry<NW>* to = pool + frame.list + frame.n_entries;
    int64_t kept = 0;
    Bits<NW> united = filled<NW>(0);
    for (int64_t e = 0; e < frame.n_entries; ++e)
      if (SINGLE)
        kept += pass_single(from[e], to + kept, frame.slot, here, still, united);
      else
        kept += pass_group(from[e], to + kept, frame.slot, here, still, united);
    if (!kept) return 0;
    frame.failed = united & frame.satisfied & ~side;
    satisfies[frame.slot] = still;
    for_each(frame.failed, [&](int64_t b) {
      ++n_fails[b];
      fails[b * stride + frame.slot] = row_weight[b];
    });
    return kept;
  }

  void ascend(const JointFrame<NW>& frame) {
    satisfies[frame.slot] = frame.satisfied;
    for_each(frame.failed, [&](int64_t b) {
      --n_fails[b];
      fails[b * stride + frame.slot] = 0.0;
    });
  }

  // Adds the sums of a slot to its player, and releases the slot.
  void close(const JointFrame<NW>& frame) {
    if (!frame.fresh) return;
    const auto hand_over = [&](int64_t row) {
      double* sum = sums + row * outputs.count * stride + frame.slot;
      double* phi = out + (row * n_players + frame.player) * n_outputs + outputs.first;
      for (int64_t o = 0; o < outputs.count; ++o) {
        phi[o] += sum[o * stride];
        sum[o * stride] = 0.0;
      }
    };
    for (const Entry<NW>* entry = pool + frame.list; entry < pool + frame.list + frame.n_entries; ++entry)
      if (frame.single)
        hand_over(entry->row);
      else
        for_each(entry->rows, hand_over);
    slot_of[frame.player] = -1;
    --n_slots;
  }

  void walk(int64_t tree) {
    const Node* nodes = trees->nodes;
    if (nodes[trees->roots[tree]].leaf()) return;  // a constant has no SHAP values
    outputs = Outputs(*trees, tree);
    stride = round_up(trees->tree_players[tree], 4);
    n_slots = 0;
    reserve(1);
    pool[0].alive = first_rows<NW>(n_background);
    pool[0].rows = first_rows<NW>(n_rows);
    pool[0].fails = 0;
    JointFrame<NW>* frame = frames;
    frame->node = trees->roots[tree];
    frame->list = 0;
    frame->n_entries = 1;
    frame->single = false;
    open(*frame);
    while (true) {
      if (frame->next_child == 2) {
        close(*frame);
        if (frame == frames) return;
        ascend(*--frame);
        continue;
      }
      reserve(frame->list + 3 * frame->n_entries + 1);
      const bool to_left = frame->next_child++ == 0;
      const int32_t child = to_left ? nodes[frame->node].left : nodes[frame->node].right;
      const bool single = frame->single;
      const int64_t kept = single ? descend<true>(*frame, to_left) : descend<false>(*frame, to_left);
      if (!kept) continue;
      const int64_t list = frame->list + frame->n_entries;
      if (nodes[child].leaf()) {
        single ? leaf<true>(child, pool + list, kept) : leaf<false>(child, pool + list, kept);
        ascend(*frame);
        continue;
      }
      assert(frame - frames < trees->tree_depth[tree]);
      ++frame;
      frame->node = child;
      frame->list = list;
      frame->n_entries = kept;
      frame->single = single;
      split(*frame);
      open(*frame);
    }
  }
};

}  // namespace
}  // namespace fouriershap
