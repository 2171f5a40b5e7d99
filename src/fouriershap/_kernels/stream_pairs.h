// A bottom subtree by pairs of distinct keys, where a table would not pay.
#pragma once
#include "stream_read.h"

namespace fouriershap {
namespace {

// Lanes that are -1, as the bits of a byte.
inline int lane_bits(i32x8 lanes) {
#if defined(__AVX__)
  typedef float f32x8 __attribute__((vector_size(32)));
  return __builtin_ia32_movmskps256((f32x8)lanes);
#else
  int bits = 0;
  for (int lane = 0; lane < kLanes; ++lane) bits |= (lanes[lane] & 1) << lane;
  return bits;
#endif
}

// How often each slot is failed, by a sample, and how many pairs have something in common.
struct FailRates {
  double rows[kMostSlots], background[kMostSlots];
  double compatible;  // share of pairs that fail no slot both

  void measure(const uint32_t* row_keys, int64_t n, const uint32_t* background_keys, int64_t m, int n_slots) {
    constexpr int kSample = 128;
    const uint32_t all = (1u << n_slots) - 1;
    uint32_t mine[kSample], theirs[kSample];
    for (int i = 0; i < kSample; ++i) {
      mine[i] = row_keys[i * n / kSample] & all;
      theirs[i] = background_keys[i * m / kSample] & all;
    }
    for (int slot = 0; slot < n_slots; ++slot) {
      int a = 0, b = 0;
      for (int i = 0; i < kSample; ++i) a += mine[i] >> slot & 1, b += theirs[i] >> slot & 1;
      rows[slot] = static_cast<double>(a) / kSample;
      background[slot] = static_cast<double>(b) / kSample;
    }
    int64_t both = 0;
    for (int i = 0; i < kSample; i += 2)
      for (int k = 0; k < kSample; ++k) both += !(mine[i] & theirs[k]);
    compatible = both / (kSample * kSample / 2.0);
  }
};

// Slots 0 ... n - 1, those with the smallest score first.
template <class Score>
inline void order_slots(int n, int* order, Score score) {
  for (int i = 0; i < n; ++i) {
    int at = i;
    for (; at > 0 && score(order[at - 1]) > score(i); --at) order[at] = order[at - 1];
    order[at] = i;
  }
}

// Moves bits of a number elsewhere, a byte at a time.
class BitMover {
 public:
  // Bit i goes to `to[i]`, a number with one bit or none.
  explicit BitMover(const uint32_t* to) {
    for (int byte = 0; byte < 4; ++byte) {
      table[byte][0] = 0;
      for (int v = 1; v < 256; ++v)
        table[byte][v] = table[byte][v & (v - 1)] | to[8 * byte + __builtin_ctz(v)];
    }
  }
  uint32_t operator()(uint32_t k) const {
    return table[0][k & 255] | table[1][k >> 8 & 255] | table[2][k >> 16 & 255] | table[3][k >> 24];
  }

 private:
  uint32_t table[4][256];
};

// Numbers the distinct keys among n in the order of their first appearance.
class Distinct {
 public:
  Room<uint32_t> keys;
  Room<int32_t> of;     // (n and up to 7 more, which are 0) number of each key
  Room<int32_t> first;  // (count,) where each was first seen
  int64_t count = 0;

  // Keys have so many bits. Stops where there are more than `most`, as the caller sees by the count.
  void find(const uint32_t* given, int64_t n, int n_bits, int64_t most) {
    keys.reserve(n + 1);
    of.reserve(n + kLanes);
    first.reserve(n + 1);
    for (int64_t i = n; i < n + kLanes; ++i) of[i] = 0;
    count = 0;
    n_bits <= kFewBits ? find_by_key(given, n, n_bits, most) : find_by_hash(given, n, most);
  }

 private:
  static constexpr int kFewBits = 16;  // a place for every key stays in the cache

  void find_by_key(const uint32_t* given, int64_t n, int n_bits, int64_t most) {
    places.reserve(1LL << n_bits);  // 0 between calls, the number plus 1 of a key within
    int32_t *const my_places = places, *const my_first = first, *const my_of = of;
    uint32_t* const my_keys = keys;
    int64_t n_found = 0;
    for (int64_t i = 0; i < n && n_found <= most; ++i) {  // without a branch, which could not be predicted
      const uint32_t key = given[i];
      my_first[n_found] = static_cast<int32_t>(i);
      my_keys[n_found] = key;
      n_found += !my_places[key];
      my_places[key] = my_places[key] ? my_places[key] : static_cast<int32_t>(n_found);
      my_of[i] = my_places[key] - 1;
    }
    count = n_found;
    for (int64_t i = 0; i < count; ++i) places[keys[i]] = 0;
  }

