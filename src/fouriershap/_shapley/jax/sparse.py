"""Sparse: only the atoms that a term touches, padded to the highest degree.

As Precompute, with the few atoms of a term in place of all atoms, and their values spread over the players
at the end.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from fouriershap._shapley.jax.common import (
    Arrays,
    Layout,
    Sizes,
    Version,
    each,
    kept_products,
    pack,
    values_of_term,
)
from fouriershap._shapley.spectrum.terms import Terms


def lay_out(terms: Terms) -> Layout:
    """The atoms of each term and their players, padded with an atom that is always 0."""
    degree = int(terms.degrees.max(initial=1))
    players = np.append(terms.atom_player, np.int32(0))

    def part(first: int, last: int) -> Arrays:
        start = terms.start[first : last + 1]
        present = np.arange(degree) < np.diff(start)[:, None]
        positions = np.full((last - first, degree), terms.n_atoms, dtype=np.int32)
        positions[present] = terms.atoms[start[0] : start[-1]]
        return positions, players[positions], terms.coefficients[first:last]

    return Layout(terms.n_terms, part)


def prepare(shared: Any, part: Any, background: Any, weights: Any) -> Any:
    """Products (terms, D + 1, B), and the packed background (terms, words, B)."""
    atoms = background[part[0]]
    packed = pack(atoms)
    return *part, packed, kept_products(atoms, packed, weights)


def explain(state: Any, rows: Any, n_players: int) -> Any:
    """Values (R, n_players, n_outputs)."""
    positions, players, coefficients, packed, products = state

    def one_term(positions: Any, packed: Any, products: Any) -> Any:
        atoms = rows[positions]
        return values_of_term(products, packed, pack(atoms), atoms)

    values = each(one_term, positions, packed, products)  # (terms, D, R)
    values = values[..., None] * coefficients[:, None, None, :]
    flat = values.reshape(-1, *values.shape[2:])
    return jax.ops.segment_sum(flat, players.reshape(-1), n_players).swapaxes(0, 1)


def nbytes(units: int, background: int, rows: int, sizes: Sizes) -> tuple[int, int]:
    """Products; then words, m and 1 / m over (terms, B, R), and values over (terms, D, R)."""
    words = -(-sizes.degree // 32)
    state = units * background * (sizes.itemsize * (sizes.degree + 1) + 4 * words)
    triples = units * background * rows * (4 * words + 4 + sizes.itemsize)
    values = rows * (units * sizes.degree * (3 + sizes.n_outputs) + sizes.n_players * sizes.n_outputs)
    return state, triples + values * sizes.itemsize


VERSION = Version(lay_out, jax.jit(prepare), jax.jit(explain, static_argnames="n_players"), nbytes)
