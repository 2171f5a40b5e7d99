// Trees without tables: SHAP values by walking the trees. The twin is walk_numpy.py.
// Included once per instruction set: only the structs are guarded.
#include <cstdint>

#ifndef FOURIERSHAP_WALK_ARRAYS
#define FOURIERSHAP_WALK_ARRAYS
namespace fouriershap {

// An ensemble on codes. "Feature" means a position in `features`: only the features that some node tests.
struct WalkTrees {
  // (n_nodes, 4): 2 * feature + missing_left, or -1 at a leaf; the cut, or -1 - set at a categorical node;
  // the left child; the right child.
  const int32_t* nodes;
  const double* values;  // (n_nodes, width)
  int64_t width;
  const int32_t* roots;         // (n_trees,)
  const int32_t* tree_output;   // (n_trees,) the output that a tree adds to, -1 for all
  const int32_t* tree_players;  // (n_trees,) most distinct players on a path
  const int32_t* tree_depth;    // (n_trees,) most edges on a path
  int64_t n_trees;
  const int32_t* features;     // (n_features,) row of the code matrix
  const int32_t* n_codes;      // (n_features,) the last code is the missing value
  const int32_t* players;      // (n_features,) who owns the feature
  const uint8_t* categorical;  // (n_features,)
  int64_t n_features;
  const uint64_t* set_bits;  // (n_sets, set_words)
  int64_t set_words;
  int64_t n_nodes;
};

// Columns [first, last) of a code matrix (all features, stride).
struct WalkRows {
  const int32_t* codes;
  int64_t stride, first, last;
};

// moments: (side, side) integral of t^p (1-t)^q by p and q, up to the most players on a path.
struct WalkMoments {
  const double* moments;
  int64_t side;
};

// Pairs of players that are wanted: (n_players, n_players) their column of the output, -1 for none.
struct WalkPairs {
  const int32_t* column;
  int64_t n_players;
};

// Path-dependent values. ratio: (n_nodes,) cover of a node over its parent's. Tree t integrates over
// n_points[t] (a multiple of 4) points in (0, 1), which start at point_start[t].
struct WalkPaths {
  const double* ratio;
  const int32_t* n_points;
  const int64_t* point_start;
  const double *points, *weights;
};

// (rows, n_columns, n_outputs), added to; its row 0 is row 0 of the code matrix. A column is a player or a
// pair.
struct WalkValues {
  double* out;
  int64_t n_columns, n_outputs;
};

}  // namespace fouriershap
#endif

namespace fouriershap {
namespace FS_LEVEL {

// All return false where there is no memory.

// Sum over the background of weight * SHAP value.
// `joint` walks a tree once for a block of rows and a chunk of the background; `rows` once per row.
bool interventional_joint(const WalkTrees& trees, const WalkRows& rows, const WalkRows& background,
                          const double* weights, const WalkMoments& moments, const WalkValues& values);
bool interventional_rows(const WalkTrees& trees, const WalkRows& rows, const WalkRows& background,
                         const double* weights, const WalkMoments& moments, const WalkValues& values);

bool path_dependent(const WalkTrees& trees, const WalkPaths& paths, const WalkRows& rows,
                    const WalkValues& values);

// The same for interactions of pairs.
bool interventional_pairs(const WalkTrees& trees, const WalkRows& rows, const WalkRows& background,
                          const double* weights, const WalkMoments& moments, const WalkPairs& pairs,
                          const WalkValues& values);
bool path_dependent_pairs(const WalkTrees& trees, const WalkPaths& paths, const WalkRows& rows,
                          const WalkPairs& pairs, const WalkValues& values);

// out: (rows, n_outputs) += values of the leaves reached.
bool predict(const WalkTrees& trees, const WalkRows& rows, int64_t n_outputs, double* out);

// out: (n_trees,) = leaves that the hybrids of row i and background row i reach, mean over i.
bool leaf_visits(const WalkTrees& trees, const WalkRows& rows, const WalkRows& background, int64_t n_players,
                 double* out);

// players, depth: (n_trees,) = what tree_players and tree_depth hold (and are not read here).
bool path_shape(const WalkTrees& trees, int64_t n_players, int32_t* players, int32_t* depth);

}  // namespace FS_LEVEL
}  // namespace fouriershap
