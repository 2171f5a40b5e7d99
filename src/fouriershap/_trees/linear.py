"""`LinearTrees`: trees whose leaves hold linear functions of the row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import InputError
from fouriershap._base.frozen import Frozen
from fouriershap._trees.arithmetic import one_output
from fouriershap._trees.assemble import renumber
from fouriershap._trees.ensemble import LEAF, TreeEnsemble, find_leaves

Floats = NDArray[np.float64]
_CELLS = 1 << 17  # (row, tree) pairs whose terms are added up at a time


@dataclass(frozen=True, eq=False)
class LinearTrees(Frozen):
    """A sum of trees whose leaves hold a constant and terms, each a slope times the row's number in a column.

    The value of a leaf is the constant plus its terms; where one of these numbers is missing (NaN), it is that which
    ``trees`` has there.

    Attributes
    ----------
    trees : TreeEnsemble
        With one value a leaf.
    constant : (n_nodes,) float64
    leaf : (n_terms,) int32, ascending
    column : (n_terms,) int32
    slope : (n_terms,) float64
    """

    trees: TreeEnsemble
    constant: Floats
    leaf: NDArray[np.int32]
    column: NDArray[np.int32]
    slope: Floats

    def __post_init__(self) -> None:
        e, leaf, column = self.trees, self.leaf, self.column
        fits = e.values.shape == (e.n_nodes, 1) and self.constant.shape == (e.n_nodes,)
        fits = fits and leaf.ndim == 1 and leaf.shape == column.shape == self.slope.shape
        if fits and len(leaf):
            fits = leaf[0] >= 0 and leaf[-1] < e.n_nodes and bool((np.diff(leaf) >= 0).all())
            fits = fits and column.min() >= 0 and column.max() < e.n_features
        if not (fits and np.isfinite(self.constant).all() and np.isfinite(self.slope).all()):
            raise InputError("the linear functions do not fit the leaves of their trees, or are not finite.")

    @property
    def n_features(self) -> int:
        return self.trees.n_features

    @property
    def n_outputs(self) -> int:
        return self.trees.n_outputs

    @property
    def n_trees(self) -> int:
        return self.trees.n_trees

    @property
    def tree_output(self) -> NDArray[np.int32]:
        return self.trees.tree_output

    @property
    def columns(self) -> NDArray[np.int32]:
        """The columns that have slopes, ascending."""
        return np.unique(self.column)

    def __repr__(self) -> str:
        return f"LinearTrees({self.trees!r}, {len(self.slope)} slopes)"

    @cached_property
    def _start(self) -> NDArray[np.int64]:
        """Where the terms of each node begin, (n_nodes + 1,)."""
        return np.searchsorted(self.leaf, np.arange(self.trees.n_nodes + 1))

    def predict(self, rows: NDArray[Any]) -> Floats:
        """Return the raw output (n_rows, n_outputs) of rows (n_rows, n_features): numbers and codes, NaN missing."""
        e, start = self.trees, self._start
        out = np.tile(e.base, (len(rows), 1))
        step = max(_CELLS // e.n_trees, 1)
        for first in range(0, len(rows), step):
            some = np.ascontiguousarray(rows[first : first + step], dtype=e.dtype)
            leaves = find_leaves(e, some)
            n_terms = (start[leaves + 1] - start[leaves]).ravel()
            cell = np.repeat(np.arange(leaves.size), n_terms)
            term = np.arange(len(cell)) + np.repeat(
                start[leaves.ravel()] - np.cumsum(n_terms) + n_terms, n_terms
            )
            with np.errstate(invalid="ignore"):
                terms = self.slope[term] * some[cell // e.n_trees, self.column[term]]
                sums = np.bincount(cell, terms, leaves.size).reshape(leaves.shape)
            # A missing number makes its sum NaN.
            values = np.where(np.isnan(sums), e.values[leaves, 0], self.constant[leaves] + sums)
            for k in range(self.n_outputs):
                out[first : first + step, k] += values[:, e.tree_output == k].sum(axis=1)
        return out

    def size(self, rows: NDArray[Any]) -> float:
        """Return a bound of all sizes that are added up for these rows."""
        e = self.trees
        largest = np.nan_to_num(np.abs(rows), posinf=0.0).max(axis=0, initial=0.0)
        terms = np.bincount(self.leaf, np.abs(self.slope) * largest[self.column], e.n_nodes)
        leaves = np.maximum(np.abs(self.constant) + terms, np.abs(e.values[:, 0]))
        return float(np.maximum.reduceat(leaves, e.roots).sum() + np.abs(e.base).max())

    def select(self, kept: NDArray[np.bool_]) -> LinearTrees:
        """Return some of the trees, with all of base."""
        return self._kept(kept, self.trees.select(kept))

    def one_output(self, output: int) -> LinearTrees:
        """Return one of the outputs, by the trees that add to it."""
        return self._kept(self.trees.tree_output == output, one_output(self.trees, output))

    def _kept(self, kept: NDArray[np.bool_], trees: TreeEnsemble) -> LinearTrees:
        nodes = kept[self.trees.tree_of_node]
        terms = nodes[self.leaf]
        leaf = (np.cumsum(nodes) - 1)[self.leaf[terms]].astype(np.int32)
        return LinearTrees(trees, self.constant[nodes], leaf, self.column[terms], self.slope[terms])

    def at(self, numbers: Floats, missing: NDArray[np.bool_]) -> TreeEnsemble:
        """Return trees of the leaves' values for these numbers (n_features,), whatever those of the row are.

        A leaf keeps its value for missing numbers; rows may miss them in the columns ``missing`` (n_features,).
        """
        terms = np.bincount(self.leaf, self.slope * numbers[self.column], self.trees.n_nodes)
        return self._expand(self.constant + terms, self.trees.values[:, 0], missing, None)

    def slopes(self, column: int, missing: NDArray[np.bool_]) -> TreeEnsemble:
        """Return trees of the leaves' slopes in a column; 0 where this, or another number of the leaf, is missing.

        Rows may miss the column itself, and those of ``missing`` (n_features,).
        """
        mine = self.column == column
        value: Floats = np.bincount(self.leaf[mine], self.slope[mine], self.trees.n_nodes)  # type: ignore[assignment]
        e = self._expand(value, np.zeros(len(value)), missing, column)
        return e.replace(base=np.zeros(e.n_outputs))

    def _expand(
        self, value: Floats, absent: Floats, missing: NDArray[np.bool_], first: int | None
    ) -> TreeEnsemble:
        """Return trees with the values ``value``, and ``absent`` where a number of a leaf's terms is missing.

        Below a leaf, a chain of nodes asks which are missing. Where there is a column ``first``, each root asks for it,
        a tree is 0 where it is missing, and subtrees without other values than 0 are cut off.
        """
        e = self.trees
        asked = missing[self.column] & (self.column != first) & (value != absent)[self.leaf]
        if asked.any():
            asked[asked] = self._meet_missing(np.flatnonzero(asked))
        leaf, column = self.leaf[asked], self.column[asked]
        n, n_asked = e.n_nodes, len(leaf)
        without, further = n + np.arange(n_asked), n + n_asked + np.arange(n_asked)
        node = np.where(np.diff(leaf, prepend=-1) > 0, leaf, np.roll(further, 1))
        roots, tree_output, tree = e.roots, e.tree_output, e.tree_of_node
        n_more = 2 * n_asked
        if first is not None:
            alive = self._above(value != 0)
            kept = alive[roots] if alive.any() else np.arange(e.n_trees) == 0
            roots, tree_output = roots[kept], tree_output[kept]
            n_more += 2 * len(roots)

        def extend(array: NDArray[Any], filling: Any) -> NDArray[Any]:
            return np.concatenate([array, np.full(n_more, filling, dtype=array.dtype)])

        names = ("feature", "left", "right", "category_set")
        arrays = {name: extend(getattr(e, name), -1) for name in names}
        arrays |= {"threshold": extend(e.threshold, 0.0), "missing_left": extend(e.missing_left, False)}
        arrays |= {"cover": extend(e.cover, 0.0), "values": extend(value, 0.0)}
        tree = extend(tree, 0)
        if first is not None:
            for name in ("feature", "left", "right", "category_set"):
                arrays[name][:n][~alive] = -1
        tree[without] = tree[further] = tree[leaf]
        arrays["values"][without], arrays["values"][further] = absent[leaf], value[leaf]
        arrays["cover"][further] = e.cover[leaf]
        asks, missing_side, other_side, of = node, without, further, column
        if first is not None:
            top = n + 2 * n_asked + np.arange(len(roots))
            asks, missing_side = np.append(node, top), np.append(without, top + len(roots))
            other_side, of = np.append(further, roots), np.append(column, np.full(len(roots), first))
            tree[top] = tree[top + len(roots)] = tree[roots]
            arrays["cover"][top] = e.cover[roots]
            roots = top.astype(np.int32)
        arrays["feature"][asks], arrays["threshold"][asks], arrays["missing_left"][asks] = of, -np.inf, True
        arrays["left"][asks], arrays["right"][asks] = missing_side, other_side
        arrays["values"][arrays["feature"] != LEAF] = 0.0
        arrays["values"] = arrays["values"][:, None]
        return e.replace(tree_output=tree_output, **renumber(arrays | {"roots": roots}, tree))

    def _above(self, marked: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return whether a node is above a marked leaf, or is one, (n_nodes,)."""
        e = self.trees
        inner = np.flatnonzero(e.feature != LEAF)
        parent = np.full(e.n_nodes, -1)
        parent[e.left[inner]] = parent[e.right[inner]] = inner
        found: NDArray[np.bool_] = marked & (e.feature == LEAF)
        level = np.flatnonzero(found)
        while len(level):
            level = np.unique(parent[level])
            level = level[level >= 0]
            level = level[~found[level]]
            found[level] = True
        return found

    def _meet_missing(self, terms: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return whether rows that miss the column of a term come to its leaf, as far as that column is concerned."""
        e = self.trees
        columns, place = np.unique(self.column[terms], return_inverse=True)
        place_of = np.full(e.n_features, -1)
        place_of[columns] = np.arange(len(columns))
        comes = np.ones((e.n_nodes, len(columns)), dtype=bool)
        level = e.roots
        while len(level):
            inner = level[e.feature[level] != LEAF]
            tested = place_of[e.feature[inner]]
            for child, side in (
                (e.left[inner], e.missing_left[inner]),
                (e.right[inner], ~e.missing_left[inner]),
            ):
                comes[child] = comes[inner]
                some = (tested >= 0) & ~side
                comes[child[some], tested[some]] = False
            level = np.concatenate([e.left[inner], e.right[inner]])
        return np.asarray(comes[self.leaf[terms], place])
