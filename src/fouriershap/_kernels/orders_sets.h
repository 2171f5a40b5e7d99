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

// (side, side, order + 1) shares of a leaf, by the players that only the row brings to it, those that only
// the background row brings, and the size of the set.
struct OrderShares {
  const double* shares;
  int64_t side, order;
};

// The sets that are wanted, as ascending keys: a digit p + 1 of this radix for each player p.
struct OrderSets {
  Span<const int64_t> keys;
  int64_t radix;
};

constexpr int64_t kMostPositions = 64;  // players on a path: a set of positions is a word

namespace {

inline int64_t count_bits(uint64_t word) { return __builtin_popcountll(word); }

constexpr int64_t kShortPath = 12;  // positions whose words are listed

// All words of a short path that have up to `order` positions, ascending: the small sets, the empty one
// first. Sums of these sets are found by lists that are made when asked for. A set has as many sums, side by
// side, as players that a row fails can join it; where the order is known here (0: it is not) no more than
// that, so that all stay in the nearest cache.
template <int64_t ORDER, int64_t WIDTH>
class SmallSets {
 public:
  static constexpr int64_t lanes(int64_t size) {
    if (!ORDER) return WIDTH;
    return size == ORDER ? 1 : size == ORDER - 1 ? 2 : WIDTH;
  }

  using Place = std::conditional_t<WIDTH <= 8, uint16_t, uint32_t>;
  static_assert((WIDTH << kShortPath) <= (WIDTH <= 8 ? int64_t{1} << 16 : int64_t{1} << 32));

  // A small set within a word: where its sums are, and where the shares of its size.
  struct Part {
    Place sums, shares;
  };
  struct List {
    const Part* parts;
    int64_t n;
    const Part* begin() const { return parts; }
    const Part* end() const { return parts + n; }
  };

  void allocate(int64_t most_positions, int64_t the_order) {
    const int64_t positions = most_positions < kShortPath ? most_positions : kShortPath;
    int64_t n_words = 1, all = 1;
    for (int64_t p = 0; p < positions; ++p) n_words *= 2, all *= 3;
    resize_all(n_words, words, start_of, has_places);
    parts.resize(all);
    resize_all(n_words, start, length);
    order = the_order;
    n_positions = positions;
    int64_t n = 0;
    for (int64_t word = 0; word < n_words; ++word) {
      start[word] = -1;
      has_places[word] = 0;
      start_of[word] = static_cast<int32_t>(n_numbers);
      if (count_bits(word) > order) continue;
      words[n++] = static_cast<uint16_t>(word);
      n_numbers += lanes(count_bits(word));
    }
    for (int64_t p = 0, k = 0; p <= kShortPath; ++p) {
      while (k < n && words[k] < int64_t{1} << p) ++k;
      below[p] = k;
    }
    stride = (n + 3) / 4 * 4;
    places.resize(n_words * stride);
  }

  // How many there are of the first positions of a path.
  int64_t count(int64_t positions) const { return below[positions]; }
  int64_t count() const { return below[kShortPath]; }
  // The sums of all of them, and of those of the first positions.
  int64_t n_sums() const { return n_numbers; }
  int64_t n_sums(int64_t positions) const {
    return positions < n_positions ? start_of[int64_t{1} << positions] : n_numbers;
  }
  uint64_t operator[](int64_t k) const { return words[k]; }

  // The small sets within a word, by size.
  List within(uint64_t word) {
    if (start[word] < 0) list(word);
    return {parts + start[word], length[word]};
  }

  // (count,) where the sum of each set is for a row that fails these players: that of its other players, by
  // the number of these.
  const Place* places_of(uint64_t row_fails) {
    Place* mine = places + row_fails * stride;
    if (has_places[row_fails]) return mine;
    has_places[row_fails] = 1;
    for (int64_t k = count(); k < stride; ++k) mine[k] = 0;
    for (int64_t k = 0; k < count(); ++k)
      mine[k] = static_cast<Place>(start_of[words[k] & ~row_fails] + count_bits(words[k] & row_fails));
    return mine;
  }

 private:
  int64_t order = 0, used = 0, stride = 0, n_numbers = 0, n_positions = 0;
  int64_t below[kShortPath + 1];
  Scratch<uint16_t> words;         // (sets,)
  Scratch<int32_t> start_of;       // (words,) where the sums of a set are
  Scratch<Part> parts;             // lists, one after the other
  Scratch<int32_t> start, length;  // (words,) -1 where there is no list yet
  Scratch<Place> places;           // (words, sets)
  Scratch<uint8_t> has_places;     // (words,)

