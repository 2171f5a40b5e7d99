// Small sets of the players of a path: their numbers, and the columns that they add to.
//
// A set of players of a path is a word of their positions. On short paths there are lists: of the parts of a
// word, and of all small words in ascending order, so that the sets of the first positions of a path come
// first, whatever follows them. Else a set has a *slot*: first by size, then by the combinatorial number
// system, in which it depends on the positions alone.
#pragma once
#include <type_traits>

#include "scratch.h"
#include "walk_index.h"

namespace fouriershap {
namespace FS_LEVEL {
namespace {

constexpr int64_t kMostPositions = 64;  // a set of positions is a word

inline int64_t count_bits(uint64_t word) { return __builtin_popcountll(word); }

constexpr int64_t kShortPath = 12;  // positions whose words are listed

// The parts of a word of a short path that have at most `order` positions: lists that are made when asked
// for.
class Parts {
 public:
  struct Part {
    uint16_t word, size;
  };
  struct List {
    const Part *first, *last;
  };

  bool allocate(int64_t most_positions, int64_t the_order) {
    order = the_order;
    int64_t words = 1, all = 1;
    for (int64_t i = 0; i < most_positions && i < kShortPath; ++i) words *= 2, all *= 3;
    if (!parts.grow(all, 0) || !start.grow(words, 0) || !count.grow(words, 0)) return false;
    for (int64_t word = 0; word < words; ++word) start[word] = -1;
    return true;
  }

  List operator[](uint64_t word) {
    if (start[word] < 0) list(word);
    return {parts + start[word], parts + start[word] + count[word]};
  }

 private:
  int64_t order = 0, used = 0;
  Scratch<Part> parts;
  Scratch<int32_t> start, count;  // (words,) -1 where there is no list yet

  void list(uint64_t word) {
    start[word] = static_cast<int32_t>(used);
    for (uint64_t part = word;; part = (part - 1) & word) {
      const int64_t size = count_bits(part);
      if (size <= order) parts[used++] = {static_cast<uint16_t>(part), static_cast<uint16_t>(size)};
      if (!part) break;
    }
    count[word] = static_cast<int32_t>(used) - start[word];
  }
};

// All words of a short path that have 1 to `order` positions, ascending. For each word of players that a row
// fails: where the sum of each set is, among sums (words, WIDTH) by its other players and the number of these.
template <int64_t WIDTH>
class SmallSets {
 public:
  using Place = std::conditional_t<WIDTH <= 8, uint16_t, uint32_t>;
  static_assert((WIDTH << kShortPath) <= (WIDTH <= 8 ? int64_t{1} << 16 : int64_t{1} << 32));

  bool allocate(int64_t most_positions, int64_t order) {
    const int64_t positions = most_positions < kShortPath ? most_positions : kShortPath;
    const int64_t n_words = int64_t{1} << positions;
    if (!words.grow(n_words, 0) || !listed.grow(n_words, 0)) return false;
    int64_t n = 0;
    for (int64_t word = 1; word < n_words; ++word)
      if (count_bits(word) <= order) words[n++] = static_cast<uint16_t>(word);
    for (int64_t p = 0, k = 0; p <= kShortPath; ++p) {
      while (k < n && words[k] < int64_t{1} << p) ++k;
      below[p] = k;
    }
    std::memset(listed, 0, n_words);
    return places.grow(n_words * n, 0);
  }

  // How many there are of the first positions of a path.
  int64_t count(int64_t positions) const { return below[positions]; }
  int64_t count() const { return below[kShortPath]; }
  uint64_t operator[](int64_t k) const { return words[k]; }

  const Place* places_of(uint64_t row_fails) {
    Place* mine = places + row_fails * count();
    if (!listed[row_fails]) {
      for (int64_t k = 0; k < count(); ++k)
        mine[k] =
            static_cast<Place>((words[k] & ~row_fails) * WIDTH + count_bits(words[k] & row_fails));
      listed[row_fails] = 1;
    }
    return mine;
  }

 private:
  int64_t below[kShortPath + 1];
  Scratch<uint16_t> words;
  Scratch<Place> places;    // (words of a row, sets)
  Scratch<uint8_t> listed;  // (words of a row,)
};

struct Slots {
  int64_t order = 0, count = 0;
  Scratch<int64_t> binomial;  // (kMostPositions + 1, order + 1)
  Scratch<int64_t> start;     // (order + 1,) the first slot of a size

