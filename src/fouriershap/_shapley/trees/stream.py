"""Streaming of trees: one bottom subtree at a time gets a table, which all rows of a batch read before it is dropped.

The strategy for deep trees, and for tables that would not fit into memory: cost grows with rows plus background rows,
and about 100 MB are enough for any model. See `plan` for the terms and `_kernels/stream.h` for the mathematics.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap import _kernels as kernels
from fouriershap._base.parallel import enter, for_each_in_turn
from fouriershap._shapley.indices import Index, moments, quadrature
from fouriershap._shapley.trees.cut import cut_wide
from fouriershap._shapley.trees.plan import LANES, MOST_PLAYERS, BottomSubtrees, StreamLimits, choose_limits
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
        Trees to stream, without the last output where it follows from the others. Leaf values are centred by the mean
        of their tree, which has no SHAP value but would cost digits of float32.
    others : tuple of WalkTrees
        Trees to walk: those that are too deep, and subtrees that were cut off for having too many players.
    counts : (n_trees, 31) int64
        Bottom subtrees of ``trees``, by the number of other players on their path.
    batch_rows : int
        Rows that are explained at a time.
    """

    trees: WalkTrees
    others: tuple[WalkTrees, ...]
    counts: NDArray[np.int64]
    batch_rows: int


def prepare(trees: WalkTrees, bottom: BottomSubtrees) -> StreamTrees:
    """Take the trees that can be streamed, and centre their leaves."""
    centred, others, counts = _centred(trees.drop_last_output), [], bottom.counts
    can_stream = bottom.can_stream
    if not can_stream.all():
        others.append(trees.part(~can_stream))
        centred, counts = centred.part(can_stream), counts[can_stream]
    streamed, rest = cut_wide(centred, MOST_PLAYERS)
    if rest is not None:
        others.append(rest)
    return StreamTrees(streamed, tuple(others), counts, bottom.batch_rows)


def _centred(trees: WalkTrees) -> WalkTrees:
    """Subtract from leaf values their mean over the tree, weighted by training rows; inner nodes keep 0."""
    nodes, values, roots = trees.nodes, trees.values, trees.roots
    leaf = np.flatnonzero(nodes[:, 0] < 0)
    tree = np.searchsorted(roots, leaf, side="right") - 1  # nodes lie tree by tree
    cover = trees.cover[leaf] + 1e-9 * trees.cover.max(initial=1.0)  # equal weights where covers are 0
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
    n_jobs: int = -1,
    mix: Floats | None = None,
) -> None:
    """Add the interventional values of all rows, the mean over the background, to ``out``.

    Parameters
    ----------
    codes, background : (n_features, n_rows) and (n_features, n_background) int32
    weights : (n_background,) float64 that sum to 1, None for equal ones
    index : Index
    single : bool
        Whether tables are in float32; totals are float64 in any case.
    seconds : float
        Estimated duration, by which work is cut into parts; they do not depend on ``n_jobs``.
    out : (n_rows, n_players, n_outputs) float64
    mix : (n_rows, n_channels) float64, optional
        What each channel counts for a row. ``weights`` are (n_background, n_channels) then, of any sign and sum, and
        values are summed over the background; the trees have one output.
    """
    n_rows, n_background = codes.shape[1], background.shape[1]
    share = np.full(n_background, 1.0 / n_background) if weights is None else weights
    others, bound_index = _padded(background), _bound_index(index)
    rows_each = trees.batch_rows
    enter("streaming", -(-n_rows // rows_each))
    for first in range(0, n_rows, rows_each):
        batch = codes[:, first : first + rows_each]
        n = batch.shape[1]
        limits = choose_limits(n, n_background, 1 if mix is None else mix.shape[1])
        arguments: tuple[Any, ...] = (_padded(batch), 0, n, others, share)
        kernel: Callable[..., None] = kernels.stream.interventional
        if mix is None:
            arguments = (*arguments, bound_index, *limits, single)
        else:
            kernel = kernels.stream.mixed
            arguments = (*arguments, mix[first : first + n], bound_index, *limits[:2], single)
        parts = _parts(trees, limits, seconds * n / n_rows)
        _add_parts(kernel, parts, arguments, out[first : first + n], n_jobs)


def _bound_index(index: Index) -> kernels.stream.Index:
    of_points = quadrature(index, MOST_PLAYERS + 1)
    return kernels.stream.Index(*of_points, moments(index, MOST_PLAYERS + 2), index.adds_up)


def _parts(trees: StreamTrees, limits: StreamLimits, seconds: float) -> list[WalkTrees]:
    """Split the trees into parts of about equal cost."""
    n_trees = trees.trees.n_trees
    if seconds < _WORTH_PARTS or not n_trees:  # none where every tree is too deep
        return [trees.trees]
    n_parts = min(max(math.ceil(seconds / _PART_SECONDS), _FEWEST_PARTS), n_trees)
    size = np.minimum(np.arange(MOST_PLAYERS + 1), limits.dense_bits)
    cost = np.cumsum(trees.counts @ (1_000.0 + 2.0**size))
    bounds = np.searchsorted(cost, np.linspace(0, cost[-1], n_parts + 1)[1:-1])
    bounds = np.unique(np.concatenate([[0], bounds, [n_trees]]))
    return [trees.trees.part(slice(*pair)) for pair in pairwise(bounds.tolist())]


def _add_parts(
    kernel: Callable[..., None], parts: list[WalkTrees], arguments: tuple[Any, ...], out: Floats, n_jobs: int
) -> None:
    """Explain by each part, and add the parts in order, so that the sum does not depend on ``n_jobs``."""

    def explain(k: int) -> Floats:
        trees = parts[k]
        sums = np.zeros((len(out), trees.n_players, trees.n_outputs))
        kernel(trees.bound, *arguments, sums)
        return sums

    for_each_in_turn(explain, lambda sums: add_dropped(sums, out), len(parts), n_jobs)


def _padded(codes: Codes) -> Codes:
    """Pad the columns to a multiple of 8."""
    n = codes.shape[1]
    if not n % LANES:
        return codes
    padded = np.zeros((len(codes), -(-n // LANES) * LANES), dtype=codes.dtype)
    padded[:, :n] = codes
    return padded
