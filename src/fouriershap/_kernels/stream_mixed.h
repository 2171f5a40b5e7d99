// Backgrounds with several weights per row, its channels: a bottom subtree's tables for all of them at once.
//
// Vectors run over channels, 8 at a time. Each explained row mixes the channels by factors of its own.
#pragma once
#include "stream_read.h"

namespace fouriershap {
namespace {

// Weights of the background (n_background, channels), and what each counts for a row (rows, channels).
struct StreamChannels {
  Matrix<const double> weights, mix;
};

template <class T>
class MixedTables {
 public:
  void allocate(const StreamIndex& the_index, const StreamChannels& the_channels, const WalkRows& rows) {
    index = &the_index;
    const Matrix<const double>& given = the_channels.weights;
    n_channels = given.columns;
    n_blocks = round_up(n_channels, kLanes) / kLanes;
    stride = round_up(n_channels, kQuad);
    weights.resize(given.rows * stride);
    by_channel.resize(given.rows * n_channels);
    mix.resize(rows.n() * n_channels);
    totals.resize(n_blocks * kLanes);
    for (int64_t q = 0; q < n_blocks * kLanes; ++q) totals[q] = 0;
    for (int64_t i = 0; i < given.rows; ++i)
      for (int64_t q = 0; q < stride; ++q) {
        weights[i * stride + q] = q < n_channels ? given[i][q] : 0.0;
        if (q >= n_channels) continue;
        by_channel[q * given.rows + i] = given[i][q];
        totals[q] += static_cast<T>(given[i][q]);
      }
    for (int64_t row = 0; row < rows.n(); ++row)
      for (int64_t q = 0; q < n_channels; ++q)
        mix[row * n_channels + q] = static_cast<T>(the_channels.mix[rows.first + row][q]);
    points.allocate();
  }

  int64_t count() const { return n_channels; }
  const double* weights_of(int64_t channel, int64_t n_background) const {
    return by_channel + channel * n_background;
  }
  T factor(int64_t row, int64_t channel) const { return mix[row * n_channels + channel]; }

  // Keys are those of tables: the rows' slots are passed ones, and bits are in their places.
  void add(const BottomSubtree& bottom, const double* value, const Side& rows, const Side& background,
           const Target<T>& target) {
    n_slots = bottom.n_others();
    size = 1LL << n_slots;
    n_states = bottom.n_states();
    count_background(background);
    const int64_t all = n_states * size;
    tables.reserve(3 * all * n_blocks * kLanes);
    reserve_all(2 * size * kLanes, sources, y);
    sums.reserve(4 * size * kLanes);
    expected.reserve(n_blocks * kLanes);
    const Domain domain = {n_slots, 0, n_slots + 1};
    const PointsOf<T> here = points.of(*index, domain);
    for (int64_t block = 0; block < n_blocks; ++block) fill_block(block, value, here);
    switch ((bottom.n_slots + !bottom.repeated + kLanes - 1) / kLanes) {
      case 1: return read<1>(bottom, value, rows, target);
      case 2: return read<2>(bottom, value, rows, target);
      case 3: return read<3>(bottom, value, rows, target);
      default: return read<4>(bottom, value, rows, target);
    }
  }

 private:
  using V = typename Lanes<T>::type;
  using M = typename Lanes<T>::mask;
  typedef double Quad __attribute__((vector_size(32)));
  static constexpr int64_t kQuad = 4;

  // The sums of the weights of the background rows with each key, (keys, stride).
  void count_background(const Side& background) {
    histogram.reserve(n_states * size * stride + kLanes);
    std::memset(histogram, 0, n_states * size * stride * sizeof(double));
    for (int64_t row = 0; row < background.n; ++row) {
      const double* from = weights + row * stride;
      double* to = histogram + background.keys[row] * stride;
      for (int64_t q = 0; q < stride; q += kQuad) store(to + q, load<Quad>(to + q) + load<Quad>(from + q));
    }
  }

  // Lanes beyond the channels hold anything; no row mixes them.
  V counted(int64_t key, int64_t block) const {
    return __builtin_convertvector(load<Lanes<double>::type>(histogram + key * stride + block * kLanes), V);
  }

  // What `Integrator` does, for 8 channels.
  void fill_block(int64_t block, const double* value, const PointsOf<T>& here) {
    T *any = sources, *worth = sources + size * kLanes;
    const V left_value = V{} + static_cast<T>(value[0]), right_value = V{} + static_cast<T>(value[1]);
    for (int64_t i = 0; i < size; ++i) {
      const V left = counted(i, block), right = counted(size + i, block);
      V both = left + right;
      if (n_states == 3) both += counted(2 * size + i, block);
      store(any + i * kLanes, both);
      store(worth + i * kLanes, left_value * left + right_value * right);
    }
    const V any_alone = load<V>(any), worth_alone = load<V>(worth);  // of rows that fail no slot
    store(any, V{});
    store(worth, V{});
    store(expected + block * kLanes, worth_alone);
    T alone_any[kMostSlots + 1] = {}, alone_worth[kMostSlots + 1] = {};  // by the slots that a row fails
    for (int k = 0; k < here.count; ++k) {
      const Point<T>& point = here.first[k];
      transform(any, y, point.t);
      transform(worth, y + size * kLanes, point.t);
      PointWeights<T> by_failed[kMostSlots + 1];
      for (int z = 0; z <= n_slots; ++z) {
        by_failed[z] = point.weights(z);
        alone_any[z] += by_failed[z].any_lost;
        alone_worth[z] += by_failed[z].worth_lost;
      }
      add_point(by_failed, k > 0);
    }
    for (int state = 0; state < n_states; ++state) {
      const V mine = V{} + static_cast<T>(state == 2 ? 0.0 : value[state]);
      V alone[kMostSlots + 1];
      for (int z = 0; z <= n_slots; ++z)
        alone[z] = alone_any[z] * (mine * any_alone) + alone_worth[z] * worth_alone;
      one_state(mine, alone, tables + ((block * n_states + state) * 3) * size * kLanes);
    }
  }

