"""`TreeEngine`: trees against a background (or path-dependent, without one), by tables, streaming or walking."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import InputError
from fouriershap._base.messages import truncated_repr
from fouriershap._base.parallel import count_jobs, cpu_seconds, enter, for_each_block, warn_if_long
from fouriershap._shapley.engine import BackgroundRows, BaseEngine, Contents, EngineInfo, Floats, PageLookup
from fouriershap._shapley.indices import MAIN_EFFECT, Index, InteractionIndex, title
from fouriershap._shapley.lookups import TableLookup, table_lookup
from fouriershap._shapley.means import PlayerSets, means_by_effects
from fouriershap._shapley.outputs.kinds import Output, Raw
from fouriershap._shapley.policy import BuildPolicy, LastPairs
from fouriershap._shapley.sets import InteractionEngine, Keys, lost_background
from fouriershap._shapley.tables import TableSet
from fouriershap._shapley.trees import stream, walk
from fouriershap._shapley.trees.choice import WORTH_THREADS, Choice
from fouriershap._shapley.trees.compiled import (
    CompiledTrees,
    compile_trees,
    without_tables,
)
from fouriershap._shapley.trees.files import trees_from_contents, trees_to_contents
from fouriershap._shapley.trees.leaves import leaf_lookup
from fouriershap._shapley.trees.model import Background, TreeModel, check_capacity, make_background
from fouriershap._shapley.trees.pairs import TreePairs, make_pairs
from fouriershap._shapley.trees.plan import TreePlan
from fouriershap._shapley.trees.sets import make_sets
from fouriershap._trees.ensemble import TreeEnsemble

_ROWS_PER_JOB = 8192  # of predicting
_WALK_ROWS, _FEWEST_WALK_ROWS = 256, 16  # at a time
_WALK_SECONDS = 1.0  # of work that cannot be interrupted
_LOOK_UP_SECONDS = 0.5  # likewise
_CALL_BYTES = 16 << 20  # of rows in one call that looks up
_FEWEST_CALLS = 4  # for each thread, so that none waits long for the last
_TREE_PARTS = 8  # shares of the trees where there is one block of rows
FILE_TABLES = 500_000_000  # bytes of tables that a file holds
_FILE_SLACK = 4  # tables estimated larger than this many times that are not built for a file
_ESTIMATE_SLACK = 24  # tables estimated larger than this many budgets are not built for a page


class TreeEngine(BaseEngine):
    """Exact SHAP values of an ensemble against one background (see `Engine`); rows are cleaned.

    Tables are built when they pay: at once for many rows, else when calls without them have cost as much as the tables
    would. `build` builds them now.

    Parameters
    ----------
    model : TreeModel
    background : Background
    policy : BuildPolicy, optional
        What is built already.
    last_pairs : LastPairs, optional
        Interaction tables that are built already.
    expected : (n_outputs,) float64, optional
        Where it is known.
    device : {"cpu", "jax"}
    output : Output, optional
        By default `Raw`; another name for it, where the raw output is what that means.
    """

    def __init__(
        self,
        model: TreeModel,
        background: Background,
        policy: BuildPolicy[CompiledTrees] | None = None,
        last_pairs: LastPairs[TreePairs] | None = None,
        expected: Floats | None = None,
        device: str = "cpu",
        output: Output | None = None,
    ) -> None:
        self.model, self.tree_background, self.device = model, background, device
        self.output = Raw(model.link) if output is None else output
        self.policy = BuildPolicy() if policy is None else policy
        self.choice = Choice(model, background, self.policy, device)
        self._last_pairs = LastPairs() if last_pairs is None else last_pairs
        if expected is not None:
            self.expected = expected
        if model.strategy == "stream" and background.rows is None:
            raise InputError(
                "strategy='stream' needs a background; without one, use strategy='auto' or 'walk'."
            )
        if model.index.subgames and (model.strategy == "stream" or background.rows is None):
            raise InputError(
                f"{title(model.index)} need a background, and strategy='auto', 'tables' or 'walk'; got "
                f"strategy={truncated_repr(model.strategy)}"
                + (" and no background, or path-dependent values." if background.rows is None else ".")
            )
        if self.compiled is None and model.strategy == "tables":
            check_capacity(model, model.feasible)
            self.build()

    @property
    def compiled(self) -> CompiledTrees | None:
        """Compiled trees; None until they are built."""
        return self.policy.built

    @property
    def tables(self) -> TableSet | None:
        """The tables, once they are built."""
        return None if self.compiled is None else self.compiled.tables

    @property
    def in_tables(self) -> NDArray[np.bool_]:
        """(n_trees,) bool: the trees that have tables; by estimate, where none are built yet."""
        return self.choice.in_tables

    @property
    def representation(self) -> TreeEnsemble:
        return self.model.ensemble

    @property
    def player(self) -> NDArray[np.int32]:
        """(n_features,) int32: the player that owns each column of rows."""
        return self.model.player

    @property
    def n_players(self) -> int:
        return self.model.n_players

    @property
    def n_outputs(self) -> int:
        return self.model.ensemble.n_outputs

    @property
    def index(self) -> Index:
        return self.model.index

    @property
    def background(self) -> BackgroundRows | None:
        rows = self.tree_background.rows
        return None if rows is None or not len(rows) else BackgroundRows(rows, self.tree_background.weights)

    @cached_property
    def expected(self) -> Floats:
        """Mean raw output (n_outputs,) over the background, or by path without one."""
        compiled, e, background = self.compiled, self.model.ensemble, self.tree_background
        if compiled is not None and compiled.in_tables.all():
            return np.asarray(e.base + compiled.expected)
        if background.rows is None:
            return np.asarray(e.base + _path_expected(e, self.model.walk_trees.ratio))
        return np.asarray(np.average(self.predict(background.known_rows), axis=0, weights=background.weights))

    @property
    def info(self) -> EngineInfo:
        e, tables, background = self.model.ensemble, self.tables, self.tree_background
        return EngineInfo(
            kind="trees",
            n_background=background.n_rows,
            is_path_dependent=background.rows is None,
            model=self.model.kind,
            n_trees=e.n_trees,
            n_leaves=e.n_leaves,
            n_tables=0 if tables is None else tables.n_tables,
            table_bytes=0 if tables is None else tables.nbytes,
            n_without_table=int((~self.in_tables).sum()),
            degrees=self.model.profile[:, 2].astype(np.int64),
        )

    @property
    def outline(self) -> EngineInfo:
        """The facts for which nothing needs to be compiled: all of them."""
        return self.info

    def build(self, n_jobs: int = -1) -> None:
        self.policy.build(lambda: self._compile(n_jobs))

    def _compile(self, n_jobs: int) -> CompiledTrees:
        begin, is_first = cpu_seconds(), "layout" not in vars(self.model)
        compiled = compile_trees(self.model, self.tree_background, n_jobs)
        if is_first:
            self.choice.learn("build", 0, cpu_seconds() - begin)
        return compiled

    def _sharing(self, device: str, output: Output) -> Self:
        """Return an engine that shares everything that is built."""
        shared = (self.policy, self._last_pairs, self.__dict__.get("expected"))
        return type(self)(self.model, self.tree_background, *shared, device, output)

    def to(self, device: str) -> Self:
        if device == "jax" and self.model.strategy in ("stream", "walk"):
            raise InputError(
                f"device='jax' reads tables, which strategy='{self.model.strategy}' does not build; use "
                "strategy='auto'."
            )
        return self._sharing(device, self.output)

    def named(self, output: Output) -> TreeEngine:
        """Return the same, with another name for its raw output."""
        return self._sharing(self.device, output)

    def with_background(self, rows: NDArray[Any], weights: Floats | None) -> TreeEngine:
        """Return the same trees against other rows; only what depends on the background is built again."""
        background = make_background(self.model, rows, weights)
        return TreeEngine(self.model, background, device=self.device, output=self.output)

    def plan(self, n_rows: int | None) -> TreePlan:
        return self.choice.plan(n_rows)

    def shap_values(self, rows: NDArray[Any], n_jobs: int = -1, outputs: Floats | None = None) -> Floats:
        out = np.zeros((len(rows), self.n_players, self.n_outputs))
        if not len(rows):
            return out
        compiled = self._tables_to_read(len(rows), n_jobs)
        all_in_tables = compiled is not None and compiled.rest is None
        codes = None if all_in_tables else self.model.coded.book.encode(rows)  # of all features
        begin = cpu_seconds()
        if compiled is not None:
            self._look_up(compiled, rows, codes, out, outputs, n_jobs)
            if self.device == "cpu":
                self.choice.learn("tables", len(rows), cpu_seconds() - begin)
        if codes is not None:
            self._without_tables(compiled, codes, out, n_jobs)
            if compiled is None and outputs is not None:
                self._predict(codes, outputs, n_jobs)
        return out

    def _tables_to_read(self, n_rows: int, n_jobs: int) -> CompiledTrees | None:
        """Return the tables, built if that pays; None where none are to be read."""
        if self.compiled is None and (self.device == "jax" or self.choice.is_worth_building(n_rows)):
            self.build(n_jobs)
        compiled = self.compiled
        if compiled is None or compiled.tables is None or not self.choice.looks_up(n_rows):
            return None
        return compiled

    def _without_tables(
        self, compiled: CompiledTrees | None, codes: NDArray[np.int32], out: Floats, n_jobs: int
    ) -> None:
        """Stream or walk the trees that have no tables: all of them where ``compiled`` is None."""
        begin = cpu_seconds()
        ready, left, seconds = self._untabled(compiled, len(out), n_jobs)
        if ready is not None:
            background = self.tree_background
            assert background.codes is not None
            stream.interventional(
                ready,
                codes,
                background.codes,
                background.weights,
                index=self.index,
                single=self.model.dtype.itemsize == 4,
                seconds=seconds,
                out=out,
                n_jobs=n_jobs,
            )
        for walked in left:
            self._walk(walked, codes, out, seconds, n_jobs)
        if ready is None or not left:
            way = "walk" if ready is None else "stream"
            self.choice.learn(way, len(out), cpu_seconds() - begin, compiled)

    def _untabled(
        self, compiled: CompiledTrees | None, n_rows: int, n_jobs: int
    ) -> tuple[stream.StreamTrees | None, tuple[walk.WalkTrees, ...], float]:
        """Return the trees to stream, those to walk, and the estimated seconds of both."""
        strategy, seconds = self.choice.without_tables(compiled, n_rows)
        n_trees = self.model.ensemble.n_trees if compiled is None else int((~compiled.in_tables).sum())
        n_background = len(self.tree_background.rows) if self.tree_background.rows is not None else 0
        why = f"{n_trees:,} trees without tables, {n_rows:,} rows and {n_background:,} background rows"
        less = "Fewer of them, a larger memory= or shallower trees take less"
        warn_if_long("these values", seconds, f"{why}. {less}", n_jobs)
        if strategy == "stream":
            ready = self.model.stream_trees if compiled is None else compiled.rest_streamed
            return ready, ready.others, seconds
        walked = self.model.walk_trees if compiled is None else compiled.rest
        return None, () if walked is None else (walked,), seconds

    def _look_up(
        self,
        compiled: CompiledTrees,
        rows: NDArray[Any],
        codes: NDArray[np.int32] | None,
        out: Floats,
        outputs: Floats | None,
        n_jobs: int,
    ) -> None:
        """Read the tables; rows are encoded block by block, once, unless ``codes`` of all features are given."""
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

    def _rows_per_call(self, tables: TableSet, rows: NDArray[Any], n_jobs: int) -> int:
        """Return the rows that are looked up at a time: several of the kernel's blocks, which share its memory.

        Where freed memory goes back to the system at once, as on Dask's workers, new memory for each block would
        cost a third of the look-ups. A row's values do not depend on the rows beside it.
        """
        block, jobs = tables.rows_per_block, count_jobs(n_jobs)
        seconds, n_bytes = self.choice.table_costs.look_up(block), max(rows[:1].nbytes, 1) * block
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
        n_jobs: int,
    ) -> None:
        background, n_rows = self.tree_background, len(out)
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

        if n_rows > _WALK_ROWS or trees.n_trees < 2 or seconds < WORTH_THREADS or self.index.subgames:
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
        trees: walk.WalkTrees, walk_part: Callable[..., None], out: Floats, n_jobs: int
    ) -> None:
        """Divide the trees among threads, where there is one block of rows, and add the parts in a fixed order."""
        bounds = np.linspace(0, trees.n_trees, min(_TREE_PARTS, trees.n_trees) + 1).astype(int)
        sums = np.zeros((len(bounds) - 1, *out.shape))

        def share(k: int, _: int) -> None:
            walk_part(trees.part(slice(bounds[k], bounds[k + 1])), slice(None), sums[k])

        for_each_block(share, len(sums), 1, n_jobs)
        for part in sums:
            out += part

    def predict(self, rows: NDArray[Any], n_jobs: int = -1, trees: slice = slice(None)) -> Floats:
        """Return the raw output (n_rows, n_outputs), of all trees or some."""
        out = np.empty((len(rows), self.n_outputs))
        for first in range(0, len(rows), _ROWS_PER_JOB * 16):  # so that codes take no more memory than rows
            part = slice(first, first + _ROWS_PER_JOB * 16)
            self._predict(self.model.coded.book.encode(rows[part]), out[part], n_jobs, trees)
        return out

    def _predict(
        self, codes: NDArray[np.int32], out: Floats, n_jobs: int, trees: slice = slice(None)
    ) -> None:
        walked = self.model.walk_trees
        if trees != slice(None):
            walked = walked.part(trees)
        out[:] = self.model.ensemble.base

        def work(first: int, last: int) -> None:
            walk.predict(walked, codes, rows=slice(first, last), out=out)

        for_each_block(work, len(out), _ROWS_PER_JOB, n_jobs)

    def interactions(
        self, index: InteractionIndex, order: int, wanted: Keys | None = None, min_order: int = 1
    ) -> InteractionEngine:
        if not self.are_own_pairs(index, order, min_order):
            return make_sets(self.model, self.tree_background, index, order, wanted, min_order)
        return self._pairs(wanted)

    def partial_means(self, rows: NDArray[Any], sets: PlayerSets, n_jobs: int = -1) -> Floats:
        if self.tree_background.is_lost:
            raise lost_background()
        return means_by_effects(self._main_effects, rows, sets, n_jobs)

    @cached_property
    def _main_effects(self) -> TreeEngine:
        """The same trees and background with the values that partial dependence is made of, in double precision."""
        model = replace(self.model, index=MAIN_EFFECT, dtype=np.dtype(np.float64))
        background = replace(self.tree_background, model=model)
        return TreeEngine(model, background, expected=self.expected)

    def _pairs(self, wanted: Keys | None) -> TreePairs:
        def make() -> TreePairs:
            if self.tree_background.is_lost:
                raise InputError(
                    "this explainer was loaded from a file without interaction tables and without the background. "
                    "Save it with explainer.save(path, interactions=True)."
                )
            return make_pairs(self.model, self.tree_background, wanted)

        return self._last_pairs.get(wanted, make)

    def lookups(self, budget: int) -> list[PageLookup] | str:
        """Return the leaves; where the background is lost or there are too many of them, the tables."""
        background = self.tree_background
        leaves = None if self.index.subgames else leaf_lookup(self.model, background)
        if leaves is not None:
            return [leaves]
        engine = self
        if self.tables is None:
            if self.model.strategy in ("stream", "walk") and not background.is_lost:
                model = replace(self.model, strategy="auto")
                engine = TreeEngine(model, make_background(model, background.rows, background.weights))
            if engine.plan(None).table_bytes > _ESTIMATE_SLACK * budget:
                return "the tables of these trees would be far larger than the page may be."
            engine.build()
        tables = engine.table_lookup()
        return "some trees are too deep for tables." if tables is None else [tables]

    def table_lookup(self) -> TableLookup | None:
        """Return the tables that are built, for a page; None where some tree has none."""
        compiled, e = self.compiled, self.model.ensemble
        if compiled is None or compiled.tables is None or not compiled.in_tables.all():
            return None
        missing = (float("nan"), np.zeros(e.n_features, dtype=bool))
        return table_lookup(self.model.coded.book, compiled.columns, compiled.tables, *missing)

    def to_contents(self, interactions: bool, background: bool = False) -> Contents:
        """Return named arrays and a header; with the background also where some tree has no table."""
        compiled = self._compiled_for_file()
        pairs = self._pairs(None) if interactions else None
        parts = (self.model, self.tree_background, compiled, self.expected, pairs)
        return trees_to_contents(*parts, background, self.output)

    def _compiled_for_file(self) -> CompiledTrees:
        """Return the tables, or none where they are large and the background can fill them again."""
        if self.model.strategy != "tables" and not self.tree_background.is_lost:
            if self.compiled is None and self.choice.table_costs.bytes > _FILE_SLACK * FILE_TABLES:
                return without_tables(self.model)
            self.build()
            if self.tables is not None and self.tables.nbytes > FILE_TABLES:
                return without_tables(self.model)
        self.build()
        assert self.compiled is not None
        return self.compiled

    @classmethod
    def from_contents(cls, arrays: dict[str, NDArray[Any]], header: dict[str, Any]) -> Self:
        """Return the engine that `to_contents` wrote."""
        stored = trees_from_contents(arrays, header)
        compiled = None if stored.compiled.tables is None else stored.compiled
        built = (BuildPolicy(compiled), LastPairs(stored.pairs), stored.expected)
        return cls(stored.model, stored.background, *built, output=stored.output)


def _path_expected(e: TreeEnsemble, ratio: Floats) -> Floats:
    """Return the mean output where rows go down a tree as the training rows did; ``ratio`` as in `WalkTrees`."""
    share = np.ones(e.n_nodes)
    level = e.roots
    while len(level):
        inner = level[e.feature[level] >= 0]
        share[e.left[inner]] = share[inner] * ratio[e.left[inner]]
        share[e.right[inner]] = share[inner] * ratio[e.right[inner]]
        level = np.concatenate([e.left[inner], e.right[inner]])
    leaves = np.flatnonzero(e.feature < 0)
    return e.sum_by_output(leaves, share[leaves])
