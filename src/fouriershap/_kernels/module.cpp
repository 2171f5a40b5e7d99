// The extension module: one submodule per kernel family, and which instruction set was picked.
#include <cstdlib>

#include "binding.h"
#if defined(_WIN32) && defined(FS_HAS_AVX2)
#include <intrin.h>
#include <windows.h>
#endif

namespace fouriershap {

#ifdef FS_HAS_AVX2
static bool processor_has_avx2() {
#if defined(_WIN32)
  // clang-cl links no library that knows `__builtin_cpu_supports`. Windows says whether it saves the
  // registers.
  constexpr DWORD kAvx2 = 40;  // PF_AVX2_INSTRUCTIONS_AVAILABLE
  int basic[4], extended[4];
  __cpuid(basic, 1);
  __cpuidex(extended, 7, 0);
  const bool fma = basic[2] >> 12 & 1, bmi2 = extended[1] >> 8 & 1;
  return IsProcessorFeaturePresent(kAvx2) && fma && bmi2;
#else
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
#endif
}
#endif

bool has_avx2() {
#ifdef FS_HAS_AVX2
  static const bool yes = processor_has_avx2() && !std::getenv("FOURIERSHAP_BASELINE");
  return yes;
#else
  return false;
#endif
}

void bind_bits(nb::module_&);
void bind_build(nb::module_&);
void bind_encode(nb::module_&);
void bind_leaves(nb::module_&);
void bind_nodes(nb::module_&);
void bind_numbers(nb::module_&);
void bind_orders(nb::module_&);
void bind_products(nb::module_&);
void bind_stream(nb::module_&);
void bind_tables(nb::module_&);
void bind_tree_blocks(nb::module_&);
void bind_tree_tables(nb::module_&);
void bind_walk(nb::module_&);
void bind_waves(nb::module_&);

}  // namespace fouriershap

NB_MODULE(_native, m) {
  m.def("instruction_set", [] { return fouriershap::has_avx2() ? "avx2" : FS_BASELINE_NAME; });
  m.def("sanitized", [] { return static_cast<bool>(FS_SANITIZED); });  // built by `make test-sanitize`
  fouriershap::bind_bits(m);
  fouriershap::bind_build(m);
  fouriershap::bind_encode(m);
  fouriershap::bind_leaves(m);
  fouriershap::bind_nodes(m);
  fouriershap::bind_numbers(m);
  fouriershap::bind_orders(m);
  fouriershap::bind_products(m);
  fouriershap::bind_stream(m);
  fouriershap::bind_tables(m);
  fouriershap::bind_tree_blocks(m);
  fouriershap::bind_tree_tables(m);
  fouriershap::bind_walk(m);
  fouriershap::bind_waves(m);
}
