"""Rows are looked up many blocks at a time: fewer calls, each with memory of its own, and the same numbers."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor

import fouriershap as fs
from fouriershap._shapley.tables import TableSet
from fouriershap._shapley.trees import engine


def explainer_of(n_features: int) -> tuple[fs.Explainer, NDArray[np.float64]]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, n_features))
    model = HistGradientBoostingRegressor(max_iter=5, max_depth=3, random_state=0).fit(X, X[:, 0] * X[:, 1])
    rows = np.tile(X, (-(-40_000 // len(X)), 1))[:40_000]
    return fs.TreeExplainer(model, X, strategy="tables"), rows


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows of each call that looks up."""
    found: list[int] = []
    add = TableSet.add

    def counted(self: TableSet, codes: object, out: NDArray[np.float64]) -> None:
        found.append(len(out))
        add(self, codes, out)

    monkeypatch.setattr(TableSet, "add", counted)
    return found


def test_one_thread_takes_many_blocks_at_once(sizes: list[int]) -> None:
    explainer, rows = explainer_of(5)
    explainer.shap_values(rows, n_jobs=1)
    assert sizes == [40_000]


def test_threads_share_the_blocks(sizes: list[int]) -> None:
    explainer, rows = explainer_of(5)
    explainer.shap_values(rows, n_jobs=2)
    assert len(sizes) == 5 and max(sizes) == 8192


def test_wide_rows_and_slow_tables_are_taken_block_by_block(
    sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    explainer, rows = explainer_of(5)
    monkeypatch.setattr(engine, "_CALL_BYTES", 3 * 8192 * rows[:1].nbytes)
    explainer.shap_values(rows, n_jobs=1)
    assert sizes == [3 * 8192, 40_000 - 3 * 8192]
    sizes.clear()
    monkeypatch.setattr(engine, "_LOOK_UP_SECONDS", 0.0)
    explainer.shap_values(rows, n_jobs=1)
    assert max(sizes) == 8192


def test_values_do_not_depend_on_the_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    explainer, rows = explainer_of(5)
    at_once = explainer.shap_values(rows, n_jobs=1)
    monkeypatch.setattr(engine, "_CALL_BYTES", 0)
    np.testing.assert_array_equal(explainer.shap_values(rows, n_jobs=1), at_once)
    np.testing.assert_array_equal(explainer.shap_values(rows, n_jobs=2), at_once)
