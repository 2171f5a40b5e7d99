"""Kernels raise MemoryError where there is no memory, and the process lives on."""

from __future__ import annotations

import subprocess
import sys

import pytest

import out_of_memory
from fouriershap import _kernels as kernels
from reference_kernels import functions

native = pytest.importorskip("fouriershap._kernels._native", reason="built without a compiler")


def test_every_kernel_is_tried() -> None:
    every = {f"{family}.{name}" for family in kernels.FAMILIES for name in functions(getattr(native, family))}
    assert every == set(out_of_memory.ARGUMENTS) | out_of_memory.WITHOUT_SCRATCH


@pytest.mark.skipif(sys.platform != "linux", reason="memory limits are not enforced")
@pytest.mark.skipif(native.sanitized, reason="the sanitizers take terabytes of addresses")
@pytest.mark.parametrize("name", sorted(out_of_memory.ARGUMENTS))
def test_memory_error(name: str) -> None:
    program = [sys.executable, str(out_of_memory.__file__), name]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "MemoryError\n"), done.stderr
