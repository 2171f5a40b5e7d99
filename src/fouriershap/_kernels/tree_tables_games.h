// A leaf's values under structured indices: each game gives some players theirs, and merges the others.
#pragma once
#include "scratch.h"
#include "tree_tables.h"

namespace fouriershap {

class LeafGames {
 public:
  LeafGames(const TreeBlocks& the_blocks, const TreeGames& the_games, int64_t most_subsets)
      : blocks(the_blocks), games(the_games), unit(most_subsets), shares(most_subsets) {}

  // phi[F][column] of a leaf of value 1, F the players that the row fails. c[X]: the share of the background
  // that fails exactly X. owner: the players of the leaf.
  void add(const int32_t* owner, int n_players, const double* c, const int32_t* column, double* phi) {
    u = n_players;
    for (int64_t i = 0; i < (int64_t{8} << u); ++i) phi[i] = 0.0;
    for (int j = 0; j < u; ++j) {
      const int32_t game = games.game_of[owner[j]];
      int before = 0;
      while (games.game_of[owner[before]] != game) ++before;
      if (before == j) add_game(game, owner, c, column, phi);
    }
  }

 private:
  void add_game(int32_t game, const int32_t* owner, const double* c, const int32_t* column, double* phi) {
    n_shown = 0;
    for (int j = 0; j < u; ++j)
      if (games.game_of[owner[j]] == game && column[j] >= 0) shown[n_shown++] = j;
    if (!n_shown) return;
    merge(game, owner, c);
    make_points(game);
    make_sums();
    for (int64_t failed = 0; failed < int64_t{1} << n_merged; ++failed) integrate(failed);
    for (int64_t f = 0; f < int64_t{1} << u; ++f)
      for (int s = 0; s < n_shown; ++s) phi[8 * f + column[shown[s]]] = values[unit[f] * n_shown + s];
  }

  // Which players of the merged game the leaf has, and its shares of the background.
  void merge(int32_t game, const int32_t* owner, const double* c) {
    n_merged = 0;
    for (int j = 0; j < u; ++j) {
      const int32_t id = games.merged[game][owner[j]];
      int at = 0;
      while (at < n_merged && ids[at] != id) ++at;
      if (at == n_merged) {
        ids[n_merged] = id;
        kinds[n_merged++] = games.kind[game][owner[j]];
      }
      place[j] = at;
    }
    const int64_t size = int64_t{1} << u;
    unit[0] = 0;
    for (int64_t f = 1; f < size; ++f) unit[f] = unit[f & (f - 1)] | uint32_t{1} << place[__builtin_ctzll(f)];
    for (int64_t x = 0; x < int64_t{1} << n_merged; ++x) shares[x] = 0.0;
    for (int64_t x = 0; x < size; ++x) shares[unit[x]] += c[x];
  }

  // Points that integrate the product exactly: all combinations of those of each class.
  void make_points(int32_t game) {
    int count[kMostPlayers] = {};
    int32_t classes[kMostPlayers];
    int n_classes = 0;
    for (int r = 0; r < n_merged; ++r) {
      int at = 0;
      while (at < n_classes && classes[at] != kinds[r]) ++at;
      if (at == n_classes) classes[n_classes++] = kinds[r];
      ++count[at];
      slot[r] = at;
    }
    n_points = 1;
    for (int i = 0; i < n_classes; ++i) n_points *= points_of(game, classes[i], count[i]);
    t.resize(n_classes * n_points);
    weights.resize(n_points);
    for (int64_t k = 0; k < n_points; ++k) weights[k] = 1.0;
    int64_t repeated = 1;
    for (int i = 0; i < n_classes; ++i) {
      const int32_t law = games.laws[game][classes[i]];
      const int64_t n = points_of(game, classes[i], count[i]), first = blocks.nodes_start[2 * n - 1];
      const int64_t padded = (blocks.nodes_start[2 * n] - first) / 2;
      for (int64_t k = 0; k < n_points; ++k) {
        const int64_t q = k / repeated % n;
        t[i * n_points + k] = law == kUniform ? blocks.nodes[first + q] : law == kAlways ? 1.0 : 0.0;
        if (law == kUniform) weights[k] *= blocks.nodes[first + padded + q];
      }
      repeated *= n;
      if (classes[i] == 0) own = i;
    }
  }

  // A player whose value is wanted takes no part in the product.
  int64_t points_of(int32_t game, int32_t kind, int n) const {
    return games.laws[game][kind] != kUniform ? 1 : kind ? n / 2 + 1 : (n + 1) / 2;
  }

  // held[P]: the sum over the subsets X of P of their shares times t for each player of X. away[F]: the
  // weight times 1 - t for each player of F.
  void make_sums() {
    const int64_t size = int64_t{1} << n_merged, n = n_points;
    resize_all(size * n, held, away);
    for (int64_t k = 0; k < n; ++k) {
      held[k] = 1.0;
      away[k] = weights[k];
    }
    for (int64_t x = 1; x < size; ++x) {
      const int64_t from = (x & (x - 1)) * n;
      const double* at = t + slot[__builtin_ctzll(x)] * n;
      for (int64_t k = 0; k < n; ++k) {
        held[x * n + k] = held[from + k] * at[k];
        away[x * n + k] = away[from + k] * (1.0 - at[k]);
      }
    }
    for (int64_t x = 0; x < size; ++x)
      for (int64_t k = 0; k < n; ++k) held[x * n + k] *= shares[x];
    for (int64_t bit = 1; bit < size; bit <<= 1)
      for (int64_t x = 0; x < size; ++x)
        if (x & bit)
          for (int64_t k = 0; k < n; ++k) held[x * n + k] += held[(x ^ bit) * n + k];
    values.resize(size * n_shown);
  }

  void integrate(int64_t failed) {
    const int64_t passed = ((int64_t{1} << n_merged) - 1) & ~failed, n = n_points;
    const double *all = held + passed * n, *weight = away + failed * n, *t_own = t + own * n;
    for (int s = 0; s < n_shown; ++s) {
      const int64_t bit = int64_t{1} << place[shown[s]];
      double sum = 0.0;
      if (failed & bit) {
        const double* rest = away + (failed ^ bit) * n;
        for (int64_t k = 0; k < n; ++k) sum -= rest[k] * all[k];
      } else {
        const double* without = held + (passed ^ bit) * n;
        for (int64_t k = 0; k < n; ++k) sum += weight[k] * (all[k] - without[k]) / t_own[k];
      }
      values[failed * n_shown + s] = sum;
    }
  }

  const TreeBlocks& blocks;
  const TreeGames& games;
  int u = 0, n_merged = 0, n_shown = 0, own = 0;
  int64_t n_points = 0;
  int shown[kMostPlayers], place[kMostPlayers], slot[kMostPlayers];
  int32_t ids[kMostPlayers], kinds[kMostPlayers];
  Scratch<uint32_t> unit;   // players of the merged game that fail, by the players that fail
  Scratch<double> shares;   // of the background, by the players of the merged game that it fails
  Scratch<double> t;        // (classes, points)
  Scratch<double> weights;  // (points,)
  Scratch<double> held, away, values;
};

}  // namespace fouriershap