  void find_by_hash(const uint32_t* given, int64_t n, int64_t most) {
    int64_t capacity = 64;
    while (capacity < 2 * n) capacity *= 2;
    slots.reserve(capacity);
    for (int64_t i = 0; i < capacity; ++i) slots[i] = -1;
    const uint32_t mask = static_cast<uint32_t>(capacity - 1);
    for (int64_t i = 0; i < n && count <= most; ++i) {
      const uint32_t key = given[i];
      uint32_t at = (key * 2654435769u >> 7) & mask;
      while (slots[at] >= 0 && keys[slots[at]] != key) at = (at + 1) & mask;
      if (slots[at] < 0) {
        slots[at] = static_cast<int32_t>(count);
        first[count] = static_cast<int32_t>(i);
        keys[count++] = key;
      }
      of[i] = slots[at];
    }
  }

  Room<int32_t> places, slots;
};

template <class T>
class SubtreePairs {
 public:
  explicit SubtreePairs(const StreamIndex& the_index) : index(the_index) {
    for (int byte = 0; byte < 256; ++byte)
      for (int lane = 0; lane < kLanes; ++lane) lanes_of_byte[byte][lane] = byte >> lane & 1 ? -1 : 0;
  }

  // Adds the values of rows with these keys (failed slots, state above them); `row_of` says which rows of
  // the target they are, null: 0 ... n - 1.
  template <int W>
  void add(const BottomSubtree& bottom, const double* value, const uint32_t* keys, const int32_t* row_of,
           int64_t n, const Side& background, const FailRates& rates, const Target<T>& target) {
    const int n_slots = bottom.n_others();
    const int n_bits = n_slots + 2;  // two of state
    rows.find(keys, n, n_bits, n);
    others.find(background.keys, background.n, n_bits, background.n);
    sort_background(background, n_slots, rates);
    sort_rows();
    results.reserve(rows.count * (W + 1) * kLanes);
    coefficients.reserve(3LL * kSizes * kClasses * 4);
    for (bool& known : is_known) known = false;
    for (int bucket = 0; bucket < n_buckets; ++bucket) {
      if (row_start[bucket] == row_start[bucket + 1]) continue;
      const int64_t n_here = gather_background(bucket);
      for (int32_t i = row_start[bucket]; i < row_start[bucket + 1]; ++i)
        one_key<W>(bottom, value, n_slots, row_order[i], n_here);
    }
    for (int64_t i = 0; i < n; ++i) {
      const int64_t row = row_of ? row_of[i] : i;
      const T* result = results + static_cast<int64_t>(rows.of[i]) * (W + 1) * kLanes;
      T* sums = target.sums + row * target.stride;
#pragma GCC unroll 4
      for (int w = 0; w < W; ++w)
        store(sums + kLanes * w, load<V>(sums + kLanes * w) + load<V>(result + kLanes * w));
      if (!bottom.repeated) target.own[row] += result[W * kLanes];
    }
  }

 private:
  using V = typename Lanes<T>::type;
  using M = typename Lanes<T>::mask;
  typedef T Four __attribute__((vector_size(4 * sizeof(T))));
  static constexpr int kBucketBits = 6, kSizes = kMostSlots + 2, kClasses = 3 * 32;

  // Both sides by the slots that both fail most often: buckets that share one have no pair.
  void sort_background(const Side& background, int n_slots, const FailRates& rates) {
    int order[kMostSlots];
    order_slots(n_slots, order, [&](int slot) { return -rates.rows[slot] * rates.background[slot]; });
    const int n_bits = n_slots < kBucketBits ? n_slots : kBucketBits;
    uint32_t to[32] = {};
    for (int i = 0; i < n_bits; ++i) to[order[i]] = 1u << i;
    bucket_of = BitMover(to);
    n_buckets = 1 << n_bits;
    const int64_t m = others.count;
    reserve_all(m, share, masks, classes, shares);
    reserve_all(m + kLanes, near_masks, near_classes, near_shares);
    for (int64_t i = 0; i < m; ++i) share[i] = 0.0;
    for (int64_t i = 0; i < background.n; ++i) share[others.of[i]] += background.weights[i];
    int32_t at[(1 << kBucketBits) + 1];
    count(others, background_start, at);
    const uint32_t all = (1u << n_slots) - 1;
    for (int64_t i = 0; i < m; ++i) {
      const uint32_t key = others.keys[i];
      const int32_t to_here = at[bucket_of(key)]++;
      masks[to_here] = key & all;
      shares[to_here] = static_cast<T>(share[i]);
      classes[to_here] = static_cast<int32_t>(4 * ((key >> n_slots) * 32 + __builtin_popcount(key & all)));
    }
  }

  void sort_rows() {
    row_order.reserve(rows.count);
    int32_t at[(1 << kBucketBits) + 1];
    count(rows, row_start, at);
    for (int64_t i = 0; i < rows.count; ++i)
      row_order[at[bucket_of(rows.keys[i])]++] = static_cast<int32_t>(i);
  }