  void list(uint64_t word) {
    start[word] = static_cast<int32_t>(used);
    for (int64_t size = 0; size <= order; ++size)
      for (uint64_t part = word;; part = (part - 1) & word) {
        if (count_bits(part) == size)
          parts[used++] = {static_cast<Place>(start_of[part]), static_cast<Place>(size * WIDTH)};
        if (!part) break;
      }
    length[word] = static_cast<int32_t>(used) - start[word];
  }
};

struct Slots {
  int64_t order = 0, count = 0;
  Scratch<int64_t> binomial;  // (kMostPositions + 1, order + 1)
  Scratch<int64_t> start;     // (order + 1,) the first slot of a size

  void allocate(int64_t most_positions, int64_t the_order) {
    assert(most_positions <= kMostPositions);
    order = the_order;
    const int64_t width = order + 1;
    binomial.resize((kMostPositions + 1) * width);
    start.resize(width);
    for (int64_t n = 0; n <= kMostPositions; ++n)
      for (int64_t k = 0; k < width; ++k) {
        // Numbers too large for any allowed path may wrap around: they are never read.
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
  }

  int64_t ways(int64_t n, int64_t k) const { return binomial[n * (order + 1) + k]; }

  int64_t operator[](uint64_t word) const {
    int64_t size = 0, rank = 0;
    for (; word; word &= word - 1) rank += ways(__builtin_ctzll(word), ++size);
    return start[size] + rank;
  }
};

// Column of the output that a set of players adds to: a hash table of the wanted keys. Where few keys are
// possible, an array indexed by key, with the players of a set in any order.
struct ColumnOfKey {
  static constexpr int64_t kFew = 1 << 16;

  int64_t radix = 0;
  bool in_any_order = false;
  Scratch<int64_t> keys;     // (1 << bits,) 0 where there is none: every set has a player
  Scratch<int32_t> columns;  // (1 << bits,), or for each key; -1 for none
  int bits = 1;

  void allocate(const OrderSets& sets, int64_t order) {
    radix = sets.radix;
    in_any_order = order <= 3 && radix <= kFew && radix * radix * radix <= kFew;
    if (in_any_order) return list(sets);
    while ((int64_t{1} << bits) < 2 * sets.keys.size) ++bits;
    resize_all(int64_t{1} << bits, keys, columns);
    std::memset(keys, 0, (size_t{1} << bits) * sizeof(int64_t));
    for (int64_t i = 0; i < sets.keys.size; ++i) {
      const int64_t place = find(sets.keys[i]);
      keys[place] = sets.keys[i];
      columns[place] = static_cast<int32_t>(i);
    }
  }

  // -1 where the set is not wanted.
  int32_t operator[](int64_t key) const {
    if (in_any_order) return columns[key];
    const int64_t place = find(key);
    return keys[place] == key ? columns[place] : -1;
  }

 private:
  void list(const OrderSets& sets) {
    columns.resize(radix * radix * radix);
    for (int64_t key = 0; key < radix * radix * radix; ++key) columns[key] = -1;
    for (int64_t i = 0; i < sets.keys.size; ++i) {
      const int64_t c = sets.keys[i] % radix, b = sets.keys[i] / radix % radix,
                    a = sets.keys[i] / radix / radix;
      const auto put = [&](int64_t x, int64_t y, int64_t z) {
        columns[(x * radix + y) * radix + z] = static_cast<int32_t>(i);
      };
      put(a, b, c);
      if (b) put(a, c, b);  // two players and more: a is 0, or the third
      if (a) put(b, a, c), put(b, c, a), put(c, a, b), put(c, b, a);
    }
  }

  int64_t find(int64_t key) const {
    const uint64_t mask = (uint64_t{1} << bits) - 1;
    uint64_t place = static_cast<uint64_t>(key) * 0x9E3779B97F4A7C15ULL >> (64 - bits);
    while (keys[place] && keys[place] != key) place = (place + 1) & mask;
    return static_cast<int64_t>(place);
  }
};

// Players of the current path, and the columns of their sets. Columns of a long path are cached until another
// player takes the last position of a set.
struct PathSets {
  static constexpr int32_t kUnknown = -2;

  Slots slots;
  ColumnOfKey column_of_key;
  int64_t length = 0;
  int32_t players[kMostPositions];
  Scratch<int32_t> of_slot;  // (slots,) the column, -1 for none, kUnknown

  void allocate(int64_t most_positions, int64_t order, const OrderSets& sets) {
    slots.allocate(most_positions, order);
    column_of_key.allocate(sets, order);
    of_slot.resize(slots.count);
  }

  // The path continues with another player: forget the sets with this last position, and all sets where the
  // path becomes a long one.
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
    int32_t found[kMostPositions];
    int64_t n = 0, key = 0;
    for (; word; word &= word - 1) {
      const int32_t player = players[__builtin_ctzll(word)];
      int64_t i = n++;
      if (!column_of_key.in_any_order)
        for (; i > 0 && found[i - 1] > player; --i) found[i] = found[i - 1];
      found[i] = player;
    }
    for (int64_t i = 0; i < n; ++i) key = key * column_of_key.radix + found[i] + 1;
    return key;
  }
};

}  // namespace
}  // namespace fouriershap
