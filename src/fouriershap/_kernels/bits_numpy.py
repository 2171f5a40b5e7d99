"""The `bits` kernels in NumPy: what `bits.cpp` must compute. Shapes and meanings are documented here."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


def _unpack(words: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """Return the bits (n, 64 * n_words) of bit-sliced columns (n, n_words)."""
    bits: NDArray[np.uint8] = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")
    return bits


class Terms(NamedTuple):
    """A sum of characters.

    Attributes
    ----------
    start, atoms : (n_terms + 1,) int64, (sum of degrees,) int32
        Term k is the parity of the columns ``atoms[start[k]:start[k + 1]]``.
    coefficients : (n_terms, n_outputs) float64
    """

    start: NDArray[np.int64]
    atoms: NDArray[np.int32]
    coefficients: NDArray[np.float64]

    def atoms_of(self, k: int) -> NDArray[np.int32]:
        return self.atoms[self.start[k] : self.start[k + 1]]


def evaluate(
    terms: Terms, columns: NDArray[np.uint64], first_word: int, last_word: int, out: NDArray[np.float64]
) -> None:
    """Evaluate a sum of characters.

    Parameters
    ----------
    columns : (n_atoms, n_words) uint64
        Row r is bit r % 64 of word r // 64 of each column.
    first_word, last_word : int
        The words (64 rows each) to work on.
    out : (n_rows, n_outputs) float64
        Written in the rows of those words.
    """
    for word in range(first_word, last_word):
        parity = np.zeros(len(terms.coefficients), dtype=np.uint64)
        for k in range(len(parity)):
            parity[k] = np.bitwise_xor.reduce(columns[terms.atoms_of(k), word], initial=np.uint64(0))
        rows = slice(64 * word, min(64 * (word + 1), len(out)))
        signs = 1.0 - 2.0 * _unpack(parity[:, None])[:, : rows.stop - rows.start]
        out[rows] = signs.T @ terms.coefficients


def direct(
    terms: Terms,
    rows: NDArray[np.uint8],
    background: NDArray[np.uint64],
    n_background: int,
    weights: NDArray[np.float64],
    atom_player: NDArray[np.int32],
    out: NDArray[np.float64],
) -> None:
    """Add SHAP values by the closed form: the players that differ share ``chi(x*) - chi(x)`` equally.

    Parameters
    ----------
    rows : (n_rows, n_atoms) uint8
        0 or 1.
    background : (n_atoms, n_words) uint64
        Bit-sliced, as ``columns`` of `evaluate`.
    n_background : int
        Background rows; the bits after them are padding.
    weights : (64 * n_words,) float64
        Weight of each background row, 0 for padding; empty where every row weighs 1.
    atom_player : (n_atoms,) int32
        The atoms of a term belong to distinct players.
    out : (n_rows, n_players, n_outputs) float64
        Added to: the sum over the background, not the mean.
    """
    bits = _unpack(background)[:, :n_background]
    weight = weights[:n_background] if len(weights) else np.ones(n_background)
    for k, coefficient in enumerate(terms.coefficients):
        term = terms.atoms_of(k)
        chi = 1.0 - 2.0 * (bits[term].sum(axis=0) % 2)
        differs = rows[:, term, None] != bits[None, term]  # (n_rows, degree, n_background)
        m = differs.sum(axis=1)
        share = np.where(m % 2 == 1, weight * chi / np.maximum(m, 1), 0.0)
        shares = np.einsum("rjb,rb->rj", differs, share)
        out[:, atom_player[term]] -= 2.0 * shares[:, :, None] * coefficient
