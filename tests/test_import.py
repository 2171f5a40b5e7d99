"""`import fouriershap` is quick, and brings nothing along that the user did not ask for."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

PROGRAM = """
import json, sys, time
begin = time.process_time()  # not the clock on the wall: other processes may be running
import fouriershap
print(json.dumps([time.process_time() - begin, sorted(sys.modules)]))
"""
HEAVY = {"shap", "pandas", "polars", "pyarrow", "sklearn", "jax", "scipy", "treelite", "matplotlib"}
HEAVY |= {"xgboost", "lightgbm", "catboost", "safetensors", "narwhals"}


def import_once() -> tuple[float, set[str]]:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    seconds, modules = json.loads(done.stdout)
    return seconds, set(modules)


def test_the_import_is_light_and_quick() -> None:
    runs = [import_once() for _ in range(5)]
    assert not runs[0][1] & HEAVY
    assert "fouriershap._kernels._native" not in runs[0][1]
    assert min(seconds for seconds, _ in runs) < 0.3


@pytest.mark.parametrize(
    "name", ["BlackBoxExplainer", "Spectrum", "TreeExplainer", "spectra", "tree_spectrum"]
)
def test_any_name_can_be_the_first(name: str) -> None:
    """Modules that import one another must do so in every order."""
    subprocess.run([sys.executable, "-c", f"import fouriershap; fouriershap.{name}"], check=True)
