"""Tables of a spectrum: terms gathered into blocks of atoms, one table per block and 8 players."""

from __future__ import annotations

from math import comb

import numpy as np
from numpy.typing import NDArray

from fouriershap import kernels
from fouriershap.shapley._groups import Grouping, group_tables
from fouriershap.shapley._tables import WIDTH, Blocks, Codes, TableSet, empty_codes, histograms
from fouriershap.shapley._terms import Terms

BLOCK_ATOMS = 8  # 256 patterns: byte arithmetic, and a table of 16 KB that stays in the first-level cache
MOST_ATOMS = 16  # patterns are 16-bit numbers
# Score of a term by the number of atoms that a block lacks (see `kernels.build_numpy.cover`): a term that
# the next atom would complete counts most, terms further away decide between equals.
_COVER_WEIGHTS = np.array([0, 4096, 64, 1, 0, 0, 0, 0, 0], dtype=np.int64)


class Cover:
    """Terms gathered into blocks.

    Attributes
    ----------
    start, atoms : (n_blocks + 1,) int64, int32
        The atoms of each block.
    term_order : (n_terms,) int64
        Terms in the order of their blocks.
    term_start : (n_blocks + 1,) int64
    term_mask : (n_terms,) uint32
        The atoms of each term (in that order) as bits of its block's pattern.
    """

    def __init__(self, terms: Terms) -> None:
        degrees = terms.degrees
        widest_first = np.argsort(-degrees, kind="stable")
        sorted_terms = _reorder(terms, widest_first)
        n_terms, width = terms.n_terms, max(BLOCK_ATOMS, int(degrees.max(initial=0)))
        block_of_term = np.empty(n_terms, dtype=np.int32)
        start = np.empty(n_terms + 1, dtype=np.int64)
        atoms = np.empty(n_terms * width, dtype=np.int32)
        n_blocks = kernels.build.cover(
            *sorted_terms, terms.n_atoms, BLOCK_ATOMS, _COVER_WEIGHTS, block_of_term, start, atoms
        )
        self.start, self.atoms = start[: n_blocks + 1].copy(), atoms[: start[n_blocks]].copy()
        order = np.argsort(block_of_term, kind="stable")
        self.term_order = widest_first[order]
        self.term_start = np.searchsorted(block_of_term[order], np.arange(n_blocks + 1)).astype(np.int64)
        self.term_mask = self._masks(terms, block_of_term[order])

    def __len__(self) -> int:
        return len(self.start) - 1

    def nbytes(self, terms: Terms) -> int:
        """Memory of the tables, at most: a block may have fewer players than atoms."""
        sizes = np.diff(self.start)
        tables = (np.int64(1) << sizes) * -(-sizes // WIDTH)
        return int(tables.sum()) * WIDTH * 8 * terms.n_outputs

    def _masks(self, terms: Terms, block: NDArray[np.int32]) -> NDArray[np.uint32]:
        """Find each atom of each term among the atoms of its block, all at once by a sorted search."""
        start, atoms = _reorder(terms, self.term_order)
        owner = np.repeat(np.arange(len(self)), np.diff(self.start))
        keys = owner * terms.n_atoms + self.atoms
        sorter = np.argsort(keys)
        wanted = np.repeat(block, np.diff(start)).astype(np.int64) * terms.n_atoms + atoms
        found = sorter[np.searchsorted(keys, wanted, sorter=sorter)]
        bit = (found - self.start[owner[found]]).astype(np.uint32)
        if not len(bit):
            return np.zeros(terms.n_terms, dtype=np.uint32)
        masks: NDArray[np.uint32] = np.bitwise_or.reduceat(np.uint32(1) << bit, start[:-1])
        return masks


def _reorder(terms: Terms, order: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    sizes = terms.degrees[order]
    start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    index = np.arange(start[-1]) + np.repeat(terms.start[order] - start[:-1], sizes)
    return start, terms.atoms[index]


def atom_codes(terms: Terms, bits: NDArray[np.uint8]) -> Codes:
    """Atoms as codes: 0 and 1."""
    codes = empty_codes(terms.n_atoms, 0, len(bits))
    codes.narrow[:, : len(bits)] = terms.values(bits)
    return codes


def table_bytes(terms: Terms) -> NDArray[np.int64]:
    """Memory of a table of its own for each term: an upper bound of what it costs in a block."""
    patterns = np.int64(1) << np.clip(terms.degrees, BLOCK_ATOMS, 40)
    return patterns * -(-terms.degrees // WIDTH) * (WIDTH * 8 * terms.n_outputs)


def compile_terms(
    terms: Terms, cover: Cover, background: NDArray[np.uint8], weights: NDArray[np.float64] | None
) -> TableSet:
    """Build the tables of terms of at most `MOST_ATOMS` atoms from background rows (n, n_bits)."""
    sizes = np.diff(cover.start)
    blocks = Blocks(
        cut_start=cover.start.astype(np.int32),
        cut_missing=cover.start[1:].astype(np.int32),  # bits are never missing
        cut_column=cover.atoms,
        cut_at=np.ones(len(cover.atoms), dtype=np.uint16),
        cut_weight=np.int32(1)
        << (np.arange(len(cover.atoms)) - np.repeat(cover.start[:-1], sizes)).astype(np.int32),
        base=np.zeros(len(cover), dtype=np.int32),
        n_patterns=np.int32(1) << sizes.astype(np.int32),
    )
    table_block, table_slots, groups = _lay_out(terms, cover)
    n_values = blocks.n_patterns[table_block].astype(np.int64) * (terms.n_outputs * WIDTH)
    table_offset = np.concatenate([[0], np.cumsum(n_values)]).astype(np.int64)
    tables = TableSet(
        blocks,
        table_block,
        table_offset[:-1].copy(),
        groups.start,
        groups.players,
        np.zeros(len(groups.players), dtype=np.int32),
        np.full(len(groups.players), terms.n_outputs, dtype=np.int32),
        np.empty(table_offset[-1]),
        terms.n_players,
        terms.n_outputs,
    )
    kernels.build.spectrum_tables(
        sizes.astype(np.int32),
        blocks.offset,
        histograms(blocks, atom_codes(terms, background), weights, 0, len(blocks)),
        cover.term_start,
        cover.term_mask,
        np.ascontiguousarray(terms.coefficients[cover.term_order]),
        odd_shares(int(terms.degrees.max(initial=0))),
        table_block,
        tables.table_offset,
        table_slots,
        0,
        len(table_block),
        tables.values,
    )
    return tables


def _lay_out(terms: Terms, cover: Cover) -> tuple[NDArray[np.int32], NDArray[np.int32], Grouping]:
    """Split the players of each block into tables of 8, and group them.

    Returns the block of each table, the column of each atom of its block in the table, and the groups.
    """
    sizes = np.diff(cover.start)
    owner = np.repeat(np.arange(len(cover)), sizes)
    atom_player = terms.atom_player[cover.atoms]
    # The distinct (block, player) pairs in order; each run of 8 within a block is a table.
    pairs, pair_of_atom = np.unique(owner * terms.n_players + atom_player, return_inverse=True)
    pair_block, pair_player = np.divmod(pairs, max(terms.n_players, 1))
    rank = np.arange(len(pairs)) - np.searchsorted(pair_block, pair_block)
    begins = rank % WIDTH == 0
    table_of_pair = np.cumsum(begins) - 1
    block = pair_block[begins].astype(np.int32)
    start = np.append(np.flatnonzero(begins), len(pairs)).astype(np.int64)
    # Tables of more than 256 patterns have wider pattern numbers, so they keep to themselves.
    kinds = (sizes[block] > BLOCK_ATOMS).astype(np.int32)
    grouping = group_tables(
        start, pair_player.astype(np.int32), kinds, terms.n_players, 8.0 * WIDTH * 2**BLOCK_ATOMS
    )
    position = np.empty(len(block), dtype=np.int64)
    position[grouping.order] = np.arange(len(block))
    table = table_of_pair[pair_of_atom]
    slots = np.full((len(block), int(sizes.max(initial=1))), -1, dtype=np.int32)
    bit = np.arange(len(owner)) - cover.start[owner]
    layout = grouping.players[grouping.of_table[table]]
    slots[position[table], bit] = (layout == atom_player[:, None]).argmax(axis=1)
    return block[grouping.order], slots, grouping


def odd_shares(max_degree: int) -> NDArray[np.float64]:
    """``shares[d, s, i in s]``: transform of "player i of d differs, with m - 1 others, m odd: share 1 / m".

    The character belongs to a set of s of the d players. Summed over how many of the others differ inside
    the set (u, each with a factor -1) and outside it (v).
    """
    shares = np.zeros((max_degree + 1, max_degree + 1, 2))
    for degree in range(1, max_degree + 1):
        for size in range(degree + 1):
            for inside in (0, 1):
                others = size - inside
                if not 0 <= others <= degree - 1:
                    continue
                total = 0.0
                for u in range(others + 1):
                    for v in range(u % 2, degree - others, 2):  # u + v even: with player i an odd number
                        ways = comb(others, u) * comb(degree - 1 - others, v)
                        total += (-1) ** u * ways / (1 + u + v)
                shares[degree, size, inside] = (-1) ** inside * total / 2**degree
    return shares
