// Bottom subtrees with many players: a table for each class of rows, by the slots that nearly all rows pass
// or fail.
#pragma once
#include "stream_pairs.h"

namespace fouriershap {
namespace {

// Nanoseconds on one core of a 2021 server processor; only their ratios matter.
constexpr double kPairTest = 0.12, kPairHit = 2.5, kTableEntry = 0.4, kTable = 2000.0, kTableRow = 1.0;
constexpr int kMostClassBits = 14;

template <class T>
class WideSubtrees {
 public:
  WideSubtrees(const StreamIndex& the_index, Integrator<T>& the_integrator)
      : index(the_index), integrator(the_integrator), pairs(the_index) {}

  // Adds the values of all rows; keys of both sides are failed slots with the state above them.
  template <int W>
  void add(const BottomSubtree& bottom, const double* value, const Side& rows, const Side& background,
           const StreamSettings& settings, const Target<T>& target) {
    const int n_slots = bottom.n_others();
    FailRates rates;
    rates.measure(rows.keys, rows.n, background.keys, background.n, n_slots);
    const double row_by_pairs = background.n * (rates.compatible * kPairHit + kPairTest);
    if (n_slots <= settings.class_bits || rows.n * row_by_pairs < 3e4)
      return pairs.template add<W>(bottom, value, rows.keys, nullptr, rows.n, background, rates, target);
    split_slots(n_slots, settings.class_bits, rates);
    sort_by_class(rows, row_class, row_start, row_order, row_key, false);
    sort_by_class(background, background_class, background_start, background_order, background_key, true);
    const double table = kTableEntry * 2 * size * ((n_slots + 2) / 2) + kTable + kTableRow * background.n;
    choose_classes(row_by_pairs, table);
    if (n_covered) add_classes<W>(bottom, value, rows, background, target);
    if (n_covered < rows.n) add_others<W>(bottom, value, rows, background, rates, target);
  }

 private:
  // Slots that are failed about as often as not stay in the tables.
  void split_slots(int n_slots, int class_bits, const FailRates& rates) {
    int order[kMostSlots];
    order_slots(n_slots, order, [&](int slot) {
      const double often = rates.rows[slot];
      return often < 1 - often ? often : 1 - often;
    });
    n_classed = n_slots - class_bits < kMostClassBits ? n_slots - class_bits : kMostClassBits;
    n_dense = n_slots - n_classed;
    n_bits = table_bits(n_dense);
    size = 1LL << n_bits;
    n_classes = 1 << n_classed;
    uint32_t in_class = 0;
    for (int i = 0; i < n_classed; ++i) in_class |= 1u << order[i];
    uint32_t dense[32] = {}, classed[32] = {};
    int n_d = 0, n_c = 0;
    for (int slot = 0; slot < n_slots; ++slot) {
      if (in_class >> slot & 1) {
        slot_class_bit[slot] = n_c;
        slot_dense_bit[slot] = -1;
        classed[slot] = 1u << n_c++;
      } else {
        slot_class_bit[slot] = -1;
        slot_dense_bit[slot] = n_d;
        dense[slot] = 1u << n_d++;
      }
    }
    dense[n_slots] = 1u << n_bits;  // the state
    dense[n_slots + 1] = 2u << n_bits;
    to_dense = BitMover(dense);
    to_class = BitMover(classed);
  }

  void sort_by_class(const Side& side, Room<uint16_t>& class_of, Room<int32_t>& start, Room<int32_t>& order,
                     Room<uint32_t>& keys, bool background) {
    class_of.reserve(side.n);
    start.reserve(n_classes + 1);
    reserve_all(side.n, order, keys);
    next.reserve(n_classes);
    for (int g = 0; g <= n_classes; ++g) start[g] = 0;
    for (int64_t i = 0; i < side.n; ++i) {
      class_of[i] = static_cast<uint16_t>(to_class(side.keys[i]));
      ++start[class_of[i] + 1];
    }
    for (int g = 0; g < n_classes; ++g) start[g + 1] += start[g], next[g] = start[g];
    const uint32_t all = (1u << n_dense) - 1;
    for (int64_t i = 0; i < side.n; ++i) {
      const int32_t at = next[class_of[i]]++;
      uint32_t key = to_dense(side.keys[i]);
      if (background)
        key = (key & ~63u) | ((key & 7) << 3) | ((key >> 3) & 7);
      else
        key ^= all;
      order[at] = static_cast<int32_t>(i);
      keys[at] = key;
    }
  }

