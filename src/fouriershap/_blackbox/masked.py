"""`MaskedEngine`: conditional values from the data alone, by boosted trees that learn from rows with unknown features.

Trees are fitted to outputs of rows in which random features are made unknown, so that they predict v(S), the mean
output given the others. Their SHAP values against the row of which nothing is known are exact for these trees; what
they miss of the output itself, where everything is known, belongs to all players alike.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.checks import import_optional
from fouriershap._base.errors import InputError
from fouriershap._base.headers import get_typed, require
from fouriershap._base.messages import truncated_repr
from fouriershap._blackbox.candidates.trees import one_thread
from fouriershap._blackbox.surrogates import TreeSurrogate
from fouriershap._libraries.sklearn.trees import read_hist_gradient_boosting
from fouriershap._shapley.engine import (
    Contents,
    DependenceReport,
    Engine,
    EngineInfo,
    Floats,
    PageLookup,
    Plan,
    Quality,
    WrappingEngine,
)
from fouriershap._shapley.indices import InteractionIndex
from fouriershap._shapley.sets import InteractionEngine, Keys
from fouriershap._shapley.sum import part_contents
from fouriershap._shapley.trees.engine import TreeEngine

_MASKS, _MOST_ROWS, _MOST_TREES = 20, 40_000, 200
_HELD_OUT = 5  # one of so many rows, with all of its masks, chooses how many trees there are
_OPTIONS = {"learning_rate": 0.1, "max_leaf_nodes": 31, "min_samples_leaf": 20, "l2_regularization": 1.0}


@dataclass(frozen=True, eq=False)
class MaskedEngine(WrappingEngine):
    """Conditional values of what another engine explains (see `Engine`).

    Attributes
    ----------
    trees : tuple of TreeEngine
        Of each output, against the row of which nothing is known.
    absent : (n_features,) float64
        The number that stands for a missing value, below all others; NaN stands for what is unknown.
    player : (n_features,) int32
    seed : int
    """

    trees: tuple[TreeEngine, ...]
    absent: Floats
    player: NDArray[np.int32]
    seed: int

    def encode(self, rows: NDArray[Any], name: str = "X") -> NDArray[Any]:
        """Return rows in which nothing is unknown."""
        del name
        return np.where(np.isnan(rows), self.absent, rows)

    @property
    def expected(self) -> Floats:
        return np.concatenate([each.expected for each in self.trees])

    @property
    def quality(self) -> Quality:
        return Quality(dependence=DependenceReport("data"))

    @property
    def info(self) -> EngineInfo:
        return replace(self.inner.info, is_conditional=True)

    def predict(self, rows: NDArray[Any], n_jobs: int = -1) -> Floats:
        return self.inner.predict(rows, n_jobs)

    def shap_values(self, rows: NDArray[Any], n_jobs: int = -1, outputs: Floats | None = None) -> Floats:
        known, found = self.encode(rows), self.predict(rows, n_jobs)
        if outputs is not None:
            outputs[:] = found
        values = np.concatenate([each.shap_values(known, n_jobs) for each in self.trees], axis=2)
        missed = found - np.concatenate([each.predict(known, n_jobs) for each in self.trees], axis=1)
        n = self.n_players
        return np.asarray(values + missed[:, None] / (n if self.adds_up else 2.0 ** (n - 1)))

    def interactions(
        self, index: InteractionIndex, order: int, wanted: Keys | None = None, min_order: int = 1
    ) -> InteractionEngine:
        raise InputError("dependence='data' has no interactions: use 'gaussian', 'copula' or 'mixture'.")

    def partial_means(self, rows: NDArray[Any], sets: Any, n_jobs: int = -1) -> Floats:
        known = self.encode(rows)
        out = np.empty((len(rows), len(sets), self.n_outputs))
        for s, players in enumerate(sets):
            some = np.where(np.isin(self.player, players), known, np.nan)
            out[:, s] = np.concatenate([each.predict(some, n_jobs) for each in self.trees], axis=1)
        return out

    def lookups(self, budget: int) -> list[PageLookup] | str:
        return "conditional values have no look-ups"

    def with_background(self, rows: NDArray[Any], weights: Floats | None) -> Engine:
        return fit_masked(self.inner.with_background(rows, weights), rows, weights, self.player, self.seed)

    def to(self, device: str) -> Engine:
        if device == "cpu":
            return self
        raise InputError(
            f"device is {truncated_repr(device)}, but conditional values are computed on 'cpu' only."
        )

    def build(self, n_jobs: int = -1) -> None:
        for each in self.trees:
            each.build(n_jobs)

    def plan(self, n_rows: int | None) -> Plan:
        return Plan(self.trees[0].plan(n_rows).strategy, "trees on rows with unknown features")

    def to_contents(self, interactions: bool, background: bool = False) -> Contents:
        arrays, header = self.inner.to_contents(interactions, background)
        arrays |= {"masked.absent": self.absent, "masked.player": self.player}
        parts = []
        for k, each in enumerate(self.trees):
            mine, part = each.to_contents(False, background=True)
            arrays |= {f"masked.part{k}.{name}": array for name, array in mine.items()}
            parts.append(part)
        return arrays, header | {"masked": {"parts": parts, "seed": self.seed}}

    @classmethod
    def from_contents(cls, arrays: dict[str, NDArray[Any]], header: dict[str, Any], inner: Engine) -> Self:
        """Build from what `to_contents` wrote; ``header`` is its part "masked"."""
        own = {name.removeprefix("masked."): a for name, a in arrays.items() if name.startswith("masked.")}
        n = len(get_typed(header, "parts", Any))
        trees = tuple(TreeEngine.from_contents(*part_contents(own, header, k)) for k in range(n))
        absent, player = own["absent"], own["player"]
        fits = absent.shape == player.shape and absent.dtype == np.float64 and np.isfinite(absent).all()
        fits = fits and n == inner.n_outputs and all(each.n_players == inner.n_players for each in trees)
        require(fits, "its trees have other features")
        for each in trees:
            require(np.array_equal(each.model.player, player), "its trees have other players")
        return cls(inner, trees, absent, player, get_typed(header, "seed", int))


def fit_masked(
    inner: Engine, rows: NDArray[Any], weights: Floats | None, player: NDArray[np.int32], seed: int
) -> MaskedEngine:
    """Fit trees to the outputs of rows of codes with unknown features."""
    rng = np.random.default_rng(seed)
    chosen = np.arange(len(rows)) if weights is None else np.flatnonzero(weights)
    if len(chosen) > _MOST_ROWS:
        chosen = chosen[rng.permutation(len(chosen))[:_MOST_ROWS]]
    rows, weights = rows[chosen], None if weights is None else weights[chosen]
    outputs, codes = inner.predict(rows), np.asarray(rows, dtype=np.float64)
    gone = np.isnan(codes)
    low, high = (np.where(gone, fill, codes) for fill in (np.inf, -np.inf))
    least, most = low.min(axis=0), high.max(axis=0)
    absent = np.where(gone.all(axis=0), 0.0, np.minimum(least - 1.0, 2 * least - most))
    known = np.where(gone, absent, codes)
    n_masks = int(np.clip(_MOST_ROWS // len(rows), 1, _MASKS))
    row = np.repeat(rng.permutation(len(rows)), n_masks)  # the masks of a row stay together
    n_players = inner.n_players
    sizes = rng.integers(0, n_players + 1, (len(row), 1))
    inside = rng.random((len(row), n_players)).argsort(axis=1) < sizes
    masked = np.where(inside[:, player], known[row], np.nan)
    share = np.ones(len(row)) if weights is None else weights[row] / weights.mean()
    n_judged = len(rows) // _HELD_OUT * n_masks
    trees = []
    for y in outputs[row].T:
        length = _MOST_TREES // 4
        if n_judged:
            model = _boost(masked[n_judged:], y[n_judged:], share[n_judged:], _MOST_TREES, seed)
            with one_thread():
                stages = model.staged_predict(masked[:n_judged])
                losses = [share[:n_judged] @ (stage - y[:n_judged]) ** 2 for stage in stages]
            length = 1 + int(np.argmin(losses))
        fitted = read_hist_gradient_boosting(_boost(masked, y, share, length, seed))
        surrogate = TreeSurrogate(fitted.trees, player)
        trees.append(surrogate.compile(np.full((1, codes.shape[1]), np.nan), None, inner.index))
    return MaskedEngine(inner, tuple(trees), absent, player, seed)


def _boost(rows: Floats, y: Floats, weights: Floats, length: int, seed: int) -> Any:
    ensemble = import_optional("sklearn.ensemble", "dependence='data'", "[blackbox]")
    options: dict[str, Any] = {"max_iter": length, "early_stopping": False, "random_state": seed}
    with one_thread():
        return ensemble.HistGradientBoostingRegressor(**_OPTIONS, **options).fit(rows, y, weights)
