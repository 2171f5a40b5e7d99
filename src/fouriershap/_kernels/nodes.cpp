#include "nodes.h"

#include <algorithm>
#include <vector>

namespace fouriershap {

bool are_trees(const NodeArrays& nodes) {
  if (!nodes.n_trees || nodes.roots[0] != 0) return false;
  std::vector<uint8_t> has_parent(nodes.n_nodes, 0);
  for (int64_t k = 0; k < nodes.n_trees; ++k) {
    const int64_t first = nodes.roots[k];
    const int64_t last = k + 1 < nodes.n_trees ? nodes.roots[k + 1] : nodes.n_nodes;
    if (first < 0 || first >= last || last > nodes.n_nodes) return false;
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

template <class T>
int64_t levels(const int32_t* feature, const T* level, int64_t n, int64_t n_features, int64_t* start,
               int64_t* position, T* found) {
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
    const int64_t end = next[f];  // which has moved on to the beginning of the next
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

template int64_t levels(const int32_t*, const float*, int64_t, int64_t, int64_t*, int64_t*, float*);
template int64_t levels(const int32_t*, const double*, int64_t, int64_t, int64_t*, int64_t*, double*);

void pack(const Packed& packed) {
  std::fill(packed.place, packed.place + packed.n_features, -1);
  for (int64_t v = 0; v < packed.n_nodes; ++v)
    if (packed.feature[v] >= 0) packed.place[packed.feature[v]] = 0;
  int32_t n_tested = 0;
  for (int64_t f = 0; f < packed.n_features; ++f)
    if (!packed.place[f]) packed.place[f] = n_tested++;
  for (int64_t v = 0; v < packed.n_nodes; ++v) {
    const int32_t f = packed.feature[v], set = packed.category_set[v];
    int32_t* node = packed.nodes + 4 * v;
    node[0] = f < 0 ? -1 : 2 * packed.place[f] + (packed.missing_left[v] != 0);
    node[1] = set < 0 ? packed.cut[v] : -1 - set;
    node[2] = packed.left[v];
    node[3] = packed.right[v];
  }
}

}  // namespace fouriershap
