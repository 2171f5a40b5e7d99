"""Look-ups of a report page from the tables of a spectrum."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fouriershap._shapley.lookups import TableLookup
from fouriershap._shapley.spectrum.terms import Terms
from fouriershap._shapley.tables import TableSet
from fouriershap._trees.codes import Codebook, Pages


def level_lookup(
    terms: Terms, tables: TableSet, n_levels: NDArray[np.int64], n_bits: NDArray[np.int64]
) -> TableLookup:
    """Return the tables of a spectrum on the levels of players.

    Each atom (a parity of a player's bits) is a page that reads the level of its player: one of ``n_levels``, a
    number of ``n_bits`` bits.
    """
    first_bit = np.cumsum(n_bits) - n_bits
    luts = []
    for a, player in enumerate(terms.atom_player):
        bits = terms.atom_bits[terms.atom_start[a] : terms.atom_start[a + 1]] - first_bit[player]
        # Two codes more than levels: the book's "any other" and "missing", which no level is.
        luts.append(np.bitwise_xor.reduce(np.arange(n_levels[player] + 2)[:, None] >> bits & 1, axis=1))
    sizes = n_levels[terms.atom_player] + 2
    lut = np.concatenate([*luts, np.empty(0)]).astype(np.uint8)
    pages = Pages(terms.atom_player, np.cumsum(sizes) - sizes, lut)
    return _atom_lookup(tables, n_levels, pages, np.arange(terms.n_atoms, dtype=np.int32))


def bit_lookup(terms: Terms, tables: TableSet) -> TableLookup:
    """Return the tables of a spectrum on its bits.

    Each bit of an atom is a page that reads this bit; their parity is the atom.
    """
    line = np.repeat(np.arange(terms.n_atoms, dtype=np.int32), np.diff(terms.atom_start))
    offset = np.zeros(len(line), dtype=np.int64)
    pages = Pages(terms.atom_bits, offset, np.array([0, 1, 0, 0], dtype=np.uint8))
    return _atom_lookup(tables, np.full(terms.n_bits, 2), pages, line)


def _atom_lookup(
    tables: TableSet, n_levels: NDArray[np.int64], pages: Pages, line: NDArray[np.int32]
) -> TableLookup:
    """Return tables of inputs that are numbers of levels: wide codes from which pages read atoms."""
    start = np.concatenate([[0], np.cumsum(n_levels)]).astype(np.int64)
    levels = np.concatenate([np.arange(n) for n in n_levels]).astype(np.float64)
    every = np.ones(len(n_levels), dtype=bool)
    book = Codebook(np.dtype(np.float64), start, levels, every)
    column = ~np.arange(len(n_levels), dtype=np.int32)
    return TableLookup(book, column, pages, line, tables, float("nan"), ~every)
