// Interventional SHAP values of a block of rows against a chunk of the background, a tree at a time.
//
// At a leaf let F_x be the players whose literal the row x fails, F_b those that the background row b fails.
// A hybrid of x and b reaches the leaf iff F_x and F_b are disjoint, and its SHAP values depend on
// |F_x|, |F_b| alone. So all that is kept per pair is one bit (alive or not); F_x and F_b are kept per row.
#pragma once
#include "walk_index.h"

namespace fouriershap {
namespace FS_LEVEL {
namespace {

constexpr int64_t kMaxSlots = 64;  // players on a path: a mask in one word

template <int NW>
struct Entry {
  Bits<NW> alive;  // background rows whose hybrids with this row still come here
  uint64_t fails;  // slots that the row fails
  int64_t row;
};

template <int NW>
struct JointFrame {
  Bits<NW> left;       // background rows that go left here
  Bits<NW> satisfied;  // of the slot before this node, put back after each child
  Bits<NW> failed;     // background rows that fail the slot on the edge being walked
  uint64_t rows_left[kMaxWords];
  int64_t list, n_entries;
  int32_t node, slot, player;
  int8_t next_child;
  bool fresh;
};

template <int NW>
struct Joint {
  const WalkTrees* trees;
  const Index *background, *rows;
  const Weights* weights;
  const double* row_weight;  // of the chunk
  int64_t n_background, n_rows;
  int64_t n_players, n_outputs;
  double* out;  // of the block

  // Scratch. Sums and `fails` are zero and slot_of is -1 between trees.
  int32_t* slot_of;   // (n_players,)
  JointFrame<NW>* frames;
  Entry<NW>* pool;
  int64_t capacity;
  Bits<NW> satisfies[kMaxSlots];  // background rows that satisfy the slot's literal so far
  uint32_t n_fails[64 * NW];      // |F_b|
  double* fails;                  // (64 * NW, stride): the row's weight where it fails the slot, else 0
  double* sums;                   // (rows, outputs of the tree, stride)
  int64_t stride;
  int32_t n_slots;
  Outputs outputs;

  bool reserve(int64_t n_entries) {
    if (n_entries <= capacity) return true;
    int64_t larger = 2 * capacity > n_entries ? 2 * capacity : n_entries;
    Entry<NW>* moved = static_cast<Entry<NW>*>(std::realloc(pool, larger * sizeof(Entry<NW>)));
    if (!moved) return false;
    pool = moved;
    capacity = larger;
    return true;
  }

  // Adds a leaf's shares to the sums of slots [first, first + 4 * NV).
  template <int NV>
  void add_leaf(const double* values, const Entry<NW>* entries, int64_t n_entries, int64_t first) {
    typedef uint64_t u64x4 __attribute__((vector_size(32)));
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
      double* sum = sums + entries[e].row * outputs.count * stride + first;
      for (int64_t o = 0; o < outputs.count; ++o, sum += stride)
        for (int v = 0; v < NV; ++v) store(sum + 4 * v, load<f64x4>(sum + 4 * v) + values[o] * gains[v]);
    }
  }

  void leaf(int64_t node, const Entry<NW>* entries, int64_t n_entries) {
    const double* values = outputs.of_leaf(node);
    for (int64_t first = 0; first < n_slots; first += 32) {
      switch ((n_slots - first + 3) / 4) {
        case 1: add_leaf<1>(values, entries, n_entries, first); break;
        case 2: add_leaf<2>(values, entries, n_entries, first); break;
        case 3: add_leaf<3>(values, entries, n_entries, first); break;
        case 4: add_leaf<4>(values, entries, n_entries, first); break;
        case 5: add_leaf<5>(values, entries, n_entries, first); break;
        case 6: add_leaf<6>(values, entries, n_entries, first); break;
        case 7: add_leaf<7>(values, entries, n_entries, first); break;
        default: add_leaf<8>(values, entries, n_entries, first); break;
      }
    }
  }

