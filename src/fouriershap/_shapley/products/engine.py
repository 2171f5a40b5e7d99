"""`ProductEngine`: a sum of products over players against one background."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap import _kernels as kernels
from fouriershap._base.checks import check_choice
from fouriershap._base.errors import CapacityError
from fouriershap._base.headers import require, take, take_size
from fouriershap._shapley.engine import Contents, Floats
from fouriershap._shapley.indices import INDICES
from fouriershap._shapley.pairs import key_pairs
from fouriershap._shapley.products.additive import Additive
from fouriershap._shapley.products.components import Pairs, compile_pairs
from fouriershap._shapley.products.mixture import Mixture, compile_mixture
from fouriershap._shapley.products.model import (
    Background,
    ProductSum,
    by_blocks,
    make_background,
    rows_per_block,
)
from fouriershap._shapley.products.road import Road
from fouriershap._shapley.products.subsets import MOST_NUMBERS, MOST_PLAYERS, Subsets, compile_subsets

MOST_PAIRS = 32  # rows of a background that is not compressed
MOST_BYTES = 2 << 30  # of what an exact road holds
_ROADS: dict[str, Any] = {road.name: road for road in (Additive, Pairs, Subsets, Mixture)}


@dataclass(frozen=True)
class ProductPlan:
    """How a sum of products is explained, and why.

    Attributes
    ----------
    method : {"additive", "pairs", "subsets", "mixture", "definition", "fitted"}
        Players by themselves, every row of the background, every coalition, or a few products of marginals. The last
        two are for responses that are no sums of products.
    n_components : int
        Products that stand for the background; 0 where nothing does.
    error : float
        Share of the square sum of the values that is missed by that; 0 where exact.
    reason : str
    """

    method: str
    n_components: int
    error: float
    reason: str


@dataclass(frozen=True, eq=False)
class ProductEngine:
    """SHAP values of a sum of products (see `Engine`); rows are what the sum takes.

    Attributes
    ----------
    model : ProductSum
    road : Road
    centre : (n_players, n_outputs) float64
        Mean over the background of what players add by themselves.
    expected : (n_outputs,) float64
    index : str
    n_background : int or None
    tolerance : float
        Most error of a compressed background.
    exact : bool
        Whether no background is compressed.
    device : {"cpu", "jax"}
    budget : int
        See `compile_products`.
    """

    model: ProductSum
    road: Road
    centre: Floats
    expected: Floats
    index: str
    n_background: int | None
    tolerance: float
    exact: bool
    device: str = "cpu"
    budget: int = 0

    @property
    def n_players(self) -> int:
        return self.model.n_players

    @property
    def n_outputs(self) -> int:
        return self.model.n_outputs

    @property
    def kernel(self) -> Any:
        """What works on factors: the native kernels, or the same under XLA."""
        if self.device == "cpu":
            return kernels.products
        return import_module("fouriershap._shapley.jax.products")

    @property
    def error(self) -> float:
        """What the compressed background misses of the values, as a share of their square sum."""
        return self.road.error

    def shap_values(
        self, rows: NDArray[Any], n_jobs: int | None = None, outputs: Floats | None = None
    ) -> Floats:
        out = np.zeros((len(rows), self.n_players, self.n_outputs))

        def work(some: NDArray[Any]) -> Floats:
            return self.road.values(self.model, some, self.kernel) + self.model.additive(some) - self.centre

        by_blocks(work, self.model, rows, out, n_jobs)
        if outputs is not None:
            outputs[:] = self.predict(rows, n_jobs)
        return out

    def predict(self, rows: NDArray[Any], n_jobs: int | None = None) -> Floats:
        out = np.zeros((len(rows), self.n_outputs))
        return by_blocks(self.model.predict, self.model, rows, out, n_jobs)

    def pairs(self, wanted: NDArray[np.int64] | None) -> ProductPairs:
        if wanted is None and isinstance(self.road, Additive):
            pairs = np.empty((0, 2), dtype=np.int32)
        elif wanted is None:
            pairs = np.stack(np.triu_indices(self.n_players, 1), axis=1).astype(np.int32)
        else:
            pairs = key_pairs(wanted, self.n_players)
        return ProductPairs(self, pairs)

    def with_background(self, rows: NDArray[Any], weights: Floats | None) -> ProductEngine:
        other = compile_products(
            self.model, rows, weights, self.index, self.tolerance, self.exact, self.budget
        )
        return other.to(self.device)

    def to(self, device: str) -> ProductEngine:
        return replace(self, device=device)

    def build(self, n_jobs: int | None = None) -> None:
        """Nothing: the background is compiled from the beginning."""

    def plan(self, n_rows: int | None) -> ProductPlan:
        del n_rows  # what is compiled is used
        reasons = {
            "additive": "no player's part depends on another's",
            "pairs": "every row of the background",
            "subsets": "few players: every coalition has its table",
            "mixture": "a few products of marginals stand for the background",
        }
        return ProductPlan(self.road.name, self.road.n_components, self.road.error, reasons[self.road.name])

    def describe(self) -> dict[str, Any]:
        return {
            "kind": "products",
            "n_terms": self.model.coefficients.shape[2],
            "road": self.road.name,
            "n_components": self.road.n_components,
            "background_error": self.road.error,
            "n_background": self.n_background,
            "by_path": False,
        }

    def to_contents(self, interactions: bool) -> Contents:
        """What the background was compiled to; the model is the caller's. Interactions need nothing more."""
        del interactions
        arrays, header = self.road.to_contents()
        own = {"centre": self.centre, "expected": self.expected}
        settings = {"tolerance": self.tolerance, "exact": self.exact, "n_background": self.n_background}
        settings |= {"budget": self.budget}
        return arrays | own, header | settings | {"road": self.road.name}

    @classmethod
    def from_contents(
        cls, arrays: dict[str, NDArray[Any]], header: dict[str, Any], model: ProductSum
    ) -> ProductEngine:
        """The inverse of `to_contents`: nothing is compiled."""
        name = take(header, "road", str)
        require(name in _ROADS, "it explains in a way that nobody knows")
        index = check_choice("index", take(header, "index", str), INDICES)
        road = _ROADS[name].from_contents(arrays, header, model)
        centre, expected = arrays["centre"], arrays["expected"]
        shapes = (model.n_players, model.n_outputs), (model.n_outputs,)
        for array, shape in zip((centre, expected), shapes, strict=True):
            fits = array.shape == shape and array.dtype == np.float64 and np.isfinite(array).all()
            require(fits, "its means are those of another model")
        settings = (
            take_size(header, "n_background"),
            take(header, "tolerance", float),
            take(header, "exact", bool),
        )
        return cls(model, road, centre, expected, index, *settings, budget=take(header, "budget", int, 0))


