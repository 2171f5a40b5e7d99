// Rows, or background rows, that fail the same players of a path: a group, with the word of these players.
//
// A group is a set of rows, one bit each, so that a node splits groups by words instead of rows. Lists of
// groups are kept for each level of the walk.
#pragma once
#include "orders_sets.h"
#include "walk_rows.h"

namespace fouriershap {
namespace {

typedef uint64_t u64x4 __attribute__((vector_size(32)));
constexpr int64_t kWordLanes = 4;

inline uint64_t any_of(u64x4 bits) { return bits[0] | bits[1] | bits[2] | bits[3]; }

class Side {
 public:
  int64_t n = 0, n_words = 0;  // rows, and words of a set of them: whole vectors

  void allocate(const WalkTrees& the_trees, int64_t most_rows, int64_t levels) {
    trees = &the_trees;
    room = most_rows + kWordLanes;  // one that may stay empty, and vectors that begin at any group
    n_words = round_up(most_rows, 64 * kWordLanes) / 64;
    words.resize(levels * room);
    sets.resize(levels * room * n_words);
    right.resize(levels * n_words);
    n_groups.resize(levels);
    for (int32_t& group : group_of_word) group = -1;
  }

  // Restarts with these rows, at most as many as were allocated for.
  void start(const WalkRows& the_rows) {
    rows = the_rows;
    n = rows.n();
    assert(n < room);
    n_groups[0] = n > 0;
    words[0] = 0;
    std::memset(sets, 0, n_words * sizeof(uint64_t));
    for (int64_t i = 0; i < n; ++i) sets[i >> 6] |= uint64_t{1} << (i & 63);
    std::memset(right, 0, n_words * sizeof(uint64_t));
  }

  int64_t count(int64_t level) const { return n_groups[level]; }
  uint64_t* fails(int64_t level) const { return words + level * room; }  // (count,)
  const uint64_t* members(int64_t level, int64_t group) const {          // (n_words,)
    return sets + (level * room + group) * n_words;
  }

  // Rows that go right at the node of this level.
  void ask(int64_t level, const Node& node) {
    uint64_t* to = right + level * n_words;
    const int32_t* codes = rows.codes[trees->features[node.feature()]] + rows.first;
    with_test(*trees, node, [&](auto goes_right) {
      for (int64_t first = 0; first < 64 * n_words; first += 64) {
        const int64_t here = n - first < 64 ? n - first : 64;
        uint64_t word = 0;
        for (int64_t i = 0; i < here; ++i) word |= static_cast<uint64_t>(goes_right(codes[first + i])) << i;
        *to++ = word;
      }
    });
  }

  // The groups of a child at the next level. `again`: the path had met the player before.
  void descend(int64_t level, bool to_left, uint64_t player, bool again) {
    const uint64_t turn = to_left ? 0 : ~uint64_t{0}, *fail = right + level * n_words;
    const uint64_t *from = fails(level), *from_set = members(level, 0);
    uint64_t *to = fails(level + 1), *to_set = sets + (level + 1) * room * n_words;
    for (int64_t g = 0; g < n_groups[level]; ++g, from_set += n_words) {
      // Both parts are written to the next free place, and kept only if they are not empty.
      u64x4 passing = {}, failing = {};
      const uint64_t stays = again && from[g] & player ? ~uint64_t{0} : 0;
      for (int64_t w = 0; w < n_words; w += kWordLanes) {
        const u64x4 here = load<u64x4>(from_set + w);
        const u64x4 pass = here & ~(load<u64x4>(fail + w) ^ turn) & ~(u64x4{} + stays);
        store(to_set + w, pass);
        passing |= pass;
      }
      *to = from[g];
      const int64_t one = any_of(passing) != 0;
      to += one;
      to_set += one * n_words;
      for (int64_t w = 0; w < n_words; w += kWordLanes) {
        const u64x4 here = load<u64x4>(from_set + w);
        const u64x4 part = here & ((load<u64x4>(fail + w) ^ turn) | (u64x4{} + stays));
        store(to_set + w, part);
        failing |= part;
      }
      *to = from[g] | player;
      const int64_t other = any_of(failing) != 0;
      to += other;
      to_set += other * n_words;
    }
    n_groups[level + 1] = static_cast<int32_t>(to - fails(level + 1));
    if (again) merge(level + 1);
  }

  // Keep these groups, one bit each.
  void keep(int64_t level, const uint64_t* kept) {
    int64_t to = 0;
    for (int64_t g = 0; g < n_groups[level]; ++g) {
      move(level, g, to);
      to += static_cast<int64_t>(kept[g >> 6] >> (g & 63) & 1);
    }
    n_groups[level] = static_cast<int32_t>(to);
  }

