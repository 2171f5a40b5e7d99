"""Estimated costs of explaining trees by tables, by streaming and by walking, and the plan based on them.

*Tables* are stored: a row looks up its values. *Streaming* builds the tables of one bottom subtree at a time, lets all
rows read them, and drops them. A *bottom subtree* is a node with one or two leaves as children, and these leaves; every
leaf is in exactly one. *Walking* compares each row with each background row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from fouriershap import _kernels as kernels
from fouriershap._shapley.engine import Plan
from fouriershap._shapley.trees.speed import NEUTRAL, Factors
from fouriershap._shapley.trees.walk import WalkTrees, few_rows
from fouriershap._trees.codes import CodedTrees

# Limits of each strategy.
MOST_FEATURES = 16  # on a path of a tree in tables
MOST_FEATURES_OF_PAIRS = (
    10  # a leaf's table of pairs costs 2^features times features^2: beyond, walking is quicker
)
MOST_DEPTH = (
    512  # of a tree in tables: cutting into blocks costs up to its cube, and chains are quick to walk
)
MOST_PLAYERS = 30  # on a streamed path: a key has a bit for each; subtrees beyond are cut off and walked
MOST_STREAM_DEPTH = 128  # a line of masks per level and row

# Estimates, on one core. Only their ratios matter, and only roughly; where a machine's are others, `speed` has factors.
_UNIT = 0.65e-9  # seconds, as measured on a server processor of 2021
# Tables. Pairs of numbers are for a tree with at most 8 features on a path, whose leaves share tables, and for a deeper
# one, whose leaves take a table or two each, from memory that is touched for the first time.
_MOST_SHARED = 8
_BUILD_CALL = 1_200_000.0  # laying out tables, whatever their number
_BUILD_LEAF = 2_800.0  # cutting a tree into blocks, per leaf
_BUILD_CUT = 1_600.0  # per place at which a category set changes sides
_CUT = 0.018  # the same, per row
_BUILD_PATTERN = (45.0, 130.0)  # filling tables, per pattern of a leaf
_HISTOGRAM = 0.25  # per leaf and background row (leaves share blocks)
_BYTES_PER_PATTERN = (24.0, 56.0)  # of a leaf's own table in float32, after leaves are merged into blocks
_LOOK_UP = (0.27, 1.2)  # per leaf and explained row
LEAST_BUILD = _BUILD_CALL * _UNIT  # seconds of building any tables
# Memory of tables. A batch of rows loads them once. A few rows wait for what they read: one row for _WAIT per leaf, n
# rows for the square root of n times as long, since they share what is near the root of a tree.
_TABLE_ROWS = 16_384  # of a batch
_IN_CACHE = 64 << 20  # bytes
_PER_BYTE = (0.05, 0.25)  # within a cache, beyond it
_WAIT = 30.0

# Walking. Each (row, background row) pair costs _PAIR_VISIT per leaf that it visits, times a power of the tree's leaves
# (in small trees many rows fail the same players and are walked as one, and large trees exceed the caches).
_PAIR_VISIT, _PAIR_POWER = 0.18, 0.55
# Each row and each background row costs this per leaf that rows come to. These are at most _WALK_LEAVES, and
# _WALK_SPREAD times those that a pair visits, which are few where rows are sparse.
_WALK_ROW_LEAF, _WALK_BACKGROUND_LEAF = 4.0, 2.0
_WALK_LEAVES, _WALK_SPREAD = 256.0, 24.0
_WALK_LEVEL = 3.0  # few rows are walked one by one: per level of a tree and background row
_PATH_LEAF = 12.0  # without a background: per leaf and row
_LOOKING = 1.5e-3  # seconds of walking below which a closer estimate would cost as much as it could save

# Streaming. Each bottom subtree costs a table, by its entries and points (or `_wide_subtree`), and keys and look-ups of
# the rows.
_STREAM_CALL = 350_000.0
_STREAM_SUBTREE = 300.0
_STREAM_ENTRY = 0.8  # per entry and point of its table
_STREAM_ROW, _STREAM_ROW_SLOT = 3.0, 0.2  # per row, and per row and player on its path
_STREAM_BACKGROUND = 1.7  # per background row
_STREAM_MERGED = 0.65  # share of the rows' cost that is left where equal ones are merged
# The same with channels: per entry, point and 8 of them; per key that occurs and 8 of them; per row and channel.
_MIXED_ENTRY, _MIXED_LINE = 7.0, 25.0
_MIXED_ROW, _MIXED_BACKGROUND, _MIXED_WIDE_ROW = 0.4, 0.1, 10.0
_MERGED_FROM = 5_000  # rows, from which on many are equal within a small subtree
_MERGED_NODES = 9  # of such a subtree
LANES = 8
_BATCH_ROWS = 10_240
_BATCH_NUMBERS = 16 << 20  # running sums of a batch


@dataclass(frozen=True)
class TreePlan(Plan):
    """Which trees are explained how, and the estimated cost.

    Attributes
    ----------
    strategy : str
        "tables" (stored), "stream" (tables of a bottom subtree at a time), "walk", or several with "+" between.
    n_table_trees, n_stream_trees, n_walk_trees : int
    table_bytes : float
        Estimated memory of the tables of the trees that fit.
    build_seconds, row_seconds : float
        Estimates, on one core, of building those tables, and of explaining one row with them.
    walk_row_seconds : float
        Estimate for explaining one row by walking all trees; NaN for any number of rows.
    stream_seconds : float
        Estimate for streaming all trees for these rows; NaN for any number of rows, infinite where it is impossible.
    seconds : float
        Estimate for these rows, on one core, with building tables where that is to be done; NaN for any number of rows.
    """

    n_table_trees: int
    n_stream_trees: int
    n_walk_trees: int
    table_bytes: float
    build_seconds: float
    row_seconds: float
    walk_row_seconds: float
    stream_seconds: float


def profile(coded: CodedTrees) -> NDArray[np.float64]:
    """Return leaves, depth, most distinct features on a path, sum over leaves of 2^features, and cuts, (n_trees, 5).

    Features of one player count separately, since a pattern has a digit per feature. Cuts are the places at which the
    codes of category sets change sides, over all nodes.
    """
    e = coded.ensemble
    out = np.empty((e.n_trees, 4))
    each = np.arange(e.n_features, dtype=np.int32)
    kernels.tree_blocks.profile_trees(e.roots, e.feature, e.left, e.right, each, out)
    bits = coded.set_bits
    below = bits << np.uint64(1)
    below[:, 1:] |= bits[:, :-1] >> np.uint64(63)
    of_set = np.bitwise_count(bits ^ below).sum(axis=1, dtype=np.float64)
    nodes = np.flatnonzero(e.category_set >= 0)
    cuts = np.bincount(e.tree_of_node[nodes], of_set[e.category_set[nodes]], minlength=e.n_trees)
    return np.column_stack([out, cuts])


def feasible_trees(
    coded: CodedTrees, trees: NDArray[np.float64], memory: int, itemsize: int
) -> NDArray[np.bool_]:
    """Return the trees whose tables fit, the smallest first, into the memory budget, (n_trees,) bool."""
    e = coded.ensemble
    fits = (trees[:, 2] <= MOST_FEATURES) & (trees[:, 1] <= MOST_DEPTH)
    too_many_codes = coded.book.n_codes > 65_536
    if too_many_codes.any():
        fits[e.tree_of_node[(e.feature >= 0) & too_many_codes[e.feature]]] = False
    need = trees[:, 3] * _by_depth(trees, _BYTES_PER_PATTERN) * (itemsize / 4 * e.values.shape[1])
    if fits.all() and need.sum() <= memory:
        return fits
    by_size = np.argsort(need, kind="stable")
    allowed = np.zeros(len(trees), dtype=bool)
    allowed[by_size] = np.cumsum(np.where(fits, need, 0.0)[by_size]) <= memory
    return fits & allowed


def _by_depth(trees: NDArray[np.float64], costs: tuple[float, float]) -> NDArray[np.float64]:
    """Return the first or the second of two costs for each tree, (n_trees,)."""
    return np.where(trees[:, 2] <= _MOST_SHARED, *costs)


@dataclass(frozen=True, eq=False)
class BottomSubtrees:
    """Number of bottom subtrees to stream.

    Attributes
    ----------
    counts : (n_trees, 31) int64
        Bottom subtrees of each tree, by the number of other players on their path.
    can_stream : (n_trees,) bool
        Whether a tree can be streamed.
    n_outputs : int
        Most outputs that a tree adds to; without the last where it follows from the others (see
        `WalkTrees.drop_last_output`).
    batch_rows : int
        Rows that are streamed at a time.
    """

    counts: NDArray[np.int64]
    can_stream: NDArray[np.bool_]
    n_outputs: int
    batch_rows: int


def count_bottom_subtrees(trees: WalkTrees) -> BottomSubtrees:
    """Count the bottom subtrees of trees, and find which trees can be streamed."""
    counts = np.zeros((trees.n_trees, MOST_PLAYERS + 1), dtype=np.int64)
    # Paths may have too many players, since `cut_wide` cuts them. Counting recurses once per level.
    can_stream = trees.tree_depth <= MOST_STREAM_DEPTH
    some = np.zeros((int(can_stream.sum()), counts.shape[1]), dtype=np.int64)
    kernels.stream.count_bottom_subtrees(trees.part(can_stream).bound, some)
    counts[can_stream] = some
    width = int(trees.values.shape[1])
    n_outputs = 1 if (trees.tree_output >= 0).all() else width - trees.outputs_sum_to_constant
    numbers = (trees.n_players + MOST_PLAYERS) * width
    batch = min(_BATCH_ROWS, max(_BATCH_NUMBERS // numbers, 256)) // LANES * LANES
    return BottomSubtrees(counts, can_stream, n_outputs, batch)


class StreamLimits(NamedTuple):
    """Sizes up to which bottom subtrees get a table, and subtrees are searched for equal rows.

    See `kernels.stream_numpy.interventional`.
    """

    dense_bits: int
    class_bits: int
    merged_nodes: int


def choose_limits(n_rows: int, n_background: int, n_channels: int = 1) -> StreamLimits:
    """Return the limits for a batch: the more pairs of rows there are, the larger tables may be."""
    more = round(math.log10(max(n_rows, 1) * max(n_background, 1) / 1e6))
    if n_channels > 1:
        more = min(more, 0)  # a table has all channels
    merged = _MERGED_NODES if min(n_rows, n_background) >= _MERGED_FROM else 0
    return StreamLimits(min(max(13 + more, 7), 17), min(max(9 + more, 6), 13), merged)


class Source(Protocol):
    """Facts about trees and a background that are computed only where they are needed."""

    @property
    def visits(self) -> NDArray[np.float64] | None:
        """Mean number of leaves that a pair of rows visits, (n_trees,); None for path-dependent values."""

    @property
    def bottom_subtrees(self) -> BottomSubtrees:
        """Bottom subtrees of all trees."""


@dataclass(frozen=True, eq=False)
class DirectCosts:
    """Costs of trees without tables, against one background: estimated seconds on one core.

    Attributes
    ----------
    leaves : (n_trees,) float64
        Number of leaves of every tree of the ensemble.
    n_background : int or None
        None for path-dependent values.
    source : Source
    doubled : bool
        Whether tables are in float64.
    n_channels : int
        Weights of each background row, with which rows are walked one by one. 0 for one weight.
    n_games : int
        Games of a structured index, each of which walks the trees, row by row; 0 for other indices.
    which : (n_trees,) bool, optional
        Trees to count; None for all.
    factors : Factors, optional
        Of this machine.
    """

    leaves: NDArray[np.float64]
    n_background: int | None
    source: Source
    doubled: bool
    n_channels: int = 0
    n_games: int = 0
    which: NDArray[np.bool_] | None = None
    factors: Factors = NEUTRAL

    def walk_upper_bound(self, n_rows: int) -> float:
        """Return the seconds to walk ``n_rows`` rows if every pair visited every leaf."""
        return self.walk_call(n_rows) + n_rows * self.walk_row_upper_bound

    @cached_property
    def walk_row_upper_bound(self) -> float:
        """Seconds to walk a row if every pair visited every leaf."""
        return self._sum(self._walk_row(self.leaves))

    def walk(self, n_rows: int) -> float:
        """Return the seconds to walk ``n_rows`` rows."""
        return self._walk_call(n_rows, self.source.visits) + n_rows * self.walk_row

    @cached_property
    def walk_row(self) -> float:
        """Seconds to walk one more row."""
        return self._sum(self._walk_row(self.source.visits))

    def walk_call(self, n_rows: int) -> float:
        """Return an upper bound of the cost of a call beyond the leaves that pairs visit: finding each row's path."""
        return self._walk_call(n_rows, self.leaves)

    def _walk_call(self, n_rows: int, visits: NDArray[np.float64] | None) -> float:
        if self.n_background is None or visits is None:
            return 0.0
        if self.n_channels or self.n_games or n_rows < few_rows(self._mean_leaves, self.n_background):
            return n_rows * self._alone
        seen = self._sum(self._seen(visits)) * self.n_background
        return seen * _WALK_BACKGROUND_LEAF * _UNIT * self.factors.walk

    @cached_property
    def _mean_leaves(self) -> float:
        return float(self.leaves.mean()) if len(self.leaves) else 0.0

    @cached_property
    def _alone(self) -> float:
        levels = self._sum(np.log2(np.maximum(self.leaves, 1.0))) * (self.n_background or 0)
        return levels * _WALK_LEVEL * max(self.n_games, 1) * _UNIT * self.factors.walk

    def _seen(self, visits: NDArray[np.float64]) -> NDArray[np.float64]:
        """Estimate the leaves of each tree that rows reach, (n_trees,)."""
        seen = np.minimum(self.leaves, _WALK_LEAVES)
        # One background row alone does not tell how far rows are apart.
        return seen if self.n_background == 1 else np.minimum(seen, _WALK_SPREAD * visits)

    def _walk_row(self, visits: NDArray[np.float64] | None) -> NDArray[np.float64]:
        if self.n_background is None or visits is None:
            return self.leaves * (_PATH_LEAF * _UNIT * self.factors.walk)
        pairs = visits * self.leaves**_PAIR_POWER * (_PAIR_VISIT * self.n_background)
        row = (pairs + self._seen(visits) * _WALK_ROW_LEAF) * max(self.n_games, 1)
        return np.asarray(row * _UNIT * self.factors.walk)

    def _sum(self, of_trees: NDArray[np.float64]) -> float:
        return float((of_trees if self.which is None else of_trees[self.which]).sum())

    @cached_property
    def stream_lower_bound(self) -> float:
        """Lower bound of the seconds to stream any number of rows: a bottom subtree has at most two leaves."""
        if self.n_background is None:
            return math.inf
        if self.n_games:  # which nothing streams
            return 0.0
        return (self._sum(self.leaves) / 2 * _STREAM_SUBTREE + _STREAM_CALL) * _UNIT * self.factors.stream

    def stream(self, n_rows: int) -> float:
        """Return the seconds to stream ``n_rows`` rows, with walking the trees that cannot be streamed."""
        if self.n_background is None or self.n_games:
            return math.inf
        bottom = self.source.bottom_subtrees
        n_batches = -(-n_rows // bottom.batch_rows)
        sizes = (n_rows / n_batches, self.n_background, self.doubled)
        if self.n_channels:
            each = _mixed_subtree_costs(self.n_channels, *sizes)
        else:
            each = _subtree_costs(bottom.n_outputs, *sizes)
        costs = bottom.counts @ each * (n_batches * _UNIT * self.factors.stream)
        walked = ~bottom.can_stream
        if walked.any():
            costs[walked] = n_rows * self._walk_row(self.source.visits)[walked]
        return self._sum(costs) + _STREAM_CALL * _UNIT * self.factors.stream

    def is_cheap(self, n_rows: int) -> bool:
        """Return whether walking is so cheap that a closer estimate is not worth its cost."""
        return self.walk_upper_bound(n_rows) <= max(self.stream_lower_bound, _LOOKING)

    def cheaper(self, n_rows: int) -> tuple[str, float]:
        """Return "walk" or "stream", whichever is cheaper, and its seconds; an upper bound where walking is cheap."""
        if self.is_cheap(n_rows):
            return "walk", self.walk_upper_bound(n_rows)
        last = self._last.get("cheaper")
        if last is None or last[0] != n_rows:
            walked, streamed = self.walk(n_rows), self.stream(n_rows)
            last = (n_rows, "stream" if streamed < walked else "walk", min(walked, streamed))
            self._last["cheaper"] = last
        return last[1:]

    @cached_property
    def _last(self) -> dict[str, tuple[int, str, float]]:
        """The last answer: each call to explain asks twice."""
        return {}


@lru_cache(maxsize=16)
def _subtree_costs(n_outputs: int, n_rows: float, n_background: int, doubled: bool) -> NDArray[np.float64]:
    """Return the nanoseconds of a bottom subtree for a batch, by the number of other players on its path, (31,)."""
    limits = choose_limits(int(n_rows), n_background)
    slots = np.arange(MOST_PLAYERS + 1)
    table = _STREAM_ENTRY * 2.0 ** np.maximum(slots, 6) * ((slots + 2) // 2)
    table = np.where(slots <= limits.dense_bits, table, _wide_subtree(n_rows, n_background))
    rows = n_rows * (_STREAM_ROW + _STREAM_ROW_SLOT * slots) + n_background * _STREAM_BACKGROUND
    if limits.merged_nodes:
        rows = rows * _STREAM_MERGED
    table = table * (min(n_outputs, 2) * (2 if doubled else 1))
    costs = np.asarray(_STREAM_SUBTREE + rows * n_outputs + table)
    costs.flags.writeable = False  # callers share the cached array
    return costs


@lru_cache(maxsize=16)
def _mixed_subtree_costs(
    n_channels: int, n_rows: float, n_background: int, doubled: bool
) -> NDArray[np.float64]:
    """Return the nanoseconds of a bottom subtree for a batch and channels that are mixed, as `_subtree_costs`."""
    limits = choose_limits(int(n_rows), n_background, n_channels)
    slots = np.arange(MOST_PLAYERS + 1)
    size, n_blocks = 2.0**slots, -(-n_channels // LANES)
    table = _MIXED_ENTRY * size * ((slots + 2) // 2) + _MIXED_LINE * np.minimum(2 * size, n_rows)
    wide = n_channels * (_wide_subtree(n_rows, n_background) + _MIXED_WIDE_ROW * n_rows)
    table = np.where(slots <= limits.dense_bits, n_blocks * table, wide) * (2 if doubled else 1)
    rows = n_rows * (_STREAM_ROW + _MIXED_ROW * n_channels)
    rows += n_background * (_STREAM_BACKGROUND + _MIXED_BACKGROUND * n_channels)
    costs = np.asarray(_STREAM_SUBTREE + rows + table)
    costs.flags.writeable = False  # callers share the cached array
    return costs


def _wide_subtree(n_rows: float, n_background: int) -> float:
    """Return the measured nanoseconds of a bottom subtree that is too wide for one table."""
    return float(5_000 + 70 * (n_rows * n_background) ** 0.55 + 30 * n_rows)


@dataclass(frozen=True, eq=False)
class TableCosts:
    """Estimated costs of the tables of the trees that fit.

    Attributes
    ----------
    n_trees : int
    bytes : float
    build, row : float
        Seconds on one core to build the tables, and to look up one more row.
    wait, per_byte : float
        Seconds that the first row waits for memory, and of a byte that a batch of rows loads.
    factors : Factors
        Of this machine: they are in these seconds.
    """

    n_trees: int
    bytes: float
    build: float
    row: float
    wait: float
    per_byte: float
    factors: Factors

    def look_up(self, n_rows: int) -> float:
        """Return the seconds to look up ``n_rows`` rows in one call."""
        n_batches = -(-n_rows // _TABLE_ROWS)
        waiting = self.wait * math.sqrt(min(n_rows, _TABLE_ROWS))
        return n_rows * self.row + n_batches * min(self.bytes * self.per_byte, waiting)


def table_costs(
    trees: NDArray[np.float64], n_background: int, width: int, itemsize: int, factors: Factors
) -> TableCosts:
    """Return the costs of tables of the trees with these rows of the `profile`."""
    leaves, patterns, cuts = trees[:, 0], trees[:, 3], trees[:, 4]
    filling = patterns * _by_depth(trees, _BUILD_PATTERN) * width
    need = float((patterns * _by_depth(trees, _BYTES_PER_PATTERN)).sum() * width * itemsize / 4)
    cutting = cuts * (_BUILD_CUT + _CUT * n_background)
    build = _BUILD_CALL + float(
        (leaves * (_BUILD_LEAF + _HISTOGRAM * n_background) + filling + cutting).sum()
    )
    row = float((leaves * _by_depth(trees, _LOOK_UP) + cuts * _CUT).sum() * width)
    wait = float(leaves.sum()) * _WAIT * width
    per_byte = _PER_BYTE[need > _IN_CACHE]
    build, scale = build * _UNIT * factors.build, _UNIT * factors.tables
    return TableCosts(len(trees), need, build, row * scale, wait * scale, per_byte * scale, factors)


def add_plans(plans: Sequence[TreePlan], reason: str) -> TreePlan:
    """Return the plan of several models that explain the same rows."""
    names = [name for plan in plans for name in plan.strategy.split("+")]
    numbers = {f.name: sum(getattr(plan, f.name) for plan in plans) for f in fields(TreePlan)[2:]}
    return TreePlan("+".join(dict.fromkeys(names)), reason, **numbers)


def make_plan(
    counts: tuple[int, int, int],
    tables: TableCosts,
    direct: DirectCosts,
    n_rows: int | None,
    seconds: float,
    reason: str,
) -> TreePlan:
    """Return the plan with these numbers of trees by tables, by streaming and by walking."""
    names = [name for name, n in zip(("tables", "stream", "walk"), counts, strict=True) if n]
    walk_row, streaming = math.nan, math.nan
    if n_rows is not None:
        walk_row, streaming = direct.walk_row, direct.stream(max(n_rows, 1))
    costs = (tables.bytes, tables.build, tables.row, walk_row, streaming)
    return TreePlan("+".join(names) or "walk", reason, *counts, *costs, seconds=seconds)
