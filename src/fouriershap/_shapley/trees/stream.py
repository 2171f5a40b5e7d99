"""SHAP values of trees twig by twig: tables that are built, read by all rows of a batch, and dropped.

The engine for deep trees, and for tables that would outgrow the memory: cost grows with rows plus background rows,
and some 100 MB are enough whatever the model. See `kernels.stream_numpy` for the mathematics.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriershap import _kernels as kernels
from fouriershap._base.parallel import for_each_in_turn
from fouriershap._shapley.indices import moments, quadrature
from fouriershap._shapley.trees.walk import Codes, Floats, WalkTrees

MOST_PLAYERS = 30  # on a path: a key is a bit a player
MOST_DEPTH = 128  # a line of masks per level and row
_LANES = 8
_BATCH_ROWS = 10_240
_BATCH_NUMBERS = 16 << 20  # running sums of a batch
_PART_SECONDS = 0.25  # of work that cannot be interrupted
_FEWEST_PARTS = 8  # that threads share
_WORTH_PARTS = 0.02  # seconds of work below which parts cost more than they bring
_MERGED_FROM = 5_000  # rows from which many are equal within a small subtree
_MERGED_NODES = 9


@dataclass(frozen=True, eq=False)
class StreamTrees:
    """Trees ready to be streamed; make them with `prepare`.

    Attributes
    ----------
    trees : WalkTrees
        Those that can be: leaf values have the mean of their tree taken off, which has no SHAP value but would cost
        digits of float32.
    others : WalkTrees or None
        Those whose paths have too many players or nodes.
    serves : (n_trees,) bool
        Which trees can be streamed.
    balanced : bool
        The outputs of every leaf add up to one and the same number, as probabilities do: the last one, which is left
        out here, is minus the sum of the others.
    """

    trees: WalkTrees
    others: WalkTrees | None
    serves: NDArray[np.bool_]
    balanced: bool

    @property
    def outputs_each(self) -> int:
        """Outputs that a tree adds to, at most."""
        return 1 if (self.trees.arrays[3] >= 0).all() else int(self.trees.arrays[1].shape[1])

    @cached_property
    def twigs(self) -> NDArray[np.int64]:
        """(n_trees, 31): twigs by the number of other players on their path."""
        out = np.zeros((self.trees.n_trees, MOST_PLAYERS + 1), dtype=np.int64)
        kernels.stream.count_twigs(*self.trees.arrays, self.trees.n_players, out)
        return out


def prepare(trees: WalkTrees) -> StreamTrees:
    """Take the trees that can be streamed, and balance their leaves."""
    serves = (trees.tree_players <= MOST_PLAYERS) & (trees.tree_depth <= MOST_DEPTH)
    others = None if serves.all() else trees.part(~serves)
    values = _centred(trees)
    width = values.shape[1]
    largest = np.abs(values).max(initial=0.0)
    balanced = width > 1 and bool((trees.arrays[3] < 0).all())
    balanced = balanced and bool(np.abs(values.sum(axis=1)).max(initial=0.0) <= 1e-12 * width * largest)
    if balanced:
        values = np.ascontiguousarray(values[:, :-1])
    arrays = (trees.arrays[0], values, *trees.arrays[2:])
    n_outputs = width - 1 if balanced else trees.n_outputs
    mine = replace(trees, arrays=arrays, n_outputs=n_outputs)
    return StreamTrees(mine if serves.all() else mine.part(serves), others, serves, balanced)


def _centred(trees: WalkTrees) -> Floats:
    """Leaf values minus their mean over the tree, by the share of the training rows; inner nodes keep 0."""
    nodes, values, roots = trees.arrays[:3]
    share, tree = np.zeros(len(nodes)), np.zeros(len(nodes), dtype=np.int64)
    share[roots], tree[roots] = 1.0, np.arange(len(roots))
    level, leaves = roots, []
    while len(level):
        is_leaf = nodes[level, 0] < 0
        leaves.append(level[is_leaf])
        inner = level[~is_leaf]
        for child in (nodes[inner, 2], nodes[inner, 3]):
            share[child], tree[child] = share[inner] * trees.ratio[child], tree[inner]
        level = np.concatenate([nodes[inner, 2], nodes[inner, 3]])
    leaf = np.concatenate(leaves) if leaves else np.empty(0, dtype=np.int64)
    out = np.zeros(values.shape)
    for column in range(values.shape[1]):
        mean = np.bincount(tree[leaf], share[leaf] * values[leaf, column], minlength=len(roots))
        out[leaf, column] = values[leaf, column] - mean[tree[leaf]]
    return out


class Ways(NamedTuple):
    """How twigs are treated; see `kernels.stream_numpy`."""

    dense_bits: int
    class_bits: int
    merged_nodes: int


def choose_ways(n_rows: int, n_background: int) -> Ways:
    """Tables grow with the pairs of rows that they spare."""
    more = round(math.log10(max(n_rows, 1) * max(n_background, 1) / 1e6))
    merged = _MERGED_NODES if min(n_rows, n_background) >= _MERGED_FROM else 0
    return Ways(min(max(13 + more, 7), 17), min(max(10 + more, 6), 13), merged)


def batch_rows(trees: StreamTrees) -> int:
    """Rows that are explained at a time."""
    numbers = max(trees.trees.n_players + MOST_PLAYERS, 1) * max(trees.trees.arrays[1].shape[1], 1)
    rows = min(_BATCH_ROWS, max(_BATCH_NUMBERS // numbers, 256))
    return int(rows // _LANES * _LANES)


def interventional(
    trees: StreamTrees,
    codes: Codes,
    background: Codes,
    weights: Floats | None,
    *,
    index: str,
    single: bool,
    seconds: float,
    out: Floats,
    n_jobs: int | None = None,
) -> None:
    """Add the interventional values of all rows, the mean over the background, to ``out``.

    Parameters
    ----------
    codes, background : (n_features, n_rows) and (n_features, n_background) int32
    weights : (n_background,) float64 that sum to 1, None for equal ones
    index : {"shapley", "banzhaf"}
    single : bool
        Tables in float32; totals are float64 either way.
    seconds : float
        What this is expected to take: work is cut into parts that do not depend on ``n_jobs``.
    out : (n_rows, n_players, n_outputs) float64
    """
    n_rows, n_background = codes.shape[1], background.shape[1]
    share = np.full(n_background, 1.0 / n_background) if weights is None else weights
    of_index = (*quadrature(index, MOST_PLAYERS + 1), moments(index, MOST_PLAYERS + 2), index == "shapley")
    others = (_padded(background), share, *of_index)
    rows_each = batch_rows(trees)
    for first in range(0, n_rows, rows_each):
        batch = codes[:, first : first + rows_each]
        n = batch.shape[1]
        ways = choose_ways(n, n_background)
        arguments = (_padded(batch), 0, n, *others, *ways, single)
        parts = _parts(trees, ways, seconds * n / n_rows)
        _add_parts(parts, arguments, trees.balanced, out[first : first + n], n_jobs)


def _parts(trees: StreamTrees, ways: Ways, seconds: float) -> list[WalkTrees]:
    """The trees in parts of about equal cost."""
    n_trees = trees.trees.n_trees
    n_parts = min(max(math.ceil(seconds / _PART_SECONDS), _FEWEST_PARTS), n_trees)
    if seconds < _WORTH_PARTS:
        n_parts = 1
    size = np.minimum(np.arange(MOST_PLAYERS + 1), ways.dense_bits)
    cost = np.cumsum(trees.twigs @ (1_000.0 + 2.0**size))
    bounds = np.searchsorted(cost, np.linspace(0, cost[-1], n_parts + 1)[1:-1])
    bounds = np.unique(np.concatenate([[0], bounds, [n_trees]]))
    return [trees.trees.part(slice(*pair)) for pair in pairwise(bounds.tolist())]


def _add_parts(
    parts: list[WalkTrees], arguments: tuple[Any, ...], balanced: bool, out: Floats, n_jobs: int | None
) -> None:
    """Explain by each part, and add the parts in their order: the sum does not depend on ``n_jobs``."""

    def explain(k: int) -> Floats:
        trees = parts[k]
        sums = np.zeros((len(out), trees.n_players, trees.n_outputs))
        kernels.stream.interventional(*trees.arrays, *arguments, sums)
        return sums

    def add(sums: Floats) -> None:
        if balanced:
            out[..., :-1] += sums
            out[..., -1] -= sums.sum(axis=-1)
        else:
            np.add(out, sums, out=out)

    for_each_in_turn(explain, add, len(parts), n_jobs)


def _padded(codes: Codes) -> Codes:
    """Columns up to a multiple of 8."""
    missing = -codes.shape[1] % _LANES
    return np.pad(codes, ((0, 0), (0, missing))) if missing else codes
