"""`ConditionalEngine`: SHAP values of the game v(S) = E[f(X) | X_S = x_S], under a dependence of the features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import FidelityWarning, InputError
from fouriershap._base.headers import from_json, get_part, get_typed, require
from fouriershap._base.messages import truncated_repr
from fouriershap._base.threads import one_blas_thread
from fouriershap._base.warn import warn
from fouriershap._dependence.causes import Chain
from fouriershap._dependence.mixture import Mixture
from fouriershap._shapley.coalitions import CoalitionInteractions, coalition_weights
from fouriershap._shapley.conditional.choice import DependenceChoice
from fouriershap._shapley.conditional.control import Control, exact_control, fit_control
from fouriershap._shapley.conditional.game import ConditionalGame
from fouriershap._shapley.conditional.pairs import PairedCoalitions, pair_coalitions
from fouriershap._shapley.engine import (
    BackgroundRows,
    Contents,
    DependenceReport,
    Engine,
    EngineInfo,
    Estimates,
    Floats,
    PageLookup,
    Plan,
    Quality,
    WrappingEngine,
)
from fouriershap._shapley.indices import InteractionIndex, title
from fouriershap._shapley.sets import InteractionEngine, Keys, all_keys, select_keys

MOST_PLAYERS = 10  # of whom all coalitions are taken
_FIRST_DRAWS = 512  # of a row, shared among its coalitions
_LEAST_DRAWS = 2  # of a coalition, so that their variance is known
_MEAN_DRAWS = 256  # of a partial mean
_MOST_DRAWS = 1 << 17  # of a row
_PILOT_ROWS, _PILOT_DRAWS = 8, 8
_FIRST_PAIRS, _MOST_PAIRS = 128, 1 << 13
_MORE_PAIRS = 3  # halves of those before
_BLOCK = 256  # rows
_ARRAYS = ("player", "mean", "mean_variance", "spread", "size_noise")
_LEAST_SCALE = 0.02  # of the spread of an output: errors refer to values of this size in any case


@dataclass(frozen=True)
class Settings:
    """How conditional values are computed.

    Attributes
    ----------
    tolerance : float
        Largest standard error of a value, as a share of the row's largest value.
    n_fitted : int
        Rows drawn from the dependence, whose outputs the control is fitted to and the mean taken from.
    seed : int
    """

    tolerance: float
    n_fitted: int
    seed: int


@dataclass(frozen=True, eq=False)
class ConditionalEngine(WrappingEngine):
    """Conditional values of what another engine explains (see `Engine`), from whose predictions they are computed.

    Attributes
    ----------
    inner : Engine
    mixture : Mixture
    control : Control
        Subtracted from the outputs before they are drawn; its conditional means have a closed form.
    player : (n_features,) int32
    mean, mean_variance : (n_outputs,) float64
        Mean output under the dependence, and the variance of this estimate.
    spread : (n_outputs,) float64
        Standard deviation of the output under the dependence.
    size_noise : (n_players + 1,) float64
        Standard deviation of what is drawn, by the size of the coalition.
    settings : Settings
    report : DependenceReport
    rows : BackgroundRows or None
        Rows that the dependence was fitted to; a file does not keep them.
    chain : Chain, optional
        Of causal values: features are set, in place of known.
    """

    mixture: Mixture
    control: Control
    player: NDArray[np.int32]
    mean: Floats
    mean_variance: Floats
    spread: Floats
    size_noise: Floats
    settings: Settings
    report: DependenceReport
    rows: BackgroundRows | None = None
    choice: DependenceChoice | None = None
    chain: Chain | None = None

    @property
    def expected(self) -> Floats:
        return self.mean

    @property
    def background(self) -> BackgroundRows | None:
        return self.rows

    @property
    def is_closed(self) -> bool:
        """Whether nothing is drawn."""
        return self.control.is_exact

    @property
    def quality(self) -> Quality:
        exact = self.is_closed and self.n_players <= MOST_PLAYERS
        return Quality(tolerance=0.0 if exact else self.settings.tolerance, dependence=self.report)

    @property
    def info(self) -> EngineInfo:
        return replace(self.inner.info, is_conditional=True, is_causal=self.chain is not None)

    def shap_values(self, rows: NDArray[Any], n_jobs: int = -1, outputs: Floats | None = None) -> Floats:
        return self.estimate(rows, n_jobs, outputs).values

    def game(self, dtype: Any, n_jobs: int = -1) -> ConditionalGame:
        """Return the games of rows of this type."""

        def predict(codes: Floats) -> Floats:
            return self.inner.predict(codes.astype(dtype, copy=False), n_jobs)

        return ConditionalGame(
            predict, self.mixture, self.player, self.control, self.settings.seed, self.n_outputs, self.chain
        )

    def estimate(self, rows: NDArray[Any], n_jobs: int = -1, outputs: Floats | None = None) -> Estimates:
        codes, game = np.asarray(rows, dtype=np.float64), self.game(rows.dtype, n_jobs)
        predictions = self.inner.predict(rows, n_jobs)
        if outputs is not None:
            outputs[:] = predictions
        values = np.empty((len(rows), self.n_players, self.n_outputs))
        errors, n_unfinished = np.empty_like(values), 0
        explain = self._enumerate if self.n_players <= MOST_PLAYERS else self._sample
        with one_blas_thread():
            for first in range(0, len(rows), _BLOCK):
                part = slice(first, first + _BLOCK)
                values[part], errors[part], unfinished = explain(game, codes[part], predictions[part])
                n_unfinished += unfinished
        if n_unfinished:
            warn(
                f"{n_unfinished} of {len(rows)} rows stopped at the most draws of a row: their standard errors are "
                f"above tolerance={self.settings.tolerance:g}. shap_values(X, errors=True) returns them.",
                FidelityWarning,
            )
        return Estimates(values, errors)

    def interactions(
        self, index: InteractionIndex, order: int, wanted: Keys | None = None, min_order: int = 1
    ) -> InteractionEngine:
        if self.n_players > MOST_PLAYERS:
            raise InputError(
                f"interactions of conditional values come from all coalitions, for up to {MOST_PLAYERS} players, but "
                f"there are {self.n_players}. Give groups= that leave fewer."
            )
        keys = all_keys(range(self.n_players), order, self.n_players)
        keys = select_keys(keys, wanted, min_order, self.n_players)
        return CoalitionInteractions(self._game_of, self.n_players, self.n_outputs, index, order, keys)

    def partial_means(self, rows: NDArray[Any], sets: Sequence[tuple[int, ...]], n_jobs: int = -1) -> Floats:
        """Return the mean output given the players of a set, (n_rows, n_sets, n_outputs)."""
        masks = np.array([np.isin(np.arange(self.n_players), each) for each in sets])
        with one_blas_thread():
            found = self.game(rows.dtype, n_jobs).means(np.asarray(rows, np.float64), masks, _MEAN_DRAWS, 0)
        return np.moveaxis(found.values, 0, 1)

    def lookups(self, budget: int) -> list[PageLookup] | str:
        return "conditional values have no look-ups"

    def with_background(self, rows: NDArray[Any], weights: Floats | None) -> Engine:
        if self.choice is None:
            raise InputError(
                "this explainer was loaded from a file, which keeps no rows: build it again from the model."
            )
        if np.isinf(rows).any():
            raise InputError("background has infinite values; a dependence is fitted to finite numbers.")
        inner = self.inner.with_background(rows, weights)
        return make_conditional(inner, self.choice, rows, weights, self.settings, self.chain)

    def to(self, device: str) -> Engine:
        if device == "cpu":
            return self
        raise InputError(
            f"device is {truncated_repr(device)}, but conditional values are computed on 'cpu' only."
        )

    def plan(self, n_rows: int | None) -> Plan:
        if self.n_players > MOST_PLAYERS:
            return Plan(
                "sampled", "coalitions in complementary pairs, shared by all rows, until errors are small"
            )
        drawn = "by closed forms" if self.is_closed else "by conditional draws until errors are small"
        return Plan("definition", f"all coalitions, {drawn}")

    def to_contents(self, interactions: bool, background: bool = False) -> Contents:
        arrays, header = self.inner.to_contents(interactions, background)
        own = {f"mixture.{name}": array for name, array in self.mixture.to_contents().items()}
        own |= {name: getattr(self, name) for name in _ARRAYS}
        own |= {f"control.{name}": array for name, array in self.control.to_contents().items()}
        if self.chain is not None:
            own |= {f"chain.{name}": array for name, array in self.chain.to_contents().items()}
        about: dict[str, Any] = {"settings": vars(self.settings), "report": vars(self.report)}
        about["is_exact"] = self.control.is_exact
        return arrays | {f"conditional.{name}": array for name, array in own.items()}, header | {
            "conditional": about
        }

    @classmethod
    def from_contents(cls, arrays: dict[str, NDArray[Any]], header: dict[str, Any], inner: Engine) -> Self:
        """Build from what `to_contents` wrote; ``header`` is its part "conditional"."""
        own = _below(arrays, "conditional.")
        mixture = Mixture.from_contents(_below(own, "mixture."))
        is_exact = get_typed(header, "is_exact", bool)
        control = Control.from_contents(_below(own, "control."), is_exact, mixture)
        n, o = inner.n_players, inner.n_outputs
        shapes = {"mean": (o,), "mean_variance": (o,), "spread": (o,), "size_noise": (n + 1,)}
        for name, shape in shapes.items():
            array = own[name]
            require(array.shape == shape and array.dtype == np.float64, f"{name} has the wrong shape")
            require(
                np.isfinite(array).all() and (name == "mean" or (array >= 0).all()), f"{name} is not a number"
            )
        player = own["player"]
        fits = player.shape == mixture.is_label.shape and player.dtype == np.int32
        require(fits and np.array_equal(np.unique(player), np.arange(n)), "its dependence has other players")
        settings = from_json(Settings, header.get("settings"), "settings")
        told = get_part(header, "report")
        losses = {str(name): float(value) for name, value in get_part(told, "losses").items()}
        report = DependenceReport(
            get_typed(told, "name", str), losses, get_typed(told, "independent", float | None)
        )
        chained = _below(own, "chain.")
        chain = Chain.from_contents(chained, len(player)) if chained else None
        require(chain is None or mixture.n_components == 1, "causal values are those of one component")
        found = {name: own[name] for name in shapes}
        return cls(inner, mixture, control, player, **found, settings=settings, report=report, chain=chain)  # type: ignore[arg-type]

    # All coalitions

    @cached_property
    def _coalitions(self) -> NDArray[np.bool_]:
        """All coalitions; bit j of the position of one tells whether player j belongs to it."""
        n = self.n_players
        return (np.arange(1 << n)[:, None] >> np.arange(n) & 1).astype(bool)

    @cached_property
    def _by_size(self) -> list[tuple[NDArray[np.int64], int]]:
        """Positions of the coalitions of each size but the smallest and largest, and draws of each.

        Draws are proportional to the noise and to what an error does to the values.
        """
        n, sizes = self.n_players, self._coalitions.sum(axis=1)
        places = [np.flatnonzero(sizes == s) for s in range(1, n)]
        weights = coalition_weights(self._coalitions, self.index)
        effect = [
            np.sqrt((weights[:, at] ** 2).sum(axis=0).mean()) * self.size_noise[s + 1]
            for s, at in enumerate(places)
        ]
        whole = sum(len(at) * each for at, each in zip(places, effect, strict=True))
        share = [_FIRST_DRAWS * each / max(whole, 1e-300) for each in effect]
        return [(at, max(2 * round(each / 2), _LEAST_DRAWS)) for at, each in zip(places, share, strict=True)]

    def _enumerate(
        self, game: ConditionalGame, rows: Floats, predictions: Floats
    ) -> tuple[Floats, Floats, int]:
        """Return values, errors, and the number of rows that exceed the tolerance."""
        phi, errors = self._settle(*self._worths(game, rows, predictions))
        return phi, errors, int(self._is_open(phi, errors).sum())

    def _worths(self, game: ConditionalGame, rows: Floats, predictions: Floats) -> tuple[Floats, Floats]:
        """Return v(S) and variances (n_coalitions, n_rows, n_outputs), from more and more draws."""
        closed, drawn, variances = np.zeros((3, len(self._coalitions), len(rows), self.n_outputs))
        closed[0], variances[0], closed[-1] = self.mean, self.mean_variance, predictions
        left, n_before, level = np.arange(len(rows)), 0.0, 0
        while True:
            n_new = max(n_before, 1.0)  # multiples of the first draws
            share = n_new / (n_before + n_new)
            for at, n_draws in self._by_size:
                key = self.n_players * level + int(self._coalitions[at[0]].sum())
                masks, place = self._coalitions[at], np.ix_(at, left)
                found = game.means(rows[left], masks, int(n_draws * n_new), key, with_closed=not level)
                closed[place] += found.closed
                drawn[place] += share * (found.drawn - drawn[place])
                variances[place] = (1 - share) ** 2 * variances[place] + share**2 * found.variances
            n_before, level = n_before + n_new, level + 1
            phi, errors = self._settle(closed[:, left] + drawn[:, left], variances[:, left])
            left = left[self._is_open(phi, errors)]
            if not len(left) or self.is_closed or n_before * _FIRST_DRAWS >= _MOST_DRAWS:
                return closed + drawn, variances

    def _settle(self, values: Floats, variances: Floats) -> tuple[Floats, Floats]:
        """Return the values of players and their standard errors."""
        weights = coalition_weights(self._coalitions, self.index)
        phi = np.moveaxis(np.tensordot(weights, values, (1, 0)), 0, 1)
        errors = np.sqrt(np.moveaxis(np.tensordot(weights**2, variances, (1, 0)), 0, 1))
        return phi, errors

    def _is_open(self, phi: Floats, errors: Floats) -> NDArray[np.bool_]:
        """Return which rows have errors above the tolerance."""
        size = np.maximum(np.abs(phi).max(axis=(1, 2)), _LEAST_SCALE * self.spread.max(initial=0.0))
        return np.asarray(errors.max(axis=(1, 2)) > self.settings.tolerance * size)

    def _game_of(self, row: NDArray[Any]) -> Floats:
        rows = np.asarray(row[None], dtype=np.float64)
        with one_blas_thread():
            return self._worths(self.game(row.dtype), rows, self.inner.predict(row[None]))[0][:, 0]

    # Pairs

    @cached_property
    def _pairs(self) -> PairedCoalitions:
        return pair_coalitions(self.n_players, _MOST_PAIRS, np.random.default_rng([self.settings.seed, 2]))

    def _sample(self, game: ConditionalGame, rows: Floats, predictions: Floats) -> tuple[Floats, Floats, int]:
        """Return the same as `_enumerate`, from more and more pairs, and draws where a size has no more pairs."""
        pairs, shape = self._pairs, (len(rows), self.n_players, self.n_outputs)
        values, errors, left = np.empty(shape), np.empty(shape), np.arange(len(rows))
        closed, drawn, noise = np.zeros((3, len(pairs.sizes), len(rows), self.n_outputs))
        n_drawn, key = np.zeros(len(pairs.sizes), dtype=np.int64), 0
        budget = max(_FIRST_PAIRS, 4 * self.n_players)
        while True:
            chosen = pairs.first(budget)
            missing = pairs.draws(chosen, budget, _LEAST_DRAWS) - n_drawn[chosen]
            if self.is_closed:
                missing = 1 - np.minimum(n_drawn[chosen], 1)
            for n_new, is_first in sorted(
                set(zip(missing.tolist(), (n_drawn[chosen] == 0).tolist(), strict=True))
            ):
                some = chosen[(missing == n_new) & ((n_drawn[chosen] == 0) == is_first)]
                if n_new <= 0:
                    continue
                inside, outside = (
                    game.means(rows[left], masks, n_new, key + k, with_closed=is_first)
                    for k, masks in enumerate((pairs.masks[some], ~pairs.masks[some]))
                )
                key += 2
                place, share = np.ix_(some, left), n_new / (n_drawn[some[0]] + n_new)
                closed[place] += inside.closed - outside.closed
                drawn[place] += share * (inside.drawn - outside.drawn - drawn[place])
                noise[place] = share * (
                    inside.variances + outside.variances
                )  # of these draws, for all of them
            n_drawn[chosen] += np.maximum(missing, 0)
            differences, spread_of = (closed + drawn)[chosen][:, left], noise[chosen][:, left]
            found, spread = pairs.solve(chosen, differences, spread_of, predictions[left] - self.mean)
            values[left] = found
            errors[left] = np.sqrt(spread**2 + self.mean_variance / self.n_players**2)
            left = left[self._is_open(found, errors[left])]
            if not len(left) or budget >= _MOST_PAIRS:
                return values, errors, len(left)
            budget = min(budget * _MORE_PAIRS // 2, _MOST_PAIRS)


def make_conditional(
    inner: Engine,
    choice: DependenceChoice,
    rows: NDArray[Any],
    weights: Floats | None,
    settings: Settings,
    chain: Chain | None = None,
) -> ConditionalEngine:
    """Fit a dependence to rows of codes, and a control to the outputs of rows that are drawn from it."""
    n = inner.n_players
    if n > MOST_PLAYERS and (inner.index.subgames or not inner.index.adds_up):
        what = title(inner.index) or f"values of index={truncated_repr(inner.index.name)}"
        raise InputError(
            f"{what} with feature_perturbation='conditional' take all coalitions, for up to {MOST_PLAYERS} players, "
            f"but there are {n}. Explain fewer players, or leave out feature_perturbation."
        )

    def predict(codes: Floats) -> Floats:
        return inner.predict(codes.astype(rows.dtype, copy=False))

    mixture, report = choice(np.asarray(rows, dtype=np.float64), weights, predict)
    sample = mixture.sample(settings.n_fitted, np.random.default_rng([settings.seed, 3]))
    outputs = predict(sample.codes)
    with np.errstate(over="ignore", invalid="ignore"):
        spread = outputs.std(axis=0)
    if not np.isfinite(spread).all():
        raise InputError(
            "the outputs of the model are so large that their variance overflows. Explain them in larger units."
        )
    control = exact_control(inner.representation, mixture)
    if control is None:
        control = fit_control(sample, outputs, mixture, settings.seed)
    nothing = np.zeros(inner.n_outputs)
    engine = ConditionalEngine(
        inner,
        mixture,
        control,
        np.array(choice.player, dtype=np.int32),
        nothing,
        nothing,
        spread,
        np.zeros(n + 1),
        settings,
        report,
        BackgroundRows(rows, weights),
        choice,
        chain,
    )
    game = engine.game(rows.dtype)
    fresh = mixture.sample(settings.n_fitted, np.random.default_rng([settings.seed, 6]))
    mean, variance = game.mean(fresh, predict(fresh.codes))
    return replace(engine, mean=mean, mean_variance=variance, size_noise=_size_noise(game, n))


def _size_noise(game: ConditionalGame, n_players: int) -> Floats:
    """Return the standard deviation of what is drawn, by the size of the coalition; 1 where nothing is."""
    noise, rng = np.ones(n_players + 1), np.random.default_rng([game.seed, 4])
    pilot = game.mixture.sample(_PILOT_ROWS, rng).codes
    for s in range(1, min(n_players, MOST_PLAYERS + 1)):
        masks = rng.random((4, n_players)).argsort(axis=1) < s
        noise[s] = np.sqrt(game.means(pilot, masks, _PILOT_DRAWS, s).variances.max(axis=2).mean())
    return noise if noise[1:n_players].any() else np.ones(n_players + 1)


def _below(arrays: dict[str, NDArray[Any]], start: str) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}
