"""Wide codes on pages of bytes: the same SHAP values, whatever the number of thresholds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor

import fouriershap as fs
from fouriershap._trees.codes import count_lines, turn_pages


def forest() -> tuple[Any, np.ndarray]:
    """Many thresholds over all trees, few in each."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 4)).astype(np.float32)
    X[rng.random(X.shape) < 0.05] = np.nan
    y = np.nan_to_num(X[:, 0] * X[:, 1]) + rng.normal(size=2000)
    return RandomForestRegressor(60, max_depth=6, random_state=0).fit(X, y), X


def staircase() -> tuple[Any, np.ndarray]:
    """More thresholds on one feature in one tree than a byte can tell apart."""
    X = np.linspace(0, 1, 700, dtype=np.float32)[:, None] * np.array([1, 0], dtype=np.float32)
    return DecisionTreeRegressor(random_state=0).fit(X, np.random.default_rng(0).normal(size=700)), X


@pytest.mark.parametrize(("make", "paged"), [(forest, True), (staircase, False)])
def test_tables_equal_the_walk(make: Any, paged: bool, tmp_path: Path) -> None:
    model, X = make()
    tables = fs.TreeExplainer(model, X[:300], precision="double", strategy="tables")
    columns = tables.engine.compiled.columns
    assert (columns.column < 0).any()
    assert (columns.pages is not None) == paged
    walk = fs.TreeExplainer(model, X[:300], strategy="walk")
    rows = np.concatenate([X[300:380], np.full((1, X.shape[1]), np.nan, np.float32)])
    expected = walk.shap_values(rows)
    np.testing.assert_allclose(tables.shap_values(rows), expected, atol=1e-12 * np.abs(expected).max())
    tables.save(tmp_path / "paged.fshap")
    np.testing.assert_array_equal(
        fs.load(tmp_path / "paged.fshap").shap_values(rows), tables.shap_values(rows)
    )


def test_pages_keep_every_cut() -> None:
    """A code is beyond a cut exactly if its byte is beyond the cut's byte."""
    rng = np.random.default_rng(1)
    n_codes = np.array([5000, 100, 3000], dtype=np.int32)
    column = np.array([~0, 0, ~1], dtype=np.int32)
    feature = rng.integers(0, 3, size=4000).astype(np.int32)
    at = rng.integers(1, n_codes[feature]).astype(np.uint16)
    tree = np.sort(rng.integers(0, 40, size=4000)).astype(np.int32)
    turned = turn_pages(feature, at, tree, column, n_codes)
    assert turned is not None
    pages, new_column, new_at = turned
    narrow, _ = count_lines(column)
    for c in range(len(feature)):
        codes = np.arange(n_codes[feature[c]])
        if column[feature[c]] >= 0:
            assert (new_column[c], new_at[c]) == (column[feature[c]], at[c])
            continue
        page = new_column[c] - narrow
        assert pages.source[page] == ~column[feature[c]]
        bytes_ = pages.lut[pages.offset[page] + codes]
        np.testing.assert_array_equal(bytes_ >= new_at[c], codes >= at[c])
