#include "encode.h"

#include "binding.h"

namespace fouriershap {

template <class T>
class BoundLevels : Owner, public Levels<T> {
 public:
  BoundLevels(Exactly<const T, 1> the_tiers, In<int64_t, 1> start, In<int64_t, 1> counts,
              In<bool, 1> is_categorical)
      : Levels<T>{keep(the_tiers), keep(start), keep(counts), keep(is_categorical)} {
    check_length("tier_start", this->tier_start.size, this->n_features());
    check_length("n_levels", this->n_levels.size, this->n_features());
    check_range("n_levels", this->n_levels, 0, INT32_MAX);
    for (int64_t f = 0; f < this->n_features(); ++f) {
      int64_t end = this->tier_start[f];  // of all tiers, each padded
      for (int64_t n = this->n_levels[f];; n = (n + kFan - 1) / kFan) {
        end += n ? (n + kFan - 1) / kFan * kFan : kFan;
        if (n <= kFan) break;
      }
      check_slice("tiers", this->tier_start[f], end, this->tiers.size);
    }
  }
};

// The type of the rows is that of the levels.
template <class T>
static bool encode_lines(const BoundLevels<T>& levels, Exactly<const T, 2> rows, In<int32_t, 1> column,
                         Out<uint8_t, 2> codes8, Out<uint16_t, 2> codes16) {
  check_length("rows.shape[1]", length(rows, 1), levels.n_features());
  check_length("column", length(column), levels.n_features());
  check_at_least("codes8.shape[1]", length(codes8, 1), length(rows));
  check_at_least("codes16.shape[1]", length(codes16, 1), length(rows));
  const Span<const int32_t> lines = view(column);
  for (int64_t f = 0; f < lines.size; ++f) {
    if (lines[f] == INT32_MAX) continue;
    const bool narrow = lines[f] >= 0;
    check(narrow ? lines[f] < length(codes8) : ~lines[f] < length(codes16),
          "`column` names a line that is not there.");
    check(levels.n_levels[f] + 2 <= (narrow ? 256 : 65536), "`column` has too few bits for its codes.");
  }
  return lines.size && encode<T>(levels, view(rows), {lines, view(codes8), view(codes16), {}});
}

template <class T>
static bool encode_all(const BoundLevels<T>& levels, Exactly<const T, 2> rows, Out<int32_t, 2> codes) {
  check_shape("rows", rows, {-1, levels.n_features()});
  check_length("codes", length(codes), levels.n_features());
  check_at_least("codes.shape[1]", length(codes, 1), length(rows));
  return encode<T>(levels, view(rows), {{}, {}, {}, view(codes)});
}

static void remap_lines(In<uint16_t, 2> codes16, int64_t n_rows, In<int32_t, 1> source, In<int64_t, 1> offset,
                        In<uint8_t, 1> lut, int64_t first_line, Out<uint8_t, 2> codes8) {
  check_range("source", view(source), 0, length(codes16));
  check_length("offset", length(offset), length(source));
  check_range("offset", view(offset), 0, length(lut) + 1);
  check_slice("lines", first_line, first_line + length(source), length(codes8));
  check_slice("rows", 0, n_rows, std::min(length(codes8, 1), length(codes16, 1)));
  const ByteRemap given = {view(source), view(offset), view(lut), first_line};
  for (int64_t p = 0; p < length(source); ++p)
    check_range("codes16", Span<const uint16_t>{view(codes16)[given.source[p]], n_rows}, 0,
                length(lut) - given.offset[p]);
  remap(given, view(codes16), n_rows, view(codes8));
}

template <class T>
static void bind_levels(nb::module_& m, const char* name) {
  def_maker<BoundLevels<T>, Exactly<const T, 1>, In<int64_t, 1>, In<int64_t, 1>, In<bool, 1>>(m, "Levels",
                                                                                              name);
  m.def("encode", &encode_lines<T>, FreeGil());
  m.def("encode32", &encode_all<T>, FreeGil());
}

void bind_encode(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("encode", "Raw values to codes.");
  bind_levels<float>(m, "_Levels32");
  bind_levels<double>(m, "_Levels64");
  m.def("remap", &remap_lines, FreeGil());
}

}  // namespace fouriershap
