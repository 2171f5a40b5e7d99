"""Arithmetic of tree ensembles: sums, linear maps of outputs, other columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._trees.ensemble import LEAF, TreeEnsemble

_PER_NODE = ("feature", "threshold", "missing_left", "cover", "values")


def map_outputs(e: TreeEnsemble, matrix: ArrayLike, shift: ArrayLike = 0.0) -> TreeEnsemble:
    """Return an ensemble whose outputs are ``matrix @ outputs + shift``; matrix (n_new, n_outputs)."""
    weights = np.asarray(matrix, dtype=np.float64)
    base = weights @ e.base + np.asarray(shift, dtype=np.float64)
    if e.values.shape[1] > 1:
        values, output = e.values @ weights.T, np.full(e.n_trees, -1)
    elif (np.count_nonzero(weights, axis=0) <= 1).all():  # each output goes to one, and stays a number
        place = np.abs(weights).argmax(axis=0)
        factor = weights[place, np.arange(e.n_outputs)][e.tree_output]
        values, output = e.values * factor[e.tree_of_node, None], place[e.tree_output]
    else:
        values = e.values * weights.T[e.tree_output][e.tree_of_node]
        output = np.full(e.n_trees, -1)
    return e.replace(n_outputs=len(base), base=base, values=values, tree_output=output)


def one_output(e: TreeEnsemble, output: int) -> TreeEnsemble:
    """Return one of the outputs, by the trees that add to it."""
    matrix = np.zeros((1, e.n_outputs))
    matrix[0, output] = 1.0
    adding = (e.tree_output == output) | (e.tree_output < 0)
    kept = adding if adding.any() else np.arange(e.n_trees) == 0
    return map_outputs(e, matrix).select(kept)


def among_outputs(e: TreeEnsemble, first: int, n_outputs: int) -> TreeEnsemble:
    """Return the ensemble with its outputs placed from ``first`` on among ``n_outputs``; the others are 0."""
    matrix = np.zeros((n_outputs, e.n_outputs))
    matrix[first + np.arange(e.n_outputs), np.arange(e.n_outputs)] = 1.0
    return map_outputs(e, matrix)


def side_by_side(parts: Sequence[TreeEnsemble]) -> TreeEnsemble:
    """Return all outputs of all parts, in their order."""
    ends = np.cumsum([part.n_outputs for part in parts]).tolist()
    placed = zip(parts, ends, strict=True)
    return add([among_outputs(part, end - part.n_outputs, ends[-1]) for part, end in placed])


def scaled(e: TreeEnsemble, factor: float) -> TreeEnsemble:
    """Return the ensemble with every output times a number."""
    return e.replace(values=e.values * factor, base=e.base * factor)


def map_leaves(
    e: TreeEnsemble, function: Callable[[NDArray[np.float64]], NDArray[np.float64]]
) -> TreeEnsemble:
    """Return trees with other values (n_leaves, n_new) at leaves that hold vectors (n_leaves, n_outputs); base 0."""
    leaves = e.feature == LEAF
    found = np.asarray(function(e.values[leaves]), dtype=np.float64)
    values = np.zeros((e.n_nodes, found.shape[1]))
    values[leaves] = found
    output = np.full(e.n_trees, -1)
    return e.replace(
        n_outputs=found.shape[1], base=np.zeros(found.shape[1]), values=values, tree_output=output
    )


def map_columns(e: TreeEnsemble, columns: ArrayLike, n_features: int) -> TreeEnsemble:
    """Return the same trees on a wider row: their feature f is its column ``columns[f]``; columns may repeat."""
    place = np.append(np.asarray(columns, dtype=np.int64), LEAF)
    return e.replace(n_features=n_features, feature=np.where(e.feature == LEAF, LEAF, place[e.feature]))


def tested_features(e: TreeEnsemble) -> NDArray[np.bool_]:
    """Return (n_features,) whether some node tests the feature."""
    mask = np.zeros(e.n_features, dtype=bool)
    mask[e.feature[e.feature != LEAF]] = True
    return mask


def add(parts: Sequence[TreeEnsemble]) -> TreeEnsemble:
    """Return the sum of ensembles of the same features, outputs and dtype."""
    width = max(part.values.shape[1] for part in parts)
    parts = [part if part.values.shape[1] == width else _with_vectors(part) for part in parts]
    first_node = np.cumsum([0, *(part.n_nodes for part in parts)])
    first_set = np.cumsum([0, *(len(part.set_start) - 1 for part in parts)])
    first_category = np.cumsum([0, *(len(part.set_categories) for part in parts)])

    def moved(name: str, offsets: NDArray[Any]) -> NDArray[Any]:
        arrays = [getattr(part, name) for part in parts]
        return np.concatenate(
            [np.where(a < 0, a, a + start) for a, start in zip(arrays, offsets[:-1], strict=True)]
        )

    joined: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in _PER_NODE
    }
    joined |= {name: moved(name, first_node) for name in ("left", "right", "roots")}
    joined |= {"category_set": moved("category_set", first_set)}
    starts = [part.set_start[:-1] + first for part, first in zip(parts, first_category[:-1], strict=True)]
    return parts[0].replace(
        **joined,
        set_start=np.append(np.concatenate(starts), first_category[-1]),
        set_categories=np.concatenate([part.set_categories for part in parts]),
        tree_output=np.concatenate([part.tree_output for part in parts]),
        base=np.sum([part.base for part in parts], axis=0),
    )


def _with_vectors(e: TreeEnsemble) -> TreeEnsemble:
    values = e.values * np.eye(e.n_outputs)[e.tree_output][e.tree_of_node]
    return e.replace(values=values, tree_output=np.full(e.n_trees, -1))


def to_float64(e: TreeEnsemble) -> TreeEnsemble:
    """Return trees that decide the same on float64 rows: each threshold the least double that rounds up to it."""
    if e.dtype == np.float64:
        return e
    with np.errstate(over="ignore", invalid="ignore"):
        narrow = e.threshold.astype(np.float32)
        neighbour = np.nextafter(narrow, np.float32("-inf"))
        below = np.where(np.isneginf(neighbour), -(2.0**128), neighbour.astype(np.float64))
        top = np.where(np.isposinf(narrow), 2.0**128, narrow.astype(np.float64))
        middle = below / 2 + top / 2  # exact: neighbours in float32 have room between them in float64
        tie_counts = middle.astype(np.float32) >= narrow
    threshold = np.where(tie_counts, middle, np.nextafter(middle, np.inf))
    threshold = np.where(np.isneginf(narrow), -np.inf, threshold)
    return e.replace(dtype=np.dtype(np.float64), threshold=np.where(np.isnan(narrow), np.nan, threshold))
