"""The `products` kernels in NumPy: what `products.cpp` must compute. Shapes and meanings are documented here.

*Factors* are (n_rows, n_players, 2, n_terms): the factor of each player in each term, real parts before imaginary
ones. ``n_terms`` is a multiple of 16; terms that fill up have the coefficient 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]


def _complex(factors: NDArray[Any]) -> NDArray[np.complexfloating[Any, Any]]:
    """(..., 2, n_terms) as complex numbers (..., n_terms)."""
    out: NDArray[np.complexfloating[Any, Any]] = factors[..., 0, :] + 1j * factors[..., 1, :]
    return out


def _others(factors: NDArray[Any]) -> NDArray[Any]:
    """For each player, the product of the factors (n_players, n_terms) of all others."""
    ones = np.ones_like(factors[:1])
    before = np.cumprod(np.concatenate([ones, factors[:-1]]), axis=0)
    after = np.cumprod(np.concatenate([ones, factors[:0:-1]]), axis=0)[::-1]
    product: NDArray[Any] = before * after
    return product


def components(
    rows: NDArray[Any],
    mixture: NDArray[Any],
    weights: NDArray[Any],
    points: NDArray[Any],
    point_weights: NDArray[Any],
    coefficients: NDArray[Any],
    out: _Floats,
) -> None:
    """Add the values of rows against a mixture of products.

    Player j of a row with factors x gets the real part of the sum over terms, components a and points t of
    ``coefficient * weight * point_weight * (x_j - a_j) * prod_{k != j} (t_k x_k + (1 - t_k) a_k)``.

    Parameters
    ----------
    rows, mixture : factors, float32 or float64
    weights : (n_components,), of the same type
    points, point_weights : (n_points, n_players), (n_points,), of the same type
    coefficients : (n_outputs, 2, n_terms), of the same type
        Real parts, and imaginary ones negated.
    out : (n_rows, n_players, n_outputs) float64
        Added to.
    """
    x, a, w = _complex(rows), _complex(mixture), np.conj(_complex(coefficients))
    for r, mine in enumerate(x):
        for component, weight in zip(a, weights, strict=True):
            distance = mine - component
            for t, share in zip(points, point_weights, strict=True):
                each = distance * _others(component + t[:, None] * distance)
                out[r] += (weight * share * (each @ w.T)).real


def subset_sums(rows: _Floats, weights: _Floats, out: _Floats) -> None:
    """Add up the products of the factors of every set of players.

    Parameters
    ----------
    rows : factors, float64
    weights : (n_rows,) float64
    out : (2^n_players, 2, n_terms) float64
        Added to. Player j is in the set s where bit j of s is 1.
    """
    products = np.einsum("r,rsm->sm", weights, _products(rows))
    out[:, 0] += products.real
    out[:, 1] += products.imag


def games(rows: _Floats, table: _Floats, out: _Floats) -> None:
    """Compute the worth of every coalition for rows.

    Parameters
    ----------
    rows : factors, float64
    table : (n_outputs, 2^n_players, 2, n_terms) float64
        Coefficients of the products of a set, to sum over terms: real parts, then imaginary ones, negated.
    out : (n_rows, 2^n_players, n_outputs) float64
        Written: the real parts of the sums.
    """
    out[...] = np.einsum("rsm,osm->rso", _products(rows), np.conj(_complex(table))).real


def _products(rows: _Floats) -> NDArray[Any]:
    """(n_rows, 2^n_players, n_terms)."""
    x = _complex(rows)
    out = np.ones((len(x), 1, x.shape[2]), dtype=x.dtype)
    for j in range(x.shape[1]):
        out = np.concatenate([out, out * x[:, None, j]], axis=1)
    return out
