// Reading the integrals of a bottom subtree: each row adds the values of its slots to its sums.
#pragma once
#include "stream_integrals.h"

namespace fouriershap {
namespace {

// Sums that a bottom subtree adds to: a line of slots per row, and a number per row for a player without a
// slot.
template <class T>
struct Target {
  T* sums;         // (rows, stride)
  int64_t stride;  // slots, a multiple of 8
  T* own;          // (rows,)

  void add_own(const BottomSubtree& bottom, int64_t row, T value) const {
    if (bottom.repeated)
      sums[row * stride + bottom.own] += value;
    else
      own[row] += value;
  }
};

// Value of the own player for an efficient index: the total minus the values of all slots.
struct Rest {
  double value[3];  // by state
  double expected;  // of the leaves, over the background
  int n_slots;      // bits of a key; all of them set: the row reaches its leaf

  double total(uint32_t key) const {
    const uint32_t all = (1u << n_slots) - 1;
    return ((key & all) == all ? value[key >> table_bits(n_slots)] : 0.0) - expected;
  }
};

// Slots as lanes of W vectors: the bit of each in a key. `passed` are slots without a bit that the rows pass.
template <class T, int W>
struct SlotLanes {
  using V = typename Lanes<T>::type;
  using M = typename Lanes<T>::mask;
  i32x8 bits[W];
  M valid[W], keyed[W], passed[W];

