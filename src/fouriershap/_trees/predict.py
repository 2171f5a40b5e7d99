"""The raw output of a `TreeEnsemble`: all rows and all trees at once, level by level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from fouriershap._trees.ensemble import TreeEnsemble

_CELLS = 1 << 20  # (row, tree) pairs walked at a time: bounds the scratch memory to some tens of MB


def predict(ensemble: TreeEnsemble, rows: NDArray[Any]) -> NDArray[np.float64]:
    """Raw output (n_rows, n_outputs) of cleaned rows (n_rows, n_features)."""
    output = np.empty((len(rows), ensemble.n_outputs))
    step = max(1, _CELLS // ensemble.n_trees)
    keys, span = _category_keys(ensemble)
    for start in range(0, len(rows), step):
        block = rows[start : start + step]
        output[start : start + step] = _sum_leaves(ensemble, find_leaves(ensemble, block, keys, span))
    return output


def find_leaves(
    ensemble: TreeEnsemble, rows: NDArray[Any], keys: NDArray[np.int64], span: int
) -> NDArray[np.int32]:
    """The leaf (n_rows, n_trees) that each row reaches in each tree."""
    e = ensemble
    threshold = e.threshold.astype(e.dtype)
    leaves = np.broadcast_to(e.roots, (len(rows), e.n_trees)).copy()
    row, tree = np.nonzero(e.feature[leaves] >= 0)
    while len(row):
        node = leaves[row, tree]
        x = rows[row, e.feature[node]]
        left = ~(x >= threshold[node])
        categorical = e.category_set[node] >= 0
        if categorical.any():
            left[categorical] = _in_set(x[categorical], e.category_set[node[categorical]], keys, span)
        left = np.where(np.isnan(x), e.missing_left[node], left)
        node = np.where(left, e.left[node], e.right[node])
        leaves[row, tree] = node
        inner = e.feature[node] >= 0
        row, tree = row[inner], tree[inner]
    return leaves


def _category_keys(e: TreeEnsemble) -> tuple[NDArray[np.int64], int]:
    """Sorted keys ``set * span + category`` of all sets, and ``span``."""
    span = int(e.set_categories.max(initial=0)) + 1
    owner = np.repeat(np.arange(len(e.set_start) - 1), np.diff(e.set_start))
    return owner * span + e.set_categories, span


def _in_set(
    x: NDArray[Any], sets: NDArray[np.int32], keys: NDArray[np.int64], span: int
) -> NDArray[np.bool_]:
    whole = np.trunc(x)
    possible = (whole >= 0) & (whole < span)
    key = sets.astype(np.int64) * span + np.where(possible, whole, 0).astype(np.int64)
    position = np.searchsorted(keys, key)
    found = np.append(keys, -1)[position] == key
    result: NDArray[np.bool_] = possible & found
    return result


def _sum_leaves(e: TreeEnsemble, leaves: NDArray[np.int32]) -> NDArray[np.float64]:
    output = np.tile(e.base, (len(leaves), 1))
    for k in range(e.n_outputs):
        column = k if e.values.shape[1] > 1 else 0
        trees = (e.tree_output == k) | (e.tree_output < 0)
        output[:, k] += e.values[leaves[:, trees], column].sum(axis=1)
    return output
