"""`Choice`: how rows are explained now. By stored tables, by streaming or by walking; and when to build tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import nan
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from fouriershap._shapley.policy import BuildPolicy
from fouriershap._shapley.trees.compiled import CompiledTrees
from fouriershap._shapley.trees.model import Background, TreeModel
from fouriershap._shapley.trees.plan import (
    LEAST_BUILD,
    DirectCosts,
    TableCosts,
    TreePlan,
    make_plan,
    table_costs,
)
from fouriershap._shapley.trees.speed import LEAST, SPEED, Factors

WORTH_THREADS = 5e-3  # seconds of work below which a pool of threads costs more than it saves
_FEW_LOOK_UPS = 32  # rows that read built tables before a bottom subtree can be streamed
_ALL_FIT = "every tree fits into tables, and looking up is cheaper than anything else"
_SOME_FIT = "{} trees are too deep for tables, or beyond the memory budget"
_NONE_FIT = "no tree fits into tables: paths with many features, or too little memory"
_NOT_WORTH = "building tables would cost more than the answer"
_BEYOND_CACHE = "so many rows are quicker without the tables, which exceed the caches"
_ASKED_FOR = "requested by strategy="
_ANY = 10**6  # rows, where their number is open

T = TypeVar("T")


class Choice:
    """Decides how rows are explained, from estimated costs and what calls have cost so far.

    Parameters
    ----------
    model : TreeModel
    background : Background
    policy : BuildPolicy
    device : {"cpu", "jax"}
    """

    def __init__(
        self, model: TreeModel, background: Background, policy: BuildPolicy[CompiledTrees], device: str
    ) -> None:
        self.model, self.background, self.policy, self.device = model, background, policy, device
        self._estimates: dict[str, tuple[Factors, Any]] = {}

    @property
    def in_tables(self) -> NDArray[np.bool_]:
        """(n_trees,) bool: the trees that have tables; by estimate, where none are built yet."""
        compiled = self.policy.built
        return self.model.feasible if compiled is None else compiled.in_tables

    @property
    def direct_costs(self) -> DirectCosts:
        """Costs of all trees without tables."""
        return self._estimated("direct", self._direct_costs)

    @property
    def table_costs(self) -> TableCosts:
        """Costs of the tables of the trees that are estimated to fit."""
        return self._estimated("tables", self._table_costs)

    @property
    def _feasible_costs(self) -> DirectCosts:
        """Costs of the same trees without tables."""
        return self._estimated("feasible", lambda _: self._of_feasible())

    def _estimated(self, name: str, estimate: Callable[[Factors], T]) -> T:
        """Return an estimate, which is made again when the factors of this machine have changed."""
        factors = SPEED.factors
        made = self._estimates.get(name)
        if made is None or made[0] is not factors:
            made = self._estimates[name] = (factors, estimate(factors))
        return cast("T", made[1])

    def _direct_costs(self, factors: Factors) -> DirectCosts:
        n_background = None if self.background.rows is None else len(self.background.rows)
        doubled = self.model.dtype.itemsize == 8
        n_channels = self.model.n_channels if self.background.has_channels else 0
        sizes = (
            self.model.profile[:, 0],
            n_background,
            self.background,
            doubled,
            n_channels,
            len(self.model.index.subgames),
        )
        return DirectCosts(*sizes, factors=factors)

    def _of_feasible(self) -> DirectCosts:
        feasible = self.model.feasible
        return self.direct_costs if feasible.all() else replace(self.direct_costs, which=feasible)

    def _table_costs(self, factors: Factors) -> TableCosts:
        n_background = 0 if self.background.rows is None else len(self.background.rows)
        width = self.model.ensemble.values.shape[1] * self.model.n_channels
        sizes = (width, self.model.dtype.itemsize)
        return table_costs(self.model.profile[self.in_tables], n_background, *sizes, factors)

    def without_tables(self, compiled: CompiledTrees | None, n_rows: int) -> tuple[str, float]:
        """Return how to explain the trees that have no tables ("stream" or "walk"), and the seconds that it takes."""
        costs = self.direct_costs
        return self._direct(costs if compiled is None else replace(costs, which=~compiled.in_tables), n_rows)

    def _direct(self, costs: DirectCosts, n_rows: int) -> tuple[str, float]:
        strategy = self.model.strategy
        if strategy == "walk":
            bound = costs.walk_upper_bound(n_rows)  # which does not look at the rows
            return "walk", bound if bound < WORTH_THREADS else costs.walk(n_rows)
        return ("stream", costs.stream(n_rows)) if strategy == "stream" else costs.cheaper(n_rows)

    def is_worth_building(self, n_rows: int) -> bool:
        """Return whether calls without tables, this one included, have cost as much as tables would."""
        if self._costs_less_than_any_tables(n_rows) or not self.model.feasible.any():
            return False
        tables, direct = self.table_costs, self._feasible_costs
        strategy, seconds = direct.cheaper(n_rows)
        if strategy == "walk":
            call = direct.walk_call(n_rows)
            if not direct.is_cheap(n_rows):
                call = seconds - n_rows * direct.walk_row  # without its rows, which are counted below
            rows, saved = self.policy.record_cost(n_rows, call)
        else:
            rows, saved = self.policy.record_cost(0, max(seconds - tables.look_up(n_rows), 0.0))
        # A closer estimate is not needed where tables would not pay even if every pair of rows visited every leaf.
        if rows * direct.walk_row_upper_bound + saved <= tables.build:
            return False
        return rows * max(direct.walk_row - tables.look_up(n_rows) / n_rows, 0.0) + saved > tables.build

    def _costs_less_than_any_tables(self, n_rows: int) -> bool:
        """Return whether walking in all calls so far and in this one costs less than any tables; recorded, if so."""
        direct = self.direct_costs
        call, (rows, saved) = direct.walk_call(n_rows), self.policy.record_cost(0)
        if (rows + n_rows) * direct.walk_row_upper_bound + saved + call > LEAST_BUILD:
            return False
        self.policy.record_cost(n_rows, call)
        return True

    def looks_up(self, n_rows: int) -> bool:
        """Return whether built tables are quicker than streaming the same trees: large ones come from memory."""
        if n_rows <= _FEW_LOOK_UPS or self.model.strategy == "tables" or self.device == "jax":
            return True
        if self.background.rows is None or self.background.is_lost:
            return True
        seconds = self.table_costs.look_up(n_rows)
        if seconds <= self.direct_costs.stream_lower_bound:
            return True
        return seconds <= replace(self.direct_costs, which=self.in_tables).stream(n_rows)

    def learn(self, way: str, n_rows: int, seconds: float, compiled: CompiledTrees | None = None) -> None:
        """Take in what building or reading tables has cost, or streaming or walking the trees that have none."""
        if seconds < LEAST:
            return
        if way in ("build", "tables"):
            tables = self.table_costs
            estimate = tables.build if way == "build" else tables.look_up(n_rows)
            SPEED.learn(way, tables.factors, estimate, seconds)
            return
        costs = self.direct_costs
        if compiled is not None:
            costs = replace(costs, which=~compiled.in_tables)
        if way == "stream" or not costs.is_cheap(n_rows):  # else only bounds are known
            SPEED.learn(
                way, costs.factors, costs.stream(n_rows) if way == "stream" else costs.walk(n_rows), seconds
            )

    def plan(self, n_rows: int | None) -> TreePlan:
        """Return how ``n_rows`` rows would be explained; None for any number."""
        tables, in_tables, is_built = self.table_costs, self.in_tables, self.policy.built is not None
        if self.background.is_lost:
            n_rows = None  # tables are all there is
        by_tables = bool(in_tables.any())
        if n_rows is not None and by_tables:
            saved = self._feasible_costs.cheaper(n_rows)[1] - tables.look_up(n_rows)
            by_tables = self.looks_up(n_rows) if is_built else saved > tables.build
        others = ~in_tables if by_tables else np.ones_like(in_tables)
        costs = replace(self.direct_costs, which=others)
        strategy, seconds = self._direct(costs, _ANY if n_rows is None else max(n_rows, 1))
        is_streamed = strategy == "stream"
        if n_rows is None:
            seconds = nan
        elif by_tables:
            seconds = (seconds if others.any() else 0.0) + tables.look_up(max(n_rows, 1))
            seconds += 0.0 if is_built else tables.build
        streamed = others & self.model.bottom_subtrees.can_stream if is_streamed else np.zeros_like(others)
        counts = (int((~others).sum()), int(streamed.sum()), int((others & ~streamed).sum()))
        if by_tables:
            reason = _SOME_FIT.format(int(others.sum())) if others.any() else _ALL_FIT
        elif self.model.strategy in ("stream", "walk"):
            reason = _ASKED_FOR
        elif not in_tables.any():
            reason = _NONE_FIT
        else:
            reason = _BEYOND_CACHE if is_built else _NOT_WORTH
        return make_plan(counts, tables, self.direct_costs, n_rows, seconds, reason)
