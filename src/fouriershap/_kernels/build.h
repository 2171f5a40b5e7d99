// Building tables: terms grouped into blocks, tables into groups, and the tables of spectra filled.
// build_numpy.py is the specification.
#pragma once
#include <cassert>

#include "scratch.h"
#include "simd.h"
#include "span.h"

namespace fouriershap {

struct SpectrumBlocks {
  Span<const int32_t> bits;
  Span<const int64_t> histogram_offset;
  Span<const double> histograms;
  Span<const int64_t> term_start;
  Span<const uint32_t> term_mask;
  Matrix<const double> coefficients;  // (n_terms, n_outputs)
  Span<const double> shares;          // (shares_side, shares_side, order + 1)
  int64_t shares_side, order;

  int64_t n_outputs() const { return coefficients.columns; }
};

struct SpectrumTables {
  Span<const int32_t> block;
  Span<const int64_t> offset;
  Matrix<const int32_t> slots;
  Span<double> values;  // written
};

struct CoverTerms {
  Span<const int64_t> start;
  Span<const int32_t> atoms;
  int64_t n_atoms, max_atoms;
  Span<const int64_t> weights;

  int64_t n() const { return start.size - 1; }
};

struct CoverBlocks {
  Span<int32_t> of_term;
  Span<int64_t> start;
  Span<int32_t> atoms;
};

struct GroupTables {
  Span<const int64_t> start;
  Span<const int32_t> players, kinds;
  int64_t n_players, most_tables, reach;

  int64_t n() const { return kinds.size; }
};

struct Groups {
  Span<int32_t> of_table;
  Matrix<int32_t> players;
};

namespace {

constexpr int kWidth = 8;

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

// Share of each pair of atoms of a term f in its character s, by how many of the two are in s.
inline void add_pairs(uint32_t f, uint32_t s, const double* g, double weight, const int32_t* slots,
                      double* line) {
  const double share[3] = {g[0] * weight, g[1] * weight, g[2] * weight};
  for (uint32_t rest = f; rest; rest &= rest - 1) {
    const int j = __builtin_ctz(rest);
    for (uint32_t below = f & ((1u << j) - 1); below; below &= below - 1) {
      const int i = __builtin_ctz(below), slot = slots[j * (j - 1) / 2 + i];
      if (slot >= 0) line[slot] += share[(s >> i & 1) + (s >> j & 1)];
    }
  }
}

// Fills the tables of one block after the other.
struct SpectrumFiller {
  typedef Vec<double>::type V;
  static constexpr int L = Vec<double>::lanes;

  const SpectrumBlocks& blocks;
  Scratch<double> mean;            // of the background, by character
  AlignedScratch<double> columns;  // a line for each set of atoms: 1 in their columns, else 0

  SpectrumFiller(const SpectrumBlocks& the_blocks, int64_t largest)
      : blocks(the_blocks), mean(largest), columns(blocks.order == 1 ? largest * kWidth : 0) {}

  void find_columns(int64_t size, const int32_t* slots) {
    std::memset(columns, 0, kWidth * sizeof(double));
    for (int64_t s = 1; s < size; ++s) {
      double* line = columns + s * kWidth;
      std::memcpy(line, columns + (s & (s - 1)) * kWidth, kWidth * sizeof(double));
      const int32_t slot = slots[__builtin_ctz(static_cast<uint32_t>(s))];
      if (slot >= 0) line[slot] += 1.0;
    }
  }

  // Adds what term k of a block gives to each character s: one share to the atoms outside s, one to those
  // inside. Where an atom is the same in all of the background, its shares of s and of s with it are exact
  // negatives, and so are their sums: both are rounded as products of their own, and times 0 or 1 before they
  // are added, so that a fused multiply-add rounds them no other way. A player of that atom alone gets
  // exactly 0 in rows that have it, too.
  void add_players(int64_t k, int64_t size, double* table) const {
    const uint32_t f = blocks.term_mask[k];
    const double* shares = blocks.shares + 2 * __builtin_popcount(f) * blocks.shares_side;
    for (int64_t o = 0; o < blocks.n_outputs(); ++o, table += size * kWidth) {
      const V coefficient = V{} + blocks.coefficients[k][o];
      for (uint32_t s = f;; s = (s - 1) & f) {
        const double* g = shares + 2 * __builtin_popcount(s);
        const V weight = coefficient * mean[f ^ s], outside = g[0] * weight, inside = g[1] * weight;
        const double *not_in_s = columns + int64_t{f ^ s} * kWidth, *in_s = columns + int64_t{s} * kWidth;
        double* line = table + int64_t{s} * kWidth;
        for (int i = 0; i < kWidth; i += L)
          store(line + i, load<V>(line + i) + outside * load<V>(not_in_s + i) + inside * load<V>(in_s + i));
        if (!s) break;
      }
    }
  }

