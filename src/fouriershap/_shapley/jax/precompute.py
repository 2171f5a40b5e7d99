"""Precompute: what depends on term and background alone is computed once and kept.

That is, for every term f and background row x, the character with its weight, and its products with the bits
that x has inside f.
"""

from __future__ import annotations

from typing import Any

import jax

from fouriershap._shapley.jax.base import lay_out
from fouriershap._shapley.jax.common import Sizes, Version, each_summed, kept_products, pack, values_of_term


def prepare(shared: Any, part: Any, background: Any, weights: Any) -> Any:
    """Products (terms, n_atoms + 1, B), and the atoms of the background inside each term (terms, words, B)."""
    frequencies, coefficients = part
    inside = frequencies[:, :, None] & background
    packed = pack(inside)
    return *shared, frequencies, coefficients, packed, kept_products(inside, packed, weights)


def explain(state: Any, rows: Any, n_players: int) -> Any:
    """Values (R, n_players, n_outputs)."""
    player, frequencies, coefficients, packed, products = state

    def one_term(frequency: Any, coefficient: Any, packed: Any, products: Any) -> Any:
        inside = frequency[:, None] & rows
        return values_of_term(products, packed, pack(inside), inside)[:, :, None] * coefficient

    atoms = each_summed(one_term, frequencies, coefficients, packed, products)
    return jax.ops.segment_sum(atoms, player, n_players).swapaxes(0, 1)


def nbytes(units: int, background: int, rows: int, sizes: Sizes) -> tuple[int, int]:
    """Products; then words, m and 1 / m over (terms, B, R), and values over (terms, n_atoms, R)."""
    words = -(-sizes.n_atoms // 32)
    state = units * background * (sizes.itemsize * (sizes.n_atoms + 1) + 4 * words)
    triples = units * background * rows * (4 * words + 4 + sizes.itemsize)
    values = units * rows * sizes.n_atoms * sizes.itemsize * (2 + sizes.n_outputs)
    return state, triples + values


VERSION = Version(lay_out, jax.jit(prepare), jax.jit(explain, static_argnames="n_players"), nbytes)