 private:
  const WalkTrees* trees = nullptr;
  WalkRows rows;
  int64_t room = 0;
  Scratch<uint64_t> words;                 // (levels, room) positions of the path whose players a group fails
  AlignedScratch<uint64_t> sets;           // (levels, room, n_words) its rows
  AlignedScratch<uint64_t> right;          // (levels, n_words)
  Scratch<int32_t> n_groups;               // (levels,)
  int32_t group_of_word[1 << kShortPath];  // -1 between calls

  void move(int64_t level, int64_t from, int64_t to) {
    fails(level)[to] = fails(level)[from];
    uint64_t* base = sets + level * room * n_words;
    for (int64_t w = 0; w < n_words; w += kWordLanes)
      store(base + to * n_words + w, load<u64x4>(base + from * n_words + w));
  }

  // One group for each word; those of long paths may stay several.
  void merge(int64_t level) {
    int64_t n_kept = 0;
    uint64_t* mine = fails(level);
    for (int64_t g = 0; g < n_groups[level]; ++g) {
      const bool is_short = !(mine[g] >> kShortPath);
      const int64_t same = is_short ? group_of_word[mine[g]] : -1;
      if (same < 0) {
        if (is_short) group_of_word[mine[g]] = static_cast<int32_t>(n_kept);
        move(level, g, n_kept++);
      } else {
        uint64_t* base = sets + level * room * n_words;
        for (int64_t w = 0; w < n_words; ++w) base[same * n_words + w] |= base[g * n_words + w];
      }
    }
    for (int64_t g = 0; g < n_kept; ++g)
      if (!(mine[g] >> kShortPath)) group_of_word[mine[g]] = -1;
    n_groups[level] = static_cast<int32_t>(n_kept);
  }
};

template <class Visit>
inline void for_each_bit(const uint64_t* words, int64_t n_words, Visit visit) {
  for (int64_t w = 0; w < n_words; ++w)
    for (uint64_t rest = words[w]; rest; rest &= rest - 1) visit(64 * w + __builtin_ctzll(rest));
}

// Pairs of a group of rows and a group of background rows with common hybrids: no player is in both words.
class Meetings {
 public:
  void allocate(int64_t most_positions, int64_t most_groups, int64_t most_others) {
    const int64_t most_words = (most_groups + 63) / 64;
    failed_by.resize(round_up(most_positions, kWordLanes) * most_words);
    met.resize(most_others * most_words);
    alive.resize(most_words);
    others_alive.resize((most_others + 63) / 64);
  }

  // Words of the groups of rows, padded to whole vectors, and of the others, all of so many positions.
  void find(const uint64_t* words, int64_t n, const uint64_t* others, int64_t n_others, int64_t positions) {
    stride = (n + 63) / 64;
    const int64_t padded = round_up(positions, kWordLanes);
    for (int64_t w = 0; w < stride; ++w) {
      alive[w] = 0;
      for (int64_t p = 0; p < padded; ++p)
        failed_by[w * padded + p] = bits_at(words + 64 * w, n - 64 * w < 64 ? n - 64 * w : 64, p);
    }
    for (int64_t b = 0; b < n_others; ++b) {
      uint64_t any = 0;
      for (int64_t w = 0; w < stride; ++w) {
        u64x4 fail = {}, position = {0, 1, 2, 3};
        for (int64_t p = 0; p < padded; p += kWordLanes, position += kWordLanes)
          fail |= load<u64x4>(failed_by + w * padded + p) & -(((u64x4{} + others[b]) >> position) & 1);
        const uint64_t here =
            ~any_of(fail) & (n - 64 * w < 64 ? (uint64_t{1} << (n & 63)) - 1 : ~uint64_t{0});
        met[b * stride + w] = here;
        alive[w] |= here;
        any |= here;
      }
      if (b % 64 == 0) others_alive[b / 64] = 0;
      others_alive[b / 64] |= static_cast<uint64_t>(any != 0) << (b & 63);
    }
  }

  // The groups of rows 64 w to 64 w + 63 that meet an other, one bit each.
  uint64_t with(int64_t other, int64_t w) const { return met[other * stride + w]; }

  // Groups that meet any other.
  const uint64_t* who() const { return alive; }
  const uint64_t* which_others() const { return others_alive; }

 private:
  int64_t stride = 0;
  Scratch<uint64_t> failed_by;            // (stride, positions) the groups of rows that fail a player
  Scratch<uint64_t> met;                  // (others, stride)
  Scratch<uint64_t> alive, others_alive;  // one bit each

  // One bit of each word; what comes after the n words is undefined.
  static uint64_t bits_at(const uint64_t* words, int64_t n, int64_t position) {
    u64x4 found = {}, place = {0, 1, 2, 3};
    for (int64_t g = 0; g < n; g += kWordLanes, place += kWordLanes)
      found |= (load<u64x4>(words + g) >> position & 1) << place;
    return any_of(found);
  }
};

}  // namespace
}  // namespace fouriershap
