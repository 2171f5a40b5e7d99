// Building tables: which terms share a block, and what a block's table holds.
#include <cstdlib>

#include "build.h"
#include "simd.h"

namespace fouriershap {
namespace FS_LEVEL {

namespace {

constexpr int kWidth = 8;

template <class T>
inline T* zeros(int64_t n) {
  return static_cast<T*>(std::calloc(n > 0 ? n : 1, sizeof(T)));
}

// Walsh-Hadamard transform of `size` lines of `width` numbers.
void transform(double* values, int64_t size, int64_t width) {
  for (int64_t half = width; half < size * width; half *= 2)
    for (int64_t at = 0; at < size * width; at += 2 * half)
      for (int64_t i = at; i < at + half; ++i) {
        const double a = values[i], b = values[i + half];
        values[i] = a + b;
        values[i + half] = a - b;
      }
}

// What the character s of a term f gives to each atom of f, and to each pair: by how many of them are in s.
inline void add_players(uint32_t f, uint32_t s, const double* g, double weight, const int32_t* slots, double* line) {
  const double share[2] = {g[0] * weight, g[1] * weight};
  for (; f; f &= f - 1) {
    const int i = __builtin_ctz(f);
    if (slots[i] >= 0) line[slots[i]] += share[s >> i & 1];
  }
}

inline void add_pairs(uint32_t f, uint32_t s, const double* g, double weight, const int32_t* slots, double* line) {
  const double share[3] = {g[0] * weight, g[1] * weight, g[2] * weight};
  for (uint32_t rest = f; rest; rest &= rest - 1) {
    const int j = __builtin_ctz(rest);
    for (uint32_t below = f & ((1u << j) - 1); below; below &= below - 1) {
      const int i = __builtin_ctz(below), slot = slots[j * (j - 1) / 2 + i];
      if (slot >= 0) line[slot] += share[(s >> i & 1) + (s >> j & 1)];
    }
  }
}

}  // namespace

void spectrum_tables(const int32_t* block_bits, const int64_t* histogram_offset, const double* histograms,
                     const int64_t* term_start, const uint32_t* term_mask, const double* coefficients,
                     int64_t n_outputs, const double* shares, int64_t shares_side,
                     const int32_t* table_block, const int64_t* table_offset, const int32_t* table_slots,
                     int64_t slots_stride, int64_t order, int64_t first_table, int64_t last_table, double* values) {
  double* mean = nullptr;
  int64_t room = 0;
  for (int64_t t = first_table; t < last_table; ++t) {
    const int64_t b = table_block[t], size = int64_t{1} << block_bits[b];
    if (size > room) {
      std::free(mean);
      mean = zeros<double>(size);
      room = size;
    }
    std::memcpy(mean, histograms + histogram_offset[b], size * sizeof(double));
    transform(mean, size, 1);
    const int32_t* slots = table_slots + t * slots_stride;
    double* table = values + table_offset[t];
    std::memset(table, 0, n_outputs * size * kWidth * sizeof(double));
    for (int64_t k = term_start[b]; k < term_start[b + 1]; ++k) {
      const uint32_t f = term_mask[k];
      const int degree = __builtin_popcount(f);
      uint32_t s = f;
      while (true) {
        const double* g = shares + (degree * shares_side + __builtin_popcount(s)) * (order + 1);
        for (int64_t o = 0; o < n_outputs; ++o) {
          const double weight = coefficients[k * n_outputs + o] * mean[f ^ s];
          double* line = table + (o * size + s) * kWidth;
          if (order == 1)
            add_players(f, s, g, weight, slots, line);
          else
            add_pairs(f, s, g, weight, slots, line);
        }
        if (!s) break;
        s = (s - 1) & f;
      }
    }
    for (int64_t o = 0; o < n_outputs; ++o) transform(table + o * size * kWidth, size, kWidth);
  }
  std::free(mean);
}

int64_t cover(const int64_t* start, const int32_t* atoms, int64_t n_terms, int64_t n_atoms,
              int64_t max_atoms, const int64_t* weights, int32_t* block_of_term, int64_t* block_start,
              int32_t* block_atoms) {
  // The terms of each atom; covered ones are dropped from a list when it is next walked.
  int64_t* list_start = zeros<int64_t>(n_atoms + 1);
  int64_t* list_end = zeros<int64_t>(n_atoms);
  int32_t* list = zeros<int32_t>(start[n_terms]);
  for (int64_t i = 0; i < start[n_terms]; ++i) ++list_start[atoms[i] + 1];
  for (int64_t a = 0; a < n_atoms; ++a) list_start[a + 1] += list_start[a];
  for (int64_t a = 0; a < n_atoms; ++a) list_end[a] = list_start[a];
  for (int64_t k = 0; k < n_terms; ++k) {
    block_of_term[k] = -1;
    for (int64_t i = start[k]; i < start[k + 1]; ++i) list[list_end[atoms[i]]++] = static_cast<int32_t>(k);
  }
  // lacking[k]: atoms of term k outside the block; score[a] follows its changes.
  int32_t* lacking = zeros<int32_t>(n_terms);
  int64_t* score = zeros<int64_t>(n_atoms);
  int64_t* fresh_score = zeros<int64_t>(n_atoms);  // scores of the empty block
  uint8_t* inside = zeros<uint8_t>(n_atoms);
  const auto weight_of = [&](int64_t n) { return n <= max_atoms ? weights[n] : 0; };
  for (int64_t k = 0; k < n_terms; ++k)
    for (int64_t i = start[k]; i < start[k + 1]; ++i) fresh_score[atoms[i]] += weight_of(start[k + 1] - start[k]);
  for (int64_t k = 0; k < n_terms; ++k) lacking[k] = static_cast<int32_t>(start[k + 1] - start[k]);
  int32_t n_blocks = 0;
  int64_t filled = 0;
  block_start[0] = 0;
  for (int64_t seed = 0; seed < n_terms; ++seed) {
    if (block_of_term[seed] >= 0) continue;
    std::memcpy(score, fresh_score, n_atoms * sizeof(int64_t));
    const int64_t first = filled;
    int64_t next_seed_atom = start[seed];
    while (true) {
      int32_t best = -1;
      if (next_seed_atom < start[seed + 1]) {
        best = atoms[next_seed_atom++];
      } else if (filled - first < max_atoms) {
        int64_t best_score = 0;
        for (int64_t a = 0; a < n_atoms; ++a)
          if (!inside[a] && score[a] > best_score) {
            best_score = score[a];
            best = static_cast<int32_t>(a);
          }
      }
      if (best < 0) break;
      block_atoms[filled++] = best;
      inside[best] = 1;
      int64_t kept = list_start[best];
      for (int64_t i = list_start[best]; i < list_end[best]; ++i) {
        const int32_t k = list[i];
        if (block_of_term[k] >= 0 && block_of_term[k] != n_blocks) continue;
        list[kept++] = k;
        const int64_t before = weight_of(lacking[k]);
        const int64_t after = --lacking[k] ? weight_of(lacking[k]) : 0;
        for (int64_t j = start[k]; j < start[k + 1]; ++j) score[atoms[j]] += after - before;
        if (!lacking[k]) block_of_term[k] = n_blocks;
      }
      list_end[best] = kept;
    }
    for (int64_t i = first; i < filled; ++i) {
      const int32_t a = block_atoms[i];
      inside[a] = 0;
      for (int64_t j = list_start[a]; j < list_end[a]; ++j) {
        const int32_t k = list[j];
        ++lacking[k];
        const int64_t degree = start[k + 1] - start[k];
        if (block_of_term[k] == n_blocks && lacking[k] == degree)
          for (int64_t m = start[k]; m < start[k + 1]; ++m) fresh_score[atoms[m]] -= weight_of(degree);
      }
    }
    block_start[++n_blocks] = filled;
  }
  std::free(inside);
  std::free(fresh_score);
  std::free(score);
  std::free(lacking);
  std::free(list);
  std::free(list_end);
  std::free(list_start);
  return n_blocks;
}

int64_t group(const int64_t* start, const int32_t* players, const int32_t* kinds, int64_t n_tables,
              int64_t n_players, int64_t most_tables, int64_t reach, int32_t* group_of_table,
              int32_t* group_players) {
  // For every player, a linked list of the groups of the current kind that hold it, youngest first.
  int32_t* head = zeros<int32_t>(n_players);
  int32_t* next = zeros<int32_t>(n_tables * kWidth);
  int64_t* wanted = zeros<int64_t>(n_players);  // the last table (counted from 1) that has the player
  int64_t* seen = zeros<int64_t>(n_tables);     // the last table that looked at the group
  int32_t* n_members = zeros<int32_t>(n_tables);
  int32_t* n_held = zeros<int32_t>(n_tables);
  for (int64_t i = 0; i < n_tables * kWidth; ++i) group_players[i] = -1;
  int32_t n_groups = 0;
  for (int64_t t = 0; t < n_tables; ++t) {
    if (t == 0 || kinds[t] != kinds[t - 1])
      for (int64_t p = 0; p < n_players; ++p) head[p] = -1;
    const int32_t size = static_cast<int32_t>(start[t + 1] - start[t]);
    for (int64_t i = start[t]; i < start[t + 1]; ++i) wanted[players[i]] = t + 1;
    int32_t best = n_groups, most = 0;
    for (int64_t i = start[t]; i < start[t + 1]; ++i) {
      int64_t steps = 0;
      for (int32_t at = head[players[i]]; at >= 0 && steps < reach; at = next[at], ++steps) {
        const int32_t g = at / kWidth;
        if (seen[g] == t + 1 || n_members[g] >= most_tables) continue;
        seen[g] = t + 1;
        int32_t shared = 0;
        const int32_t* held = group_players + static_cast<int64_t>(g) * kWidth;
        for (int32_t c = 0; c < n_held[g]; ++c) shared += wanted[held[c]] == t + 1;
        if (n_held[g] + size - shared <= kWidth && (shared > most || (shared == most && g < best))) {
          best = g;
          most = shared;
        }
      }
    }
    if (best == n_groups) ++n_groups;
    int32_t* held = group_players + static_cast<int64_t>(best) * kWidth;
    for (int64_t i = start[t]; i < start[t + 1]; ++i) {
      int32_t c = 0;
      while (c < n_held[best] && held[c] != players[i]) ++c;
      if (c < n_held[best]) continue;
      held[c] = players[i];
      ++n_held[best];
      const int32_t at = best * kWidth + c;
      next[at] = head[players[i]];
      head[players[i]] = at;
    }
    ++n_members[best];
    group_of_table[t] = best;
  }
  std::free(n_held);
  std::free(n_members);
  std::free(seen);
  std::free(wanted);
  std::free(next);
  std::free(head);
  return n_groups;
}

}  // namespace FS_LEVEL
}  // namespace fouriershap
