"""The paper's four versions of the closed form (App. D), and `Prepared`, which applies one chunk by chunk.

A version is a class: ``lay_out`` turns terms into arrays, ``prepare`` does what needs no row, ``explain`` does the
rest. For a term f, a background row x and a row that differ in m atoms of f, an atom that differs gets
-2 chi_f(x) / m where m is odd, and 0 where it is even.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from fouriershap._shapley.jax.common import (
    CHUNK_BYTES,
    budget,
    choose_dtype,
    chunks,
    each,
    fit,
    pad,
    padded_size,
    x64,
)
from fouriershap._shapley.spectrum.terms import Terms

Arrays = tuple[NDArray[Any], ...]
_FEW_ROWS = 1024  # rows of a chunk as long as their number is unknown
_jit, _jit_by_players = partial(jax.jit), partial(jax.jit, static_argnames="n_players")


@dataclass(frozen=True)
class Sizes:
    """Sizes that determine, with those of a chunk, the memory of a version."""

    n_atoms: int
    n_players: int
    n_outputs: int
    degree: int
    itemsize: int


@dataclass(frozen=True, eq=False)
class Layout:
    """Terms as a version takes them: units along the leading axis, to be cut anywhere and padded with zeros.

    Attributes
    ----------
    n_units : int
    part : callable
        ``part(first, last)`` gives the arrays of these units; a unit of zeros must contribute nothing.
    shared : tuple of arrays
        Arrays that all units need.
    """

    n_units: int
    part: Callable[[int, int], Arrays]
    shared: Arrays = ()


class Version(Protocol):
    """One of the paper's versions."""

    @staticmethod
    def lay_out(terms: Terms) -> Layout:
        """Return the terms as arrays."""

    @staticmethod
    def prepare(shared: Any, part: Any, background: Any, weights: Any) -> Any:
        """Return a state from atoms ``background`` (n_atoms + 1, B) uint8, the last one 0, and ``weights`` (B,)."""

    @staticmethod
    def explain(state: Any, rows: Any, n_players: int) -> Any:
        """Return values (R, n_players, n_outputs) of ``rows`` (n_atoms + 1, R), which are as the background."""

    @staticmethod
    def nbytes(units: int, background: int, rows: int, sizes: Sizes) -> tuple[int, int]:
        """Return the bytes of the state, and those of temporaries and result."""


class Base:
    """The closed form of one term, one background row and one row, mapped over all three."""

    @staticmethod
    def lay_out(terms: Terms) -> Layout:
        """Return terms as rows of 0 and 1 over the atoms."""

        def part(first: int, last: int) -> Arrays:
            start = terms.start[first : last + 1]
            dense = np.zeros((last - first, terms.n_atoms + 1), dtype=np.uint8)
            dense[np.repeat(np.arange(last - first), np.diff(start)), terms.atoms[start[0] : start[-1]]] = 1
            return dense, terms.coefficients[first:last]

        # The last atom is padding, which no term touches.
        return Layout(terms.n_terms, part, (np.append(terms.atom_player, np.int32(0)),))

    @staticmethod
    @_jit
    def prepare(shared: Any, part: Any, background: Any, weights: Any) -> Any:
        return *shared, *part, background.T, weights

    @staticmethod
    @_jit_by_players
    def explain(state: Any, rows: Any, n_players: int) -> Any:
        player, frequencies, coefficients, background, weights = state

        def one(term: Any, x: Any, row: Any) -> Any:
            differs = term & (x ^ row)
            m = differs.sum(dtype=jnp.uint32)
            sign = jnp.where((term & x).sum(dtype=jnp.uint32) & 1 == 1, -1, 1).astype(weights.dtype)
            return -2 * sign * _one_over(m, m, weights.dtype) * differs

        all_rows = jax.vmap(one, (None, None, 1), 1)

        def one_term(term: Any, coefficient: Any) -> Any:
            mean = _each_summed(lambda x, weight: weight * all_rows(term, x, rows), background, weights)
            return mean[:, :, None] * coefficient

        atoms = _each_summed(one_term, frequencies, coefficients)  # (n_atoms, R, n_outputs)
        return jax.ops.segment_sum(atoms, player, n_players).swapaxes(0, 1)

    @staticmethod
    def nbytes(units: int, background: int, rows: int, sizes: Sizes) -> tuple[int, int]:
        """Count the values of all triples, in case the compiler does not fuse them into their sum."""
        state = units * (sizes.n_atoms + sizes.n_outputs * sizes.itemsize) + background * sizes.n_atoms
        triples = units * background * rows * sizes.n_atoms
        return state, (triples + rows * sizes.n_atoms * sizes.n_outputs) * sizes.itemsize


