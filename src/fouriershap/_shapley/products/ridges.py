"""`RidgeEngine`: functions of a few directions against one background, as sines that reach as far as hybrids do.

Sines stand for a ridge only where scores lie within a reach. The reach of a row against the background is known before
it is explained: every player brings its own part of the score, or that of a background row. So there are sines for the
background's own reach, for twice it, four times, ...: each made when a row asks for it, and a row always by the
shortest that hold for it, whatever other rows came with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import InputError
from fouriershap._shapley.engine import (
    BackgroundRows,
    Contents,
    EngineInfo,
    Floats,
    PageLookup,
    Quality,
)
from fouriershap._shapley.indices import Index, InteractionIndex
from fouriershap._shapley.means import PlayerSets, means_by_definition
from fouriershap._shapley.outputs.kinds import Output
from fouriershap._shapley.policy import Memo
from fouriershap._shapley.products.engine import (
    NO_LOOKUP,
    ModelEngine,
    ProductEngine,
    ProductPlan,
    ProductSettings,
    compile_products,
    product_header,
    read_product_header,
)
from fouriershap._shapley.products.model import WeightedRows, weighted_rows
from fouriershap._shapley.sets import (
    InteractionEngine,
    Keys,
    QuickInteractions,
    all_keys,
    check_count,
    select_keys,
)
from fouriershap._waves.products import Products
from fouriershap._waves.ridges import Ridges

_ROOM = 1.5  # of the background's own reach, for rows a little beyond
_LEAST = 1.0
_USUAL_LEVEL = 1  # of rows that the background does not hold
_MOST_LEVEL = 40
_ROWS_PER_BLOCK = 1024


@dataclass(frozen=True, eq=False)
class RidgeEngine(ModelEngine):
    """SHAP values of `Products` with ridges (see `Engine`).

    Attributes
    ----------
    model : Products
    weighted : WeightedRows
        The background.
    index : Index
    n_background : int or None
    settings : ProductSettings
    output : Output
        What the model stands for.
    device : {"cpu", "jax"}
    levels : Memo
        Engines and errors by how often their reach is doubled, made when they are asked for.
    """

    model: Products
    weighted: WeightedRows
    index: Index
    n_background: int | None
    settings: ProductSettings
    output: Output
    device: str = "cpu"
    levels: Memo[tuple[ProductEngine, Floats]] = field(default_factory=Memo)

    @property
    def background(self) -> BackgroundRows:
        return BackgroundRows(self.weighted.rows, self.weighted.weights)

    @property
    def ridges(self) -> Ridges:
        assert self.model.ridges is not None  # `make_engine` has seen to it
        return self.model.ridges

    @cached_property
    def expected(self) -> Floats:
        outputs = self.model.predict(self.weighted.rows)
        return np.asarray(np.average(outputs, axis=0, weights=self.weighted.weights))

    @cached_property
    def origin(self) -> Floats:
        """(n_features,) the mean of the background."""
        return np.asarray(np.average(self.weighted.rows, axis=0, weights=self.weighted.weights))

    @cached_property
    def ends(self) -> tuple[Floats, Floats]:
        """(n_players, n_ridges): the least and the most that a player of the background adds to a score."""
        low = np.full((self.n_players, len(self.ridges)), np.inf)
        high = -low
        for first in range(0, len(self.weighted), _ROWS_PER_BLOCK):
            some = self.ridges.by_player(
                self.weighted.rows[first : first + _ROWS_PER_BLOCK], self.model.player
            )
            low, high = np.minimum(low, some.min(axis=0)), np.maximum(high, some.max(axis=0))
        return low, high

    @cached_property
    def reach(self) -> tuple[Floats, Floats]:
        """(n_ridges,) the middle and half the width of the shortest reach."""
        low, high = (end.sum(axis=0) + self.ridges.offsets for end in self.ends)
        return (low + high) / 2, np.maximum(_ROOM * (high - low) / 2, _LEAST)

    def level_of(self, rows: NDArray[Any]) -> NDArray[np.int64]:
        """Return how often the reach is doubled for each row, (n_rows,)."""
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
        """Return the engine whose sines reach so far, and their largest error (n_outputs,)."""
        middle, half = self.reach
        wide = half * 2.0**level
        model, error = self.model.expanded(middle - wide, middle + wide, self.origin)
        rows = (self.weighted.rows, self.weighted.weights)
        made = compile_products(model, *rows, self.index, self.settings)
        return made.to(self.device), error

    def engine(self, level: int = 0) -> ProductEngine:
        return self.levels.get(level, self.compile_level)[0]

    def by_level(self, rows: NDArray[Any]) -> Iterator[tuple[NDArray[np.int64], ProductEngine]]:
        """Yield positions of rows, and the engine that explains them."""
        levels = self.level_of(rows)
        for level in np.unique(levels):
            chosen = np.flatnonzero(levels == level)
            try:
                yield chosen, self.engine(int(level))
            except InputError as error:
                is_far = (
                    level > _USUAL_LEVEL
                )  # other rows are like the background, whose own scores are large
                where = "lies far outside the background" if is_far else "cannot be explained"
                raise InputError(f"row {chosen[0]} {where}: {error}") from None

    @property
    def quality(self) -> Quality:
        return self.engine().quality

    @property
    def outline(self) -> EngineInfo:
        """The facts for which nothing needs to be compiled."""
        return EngineInfo("products", self.n_background, n_terms=self.model.coefficients.shape[2])

    @property
    def info(self) -> EngineInfo:
        engine, error = self.levels.get(0, self.compile_level)
        return replace(engine.info, n_background=self.n_background, expansion_error=float(error.max()))

    def shap_values(self, rows: NDArray[Any], n_jobs: int = -1, outputs: Floats | None = None) -> Floats:
        out = np.zeros((len(rows), self.n_players, self.n_outputs))
        for chosen, engine in self.by_level(rows):
            out[chosen] = engine.shap_values(rows[chosen], n_jobs)
        if outputs is not None:
            outputs[:] = self.predict(rows, n_jobs)
        return out

    def predict(self, rows: NDArray[Any], n_jobs: int = -1) -> Floats:
        del n_jobs  # a matrix product
        return self.model.predict(rows)

    def interactions(
        self, index: InteractionIndex, order: int, wanted: Keys | None = None, min_order: int = 1
    ) -> RidgeSets:
        if wanted is None:
            check_count(self.n_players, order)
            wanted = all_keys(range(self.n_players), order, self.n_players)
        keys = select_keys(wanted, None, min_order, self.n_players)
        return RidgeSets(self, keys, index, order, min_order)

    def partial_means(self, rows: NDArray[Any], sets: PlayerSets, n_jobs: int = -1) -> Floats:
        return means_by_definition(self.predict, rows, self.background, self.player, sets, n_jobs)

    def lookups(self, budget: int) -> list[PageLookup] | str:
        del budget
        return NO_LOOKUP

    def with_background(self, rows: NDArray[Any], weights: Floats | None) -> RidgeEngine:
        weighted = weighted_rows(rows, weights)
        return replace(self, weighted=weighted, n_background=len(rows), levels=Memo())

    def to(self, device: str) -> RidgeEngine:
        return replace(self, device=device, levels=Memo())

    def build(self, n_jobs: int = -1) -> None:
        del n_jobs
        self.engine()

    def plan(self, n_rows: int | None) -> ProductPlan:
        return self.engine().plan(n_rows)

    def to_contents(self, interactions: bool, background: bool = True) -> Contents:
        """Return the model and the background; sines are made anew from both."""
        del interactions, background
        arrays, model = self.model.to_contents()
        header = product_header(self.index, self.n_background, self.settings, self.output)
        return arrays | self.weighted.to_arrays(), header | model | {"strategy": "ridges"}

    @classmethod
    def from_contents(
        cls, arrays: dict[str, NDArray[Any]], header: dict[str, Any], model: Products
    ) -> RidgeEngine:
        """Return what `to_contents` wrote."""
        weighted = WeightedRows.from_arrays(arrays, model.n_features)
        return cls(model, weighted, *read_product_header(header, model.n_players))


@dataclass(frozen=True, eq=False)
class RidgeSets(QuickInteractions):
    """Interactions of sets in ridges (see `InteractionEngine`)."""

    engine: RidgeEngine
    keys: Keys
    index: InteractionIndex
    order: int
    min_order: int

    @property
    def n_outputs(self) -> int:
        return self.engine.n_outputs

    @property
    def rows_per_block(self) -> int:
        return self._of(self.engine.engine()).rows_per_block

    def _of(self, engine: ProductEngine) -> InteractionEngine:
        return engine.interactions(self.index, self.order, self.keys, self.min_order)

    def add(self, rows: NDArray[Any], out: Floats) -> None:
        for chosen, engine in self.engine.by_level(rows):
            some = np.zeros((len(chosen), len(self.keys), self.n_outputs))
            self._of(engine).add(rows[chosen], some)
            out[chosen] += some


def make_engine(
    model: Products,
    rows: NDArray[Any],
    weights: Floats | None,
    index: Index,
    settings: ProductSettings,
    output: Output,
) -> ProductEngine | RidgeEngine:
    """Return the engine of products against a background, with ridges or without."""
    if model.ridges is None:
        return compile_products(model, rows, weights, index, settings, output)
    return RidgeEngine(model, weighted_rows(rows, weights), index, len(rows), settings, output)