  bool allocate(int64_t most_positions, int64_t the_order) {
    assert(most_positions <= kMostPositions);
    order = the_order;
    const int64_t width = order + 1;
    if (!binomial.grow((kMostPositions + 1) * width, 0) || !start.grow(width, 0)) return false;
    for (int64_t n = 0; n <= kMostPositions; ++n)
      for (int64_t k = 0; k < width; ++k) {
        // What is too large for any path that is allowed here may wrap around: nobody asks for it.
        uint64_t sum = k == 0;
        if (n > 0 && k > 0)
          sum = static_cast<uint64_t>(binomial[(n - 1) * width + k - 1]) +
                static_cast<uint64_t>(binomial[(n - 1) * width + k]);
        binomial[n * width + k] = static_cast<int64_t>(sum);
      }
    count = 0;
    for (int64_t size = 0; size < width; ++size) {
      start[size] = count;
      count += ways(most_positions, size);
    }
    return true;
  }

  int64_t ways(int64_t n, int64_t k) const { return binomial[n * (order + 1) + k]; }

  int64_t operator[](uint64_t word) const {
    int64_t size = 0, rank = 0;
    for (; word; word &= word - 1) rank += ways(__builtin_ctzll(word), ++size);
    return start[size] + rank;
  }
};

// Which column of the output a set of players adds to: the keys that are wanted, hashed.
struct ColumnOfKey {
  Scratch<int64_t> keys;     // (1 << bits,) 0 where there is none: every set has a player
  Scratch<int32_t> columns;  // (1 << bits,)
  int bits = 1;

  bool allocate(const OrderSets& sets) {
    while ((int64_t{1} << bits) < 2 * sets.n) ++bits;
    if (!keys.grow(int64_t{1} << bits, 0) || !columns.grow(int64_t{1} << bits, 0)) return false;
    std::memset(keys, 0, (size_t{1} << bits) * sizeof(int64_t));
    for (int64_t i = 0; i < sets.n; ++i) {
      const int64_t place = find(sets.keys[i]);
      keys[place] = sets.keys[i];
      columns[place] = static_cast<int32_t>(i);
    }
    return true;
  }

  // -1 where the set is not wanted.
  int32_t operator[](int64_t key) const {
    const int64_t place = find(key);
    return keys[place] == key ? columns[place] : -1;
  }

 private:
  int64_t find(int64_t key) const {
    const uint64_t mask = (uint64_t{1} << bits) - 1;
    uint64_t place = static_cast<uint64_t>(key) * 0x9E3779B97F4A7C15ULL >> (64 - bits);
    while (keys[place] && keys[place] != key) place = (place + 1) & mask;
    return static_cast<int64_t>(place);
  }
};

// The players of the path that is being walked, and the columns of their sets. Those of a long path are kept
// as far as somebody asked, until it has another player at the last position of a set.
struct PathSets {
  static constexpr int32_t kUnknown = -2;

  Slots slots;
  ColumnOfKey column_of_key;
  int64_t radix = 0, length = 0;
  int32_t players[kMostPositions];
  Scratch<int32_t> of_slot;  // (slots,) the column, -1 for none, kUnknown

  bool allocate(int64_t most_positions, int64_t order, const OrderSets& sets) {
    radix = sets.radix;
    return slots.allocate(most_positions, order) && column_of_key.allocate(sets) &&
           of_slot.grow(slots.count, 0);
  }

  // The path goes on with another player: forget the sets whose last position this is, and all where it
  // becomes a long one.
  void push(int32_t player) {
    assert(length < kMostPositions);
    players[length++] = player;
    if (length <= kShortPath) return;
    for (int64_t size = 1; size <= slots.order; ++size) {
      const int64_t known = length == kShortPath + 1 ? 0 : slots.ways(length - 1, size);
      const int64_t last = slots.start[size] + slots.ways(length, size);
      for (int64_t s = slots.start[size] + known; s < last; ++s) of_slot[s] = kUnknown;
    }
  }
  void pop() { --length; }

  // The position of a player, -1 where the path has not met it.
  int64_t find(int32_t player) const {
    for (int64_t i = 0; i < length; ++i)
      if (players[i] == player) return i;
    return -1;
  }

  int32_t column(uint64_t word) const { return column_of_key[key(word)]; }

  int32_t long_column(uint64_t word) {
    int32_t& known = of_slot[slots[word]];
    if (known == kUnknown) known = column(word);
    return known;
  }

 private:
  int64_t key(uint64_t word) const {
    int32_t sorted[kMostPositions];
    int64_t n = 0;
    for (; word; word &= word - 1) {
      const int32_t player = players[__builtin_ctzll(word)];
      int64_t i = n++;
      for (; i > 0 && sorted[i - 1] > player; --i) sorted[i] = sorted[i - 1];
      sorted[i] = player;
    }
    int64_t key = 0;
    for (int64_t i = 0; i < n; ++i) key = key * radix + sorted[i] + 1;
    return key;
  }
};

}  // namespace
}  // namespace FS_LEVEL
}  // namespace fouriershap
