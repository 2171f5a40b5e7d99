"""Strategy "pairs": the row against every row of the background. Exact; its cost grows with the background."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.headers import require
from fouriershap._shapley.engine import Contents, Floats
from fouriershap._shapley.indices import Index, grid, points
from fouriershap._shapley.products.model import ProductSum, WeightedRows, as_complex, as_factors
from fouriershap._shapley.structure import Subgame

Sets = NDArray[np.int64]  # (n_sets, size) players

_TINY = {4: 1e-15, 8: 1e-150}  # stands for a factor 0, which cannot be divided out of a product, by bytes
_NUMBERS = 1 << 22  # most complex numbers of a step


@dataclass(frozen=True, eq=False)
class Points:
    """Where the product of the others is taken, by the share of players that come from the row.

    Attributes
    ----------
    points : (n,) or (n, n_players) float64
        One share, or one for each player.
    weights : (n,) float64
    """

    points: Floats
    weights: Floats


def exact_points(index: Index, n_players: int) -> Points:
    """Return the points that integrate products of this many players, less one whose value it is, exactly."""
    return Points(*points(index, index.n_points(n_players)))


@dataclass(frozen=True, eq=False)
class Pairs:
    """Rows of the background by their factors (see `Strategy`).

    Attributes
    ----------
    components : (n_components, n_players, 2, n_terms) float64
    weights : (n_components,) float64
    index : Index
    """

    name: ClassVar[str] = "pairs"
    error: ClassVar[float] = 0.0
    components: Floats
    weights: Floats
    index: Index

    @property
    def n_components(self) -> int:
        return len(self.components)

    def values(self, model: ProductSum, rows: NDArray[Any], kernel: Any) -> Floats:
        return exact_values(model, model.factors(rows), self.components, self.weights, self.index, kernel)

    def interactions(
        self, model: ProductSum, rows: NDArray[Any], index: Index, sets: Sets, kernel: Any
    ) -> Floats:
        return component_sets(model, rows, self.components, self.weights, index, sets, kernel)

    def to_contents(self) -> Contents:
        return {"components": self.components, "component_weights": self.weights}, {}

    @classmethod
    def from_contents(
        cls, arrays: dict[str, NDArray[Any]], header: dict[str, Any], model: ProductSum, index: Index
    ) -> Pairs:
        """Return what `to_contents` wrote."""
        del header
        components, weights = arrays["components"], arrays["component_weights"]
        verify_components(components, weights, model, np.float64)
        return cls(components, weights, index)


def compile_pairs(model: ProductSum, background: WeightedRows, index: Index) -> Pairs:
    return Pairs(model.factors(background.rows), background.weights, index)


def verify_components(components: NDArray[Any], weights: NDArray[Any], model: ProductSum, dtype: Any) -> None:
    """Raise `FileFormatError` unless these are components for the model."""
    shape = (len(weights), model.n_players, *model.coefficients.shape[1:])
    fits = components.shape == shape and components.dtype == dtype and len(weights) > 0
    require(fits and np.isfinite(components).all(), "its components are those of another model")
    finite = weights.dtype == np.float64 and np.isfinite(weights).all() and (weights >= 0).all()
    require(finite, "its components have wrong weights")


def exact_values(
    model: ProductSum,
    factors: NDArray[Any],
    components: NDArray[Any],
    weights: Floats,
    index: Index,
    kernel: Any,
    most_players: int | None = None,
) -> Floats:
    """Return values (n_rows, n_players, n_outputs) by the points that are exact for all players, or for as many."""
    n_players = model.n_players
    if not index.subgames:
        where = exact_points(index, n_players if most_players is None else min(n_players, most_players))
        return component_values(model, factors, components, weights, where, kernel)
    out = np.zeros((len(factors), n_players, model.n_outputs))
    for game in index.subgames:
        where = Points(*grid(game))
        mine, others = _merged(factors, game), _merged(components, game)
        found = component_values(model, mine, others, weights, where, kernel)
        out[:, game.own] = found[:, : len(game.own)]
    return out


def _merged(factors: NDArray[Any], game: Subgame) -> NDArray[Any]:
    """Return the factors of the players of a merged game: products of those of its members."""
    numbers = as_complex(factors)
    out = np.ones((len(numbers), game.n_merged, numbers.shape[2]), dtype=numbers.dtype)
    for player, unit in enumerate(game.merged):
        out[:, unit] *= numbers[:, player]
    return as_factors(out, factors.dtype)


def component_values(
    model: ProductSum,
    factors: NDArray[Any],
    components: NDArray[Any],
    weights: Floats,
    where: Points,
    kernel: Any,
) -> Floats:
    """Return values (n_rows, n_players, n_outputs), in the precision of the factors."""
    n_players, dtype = factors.shape[1], factors.dtype
    out = np.zeros((len(factors), n_players, model.n_outputs))
    points = where.points if where.points.ndim == 2 else np.repeat(where.points[:, None], n_players, axis=1)
    kernel.components(
        factors,
        components,
        weights.astype(dtype),
        points.astype(dtype),
        where.weights.astype(dtype),
        model.coefficients.astype(dtype),
        out,
    )
    return out


def component_sets(
    model: ProductSum,
    rows: NDArray[Any],
    components: NDArray[Any],
    weights: Floats,
    index: Index,
    sets: Sets,
    kernel: Any,
) -> Floats:
    """Return interactions (n_rows, n_sets, n_outputs) of sets (n_sets, size) of players, as precise as the components.

    A set gets the whole product over its factors, times the differences of these: a matrix product over terms, points
    and components, with a line for each beginning of a set and a column for each last player.
    """
    where = exact_points(index, max(model.n_players - sets.shape[1] + 1, 1))
    factors = model.factors(rows, components.dtype)
    if sets.shape[1] == 1:
        return component_values(model, factors, components, weights, where, kernel)[:, sets[:, 0]]
    out = np.zeros((len(rows), len(sets), model.n_outputs))
    x, a = as_complex(factors), as_complex(components)
    coefficients = np.conj(as_complex(model.coefficients)).astype(a.dtype)
    at, at_weights = (each.astype(components.dtype) for each in (where.points, where.weights))
    tiny = _TINY[components.dtype.itemsize]
    begins, begin_of = np.unique(sets[:, :-1], axis=0, return_inverse=True)
    begin_of = begin_of.reshape(-1)
    step = max(
        _NUMBERS // max(len(where.points) * max(x[0].size, x.shape[2] * len(begins)) if len(x) else 1, 1), 1
    )
    for r, mine in enumerate(x):
        for start in range(0, len(a), step):
            some, share = a[start : start + step, None], weights[start : start + step, None].astype(at.dtype)
            distance = mine - some
            between = some + at[:, None, None] * distance  # (components, points, players, terms)
            between[np.abs(between) < tiny] = tiny
            ratio = np.ascontiguousarray(np.moveaxis(distance / between, 2, 0))
            whole = between.prod(axis=2) * (share * at_weights)[:, :, None]
            ratio = ratio.reshape(len(ratio), *whole.shape)
            for o, mine_of in enumerate(coefficients):
                lines = whole * mine_of * ratio[begins[:, 0]]
                for column in begins.T[1:]:
                    lines *= ratio[column]
                found = _real_products(lines.reshape(len(begins), -1), ratio.reshape(len(ratio), -1))
                out[r, :, o] += found[begin_of, sets[:, -1]]
    return out


def _real_products(lines: NDArray[Any], columns: NDArray[Any]) -> Floats:
    """Return the real parts of all sums of products, by one matrix product of reals."""
    return np.asarray(np.conj(lines).view(lines.real.dtype) @ columns.view(columns.real.dtype).T)
