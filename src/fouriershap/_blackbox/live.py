"""`LiveEngine`: SHAP values of a model that is asked when rows come, each with a standard error.

Three ways lead to the values, and the cheapest is taken: every coalition of a row is asked ("enumerate"), some are
("sample"), or a representation is fitted to the model between these rows and the background, and what the model has
beyond it is sampled ("fit"). How much sampling costs is known from its first draws, so that no more than about twice
the time of the best way is spent.

Whether values are exact or sampled is decided by numbers of queries alone, and so by the seed. Whether fitting is worth
its time depends on the time of a query as well, which is taken to the next power of four: a busy machine does not
change it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import RLock
from typing import Any

import numpy as np

from fouriershap._base.errors import CostWarning, FidelityWarning, InputError
from fouriershap._base.messages import truncated_repr
from fouriershap._base.progress import FIRST_QUERIES, Progress
from fouriershap._base.warn import warn
from fouriershap._blackbox.black_box import BlackBox, Look
from fouriershap._blackbox.build import FIRST_BUDGET, expected_fit_seconds, fit_stand_in
from fouriershap._blackbox.fidelity import NOTICED
from fouriershap._blackbox.fit import FitResult
from fouriershap._blackbox.one_game import all_coalitions
from fouriershap._blackbox.sampler import Game, Sampler, roughly
from fouriershap._blackbox.stand_in import game_of, stand_in_of
from fouriershap._rows.pool import Pool
from fouriershap._shapley.coalitions import coalition_weights
from fouriershap._shapley.engine import (
    BackgroundRows,
    BaseEngine,
    Contents,
    Engine,
    EngineInfo,
    Estimates,
    Floats,
    PageLookup,
    Plan,
    Quality,
)
from fouriershap._shapley.indices import Index, InteractionIndex
from fouriershap._shapley.outputs.kinds import Output, Raw
from fouriershap._shapley.sets import InteractionEngine, Keys

ENUMERATE, SAMPLE, FIT = "enumerate", "sample", "fit"
_BLOCK = 500  # rows that are sampled together
_MOST_PLAYERS = 16  # that are enumerated
_OWN_SECONDS = 2e-7  # for a query, beside those of the model
_FEW = 1024  # queries of a row in which all coalitions are asked, whatever else there is
_FIRST = 8  # queries of a row for each player, which any sample begins with
_LONG = 60.0  # seconds of a call that are announced
_PROBED = 16  # background rows on which a plan is based
_HYBRIDS = 1 << 16
_WORTH = 2.0  # times its own time a fit may save, or it is not tried
_VALUE_SECONDS = 5e-6  # of a representation, for a player of a row against a background row
_LARGEST_FIT = 4  # times the queries of the smallest
_QUICK = 2e-6  # seconds of a query, below which it is not worth looking for equal rows


@dataclass(frozen=True)
class LivePlan(Plan):
    """How rows would be explained, how many queries that takes, and how long."""

    n_queries: int


@dataclass(frozen=True)
class Limits:
    """When to stop.

    Attributes
    ----------
    tolerance : float
        Largest standard error of a row, as a share of its largest value.
    max_queries, max_seconds : float
        Of a call.
    """

    tolerance: float
    max_queries: float
    max_seconds: float


class _Memory:
    """The representation that was fitted last, and a lock: a model is asked by one call at a time."""

    def __init__(self) -> None:
        self.fitted: FitResult | None = None
        self.lock = RLock()

    def __getstate__(self) -> dict[str, Any]:
        return {"fitted": self.fitted}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.fitted, self.lock = state["fitted"], RLock()


@dataclass(frozen=True, eq=False)
class LiveEngine(BaseEngine):
    """SHAP values of a model that can be asked (see `Engine`); its rows are a `Pool` of the caller's."""

    box: BlackBox
    limits: Limits
    memory: _Memory = field(default_factory=_Memory)

    @cached_property
    def look(self) -> Look:
        """What is asked before anything else."""
        self.box.queries.begin(self.box.background.n_rows, FIRST_QUERIES)
        with self.memory.lock, self.box.queries.attach_answers():
            return self.box.look()

    @property
    def n_players(self) -> int:
        return self.box.n_players

    @property
    def n_outputs(self) -> int:
        return int(self.look.answers.shape[1])

    @property
    def index(self) -> Index:
        return self.box.index

    @property
    def output(self) -> Output:
        return Raw()

    @property
    def expected(self) -> Floats:
        return np.asarray(self.box.shares @ self.look.answers)

    @property
    def device(self) -> str:
        return "cpu"

    @property
    def representation(self) -> object:
        return self.box.model

    @property
    def background(self) -> BackgroundRows:
        rows: Any = self.box.background
        return BackgroundRows(rows, self.box.weights)

    @property
    def quality(self) -> Quality:
        return Quality(tolerance=self.limits.tolerance)

    @property
    def info(self) -> EngineInfo:
        return EngineInfo("black box", self.box.background.n_rows, n_queries=self.box.queries.n_asked)

    def predict(self, rows: Any, n_jobs: int = -1) -> Floats:
        with self.memory.lock, self.box.queries.attach_answers():
            return self.box.ask_rows(rows)

    def shap_values(self, rows: Any, n_jobs: int = -1, outputs: Floats | None = None) -> Floats:
        return self.estimate(rows, n_jobs, outputs).values

    def estimate(self, rows: Any, n_jobs: int = -1, outputs: Floats | None = None) -> Estimates:
        box, shape = self.box, (rows.n_rows, self.n_players, self.n_outputs)
        values, errors = np.full(shape, np.nan), np.full(shape, np.inf)
        box.warn_of_new_labels(rows)
        # Queries and fits report their own progress: loops inside them are no stages of this call.
        with self.memory.lock, box.queries.attach_answers(), Progress(False):
            call = _Call(self, rows.n_rows, n_jobs)
            try:
                for first in range(0, rows.n_rows, _BLOCK):
                    part = slice(first, first + _BLOCK)
                    for found, spread in call.explain(rows[part]):
                        values[part], errors[part] = found, spread
                    if outputs is not None:
                        outputs[part] = call.outputs
            except KeyboardInterrupt:
                if np.isnan(values).all():
                    raise
                warn(
                    "the call was interrupted: values are as good as their errors say; NaN where there are none yet.",
                    FidelityWarning,
                )
            call.warn_if_unfinished()
        return Estimates(values, errors)

    def plan(self, n_rows: int | None) -> LivePlan:
        """Return how ``n_rows`` rows would be explained (None: a thousand), by asking about a few background rows."""
        self.look  # noqa: B018
        n_rows = 1000 if n_rows is None else n_rows
        some = self.box.background.rows(np.arange(min(_PROBED, self.box.background.n_rows)))
        with self.memory.lock, self.box.queries.attach_answers():
            return _Call(self, n_rows, self.box.n_jobs).plan(some)

    def interactions(
        self, index: InteractionIndex, order: int, wanted: Keys | None = None, min_order: int = 1
    ) -> InteractionEngine:
        raise InputError("interactions are computed from a representation: use explainer.fit(X).")

    def partial_means(self, rows: Any, sets: Sequence[tuple[int, ...]], n_jobs: int = -1) -> Floats:
        raise InputError("partial dependence is computed from a representation: use explainer.fit(X).")

    def lookups(self, budget: int) -> list[PageLookup] | str:
        return "the model itself is asked about rows, and the page cannot; explainer.fit(X).report(...) can compute."

    def with_background(self, rows: Any, weights: Floats | None) -> Engine:
        return replace(self, box=self.box.with_background(rows, weights), memory=_Memory())

    def to(self, device: str) -> Engine:
        if device == "cpu":
            return self
        raise InputError(
            f"device is {truncated_repr(device)}, but a black box is asked where it is: use explainer.fit().to(...)."
        )

    def to_contents(self, interactions: bool, background: bool = False) -> Contents:
        raise InputError("a model that is asked cannot be saved: use explainer.fit().")


