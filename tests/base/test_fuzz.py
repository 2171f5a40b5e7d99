"""Ten thousand mutated .fshap files: each is refused, or says exactly what the original says.

And lying ones, with valid checksums: each is refused, or can be used without a crash, a bare exception, a gigabyte.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from test_io import same_contents, small_spectrum, small_tables

import fouriershap as fs
from fitted_models import explain_fitted
from fouriershap._base import files
from models import CASES

N_MUTATIONS = 2600  # of each of the four kinds
N_CORRUPT = 600


def originals(folder: Path) -> dict[str, Path]:
    case = CASES["xgboost"]["frame"]()
    bits = np.random.default_rng(0).integers(0, 2, size=(20, 4))
    things: dict[str, Any] = {
        "spectrum": small_spectrum().prune(max_terms=2),
        "tables": small_tables(9000),
        "trees": fs.TreeExplainer(case.model, case.X, strategy="tables"),
        "black box": explain_fitted(lambda x: x[:, 0] * x[:, 1], bits),
    }
    for name, thing in things.items():
        thing.save(folder / f"{name}.fshap")
    return {name: folder / f"{name}.fshap" for name in things}


def mutate(rng: np.random.Generator, whole: bytes, other: bytes) -> bytes:
    """One to three changes, half of them in the header, where there is most to misread."""
    data = bytearray(whole)
    header = 8 + int.from_bytes(whole[:8], "little")
    for _ in range(rng.integers(1, 4)):
        end = len(data) if rng.random() < 0.5 else min(header, len(data))
        at = int(rng.integers(0, max(1, end)))
        length = int(rng.integers(1, 20))
        kind = rng.integers(8)
        if kind == 0:
            data[at] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            data[at : at + length] = rng.bytes(length)
        elif kind == 2:
            del data[at : at + length]
        elif kind == 3:
            data[at:at] = rng.bytes(length)
        elif kind == 4:
            del data[max(at, 1) :]
        elif kind == 5:
            data[at : at + length] = data[at : at + length][::-1]
        elif kind == 6:  # a digit, so that shapes and offsets stay numbers
            digits = [i for i in range(8, min(header, len(data))) if 48 <= data[i] < 58]
            if digits:
                data[digits[int(rng.integers(len(digits)))]] = 48 + int(rng.integers(10))
        else:
            data[at : at + length] = other[at : at + length]
        if not data:
            return bytes(data)
    return bytes(data)


@pytest.mark.parametrize("kind", ["spectrum", "tables", "trees", "black box"])
def test_mutated_files(tmp_path: Path, kind: str) -> None:
    paths = originals(tmp_path)
    whole, contents = paths[kind].read_bytes(), files.read(paths[kind])
    others = [path.read_bytes() for name, path in paths.items() if name != kind]
    rng = np.random.default_rng(abs(hash_of(kind)))
    path = tmp_path / "mutated.fshap"
    refused = 0
    for number in range(N_MUTATIONS):
        changed = mutate(rng, whole, others[number % 3])
        path.unlink(missing_ok=True)  # a new file: an old one may still be mapped
        path.write_bytes(changed)
        try:
            fs.load(path)
        except fs.FileFormatError:
            refused += 1
            continue
        assert same_contents(files.read(path), contents), f"mutation {number} changed what is read"
        with safe_open(path, framework="numpy"):  # the library of the format takes it, too
            pass
    assert refused > 0.8 * N_MUTATIONS


def hash_of(kind: str) -> int:
    return sum(kind.encode())


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory")
def test_corrupt_files() -> None:
    """In processes of their own: see `corrupt_files`, which tries any number of them."""
    command = [sys.executable, "corrupt_files.py", "0", str(N_CORRUPT)]
    done = subprocess.run(
        command, cwd=Path(__file__).parents[1], capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    *faults, summary = done.stdout.splitlines()
    assert summary.endswith(" 0 faults"), "\n".join(faults[:40])
    refused, loaded = (int(word) for word in re.findall(r"\d+", summary)[:2])
    assert refused + loaded == N_CORRUPT and refused > 0.5 * N_CORRUPT and loaded > 0.05 * N_CORRUPT
