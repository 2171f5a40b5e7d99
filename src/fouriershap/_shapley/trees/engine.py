"""`TreeEngine`: an ensemble and a background, compiled when that pays, ready to explain."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import CapacityError, InputError
from fouriershap._base.parallel import for_each_block
from fouriershap._shapley.jax import need_jax, put_tables
from fouriershap._shapley.tables import TableSet
from fouriershap._shapley.trees import walk
from fouriershap._shapley.trees.blocks import TreeBlocks, build_blocks, fill_tables
from fouriershap._shapley.trees.pairs import PairTrees, TreePairs, make_pairs
from fouriershap._shapley.trees.plan import (
    MOST_DEPTH,
    MOST_FEATURES,
    MOST_FEATURES_OF_PAIRS,
    TreePlan,
    feasible_trees,
    plan_trees,
    profile,
    walk_seconds,
)
from fouriershap._trees.codes import CodedTrees, Columns, code_trees
from fouriershap._trees.ensemble import TreeEnsemble

_PREDICT_ROWS = 8192  # rows per job
_WALK_ROWS = 256
_TREE_PARTS = 8  # shares of the trees when there is but one block of rows
_LARGE_FOREST = 20_000  # leaves beyond which even the estimate would cost something
_WORTH_THREADS = 3e-3  # seconds of work below which a pool of threads costs more than it brings

# What does not depend on the background: the trees on codes, their profile, which go into tables, the blocks.
_Shared = tuple[CodedTrees, NDArray[np.float64], NDArray[np.bool_], TreeBlocks | None]


class TreeEngine:
    """Exact SHAP values of an ensemble against one background (or by path, without one).

    The tables are built when rows to explain are worth it: at once for many, else when the rows explained
    by walking have cost as much as the tables would. `compile` builds them now.

    Parameters
    ----------
    ensemble : TreeEnsemble
    player : (n_features,) int32
        Player that owns each feature, numbered from 0 without gaps.
    background : (n_background, n_features), or None for path-dependent values
        Cleaned rows (`TreeEnsemble.clean_rows`).
    weights : (n_background,) float64 that sum to 1, or None for equal ones
    memory : int
        Budget of the tables in bytes.
    dtype : float32 or float64
        Precision of the tables; totals are float64 either way.
    method : {"auto", "tables", "walk"}
    index : {"shapley", "banzhaf"}
    """

    def __init__(
        self,
        ensemble: TreeEnsemble,
        player: NDArray[np.int32],
        background: NDArray[Any] | None,
        weights: NDArray[np.float64] | None,
        memory: int,
        dtype: np.dtype[Any],
        method: str = "auto",
        index: str = "shapley",
        _shared: _Shared | None = None,
    ) -> None:
        self.ensemble, self.player = ensemble, player
        self.background, self.weights = background, weights
        self.n_background = None if background is None else len(background)
        self.memory, self.dtype, self.method = memory, np.dtype(dtype), method
        self.index = index
        self.n_players = int(player.max(initial=-1)) + 1
        if _shared is None:
            coded = code_trees(ensemble)
            trees = profile(coded)
            feasible = feasible_trees(coded, trees, memory, self.dtype.itemsize)
            _shared = (coded, trees, np.zeros_like(feasible) if method == "walk" else feasible, None)
        self.coded, self._profile, self._feasible, self._blocks = _shared
        self._check_feasible()
        self._tables: TableSet | None = None
        self._columns = Columns(np.empty(0, dtype=np.int32), None)
        self._table_expected = np.zeros(ensemble.n_outputs)
        self._walked_rows = 0
        self._lock = threading.RLock()
        self._cache: dict[str, Any] = {}
        self.device = "cpu"
        if method == "tables":
            self.compile()

    def _check_feasible(self) -> None:
        if self.method == "tables" and not self._feasible.all():
            raise CapacityError(
                f"{int((~self._feasible).sum())} of {self.ensemble.n_trees} trees do not fit into tables (at most "
                f"{MOST_FEATURES} features and {MOST_DEPTH} splits on a path, and {self.memory:,} bytes in all). Raise "
                "`memory`, or use method='auto', which explains them by walking."
            )

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            kept = {name: value for name, value in self._cache.items() if name in ("expected", "pairs")}
            return {k: v for k, v in self.__dict__.items() if k != "_lock"} | {"_cache": kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()

    # What is built once, when it is first needed

    def _cached(self, name: str, make: Any) -> Any:
        with self._lock:
            if name not in self._cache:
                self._cache[name] = make()
            return self._cache[name]

    def _walk_trees(self, all_trees: bool) -> walk.WalkTrees:
        def make() -> walk.WalkTrees:
            coded = self.coded if all_trees else self.coded.select(~self._feasible)
            return walk.prepare(coded, self.player, self.n_players)

        return self._cached("walk all" if all_trees else "walk rest", make)  # type: ignore[no-any-return]

    def _background_codes(self) -> NDArray[np.int32]:
        return self._cached("background", lambda: self.coded.book.encode(self.background))  # type: ignore

    def _visits(self) -> NDArray[np.float64] | None:
        if self.background is None:
            return None

        def make() -> NDArray[np.float64]:
            codes = self._background_codes()
            return walk.leaf_visits(self._walk_trees(True), codes, codes)

        return self._cached("visits", make)  # type: ignore[no-any-return]

    def plan(self, n_rows: int | None) -> TreePlan:
        """How ``n_rows`` rows would be explained now; None for any number."""
        if self._tables is not None:
            n_rows = None  # what is built is used
        n_background = 0 if self.background is None else len(self.background)
        width = self.ensemble.values.shape[1]
        visits = None if n_rows is None else self._visits()
        if n_rows is None and self.background is not None:
            visits = np.full(self.ensemble.n_trees, np.nan)
        sizes = (width, self.dtype.itemsize)
        return plan_trees(self._profile, self._feasible, visits, n_background, n_rows, *sizes)

    @property
    def tables(self) -> TableSet | None:
        """The tables, once they are built."""
        return self._tables

    def compile(self, n_jobs: int | None = None) -> None:
        """Build the tables of all trees that fit, if they are not built yet."""
        with self._lock:
            if self._tables is not None or not self._feasible.any():
                return
            if self._blocks is None:
                self._blocks = self._build_blocks()
                if self._blocks is None:
                    return
            coded = self.coded.select(self._feasible)
            codes = None
            if self.background is not None:
                codes = self.coded.book.encode_columns(self.background, *self._blocks.columns)
            filled = fill_tables(self._blocks, coded, codes, self.weights, self.dtype, n_jobs, self.index)
            self._columns, self._table_expected = self._blocks.columns, filled[1]
            self._tables = filled[0]  # last: other threads look for it without the lock

    def _build_blocks(self) -> TreeBlocks | None:
        """Blocks of the feasible trees; where they outgrow the budget, of those that fit, smallest first."""
        while self._feasible.any():
            blocks = build_blocks(self.coded.select(self._feasible), self.player, self.n_players)
            sizes = blocks.tree_values * self.dtype.itemsize
            if sizes.sum() <= self.memory:
                return blocks
            order = np.argsort(sizes, kind="stable")
            fits = order[np.cumsum(sizes[order]) <= self.memory]
            feasible = np.zeros_like(self._feasible)
            feasible[np.flatnonzero(self._feasible)[fits]] = True
            self._feasible = feasible
            self._check_feasible()
        return None

    def move(self, device: str) -> None:
        """Explain with the native kernels ("cpu") or under XLA ("jax"), which walks no tree that has a table."""
        if device == "jax":
            need_jax("device='jax'")
        self.device = device

    def _on_device(self, tables: TableSet) -> Any:
        """What adds up the table entries. Totals are at least as precise as the tables."""
        if self.device == "cpu":
            return tables
        precision = "double" if self.dtype.itemsize == 8 else None
        return self._cached("jax", lambda: put_tables(tables, precision))

    def compiled_state(self) -> tuple[TableSet, Columns, NDArray[np.float64]] | None:
        """What a file keeps of the tables: they, the columns of their codes, their expected output."""
        return None if self._tables is None else (self._tables, self._columns, self._table_expected)

    def restore(
        self,
        state: tuple[TableSet, Columns, NDArray[np.float64]] | None,
        feasible: NDArray[np.bool_],
        expected: NDArray[np.float64],
    ) -> None:
        """Take what a file kept in place of compiling."""
        self._feasible = feasible
        self._cache["expected"] = expected
        if state is not None:
            self._tables, self._columns, self._table_expected = state

    def _use_tables(self, n_rows: int, n_jobs: int | None) -> bool:
        if self._tables is not None:
            return True
        if self.device == "jax":
            self.compile(n_jobs)
            return self._tables is not None
        with self._lock:
            # Rent until renting has cost the price: never more than twice the best in hindsight.
            self._walked_rows += n_rows
            if not self._feasible.any() or self._surely_walk(self._walked_rows):
                return False
            if self.plan(self._walked_rows).method == "walk":
                return False
        self.compile(n_jobs)
        return True

    def _surely_walk(self, n_rows: int) -> bool:
        """Whether walking would pay even if every pair of rows visited every leaf: no need to look closer."""
        if self.background is None:
            return False
        most = self._profile[:, 0]
        width = self.ensemble.values.shape[1]
        n_background = len(self.background)
        return plan_trees(self._profile, self._feasible, most, n_background, n_rows, width).method == "walk"

    # What it is for

    def shap_values(self, rows: NDArray[Any], n_jobs: int | None = None) -> NDArray[np.float64]:
        """(n_rows, n_players, n_outputs) of cleaned rows (n_rows, n_features)."""
        out = np.zeros((len(rows), self.n_players, self.ensemble.n_outputs))
        if not len(rows):
            return out
        use_tables = self._use_tables(len(rows), n_jobs)
        if use_tables and self._tables is not None:
            tables, columns = self._on_device(self._tables), self._columns

            def look_up(first: int, last: int) -> None:
                tables.add(self.coded.book.encode_columns(rows[first:last], *columns), out[first:last])

            if self.device == "cpu":
                for_each_block(look_up, len(rows), self._tables.rows_per_block, n_jobs)
            else:
                look_up(0, len(rows))  # XLA has threads of its own
        if not use_tables or not self._feasible.all():
            self._walk(self._walk_trees(not use_tables), rows, out, n_jobs)
        return out

    def _walk(
        self, trees: walk.WalkTrees, rows: NDArray[Any], out: NDArray[np.float64], n_jobs: int | None
    ) -> None:
        codes = self.coded.book.encode(rows)
        background = None if self.background is None else self._background_codes()

        def walk_part(part: walk.WalkTrees, which: slice, into: NDArray[np.float64]) -> None:
            if background is None:
                walk.path_dependent(part, codes, index=self.index, rows=which, out=into)
            else:
                share = self.weights
                walk.interventional(part, codes, background, share, index=self.index, rows=which, out=into)

        if len(rows) > _WALK_ROWS or trees.n_trees < 2 or self._seconds(len(rows)) < _WORTH_THREADS:
            for_each_block(
                lambda first, last: walk_part(trees, slice(first, last), out), len(rows), _WALK_ROWS, n_jobs
            )
            return
        # One block of rows: the trees are shared out instead, and the parts added in a fixed order.
        bounds = np.linspace(0, trees.n_trees, min(_TREE_PARTS, trees.n_trees) + 1).astype(int)
        sums = np.zeros((len(bounds) - 1, *out.shape))
        for_each_block(
            lambda k, _: walk_part(trees.part(bounds[k], bounds[k + 1]), slice(None), sums[k]),
            len(sums),
            1,
            n_jobs,
        )
        for part in sums:
            out += part

    def _seconds(self, n_rows: int) -> float:
        """Estimated time of walking all trees for so many rows, on one core; infinite for large forests."""
        if self.ensemble.n_leaves > _LARGE_FOREST:
            return float("inf")
        n_background = 0 if self.background is None else len(self.background)
        if self.background is not None:
            most = n_rows * walk_seconds(self._profile, self._profile[:, 0], n_background)
            if most < _WORTH_THREADS:  # even if every leaf were visited
                return 0.0
        return n_rows * walk_seconds(self._profile, self._visits(), n_background)

    def interactions(self, wanted: NDArray[np.int64] | None, n_jobs: int | None = None) -> TreePairs:
        """What gives the interactions of the pairs with these keys, None for all; kept until others are wanted."""
        with self._lock:
            kept: tuple[NDArray[np.int64] | None, TreePairs] | None = self._cache.get("pairs")
            if kept is not None:
                keys, pairs = kept
                if keys is None or (wanted is not None and np.isin(wanted, keys).all()):
                    return pairs
            if self.background is not None and not len(self.background):
                raise InputError(
                    "this explainer was loaded from a file that has no interaction tables, and the background is "
                    "not in it. Save it with explainer.save(path, interactions=True)."
                )
            made = make_pairs(self.pair_trees, *self._pair_blocks(), wanted, n_jobs)
            self._cache["pairs"] = (wanted, made)
            return made

    def _pair_blocks(self) -> tuple[NDArray[np.bool_], TreeBlocks | None]:
        """The trees whose pairs go into tables, and their blocks: those of the values, where all these trees do."""
        shallow = self._feasible & (self._profile[:, 2] <= MOST_FEATURES_OF_PAIRS)
        if not shallow.any():
            return shallow, None
        if not (shallow == self._feasible).all():
            return shallow, build_blocks(self.coded.select(shallow), self.player, self.n_players)
        if self._blocks is None:
            self._blocks = self._build_blocks()
        return self._feasible, self._blocks

    def restore_pairs(self, pairs: TreePairs) -> None:
        """Take the interactions of all pairs from a file."""
        self._cache["pairs"] = (None, pairs)

    @property
    def walk_trees(self) -> walk.WalkTrees:
        """All trees, ready to be walked."""
        return self._walk_trees(True)

    @property
    def background_codes(self) -> NDArray[np.int32]:
        """(n_features, n_background)."""
        return self._background_codes()

    @property
    def pair_trees(self) -> PairTrees:
        parts = (self.coded, self.player, self.background, self.weights)
        return PairTrees(*parts, self.memory, self.dtype, self.index)

    def predict(self, rows: NDArray[Any], n_jobs: int | None = None) -> NDArray[np.float64]:
        """Raw output (n_rows, n_outputs) of cleaned rows."""
        out = np.tile(self.ensemble.base, (len(rows), 1))
        trees = self._walk_trees(True)

        def work(first: int, last: int) -> None:
            walk.predict(trees, self.coded.book.encode(rows[first:last]), out=out[first:last])

        for_each_block(work, len(rows), _PREDICT_ROWS, n_jobs)
        return out

    @property
    def expected_value(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Mean raw output (n_outputs,) over the background, or by path without one."""

        def make() -> NDArray[np.float64]:
            if self._tables is not None and self._feasible.all():
                return self.ensemble.base + self._table_expected
            if self.background is None:
                return self.ensemble.base + _path_expected(self.ensemble, self._walk_trees(True).ratio)
            predictions = self.predict(self.background)
            return np.asarray(np.average(predictions, axis=0, weights=self.weights))

        return self._cached("expected", make)  # type: ignore[no-any-return]

    def with_background(
        self, background: NDArray[Any] | None, weights: NDArray[np.float64] | None
    ) -> TreeEngine:
        """The same trees against another background; only what it touches is built again."""
        with self._lock:
            shared = (self.coded, self._profile, self._feasible, self._blocks)
        settings = (self.memory, self.dtype, self.method, self.index)
        other = TreeEngine(self.ensemble, self.player, background, weights, *settings, _shared=shared)
        other.device = self.device
        return other


def _path_expected(e: TreeEnsemble, ratio: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean output where every row goes down a tree as the training rows did; ``ratio`` as in `WalkTrees`."""
    share = np.ones(e.n_nodes)
    level = e.roots
    while len(level):
        inner = level[e.feature[level] >= 0]
        share[e.left[inner]] = share[inner] * ratio[e.left[inner]]
        share[e.right[inner]] = share[inner] * ratio[e.right[inner]]
        level = np.concatenate([e.left[inner], e.right[inner]])
    leaves = np.flatnonzero(e.feature < 0)
    shares = share[leaves, None] * e.values[leaves]
    if e.values.shape[1] == e.n_outputs:
        return np.asarray(shares.sum(axis=0))
    output = e.tree_output[e.tree_of_node[leaves]]
    return np.bincount(output, shares[:, 0], minlength=e.n_outputs).astype(np.float64)