  void count(const Distinct& side, int32_t* start, int32_t* at) const {
    for (int b = 0; b <= n_buckets; ++b) start[b] = 0;
    for (int64_t i = 0; i < side.count; ++i) ++start[bucket_of(side.keys[i]) + 1];
    for (int b = 0; b < n_buckets; ++b) start[b + 1] += start[b], at[b] = start[b];
  }

  int64_t gather_background(int bucket) {
    int64_t n = 0;
    for (int other = 0; other < n_buckets; ++other) {
      if (other & bucket) continue;
      for (int32_t i = background_start[other]; i < background_start[other + 1]; ++i, ++n) {
        near_masks[n] = masks[i];
        near_shares[n] = shares[i];
        near_classes[n] = classes[i];
      }
    }
    for (int64_t i = n; i < n + kLanes; ++i) near_masks[i] = ~0u;
    return n;
  }

  // Shares of a pair by the background's state and number of failed slots: of a slot that the background
  // fails, of one that the row fails, of the own player.
  const T* coefficients_of(const double* value, int state, int z, int n_slots) {
    T* out = coefficients + (state * kSizes + z) * kClasses * 4;
    bool& known = is_known[state * kSizes + z];
    if (known) return out;
    known = true;
    const auto moment = [this](int p, int q) { return p < 0 || q < 0 ? 0.0 : index.moments[p][q]; };
    for (int other = 0; other < 3; ++other)
      for (int s = 0; s <= n_slots; ++s) {
        Four sum{};
        // A leaf that the hybrids reach: the row fails q players of its path, the background p.
        const auto leaf = [&](double v, int p, int q, bool own_row, bool own_background) {
          sum[0] += static_cast<T>(v * moment(p - 1, q));
          sum[1] -= static_cast<T>(v * moment(p, q - 1));
          if (own_row) sum[2] += static_cast<T>(v * moment(p - 1, q));
          if (own_background) sum[2] -= static_cast<T>(v * moment(p, q - 1));
        };
        if (state < 2 && other == state) leaf(value[state], s, z, false, false);
        if (state < 2 && other != state) leaf(value[state], s + 1, z, true, false);
        if (other < 2 && other != state) leaf(value[other], s, z + 1, false, true);
        store(out + (other * 32 + s) * 4, sum);
      }
    return out;
  }

  template <int W>
  void one_key(const BottomSubtree& bottom, const double* value, int n_slots, int32_t number,
               int64_t n_here) {
    const uint32_t key = rows.keys[number], failed = key & ((1u << n_slots) - 1);
    const T* by_class =
        coefficients_of(value, static_cast<int>(key >> n_slots), __builtin_popcount(failed), n_slots);
    V gains[W] = {};
    Four all{};
    const i32x8 mine = i32x8{} + static_cast<int32_t>(failed);
    for (int64_t i = 0; i < n_here; i += kLanes) {
      int hits = lane_bits((i32x8)((mine & load<i32x8>(near_masks + i)) == 0));
      if (i + kLanes > n_here) hits &= (1 << (n_here - i)) - 1;
      for (; hits; hits &= hits - 1) {
        const int64_t at = i + __builtin_ctz(hits);
        const Four pair = load<Four>(by_class + near_classes[at]) * near_shares[at];
        all += pair;
        const M gain = (M)(V{} + pair[0]);
        const uint32_t theirs = near_masks[at];
#pragma GCC unroll 4
        for (int w = 0; w < W; ++w) gains[w] += (V)(gain & load<M>(lanes_of_byte[theirs >> (8 * w) & 255]));
      }
    }
    T* result = results + static_cast<int64_t>(number) * (W + 1) * kLanes;
    const M loss = (M)(V{} + all[1]);
    for (int w = 0; w < W; ++w)
      store(result + kLanes * w, gains[w] + (V)(loss & load<M>(lanes_of_byte[failed >> (8 * w) & 255])));
    if (bottom.repeated) {  // room for the own slot among the others
      for (int slot = W * kLanes - 1; slot > bottom.own; --slot) result[slot] = result[slot - 1];
      result[bottom.own] = all[2];
    }
    result[W * kLanes] = all[2];
  }

  const StreamIndex& index;
  alignas(64) typename Lanes<T>::integer lanes_of_byte[256][kLanes];  // -1 where the bit is set
  Distinct rows, others;
  BitMover bucket_of{kNowhere};
  int n_buckets = 1;
  int32_t row_start[(1 << kBucketBits) + 1], background_start[(1 << kBucketBits) + 1];
  Room<double> share;
  Room<uint32_t> masks, near_masks;
  Room<int32_t> classes, near_classes, row_order;
  Room<T> shares, near_shares, results, coefficients;
  bool is_known[3 * kSizes];
  static constexpr uint32_t kNowhere[32] = {};
};

}  // namespace
}  // namespace fouriershap
