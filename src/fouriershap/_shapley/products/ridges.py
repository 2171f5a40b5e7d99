"""`RidgeEngine`: functions of a few directions against one background, as sines that reach as far as hybrids do.

Sines stand for a ridge only where scores lie within a reach. The reach of a row against the background is known before
it is explained: every player brings its own part of the score, or that of a background row. So there are sines for the
background's own reach, for twice it, four times, ...: each made when a row asks for it, and a row always by the
shortest that hold for it, whatever other rows came with it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.checks import check_choice
from fouriershap._base.errors import InputError
from fouriershap._base.headers import take, take_size
from fouriershap._shapley.engine import Contents, Floats
from fouriershap._shapley.indices import INDICES
from fouriershap._shapley.pairs import key_pairs
from fouriershap._shapley.products.engine import ProductEngine, ProductPlan, compile_products
from fouriershap._shapley.products.model import Background, make_background
from fouriershap._waves.products import Products
from fouriershap._waves.ridges import Ridges

_ROOM = 1.5  # of the background's own reach, for rows a little beyond
_LEAST = 1.0
_MOST_LEVEL = 40
_ROWS_PER_BLOCK = 1024


class Levels:
    """Engines by how far they reach, made when they are asked for; behind a lock."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[ProductEngine, Floats]] = {}
        self._lock = threading.RLock()

    def get(self, level: int, owner: RidgeEngine) -> tuple[ProductEngine, Floats]:
        with self._lock:
            if level not in self._made:
                self._made[level] = owner.compile_level(level)
            return self._made[level]

    def __getstate__(self) -> dict[str, Any]:
        return {"_made": dict(self._made)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__()  # type: ignore[misc]
        self._made = state["_made"]


@dataclass(frozen=True, eq=False)
class RidgeEngine:
    """SHAP values of `Products` with ridges (see `Engine`).

    Attributes
    ----------
    model : Products
    background : Background
    index : str
    n_background : int or None
    tolerance, exact, budget
        See `compile_products`.
    device : {"cpu", "jax"}
    levels : Levels
    """

    model: Products
    background: Background
    index: str
    n_background: int | None
    tolerance: float
    exact: bool
    budget: int
    device: str
    levels: Levels

    @property
    def n_players(self) -> int:
        return self.model.n_players

    @property
    def n_outputs(self) -> int:
        return self.model.n_outputs

    @property
    def ridges(self) -> Ridges:
        assert self.model.ridges is not None  # `make_engine` has seen to it
        return self.model.ridges

    @cached_property
    def expected(self) -> Floats:
        outputs = self.model.predict(self.background.rows)
        return np.asarray(np.average(outputs, axis=0, weights=self.background.weights))

    @cached_property
    def origin(self) -> Floats:
        """(n_features,) the mean of the background."""
        return np.asarray(np.average(self.background.rows, axis=0, weights=self.background.weights))

    @cached_property
    def ends(self) -> tuple[Floats, Floats]:
        """(n_players, n_ridges): the least and the most that a player of the background adds to a score."""
        low = np.full((self.n_players, len(self.ridges)), np.inf)
        high = -low
        for first in range(0, len(self.background), _ROWS_PER_BLOCK):
            some = self.ridges.by_player(
                self.background.rows[first : first + _ROWS_PER_BLOCK], self.model.player
            )
            low, high = np.minimum(low, some.min(axis=0)), np.maximum(high, some.max(axis=0))
        return low, high

    @cached_property
    def reach(self) -> tuple[Floats, Floats]:
        """(n_ridges,) the middle and half the width of the shortest reach."""
        low, high = (end.sum(axis=0) + self.ridges.offsets for end in self.ends)
        return (low + high) / 2, np.maximum(_ROOM * (high - low) / 2, _LEAST)

    def level_of(self, rows: NDArray[Any]) -> NDArray[np.int64]:
        """(n_rows,): how often the reach is doubled for each row."""
        (low, high), (middle, half) = self.ends, self.reach
        out = np.zeros(len(rows), dtype=np.int64)
        for first in range(0, len(rows), _ROWS_PER_BLOCK):
            mine = self.ridges.by_player(rows[first : first + _ROWS_PER_BLOCK], self.model.player)
            least = np.minimum(mine, low).sum(axis=1) + self.ridges.offsets
            most = np.maximum(mine, high).sum(axis=1) + self.ridges.offsets
            beyond = (np.maximum(most - middle, middle - least) / half).max(axis=1, initial=1.0)
            level = np.ceil(np.log2(np.maximum(beyond, 1.0)))
            out[first : first + len(mine)] = np.minimum(level, _MOST_LEVEL)
        return out

    def compile_level(self, level: int) -> tuple[ProductEngine, Floats]:
        """The engine whose sines reach so far, and the most error (n_outputs,) of these."""
        middle, half = self.reach
        wide = half * 2.0**level
        model, error = self.model.expanded(middle - wide, middle + wide, self.origin)
        settings = (self.index, self.tolerance, self.exact, self.budget)
        made = compile_products(model, self.background.rows, self.background.weights, *settings)
        return made.to(self.device), error

    def engine(self, level: int = 0) -> ProductEngine:
        return self.levels.get(level, self)[0]

    def by_level(self, rows: NDArray[Any]) -> Iterator[tuple[NDArray[np.int64], ProductEngine]]:
        """Positions of rows, and the engine that explains them."""
        levels = self.level_of(rows)
        for level in np.unique(levels):
            chosen = np.flatnonzero(levels == level)
            try:
                yield chosen, self.engine(int(level))
            except InputError as error:
                raise InputError(f"row {chosen[0]} lies far beyond the background: {error}") from None

    @property
    def error(self) -> float:
        """What the compressed background misses of the values, as a share of their square sum."""
        return self.engine().error

    def shap_values(
        self, rows: NDArray[Any], n_jobs: int | None = None, outputs: Floats | None = None
    ) -> Floats:
        out = np.zeros((len(rows), self.n_players, self.n_outputs))
        for chosen, engine in self.by_level(rows):
            out[chosen] = engine.shap_values(rows[chosen], n_jobs)
        if outputs is not None:
            outputs[:] = self.predict(rows, n_jobs)
        return out

    def predict(self, rows: NDArray[Any], n_jobs: int | None = None) -> Floats:
        del n_jobs  # a matrix product
        return self.model.predict(rows)

    def pairs(self, wanted: NDArray[np.int64] | None) -> RidgePairs:
        if wanted is None:
            pairs = np.stack(np.triu_indices(self.n_players, 1), axis=1).astype(np.int32)
        else:
            pairs = key_pairs(wanted, self.n_players)
        return RidgePairs(self, pairs, wanted)

    def with_background(self, rows: NDArray[Any], weights: Floats | None) -> RidgeEngine:
        return replace(
            self, background=make_background(rows, weights), n_background=len(rows), levels=Levels()
        )

    def to(self, device: str) -> RidgeEngine:
        return replace(self, device=device, levels=Levels())

    def build(self, n_jobs: int | None = None) -> None:
        del n_jobs
        self.engine()

    def plan(self, n_rows: int | None) -> ProductPlan:
        return self.engine().plan(n_rows)

    def describe(self) -> dict[str, Any]:
        engine, error = self.levels.get(0, self)
        return engine.describe() | {"n_background": self.n_background, "expansion_error": float(error.max())}

    def to_contents(self, interactions: bool) -> Contents:
        """The background; the model is the caller's. Sines are made anew from both."""
        del interactions
        settings = {"tolerance": self.tolerance, "exact": self.exact, "n_background": self.n_background}
        return self.background.to_arrays(), settings | {
            "budget": self.budget,
            "index": self.index,
            "road": "ridges",
        }

    @classmethod
    def from_contents(
        cls, arrays: dict[str, NDArray[Any]], header: dict[str, Any], model: Products
    ) -> RidgeEngine:
        """The inverse of `to_contents`."""
        return cls(
            model,
            Background.from_arrays(arrays, model.n_features),
            check_choice("index", take(header, "index", str), INDICES),
            take_size(header, "n_background"),
            take(header, "tolerance", float),
            take(header, "exact", bool),
            take(header, "budget", int),
            "cpu",
            Levels(),
        )


@dataclass(frozen=True, eq=False)
class RidgePairs:
    """Interactions of ridges (see `PairEngine`)."""

    engine: RidgeEngine
    pairs: NDArray[np.int32]
    wanted: NDArray[np.int64] | None

    @property
    def n_outputs(self) -> int:
        return self.engine.n_outputs

    @property
    def rows_per_block(self) -> int:
        return self.engine.engine().pairs(self.wanted).rows_per_block

    def add(self, rows: NDArray[Any], out: Floats) -> None:
        for chosen, engine in self.engine.by_level(rows):
            inner = engine.pairs(self.wanted)
            if len(inner.pairs):  # none where the reach has no bend
                some = np.zeros((len(chosen), len(self.pairs), self.n_outputs))
                inner.add(rows[chosen], some)
                out[chosen] += some


def make_engine(
    model: Products,
    rows: NDArray[Any],
    weights: Floats | None,
    index: str,
    tolerance: float,
    exact: bool,
    budget: int,
) -> ProductEngine | RidgeEngine:
    """Products against a background, with ridges or without (see `compile_products`)."""
    if model.ridges is None:
        return compile_products(model, rows, weights, index, tolerance, exact, budget)
    background = make_background(rows, weights)
    return RidgeEngine(model, background, index, len(rows), tolerance, exact, budget, "cpu", Levels())
