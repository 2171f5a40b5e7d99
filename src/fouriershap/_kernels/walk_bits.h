// Raw outputs of hybrids of a row and background rows, without walking. walk_numpy.py is the specification.
//
// The leaves of the trees are bits of words. A code of a feature rules out the leaves that rows with it
// cannot reach, and what the features of a hybrid leave of a tree is the one leaf that it reaches. So a
// hybrid is the intersection of two sets: what the players inside leave, and what the others leave.
#pragma once
#include <vector>

#include "walk_index.h"

namespace fouriershap {
namespace {

// WORD: uint32_t or uint64_t, which holds the leaves of a tree of usual size.
template <class WORD>
class LeafBits {
 public:
  static constexpr int64_t kBits = 8 * sizeof(WORD);
  static constexpr int64_t kLanes = 32 / sizeof(WORD);
  typedef WORD Vector __attribute__((vector_size(32)));

  // Words of trees that add to the same outputs: whole vectors.
  struct Group {
    int64_t first, last;          // in vectors
    int64_t first_output, count;  // outputs
    int64_t values;               // where its values begin: (count, words, kBits + 1), 0 for no leaf
  };

  explicit LeafBits(const WalkTrees& the_trees) : trees(the_trees) {
    code_start.resize(trees.n_features());
    int64_t n_codes = 0;
    for (int64_t f = 0; f < trees.n_features(); ++f) {
      code_start[f] = n_codes;
      n_codes += trees.n_codes[f];
    }
    lay_out();
    every.resize(n_words());
    std::memset(every, 0, n_words() * sizeof(WORD));
    values.resize(n_values);
    std::memset(values, 0, n_values * sizeof(double));
    for (const Placed& tree : placed) put(tree, [&](const Inner&, int64_t) {});
    words.resize(n_codes * n_words());
    for (int64_t c = 0; c < n_codes; ++c) std::memcpy(words + c * n_words(), every, n_words() * sizeof(WORD));
    for (const Placed& tree : placed)
      put(tree, [&](const Inner& inner, int64_t end) { rule_out(inner, end); });
  }

  int64_t n_words() const { return n_vectors * kLanes; }

  // What each player leaves, (n_players, n_words), if its features come from a column of codes.
  void leave(const WalkRows& rows, int64_t column, WORD* out) const {
    for (int64_t p = 0; p < trees.n_players; ++p)
      std::memcpy(out + p * n_words(), every, n_words() * sizeof(WORD));
    for (int64_t f = 0; f < trees.n_features(); ++f) {
      const WORD* mine = words + (code_start[f] + rows.codes[trees.features[f]][column]) * n_words();
      WORD* to = out + trees.players[f] * n_words();
      for (int64_t w = 0; w < n_words(); ++w) to[w] &= mine[w];
    }
  }

  const WORD* all() const { return every; }
  const std::vector<Group>& all_groups() const { return groups; }

  // Adds the values of the leaves that are left in a vector of words of a group to out[0], ..., out[count -
  // 1].
  void add(const Group& group, int64_t vector, Vector left, double* out) const {
    const int64_t size = (group.last - group.first) * kLanes * (kBits + 1);
    const double* from = values + group.values + (vector - group.first) * kLanes * (kBits + 1);
    WORD word[kLanes];
    std::memcpy(word, &left, sizeof left);
    if (group.count == 1) {  // by itself: the offsets of several outputs do not fit into registers
      out[0] += sum_of(word, from);
      return;
    }
    for (int64_t o = 0; o < group.count; ++o, from += size) out[o] += sum_of(word, from);
  }

 private:
  // The only leaf of a word, or kBits without one.
  static int64_t slot(WORD word) {
    if constexpr (kBits < 64) return __builtin_ctzll(uint64_t{word} | 1ULL << kBits);
    return word ? __builtin_ctzll(word) : kBits;
  }

