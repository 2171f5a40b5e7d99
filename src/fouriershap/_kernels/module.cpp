// The extension module: one submodule per kernel family. It is built once for any processor (`_native`) and,
// on x86, once for those with AVX2 (`_native_avx2`), which refuses to be imported on others. This file itself
// is compiled for any processor.
#include "binding.h"
#if defined(FS_NEEDS_AVX2) && defined(_WIN32)
#include <intrin.h>
#include <windows.h>
#endif

namespace fouriershap {

#ifdef FS_NEEDS_AVX2
static bool processor_serves() {
#if defined(_WIN32)
  // clang-cl links no library with `__builtin_cpu_supports`. Windows tells whether it saves the registers.
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
#else
static bool processor_serves() { return true; }
#endif

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

NB_MODULE(FS_MODULE, m) {
  using namespace fouriershap;
  if (!processor_serves()) throw nb::import_error("this processor has no AVX2");
  nb::set_leak_warnings(false);  // models may still hold trees when the program ends
  m.attr("instruction_set") = FS_INSTRUCTION_SET;
  m.attr("sanitized") = static_cast<bool>(FS_SANITIZED);  // built by `make test-sanitize`
  for (const auto bind :
       {bind_bits, bind_build, bind_encode, bind_leaves, bind_nodes, bind_numbers, bind_orders, bind_products,
        bind_stream, bind_tables, bind_tree_blocks, bind_tree_tables, bind_walk, bind_waves})
    bind(m);
}
