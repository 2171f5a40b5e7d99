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
    "report/test_report_browser.py",
    "report/test_report_parts.py",
    "shapley/test_jax.py",
    "base/test_answers.py",
    "base/test_answer_files.py",
    "base/test_answers_killed.py",
    "base/test_atomic.py",
    "base/test_fuzz.py",
    "fourier/test_sparse_failures.py",
    "fourier/test_sparse_recovery.py",
    "trees/test_readers_formats.py",
    "trees/test_readers_spark.py",
    "trees/test_registry.py",
    "explainers/test_batches.py",
    "explainers/test_tree_explainer.py",
)
QUICK = ("blackbox/test_blackbox.py",)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            path = item.path.relative_to(HERE).as_posix()
            if path.startswith(SLOW) and path not in QUICK:
                item.add_marker(pytest.mark.slow)
