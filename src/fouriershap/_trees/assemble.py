"""Arrays of a `TreeEnsemble` from single trees, as libraries store them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap import _kernels as kernels
from fouriershap._base.errors import InputError
from fouriershap._trees.ensemble import LEAF

_PER_NODE = ("feature", "threshold", "left", "right", "missing_left", "cover", "values")


@dataclass
class Tree:
    """One tree, node 0 its root, nodes otherwise in any order (or many, end to end: `join_in_line`).

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
    """Return a tree that is one leaf with ``value`` (width,)."""
    none = np.array([LEAF])
    values = np.atleast_2d(np.asarray(value, dtype=np.float64))
    return Tree(none, np.zeros(1), none, none, np.zeros(1, dtype=bool), np.array([cover]), values)


def join(trees: Sequence[Tree], width: int = 1) -> dict[str, Any]:
    """Return the arrays of a `TreeEnsemble` that describe its nodes, for leaves of ``width`` values.

    A model without trees becomes one leaf of zeros.
    """
    trees = trees or [leaf(np.zeros(width), 1.0)]
    sizes = np.array([len(tree.left) for tree in trees])
    arrays = {name: np.concatenate([getattr(tree, name) for tree in trees]) for name in _PER_NODE[:-1]}
    values = np.concatenate([tree.values.reshape(-1, width) for tree in trees])
    categories = {}
    if any(tree.categories for tree in trees):
        starts = (np.cumsum(sizes) - sizes).tolist()
        categories = {
            start + node: found
            for start, tree in zip(starts, trees, strict=True)
            for node, found in tree.categories.items()
        }
    return join_in_line(Tree(**arrays, values=values, categories=categories), sizes)


def join_in_line(trees: Tree, sizes: NDArray[np.integer[Any]]) -> dict[str, Any]:
    """Return the same for trees of these sizes end to end, whose children are numbered within their own tree.

    Nodes keep their order where children come after their parent, else they are numbered breadth first;
    nodes that no row reaches (some libraries keep pruned ones) are left out.
    """
    start = (np.cumsum(sizes) - sizes).astype(np.int64)
    offset = np.repeat(start, sizes)
    if any(len(getattr(trees, name)) != len(offset) for name in _PER_NODE):
        raise InputError("the model is damaged: its arrays have different lengths.")
    is_leaf = trees.left < 0
    size = np.repeat(sizes, sizes)
    if not ((trees.left < size).all() and (is_leaf | ((trees.right >= 0) & (trees.right < size))).all()):
        raise InputError("the model is damaged: a node has a child outside its tree.")
    set_of_node, set_start, set_categories = _category_sets(trees.categories, len(offset))
    arrays = {
        "feature": np.where(is_leaf, LEAF, trees.feature).astype(np.int32),
        "threshold": np.where(is_leaf, 0.0, trees.threshold),
        "left": np.where(is_leaf, LEAF, trees.left + offset).astype(np.int32),
        "right": np.where(is_leaf, LEAF, trees.right + offset).astype(np.int32),
        "missing_left": ~is_leaf & (trees.missing_left != 0),
        "cover": trees.cover,
        "values": np.where(is_leaf[:, None], trees.values, 0.0),
        "category_set": set_of_node,
        "roots": start.astype(np.int32),
    }
    if not kernels.nodes.are_trees(arrays["roots"], arrays["feature"], arrays["left"], arrays["right"]):
        arrays = renumber(arrays, np.repeat(np.arange(len(sizes)), sizes))
    return arrays | {"set_start": set_start, "set_categories": set_categories}


def _category_sets(
    categories: dict[int, NDArray[np.int64]], n_nodes: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the set of each node (-1 for none), where each set begins, and the categories of all sets."""
    set_of_node = np.full(n_nodes, -1)
    if not categories:
        return set_of_node, np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int64)
    nodes = sorted(categories)
    set_of_node[nodes] = np.arange(len(nodes))
    sets = [np.unique(categories[node]) for node in nodes]
    return set_of_node, np.concatenate([[0], np.cumsum([len(s) for s in sets])]), np.concatenate(sets)


def renumber(arrays: dict[str, NDArray[Any]], tree: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
    """Return the nodes of each tree in breadth-first order, without those that cannot be reached."""
    left, right = arrays["left"], arrays["right"]
    levels: list[NDArray[np.int32]] = []
    depths: list[NDArray[np.int64]] = []
    level = arrays["roots"]
    n_reached = 0
    while len(level):
        n_reached += len(level)
        if n_reached > len(left):
            raise InputError("the model is damaged: a node has several parents, or is its own ancestor.")
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
    """Return canonical thresholds for splits in which ``x <= threshold`` goes left and x is of ``dtype``.

    The least number of ``dtype`` above the threshold; NaN (every number goes left) where that is +inf itself, and -inf
    (none does) where it is NaN.
    """
    exact = np.asarray(threshold, dtype=np.float64)
    infinity = dtype("inf")
    with np.errstate(over="ignore"):
        rounded = exact.astype(dtype)
        above = np.where(rounded > exact, rounded, np.nextafter(rounded, infinity)).astype(np.float64)
    return np.where(np.isnan(exact), -np.inf, np.where(exact == np.inf, np.nan, above))


def bits_of(words: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return the positions of the set bits in a bitset of 32-bit words."""
    bits = np.unpackbits(np.ascontiguousarray(words, dtype="<u4").view(np.uint8), bitorder="little")
    return np.flatnonzero(bits)
