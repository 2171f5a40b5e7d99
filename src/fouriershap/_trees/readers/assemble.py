"""From single trees, as libraries store them, to the arrays of a `TreeEnsemble`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.errors import InputError
from fouriershap._trees.ensemble import LEAF


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

    Nodes keep their order where children come after their parent, else they are numbered breadth first;
    nodes that no row reaches (XGBoost keeps pruned ones) are left out. A model without trees becomes one leaf
    of zeros.
    """
    trees = trees or [leaf(np.zeros(width), 1.0)]
    sizes = np.array([len(tree.left) for tree in trees])
    start = np.cumsum(sizes) - sizes
    offset = np.repeat(start, sizes)
    left, right = (
        np.concatenate([getattr(t, side) for t in trees]).astype(np.int64) for side in ("left", "right")
    )
    is_leaf = left < 0
    left, right = np.where(is_leaf, LEAF, left + offset), np.where(is_leaf, LEAF, right + offset)
    set_of_node, set_start, set_categories = _category_sets(trees, start, len(left))
    values = np.concatenate([t.values.reshape(-1, width) for t in trees])
    arrays = {
        "feature": np.where(is_leaf, LEAF, np.concatenate([t.feature for t in trees])),
        "threshold": np.where(is_leaf, 0.0, np.concatenate([t.threshold for t in trees])),
        "left": left,
        "right": right,
        "missing_left": ~is_leaf & (np.concatenate([t.missing_left for t in trees]) != 0),
        "cover": np.concatenate([t.cover for t in trees]),
        "values": np.where(is_leaf[:, None], values, 0.0),
        "category_set": set_of_node,
        "roots": start,
    }
    if not _in_order(left, right, len(trees)):
        arrays = _renumber(arrays, np.repeat(np.arange(len(trees)), sizes))
    return arrays | {"set_start": set_start, "set_categories": set_categories}


def _category_sets(
    trees: Sequence[Tree], start: NDArray[np.int64], n_nodes: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The set of each node, -1 for none; where each set begins; the categories of all sets."""
    set_of_node = np.full(n_nodes, -1)
    sets: list[NDArray[np.int64]] = []
    if any(tree.categories for tree in trees):
        for first, tree in zip(start, trees, strict=True):
            for node in sorted(tree.categories):
                set_of_node[first + node] = len(sets)
                sets.append(np.unique(tree.categories[node]))
    if not sets:
        return set_of_node, np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int64)
    return set_of_node, np.concatenate([[0], np.cumsum([len(s) for s in sets])]), np.concatenate(sets)


def _in_order(left: NDArray[np.int64], right: NDArray[np.int64], n_trees: int) -> bool:
    """Whether every child comes after its parent, and every node but the roots is a child of one other."""
    inner = np.flatnonzero(left >= 0)
    children = np.concatenate([left[inner], right[inner]])
    after = (left[inner] > inner).all() and (right[inner] > inner).all()
    once = np.bincount(children, minlength=1).max() <= 1
    return bool(after and once) and len(children) + n_trees == len(left)


def _renumber(arrays: dict[str, NDArray[Any]], tree: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
    """Number the nodes of each tree breadth first, without those that cannot be reached."""
    left, right = arrays["left"], arrays["right"]
    levels: list[NDArray[np.int64]] = []
    depths: list[NDArray[np.int64]] = []
    level = arrays["roots"]
    while len(level):
        levels.append(level)
        depths.append(np.full(len(level), len(depths)))
        inner = level[left[level] >= 0]
        level = np.stack([left[inner], right[inner]], axis=1).ravel()
    reached, depth = np.concatenate(levels), np.concatenate(depths)
    order = reached[np.lexsort((depth, tree[reached]))]
    number = np.full(len(left) + 1, LEAF)  # the last entry is for the -1 of leaves
    number[order] = np.arange(len(order))
    moved = {name: array[order] for name, array in arrays.items() if name != "roots"}
    moved |= {"left": number[moved["left"]], "right": number[moved["right"]]}
    return moved | {"roots": number[arrays["roots"]]}


def right_above(threshold: NDArray[Any], dtype: type[np.floating[Any]]) -> NDArray[np.float64]:
    """Canonical thresholds for splits in which ``x <= threshold`` goes left and x is of ``dtype``.

    The least number of ``dtype`` above the threshold; NaN (every number goes left) where that is +inf itself, and -inf
    (none does) where it is NaN, as scikit-learn has it between infinite numbers.
    """
    exact = np.asarray(threshold, dtype=np.float64)
    infinity = dtype("inf")
    with np.errstate(over="ignore"):
        rounded = exact.astype(dtype)
        down = np.where(rounded > exact, np.nextafter(rounded, -infinity), rounded)
        above = np.nextafter(down, infinity).astype(np.float64)
    return np.where(np.isnan(exact), -np.inf, np.where(exact == np.inf, np.nan, above))


def bits_of(words: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Positions of the set bits in a bitset of 32-bit words."""
    bits = np.unpackbits(np.ascontiguousarray(words, dtype="<u4").view(np.uint8), bitorder="little")
    return np.flatnonzero(bits)


def require_fitted(model: Any, attribute: str) -> None:
    """Raise `InputError` unless fitting has set ``attribute``."""
    if not hasattr(model, attribute):
        raise InputError(f"model is a {type(model).__name__} that is not fitted. Call its fit(X, y) first.")


def class_names(model: Any, n_outputs: int) -> tuple[str, ...] | None:
    """The names of the outputs, where each is a class; of one output for two classes that of the positive one."""
    classes = getattr(model, "classes_", None)
    if classes is None or (isinstance(classes, list) and any(np.ndim(known) for known in classes)):
        return None  # or those of several targets
    if (len(classes), n_outputs) == (2, 1):
        classes = classes[1:]
    return tuple(str(c) for c in classes) if len(classes) == n_outputs else None