@dataclass(frozen=True, eq=False)
class ProductPairs:
    """Interactions of a sum of products (see `PairEngine`)."""

    engine: ProductEngine
    pairs: NDArray[np.int32]

    @property
    def n_outputs(self) -> int:
        return self.engine.n_outputs

    @property
    def rows_per_block(self) -> int:
        return rows_per_block(self.engine.model)

    def add(self, rows: NDArray[Any], out: Floats) -> None:
        out += self.engine.road.interactions(self.engine.model, rows, self.pairs, self.engine.kernel)


def compile_products(
    model: ProductSum,
    rows: NDArray[Any],
    weights: Floats | None,
    index: str = "shapley",
    tolerance: float = 1e-3,
    exact: bool = False,
    budget: int = 0,
) -> ProductEngine:
    """A sum of products against a background.

    Parameters
    ----------
    tolerance : float
        Most of the square sum of the values that a compressed background may miss.
    exact : bool
        Compress no background, however long its rows take.
    budget : int
        Compress none either while a row takes no more multiplications than this.
    """
    background = make_background(rows, weights)
    road = _choose(model, background, index, tolerance, exact, budget)
    centre = np.average(model.additive(background.rows), axis=0, weights=background.weights)
    expected = np.average(model.predict(background.rows), axis=0, weights=background.weights)
    return ProductEngine(model, road, centre, expected, index, len(rows), tolerance, exact, budget=budget)


def _choose(
    model: ProductSum, background: Background, index: str, tolerance: float, exact: bool, budget: int
) -> Road:
    n_players, n_terms = model.n_players, model.coefficients.shape[2]
    if n_terms == 0:
        return Additive(index)
    few = n_players <= MOST_PLAYERS and (1 << n_players) * n_terms <= MOST_NUMBERS
    by_pairs = len(background) * n_players * (n_players + 1) // 2
    if few and not by_pairs < 1 << n_players:
        return compile_subsets(model, background, index)
    exactly = exact or len(background) <= MOST_PAIRS
    if budget and n_players <= MOST_PLAYERS and (1 << n_players) < by_pairs:
        numbers = (1 << n_players) * n_terms * model.n_outputs
        if (exactly or numbers <= budget) and 16 * numbers <= MOST_BYTES:
            return compile_subsets(model, background, index)
    if exactly or by_pairs * n_terms <= budget:
        _check_room(16 * len(background) * n_players * n_terms)
        return compile_pairs(model, background, index)
    return compile_mixture(model, background, index, tolerance)


def _check_room(n_bytes: int) -> None:
    if n_bytes > MOST_BYTES:
        raise CapacityError(
            f"the factors of every background row would take {n_bytes / 1e9:.1f} GB. Give fewer background rows, or "
            "leave out exact_background=True: then a few products of marginals stand for them."
        )
