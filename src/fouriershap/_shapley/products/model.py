"""`ProductSum`: what the engine for sums of products explains, and what its strategies share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import CapacityError
from fouriershap._base.headers import require
from fouriershap._base.parallel import for_each_block
from fouriershap._shapley.engine import Floats

BLOCK_NUMBERS = 1 << 20  # most factors that a block of rows has at a time, for each thread
_MOST_TERMS_AND_PLAYERS = 1 << 26


class ProductSum(Protocol):
    """A function of rows: a constant, a sum over players, and the real part of a sum of products over players.

    Waves are such sums, with factors on the unit circle; so are kernel machines, with real factors.

    Attributes
    ----------
    n_players, n_outputs : int
    coefficients : (n_outputs, 2, n_terms) float64
        Real parts, and imaginary ones negated. ``n_terms`` is a multiple of 16; terms that fill up have 0.
    """

    @property
    def n_players(self) -> int: ...

    @property
    def n_outputs(self) -> int: ...

    @property
    def coefficients(self) -> Floats: ...

    def factors(self, rows: NDArray[Any], dtype: Any = np.float64) -> NDArray[Any]:
        """Return the factor of each player in each term, real and imaginary parts, (n_rows, n_players, 2, n_terms)."""

    def additive(self, rows: NDArray[Any]) -> Floats:
        """Return what each player adds by itself, (n_rows, n_players, n_outputs)."""

    def products(self, rows: NDArray[Any]) -> Floats:
        """Return the constant and the sum of products, in double precision, (n_rows, n_outputs)."""

    def predict(self, rows: NDArray[Any]) -> Floats:
        """Return the whole function, (n_rows, n_outputs)."""

    def embed(self, rows: NDArray[Any]) -> NDArray[np.float32]:
        """Return rows as points (n_rows, n_axes): near ones have similar factors."""


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """Rows to compare with.

    Attributes
    ----------
    rows : (n_rows, n_features)
    weights : (n_rows,) float64
        They add up to 1.
    """

    rows: NDArray[Any]
    weights: Floats

    def __len__(self) -> int:
        return len(self.rows)

    def part(self, chosen: NDArray[np.int64]) -> WeightedRows:
        """Return some of the rows."""
        return WeightedRows(self.rows[chosen], self.weights[chosen] / self.weights[chosen].sum())

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return named arrays for a file."""
        return {"background": self.rows, "background_weights": self.weights}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], n_features: int) -> WeightedRows:
        """Return what `to_arrays` gave, for rows of numbers."""
        rows, weights = arrays["background"], arrays["background_weights"]
        fits = rows.dtype == np.float64 and rows.ndim == 2 and rows.shape[1] == n_features
        require(fits and len(rows) > 0 and np.isfinite(rows).all(), "its background has the wrong columns")
        weighed = weights.dtype == np.float64 and weights.shape == (len(rows),) and (weights >= 0).all()
        require(weighed and abs(weights.sum() - 1) < 1e-6, "the weights of its background do not add up")
        return cls(rows, weights)


def weighted_rows(rows: NDArray[Any], weights: Floats | None) -> WeightedRows:
    """Return rows with weights that add up to 1, without those of weight 0."""
    if weights is None:
        return WeightedRows(rows, np.full(len(rows), 1 / len(rows)))
    kept = weights > 0
    return WeightedRows(rows[kept], weights[kept])


def as_complex(factors: NDArray[Any]) -> NDArray[Any]:
    """Return factors (..., 2, n_terms) as complex numbers (..., n_terms)."""
    out: NDArray[Any] = factors[..., 0, :] + 1j * factors[..., 1, :]
    return out


def as_factors(numbers: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """Return complex numbers as factors: the inverse of `as_complex`."""
    return np.ascontiguousarray(np.stack([numbers.real, numbers.imag], axis=-2), dtype=dtype)


def other_products(factors: NDArray[Any]) -> NDArray[Any]:
    """Return for each player the product of the complex factors (..., n_players, n_terms) of all others."""
    ones = np.ones_like(factors[..., :1, :])
    before = np.cumprod(np.concatenate([ones, factors[..., :-1, :]], axis=-2), axis=-2)
    after = np.cumprod(np.concatenate([ones, factors[..., :0:-1, :]], axis=-2), axis=-2)[..., ::-1, :]
    out: NDArray[Any] = before * after
    return out


def product_means(
    model: ProductSum, rows: NDArray[Any], background: WeightedRows, sets: list[list[int]]
) -> Floats:
    """Return how far the mean of the products is from that of the background, where sets of players come from rows.

    (n_rows, n_sets, n_outputs). The means of the products of all other players are taken once, over the whole
    background.
    """
    coefficients = np.conj(as_complex(model.coefficients))
    out = np.zeros((len(rows), len(sets), model.n_outputs))
    if not coefficients.shape[1]:
        return out
    near, whole = (
        np.zeros((len(sets), coefficients.shape[1]), complex),
        np.zeros(coefficients.shape[1], complex),
    )
    for part in blocks(model, background.rows):
        numbers, share = as_complex(model.factors(background.rows[part])), background.weights[part]
        whole += share @ numbers.prod(axis=1)
        others = other_products(numbers)
        for k, players in enumerate(sets):
            one = len(players) == 1
            near[k] += share @ (
                others[:, players[0]] if one else np.delete(numbers, players, axis=1).prod(axis=1)
            )
    for part in blocks(model, rows):
        numbers = as_complex(model.factors(rows[part]))
        for k, players in enumerate(sets):
            change = numbers[:, players].prod(axis=1) * near[k] - whole
            out[part, k] = (change @ coefficients.T).real
    return out


def rows_per_block(model: ProductSum) -> int:
    """Return how many rows' factors are held at a time."""
    each = max(model.n_players * max(int(model.coefficients[0].size), model.n_outputs), 1)
    if each > _MOST_TERMS_AND_PLAYERS:
        raise CapacityError(
            f"{model.n_players:,} players and {model.coefficients.shape[2]:,} terms have too many factors for one row."
        )
    return max(BLOCK_NUMBERS // each, 1)


def blocks(model: ProductSum, rows: NDArray[Any]) -> Iterator[slice]:
    """Yield slices of rows whose factors fit into memory."""
    step = rows_per_block(model)
    return (slice(first, first + step) for first in range(0, len(rows), step))


def by_blocks(
    work: Callable[[NDArray[Any]], Floats],
    model: ProductSum,
    rows: NDArray[Any],
    out: Floats,
    n_jobs: int,
) -> Floats:
    """Fill ``out`` with ``work(rows)``, in blocks on several threads."""

    def block(first: int, last: int) -> None:
        out[first:last] = work(rows[first:last])

    for_each_block(block, len(rows), rows_per_block(model), n_jobs)
    return out
