#include "binding.h"

#define FS_LEVEL baseline
#include "encode.h"
#undef FS_LEVEL
#define FS_LEVEL avx2
#include "encode.h"
#undef FS_LEVEL

namespace fouriershap {

// The type of the rows is that of the levels.
template <class T>
static bool encode(Exactly<const T, 2> rows, Exactly<const T, 1> tiers, In<int64_t, 1> tier_start,
                   In<int64_t, 1> n_levels, In<bool, 1> categorical, In<int32_t, 1> column,
                   Out<uint8_t, 2> codes8, Out<uint16_t, 2> codes16) {
  return FS_PICK(encode<T>)({rows.data(), length(rows), length(rows, 1)},
                            {tiers.data(), tier_start.data(), n_levels.data(), categorical.data()},
                            {column.data(), codes8.data(), codes16.data(), nullptr, length(codes8, 1)});
}

template <class T>
static bool encode32(Exactly<const T, 2> rows, Exactly<const T, 1> tiers, In<int64_t, 1> tier_start,
                     In<int64_t, 1> n_levels, In<bool, 1> categorical, Out<int32_t, 2> codes) {
  return FS_PICK(encode<T>)({rows.data(), length(rows), length(rows, 1)},
                            {tiers.data(), tier_start.data(), n_levels.data(), categorical.data()},
                            {nullptr, nullptr, nullptr, codes.data(), length(codes, 1)});
}

static void pages(In<uint16_t, 2> codes16, int64_t n_rows, In<int32_t, 1> source, In<int64_t, 1> offset,
                  In<uint8_t, 1> lut, int64_t first_line, Out<uint8_t, 2> codes8) {
  FS_PICK(pages)({codes16.data(), length(codes16, 1), n_rows, source.data(), offset.data(), length(source),
                  lut.data(), first_line, codes8.data()});
}

void bind_encode(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("encode", "Raw values to codes.");
  m.def("encode", &encode<float>, FreeGil());
  m.def("encode", &encode<double>, FreeGil());
  m.def("encode32", &encode32<float>, FreeGil());
  m.def("encode32", &encode32<double>, FreeGil());
  m.def("pages", &pages, FreeGil());
}

}  // namespace fouriershap