  static double sum_of(const WORD* word, const double* from) {
    double sum[2] = {0.0, 0.0};
    for (int64_t i = 0; i < kLanes; i += 2) {
      sum[0] += from[i * (kBits + 1) + slot(word[i])];
      sum[1] += from[(i + 1) * (kBits + 1) + slot(word[i + 1])];
    }
    return sum[0] + sum[1];
  }

  struct Placed {
    int64_t tree, group, first_bit;  // in the order of all words
  };
  struct Inner {
    int32_t node;
    int8_t next;
    int64_t first, middle;  // bits of the leaves on the left: [first, middle)
  };

  void lay_out() {
    std::vector<int64_t> n_leaves(trees.n_trees());
    for (int64_t t = 0; t < trees.n_trees(); ++t) for_each_leaf(t, [&](int32_t) { ++n_leaves[t]; });
    int64_t most = -1;
    for (const int32_t output : trees.tree_output) most = std::max(most, int64_t{output});
    for (int64_t output = -1; output <= most; ++output) {
      Group group = {n_vectors, n_vectors, 0, 0, n_values};
      int64_t word = n_vectors * kLanes;
      for (int64_t t = 0; t < trees.n_trees(); ++t) {
        if (trees.tree_output[t] != output) continue;
        const Outputs outputs(trees, t);
        group.first_output = outputs.first;
        group.count = outputs.count;
        placed.push_back({t, static_cast<int64_t>(groups.size()), word * kBits});
        word += (n_leaves[t] + kBits - 1) / kBits;
      }
      group.last = n_vectors = (word + kLanes - 1) / kLanes;
      if (group.last == group.first) continue;
      n_values += group.count * (group.last - group.first) * kLanes * (kBits + 1);
      groups.push_back(group);
    }
  }

  template <class Visit>
  void for_each_leaf(int64_t tree, Visit visit) const {
    std::vector<int32_t> open = {trees.roots[tree]};
    while (!open.empty()) {
      const Node& node = trees.nodes[open.back()];
      const int32_t here = open.back();
      open.pop_back();
      if (node.leaf()) {
        visit(here);
      } else {
        open.push_back(node.right);
        open.push_back(node.left);
      }
    }
  }

  // Numbers the leaves of a tree from the left, and calls use(inner node, bit after its last leaf).
  template <class Use>
  void put(const Placed& tree, Use use) {
    const Group& group = groups[tree.group];
    const Outputs outputs(trees, tree.tree);
    const int64_t size = (group.last - group.first) * kLanes * (kBits + 1);
    int64_t bit = tree.first_bit;
    std::vector<Inner> path;
    int32_t node = trees.roots[tree.tree];
    while (true) {
      while (!trees.nodes[node].leaf()) {
        path.push_back({node, 1, bit, bit});
        node = trees.nodes[node].left;
      }
      const int64_t word = bit / kBits, slot = (word - group.first * kLanes) * (kBits + 1) + bit % kBits;
      every[word] |= WORD{1} << (bit % kBits);
      for (int64_t o = 0; o < group.count; ++o)
        values[group.values + o * size + slot] = outputs.of_leaf(node)[o];
      ++bit;
      while (!path.empty() && path.back().next == 2) {
        use(path.back(), bit);
        path.pop_back();
      }
      if (path.empty()) return;
      path.back().next = 2;
      path.back().middle = bit;
      node = trees.nodes[path.back().node].right;
    }
  }

  // Clears the leaves below a node that codes of its feature cannot reach; those on its right end before
  // `end`.
  void rule_out(const Inner& inner, int64_t end) {
    const Node& node = trees.nodes[inner.node];
    const int64_t start = code_start[node.feature()];
    for (int64_t code = 0; code < trees.n_codes[node.feature()]; ++code) {
      const bool left = code_goes_left(trees, node, static_cast<int32_t>(code));
      WORD* row = words + (start + code) * n_words();
      for (int64_t bit = left ? inner.middle : inner.first, last = left ? end : inner.middle; bit < last;) {
        const int64_t in_word = std::min(last - bit, kBits - bit % kBits);
        const WORD ones = in_word == kBits ? ~WORD{0} : (WORD{1} << in_word) - 1;
        row[bit / kBits] &= ~(ones << (bit % kBits));
        bit += in_word;
      }
    }
  }