class Precompute(Base):
    """What depends on term and background alone is computed once and kept.

    For every term f and background row x, this is the character with its weight, and its products with the bits
    that x has inside f.
    """

    @staticmethod
    @_jit
    def prepare(shared: Any, part: Any, background: Any, weights: Any) -> Any:
        """Return products (terms, n_atoms + 1, B), and the background inside each term (terms, words, B)."""
        frequencies, coefficients = part
        inside = frequencies[:, :, None] & background
        packed = _pack(inside)
        return *shared, frequencies, coefficients, packed, _kept_products(inside, packed, weights)

    @staticmethod
    @_jit_by_players
    def explain(state: Any, rows: Any, n_players: int) -> Any:
        player, frequencies, coefficients, packed, products = state

        def one_term(frequency: Any, coefficient: Any, packed: Any, products: Any) -> Any:
            inside = frequency[:, None] & rows
            return _values_of_term(products, packed, _pack(inside), inside)[:, :, None] * coefficient

        atoms = _each_summed(one_term, frequencies, coefficients, packed, products)
        return jax.ops.segment_sum(atoms, player, n_players).swapaxes(0, 1)

    @staticmethod
    def nbytes(units: int, background: int, rows: int, sizes: Sizes) -> tuple[int, int]:
        """Count products; then words, m and 1 / m over (terms, B, R), and values over (terms, n_atoms, R)."""
        words = -(-sizes.n_atoms // 32)
        state = units * background * (sizes.itemsize * (sizes.n_atoms + 1) + 4 * words)
        triples = units * background * rows * (4 * words + 4 + sizes.itemsize)
        values = units * rows * sizes.n_atoms * sizes.itemsize * (2 + sizes.n_outputs)
        return state, triples + values


class Sparse:
    """As `Precompute`, with only the atoms that a term touches, padded to the highest degree.

    Their values are spread over the players at the end.
    """

    @staticmethod
    def lay_out(terms: Terms) -> Layout:
        """Return the atoms of each term and their players, padded with an atom that is always 0."""
        degree = int(terms.degrees.max(initial=1))
        players = np.append(terms.atom_player, np.int32(0))

        def part(first: int, last: int) -> Arrays:
            start = terms.start[first : last + 1]
            present = np.arange(degree) < np.diff(start)[:, None]
            positions = np.full((last - first, degree), terms.n_atoms, dtype=np.int32)
            positions[present] = terms.atoms[start[0] : start[-1]]
            return positions, players[positions], terms.coefficients[first:last]

        return Layout(terms.n_terms, part)

    @staticmethod
    @_jit
    def prepare(shared: Any, part: Any, background: Any, weights: Any) -> Any:
        """Return products (terms, D + 1, B), and the packed background (terms, words, B)."""
        atoms = background[part[0]]
        packed = _pack(atoms)
        return *part, packed, _kept_products(atoms, packed, weights)

    @staticmethod
    @_jit_by_players
    def explain(state: Any, rows: Any, n_players: int) -> Any:
        positions, players, coefficients, packed, products = state

        def one_term(positions: Any, packed: Any, products: Any) -> Any:
            atoms = rows[positions]
            return _values_of_term(products, packed, _pack(atoms), atoms)

        values = each(one_term, positions, packed, products)  # (terms, D, R)
        values = values[..., None] * coefficients[:, None, None, :]
        flat = values.reshape(-1, *values.shape[2:])
        return jax.ops.segment_sum(flat, players.reshape(-1), n_players).swapaxes(0, 1)

    @staticmethod
    def nbytes(units: int, background: int, rows: int, sizes: Sizes) -> tuple[int, int]:
        """Count products; then words, m and 1 / m over (terms, B, R), and values over (terms, D, R)."""
        words = -(-sizes.degree // 32)
        state = units * background * (sizes.itemsize * (sizes.degree + 1) + 4 * words)
        triples = units * background * rows * (4 * words + 4 + sizes.itemsize)
        values = rows * (units * sizes.degree * (3 + sizes.n_outputs) + sizes.n_players * sizes.n_outputs)
        return state, triples + values * sizes.itemsize


class Positional:
    """Terms listed by the player that they touch, values per player.

    Every player has a list of its terms, with its own atom first. That atom alone tells whether a term counts, so
    there is one sum per player and nothing to scatter; in return a term is in as many lists as it has players.
    """

    @staticmethod
    def lay_out(terms: Terms) -> Layout:
        """Return unit l, the l-th term of each player: positions (players, degree), coefficients (players, outputs)."""
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

    @staticmethod
    @_jit
    def prepare(shared: Any, part: Any, background: Any, weights: Any) -> Any:
        """Return the packed background (units, players, words, B) and its signed weights (units, players, B)."""
        packed = _pack(background[part[0]])
        return *part, packed, _signed_weights(packed, weights)

    @staticmethod
    @_jit_by_players
    def explain(state: Any, rows: Any, n_players: int) -> Any:
        positions, coefficients, packed, signed = state

        def one_entry(positions: Any, packed: Any, signed: Any) -> Any:
            differs = packed[:, :, None] ^ _pack(rows[positions])[:, None, :]  # (words, B, R)
            m = _count_ones(differs, axis=0)
            # The player's own atom is the lowest bit: it must differ, and m be odd.
            return jnp.matmul(signed, _one_over(m, differs[0] & m, signed.dtype), precision="highest")

        flat = (array.reshape(-1, *array.shape[2:]) for array in (positions, packed, signed))
        shares = each(one_entry, *flat).reshape(*positions.shape[:2], -1)
        return jnp.einsum("lpr,lpo->rpo", shares, coefficients, precision="highest")

    @staticmethod
    def nbytes(units: int, background: int, rows: int, sizes: Sizes) -> tuple[int, int]:
        """Count as for `Sparse`, with a list per player."""
        words, entries = -(-sizes.degree // 32), units * sizes.n_players
        state = entries * (background * (4 * words + sizes.itemsize) + 4 * sizes.degree)
        triples = entries * background * rows * (4 * words + 4 + sizes.itemsize)
        values = entries * rows * (4 * sizes.degree + sizes.itemsize)
        return state, triples + values + rows * sizes.n_players * sizes.n_outputs * sizes.itemsize


_BY_NAME: dict[str, Version] = {
    "base": Base(),
    "precompute": Precompute(),
    "sparse": Sparse(),
    "positional": Positional(),
}


class Prepared:
    """Terms and background on a device, ready to explain rows. Made by `prepare`.

    Attributes
    ----------
    dtype : float32 or float64
        Type of the arithmetic on the device; chunks are added up in float64.
    chunk : (int, int)
        Units (terms, or terms per player) and background rows of a chunk.
    nbytes : int
        Memory of what is kept on the device: all that does not depend on rows, where it takes at most half
        of the budget, else nothing (it is computed again for every call).
    """

    def __init__(
        self,
        terms: Terms,
        background: NDArray[np.uint8],
        weights: NDArray[np.float64] | None,
        strategy: str,
        memory: int | float | None,
        precision: str | None,
    ) -> None:
        self._version, self._terms = _BY_NAME[strategy], terms
        n_background = len(background)
        self._background = _atoms(terms, background)
        self._weights = np.full(n_background, 1.0 / n_background) if weights is None else weights
        self.dtype = choose_dtype(precision)
        self._layout = self._version.lay_out(terms)
        self._budget = budget(memory)
        degree = int(terms.degrees.max(initial=1))
        self._sizes = Sizes(terms.n_atoms + 1, terms.n_players, terms.n_outputs, degree, self.dtype.itemsize)
        n_units = self._layout.n_units
        units, rows, _ = self._fit((n_units, n_background, _FEW_ROWS), self._chunk_bytes)
        self.chunk = (units, rows)
        n_chunks = -(-n_units // units) * -(-n_background // rows)
        everything = n_chunks * self._version.nbytes(units, rows, 0, self._sizes)[0]
        keep = everything <= self._budget // 2
        self.nbytes = everything if keep else 0
        self._kept = list(self._states()) if keep else None

    def shap_values(self, bits: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Explain rows of bits (n_rows, n_bits): (n_rows, n_players, n_outputs)."""
        out = np.zeros((len(bits), self._terms.n_players, self._terms.n_outputs))
        if len(bits) and self._layout.n_units:
            atoms = _atoms(self._terms, bits)
            size = self._rows_per_chunk(len(bits))
            for state in self._states() if self._kept is None else self._kept:
                for first, last in chunks(len(bits), size):
                    rows = pad(atoms[:, first:last], padded_size(last - first), axis=1)
                    with x64(self.dtype.itemsize == 8):
                        values = self._version.explain(state, rows, n_players=self._terms.n_players)
                        out[first:last] += np.asarray(values)[: last - first]
        return out

    def _states(self) -> Iterator[Any]:
        """Yield what depends on terms and background alone, a chunk at a time."""
        units, rows = self.chunk
        with x64(self.dtype.itemsize == 8):
            shared = tuple(jnp.asarray(array) for array in self._layout.shared)
        for first, last in chunks(self._layout.n_units, units):
            size = padded_size(last - first, least=1)
            arrays = self._layout.part(first, last)
            cast = (a.astype(self.dtype) if a.dtype.kind == "f" else a for a in arrays)
            part = tuple(pad(array, size) for array in cast)
            for begin, end in chunks(len(self._weights), rows):
                size = padded_size(end - begin)
                background = pad(self._background[:, begin:end], size, axis=1)
                weights = pad(self._weights[begin:end].astype(self.dtype), size)
                with x64(self.dtype.itemsize == 8):
                    state = self._version.prepare(shared, part, background, weights)
                yield state

    def _chunk_bytes(self, units: int, background: int, rows: int) -> int:
        return sum(self._version.nbytes(units, background, rows, self._sizes))

    def _rows_per_chunk(self, n_rows: int) -> int:
        """Return how many rows fit into what units and background rows leave of the budget."""
        return self._fit((n_rows,), lambda rows: self._chunk_bytes(*self.chunk, rows))[0]

    def _fit(self, wanted: tuple[int, ...], nbytes: Callable[..., int]) -> tuple[int, ...]:
        """Return sizes whose chunk takes half of the budget; the other half is for what may be kept."""
        return fit(
            wanted, lambda *sizes: 2 * nbytes(*sizes), self._budget, "this strategy", chunk=2 * CHUNK_BYTES
        )


def _atoms(terms: Terms, bits: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return atoms (n_atoms + 1, n_rows); the last one is the padding, always 0."""
    return pad(terms.values(bits), terms.n_atoms + 1)


def _each_summed(function: Callable[..., Any], *arrays: Any) -> Any:
    """Apply a function as `each` does, and sum the results."""

    def one_by_one(*parts: Any) -> Any:
        first = jax.eval_shape(function, *(part[0] for part in parts))
        zero = jnp.zeros(first.shape, first.dtype)
        return jax.lax.scan(lambda total, part: (total + function(*part), None), zero, parts)[0]

    return jax.lax.platform_dependent(
        *arrays, cpu=one_by_one, default=lambda *parts: jax.vmap(function)(*parts).sum(axis=0)
    )


def _pack(atoms: Any) -> Any:
    """Return atoms (..., D, B) as bits of words: (..., words, B) uint32."""
    words = []
    for first in range(0, atoms.shape[-2], 32):
        bits = atoms[..., first : first + 32, :].astype(jnp.uint32)
        shifts = jnp.arange(bits.shape[-2], dtype=jnp.uint32)[:, None]
        words.append((bits << shifts).sum(axis=-2, dtype=jnp.uint32))
    return jnp.stack(words, axis=-2)


def _count_ones(words: Any, axis: int = -2) -> Any:
    """Count the ones of words, summed over the axis of words."""
    return jax.lax.population_count(words).sum(axis=axis, dtype=jnp.uint32)


def _one_over(m: Any, chosen: Any, dtype: Any) -> Any:
    """Return 1 / m where the lowest bit of ``chosen`` is set (m is not 0 there), else 0."""
    return jnp.where(chosen & 1 == 1, 1 / jnp.maximum(m, 1).astype(dtype), 0)


def _signed_weights(packed: Any, weights: Any) -> Any:
    """Return -2 chi_f(x) times the weight of x, for the packed atoms (..., words, B) of f: (..., B)."""
    return jnp.where(_count_ones(packed) & 1 == 1, 2 * weights, -2 * weights)


def _kept_products(atoms: Any, packed: Any, weights: Any) -> Any:
    """Return the signed weights, then their products with each atom: (..., D + 1, B) from (..., D, B).

    They are all that a term needs of the background (see `_values_of_term`).
    """
    signed = _signed_weights(packed, weights)[..., None, :]
    return jnp.concatenate([signed, signed * atoms], axis=-2)


def _values_of_term(products: Any, background: Any, rows: Any, row_atoms: Any) -> Any:
    """Return values (D, R) of the atoms of one term, averaged over the background.

    Takes the `_kept_products` (D + 1, B), packed atoms (words, B) of the background and (words, R) of rows, and the
    atoms (D, R) of rows. With e_i = x_i xor x*_i, the sum over the background of share times e_i is that of share
    times x_i where x*_i = 0, and the sum of all shares less that where x*_i = 1.
    """
    m = _count_ones(background[:, :, None] ^ rows[:, None, :], axis=0)
    sums = jnp.matmul(products, _one_over(m, m, products.dtype), precision="highest")
    return jnp.where(row_atoms == 1, sums[0] - sums[1:], sums[1:])
