"""Kernels of sums of products under XLA, with the arguments that `products_numpy` specifies."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from fouriershap._shapley.jax.common import pad, padded_size, x64


def components(
    rows: NDArray[Any],
    mixture: NDArray[Any],
    weights: NDArray[Any],
    points: NDArray[Any],
    point_weights: NDArray[Any],
    coefficients: NDArray[Any],
    out: NDArray[np.float64],
) -> None:
    """Add the values of rows against a mixture of products."""
    with x64(rows.dtype == np.float64):
        lines = pad(rows, padded_size(len(rows)))
        values = _RUN_COMPONENTS(lines, mixture, weights, points, point_weights, coefficients)
        out += np.asarray(values)[: len(rows)]


def games(rows: NDArray[Any], table: NDArray[Any], out: NDArray[np.float64]) -> None:
    """Write the worth of every coalition for rows."""
    with x64(rows.dtype == np.float64):
        out[...] = np.asarray(_RUN_GAMES(pad(rows, padded_size(len(rows))), table))[: len(rows)]


def _complex(factors: Any) -> Any:
    return factors[..., 0, :] + 1j * factors[..., 1, :]


def _components(
    rows: Any, mixture: Any, weights: Any, points: Any, point_weights: Any, coefficients: Any
) -> Any:
    x = _complex(rows)
    t, share = points[:, None, :, None], point_weights[:, None, None, None]

    def step(total: Any, part: Any) -> tuple[Any, None]:
        component, weight = part
        distance = x - component
        between = component + t * distance  # (points, rows, players, terms)
        ones = jnp.ones_like(between[:, :, :1])
        before = jnp.cumprod(jnp.concatenate([ones, between[:, :, :-1]], axis=2), axis=2)
        after = jnp.cumprod(jnp.concatenate([ones, between[:, :, :0:-1]], axis=2), axis=2)[:, :, ::-1]
        return total + weight * distance * (share * before * after).sum(axis=0), None

    total, _ = jax.lax.scan(step, jnp.zeros_like(x), (_complex(mixture), weights))
    return jnp.einsum("rjm,om->rjo", total, jnp.conj(_complex(coefficients)), precision="highest").real


def _games(rows: Any, table: Any) -> Any:
    x = _complex(rows)
    products = jnp.ones((len(x), 1, x.shape[2]), dtype=x.dtype)
    for j in range(x.shape[1]):
        products = jnp.concatenate([products, products * x[:, None, j]], axis=1)
    return jnp.einsum("rsm,osm->rso", products, jnp.conj(_complex(table)), precision="highest").real


_RUN_COMPONENTS, _RUN_GAMES = jax.jit(_components), jax.jit(_games)
