"""What every reader is held to: rows that sit on and beside thresholds, and the shape of the arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from fouriershap._libraries import Reading
from models import raw_output, rows_of

FINITE = [0.0, -0.0, 1e-36, -1e-36, 1e-35, -1e-35, 1.5, -3.0, 1e30, -1e30]
EXTREME = [np.inf, -np.inf, 1e300, -1e300]


def values_beside_thresholds(reading: Reading, feature: int) -> list[float]:
    """Thresholds of a feature, their neighbours in float64 and in the ensemble's dtype, and round numbers."""
    ensemble = reading.trees
    thresholds = np.unique(ensemble.threshold[ensemble.feature == feature])
    thresholds = thresholds[np.isfinite(thresholds)]
    narrow = thresholds.astype(ensemble.dtype)
    around = [thresholds, np.round(thresholds, 1)]
    for infinity in (np.inf, -np.inf):
        around += [np.nextafter(thresholds, infinity), np.nextafter(narrow, ensemble.dtype.type(infinity))]
    return np.concatenate(around).astype(np.float64).tolist() + FINITE


def rows(pools: list[list[Any]], like: Any) -> st.SearchStrategy[Any]:
    """Arrays or frames, as ``like``, of up to 40 rows with values from one pool per feature."""
    row = st.tuples(*(st.sampled_from(pool) for pool in pools))
    return st.lists(row, min_size=1, max_size=40).map(lambda drawn: _as(drawn, like))


def _as(drawn: list[tuple[Any, ...]], like: Any) -> Any:
    if not isinstance(like, pd.DataFrame):
        return np.array(drawn, dtype=np.float64)
    columns = zip(*drawn, strict=True)
    return pd.DataFrame(
        {
            name: pd.Series(list(c), dtype=like[name].dtype)
            for name, c in zip(like.columns, columns, strict=True)
        }
    )


def assert_same_output(model: Any, reading: Reading, X: Any, rtol: float) -> None:
    expected = raw_output(model, X)
    e = reading.trees
    assert reading.n_outputs == expected.shape[1]
    scale = np.abs(e.values).max() + np.abs(e.base).max()
    output = e.predict(reading.rules.clean(rows_of(reading, X)))
    np.testing.assert_allclose(output, expected, rtol=rtol, atol=rtol * scale)


def assert_well_formed(reading: Reading, exact_cover: bool = True) -> None:
    """Each node has one parent, each category set belongs to one feature, and covers add up."""
    e = reading.trees
    inner = np.flatnonzero(e.feature >= 0)
    children = np.concatenate([e.left[inner], e.right[inner], e.roots])
    assert np.array_equal(np.sort(children), np.arange(e.n_nodes))
    assert (e.left[e.feature < 0] == -1).all() and (e.right[e.feature < 0] == -1).all()
    assert (e.values[inner] == 0).all()
    owners = {(int(s), int(f)) for s, f in zip(e.category_set, e.feature, strict=True) if s >= 0}
    assert sorted(s for s, _ in owners) == list(range(len(e.set_start) - 1))
    for start, end in zip(e.set_start, e.set_start[1:], strict=False):
        assert (np.diff(e.set_categories[start:end]) > 0).all()
    assert (e.set_categories >= 0).all()
    if exact_cover:
        np.testing.assert_allclose(
            e.cover[inner], e.cover[e.left[inner]] + e.cover[e.right[inner]], rtol=1e-5
        )


def rows_reaching(reading: Reading, rows: np.ndarray) -> np.ndarray:
    """The number of rows that reach each node, walked one node at a time."""
    e = reading.trees
    rows = reading.rules.clean(rows)
    reached = np.zeros((e.n_nodes, len(rows)), dtype=bool)
    reached[e.roots] = True
    for v in np.flatnonzero(e.feature >= 0):
        x = rows[:, e.feature[v]]
        if e.category_set[v] >= 0:
            s = e.category_set[v]
            left = np.isin(np.trunc(x), e.set_categories[e.set_start[s] : e.set_start[s + 1]])
        else:
            left = ~(x >= e.threshold[v])
        left = np.where(np.isnan(x), e.missing_left[v], left)
        reached[e.left[v]] = reached[v] & left
        reached[e.right[v]] = reached[v] & ~left
    return reached.sum(axis=1)


def expected_value_by_cover(reading: Reading) -> np.ndarray:
    """Base plus the cover-weighted mean of each tree's leaves: where path-dependent SHAP values start."""
    e = reading.trees
    value = e.base.copy()
    for tree in range(e.n_trees):
        nodes = np.flatnonzero(e.tree_of_node == tree)
        leaves = nodes[e.feature[nodes] < 0]
        mean = e.cover[leaves] @ e.values[leaves] / e.cover[leaves].sum()
        if e.tree_output[tree] < 0:
            value += mean
        else:
            value[e.tree_output[tree]] += mean[0]
    return value
