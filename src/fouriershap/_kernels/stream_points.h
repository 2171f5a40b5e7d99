// Points of the integrals, and factors that depend only on them and the number of slots, computed once.
#pragma once
#include "stream_side.h"

namespace fouriershap {
namespace {

constexpr int kFirstBits = 6;  // of the first pass of a transform; smaller tables are padded
constexpr int kMostPoints = kMostSlots + 2;

inline int table_bits(int n_slots) { return n_slots < kFirstBits ? kFirstBits : n_slots; }

// Which slots the integrals range over: `n_slots` have a bit, `n_failed` more are failed by the row, and
// the background fails at most `n_players` in all with these and the own one.
struct Domain {
  int n_slots, n_failed, n_players;

  bool operator==(const Domain& other) const {
    return n_slots == other.n_slots && n_failed == other.n_failed && n_players == other.n_players;
  }

  // Slots that are failed where so many high bits and these low ones are set; of the padding, anything.
  int failed(int high, int lane) const {
    const int z = n_failed + n_slots - high - __builtin_popcount(lane);
    return z < 0 ? 0 : z;
  }
};

template <class T>
struct PointWeights {
  T any_without, any_lost, worth_without, worth_lost;
};

template <class T>
struct Point {
  double t;
  double share[kMostSlots + 2];  // weight * (1 - t)^(z - 1), by z; 0 for none
  // Weights by how many of the high bits of P are set, a lane for each of its 8 low ones: of what is there of
  // the background, and of what its leaves are worth.
  alignas(64) T any_without[kMostSlots][kLanes], any_lost[kMostSlots][kLanes];
  alignas(64) T worth_without[kMostSlots][kLanes], worth_lost[kMostSlots][kLanes];

  void fill(const Domain& domain, double point, double weight) {
    t = point;
    share[0] = 0;
    share[1] = weight;
    for (int z = 2; z <= kMostSlots + 1; ++z) share[z] = share[z - 1] * (1 - t);
    for (int high = 0; high <= table_bits(domain.n_slots) - 3; ++high)
      for (int lane = 0; lane < kLanes; ++lane) {
        const PointWeights<T> mine = weights(domain.failed(high, lane));
        any_without[high][lane] = mine.any_without;
        any_lost[high][lane] = mine.any_lost;
        worth_without[high][lane] = mine.worth_without;
        worth_lost[high][lane] = mine.worth_lost;
      }
  }

  // Where z slots are failed.
  PointWeights<T> weights(int z) const {
    const int one = z > 1 ? z : 1;
    return {static_cast<T>(share[one]), static_cast<T>(t * share[z]), static_cast<T>(share[one + 1] / t),
            static_cast<T>((1 - t) * share[z])};
  }
};

template <class T>
struct PointsOf {
  const Point<T>* first;
  int count;
};

// The points of the last domain with each number of slots: tables of one size come again and again.
template <class T>
class KnownPoints {
 public:
  void allocate() {
    if (points) return;
    for (Domain& domain : domains) domain = {-1, 0, 0};
    points.resize((kMostSlots + 1) * kMostPoints);
  }

  PointsOf<T> of(const StreamIndex& index, const Domain& domain) {
    Point<T>* mine = points + domain.n_slots * kMostPoints;
    int& count = counts[domain.n_slots];
    if (domain == domains[domain.n_slots]) return {mine, count};
    domains[domain.n_slots] = domain;
    const int64_t first = index.start[domain.n_players], n = (index.start[domain.n_players + 1] - first) / 2;
    const double *at = index.nodes + first, *weights = at + n;
    count = 0;
    for (int64_t k = 0; k < n; ++k) {
      if (weights[k] == 0.0) continue;
      assert(count < kMostPoints);
      mine[count++].fill(domain, at[k], weights[k]);
    }
    return {mine, count};
  }

 private:
  AlignedScratch<Point<T>> points;
  Domain domains[kMostSlots + 1];
  int counts[kMostSlots + 1];
};

}  // namespace
}  // namespace fouriershap