  void add_all_pairs(int64_t k, int64_t size, const int32_t* slots, double* table) const {
    const uint32_t f = blocks.term_mask[k];
    const double* shares = blocks.shares + 3 * __builtin_popcount(f) * blocks.shares_side;
    for (uint32_t s = f;; s = (s - 1) & f) {
      for (int64_t o = 0; o < blocks.n_outputs(); ++o) {
        const double weight = blocks.coefficients[k][o] * mean[f ^ s];
        add_pairs(f, s, shares + 3 * __builtin_popcount(s), weight, slots, table + (o * size + s) * kWidth);
      }
      if (!s) break;
    }
  }

  void fill(int64_t b, const int32_t* slots, double* table) {
    const int64_t size = int64_t{1} << blocks.bits[b];
    std::memcpy(mean, blocks.histograms + blocks.histogram_offset[b], size * sizeof(double));
    transform(mean, size, 1);
    std::memset(table, 0, blocks.n_outputs() * size * kWidth * sizeof(double));
    if (blocks.order == 1) find_columns(size, slots);
    for (int64_t k = blocks.term_start[b]; k < blocks.term_start[b + 1]; ++k) {
      assert(blocks.term_mask[k] < size && __builtin_popcount(blocks.term_mask[k]) < blocks.shares_side);
      if (blocks.order == 1)
        add_players(k, size, table);
      else
        add_all_pairs(k, size, slots, table);
    }
    for (int64_t o = 0; o < blocks.n_outputs(); ++o) transform(table + o * size * kWidth, size, kWidth);
  }
};

void spectrum_tables(const SpectrumBlocks& blocks, const SpectrumTables& tables) {
  int64_t largest = 0;
  for (const int32_t block : tables.block) largest = std::max(largest, int64_t{1} << blocks.bits[block]);
  SpectrumFiller filler(blocks, largest);
  for (int64_t t = 0; t < tables.block.size; ++t)
    filler.fill(tables.block[t], tables.slots[t], tables.values + tables.offset[t]);
}

// Gathers terms into blocks. Each atom added to the current block updates how many atoms of each term it
// lacks, and the score of adding each other atom.
struct Cover {
  CoverTerms terms;
  CoverBlocks blocks;
  int32_t n_blocks = 0;
  int64_t filled = 0;                     // atoms in all blocks
  Scratch<int64_t> list_start, list_end;  // the terms of each atom; covered ones are dropped when
  Scratch<int32_t> list;                  // the list is next walked
  Scratch<int32_t> lacking;               // atoms of each term outside the block
  Scratch<int64_t> score, fresh_score;    // of each atom; those of the empty block
  Scratch<uint8_t> inside;                // whether the block has the atom

  Cover(const CoverTerms& the_terms, const CoverBlocks& the_blocks)
      : terms(the_terms),
        blocks(the_blocks),
        list_start(terms.n_atoms + 1, 0),
        list_end(terms.n_atoms),
        list(terms.start[terms.n()]),
        lacking(terms.n()),
        score(terms.n_atoms),
        fresh_score(terms.n_atoms, 0),
        inside(terms.n_atoms, 0) {}

  int64_t degree(int64_t k) const { return terms.start[k + 1] - terms.start[k]; }
  int64_t weight_of(int64_t n_lacking) const {
    return n_lacking <= terms.max_atoms ? terms.weights[n_lacking] : 0;
  }

  void begin() {
    const int64_t* start = terms.start;
    const int32_t* atoms = terms.atoms;
    for (int64_t i = 0; i < start[terms.n()]; ++i) {
      assert(atoms[i] >= 0 && atoms[i] < terms.n_atoms);
      ++list_start[atoms[i] + 1];
    }
    for (int64_t a = 0; a < terms.n_atoms; ++a) list_start[a + 1] += list_start[a];
    for (int64_t a = 0; a < terms.n_atoms; ++a) list_end[a] = list_start[a];
    for (int64_t k = 0; k < terms.n(); ++k) {
      blocks.of_term[k] = -1;
      lacking[k] = static_cast<int32_t>(degree(k));
      for (int64_t i = start[k]; i < start[k + 1]; ++i) {
        list[list_end[atoms[i]]++] = static_cast<int32_t>(k);
        fresh_score[atoms[i]] += weight_of(degree(k));
      }
    }
    blocks.start[0] = 0;
  }

  // Returns the atom with the highest score that is not in the block; -1 where all scores are 0.
  int32_t best_atom() const {
    int32_t best = -1;
    int64_t best_score = 0;
    for (int64_t a = 0; a < terms.n_atoms; ++a)
      if (!inside[a] && score[a] > best_score) {
        best_score = score[a];
        best = static_cast<int32_t>(a);
      }
    return best;
  }

  void take_in(int32_t atom) {
    blocks.atoms[filled++] = atom;
    inside[atom] = 1;
    int64_t kept = list_start[atom];
    for (int64_t i = list_start[atom]; i < list_end[atom]; ++i) {
      const int32_t k = list[i];
      if (blocks.of_term[k] >= 0 && blocks.of_term[k] != n_blocks) continue;
      list[kept++] = k;
      const int64_t before = weight_of(lacking[k]);
      const int64_t after = --lacking[k] ? weight_of(lacking[k]) : 0;
      for (int64_t j = terms.start[k]; j < terms.start[k + 1]; ++j) score[terms.atoms[j]] += after - before;
      if (!lacking[k]) blocks.of_term[k] = n_blocks;
    }
    list_end[atom] = kept;
  }

