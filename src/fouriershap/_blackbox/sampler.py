"""SHAP values of rows, sampled until every standard error is small enough.

What is sampled may be the model itself, or what it has beyond a fitted stand-in whose values are known exactly.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from fouriershap._base.threads import one_blas_thread
from fouriershap._base.units import unit_of
from fouriershap._blackbox.draws import (
    Chains,
    Components,
    Decks,
    Draws,
    Ends,
    Floats,
    Ints,
    Masks,
    Pairs,
    Spread,
    components,
    spread_of,
)
from fouriershap._shapley.indices import Index

Ask = Callable[[Ints, Ints, Masks], Floats]  # rows, background rows and coalitions (n_queries, n_players)
_FIRST_PAIRS = 4  # for a player
_FIRST_CHAINS = 8
_TRIED = 16  # rows on which both ways to draw are tried
_BETTER = 0.8  # queries that chains may take of those of pairs
_LEAST_GROWTH, _GROWTH = 0.2, 2.0  # draws of a round, in draws before it
_USUAL = 0.1  # of the usual largest value: the least that a tolerance refers to
_ROUNDING = 1e-12
_PACES = 4.0  # times of a query are told apart by powers of it
_HEAVY = 1.5  # what a stand-in misses has heavy tails
_HYBRIDS = 1 << 16  # rows that are put together at a time


@dataclass(frozen=True, eq=False)
class Game:
    """A model, the rows to explain and their background.

    Attributes
    ----------
    ask : callable
    index : Index
    rows : (n_rows, n_outputs) float64
        What the model returns for the rows, and
    others : (n_background, n_outputs) float64
        for the background rows.
    weights : (n_background,) float64
        They add up to 1.
    n_players : int
    """

    ask: Ask
    index: Index
    rows: Floats
    others: Floats
    weights: Floats
    n_players: int

    @property
    def mean(self) -> Floats:
        return np.asarray(self.weights @ self.others)

    def over(self, unit: float) -> Game:
        """Return the game whose answers are divided by a unit."""

        def ask(owner: Ints, z: Ints, masks: Masks) -> Floats:
            return self.ask(owner, z, masks) / unit

        return replace(self, ask=ask, rows=self.rows / unit, others=self.others / unit)


@dataclass(frozen=True, eq=False)
class StandIn:
    """A fitted representation of the model: its own game, and its exact values (n_rows, n_players, n_outputs)."""

    game: Game
    values: Floats


class Estimates(NamedTuple):
    """Values and standard errors, (n_rows, n_players, n_outputs)."""

    values: Floats
    errors: Floats


class _Row:
    """The draws of one row."""

    def __init__(self, kind: Draws, deck: Decks, rng: np.random.Generator) -> None:
        self.draws, self.deck, self.rng = kind, deck, rng
        self.control: Floats | None = None  # the stand-in's answers
        self.spread: Spread | None = None
        self.beyond: Floats | None = None  # the estimate of the values, less those of the stand-in


def roughly(seconds: float) -> float:
    """Return the next power of `_PACES`, up or down: a busy machine does not change it, as a rule."""
    return float(_PACES ** round(math.log(max(seconds, 1e-9), _PACES)))


class Sampler:
    """Rows that are sampled in rounds; all unfinished rows share the calls of the model."""

    def __init__(self, game: Game, tolerance: float, seed: int) -> None:
        self._unit = unit_of(np.concatenate([game.rows, game.others]))  # in which squares are numbers
        self.game, self.tolerance = game.over(self._unit), tolerance
        self.stand_in: StandIn | None = None
        n_rows = len(game.rows)
        self._seeds = np.random.default_rng(seed).spawn(n_rows)
        self._decks = [Decks(game.weights) for _ in range(n_rows)]
        by_order = bool(game.index.subgames) and game.n_players > 1
        self._kind: type[Pairs] | type[Chains] = Chains if by_order else Pairs
        self._rows = self._new_rows(self._kind, np.arange(n_rows))
        self.queries = np.zeros(n_rows, dtype=np.int64)
        self.seconds = 0.0  # of the queries, those of the stand-in included
        self._estimates: Estimates
        self._needed: Floats

    def _new_rows(self, kind: type[Pairs] | type[Chains], which: Ints) -> dict[int, _Row]:
        n = self.game.n_players
        return {int(i): _Row(kind(n, self.game.index), self._decks[i], self._seeds[i]) for i in which}

    def _in_unit(self, stand_in: StandIn) -> StandIn:
        return StandIn(stand_in.game.over(self._unit), stand_in.values / self._unit)

    # Rounds

    def start(self) -> None:
        """Draw as many as show how much is needed; draw by chains if that needs less."""
        n, every = self.game.n_players, np.arange(len(self.game.rows))
        n_first = _FIRST_CHAINS if self._kind is Chains else max(_FIRST_PAIRS * n, 16)
        self._draw(self._rows, dict.fromkeys(every.tolist(), n_first))
        self._settle()
        if self._kind is Pairs and self.game.index.adds_up and n > 2:
            self._try_chains(every)

    def _try_chains(self, every: Ints) -> None:
        """Change to chains if they need fewer queries at the rows on which both are tried."""
        tried = every[np.linspace(0, len(every) - 1, min(_TRIED, len(every))).astype(int)]
        by_pairs, rows = self._needed[tried] * Pairs.queries(0), self._rows
        self._rows = self._new_rows(Chains, tried)
        self._draw(self._rows, dict.fromkeys(tried.tolist(), _FIRST_CHAINS))
        kept = self._estimates, self._needed
        found = self._components([self._rows[i] for i in tried.tolist()], tried)
        target = self._target(self._estimates.values[tried])
        needed = found.draws_needed(target, self._n_background).max(axis=(1, 2))
        by_chains = np.maximum(needed, 2) * Chains.queries(self.game.n_players)
        if by_chains.sum() < _BETTER * by_pairs.sum():
            rest = np.setdiff1d(every, tried)
            self._rows |= self._new_rows(Chains, rest)
            self._draw({i: self._rows[i] for i in rest.tolist()}, dict.fromkeys(rest.tolist(), _FIRST_CHAINS))
            self._settle()
        else:
            self._rows, (self._estimates, self._needed) = rows, kept

    def use(self, stand_in: StandIn, query: float = math.inf) -> None:
        """Subtract a stand-in from all draws, if that leaves less work, where a query takes so many seconds."""
        before, kept, began = self.queries_left, (self._estimates, self._needed), self.seconds
        self.stand_in = self._in_unit(stand_in)
        for i, row in self._rows.items():
            row.control = self._ask(self.stand_in.game.ask, {i: row}, {i: row.draws.masks}, {i: row.draws.z})[
                i
            ]
        self._settle()
        own = roughly(
            (self.seconds - began) / max(sum(len(row.draws.masks) for row in self._rows.values()), 1)
        )
        if self.queries_left * (1 + own / query) > before:
            self.stand_in = None
            for row in self._rows.values():
                row.control = None
            self._settle()
            self._estimates, self._needed = kept

    @property
    def queries_left(self) -> float:
        """Queries until all rows are good enough, about."""
        each = next(iter(self._rows.values())).draws.queries(self.game.n_players)
        return float(sum(max(self._needed[i] - len(row.draws), 0.0) * each for i, row in self._rows.items()))

    @property
    def unfinished(self) -> Ints:
        """Rows whose errors are too large."""
        too_few = [i for i, row in self._rows.items() if self._needed[i] > len(row.draws)]
        return np.array(too_few, dtype=np.int64)

    def advance(self, most_queries: float = math.inf) -> bool:
        """Draw once more for all unfinished rows; return False if so few queries are too few for any draw."""
        rows = {i: self._rows[i] for i in self.unfinished.tolist()}
        each = next(iter(rows.values())).draws.queries(self.game.n_players)
        wanted = {}
        for i, row in rows.items():
            have = len(row.draws)
            wanted[i] = math.ceil(np.clip(self._needed[i] - have, _LEAST_GROWTH * have, _GROWTH * have))
        share = min(most_queries / (each * sum(wanted.values())), 1.0)
        if share < 1.0:
            wanted = {i: n for i, n in ((i, int(n * share)) for i, n in wanted.items()) if n > 0}
        if not wanted:
            return False
        self._draw({i: rows[i] for i in wanted}, wanted)
        self._settle(wanted)
        return True

    def _draw(self, rows: dict[int, _Row], wanted: dict[int, int]) -> None:
        if not rows:
            return
        z, masks = {}, {}
        for i, row in rows.items():
            z[i] = row.deck.deal(wanted[i], row.rng, is_first=not len(row.draws))
            masks[i] = row.draws.draw(z[i], row.rng)
        answers = self._ask(self.game.ask, rows, masks, z)
        controls = None if self.stand_in is None else self._ask(self.stand_in.game.ask, rows, masks, z)
        for i, row in rows.items():
            row.draws.add(answers[i])
            self.queries[i] += len(answers[i])
            if controls is not None:
                row.control = (
                    controls[i] if row.control is None else np.concatenate([row.control, controls[i]])
                )

    def _ask(
        self, ask: Ask, rows: dict[int, _Row], masks: dict[int, Masks], z: dict[int, Ints]
    ) -> dict[int, Floats]:
        """Return the answers about the coalitions of each row."""
        begin = time.perf_counter()
        found: list[Floats] = []
        which = list(rows)
        sizes = [len(masks[i]) for i in which]
        part: list[int] = []
        for k, i in enumerate(which):
            part.append(i)
            if k + 1 < len(which) and sum(len(masks[j]) for j in part) < _HYBRIDS:
                continue
            owner = np.concatenate([np.full(len(masks[j]), j) for j in part])
            others = np.concatenate([np.repeat(z[j], len(masks[j]) // max(len(z[j]), 1)) for j in part])
            coalitions = np.concatenate([masks[j] for j in part])
            steps = range(0, len(owner), _HYBRIDS)
            found += [
                ask(owner[s : s + _HYBRIDS], others[s : s + _HYBRIDS], coalitions[s : s + _HYBRIDS])
                for s in steps
            ]
            part = []
        self.seconds += time.perf_counter() - begin
        return dict(zip(which, np.split(np.concatenate(found), np.cumsum(sizes)[:-1]), strict=True))

    # Estimates

    @property
    def _n_background(self) -> float:
        return 1 / float((self.game.weights**2).sum())

    def _ends(self, i: int) -> Ends:
        rows, others, mean = self.game.rows[i], self.game.others, self.game.mean
        if self.stand_in is not None:
            theirs = self.stand_in.game
            rows, others, mean = rows - theirs.rows[i], others - theirs.others, mean - theirs.mean
        return Ends(rows, others, mean)

    def _components(self, rows: list[_Row], which: Ints, only: dict[int, int] | None = None) -> Components:
        """Settle rows (those of ``only``, since the others have no new draws); return the variances of their draws."""
        with one_blas_thread():
            for row, i in zip(rows, which.tolist(), strict=True):
                if only is None or i in only:
                    settled = row.draws.settle(row.control, self._ends(i))
                    row.beyond = settled.values
                    row.spread = spread_of(settled, row.draws.z, self.game.weights)
        return components([row.spread for row in rows if row.spread is not None])

    def _beyond(self, only: dict[int, int] | None = None) -> tuple[Components, Ints, Floats, Floats]:
        """Return the variances of a draw, the number of draws, and what is beyond a stand-in with its variance."""
        which = np.array(sorted(self._rows), dtype=np.int64)
        rows = [self._rows[i] for i in which.tolist()]
        found = self._components(rows, which, only)
        spreads = [row.spread for row in rows if row.spread is not None]
        n_draws = np.array([s.n_draws for s in spreads])
        variance = found.variance(n_draws, np.array([s.imbalance for s in spreads]))
        return found, n_draws, np.stack([row.beyond for row in rows if row.beyond is not None]), variance

    def _settle(self, only: dict[int, int] | None = None) -> None:
        found, n_draws, beyond, variance = self._beyond(only)
        if self.stand_in is None:
            values, usual = beyond, None
        else:
            usual = _usual_square(beyond, variance)
            total = beyond.sum(axis=1, keepdims=True) if self.game.index.adds_up else None
            beyond, variance = _drawn_in(beyond, variance, usual, total)
            values = self.stand_in.values + beyond
        self._estimates = Estimates(values, np.sqrt(variance))
        target = self._target(values)
        if usual is not None:  # of what is drawn in: where all that is left is small, nothing is needed
            with np.errstate(divide="ignore"):
                target = np.where(usual > target, target * usual / np.maximum(usual - target, 1e-300), np.inf)
        self._needed = found.draws_needed(target, self._n_background).max(axis=(1, 2))
        done = (variance <= self._target(values)).all(axis=(1, 2))
        self._needed = np.where(done, 0.0, np.maximum(self._needed, n_draws + 1))

    def _target(self, values: Floats) -> Floats:
        """Return the largest variance that is good enough, (n_rows, 1, 1)."""
        largest = np.abs(values).max(axis=(1, 2), keepdims=True)
        answers = max(float(np.abs(self.game.rows).max()), float(np.abs(self.game.others).max()))
        scale = np.maximum(largest, _USUAL * np.median(largest))
        return np.asarray((self.tolerance * scale) ** 2 + (_ROUNDING * answers) ** 2)

    def compare(self, stand_in: StandIn, n_pairs: int) -> tuple[Floats, Floats, Floats]:
        """Return a stand-in's values, what they miss by so many pairs a row, and its variance, all in one unit."""
        self.stand_in = self._in_unit(stand_in)
        self._draw(self._rows, dict.fromkeys(self._rows, n_pairs))
        _, _, missed, variance = self._beyond()
        return self.stand_in.values, missed, variance

    @property
    def estimates(self) -> Estimates:
        return Estimates(*(each * self._unit for each in self._estimates))

    @property
    def tolerances(self) -> Floats:
        """The largest standard error of each row, as a share of what the tolerance refers to."""
        values, errors = self._estimates
        scale = np.sqrt(self._target(values)) / self.tolerance
        return np.asarray((errors / np.maximum(scale, 1e-300)).max(axis=(1, 2)))