  // Finds the classes that are worth their tables, large ones first: their own, and one for each further
  // slot.
  void choose_classes(double row_by_pairs, double table) {
    reserve_all(n_classes, needed, covered);
    for (int g = 0; g < n_classes; ++g) needed[g] = covered[g] = 0;
    n_covered = 0;
    int largest = 0;
    for (int g = 0; g < n_classes; ++g) {
      const int here = row_start[g + 1] - row_start[g];
      if (here > largest) largest = here;
    }
    for (int least = 1 << (31 - __builtin_clz(largest | 1)); least; least /= 2)
      for (int g = 0; g < n_classes; ++g) {
        const int here = row_start[g + 1] - row_start[g];
        if (here < least || here >= 2 * least) continue;
        int n_new = !needed[g];
        for (int i = 0; i < n_classed; ++i) n_new += !needed[g | 1 << i];
        if (here * row_by_pairs <= n_new * table) continue;
        covered[g] = needed[g] = 1;
        n_covered += here;
        for (int i = 0; i < n_classed; ++i) needed[g | 1 << i] = 1;
      }
  }

  template <int W>
  void add_classes(const BottomSubtree& bottom, const double* value, const Side& rows, const Side& background,
                   const Target<T>& target) {
    const int n_states = bottom.n_states();
    const int64_t tables_size = n_states * size;
    integrator.allocate(index, size);
    totals.reserve(rows.n);
    tables.reserve(4 * tables_size);
    histogram.reserve((n_classed + 1) * 3 * size);
    shares.reserve((n_classed + 1) * 2 * size);
    present.reserve(n_classes);
    const Integrals<T> mine = {tables, tables + tables_size, tables + 2 * tables_size,
                               index.efficient ? nullptr : tables + 3 * tables_size};
    int n_present = 0;
    for (int g = 0; g < n_classes; ++g)
      if (background_start[g] != background_start[g + 1]) present[n_present++] = g;
    for (int64_t row = 0; row < rows.n; ++row) totals[row] = 0;
    for (int g = 0; g < n_classes; ++g) {
      if (!needed[g]) continue;
      fill_tables(value, n_states, g, n_present, background, mine);
      lose(bottom, g, mine, target);
      if (covered[g]) read_class<W>(bottom, g, mine, target);
    }
    if (index.efficient) add_rest(bottom, value, background, target);
  }

  void fill_tables(const double* value, int n_states, int g, int n_present, const Side& background,
                   const Integrals<T>& out) {
    bool used[kMostClassBits + 1] = {};
    for (int p = 0; p < n_present; ++p) {
      const int other = present[p];
      if (other & g) continue;
      const int n_failed = __builtin_popcount(other);
      double* here = histogram + n_failed * 3 * size;
      if (!used[n_failed]) std::memset(here, 0, n_states * size * sizeof(double));
      used[n_failed] = true;
      for (int32_t i = background_start[other]; i < background_start[other + 1]; ++i)
        here[background_key[i]] += background.weights[background_order[i]];
    }
    Source<T> sources[kMostClassBits + 1];
    Unfailing rest = {0.0, 0.0};
    int n_sources = 0, most_failed = 0;
    for (int n_failed = 0; n_failed <= n_classed; ++n_failed) {
      if (!used[n_failed]) continue;
      most_failed = n_failed;
      sources[n_sources++] = make_source<T>(histogram + n_failed * 3 * size, size, n_states, value, n_failed,
                                            shares + n_failed * 2 * size, rest);
    }
    if (!n_sources) {  // no hybrid of these rows reaches the subtree
      for (int64_t i = 0; i < n_states * size; ++i) {
        out.gain[i] = out.without[i] = out.lost[i] = 0;
        if (out.own) out.own[i] = 0;
      }
      return;
    }
    const int n_failed = __builtin_popcount(g), n_slots = n_dense + n_classed;
    const int most = n_dense + n_failed + most_failed;
    integrator.integrate({n_dense, n_failed, (most < n_slots ? most : n_slots) + 1}, n_states, value, sources,
                         n_sources, rest, out);
  }

