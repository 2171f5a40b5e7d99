"""Base: the closed form of one term, one background row and one row, mapped over all three."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fouriershap._shapley.jax.common import Arrays, Layout, Sizes, Version, each_summed, one_over
from fouriershap._shapley.spectrum.terms import Terms


def lay_out(terms: Terms) -> Layout:
    """Terms as rows of 0 and 1 over the atoms."""

    def part(first: int, last: int) -> Arrays:
        start = terms.start[first : last + 1]
        dense = np.zeros((last - first, terms.n_atoms + 1), dtype=np.uint8)
        dense[np.repeat(np.arange(last - first), np.diff(start)), terms.atoms[start[0] : start[-1]]] = 1
        return dense, terms.coefficients[first:last]

    # The last atom belongs to nobody: no term touches it.
    return Layout(terms.n_terms, part, (np.append(terms.atom_player, np.int32(0)),))


def prepare(shared: Any, part: Any, background: Any, weights: Any) -> Any:
    """Nothing is computed ahead."""
    return *shared, *part, background.T, weights


def explain_one(term: Any, x: Any, row: Any, dtype: Any) -> Any:
    """Values (n_atoms,) of one term for one row against one background row x: -2 chi_f(x) e / m, m odd."""
    differs = term & (x ^ row)
    m = differs.sum(dtype=jnp.uint32)
    sign = jnp.where((term & x).sum(dtype=jnp.uint32) & 1 == 1, -1, 1).astype(dtype)
    return -2 * sign * one_over(m, m, dtype) * differs


def explain(state: Any, rows: Any, n_players: int) -> Any:
    """Values (R, n_players, n_outputs)."""
    player, frequencies, coefficients, background, weights = state

    def against(term: Any, x: Any, row: Any) -> Any:
        return explain_one(term, x, row, weights.dtype)

    all_rows = jax.vmap(against, (None, None, 1), 1)

    def one_term(term: Any, coefficient: Any) -> Any:
        mean = each_summed(lambda x, weight: weight * all_rows(term, x, rows), background, weights)
        return mean[:, :, None] * coefficient

    atoms = each_summed(one_term, frequencies, coefficients)  # (n_atoms, R, n_outputs)
    return jax.ops.segment_sum(atoms, player, n_players).swapaxes(0, 1)


def nbytes(units: int, background: int, rows: int, sizes: Sizes) -> tuple[int, int]:
    """The values of all triples, should the compiler not fuse them into their sum."""
    state = units * (sizes.n_atoms + sizes.n_outputs * sizes.itemsize) + background * sizes.n_atoms
    triples = units * background * rows * sizes.n_atoms
    return state, (triples + rows * sizes.n_atoms * sizes.n_outputs) * sizes.itemsize


VERSION = Version(lay_out, jax.jit(prepare), jax.jit(explain, static_argnames="n_players"), nbytes)