class _Call:
    """One call: what it has spent, and how it goes on."""

    def __init__(self, engine: LiveEngine, n_rows: int, n_jobs: int) -> None:
        self._engine, self._box, self._n_rows, self._n_jobs = engine, engine.box, n_rows, n_jobs
        self._limits, self._look = engine.limits, engine.look
        self._began, self._queries_before = time.perf_counter(), engine.box.queries.count
        self._n_done, self._n_unfinished, self._worst = 0, 0, 0.0
        self._announced, self._has_fitted, self._limit = False, False, ""
        self.outputs: Floats = np.zeros((0, engine.n_outputs))
        engine.box.queries.begin(n_rows * (1 + 8 * engine.box.n_players), FIRST_QUERIES)

    # What is left

    @property
    def _spent(self) -> float:
        return time.perf_counter() - self._began

    @property
    def _queries_left(self) -> float:
        return self._limits.max_queries - (self._box.queries.count - self._queries_before)

    def _seconds_left(self) -> float:
        return self._limits.max_seconds - self._spent

    def _announce(self, seconds: float, block: int) -> None:
        """Say that the call takes long, before it does; ``seconds`` for the rows of the block at hand."""
        total = seconds * max(self._n_rows - self._n_done, 1) / max(block, 1)
        if self._announced or total < _LONG or self._limits.max_seconds <= _LONG:
            return
        self._announced = True
        reached = self._limits.tolerance * math.sqrt(total / _LONG)
        warn(
            f"explaining {self._n_rows:,} rows to tolerance={self._limits.tolerance:g} takes about "
            f"{_in_words(min(total, self._seconds_left()))}; a minute is enough for about tolerance={reached:.2g}. Set "
            "tolerance=, max_seconds= or max_queries=; Ctrl-C returns what there is, with its errors.",
            CostWarning,
        )

    def _expect(self, n_queries: float, block: int) -> None:
        """Expect as many queries for each later row as for those of the block at hand."""
        self._box.queries.expect(int(n_queries * max(self._n_rows - self._n_done, block) / max(block, 1)))

    def warn_if_unfinished(self) -> None:
        if self._n_unfinished:
            warn(
                f"{self._n_unfinished} of {self._n_rows} rows stopped at {self._limit}: their standard errors are up "
                f"to {self._worst:.1%} of the largest value of a row, more than tolerance={self._limits.tolerance:g}. "
                "shap_values(X, errors=True) returns them.",
                FidelityWarning,
            )

    # One block

    def explain(self, rows: Pool) -> Iterator[tuple[Floats, Floats]]:
        """Yield values and errors of rows, better from time to time."""
        with self._box.queries.transient():
            self.outputs = self._box.ask_rows(rows)
        game = self._game(rows)
        if self._enumerates(rows.n_rows):
            self._expect(self._all_queries(rows.n_rows), rows.n_rows)
            yield self._enumerate(rows)
        else:
            yield from self._sample(rows, game)
        self._n_done += rows.n_rows

    def _game(self, rows: Pool) -> Game:
        quick = self._query_seconds < _QUICK or self._look.noise > NOTICED
        return game_of(self._box, rows, self.outputs, self._look.answers, quick)

    def _enumerates(self, n_rows: int, otherwise: float = 0.0) -> bool:
        """Return whether asking about every coalition takes few queries, or no more than this many."""
        n = self._box.n_players
        if self._look.noise > NOTICED or n > _MOST_PLAYERS:
            return False
        few = max(_FEW, _FIRST * n) * n_rows
        in_time = self._limits.max_seconds / self._query_seconds
        return self._all_queries(n_rows) <= min(max(few, otherwise), self._limits.max_queries, in_time)

    def _all_queries(self, n_rows: int) -> float:
        """Return the queries of all coalitions."""
        return (2.0**self._box.n_players - 2) * np.count_nonzero(self._box.shares) * n_rows

    def _enumerate(self, rows: Pool) -> tuple[Floats, Floats]:
        box, n = self._box, self._box.n_players
        coalitions = all_coalitions(n)
        weights = coalition_weights(coalitions, box.index)
        game, shares = self._game(rows), box.shares
        others = np.flatnonzero(shares)
        values = np.empty((rows.n_rows, n, self._engine.n_outputs))
        between = coalitions[1:-1]
        masks = np.repeat(between, len(others), axis=0)
        step = max(_HYBRIDS // max(len(masks), 1), 1)
        for first in range(0, rows.n_rows, step):
            some = np.arange(first, min(first + step, rows.n_rows))
            shape = (len(some), len(between), len(others), -1)
            owner, z = np.repeat(some, len(masks)), np.tile(others, len(some) * len(between))
            answers = np.zeros((len(some), 0, len(others), self._engine.n_outputs))
            if len(masks):
                answers = game.ask(owner, z, np.tile(masks, (len(some), 1))).reshape(shape)
            worth = np.einsum("rszo,z->rso", answers, shares[others])
            ends = (
                np.broadcast_to(self._engine.expected, (len(some), 1, answers.shape[3])),
                self.outputs[some][:, None],
            )
            values[some] = np.einsum(
                "js,rso->rjo", weights, np.concatenate([ends[0], worth, ends[1]], axis=1)
            )
        return values, np.zeros_like(values)

    def _sample(self, rows: Pool, game: Game) -> Iterator[tuple[Floats, Floats]]:
        """Sample, by the help of a representation if that is quicker, until errors are small or limits are met."""
        sampler = Sampler(game, self._limits.tolerance, self._box.seed)
        sampler.start()
        self._expect(sampler.queries_left, rows.n_rows)
        yield self._with_noise(sampler, game)
        if len(sampler.unfinished):
            self._help(sampler, rows)
            yield self._with_noise(sampler, game)
        if self._enumerates(rows.n_rows, sampler.queries_left):
            self._announce(self._pace(sampler) * self._all_queries(rows.n_rows), rows.n_rows)
            self._expect(self._all_queries(rows.n_rows), rows.n_rows)
            yield self._enumerate(rows)
            return
        while len(sampler.unfinished):
            pace = self._pace(sampler)
            self._announce(pace * sampler.queries_left, rows.n_rows)
            in_time = max(self._seconds_left(), 0.0) / pace
            most = min(self._queries_left, in_time)
            self._limit = "max_seconds" if in_time < self._queries_left else "max_queries"
            self._expect(sampler.queries_left, rows.n_rows)
            if not sampler.advance(most):
                break
            yield self._with_noise(sampler, game)
        left = sampler.unfinished
        self._n_unfinished += len(left)
        self._worst = max(self._worst, float(sampler.tolerances[left].max(initial=0.0)))

    @property
    def _query_seconds(self) -> float:
        """Seconds of a query, roughly."""
        return roughly(self._look.seconds + _OWN_SECONDS)

    def _pace(self, sampler: Sampler) -> float:
        """Return the seconds of a query, all included."""
        return sampler.seconds / max(int(sampler.queries.sum()), 1) + _OWN_SECONDS

    def _help(self, sampler: Sampler, rows: Pool) -> None:
        """Give the sampler a representation, if it is at hand or takes less time than sampling without it."""
        memory, box = self._engine.memory, self._box
        if memory.fitted is not None:
            self._use(sampler, memory.fitted, rows)
        if self._has_fitted:
            return
        share = self._n_rows / rows.n_rows if self._n_done == 0 else 1.0
        left, query = sampler.queries_left, roughly(self._pace(sampler))
        if self._enumerates(rows.n_rows, left):
            left = self._all_queries(rows.n_rows)
        budget, needed = self._fit_cost(left * share * query, query)
        limits = self._limits
        if not budget or budget > limits.max_queries / 2 or needed > limits.max_seconds / 2:
            return
        self._announce(needed, rows.n_rows)
        self._has_fitted = True
        fitted = fit_stand_in(box, rows, budget)
        self._use(sampler, fitted, rows)
        memory.fitted = None if sampler.stand_in is None else fitted

    def _fit_cost(self, seconds: float, query: float) -> tuple[int, float]:
        """Return the queries and the seconds of a fit that is worth it, where sampling takes ``seconds``; 0 if none is.

        A larger fit leaves less to sample, but nobody knows how much: it may cost a quarter of the time.
        """
        box, budget = self._box, FIRST_BUDGET
        values: float = _VALUE_SECONDS * box.n_players * box.background.n_rows * self._n_rows

        def cost(budget: int) -> float:
            return values + expected_fit_seconds(box, self._engine.n_outputs, budget, query)

        while budget < _LARGEST_FIT * FIRST_BUDGET and cost(2 * budget) < seconds / _LARGEST_FIT:
            budget *= 2
        needed = cost(budget)
        return (budget, needed) if _WORTH * needed < seconds else (0, needed)

    def _use(self, sampler: Sampler, fitted: FitResult, rows: Pool) -> None:
        stand_in = stand_in_of(self._box, fitted, rows, self._engine.n_outputs)
        if stand_in is not None:
            sampler.use(stand_in, roughly(self._pace(sampler)))

    def _with_noise(self, sampler: Sampler, game: Game) -> tuple[Floats, Floats]:
        """Return values and errors, with what the model's noise adds to the known sums."""
        values, errors = sampler.estimates
        if self._look.noise > NOTICED and self._box.index.adds_up:
            known = self._look.variance * (1 + float((game.weights**2).sum())) / game.n_players**2
            errors = np.sqrt(errors**2 + known)
        return values, errors

    # Plans

    def plan(self, some: Pool) -> LivePlan:
        """Return how rows like these would be explained."""
        n_rows, query = self._n_rows, self._query_seconds
        if self._enumerates(n_rows):
            sampled = 0.0
        else:
            self.outputs = self._box.ask_rows(some)
            sampler = Sampler(self._game(some), self._limits.tolerance, self._box.seed)
            sampler.start()
            query = roughly(self._pace(sampler))
            sampled = (float(sampler.queries.sum()) + sampler.queries_left) / some.n_rows * n_rows
        budget, fit = self._fit_cost(sampled * query, query)
        if self._enumerates(n_rows, sampled) and not (budget and fit < self._all_queries(n_rows) * query):
            queries = int(self._all_queries(n_rows))
            return LivePlan(
                ENUMERATE, "all coalitions are asked: values are exact", queries, seconds=queries * query
            )
        if not budget:
            return LivePlan(
                SAMPLE, "quicker than fitting a representation", int(sampled), seconds=sampled * query
            )
        first = _FIRST * self._box.n_players * n_rows
        queries = int(min(budget + first, sampled))
        reason = "a representation is fitted, and what the model has beyond it is sampled: at least so many queries"
        return LivePlan(FIT, reason, queries, seconds=fit + first * query)


def _in_words(seconds: float) -> str:
    for size, name in ((3600.0, "hours"), (60.0, "minutes")):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.0f} seconds"