  void set(int slot, uint32_t bit, bool is_valid, bool is_passed) {
    bits[slot / kLanes][slot % kLanes] = static_cast<int32_t>(bit);
    valid[slot / kLanes][slot % kLanes] = is_valid ? -1 : 0;
    keyed[slot / kLanes][slot % kLanes] = bit ? -1 : 0;
    passed[slot / kLanes][slot % kLanes] = is_passed ? -1 : 0;
  }
};

template <class T>
inline T sum_of(typename Lanes<T>::type v) {
  return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

// Adds the values of a key's slots to a line of sums, and returns their sum.
template <class T, int W>
inline T add_slots(const Integrals<T>& tables, const SlotLanes<T, W>& lanes, uint32_t key, T* sums) {
  using V = typename Lanes<T>::type;
  using M = typename Lanes<T>::mask;
  const i32x8 keys = i32x8{} + static_cast<int32_t>(key);
  const V gain = V{} + tables.gain[key];
  const M lost = (M)(V{} + tables.lost[key]);
  V sum{};
#pragma GCC unroll 4
  for (int w = 0; w < W; ++w) {
    const i32x8 at = keys ^ lanes.bits[w];
    V without;
    for (int lane = 0; lane < kLanes; ++lane) without[lane] = tables.without[static_cast<uint32_t>(at[lane])];
    without = (V)((M)without & lanes.keyed[w]);
    const M passes =
        (__builtin_convertvector((i32x8)((keys & lanes.bits[w]) == lanes.bits[w]), M) & lanes.keyed[w]) |
        lanes.passed[w];
    const V value = (V)((((M)(gain - without) & passes) | (lost & ~passes)) & lanes.valid[w]);
    sum += value;
    store(sums + kLanes * w, load<V>(sums + kLanes * w) + value);
  }
  return sum_of<T>(sum);
}

// For few rows: each gathers its values.
template <class T, int W>
inline void gather(const BottomSubtree& bottom, const Integrals<T>& tables, const Rest& rest,
                   const Side& rows, const Target<T>& target) {
  SlotLanes<T, W> lanes;
  for (int slot = 0; slot < W * kLanes; ++slot)
    lanes.set(slot, bottom.bit(slot), bottom.bit(slot) != 0, false);
  for (int64_t row = 0; row < rows.n; ++row) {
    const uint32_t key = rows.keys[row];
    const T sum = add_slots<T, W>(tables, lanes, key, target.sums + row * target.stride);
    const T own = tables.own ? tables.own[key] : static_cast<T>(rest.total(key)) - sum;
    target.add_own(bottom, row, own);
  }
}

// The values of one slot for 8 sets of passed slots from 8 * i on.
template <class T>
inline typename Lanes<T>::type slot_column(const Integrals<T>& tables, int64_t i, uint32_t bit,
                                           typename Lanes<T>::type gain, typename Lanes<T>::type lost) {
  using V = typename Lanes<T>::type;
  if (bit >= kLanes) return (8 * i) & bit ? gain - load<V>(tables.without + ((8 * i) ^ bit)) : lost;
  const V without = load<V>(tables.without + 8 * i);
  V here = lost;
  if (bit == 1) {
    const V v = gain - __builtin_shufflevector(without, without, 0, 0, 2, 2, 4, 4, 6, 6);
    here = __builtin_shufflevector(lost, v, 0, 9, 2, 11, 4, 13, 6, 15);
  } else if (bit == 2) {
    const V v = gain - __builtin_shufflevector(without, without, 0, 1, 0, 1, 4, 5, 4, 5);
    here = __builtin_shufflevector(lost, v, 0, 1, 10, 11, 4, 5, 14, 15);
  } else {
    const V v = gain - __builtin_shufflevector(without, without, 0, 1, 2, 3, 0, 1, 2, 3);
    here = __builtin_shufflevector(lost, v, 0, 1, 2, 3, 12, 13, 14, 15);
  }
  return here;
}

// For many rows: a line of slots per key, which rows add unchanged.
template <class T>
class LineTable {
 public:
  void allocate(int64_t n_keys, int width) {
    own.reserve(n_keys);
    lines.reserve(n_keys * width * kLanes);
  }

  template <int W>
  void fill(const BottomSubtree& bottom, const Integrals<T>& tables, const Rest& rest) {
    const int n_bits = table_bits(rest.n_slots);
    const int64_t size = 1LL << n_bits, n_vectors = size / kLanes;
    for (int state = 0; state < bottom.n_states(); ++state) {
      const int64_t at = state * size;
      const Integrals<T> mine = {tables.gain + at, tables.without + at, tables.lost + at,
                                 tables.own ? tables.own + at : nullptr};
      for (int64_t i = 0; i < n_vectors; ++i) fill_vector<W>(bottom, mine, rest, at, i);
    }
  }

  template <int W>
  void read(const BottomSubtree& bottom, const Side& rows, const Target<T>& target) const {
    for (int64_t row = 0; row < rows.n; ++row) {
      const T* line = lines + static_cast<int64_t>(rows.keys[row]) * W * kLanes;
      T* sums = target.sums + row * target.stride;
#pragma GCC unroll 4
      for (int w = 0; w < W; ++w)
        store(sums + kLanes * w, load<V>(sums + kLanes * w) + load<V>(line + kLanes * w));
    }
    if (!bottom.repeated)
      for (int64_t row = 0; row < rows.n; ++row) target.own[row] += own[rows.keys[row]];
  }

 private:
  using V = typename Lanes<T>::type;

  template <int W>
  void fill_vector(const BottomSubtree& bottom, const Integrals<T>& mine, const Rest& rest, int64_t at,
                   int64_t i) {
    const V gain = load<V>(mine.gain + 8 * i), lost = load<V>(mine.lost + 8 * i);
    V columns[W * kLanes], left;
    for (int lane = 0; lane < kLanes; ++lane) left[lane] = static_cast<T>(-rest.expected);
    const int64_t all = (1LL << rest.n_slots) - 1;
    if (all / kLanes == i) left[all % kLanes] = static_cast<T>(rest.total(static_cast<uint32_t>(at + all)));
    for (int slot = 0; slot < W * kLanes; ++slot) {
      const uint32_t bit = bottom.bit(slot);
      columns[slot] = bit ? slot_column<T>(mine, i, bit, gain, lost) : V{};
      left -= columns[slot];
    }
    if (mine.own) left = load<V>(mine.own + 8 * i);
    if (bottom.repeated)
      columns[bottom.own] = left;
    else
      store(own + at + 8 * i, left);
    for (int w = 0; w < W; ++w) {
      transpose8(columns + kLanes * w);
      for (int lane = 0; lane < kLanes; ++lane)
        store(lines + ((at + 8 * i + lane) * W + w) * kLanes, columns[kLanes * w + lane]);
    }
  }

  Room<T> lines, own;
};

}  // namespace
}  // namespace fouriershap
