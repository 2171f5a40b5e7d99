"""`TreeEnsemble`: any tree model as plain arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap import _kernels as kernels
from fouriershap._base.errors import InputError
from fouriershap._base.frozen import Frozen
from fouriershap._base.messages import error_text

LEAF = -1
ARRAY_TYPES = dict.fromkeys(("roots", "tree_output", "feature", "left", "right", "category_set"), "i4")
ARRAY_TYPES |= dict.fromkeys(("threshold", "cover", "values", "base"), "f8")
ARRAY_TYPES |= {"set_start": "i8", "set_categories": "i8", "missing_left": "?"}
_CELLS = 1 << 20  # (row, tree) pairs walked at a time: bounds the scratch memory to some tens of MB


@dataclass(frozen=True, eq=False)
class TreeEnsemble(Frozen):
    """A sum of decision trees as flat, read-only arrays.

    The nodes of all trees share one numbering; the nodes of a tree are consecutive, its root first, and every child
    comes after its parent. At a node, a row of ``dtype`` goes

    - left where ``missing_left``, if its value is missing (NaN);
    - right iff ``x >= threshold`` at a numerical node (NaN as threshold: every number goes left);
    - left iff ``x``, truncated to an integer, is in the node's category set at a categorical node.

    The raw output is ``base`` plus the values of the leaves reached. Scales (learning rates, the mean over a forest,
    dart weights) are already in the values.

    Attributes
    ----------
    n_features, n_outputs : int
    dtype : numpy.dtype
        float32 or float64: the type of the rows.
    roots : (n_trees,) int32
    tree_output : (n_trees,) int32
        The output that a tree adds to; -1 where its leaves hold a vector of all outputs (width > 1).
    feature : (n_nodes,) int32
        Feature tested at a node, -1 at a leaf.
    threshold : (n_nodes,) float64
    left, right : (n_nodes,) int32
        Children, -1 at a leaf.
    missing_left : (n_nodes,) bool
    category_set : (n_nodes,) int32
        -1 at numerical nodes, else the index of the node's set in ``set_start``.
    set_start : (n_sets + 1,) int64
    set_categories : (sum of set sizes,) int64
        Non-negative integers, sorted within a set.
    cover : (n_nodes,) float64
        Training weight that reached the node (what path-dependent SHAP values need).
    values : (n_nodes, width) float64
        Leaf values; width is 1, or ``n_outputs`` where leaves hold vectors. Zero at inner nodes.
    base : (n_outputs,) float64
    """

    n_features: int
    n_outputs: int
    dtype: np.dtype[Any]
    roots: NDArray[np.int32]
    tree_output: NDArray[np.int32]
    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    missing_left: NDArray[np.bool_]
    category_set: NDArray[np.int32]
    set_start: NDArray[np.int64]
    set_categories: NDArray[np.int64]
    cover: NDArray[np.float64]
    values: NDArray[np.float64]
    base: NDArray[np.float64]

    def __post_init__(self) -> None:
        for name, dtype in ARRAY_TYPES.items():
            try:
                array = np.ascontiguousarray(getattr(self, name), dtype=dtype)
            except (TypeError, ValueError, OverflowError) as error:
                raise InputError(
                    f"{name} cannot be read as {np.dtype(dtype)}: {error_text(error)}"
                ) from error
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        if self.n_outputs == 1:  # all outputs are the one output
            object.__setattr__(self, "tree_output", np.zeros_like(self.tree_output))
        object.__setattr__(self, "dtype", np.dtype(self.dtype))
        self._check()

    def _check(self) -> None:
        # Kernels follow these numbers without checking them again, and a file may hold anything.
        if not (self._lengths_fit() and self._nodes_are_trees() and self._outputs_fit() and self._sets_fit()):
            raise InputError(
                "the arrays of the tree ensemble do not fit together. They need an entry for every node, children "
                "after their one parent and in its tree, trees one after the other, values as (n_nodes, 1) with an "
                "output per tree or (n_nodes, n_outputs) with tree_output -1, and category sets one after the other."
            )

    def _lengths_fit(self) -> bool:
        n_nodes = len(self.feature)
        of_nodes = ("feature", "threshold", "left", "right", "missing_left", "category_set", "cover")
        return (
            all(getattr(self, name).shape == (n_nodes,) for name in of_nodes)
            and self.values.ndim == 2
            and self.values.shape[0] == n_nodes
            and self.values.shape[1] in (1, self.n_outputs)
            and self.roots.shape == self.tree_output.shape == (len(self.roots),)
            and self.base.shape == (self.n_outputs,)
        )

    def _nodes_are_trees(self) -> bool:
        """Whether every node but the roots has one parent, before it and in its own tree."""
        if not len(self.feature) or self.feature.min() < LEAF or self.feature.max() >= self.n_features:
            return False
        return kernels.nodes.are_trees(self.roots, self.feature, self.left, self.right)

    def _sets_fit(self) -> bool:
        """Whether the category set of every node is there, and has its categories."""
        start, sets = self.set_start, self.category_set
        return (
            start.ndim == self.set_categories.ndim == 1
            and len(start) > 0
            and start[0] == 0
            and start[-1] == len(self.set_categories)
            and bool((np.diff(start) >= 0).all())
            and bool(((sets >= -1) & (sets < len(start) - 1)).all())
        )

    def _outputs_fit(self) -> bool:
        """Whether trees with one value a leaf name an output, and trees with vectors none."""
        if self.values.shape[1] > 1:
            return bool((self.tree_output == -1).all())
        return bool(((self.tree_output >= 0) & (self.tree_output < self.n_outputs)).all())

    @property
    def n_trees(self) -> int:
        return len(self.roots)

    @property
    def n_nodes(self) -> int:
        return len(self.feature)

    @property
    def n_leaves(self) -> int:
        return int((self.feature == LEAF).sum())

    @cached_property
    def is_categorical(self) -> NDArray[np.bool_]:
        """(n_features,) bool: features that some categorical node tests."""
        mask = np.zeros(self.n_features, dtype=bool)
        if len(self.set_start) > 1:
            mask[self.feature[self.category_set >= 0]] = True
        mask.flags.writeable = False
        return mask

    @cached_property
    def plain_trees(self) -> Any:
        """The trees as `find_leaves` hands them to the kernel, with thresholds in the type of the rows."""
        nodes = self.feature, self.threshold.astype(self.dtype), self.left, self.right, self.missing_left
        sets = self.category_set, self.set_start, self.set_categories
        return kernels.leaves.Trees(self.roots, *nodes, *sets)

    def __repr__(self) -> str:
        return (
            f"TreeEnsemble({self.n_trees} trees, {self.n_leaves} leaves, "
            f"{self.n_features} features, {self.n_outputs} outputs)"
        )

    @property
    def tree_of_node(self) -> NDArray[np.int64]:
        """(n_nodes,) tree of each node."""
        sizes = np.diff(np.append(self.roots, self.n_nodes))
        return np.repeat(np.arange(self.n_trees), sizes)

    def select(self, kept: NDArray[np.bool_]) -> TreeEnsemble:
        """Return some of the trees, with all of base and category sets."""
        nodes = kept[self.tree_of_node]
        index = np.append(np.cumsum(nodes) - 1, LEAF).astype(np.int32)  # -1 stays -1
        per_node = ("feature", "threshold", "missing_left", "category_set", "cover", "values")
        changes = {name: getattr(self, name)[nodes] for name in per_node}
        changes |= {name: index[getattr(self, name)[nodes]] for name in ("left", "right")}
        return self.replace(roots=index[self.roots[kept]], tree_output=self.tree_output[kept], **changes)

    def sum_by_output(
        self, leaves: NDArray[np.integer[Any]], shares: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the values (n_outputs,) of leaves (n,), each times its share."""
        values = shares[:, None] * self.values[leaves]
        if self.values.shape[1] == self.n_outputs:
            return np.asarray(values.sum(axis=0))
        output = self.tree_output[self.tree_of_node[leaves]]
        return np.bincount(output, values[:, 0], minlength=self.n_outputs).astype(np.float64)

    @property
    def has_cover(self) -> bool:
        """Whether nodes know how many training rows reached them, which path-dependent values need."""
        inner = self.feature >= 0
        return bool(self.cover[inner].any()) or not inner.any()

    def predict(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        """Return the raw output (n_rows, n_outputs) of rows (n_rows, n_features): numbers and codes, NaN missing."""
        with np.errstate(over="ignore"):
            rows = np.asarray(rows).astype(self.dtype, copy=False)
        if rows.ndim != 2 or rows.shape[1] != self.n_features:
            raise InputError(f"rows have the shape {rows.shape}; the trees need (n_rows, {self.n_features}).")
        output = np.empty((len(rows), self.n_outputs))
        for start, leaves in leaves_of(self, rows):
            output[start : start + len(leaves)] = self.sum_leaves(leaves)
        return output

    def sum_leaves(self, leaves: NDArray[np.int32], trees: slice = slice(None)) -> NDArray[np.float64]:
        """Return the outputs (n_rows, n_outputs) of leaves (n_rows, n_trees), from some of the trees and the base."""
        output = np.tile(self.base, (len(leaves), 1))
        chosen = np.zeros(self.n_trees, dtype=bool)
        chosen[trees] = True
        for k in range(self.n_outputs):
            column = k if self.values.shape[1] > 1 else 0
            adding = chosen & ((self.tree_output == k) | (self.tree_output < 0))
            output[:, k] += self.values[leaves[:, adding], column].sum(axis=1)
        return output

    def replace(self, **changes: Any) -> TreeEnsemble:
        """Return a copy with some attributes changed."""
        return TreeEnsemble(**({f.name: getattr(self, f.name) for f in fields(self)} | changes))


def leaves_of(ensemble: TreeEnsemble, rows: NDArray[Any]) -> Iterator[tuple[int, NDArray[np.int32]]]:
    """Yield `find_leaves` of rows, some at a time, with the position of the first."""
    step = max(1, _CELLS // ensemble.n_trees)
    for start in range(0, len(rows), step):
        yield start, find_leaves(ensemble, rows[start : start + step])


def find_leaves(ensemble: TreeEnsemble, rows: NDArray[Any]) -> NDArray[np.int32]:
    """Return the leaf (n_rows, n_trees) that each row of the ensemble's dtype reaches in each tree."""
    leaves = np.empty((len(rows), ensemble.n_trees), dtype=np.int32)
    kernels.leaves.find(ensemble.plain_trees, np.ascontiguousarray(rows), leaves)
    return leaves
