"""Tables of a spectrum: terms gathered into blocks of atoms, one table per block and 8 players."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fouriershap import _kernels as kernels
from fouriershap._shapley.indices import SHAPLEY, Index, difference_shares, term_shares
from fouriershap._shapley.sets import n_places, pair_keys, pairs_within, place_of
from fouriershap._shapley.spectrum.terms import Terms
from fouriershap._shapley.tables import WIDTH, Blocks, Members, TableSet, histograms, lay_out
from fouriershap._trees.codes import Codes, empty_codes

BLOCK_ATOMS = 8  # 256 patterns: byte arithmetic, and a table of 16 KB that stays in the first-level cache
MOST_ATOMS = 16  # patterns are 16-bit numbers
# Score of a term by the number of its atoms that a block lacks (see `kernels.build_numpy.cover`): a term that the
# next atom would complete counts most, terms further away break ties.
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

    def nbytes(self, n_outputs: int, order: int) -> int:
        """Return an upper bound of the memory of tables for players (order 1) or pairs of them (order 2)."""
        atoms = np.diff(self.start)
        members = atoms if order == 1 else atoms * (atoms - 1) // 2
        return int(((np.int64(1) << atoms) * -(-members // WIDTH)).sum()) * WIDTH * 8 * n_outputs

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


def cover_within(
    terms: Terms, wanted: NDArray[np.bool_], memory: int, order: int
) -> tuple[Cover, NDArray[np.bool_]]:
    """Cover the wanted terms, or if their tables would exceed the memory, fewer of them; also return which."""
    kept = wanted.copy()
    while True:
        cover = Cover(terms.select(kept))
        need = cover.nbytes(terms.n_outputs, order)
        if need <= memory:
            return cover, kept
        by_degree = np.flatnonzero(kept)[np.argsort(terms.degrees[kept], kind="stable")]
        kept[by_degree[int(0.9 * memory / need * len(by_degree)) :]] = False


def _reorder(terms: Terms, order: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    sizes = terms.degrees[order]
    start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    index = np.arange(start[-1]) + np.repeat(terms.start[order] - start[:-1], sizes)
    return start, terms.atoms[index]


def atom_codes(terms: Terms, bits: NDArray[np.uint8]) -> Codes:
    """Return the atoms of rows of bits as codes 0 and 1."""
    codes = empty_codes(terms.n_atoms, 0, len(bits))
    codes.narrow[:, : len(bits)] = terms.values(bits)
    return codes


def table_bytes(terms: Terms) -> NDArray[np.int64]:
    """Return the memory of a separate table for each term: an upper bound of its memory in a block."""
    patterns = np.int64(1) << np.clip(terms.degrees, BLOCK_ATOMS, 40)
    return patterns * -(-terms.degrees // WIDTH) * (WIDTH * 8 * terms.n_outputs)


def compile_terms(
    terms: Terms,
    cover: Cover,
    background: NDArray[np.uint8],
    weights: NDArray[np.float64] | None,
    index: Index = SHAPLEY,
    keys: NDArray[np.int64] | None = None,
) -> TableSet:
    """Build the tables of terms of at most `MOST_ATOMS` atoms from background rows (n, n_bits).

    ``keys`` (n,) int64, sorted, are the pairs of players (`pair_keys`) whose interactions the tables hold; None
    for values of players.
    """
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
    members = _players(terms, cover) if keys is None else _pairs(terms, cover, keys)
    n_members, order = (terms.n_players, 1) if keys is None else (len(keys), 2)
    output = np.zeros(len(blocks), dtype=np.int32)
    skeleton, slots, n_values = lay_out(
        blocks, members, n_members, output, terms.n_outputs, terms.n_outputs, itemsize=8
    )
    tables = replace(skeleton, values=np.empty(n_values))
    share = histograms(blocks, atom_codes(terms, background), weights, 0, len(blocks))[:, 0]
    if index.subgames:
        _fill_structured(terms, cover, tables, slots, share, index)
        return tables
    bound = kernels.build.SpectrumBlocks(
        sizes.astype(np.int32),
        blocks.offset,
        share,
        cover.term_start,
        cover.term_mask,
        np.ascontiguousarray(terms.coefficients[cover.term_order]),
        term_shares(index, order, int(terms.degrees.max(initial=0))),
    )
    kernels.build.spectrum_tables(bound, tables.table_block, tables.table_offset, slots, tables.values)
    return tables


def _fill_structured(
    terms: Terms,
    cover: Cover,
    tables: TableSet,
    slots: NDArray[np.int32],
    share: NDArray[np.float64],
    index: Index,
) -> None:
    """Fill tables as `kernels.build.spectrum_tables` does, with shares that depend on who is in a term."""
    offset = tables.blocks.offset
    for t, b in enumerate(tables.table_block.tolist()):
        atoms = cover.atoms[cover.start[b] : cover.start[b + 1]]
        mean = _transformed(share[offset[b] : offset[b + 1]])
        collected = np.zeros((len(mean), terms.n_outputs, WIDTH))
        for k in range(cover.term_start[b], cover.term_start[b + 1]):
            members = np.flatnonzero(cover.term_mask[k] >> np.arange(len(atoms), dtype=np.uint32) & 1)
            within = np.arange(1 << len(members))[:, None] >> np.arange(len(members)) & 1
            found = difference_shares(index, terms.atom_player[atoms[members]], within == 1)
            sets = within @ (1 << members)
            found = _transformed(found) / len(sets) * mean[sets[-1] ^ sets][:, None]
            shown = slots[t, members] >= 0
            coefficients = terms.coefficients[cover.term_order[k]]
            for j, slot in zip(np.flatnonzero(shown), slots[t, members[shown]], strict=True):
                collected[sets, :, slot] += found[:, j, None] * coefficients
        table = _transformed(collected).transpose(1, 0, 2)
        tables.values[tables.table_offset[t] : tables.table_offset[t] + table.size] = table.reshape(-1)


def _transformed(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the Walsh-Hadamard transform of lines of numbers."""
    half = 1
    while half < len(values):
        pairs = values.reshape(-1, 2, half, *values.shape[1:])
        sums = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1)
        values, half = sums.reshape(values.shape), 2 * half
    return values


def _players(terms: Terms, cover: Cover) -> Members:
    """Return the players of each block, placed by their atoms."""
    owner = np.repeat(np.arange(len(cover)), np.diff(cover.start))
    bit, most = np.arange(len(owner)) - cover.start[owner], int(np.diff(cover.start).max(initial=0))
    return Members(owner, terms.atom_player[cover.atoms], bit, most)


def _pairs(terms: Terms, cover: Cover, keys: NDArray[np.int64]) -> Members:
    """Return the pairs of players of each block that have these keys."""
    owner, first, second = pairs_within(cover.start)
    player = terms.atom_player[cover.atoms]
    key = pair_keys(player[first], player[second], terms.n_players)
    kept = np.isin(key, keys)
    owner, first, second = owner[kept], first[kept], second[kept]
    place = place_of(first - cover.start[owner], second - cover.start[owner])
    return Members(owner, np.searchsorted(keys, key[kept]), place, n_places(cover.start))