  void open(JointFrame<NW>& frame) {
    const Node& node = nodes_of(*trees)[frame.node];
    frame.player = trees->players[node.feature()];
    frame.fresh = slot_of[frame.player] < 0;
    if (frame.fresh) {
      slot_of[frame.player] = n_slots;
      satisfies[n_slots++] = filled<NW>(~0ULL);
    }
    frame.slot = slot_of[frame.player];
    frame.satisfied = satisfies[frame.slot];
    frame.left = background->template goes_left<NW>(node);
    switch (rows->n_words) {
      case 1: keep_rows(frame, rows->goes_left<1>(node)); break;
      case 2: keep_rows(frame, rows->goes_left<2>(node)); break;
      case 3: keep_rows(frame, rows->goes_left<3>(node)); break;
      default: keep_rows(frame, rows->goes_left<4>(node)); break;
    }
    frame.next_child = 0;
  }

  template <int NX>
  void keep_rows(JointFrame<NW>& frame, const Bits<NX>& left) {
    std::memcpy(frame.rows_left, left.word, sizeof left.word);
  }

  // Goes over one edge: writes the entries that stay alive behind the frame's own, updates the background's
  // state, and tells how many stayed. Nothing changes where none does.
  int64_t descend(JointFrame<NW>& frame, bool to_left) {
    const Bits<NW> side = to_left ? frame.left : ~frame.left;
    const Bits<NW> still = frame.satisfied & side;
    const uint64_t flip = to_left ? ~0ULL : 0;
    const int32_t slot = frame.slot;
    const Entry<NW>* from = pool + frame.list;
    Entry<NW>* to = pool + frame.list + frame.n_entries;
    int64_t kept = 0;
    Bits<NW> united = filled<NW>(0);
    for (int64_t e = 0; e < frame.n_entries; ++e) {
      const int64_t row = from[e].row;
      const uint64_t away = ((frame.rows_left[row >> 6] ^ flip) >> (row & 63)) & 1;
      const uint64_t mine = from[e].fails | away << slot;
      const Bits<NW> allowed = still | filled<NW>((mine >> slot & 1) - 1);
      const Bits<NW> alive = from[e].alive & allowed;
      to[kept].alive = alive;
      to[kept].fails = mine;
      to[kept].row = row;
      kept += alive.any();
      united = united | alive;
    }
    if (!kept) return 0;
    frame.failed = united & frame.satisfied & ~side;
    satisfies[slot] = still;
    for_each(frame.failed, [&](int64_t b) {
      ++n_fails[b];
      fails[b * stride + slot] = row_weight[b];
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

  // Hands the sums of a slot to its player, and gives the slot back.
  void close(const JointFrame<NW>& frame) {
    if (!frame.fresh) return;
    const Entry<NW>* entries = pool + frame.list;
    for (int64_t e = 0; e < frame.n_entries; ++e) {
      double* sum = sums + entries[e].row * outputs.count * stride + frame.slot;
      double* phi = out + (entries[e].row * n_players + frame.player) * n_outputs + outputs.first;
      for (int64_t o = 0; o < outputs.count; ++o) {
        phi[o] += sum[o * stride];
        sum[o * stride] = 0.0;
      }
    }
    slot_of[frame.player] = -1;
    --n_slots;
  }

  bool walk(int64_t tree) {
    const Node* nodes = nodes_of(*trees);
    if (nodes[trees->roots[tree]].leaf()) return true;  // a constant has no SHAP values
    outputs = Outputs(*trees, tree);
    stride = (trees->tree_players[tree] + 3) / 4 * 4;
    n_slots = 0;
    if (!reserve(n_rows)) return false;
    const Bits<NW> everyone = first_rows<NW>(n_background);
    for (int64_t r = 0; r < n_rows; ++r) pool[r] = {everyone, 0, r};
    JointFrame<NW>* frame = frames;
    frame->node = trees->roots[tree];
    frame->list = 0;
    frame->n_entries = n_rows;
    open(*frame);
    while (true) {
      if (frame->next_child == 2) {
        close(*frame);
        if (frame == frames) return true;
        ascend(*--frame);
        continue;
      }
      if (!reserve(frame->list + 2 * frame->n_entries)) return false;
      const bool to_left = frame->next_child++ == 0;
      const int32_t child = to_left ? nodes[frame->node].left : nodes[frame->node].right;
      const int64_t kept = descend(*frame, to_left);
      if (!kept) continue;
      const int64_t list = frame->list + frame->n_entries;
      if (nodes[child].leaf()) {
        leaf(child, pool + list, kept);
        ascend(*frame);
        continue;
      }
      ++frame;
      frame->node = child;
      frame->list = list;
      frame->n_entries = kept;
      open(*frame);
    }
  }
};

}  // namespace
}  // namespace FS_LEVEL
}  // namespace fouriershap