def _usual_square(beyond: Floats, variance: Floats) -> Floats:
    """Return the mean square (n_rows, n_players, n_outputs) of what a stand-in misses, rather too large than too small.

    It is that of the player in all rows, or of all players, or of the row, whichever is largest.
    """
    square = beyond**2 - variance
    by_player = square.mean(axis=0, keepdims=True)
    usual = np.maximum(by_player, by_player.mean(axis=1, keepdims=True))
    usual = np.maximum(usual, 0.0) + math.sqrt(2 / len(beyond)) * variance.mean(axis=0, keepdims=True)
    return np.asarray(_HEAVY * np.maximum(usual, square.mean(axis=1, keepdims=True)))


def _drawn_in(beyond: Floats, variance: Floats, usual: Floats, total: Floats | None) -> tuple[Floats, Floats]:
    """Return estimates with less chance in them, and their variances; their sums stay what they are.

    What a stand-in misses has a usual size; an estimate whose variance is larger than that is drawn towards the
    player's share of the known sum (James and Stein 1961).
    """
    scale = usual + variance
    kept = np.where(scale > 0, usual / np.where(scale > 0, scale, 1.0), 1.0)
    if total is None:
        return kept * beyond, kept * variance
    sums = usual.sum(axis=1, keepdims=True)
    expected = total * np.where(sums > 0, usual / np.where(sums > 0, sums, 1.0), 1 / beyond.shape[1])
    drawn, left = expected + kept * (beyond - expected), kept * variance
    sums = left.sum(axis=1, keepdims=True)
    share = np.where(sums > 0, left / np.where(sums > 0, sums, 1.0), 1 / beyond.shape[1])
    return drawn + share * (total - drawn.sum(axis=1, keepdims=True)), left
