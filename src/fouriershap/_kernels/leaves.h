// The leaves that rows reach in trees. The twin, leaves_numpy.py, documents every array.
// Included once per instruction set: only the structs are guarded.
#include <cstdint>

#ifndef FOURIERSHAP_LEAVES_ARGUMENTS
#define FOURIERSHAP_LEAVES_ARGUMENTS
namespace fouriershap {

template <class T>
struct PlainRows {
  const T* values;  // (n_rows, n_features)
  int64_t n_rows, n_features;
};

template <class T>
struct PlainTrees {
  const int32_t* roots;  // (n_trees,)
  int64_t n_trees;
  // By node.
  const int32_t* feature;
  const T* threshold;
  const int32_t *left, *right;
  const bool* missing_left;
  const int32_t* category_set;
  const int64_t *set_start, *set_categories;
};

}  // namespace fouriershap
#endif

namespace fouriershap {
namespace FS_LEVEL {

// out (n_rows, n_trees).
template <class T>
void find(const PlainRows<T>& rows, const PlainTrees<T>& trees, int32_t* out);

}  // namespace FS_LEVEL
}  // namespace fouriershap
