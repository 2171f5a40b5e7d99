"""What trees cost by tables and by walking, and which road each tree should take."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fouriershap import _kernels as kernels
from fouriershap._trees.codes import CodedTrees

# Nanoseconds on one core of a 2021 server processor. Only their ratios matter, and only roughly.
_BUILD_LEAF = 5_500.0  # cutting a tree into blocks, per leaf
_BUILD_CALL = 2_000_000.0  # laying out tables, whatever their number
_HISTOGRAM = 0.25  # per leaf and background row (leaves share blocks)
# Two numbers: for a tree with at most 8 features on a path, whose leaves share tables, and for a deeper one, whose
# leaves take a table or two each, from memory that is touched for the first time.
_MOST_SHARED = 8
_BUILD_PATTERN = (45.0, 130.0)  # filling tables, per pattern of a leaf
_LOOK_UP = (0.35, 3.0)  # per leaf and explained row
_BYTES_PER_PATTERN = (
    24.0,
    56.0,
)  # of a leaf's own table in float32, after leaves have been merged into blocks
# Walking: per leaf that a (row, background row) pair visits, times the square root of the tree's leaves. In
# small trees many rows fail the same players and are walked as one; large ones outgrow the caches.
_PAIR_VISIT = 0.28
_PATH_LEAF = 12.0  # walking without a background: per leaf and row
MOST_FEATURES = 16
MOST_FEATURES_OF_PAIRS = (
    10  # a leaf's table of pairs costs 2^features times features^2: beyond, walking is quicker
)
MOST_DEPTH = 512  # cutting into blocks costs up to the cube of the depth, and chains are quick to walk


@dataclass(frozen=True)
class TreePlan:
    """Which trees are explained how, and what that is expected to cost.

    Attributes
    ----------
    method : str
        "tables", "walk", or "tables+walk" where some trees take each road.
    n_table_trees, n_walk_trees : int
    table_bytes : float
        Estimated memory of the tables of the feasible trees.
    build_seconds, row_seconds : float
        Estimates, on one core, of building those tables, and of explaining one row with them.
    walk_row_seconds : float
        Of explaining one row by walking the same trees instead; NaN for any number of rows, where nobody counts.
    reason : str
    """

    method: str
    n_table_trees: int
    n_walk_trees: int
    table_bytes: float
    build_seconds: float
    row_seconds: float
    walk_row_seconds: float
    reason: str


def profile(coded: CodedTrees) -> NDArray[np.float64]:
    """(n_trees, 4): leaves, depth, most distinct features on a path, sum over leaves of 2^features.

    Of features, also where several of them are one player: a pattern has a digit per feature.
    """
    e = coded.ensemble
    out = np.empty((e.n_trees, 4))
    each = np.arange(e.n_features, dtype=np.int32)
    kernels.tree_blocks.profile_trees(e.roots, e.feature, e.left, e.right, each, out)
    return out


def feasible_trees(
    coded: CodedTrees, trees: NDArray[np.float64], memory: int, itemsize: int
) -> NDArray[np.bool_]:
    """(n_trees,) bool: trees whose tables fit, the smallest first, into the memory budget."""
    e = coded.ensemble
    fits = (trees[:, 2] <= MOST_FEATURES) & (trees[:, 1] <= MOST_DEPTH)
    too_many_codes = coded.book.n_codes > 65_536
    if too_many_codes.any():
        fits[e.tree_of_node[(e.feature >= 0) & too_many_codes[e.feature]]] = False
    need = trees[:, 3] * _by_depth(trees, _BYTES_PER_PATTERN) * (itemsize / 4 * e.values.shape[1])
    by_size = np.argsort(need, kind="stable")
    allowed = np.zeros(len(trees), dtype=bool)
    allowed[by_size] = np.cumsum(np.where(fits, need, 0.0)[by_size]) <= memory
    return fits & allowed


def _by_depth(trees: NDArray[np.float64], costs: tuple[float, float]) -> NDArray[np.float64]:
    """(n_trees,) the first or the second of two costs."""
    return np.where(trees[:, 2] <= _MOST_SHARED, *costs)


def walk_seconds(trees: NDArray[np.float64], visits: NDArray[np.float64] | None, n_background: int) -> float:
    """Of one row on one core. ``visits`` is None where there is no background."""
    leaves = trees[:, 0]
    if visits is None:
        return float(leaves.sum()) * _PATH_LEAF / 1e9
    return float(visits @ np.sqrt(leaves)) * _PAIR_VISIT * n_background / 1e9


def plan_trees(
    trees: NDArray[np.float64],
    feasible: NDArray[np.bool_],
    visits: NDArray[np.float64] | None,
    n_background: int,
    n_rows: int | None,
    width: int,
    itemsize: int = 4,
) -> TreePlan:
    """Choose for ``n_rows`` rows (None: any number). ``visits`` is None where there is no background."""
    in_question = trees[feasible]
    leaves, patterns = in_question[:, 0], in_question[:, 3]
    filling = patterns * _by_depth(in_question, _BUILD_PATTERN) * width
    build = _BUILD_CALL + (leaves * (_BUILD_LEAF + _HISTOGRAM * n_background) + filling).sum()
    row = (leaves * _by_depth(in_question, _LOOK_UP)).sum() * width
    walk = 1e9 * walk_seconds(in_question, None if visits is None else visits[feasible], n_background)
    n_feasible = int(feasible.sum())
    worth = n_rows is None or n_rows * walk > build + n_rows * row
    if not n_feasible:
        method, reason = "walk", "no tree fits into tables: paths with many features, or too little memory"
    elif not worth:
        method, reason = "walk", "building tables would cost more than the answer"
    elif n_feasible < len(trees):
        method = "tables+walk"
        reason = f"{len(trees) - n_feasible} trees are too deep for tables, or beyond the memory budget"
    else:
        method, reason = "tables", "every tree fits into tables, and looking up is cheaper than walking"
    in_tables = 0 if method == "walk" else n_feasible
    need = float((patterns * _by_depth(in_question, _BYTES_PER_PATTERN)).sum() * width * itemsize / 4)
    costs = (float(build) / 1e9, float(row) / 1e9, float(walk) / 1e9)
    return TreePlan(method, in_tables, len(trees) - in_tables, need, *costs, reason)
