"""The `nodes` kernels in NumPy: what `nodes.cpp` must compute. Shapes and meanings are documented here."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]


def are_trees(roots: Ints, feature: Ints, left: Ints, right: Ints) -> bool:
    """Return whether nodes form trees that are stored one after the other, parents before their children.

    Every node but the roots has exactly one parent.

    Parameters
    ----------
    roots : (n_trees,) int32
    feature : (n_nodes,) int32
        Negative at leaves.
    left, right : (n_nodes,) int32
        Children, of any values and length; ignored at leaves.
    """
    n_nodes = len(feature)
    if not len(left) == len(right) == n_nodes:
        return False
    roots = roots.astype(np.int64)
    if len(roots) == 0 or roots[0] != 0 or roots[-1] >= n_nodes or not (np.diff(roots) > 0).all():
        return False
    inner = np.flatnonzero(feature >= 0)
    tree = np.repeat(np.arange(len(roots)), np.diff(np.append(roots, n_nodes)))
    n_parents = np.zeros(n_nodes, dtype=np.int64)
    n_parents[roots] = 1
    for children in (left[inner], right[inner]):
        if not ((children > inner) & (children < n_nodes)).all():
            return False
        if not (tree[children] == tree[inner]).all():
            return False
        n_parents += np.bincount(children, minlength=n_nodes)
    return bool((n_parents == 1).all())


def levels(
    feature: Ints,
    level: NDArray[Any],
    start: NDArray[np.int64],
    position: NDArray[np.int64],
    found: NDArray[Any],
) -> int:
    """Find the distinct levels of every feature, in order, and return their number.

    Parameters
    ----------
    feature, level : (n,) int32, (n,) float32 or float64
        Pairs in any order; features are >= 0, no level is NaN.
    start : (n_features + 1,) int64, written
        Where the levels of each feature begin in ``found``.
    position : (n,) int64, written
        Where the level of each pair is in ``found``.
    found : (n,) like level, written
        Levels feature by feature, sorted within each. What follows the last is left alone.
    """
    order = np.lexsort((level, feature))
    by_feature, by_level = feature[order], level[order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = (by_feature[1:] != by_feature[:-1]) | (by_level[1:] != by_level[:-1])
    position[order] = np.cumsum(new) - 1
    start[0] = 0
    np.cumsum(np.bincount(by_feature[new], minlength=len(start) - 1), out=start[1:])
    n_found = int(start[-1])
    found[:n_found] = by_level[new]
    return n_found


def pack(
    feature: Ints,
    cut: Ints,
    missing_left: NDArray[np.bool_],
    category_set: Ints,
    left: Ints,
    right: Ints,
    place: Ints,
    nodes: Ints,
) -> None:
    """Pack nodes as walks read them, on the features that some node tests.

    Parameters
    ----------
    feature, cut, missing_left, category_set, left, right : (n_nodes,)
        As in `CodedTrees`.
    place : (n_features,) int32, written
        The place of each feature among those that are tested, -1 where it is not.
    nodes : (n_nodes, 4) int32, written
        Twice the feature's place plus whether missing values go left (-1 at leaves); the cut, or ``-1 - set`` at
        categorical nodes; children.
    """
    tested = np.zeros(len(place), dtype=bool)
    tested[feature[feature >= 0]] = True
    place[:] = np.where(tested, np.cumsum(tested) - 1, -1)
    at = np.append(place, -1)[feature]  # the last for the -1 of leaves
    nodes[:, 0] = np.where(feature < 0, -1, 2 * at + missing_left)
    nodes[:, 1] = np.where(category_set < 0, cut, -1 - category_set)
    nodes[:, 2] = left
    nodes[:, 3] = right
