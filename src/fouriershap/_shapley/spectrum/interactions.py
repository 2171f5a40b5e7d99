"""Interactions of a spectrum: pairs by tables, as values, and sets of any size by the closed form.

For sets, rows and background rows are grouped by their pattern within a term. A character of a row and a background
row is a sign times a product over the players that differ, -1 for each that comes from the row. These players are all
alike, so the share of a set of them depends on sizes alone.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import CapacityError
from fouriershap._shapley.indices import Index, InteractionIndex, character_shares
from fouriershap._shapley.sets import (
    Floats,
    Keys,
    QuickInteractions,
    count_sets,
    keys_within,
    lost_background,
    pair_keys,
    pairs_within,
    select_keys,
    set_keys,
)
from fouriershap._shapley.spectrum.blocks import MOST_ATOMS, atom_codes, compile_terms, cover_within
from fouriershap._shapley.spectrum.direct import add_differences
from fouriershap._shapley.spectrum.terms import Terms
from fouriershap._shapley.tables import TableSet

_ROWS_PER_BLOCK = 4096
_MOST_PLAYERS = 62  # of a term: its pattern is an int64
_MOST_SETS = 1 << 20  # of a term
_NUMBERS = 1 << 21  # largest number of values at a time
_TIMED = 16  # terms, and rows, from which the time of all is estimated


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
    wide_enough = terms.degrees >= 2
    cover, kept = cover_within(terms, wide_enough & (terms.degrees <= MOST_ATOMS), memory, order=2)
    tables = compile_terms(terms.select(kept), cover, background, weights, index, keys)
    rest = terms.select(~kept & wide_enough)
    return SpectrumPairs(terms, keys, tables, rest, background, weights, index)


@dataclass(frozen=True, eq=False)
class SpectrumSets:
    """Interactions of a spectrum against one background (see `InteractionEngine`); rows are bits (n, n_bits) uint8."""

    terms: Terms
    background: NDArray[np.uint8]
    weights: Floats | None
    index: InteractionIndex
    order: int
    keys: Keys

    @property
    def n_outputs(self) -> int:
        return self.terms.n_outputs

    @property
    def rows_per_block(self) -> int:
        return _ROWS_PER_BLOCK

    def add(self, rows: NDArray[Any], out: Floats) -> None:
        self._add(rows, range(self.terms.n_terms), out)

    def _add(self, rows: NDArray[Any], which: range, out: Floats) -> None:
        terms = self.terms
        mine, others = terms.values(rows), terms.values(self.background)
        share = (
            np.full(len(self.background), 1 / len(self.background)) if self.weights is None else self.weights
        )
        shares = character_shares(self.index, self.order, int(terms.degrees.max(initial=0)))
        for k in which:
            atoms = terms.atoms[terms.start[k] : terms.start[k + 1]]
            atoms = atoms[np.argsort(terms.atom_player[atoms])]
            members, columns = self._columns(terms.atom_player[atoms])
            if not len(columns):
                continue
            of_rows, which_row = np.unique(_patterns(mine[atoms]), return_inverse=True)
            of_others, which_other = np.unique(_patterns(others[atoms]), return_inverse=True)
            weight = np.bincount(which_other, share) * (1.0 - 2.0 * (np.bitwise_count(of_others) % 2))
            found = _shares_of_patterns(of_rows, of_others, weight, members, shares)
            out[:, columns] += found[which_row][:, :, None] * terms.coefficients[k]

    def _columns(self, players: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the wanted sets of a term's players, as words of their positions, and their columns."""
        words, keys = [], []
        for size in range(1, min(self.order, len(players)) + 1):
            chosen = np.array(list(combinations(range(len(players)), size)), dtype=np.int64)
            words.append((np.int64(1) << chosen).sum(axis=1))
            keys.append(set_keys(players[chosen], self.terms.n_players))
        word, key = np.concatenate(words), np.concatenate(keys)
        column = np.searchsorted(self.keys, key).clip(max=max(len(self.keys) - 1, 0))
        there = self.keys[column] == key if len(self.keys) else np.zeros(len(key), dtype=bool)
        return word[there], column[there]

    def seconds(self, rows: NDArray[Any]) -> tuple[float, str]:
        """Estimate the time by that of a few terms and rows."""
        some = range(0, self.terms.n_terms, max(1, self.terms.n_terms // _TIMED))
        part = rows[:_TIMED]
        if not len(part) or not len(some):
            return 0.0, ""
        begin = time.process_time()
        self._add(part, some, np.zeros((len(part), len(self.keys), self.n_outputs)))
        seconds = (time.process_time() - begin) * self.terms.n_terms / len(some)
        blocks = -(-len(rows) // _ROWS_PER_BLOCK)
        players = int(self.terms.degrees.max(initial=0))
        why = f"{self.terms.n_terms:,} terms of up to {players} players"
        # The cost of a term hardly depends on the number of rows, since patterns repeat.
        return (
            seconds * blocks,
            f"{why}, {count_sets(players, self.order):,} sets each, for {len(rows):,} rows",
        )


def _patterns(atoms: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return a number per row from atoms (n_atoms, n_rows) of 0 and 1."""
    place = np.arange(len(atoms), dtype=np.int64)[:, None]
    return np.asarray((atoms.astype(np.int64) << place).sum(axis=0))


def _shares_of_patterns(
    of_rows: NDArray[np.int64],
    of_others: NDArray[np.int64],
    weight: Floats,
    members: NDArray[np.int64],
    shares: Floats,
) -> Floats:
    """Return the shares of the sets in a coefficient of 1, (n_patterns, n_sets), for each pattern of rows."""
    out = np.zeros((len(of_rows), len(members)))
    size = np.bitwise_count(members)
    step = max(1, _NUMBERS // (len(of_others) * len(members)))
    for first in range(0, len(of_rows), step):
        part = slice(first, first + step)
        differ = of_rows[part, None] ^ of_others
        by_size = shares[np.bitwise_count(differ)] * weight[:, None]  # (rows, others, order + 1)
        inside = differ[:, :, None] & members == members
        out[part] = np.where(inside, by_size[:, :, size], 0.0).sum(axis=1)
    return out


def make_spectrum_sets(
    terms: Terms,
    background: NDArray[np.uint8],
    weights: Floats | None,
    index: InteractionIndex,
    order: int,
    wanted: Keys | None,
    min_order: int,
) -> SpectrumSets:
    """Find the sets of players that meet in a term, or those of them that are wanted."""
    if not len(background):
        raise lost_background()
    most = int(terms.degrees.max(initial=0))
    if most > _MOST_PLAYERS or count_sets(most, order) > _MOST_SETS:
        raise CapacityError(
            f"order={order}: a term of the spectrum has {most} players, {count_sets(most, order):,} sets of them; "
            f"the limit is {_MOST_PLAYERS} players and {_MOST_SETS:,} sets. Use a lower order, or prune the spectrum."
        )
    if wanted is None:
        members = np.zeros((terms.n_terms, terms.n_players), dtype=bool)
        members[np.repeat(np.arange(terms.n_terms), terms.degrees), terms.atom_player[terms.atoms]] = True
        keys = keys_within(np.unique(members, axis=0), order)
    else:
        keys = wanted
    keys = select_keys(keys, None, min_order, terms.n_players)
    return SpectrumSets(terms, background, weights, index, order, keys)
