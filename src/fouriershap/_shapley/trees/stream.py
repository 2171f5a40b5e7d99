"""SHAP values of trees twig by twig: tables that are built, read by all rows of a batch, and dropped.

The engine for deep trees, and for tables that would outgrow the memory: cost grows with rows plus background rows,
and some 100 MB are enough whatever the model. See `kernels.stream_numpy` for the mathematics.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap import _kernels as kernels
from fouriershap._base.parallel import enter, for_each_in_turn
from fouriershap._shapley.indices import Index, moments, quadrature
from fouriershap._shapley.trees.cut import cut_wide
from fouriershap._shapley.trees.plan import LANES, MOST_PLAYERS, Twigs, Ways, choose_ways
from fouriershap._shapley.trees.walk import Codes, Floats, WalkTrees, add_dropped

_PART_SECONDS = 0.25  # of work that cannot be interrupted
_FEWEST_PARTS = 8  # that threads share
_WORTH_PARTS = 0.02  # seconds of work below which parts cost more than they bring


@dataclass(frozen=True, eq=False)
class StreamTrees:
    """Trees ready to be streamed; make them with `prepare`.

    Attributes
    ----------
    trees : WalkTrees
        Those that can be, lean: leaf values have the mean of their tree taken off, which has no SHAP value but would
        cost digits of float32.
    others : tuple of WalkTrees
        What is walked: trees whose paths have too many nodes, and subtrees that were cut off for too many players.
    twigs : (n_trees, 31) int64
        Of the former, by the number of other players on their path.
    batch_rows : int
        Rows that are explained at a time.
    """

    trees: WalkTrees
    others: tuple[WalkTrees, ...]
    twigs: NDArray[np.int64]
    batch_rows: int


def prepare(trees: WalkTrees, twigs: Twigs) -> StreamTrees:
    """Take the trees that can be streamed, and centre their leaves."""
    serves, lean = twigs.serves, _centred(trees.drop_last_output)
    others, counts = [], twigs.counts
    if not serves.all():
        others.append(trees.part(~serves))
        lean, counts = lean.part(serves), counts[serves]
    mine, rest = cut_wide(lean, MOST_PLAYERS)
    if rest is not None:
        others.append(rest)
    return StreamTrees(mine, tuple(others), counts, twigs.batch_rows)


def _centred(trees: WalkTrees) -> WalkTrees:
    """All trees, with leaf values minus their mean over the tree, by training rows; inner nodes keep 0."""
    nodes, values, roots = trees.nodes, trees.values, trees.roots
    leaf = np.flatnonzero(nodes[:, 0] < 0)
    tree = np.searchsorted(roots, leaf, side="right") - 1  # nodes lie tree by tree
    cover = trees.cover[leaf] + 1e-9 * trees.cover.max(initial=1.0)  # where nobody counted, all count alike
    total = np.bincount(tree, cover, minlength=len(roots))
    out = np.zeros(values.shape)
    for column in range(values.shape[1]):
        mean = np.bincount(tree, cover * values[leaf, column], minlength=len(roots)) / total
        out[leaf, column] = values[leaf, column] - mean[tree]
    return replace(trees, values=out)


def interventional(
    trees: StreamTrees,
    codes: Codes,
    background: Codes,
    weights: Floats | None,
    *,
    index: Index,
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
    index : Index
    single : bool
        Tables in float32; totals are float64 either way.
    seconds : float
        What this is expected to take: work is cut into parts that do not depend on ``n_jobs``.
    out : (n_rows, n_players, n_outputs) float64
    """
    n_rows, n_background = codes.shape[1], background.shape[1]
    share = np.full(n_background, 1.0 / n_background) if weights is None else weights
    others = (_padded(background), share, _bound_index(index))
    rows_each = trees.batch_rows
    enter("streaming", -(-n_rows // rows_each))
    for first in range(0, n_rows, rows_each):
        batch = codes[:, first : first + rows_each]
        n = batch.shape[1]
        ways = choose_ways(n, n_background)
        arguments = (_padded(batch), 0, n, *others, *ways, single)
        parts = _parts(trees, ways, seconds * n / n_rows)
        _add_parts(parts, arguments, out[first : first + n], n_jobs)


def _bound_index(index: Index) -> kernels.stream.Index:
    of_points = quadrature(index, MOST_PLAYERS + 1)
    return kernels.stream.Index(*of_points, moments(index, MOST_PLAYERS + 2), index.adds_up)


def _parts(trees: StreamTrees, ways: Ways, seconds: float) -> list[WalkTrees]:
    """The trees in parts of about equal cost."""
    if seconds < _WORTH_PARTS:
        return [trees.trees]
    n_trees = trees.trees.n_trees
    n_parts = min(max(math.ceil(seconds / _PART_SECONDS), _FEWEST_PARTS), n_trees)
    size = np.minimum(np.arange(MOST_PLAYERS + 1), ways.dense_bits)
    cost = np.cumsum(trees.twigs @ (1_000.0 + 2.0**size))
    bounds = np.searchsorted(cost, np.linspace(0, cost[-1], n_parts + 1)[1:-1])
    bounds = np.unique(np.concatenate([[0], bounds, [n_trees]]))
    return [trees.trees.part(slice(*pair)) for pair in pairwise(bounds.tolist())]


def _add_parts(parts: list[WalkTrees], arguments: tuple[Any, ...], out: Floats, n_jobs: int | None) -> None:
    """Explain by each part, and add the parts in their order: the sum does not depend on ``n_jobs``."""

    def explain(k: int) -> Floats:
        trees = parts[k]
        sums = np.zeros((len(out), trees.n_players, trees.n_outputs))
        given: tuple[Any, ...] = (trees.bound, *arguments, sums)
        kernels.stream.interventional(*given)
        return sums

    for_each_in_turn(explain, lambda sums: add_dropped(sums, out), len(parts), n_jobs)


def _padded(codes: Codes) -> Codes:
    """Columns up to a multiple of 8."""
    n = codes.shape[1]
    if not n % LANES:
        return codes
    padded = np.zeros((len(codes), -(-n // LANES) * LANES), dtype=codes.dtype)
    padded[:, :n] = codes
    return padded