  void transform(const T* from, T* to, double t) const {
    std::memcpy(to, from, size * kLanes * sizeof(T));
    remaining_bits(to, kLaneBits, n_slots + kLaneBits, V{} + static_cast<T>(t));
  }

  void add_point(const PointWeights<T>* by_failed, bool begun) {
    const int64_t n = size * kLanes;
    for (int64_t i = 0; i < size; ++i) {
      const PointWeights<T>& weight = by_failed[n_slots - __builtin_popcountll(i)];
      const V any = load<V>(y + i * kLanes), worth = load<V>(y + n + i * kLanes);
      T* to = sums + 4 * i * kLanes;
      V sum[4] = {};
      if (begun)
        for (int s = 0; s < 4; ++s) sum[s] = load<V>(to + s * kLanes);
      store(to, sum[0] + weight.any_without * any);
      store(to + kLanes, sum[1] + weight.any_lost * any);
      store(to + 2 * kLanes, sum[2] + weight.worth_without * worth);
      store(to + 3 * kLanes, sum[3] + weight.worth_lost * worth);
    }
  }

  // Writes gain, without and lost of a state, as `Integrals` has them, (size, 3, 8).
  void one_state(V mine, const V* alone, T* out) const {
    for (int64_t i = 0; i < size; ++i, out += 3 * kLanes) {
      const T* from = sums + 4 * i * kLanes;
      const V without = load<V>(from + 2 * kLanes) + mine * load<V>(from);
      const V lost = load<V>(from + 3 * kLanes) + mine * load<V>(from + kLanes);
      store(out, without - lost);
      store(out + kLanes, without);
      store(out + 2 * kLanes, -(lost + alone[n_slots - __builtin_popcountll(i)]));
    }
  }

  template <int W>
  void read(const BottomSubtree& bottom, const double* value, const Side& rows, const Target<T>& target) {
    const int64_t width = W * kLanes, length = n_blocks * kLanes * width;
    lines.reserve(n_states * size * length);
    known.reserve(n_states * size);
    std::memset(known, 0, n_states * size);
    M others[W];  // all slots but that of an own player without one
    for (int w = 0; w < W; ++w) others[w] = ~M{};
    if (!bottom.repeated) others[bottom.own / kLanes][bottom.own % kLanes] = 0;
    for (int64_t row = 0; row < rows.n; ++row) {
      const uint32_t key = rows.keys[row];
      T* line = lines + key * length;
      if (!known[key]) {
        known[key] = 1;
        for (int64_t block = 0; block < n_blocks; ++block)
          fill_line<W>(bottom, value, key, block, line + block * kLanes * width);
      }
      const T* mine = mix + row * n_channels;
      V sum[W] = {};
      for (int64_t q = 0; q < n_channels; ++q)
        for (int w = 0; w < W; ++w) sum[w] += mine[q] * load<V>(line + q * width + w * kLanes);
      T* to = target.sums + row * target.stride;
      T values[W * kLanes];
      for (int w = 0; w < W; ++w) {
        store(values + w * kLanes, sum[w]);
        store(to + w * kLanes, load<V>(to + w * kLanes) + (V)((M)sum[w] & others[w]));
      }
      if (!bottom.repeated) target.own[row] += values[bottom.own];
    }
  }

  // The values of all slots and of the own player, (8 channels, slots).
  template <int W>
  void fill_line(const BottomSubtree& bottom, const double* value, uint32_t key, int64_t block,
                 T* line) const {
    const uint32_t all = static_cast<uint32_t>(size - 1), passed = key & all, state = key >> n_slots;
    const T* table = tables + (block * n_states + state) * 3 * size * kLanes;
    const T* here = table + 3 * passed * kLanes;
    const V gain = load<V>(here), lost = load<V>(here + 2 * kLanes);
    V columns[W * kLanes], left = -load<V>(expected + block * kLanes);
    if (passed == all && state < 2) left += static_cast<T>(value[state]) * load<V>(totals + block * kLanes);
    for (int slot = 0; slot < W * kLanes; ++slot) {
      const uint32_t bit = bottom.bit(slot);
      if (!bit)
        columns[slot] = V{};
      else
        columns[slot] = passed & bit ? gain - load<V>(table + (3 * (passed ^ bit) + 1) * kLanes) : lost;
      left -= columns[slot];
    }
    columns[bottom.own] = left;
    for (int w = 0; w < W; ++w) {
      transpose8(columns + w * kLanes);
      for (int q = 0; q < kLanes; ++q) store(line + (q * W + w) * kLanes, columns[w * kLanes + q]);
    }
  }

  static constexpr int kLaneBits = 3;
  const StreamIndex* index = nullptr;
  int64_t n_channels = 0, n_blocks = 0, stride = 0;
  int n_slots = 0, n_states = 0;
  int64_t size = 0;
  Scratch<double> weights, by_channel;  // (n_background, stride), (n_channels, n_background)
  Scratch<T> mix;                       // (rows, n_channels)
  Scratch<T> totals;                    // (blocks, 8) of all weights
  KnownPoints<T> points;
  Room<double> histogram;
  Room<T> sources, y, sums;  // (2, size, 8), likewise, (size, 4, 8)
  Room<T> tables, expected;  // (blocks, states, size, 3, 8), (blocks, 8)
  Room<T> lines;             // (keys, channels, slots)
  Room<uint8_t> known;       // (keys,)
};

}  // namespace
}  // namespace fouriershap
