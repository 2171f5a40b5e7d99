#include "binding.h"

#define FS_LEVEL baseline
#include "stream.h"
#undef FS_LEVEL
#define FS_LEVEL avx2
#include "stream.h"
#undef FS_LEVEL
#include "walk_binding.h"

namespace fouriershap {

static void interventional(FS_TREES, In<int32_t, 2> codes, int64_t first_row, int64_t last_row,
                           In<int32_t, 2> background, In<double, 1> weights, In<double, 1> nodes_of_index,
                           In<int64_t, 1> nodes_start, In<double, 2> moments, bool efficient,
                           int32_t dense_bits, int32_t class_bits, int32_t merged_nodes, bool single,
                           Out<double, 3> out) {
  const StreamIndex index = {nodes_of_index.data(), nodes_start.data(), given(moments), efficient};
  require(FS_PICK(stream_values)(FS_TREES_GIVEN, columns(codes, first_row, last_row),
                                 columns(background, 0, length(weights)), weights.data(), index,
                                 {dense_bits, class_bits, merged_nodes}, single, given(out)));
}

static void count_twigs(FS_TREES, int64_t n_players, Out<int64_t, 2> counts) {
  require(FS_PICK(count_twigs)(FS_TREES_GIVEN, n_players, length(counts, 1), counts.data()));
}

void bind_stream(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("stream", "SHAP values of deep trees, a twig at a time.");
  m.def("interventional", &interventional, FreeGil());
  m.def("count_twigs", &count_twigs, FreeGil());
}

}  // namespace fouriershap
