"""Strategy "pairs": the row against every row of the background. Exact; its cost grows with the background."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.headers import require
from fouriershap._shapley.engine import Contents, Floats
from fouriershap._shapley.indices import Index, points
from fouriershap._shapley.products.model import ProductSum, WeightedRows, as_complex

_TINY = 1e-150  # stands for a factor 0, which cannot be divided out of a product
_NUMBERS = 1 << 22  # most complex numbers of a step


@dataclass(frozen=True, eq=False)
class Points:
    """Where the product of the others is taken, by the share of players that come from the row.

    Attributes
    ----------
    points, weights : (n,) float64
    """

    points: Floats
    weights: Floats


def exact_points(index: Index, n_players: int) -> Points:
    """Return the points that integrate products of this many players exactly."""
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
        where = exact_points(self.index, model.n_players)
        return component_values(model, model.factors(rows), self.components, self.weights, where, kernel)

    def interactions(
        self, model: ProductSum, rows: NDArray[Any], pairs: NDArray[np.int32], kernel: Any
    ) -> Floats:
        del kernel  # a matrix product
        where = exact_points(self.index, model.n_players)
        return component_interactions(model, rows, self.components, self.weights, where, pairs)

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


def component_values(
    model: ProductSum,
    factors: NDArray[Any],
    components: NDArray[Any],
    weights: Floats,
    where: Points,
    kernel: Any,
) -> Floats:
    """Return values (n_rows, n_players, n_outputs), in the precision of the factors."""
    out = np.zeros((len(factors), model.n_players, model.n_outputs))
    dtype = factors.dtype
    kernel.components(
        factors,
        components,
        weights.astype(dtype),
        where.points.astype(dtype),
        where.weights.astype(dtype),
        model.coefficients.astype(dtype),
        out,
    )
    return out


def component_interactions(
    model: ProductSum,
    rows: NDArray[Any],
    components: NDArray[Any],
    weights: Floats,
    where: Points,
    pairs: NDArray[np.int32],
) -> Floats:
    """Return interactions (n_rows, n_pairs, n_outputs).

    A pair gets the whole product over its two factors, times the differences of the two: a matrix product over
    terms, points and components.
    """
    out = np.zeros((len(rows), len(pairs), model.n_outputs))
    x, a = as_complex(model.factors(rows)), as_complex(components.astype(np.float64))
    coefficients = np.conj(as_complex(model.coefficients))
    step = max(_NUMBERS // max(len(where.points) * x[0].size if len(x) else 1, 1), 1)
    for r, mine in enumerate(x):
        for first in range(0, len(a), step):
            some, share = a[first : first + step, None], weights[first : first + step, None]
            distance = mine - some
            between = some + where.points[:, None, None] * distance  # (components, points, players, terms)
            between[np.abs(between) < _TINY] = _TINY
            ratio = distance / between
            whole = between.prod(axis=2) * (share * where.weights)[:, :, None]
            for o, mine_of in enumerate(coefficients):
                matrix = np.einsum("cqm,cqjm,cqkm->jk", whole * mine_of, ratio, ratio, optimize=True)
                out[r, :, o] += matrix[pairs[:, 0], pairs[:, 1]].real
    return out
