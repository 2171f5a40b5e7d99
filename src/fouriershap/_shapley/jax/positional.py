"""Positional: terms listed by the player that they touch, values per player.

Every player has a list of its terms, with its own atom first. That atom alone tells whether a term counts,
so there is one sum per player and nothing to scatter: the price is that a term stands in as many lists as it
has players.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fouriershap._shapley.jax.common import (
    Arrays,
    Layout,
    Sizes,
    Version,
    count_ones,
    each,
    one_over,
    pack,
    signed_weights,
)
from fouriershap._shapley.spectrum.terms import Terms


def lay_out(terms: Terms) -> Layout:
    """Unit l is the l-th term of every player: positions (players, degree), coefficients (players, outputs)."""
    degrees = terms.degrees
    degree = int(degrees.max(initial=1))
    owner = terms.atom_player[terms.atoms]
    entries = np.argsort(owner, kind="stable")  # entry: an atom of a term
    start = np.searchsorted(owner[entries], np.arange(terms.n_players + 1))
    term = np.repeat(np.arange(terms.n_terms), degrees)
    slot = np.arange(len(term)) - terms.start[term]

    def part(first: int, last: int) -> Arrays:
        index = start[:-1] + np.arange(first, last)[:, None]  # (units, players)
        present = index < start[1:]
        chosen = entries[index[present]]
        of, own = term[chosen], slot[chosen]
        # Slots in the order own, own + 1, ..., around the end of the term.
        turned = (own[:, None] + np.arange(degree)) % degrees[of][:, None]
        atoms = terms.atoms[terms.start[of][:, None] + turned]
        atoms[np.arange(degree) >= degrees[of][:, None]] = terms.n_atoms
        positions = np.full((*index.shape, degree), terms.n_atoms, dtype=np.int32)
        positions[present] = atoms
        coefficients = np.zeros((*index.shape, terms.n_outputs))
        coefficients[present] = terms.coefficients[of]
        return positions, coefficients

    return Layout(int(np.diff(start).max(initial=0)), part)


def prepare(shared: Any, part: Any, background: Any, weights: Any) -> Any:
    """The packed background (units, players, words, B) and its signed weights (units, players, B)."""
    packed = pack(background[part[0]])
    return *part, packed, signed_weights(packed, weights)


def explain(state: Any, rows: Any, n_players: int) -> Any:
    """Values (R, n_players, n_outputs)."""
    positions, coefficients, packed, signed = state

    def one_entry(positions: Any, packed: Any, signed: Any) -> Any:
        differs = packed[:, :, None] ^ pack(rows[positions])[:, None, :]  # (words, B, R)
        m = count_ones(differs, axis=0)
        # The player's own atom is the lowest bit: it must differ, and m be odd.
        return jnp.matmul(signed, one_over(m, differs[0] & m, signed.dtype), precision="highest")

    flat = (array.reshape(-1, *array.shape[2:]) for array in (positions, packed, signed))
    shares = each(one_entry, *flat).reshape(*positions.shape[:2], -1)
    return jnp.einsum("lpr,lpo->rpo", shares, coefficients, precision="highest")


def nbytes(units: int, background: int, rows: int, sizes: Sizes) -> tuple[int, int]:
    """As of the sparse version, with a list per player."""
    words, entries = -(-sizes.degree // 32), units * sizes.n_players
    state = entries * (background * (4 * words + sizes.itemsize) + 4 * sizes.degree)
    triples = entries * background * rows * (4 * words + 4 + sizes.itemsize)
    values = entries * rows * (4 * sizes.degree + sizes.itemsize)
    return state, triples + values + rows * sizes.n_players * sizes.n_outputs * sizes.itemsize


VERSION = Version(lay_out, jax.jit(prepare), jax.jit(explain, static_argnames="n_players"), nbytes)
