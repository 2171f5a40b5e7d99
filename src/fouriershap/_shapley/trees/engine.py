"""`TreeEngine`: trees against a background (or by path, without one), by tables, by streaming or by walking."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import InputError
from fouriershap._base.parallel import count_jobs, enter, for_each_block
from fouriershap._shapley.engine import Contents, Floats, KeptPairs, Policy
from fouriershap._shapley.orders.sets import Keys
from fouriershap._shapley.tables import TableSet
from fouriershap._shapley.trees import stream, walk
from fouriershap._shapley.trees.compiled import CompiledTrees, check_capacity, compile_trees
from fouriershap._shapley.trees.files import trees_from_contents, trees_to_contents
from fouriershap._shapley.trees.model import Background, TreeModel, make_background
from fouriershap._shapley.trees.orders import TreeSets, make_sets
from fouriershap._shapley.trees.pairs import TreePairs, make_pairs
from fouriershap._shapley.trees.plan import (
    LEAST_BUILD,
    LooseCosts,
    TableCosts,
    TreePlan,
    describe,
    table_costs,
)
from fouriershap._trees.ensemble import TreeEnsemble

_ROWS_PER_JOB = 8192  # of predicting
_WALK_ROWS, _FEWEST_WALK_ROWS = 256, 16  # at a time
_WALK_SECONDS = 1.0  # of work that cannot be interrupted
_LOOK_UP_SECONDS = 0.5  # likewise
_CALL_BYTES = 16 << 20  # of rows in one call that looks up
_FEWEST_CALLS = 4  # for each thread, so that none waits long for the last
_FEW_LOOK_UPS = 32  # rows that read built tables sooner than a twig can be streamed
_TREE_PARTS = 8  # shares of the trees when there is but one block of rows
_WORTH_THREADS = 5e-3  # seconds of work below which a pool of threads costs more than it brings
_ALL_FIT = "every tree fits into tables, and looking up is cheaper than anything else"
_SOME_FIT = "{} trees are too deep for tables, or beyond the memory budget"
_NONE_FIT = "no tree fits into tables: paths with many features, or too little memory"
_NOT_WORTH = "building tables would cost more than the answer"
_BEYOND_CACHE = "so many rows are quicker without the tables, which outgrow the caches"
_ASKED_FOR = "asked for by method="
_ANY = 10**6  # rows, where their number is open


class TreeEngine:
    """Exact SHAP values of an ensemble against one background (see `Engine`); rows are cleaned.

    The tables are built when rows to explain are worth it: at once for many, else when the rows explained
    by walking have cost as much as the tables would. `build` builds them now.

    Parameters
    ----------
    model : TreeModel
    background : Background
    policy : Policy, optional
        What is built already.
    kept : KeptPairs, optional
        Interaction tables that are built already.
    expected : (n_outputs,) float64, optional
        Where it is known.
    device : {"cpu", "jax"}
    layout : Layout, optional
        That of the same model against another background.
    """

    def __init__(
        self,
        model: TreeModel,
        background: Background,
        policy: Policy[CompiledTrees] | None = None,
        kept: KeptPairs[TreePairs] | None = None,
        expected: Floats | None = None,
        device: str = "cpu",
        layout: Any = None,
    ) -> None:
        self.model, self.background, self.device = model, background, device
        self.policy = Policy() if policy is None else policy
        self._kept = KeptPairs() if kept is None else kept
        self._layout = layout
        if expected is not None:
            self.expected = expected
        if model.method == "stream" and background.rows is None:
            raise InputError("method='stream' needs a background; without one, use method='auto' or 'walk'.")
        if self.compiled is None and model.method == "tables":
            check_capacity(model, model.feasible)
            self.build()

    @property
    def compiled(self) -> CompiledTrees | None:
        """What is built."""
        return self.policy.built

    @property
    def tables(self) -> TableSet | None:
        """The tables, once they are built."""
        return None if self.compiled is None else self.compiled.tables

    @property
    def in_tables(self) -> NDArray[np.bool_]:
        """(n_trees,) bool: the trees that have tables; by estimate, where none are built yet."""
        return self.model.feasible if self.compiled is None else self.compiled.in_tables

    @property
    def ensemble(self) -> TreeEnsemble:
        return self.model.ensemble

    @property
    def n_players(self) -> int:
        return self.model.n_players

    @property
    def n_outputs(self) -> int:
        return self.model.ensemble.n_outputs

    @property
    def index(self) -> str:
        return self.model.index

    @cached_property
    def expected(self) -> Floats:
        """Mean raw output (n_outputs,) over the background, or by path without one."""
        compiled, e = self.compiled, self.ensemble
        if compiled is not None and compiled.in_tables.all():
            return np.asarray(e.base + compiled.expected)
        if self.background.rows is None:
            return np.asarray(e.base + _path_expected(e, self.model.walk_trees.ratio))
        predictions = self.predict(self.background.rows)
        return np.asarray(np.average(predictions, axis=0, weights=self.background.weights))

    def build(self, n_jobs: int | None = None) -> None:
        self.policy.build(lambda: compile_trees(self.model, self.background, self._layout, n_jobs))

    def to(self, device: str) -> TreeEngine:
        if device == "jax" and self.model.method in ("stream", "walk"):
            raise InputError(
                f"device='jax' reads tables, and method='{self.model.method}' has none; use method='auto'."
            )
        known = self.__dict__.get("expected")
        return TreeEngine(self.model, self.background, self.policy, self._kept, known, device, self._layout)

    def with_background(self, rows: NDArray[Any], weights: Floats | None) -> TreeEngine:
        """Only what the background touches is built again."""
        layout = self._layout if self.compiled is None else self.compiled.layout
        background = make_background(self.model, rows, weights)
        return TreeEngine(self.model, background, device=self.device, layout=layout)

    def plan(self, n_rows: int | None) -> TreePlan:
        tables, in_tables = self._table_costs, self.in_tables
        if self.background.is_lost:
            n_rows = None  # there is but one way
        by_tables = bool(in_tables.any())
        if n_rows is not None and by_tables:
            by_tables = (
                self._saves(n_rows) > tables.build if self.compiled is None else self._looks_up(n_rows)
            )
        loose = ~in_tables if by_tables else np.ones_like(in_tables)
        road = self._road(replace(self._loose, which=loose), _ANY if n_rows is None else max(n_rows, 1))[0]
        streamed = loose & self.model.twigs.serves if road == "stream" else np.zeros_like(loose)
        counts = (int((~loose).sum()), int(streamed.sum()), int((loose & ~streamed).sum()))
        return describe(counts, tables, self._loose, n_rows, self._reason(by_tables, int(loose.sum())))

    def _reason(self, by_tables: bool, n_loose: int) -> str:
        if by_tables:
            return _SOME_FIT.format(n_loose) if n_loose else _ALL_FIT
        if self.model.method in ("stream", "walk"):
            return _ASKED_FOR
        if not self.in_tables.any():
            return _NONE_FIT
        return _NOT_WORTH if self.compiled is None else _BEYOND_CACHE

    @cached_property
    def _loose(self) -> LooseCosts:
        """What all trees cost without tables."""
        n_background = None if self.background.rows is None else len(self.background.rows)
        doubled = self.model.dtype.itemsize == 8
        return LooseCosts(self.model.profile[:, 0], n_background, self.background, doubled)

    def _without(self, in_tables: NDArray[np.bool_]) -> LooseCosts:
        return replace(self._loose, which=~in_tables)

    @cached_property
    def _table_costs(self) -> TableCosts:
        """Of the trees that should fit."""
        n_background = 0 if self.background.rows is None else len(self.background.rows)
        sizes = (self.ensemble.values.shape[1], self.model.dtype.itemsize)
        return table_costs(self.model.profile[self.in_tables], n_background, *sizes)

    @cached_property
    def _feasible_costs(self) -> LooseCosts:
        """Of the same without tables."""
        feasible = self.model.feasible
        return self._loose if feasible.all() else replace(self._loose, which=feasible)

    def _road(self, costs: LooseCosts, n_rows: int) -> tuple[str, float]:
        """How to explain without tables, and the seconds that it takes."""
        method = self.model.method
        if method == "walk":
            most = costs.most_walk(n_rows)  # which needs no look at the rows
            return "walk", most if most < _WORTH_THREADS else costs.walk(n_rows)
        return ("stream", costs.stream(n_rows)) if method == "stream" else costs.rent(n_rows)

    def _saves(self, n_rows: int) -> float:
        """Seconds that tables would save for so many rows, at most."""
        return self._feasible_costs.rent(n_rows)[1] - self._table_costs.look_up(n_rows)

    def _worth_building(self, n_rows: int) -> bool:
        """Whether what was spent without tables, this call included, has cost as much as they would."""
        if self._is_small(n_rows):
            return False
        if not self.model.feasible.any():
            return False
        tables, loose = self._table_costs, self._feasible_costs
        road, seconds = loose.rent(n_rows)
        if road == "walk":
            call = loose.walk_call(n_rows)
            if not loose.is_cheap(n_rows):
                call = seconds - n_rows * loose.walk_row  # without its rows, which are looked at in the end
            rows, spared = self.policy.rent(n_rows, call)
        else:
            rows, spared = self.policy.rent(0, max(seconds - tables.look_up(n_rows), 0.0))
        # Where it would not pay even if every pair of rows visited every leaf, there is no need to look closer.
        if rows * loose.most_walk_row + spared <= tables.build:
            return False
        return rows * max(loose.walk_row - tables.look_up(n_rows) / n_rows, 0.0) + spared > tables.build

    def _is_small(self, n_rows: int) -> bool:
        """Whether all calls so far and this one cost less than any tables, if they are walked: noted, if so."""
        loose = self._loose
        call, (rows, spared) = loose.walk_call(n_rows), self.policy.rent(0)
        if (rows + n_rows) * loose.most_walk_row + spared + call > LEAST_BUILD:
            return False
        self.policy.rent(n_rows, call)
        return True

    def _looks_up(self, n_rows: int) -> bool:
        """Whether built tables are quicker than streaming the same trees: large ones come from memory."""
        if n_rows <= _FEW_LOOK_UPS or self.model.method == "tables":
            return True
        if self.background.rows is None or self.background.is_lost:
            return True
        tables = self._table_costs
        looking = tables.look_up(n_rows)
        if self.device == "jax" or looking <= self._loose.least_stream:
            return True
        return looking <= replace(self._loose, which=self.in_tables).stream(n_rows)

    def _ready(self, n_rows: int, n_jobs: int | None) -> CompiledTrees | None:
        """The tables, built if that pays; None where none are to be read."""
        if self.compiled is None and (self.device == "jax" or self._worth_building(n_rows)):
            self.build(n_jobs)
        compiled = self.compiled
        return None if compiled is None or compiled.tables is None or not self._looks_up(n_rows) else compiled

    def shap_values(
        self, rows: NDArray[Any], n_jobs: int | None = None, outputs: Floats | None = None
    ) -> Floats:
        out = np.zeros((len(rows), self.n_players, self.n_outputs))
        if not len(rows):
            return out
        compiled = self._ready(len(rows), n_jobs)
        loose = compiled is None or compiled.rest is not None
        codes = self.model.coded.book.encode(rows) if loose else None  # without tables trees take all of them
        if compiled is not None:
            self._look_up(compiled, rows, codes, out, outputs, n_jobs)
        if codes is not None:
            self._without_tables(compiled, codes, out, n_jobs)
            if compiled is None and outputs is not None:
                self._predict(codes, outputs, n_jobs)
        return out

    def _without_tables(
        self, compiled: CompiledTrees | None, codes: NDArray[np.int32], out: Floats, n_jobs: int | None
    ) -> None:
        """Stream or walk the trees that have no tables, all of them where there are none."""
        costs = self._loose if compiled is None else self._without(compiled.in_tables)
        road, seconds = self._road(costs, len(out))
        if road == "stream":
            ready = self.model.stream_trees if compiled is None else compiled.rest_streamed
            assert self.background.codes is not None
            stream.interventional(
                ready,
                codes,
                self.background.codes,
                self.background.weights,
                index=self.index,
                single=self.model.dtype.itemsize == 4,
                seconds=seconds,
                out=out,
                n_jobs=n_jobs,
            )
            left = ready.others
        else:
            walked = self.model.walk_trees if compiled is None else compiled.rest
            left = () if walked is None else (walked,)
        for walked in left:
            self._walk(walked, codes, out, seconds, n_jobs)

    def _look_up(
        self,
        compiled: CompiledTrees,
        rows: NDArray[Any],
        codes: NDArray[np.int32] | None,
        out: Floats,
        outputs: Floats | None,
        n_jobs: int | None,
    ) -> None:
        """Read the tables; rows are encoded block by block, once, unless codes of all features are there."""
        book, tables = self.model.coded.book, compiled.tables
        assert tables is not None
        reader = tables if self.device == "cpu" else compiled.under_xla

        def look_up(first: int, last: int) -> None:
            part = rows[first:last]
            if codes is None and outputs is None:
                reader.add(book.encode_columns(part, *compiled.columns), out[first:last])
                return
            mine = book.encode(part) if codes is None else np.ascontiguousarray(codes[:, first:last])
            reader.add(book.to_columns(mine, *compiled.columns), out[first:last])
            if outputs is not None:
                self._predict(mine, outputs[first:last], 1)

        enter("looking up")
        # XLA has threads of its own.
        rows_per_call = self._rows_per_call(tables, rows, n_jobs) if self.device == "cpu" else len(rows)
        for_each_block(look_up, len(rows), rows_per_call, n_jobs)

    def _rows_per_call(self, tables: TableSet, rows: NDArray[Any], n_jobs: int | None) -> int:
        """Rows that are looked up at a time: several of the kernel's blocks, which share its memory.

        Where freed memory goes back to the system at once, as on Dask's workers, memory for each block anew would
        cost a third of the look-ups. A row's values do not depend on the rows beside it.
        """
        block, jobs = tables.rows_per_block, count_jobs(n_jobs)
        seconds, n_bytes = self._table_costs.look_up(block), max(rows[:1].nbytes, 1) * block
        n_blocks = min(_CALL_BYTES // n_bytes, int(_LOOK_UP_SECONDS / max(seconds, 1e-9)))
        if jobs > 1:
            n_blocks = min(n_blocks, len(rows) // (block * jobs * _FEWEST_CALLS))
        return block * max(n_blocks, 1)

    def _walk(
        self,
        trees: walk.WalkTrees,
        codes: NDArray[np.int32],
        out: Floats,
        seconds: float,
        n_jobs: int | None,
    ) -> None:
        background, n_rows = self.background, len(out)
        enter("walking")
        lean = (
            trees.drop_last_output if trees.n_outputs == out.shape[2] else trees
        )  # what was cut off is lean already
        is_whole = lean.n_outputs == out.shape[2]
        values = out if is_whole else np.zeros((*out.shape[:2], lean.n_outputs))

        def walk_part(part: walk.WalkTrees, which: slice, into: Floats) -> None:
            if background.codes is None:
                walk.path_dependent(part, codes, index=self.index, rows=which, out=into)
            else:
                others = (background.codes, background.weights)
                walk.interventional(part, codes, *others, index=self.index, rows=which, out=into)

        if n_rows > _WALK_ROWS or trees.n_trees < 2 or seconds < _WORTH_THREADS:
            block = min(max(int(_WALK_SECONDS * n_rows / max(seconds, 1e-9)), _FEWEST_WALK_ROWS), _WALK_ROWS)
            for_each_block(
                lambda first, last: walk_part(lean, slice(first, last), values), n_rows, block, n_jobs
            )
        else:
            self._walk_in_parts(lean, walk_part, values, n_jobs)
        if not is_whole:
            walk.add_dropped(values, out)

    @staticmethod
    def _walk_in_parts(
        trees: walk.WalkTrees, walk_part: Callable[..., None], out: Floats, n_jobs: int | None
    ) -> None:
        """One block of rows: the trees are shared out instead, and the parts added in a fixed order."""
        bounds = np.linspace(0, trees.n_trees, min(_TREE_PARTS, trees.n_trees) + 1).astype(int)
        sums = np.zeros((len(bounds) - 1, *out.shape))

        def share(k: int, _: int) -> None:
            walk_part(trees.part(slice(bounds[k], bounds[k + 1])), slice(None), sums[k])

        for_each_block(share, len(sums), 1, n_jobs)
        for part in sums:
            out += part

    def predict(self, rows: NDArray[Any], n_jobs: int | None = None, trees: slice = slice(None)) -> Floats:
        """Raw output (n_rows, n_outputs), by all trees or some."""
        out = np.empty((len(rows), self.n_outputs))
        for first in range(0, len(rows), _ROWS_PER_JOB * 16):  # so that codes do not outgrow the rows
            part = slice(first, first + _ROWS_PER_JOB * 16)
            self._predict(self.model.coded.book.encode(rows[part]), out[part], n_jobs, trees)
        return out

    def _predict(
        self, codes: NDArray[np.int32], out: Floats, n_jobs: int | None, trees: slice = slice(None)
    ) -> None:
        walked = self.model.walk_trees
        if trees != slice(None):
            walked = walked.part(trees)
        out[:] = self.ensemble.base

        def work(first: int, last: int) -> None:
            walk.predict(walked, codes, rows=slice(first, last), out=out)

        for_each_block(work, len(out), _ROWS_PER_JOB, n_jobs)

    def pairs(self, wanted: NDArray[np.int64] | None, n_jobs: int | None = None) -> TreePairs:
        def make() -> TreePairs:
            if self.background.is_lost:
                raise InputError(
                    "this explainer was loaded from a file that has no interaction tables, and the background is "
                    "not in it. Save it with explainer.save(path, interactions=True)."
                )
            layout = self._layout if self.compiled is None else self.compiled.layout
            return make_pairs(self.model, self.background, layout, wanted, n_jobs)

        return self._kept.get(wanted, make)

    def sets(self, index: str, order: int, wanted: Keys | None) -> TreeSets:
        """See `HigherOrders`."""
        return make_sets(self.model, self.background, index, order, wanted)

    def describe(self) -> dict[str, Any]:
        e, compiled = self.ensemble, self.compiled
        tables = None if compiled is None else compiled.tables
        return {
            "kind": e.kind,
            "n_trees": e.n_trees,
            "n_leaves": e.n_leaves,
            "degrees": self.model.profile[:, 2].astype(np.int64),
            "n_tables": 0 if tables is None else tables.n_tables,
            "table_bytes": 0 if tables is None else tables.nbytes,
            "n_without_table": int((~self.in_tables).sum()),
            "by_path": self.background.rows is None,
            "n_background": self.background.n_rows,
        }

    def to_contents(self, interactions: bool, background: bool = False) -> Contents:
        """The background is kept where some tree has no table, or ``background`` is set."""
        self.build()
        pairs = self.pairs(None) if interactions else None
        assert self.compiled is not None
        return trees_to_contents(self.model, self.background, self.compiled, self.expected, pairs, background)

    @classmethod
    def from_contents(cls, arrays: dict[str, NDArray[Any]], header: dict[str, Any]) -> TreeEngine:
        """The inverse of `to_contents`."""
        stored = trees_from_contents(arrays, header)
        policy, kept = Policy(stored.compiled), KeptPairs(stored.pairs)
        return cls(stored.model, stored.background, policy, kept, stored.expected)


def _path_expected(e: TreeEnsemble, ratio: Floats) -> Floats:
    """Mean output where every row goes down a tree as the training rows did; ``ratio`` as in `WalkTrees`."""
    share = np.ones(e.n_nodes)
    level = e.roots
    while len(level):
        inner = level[e.feature[level] >= 0]
        share[e.left[inner]] = share[inner] * ratio[e.left[inner]]
        share[e.right[inner]] = share[inner] * ratio[e.right[inner]]
        level = np.concatenate([e.left[inner], e.right[inner]])
    leaves = np.flatnonzero(e.feature < 0)
    return e.sum_by_output(leaves, share[leaves])