  void close(int64_t first) {
    for (int64_t i = first; i < filled; ++i) {
      const int32_t a = blocks.atoms[i];
      inside[a] = 0;
      for (int64_t j = list_start[a]; j < list_end[a]; ++j) {
        const int32_t k = list[j];
        ++lacking[k];
        if (blocks.of_term[k] == n_blocks && lacking[k] == degree(k))
          for (int64_t m = terms.start[k]; m < terms.start[k + 1]; ++m)
            fresh_score[terms.atoms[m]] -= weight_of(degree(k));
      }
    }
    blocks.start[++n_blocks] = filled;
  }

  void run() {
    begin();
    for (int64_t seed = 0; seed < terms.n(); ++seed) {
      if (blocks.of_term[seed] >= 0) continue;
      std::memcpy(score, fresh_score, terms.n_atoms * sizeof(int64_t));
      const int64_t first = filled;
      for (int64_t i = terms.start[seed]; i < terms.start[seed + 1]; ++i) take_in(terms.atoms[i]);
      while (filled - first < terms.max_atoms) {
        const int32_t best = best_atom();
        if (best < 0) break;
        take_in(best);
      }
      close(first);
    }
  }
};

// Returns the number of blocks.
int64_t cover(const CoverTerms& terms, const CoverBlocks& blocks) {
  Cover job(terms, blocks);
  job.run();
  return job.n_blocks;
}

// Gathers tables into groups.
struct Grouping {
  GroupTables tables;
  Groups groups;
  int32_t n_groups = 0;
  // For every player, a linked list of the groups of the current kind that contain it, latest first.
  Scratch<int32_t> head, next;
  Scratch<int64_t> wanted;             // of each player: the last table (counted from 1) that has it
  Scratch<int64_t> seen;               // of each group: the last table that looked at it
  Scratch<int32_t> n_members, n_held;  // of each group: tables, and players

  Grouping(const GroupTables& the_tables, const Groups& the_groups)
      : tables(the_tables),
        groups(the_groups),
        head(tables.n_players),
        next(tables.n() * kWidth),
        wanted(tables.n_players, 0),
        seen(tables.n(), 0),
        n_members(tables.n(), 0),
        n_held(tables.n(), 0) {}

  // Returns the group that contains most of a table's players and has room for the others, or a new one.
  int32_t best_group(int64_t t) const {
    const int64_t first = tables.start[t], last = tables.start[t + 1];
    const int32_t size = static_cast<int32_t>(last - first);
    assert(size <= kWidth);
    for (int64_t i = first; i < last; ++i) wanted[tables.players[i]] = t + 1;
    int32_t best = n_groups, most = 0;
    for (int64_t i = first; i < last; ++i) {
      int64_t steps = 0;
      for (int32_t at = head[tables.players[i]]; at >= 0 && steps < tables.reach; at = next[at], ++steps) {
        const int32_t g = at / kWidth;
        if (seen[g] == t + 1 || n_members[g] >= tables.most_tables) continue;
        seen[g] = t + 1;
        int32_t shared = 0;
        const int32_t* held = groups.players[g];
        for (int32_t c = 0; c < n_held[g]; ++c) shared += wanted[held[c]] == t + 1;
        if (n_held[g] + size - shared <= kWidth && (shared > most || (shared == most && g < best))) {
          best = g;
          most = shared;
        }
      }
    }
    return best;
  }

  void take_in(int64_t t, int32_t g) {
    int32_t* held = groups.players[g];
    for (int64_t i = tables.start[t]; i < tables.start[t + 1]; ++i) {
      const int32_t player = tables.players[i];
      int32_t c = 0;
      while (c < n_held[g] && held[c] != player) ++c;
      if (c < n_held[g]) continue;
      held[c] = player;
      ++n_held[g];
      next[g * kWidth + c] = head[player];
      head[player] = g * kWidth + c;
    }
    ++n_members[g];
    groups.of_table[t] = g;
  }

  void run() {
    for (int32_t& player : groups.players.flat()) player = -1;
    for (int64_t t = 0; t < tables.n(); ++t) {
      if (t == 0 || tables.kinds[t] != tables.kinds[t - 1])
        for (int64_t p = 0; p < tables.n_players; ++p) head[p] = -1;
      const int32_t best = best_group(t);
      n_groups += best == n_groups;
      take_in(t, best);
    }
  }
};

// Returns the number of groups.
int64_t group(const GroupTables& tables, const Groups& groups) {
  if (tables.n() > INT32_MAX / kWidth) throw std::bad_alloc();
  Grouping job(tables, groups);
  job.run();
  return job.n_groups;
}

}  // namespace
}  // namespace fouriershap
