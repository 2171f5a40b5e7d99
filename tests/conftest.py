"""Which tests `make check` leaves out: those that need servers, browsers, clusters, other processes or long fits."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent
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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            path = item.path.relative_to(HERE).as_posix()
            if path.startswith(SLOW) and path not in QUICK:
                item.add_marker(pytest.mark.slow)
