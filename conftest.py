"""What tests share: those that `make check` leaves out, pages whose data are missing, figures that are closed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent / "tests"
# Tests that need servers, browsers, clusters, other processes or long fits.
SLOW = (
    "outer",  # the command line, integrations, serving, pages
    "benchmarks",
    "blackbox",  # but for the main file, below
    "kernels",
    "report",
    "shapley/test_jax.py",
    "shapley/test_tree_peers.py",
    "base/test_answer",
    "base/test_atomic.py",
    "base/test_fuzz.py",
    "fourier/test_sparse_failures.py",
    "fourier/test_sparse_recovery.py",
    "trees/test_readers",  # models of every library
    "trees/test_registry.py",
    "trees/test_model_check.py",
    "trees/test_casts.py",
    "rows/test_tree_input.py",
    "explainers/test_batches.py",
    "explainers/test_opening.py",
    "explainers/test_product_explainer.py",
    "explainers/test_tree_explainer.py",
)
QUICK = ("blackbox/test_blackbox.py",)


NEEDED = {"proteins.md": ("entacmaea.csv.gz", "avgfp.csv.gz")}  # files of data, by page


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark slow tests, and skip pages whose data files are missing, with the reason."""
    folder = Path(os.environ.get("FOURIERSHAP_DATA", ""))
    for item in items:
        if item.path.is_relative_to(TESTS):
            path = item.path.relative_to(TESTS).as_posix()
            if path.startswith(SLOW) and path not in QUICK:
                item.add_marker(pytest.mark.slow)
        missing = [name for name in NEEDED.get(item.path.name, ()) if not (folder / name).is_file()]
        if missing:
            reason = f"needs {', '.join(missing)} in the folder named by FOURIERSHAP_DATA"
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(autouse=True)
def machine_as_assumed() -> None:
    """Let no test learn from another, or from this machine's calibration, how quick strategies are."""
    speed = sys.modules.get("fouriershap._shapley.trees.speed")
    if speed is not None:
        speed.SPEED.start(speed.NEUTRAL)


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Close the figures that a page has drawn."""
    if item.path.suffix == ".md" and "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
