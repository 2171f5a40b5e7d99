"""Compile the kernels for processors and systems that are not at hand: ``make test-compilers``.

Zig, a package on PyPI, is a Clang with the headers of many systems. Nothing is linked or run: this only shows that the
kernels compile for Windows, macOS and ARM. Bindings need the headers of Python there, and are left out.
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
OPTIONS = (
    "-std=c++20",
    "-O1",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-Wall",
    "-Wno-psabi",
)


def sources() -> list[Path]:
    """Return the kernels, without their bindings."""
    return sorted(path for path in KERNELS.glob("*.cpp") if not path.stem.endswith("module"))


def failure(target: str, option: str, source: Path) -> str:
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
        command += ["-c", str(source), "-o", str(Path(folder) / "kernel.o")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else ""


def main() -> int:
    """Return the number of kernels that do not compile somewhere."""
    cases = [(target, option) for target, options in TARGETS.items() for option in options]
    failed = 0
    with ThreadPoolExecutor(cpu_count()) as pool:
        for target, option in cases:
            said = list(pool.map(partial(failure, target, option), sources()))
            wrong = {source.name: text for source, text in zip(sources(), said, strict=True) if text}
            failed += len(wrong)
            print(f"{target} {option or 'baseline'}: {'FAILED' if wrong else 'compiles'}", flush=True)
            for name, text in wrong.items():
                print(f"{name}:\n{text[:2000]}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