  static int slot_of(const BottomSubtree& bottom, int bit) {
    return bottom.repeated && bit >= bottom.own ? bit + 1 : bit;
  }

  // Rows of the classes that fail one slot less: subtracts the part of the gain that this slot does not have.
  void lose(const BottomSubtree& bottom, int g, const Integrals<T>& mine, const Target<T>& target) {
    for (int bit = 0; bit < n_dense + n_classed; ++bit) {
      const int i = slot_class_bit[bit];
      if (i < 0 || !(g >> i & 1) || !covered[g ^ 1 << i]) continue;
      const int slot = slot_of(bottom, bit), smaller = g ^ 1 << i;
      for (int32_t at = row_start[smaller]; at < row_start[smaller + 1]; ++at) {
        const T value = mine.without[row_key[at]];
        target.sums[row_order[at] * target.stride + slot] -= value;
        totals[row_order[at]] -= value;
      }
    }
  }

  template <int W>
  void read_class(const BottomSubtree& bottom, int g, const Integrals<T>& mine, const Target<T>& target) {
    SlotLanes<T, W> lanes;
    for (int slot = 0; slot < W * kLanes; ++slot) lanes.set(slot, 0, false, false);
    for (int bit = 0; bit < n_dense + n_classed; ++bit) {
      const bool dense = slot_dense_bit[bit] >= 0;
      const bool passed = !dense && !(g >> slot_class_bit[bit] & 1);
      lanes.set(slot_of(bottom, bit), dense ? 1u << slot_dense_bit[bit] : 0, true, passed);
    }
    for (int32_t at = row_start[g]; at < row_start[g + 1]; ++at) {
      const int64_t row = row_order[at];
      totals[row] += add_slots<T, W>(mine, lanes, row_key[at], target.sums + row * target.stride);
      if (mine.own) target.add_own(bottom, row, mine.own[row_key[at]]);
    }
  }

  void add_rest(const BottomSubtree& bottom, const double* value, const Side& background,
                const Target<T>& target) {
    Rest rest = {{value[0], value[1], 0.0}, 0.0, n_dense};
    const uint32_t all = (1u << n_bits) - 1;
    for (int32_t i = background_start[0]; i < background_start[1]; ++i)
      if (!(background_key[i] & all))
        rest.expected += rest.value[background_key[i] >> n_bits] * background.weights[background_order[i]];
    for (int g = 0; g < n_classes; ++g) {
      if (!covered[g]) continue;
      for (int32_t at = row_start[g]; at < row_start[g + 1]; ++at) {
        const double total = g ? -rest.expected : rest.total(row_key[at]);
        target.add_own(bottom, row_order[at], static_cast<T>(total) - totals[row_order[at]]);
      }
    }
  }

  template <int W>
  void add_others(const BottomSubtree& bottom, const double* value, const Side& rows, const Side& background,
                  const FailRates& rates, const Target<T>& target) {
    reserve_all(rows.n, other_keys, other_rows);
    int64_t n = 0;
    for (int64_t row = 0; row < rows.n; ++row) {
      if (covered[row_class[row]]) continue;
      other_keys[n] = rows.keys[row];
      other_rows[n++] = static_cast<int32_t>(row);
    }
    pairs.template add<W>(bottom, value, other_keys, other_rows, n, background, rates, target);
  }

  const StreamIndex& index;
  Integrator<T>& integrator;
  SubtreePairs<T> pairs;
  int n_classed = 0, n_dense = 0, n_bits = 0, n_classes = 0;
  int64_t size = 0, n_covered = 0;
  int slot_class_bit[kMostSlots], slot_dense_bit[kMostSlots];
  static constexpr uint32_t kNowhere[32] = {};
  BitMover to_dense{kNowhere}, to_class{kNowhere};
  Room<uint16_t> row_class, background_class;
  Room<int32_t> row_start, row_order, background_start, background_order, next, present, other_rows;
  Room<uint32_t> row_key, background_key, other_keys;
  Room<uint8_t> needed, covered;
  Room<T> totals, tables, shares;
  Room<double> histogram;
};

}  // namespace
}  // namespace fouriershap
