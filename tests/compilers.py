"""Compile the kernels for processors and systems that are not at hand: ``make test-compilers``.

Zig, a package on PyPI, is a Clang with the headers of many systems. Nothing is linked or run: this only shows that the
kernels compile for Windows, macOS and ARM. Bindings need the headers of Python there, and are left out: instead,
a source takes the addresses of the functions that they bind.
"""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from os import cpu_count
from pathlib import Path
from tempfile import TemporaryDirectory

KERNELS = Path(__file__).parent.parent / "src" / "fouriershap" / "_kernels"
TARGETS = {
    "x86_64-linux-gnu": ("", "-march=x86_64_v3"),
    "x86_64-linux-musl": ("",),
    "aarch64-linux-gnu": ("",),
    "aarch64-macos": ("",),
    "x86_64-macos": ("-march=x86_64_v3",),
    "x86_64-windows-gnu": ("", "-march=x86_64_v3"),
}
# What a binding calls.
BOUND = {
    "bits": ("evaluate", "direct"),
    "build": ("spectrum_tables", "cover", "group"),
    "encode": ("encode<float>", "encode<double>", "remap"),
    "leaves": ("find<float>", "find<double>"),
    "nodes": ("are_trees", "levels<float>", "levels<double>", "pack"),
    "numbers": ("parse_lines",),
    "orders": ("interventional_orders",),
    "products": ("components<float>", "components<double>", "subset_sums", "games"),
    "stream": ("stream_values", "stream_mixed", "count_bottom_subtrees"),
    "tables": ("explain<float>", "explain<double>", "histogram"),
    "tree_blocks": ("cut_trees", "profile_trees"),
    "tree_tables": ("fill<float>", "fill<double>"),
    "walk": (
        "interventional",
        "path_dependent",
        "path_dependent_sets",
        "predict",
        "leaf_visits",
        "bit_chains<uint32_t>",
        "bit_chains<uint64_t>",
        "bit_coalitions<uint32_t>",
        "bit_coalitions<uint64_t>",
    ),
    "waves": ("train", "factors<float>", "factors<double>"),
}
OPTIONS = (
    "-std=c++20",
    "-O1",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-Wall",
    "-Wno-psabi",
)


def sources() -> dict[str, str]:
    """Return a source for each family, by its name."""
    found = {}
    for path in sorted(KERNELS.glob("*_numpy.py")):
        family = path.stem.removesuffix("_numpy")
        headers = ("walk_values.h", "walk_bits.h") if family == "walk" else (f"{family}.h",)
        uses = ", ".join(f"(const void*)&{function}" for function in BOUND[family])
        included = "".join(f'#include "{KERNELS / header}"\n' for header in headers)
        found[family] = f"{included}namespace fouriershap {{ const void* used[] = {{{uses}}}; }}\n"
    return found


def failure(target: str, option: str, source: str) -> str:
    """Return what the compiler says, empty where it succeeds."""
    with TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "ziglang",
            "c++",
            "-target",
            target,
            *OPTIONS,
            *filter(None, [option]),
        ]
        (Path(folder) / "kernel.cpp").write_text(source)
        command += ["-c", str(Path(folder) / "kernel.cpp"), "-o", str(Path(folder) / "kernel.o")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else ""


def main() -> int:
    """Return the number of kernels that do not compile somewhere."""
    cases = [(target, option) for target, options in TARGETS.items() for option in options]
    failed = 0
    with ThreadPoolExecutor(cpu_count()) as pool:
        for target, option in cases:
            said = list(pool.map(partial(failure, target, option), sources().values()))
            wrong = {family: text for family, text in zip(sources(), said, strict=True) if text}
            failed += len(wrong)
            print(f"{target} {option or 'baseline'}: {'FAILED' if wrong else 'compiles'}", flush=True)
            for name, text in wrong.items():
                print(f"{name}:\n{text[:2000]}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
