"""From single trees, as libraries store them, to the arrays of a `TreeEnsemble`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap.trees._ensemble import LEAF


@dataclass
class Tree:
    """One tree, node 0 its root, nodes otherwise in any order.

    Everything is as in `TreeEnsemble`: thresholds are canonical (``x >= threshold`` goes right), ``left`` and
    ``right`` are -1 at leaves, ``categories`` maps a categorical node to the categories that go left.
    """

    feature: NDArray[Any]
    threshold: NDArray[Any]
    left: NDArray[Any]
    right: NDArray[Any]
    missing_left: NDArray[Any]
    cover: NDArray[Any]
    values: NDArray[Any]
    categories: dict[int, NDArray[np.int64]] = field(default_factory=dict)


def leaf(value: ArrayLike, cover: float) -> Tree:
    """A tree that is one leaf with ``value`` (width,)."""
    none = np.array([LEAF])
    values = np.atleast_2d(np.asarray(value, dtype=np.float64))
    return Tree(none, np.zeros(1), none, none, np.zeros(1, dtype=bool), np.array([cover]), values)


def join(trees: Sequence[Tree], width: int = 1) -> dict[str, Any]:
    """The arrays of a `TreeEnsemble` that describe its nodes, for trees whose leaves hold ``width`` values.

    Nodes are numbered breadth first, so that children come after their parent; nodes that no row reaches
    (XGBoost keeps pruned ones) are left out. A model without trees becomes one leaf of zeros.
    """
    trees = trees or [leaf(np.zeros(width), 1.0)]
    parts: dict[str, list[NDArray[Any]]] = {
        name: [] for name in ("feature", "threshold", "left", "right", "missing_left", "cover", "values")
    }
    sets: list[NDArray[np.int64]] = []
    set_of_node, roots, start = [], [], 0
    for tree in trees:
        order = _breadth_first(tree)
        is_leaf = tree.left[order] < 0
        number = np.full(len(tree.left), LEAF)
        number[order] = np.arange(start, start + len(order))
        for side in ("left", "right"):
            child = getattr(tree, side)[order]
            parts[side].append(np.where(is_leaf, LEAF, number[child]))
        parts["feature"].append(np.where(is_leaf, LEAF, tree.feature[order]))
        parts["threshold"].append(np.where(is_leaf, 0.0, tree.threshold[order]))
        parts["missing_left"].append(~is_leaf & (tree.missing_left[order] != 0))
        parts["cover"].append(tree.cover[order])
        values = np.asarray(tree.values, dtype=np.float64).reshape(len(tree.left), width)[order]
        parts["values"].append(np.where(is_leaf[:, None], values, 0.0))
        set_index = np.full(len(order), -1)
        for node in sorted(tree.categories):
            if number[node] >= 0:
                set_index[number[node] - start] = len(sets)
                sets.append(np.unique(tree.categories[node]))
        set_of_node.append(set_index)
        roots.append(start)
        start += len(order)
    arrays = {name: np.concatenate(part) for name, part in parts.items()}
    return arrays | {
        "roots": np.array(roots),
        "category_set": np.concatenate(set_of_node),
        "set_start": np.concatenate([[0], np.cumsum([len(s) for s in sets])]),
        "set_categories": np.concatenate([np.empty(0, dtype=np.int64), *sets]),
    }


def _breadth_first(tree: Tree) -> NDArray[np.intp]:
    levels = []
    level = np.zeros(1, dtype=np.intp)
    while len(level):
        levels.append(level)
        inner = level[tree.left[level] >= 0]
        level = np.stack([tree.left[inner], tree.right[inner]], axis=1).ravel().astype(np.intp)
    return np.concatenate(levels)


def right_above(threshold: NDArray[Any], dtype: type[np.floating[Any]]) -> NDArray[np.float64]:
    """Canonical thresholds for splits in which ``x <= threshold`` goes left and x is of ``dtype``.

    The least number of ``dtype`` above the threshold; NaN (every number goes left) where that is +inf itself.
    """
    exact = np.asarray(threshold, dtype=np.float64)
    infinity = dtype("inf")
    with np.errstate(over="ignore"):
        rounded = exact.astype(dtype)
        down = np.where(rounded > exact, np.nextafter(rounded, -infinity), rounded)
        above = np.nextafter(down, infinity).astype(np.float64)
    return np.where(exact == np.inf, np.nan, above)


def bits_of(words: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Positions of the set bits in a bitset of 32-bit words."""
    bits = np.unpackbits(np.ascontiguousarray(words, dtype="<u4").view(np.uint8), bitorder="little")
    return np.flatnonzero(bits)
