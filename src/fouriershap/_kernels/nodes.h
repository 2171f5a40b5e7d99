// The nodes of ensembles: checked, put on codes, packed. nodes_numpy.py is the specification.
#pragma once
#include <algorithm>
#include <vector>

#include "span.h"

namespace fouriershap {

struct NodeArrays {
  Span<const int32_t> roots, feature, left, right;
};

struct CodedNodes {
  Span<const int32_t> feature, cut, left, right, category_set;
  Span<const uint8_t> missing_left;
};

namespace {

bool are_trees(const NodeArrays& nodes) {
  const int64_t n_trees = nodes.roots.size, n_nodes = nodes.feature.size;
  if (nodes.left.size != n_nodes || nodes.right.size != n_nodes) return false;
  if (!n_trees || nodes.roots[0] != 0) return false;
  std::vector<uint8_t> has_parent(n_nodes, 0);
  for (int64_t k = 0; k < n_trees; ++k) {
    const int64_t first = nodes.roots[k];
    const int64_t last = k + 1 < n_trees ? nodes.roots[k + 1] : n_nodes;
    if (first < 0 || first >= last || last > n_nodes) return false;
    int64_t n_children = 0;
    for (int64_t v = first; v < last; ++v) {
      if (nodes.feature[v] < 0) continue;
      const int64_t children[2] = {nodes.left[v], nodes.right[v]};
      for (const int64_t child : children) {
        if (child <= v || child >= last || has_parent[child]) return false;
        has_parent[child] = 1;
      }
      n_children += 2;
    }
    if (n_children + 1 != last - first) return false;
  }
  return true;
}

// Returns the number of distinct levels, which are the first ones of `found`. Features are >= 0 and below
// start.size - 1.
template <class T>
int64_t levels(Span<const int32_t> feature, Span<const T> level, Span<int64_t> start, Span<int64_t> position,
               Span<T> found) {
  const int64_t n = feature.size, n_features = start.size - 1;
  struct Entry {
    T level;
    int32_t index;
  };
  // By feature, in the order of `start`, and sorted within each.
  std::vector<Entry> entries(n);
  std::vector<int64_t> next(n_features + 1, 0);
  for (int64_t i = 0; i < n; ++i) ++next[feature[i] + 1];
  for (int64_t f = 0; f < n_features; ++f) next[f + 1] += next[f];
  for (int64_t i = 0; i < n; ++i) entries[next[feature[i]]++] = {level[i], static_cast<int32_t>(i)};
  int64_t n_found = 0, begin = 0;
  for (int64_t f = 0; f < n_features; ++f) {
    const int64_t end = next[f];  // advanced to the beginning of the next feature
    std::sort(entries.begin() + begin, entries.begin() + end,
              [](const Entry& a, const Entry& b) { return a.level < b.level; });
    start[f] = n_found;
    for (int64_t i = begin; i < end; ++i) {
      if (i == begin || entries[i].level != entries[i - 1].level) found[n_found++] = entries[i].level;
      position[entries[i].index] = n_found - 1;
    }
    begin = end;
  }
  start[n_features] = n_found;
  return n_found;
}

void pack(const CodedNodes& coded, Span<int32_t> place, Matrix<int32_t> nodes) {
  std::fill(place.begin(), place.end(), -1);
  for (const int32_t f : coded.feature)
    if (f >= 0) place[f] = 0;
  int32_t n_tested = 0;
  for (int32_t& mine : place)
    if (!mine) mine = n_tested++;
  for (int64_t v = 0; v < nodes.rows; ++v) {
    const int32_t f = coded.feature[v], set = coded.category_set[v];
    int32_t* node = nodes[v];
    node[0] = f < 0 ? -1 : 2 * place[f] + (coded.missing_left[v] != 0);
    node[1] = set < 0 ? coded.cut[v] : -1 - set;
    node[2] = coded.left[v];
    node[3] = coded.right[v];
  }
}

}  // namespace
}  // namespace fouriershap
