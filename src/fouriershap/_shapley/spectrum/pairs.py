"""Interactions of a spectrum: the same blocks of atoms, with pairs of players as players."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._shapley.indices import Index, difference_weight
from fouriershap._shapley.sets import Keys, QuickInteractions, pair_keys, pairs_within
from fouriershap._shapley.spectrum.blocks import MOST_ATOMS, Cover, atom_codes, compile_terms
from fouriershap._shapley.spectrum.terms import Terms
from fouriershap._shapley.tables import WIDTH, TableSet

_ROWS_PER_BLOCK = 4096
_NUMBERS = 1 << 22  # most numbers of a step of the closed form


@dataclass(frozen=True, eq=False)
class SpectrumPairs(QuickInteractions):
    """Interactions of pairs in a spectrum (see `InteractionEngine`); rows are bits (n, n_bits) uint8."""

    terms: Terms
    keys: Keys
    tables: TableSet
    rest: Terms  # terms without a table
    background: NDArray[np.uint8]
    weights: NDArray[np.float64] | None
    index: Index

    @property
    def n_outputs(self) -> int:
        return self.terms.n_outputs

    @property
    def rows_per_block(self) -> int:
        return _ROWS_PER_BLOCK

    def add(self, rows: NDArray[Any], out: NDArray[np.float64]) -> None:
        self.tables.add(atom_codes(self.terms, rows), out)
        add_differences(self.rest, rows, self.background, self.weights, self.index, self.keys, out)


def make_spectrum_pairs(
    terms: Terms,
    background: NDArray[np.uint8],
    weights: NDArray[np.float64] | None,
    memory: int,
    index: Index,
    wanted: NDArray[np.int64] | None,
) -> SpectrumPairs:
    """Build the pair tables of the terms that fit; ``wanted`` (n,) keys of pairs, None for all that occur."""
    _, first, second = pairs_within(terms.start)
    player = terms.atom_player[terms.atoms]
    keys = np.unique(pair_keys(player[first], player[second], terms.n_players))
    keys = keys if wanted is None else np.intersect1d(keys, wanted)
    kept = (terms.degrees <= MOST_ATOMS) & (terms.degrees >= 2)
    while True:
        some = terms.select(kept)
        cover = Cover(some)
        need = _pair_bytes(cover, terms.n_outputs)
        if need <= memory:
            break
        by_degree = np.flatnonzero(kept)[np.argsort(terms.degrees[kept], kind="stable")]
        kept[by_degree[int(0.9 * memory / need * len(by_degree)) :]] = False
    tables = compile_terms(some, cover, background, weights, index, keys)
    rest = terms.select(~kept & (terms.degrees >= 2))
    return SpectrumPairs(terms, keys, tables, rest, background, weights, index)


def _pair_bytes(cover: Cover, n_outputs: int) -> int:
    """Memory of the tables, at most."""
    atoms = np.diff(cover.start)
    tables = -(-(atoms * (atoms - 1) // 2) // WIDTH)
    return int(((np.int64(1) << atoms) * tables).sum()) * WIDTH * 8 * n_outputs


def add_differences(
    terms: Terms,
    rows: NDArray[np.uint8],
    background: NDArray[np.uint8],
    weights: NDArray[np.float64] | None,
    index: Index,
    keys: NDArray[np.int64] | None,
    out: NDArray[np.float64],
) -> None:
    """The closed form of any index, term by term: what the players that differ get by their number.

    Adds values of players to ``out`` (n_rows, n_players, n_outputs) where ``keys`` is None, else interactions of
    these pairs to ``out`` (n_rows, n_pairs, n_outputs).
    """
    if not terms.n_terms or not len(rows):
        return
    order = 1 if keys is None else 2
    mine, others = terms.values(rows), terms.values(background)
    share = np.full(len(background), 1 / len(background)) if weights is None else weights
    for k in range(terms.n_terms):
        atoms = terms.atoms[terms.start[k] : terms.start[k + 1]]
        by_number = np.array([difference_weight(index, order, m) for m in range(len(atoms) + 1)])
        sign = share * (1.0 - 2.0 * np.bitwise_xor.reduce(others[atoms], axis=0))
        players = terms.atom_player[atoms]
        step = max(1, _NUMBERS // (len(atoms) * len(background)))
        for first in range(0, len(rows), step):
            part = slice(first, first + step)
            differs = mine[atoms, part].T[:, :, None] ^ others[atoms]  # (rows, atoms, background)
            each = by_number[differs.sum(axis=1)] * sign
            columns: NDArray[Any]
            if keys is None:
                found, columns = np.einsum("rab,rb->ra", differs, each), players
            else:
                i, j = np.triu_indices(len(atoms), 1)
                both = (differs * each[:, None]) @ differs.transpose(0, 2, 1)
                key = pair_keys(players[i], players[j], terms.n_players)
                kept = np.isin(key, keys)
                found, columns = both[:, i[kept], j[kept]], np.searchsorted(keys, key[kept])
            out[part, columns] += found[:, :, None] * terms.coefficients[k]
