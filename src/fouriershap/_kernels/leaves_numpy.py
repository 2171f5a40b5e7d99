"""The `leaves` kernel in NumPy: what `leaves.cpp` must compute. Shapes and meanings are documented here."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Trees(NamedTuple):
    """An ensemble on plain numbers.

    Attributes
    ----------
    roots : (n_trees,) int32
    feature : (n_nodes,) int32
        -1 at a leaf.
    threshold : (n_nodes,) float32 or float64
        A number goes right iff it is at least this; NaN sends every number left.
    left, right : (n_nodes,) int32
        Children, after their parent.
    missing_left : (n_nodes,) bool
        Where NaN goes.
    category_set : (n_nodes,) int32
        -1 at numerical nodes, else the set whose categories go left; numbers are cut to integers first.
    set_start, set_categories : (n_sets + 1,), (n,) int64
        Categories that are at least 0, sorted within a set.
    """

    roots: NDArray[np.int32]
    feature: NDArray[np.int32]
    threshold: NDArray[Any]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    missing_left: NDArray[np.bool_]
    category_set: NDArray[np.int32]
    set_start: NDArray[np.int64]
    set_categories: NDArray[np.int64]


def find(trees: Trees, rows: NDArray[Any], out: NDArray[np.int32]) -> None:
    """Find the leaf that each row reaches in each tree.

    Parameters
    ----------
    rows : (n_rows, n_features), of the type of the thresholds
    out : (n_rows, n_trees) int32, written
    """
    roots, feature, threshold, left, right, missing_left, category_set, set_start, set_categories = trees
    span = int(set_categories.max(initial=0)) + 1
    owner = np.repeat(np.arange(len(set_start) - 1), np.diff(set_start))
    keys = np.append(owner * span + set_categories, -1)
    out[:] = roots
    row, tree = np.nonzero(feature[out] >= 0)
    while len(row):
        node = out[row, tree]
        x = rows[row, feature[node]]
        goes_left = ~(x >= threshold[node])
        some = category_set[node] >= 0
        if some.any():
            goes_left[some] = _in_set(x[some], category_set[node[some]], keys, span)
        goes_left = np.where(np.isnan(x), missing_left[node], goes_left)
        node = np.where(goes_left, left[node], right[node])
        out[row, tree] = node
        inner = feature[node] >= 0
        row, tree = row[inner], tree[inner]


def _in_set(
    x: NDArray[Any], sets: NDArray[np.int32], keys: NDArray[np.int64], span: int
) -> NDArray[np.bool_]:
    """Return whether numbers are in their sets; ``keys``: set * span + category, in order, and a -1."""
    whole = np.trunc(x)
    possible = (whole >= 0) & (whole < span)
    key = sets.astype(np.int64) * span + np.where(possible, whole, 0).astype(np.int64)
    found = keys[np.searchsorted(keys[:-1], key)] == key
    return np.asarray(possible & found)