  WalkTrees trees;
  int64_t n_vectors = 0, n_values = 0;
  std::vector<Group> groups;
  std::vector<Placed> placed;
  Scratch<int64_t> code_start;  // (n_features,) codes of the features before
  AlignedScratch<WORD> every;   // (n_words,) the leaves that there are
  AlignedScratch<WORD> words;   // (codes of all features, n_words)
  AlignedScratch<double> values;
};

// What is left along orders of the players. places: (n_others, 2, n_players). out: (n_others, 2, n_players -
// 1, n_outputs), added to: by how many players have come from the row.
template <class WORD>
void bit_chains(const LeafBits<WORD>& bits, const WalkRows& row, const WalkRows& others, int64_t n,
                const int64_t* places, int64_t n_outputs, double* out) {
  typedef typename LeafBits<WORD>::Vector Vector;
  const int64_t n_words = bits.n_words(), lanes = LeafBits<WORD>::kLanes;
  const AlignedScratch<WORD> mine(n * n_words), theirs(n * n_words);
  const AlignedScratch<Vector> rest(n + 1);
  const Scratch<int64_t> order(n);
  bits.leave(row, row.first, mine);
  for (int64_t i = others.first; i < others.last; ++i) {
    bits.leave(others, i, theirs);
    for (int64_t way = 0; way < 2; ++way, places += n, out += (n - 1) * n_outputs) {
      for (int64_t p = 0; p < n; ++p) order[places[p]] = p;
      for (const auto& group : bits.all_groups()) {
        for (int64_t v = group.first; v < group.last; ++v) {
          Vector taken = load<Vector>(bits.all() + v * lanes);
          rest[n] = taken;
          for (int64_t k = n - 1; k > 0; --k)
            rest[k] = rest[k + 1] & load<Vector>(theirs + order[k] * n_words + v * lanes);
          for (int64_t k = 1; k < n; ++k) {
            taken &= load<Vector>(mine + order[k - 1] * n_words + v * lanes);
            bits.add(group, v, taken & rest[k], out + (k - 1) * n_outputs + group.first_output);
          }
        }
      }
    }
  }
}

// Of all coalitions. out: (n_others, 2^n_players, n_outputs), added to: bit j of a coalition is player j.
template <class WORD>
void bit_coalitions(const LeafBits<WORD>& bits, const WalkRows& row, const WalkRows& others, int64_t n,
                    int64_t n_outputs, double* out) {
  typedef typename LeafBits<WORD>::Vector Vector;
  const int64_t n_words = bits.n_words(), lanes = LeafBits<WORD>::kLanes;
  const AlignedScratch<WORD> mine(n * n_words), theirs(n * n_words);
  const AlignedScratch<Vector> left(n + 1);
  bits.leave(row, row.first, mine);
  for (int64_t i = others.first; i < others.last; ++i, out += (int64_t{1} << n) * n_outputs) {
    bits.leave(others, i, theirs);
    for (const auto& group : bits.all_groups()) {
      for (int64_t v = group.first; v < group.last; ++v) {
        left[n] = load<Vector>(bits.all() + v * lanes);
        for (int64_t coalition = 0; coalition < int64_t{1} << n; ++coalition) {
          // Only the players up to the lowest one that is inside now have changed.
          for (int64_t p = coalition ? __builtin_ctzll(coalition) : n - 1; p >= 0; --p) {
            const WORD* from = coalition >> p & 1 ? mine : theirs;
            left[p] = left[p + 1] & load<Vector>(from + p * n_words + v * lanes);
          }
          bits.add(group, v, left[0], out + coalition * n_outputs + group.first_output);
        }
      }
    }
  }
}

}  // namespace
}  // namespace fouriershap
