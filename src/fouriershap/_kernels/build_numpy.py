"""The `build` kernels in NumPy: what `build.cpp` must compute. Shapes and meanings are documented here.

Which terms of a spectrum share a block, which tables share a group, and what a spectrum's table holds.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

WIDTH = 8


class SpectrumBlocks(NamedTuple):
    """Blocks of a spectrum's terms.

    Attributes
    ----------
    block_bits : (n_blocks,) int32
        Atoms of a block; it has 2^bits patterns.
    histogram_offset, histograms : (n_blocks + 1,) int64, float64
        Weight of the background (in total 1) on each pattern.
    term_start : (n_blocks + 1,) int64
    term_mask : (n_terms,) uint32
        The atoms of a term as bits of its block's pattern.
    coefficients : (n_terms, n_outputs) float64
    shares : (D + 1, D + 1, order + 1) float64
        ``g_i(s)`` by the degree of f, the size of s, and how many of i (of the pair) are in s. The order is 1 for
        players, 2 for pairs.
    """

    block_bits: NDArray[np.int32]
    histogram_offset: NDArray[np.int64]
    histograms: NDArray[np.float64]
    term_start: NDArray[np.int64]
    term_mask: NDArray[np.uint32]
    coefficients: NDArray[np.float64]
    shares: NDArray[np.float64]


def spectrum_tables(
    blocks: SpectrumBlocks,
    table_block: NDArray[np.int32],
    table_offset: NDArray[np.int64],
    table_slots: NDArray[np.int32],
    values: NDArray[np.float64],
) -> None:
    """Fill the tables of a spectrum.

    With H(u) the background's mean of the character u, the value of player i from the term f is
    ``a_f sum_{s in f} g_i(s) H(f xor s) chi_s(x)``, where g_i is the transform of i's share by the players that
    differ (for SHAP values: -2 / m where i is one of an odd number m, else 0). So the terms of a block are
    collected as coefficients of characters s, and one Walsh-Hadamard transform makes the table. The same holds
    for pairs of players.

    Where all of the background has the same atom i, H(u) and H(u xor i) differ in sign alone, and so do g_i(s) and
    g_i(s xor i). Both are rounded alike, so that a row with that atom gets exactly 0, without a rounding error, for a
    player of that atom alone. (A player of several atoms in a block has a column in which more than two add up.)

    Parameters
    ----------
    table_block, table_offset : (n_tables,) int32, int64
        Block of a table, and its place in ``values``.
    table_slots : (n_tables, n) int32
        Column of the table that takes the share of each atom, or of each pair of atoms i < j, number
        ``j (j - 1) / 2 + i``; -1 for none.
    values : float64, written
    """
    block_bits, histogram_offset, histograms, term_start, term_mask, coefficients, shares = blocks
    n_outputs = coefficients.shape[1]
    for t in range(len(table_block)):
        b = int(table_block[t])
        n_bits = int(block_bits[b])
        mean = histograms[histogram_offset[b] : histogram_offset[b + 1]].copy()
        _transform(mean)
        collected = np.zeros((1 << n_bits, n_outputs, WIDTH))
        for k in range(term_start[b], term_start[b + 1]):
            f = int(term_mask[k])
            members = [i for i in range(n_bits) if f >> i & 1]
            if shares.shape[2] == 3:
                chosen = [(j * (j - 1) // 2 + i, 1 << i | 1 << j) for i, j in combinations(members, 2)]
            else:
                chosen = [(i, 1 << i) for i in members]
            for s in _subsets(f):
                for number, mask in chosen:
                    if table_slots[t, number] >= 0:
                        share = shares[len(members), s.bit_count(), (s & mask).bit_count()]
                        collected[s, :, table_slots[t, number]] += share * coefficients[k] * mean[f ^ s]
        _transform(collected)
        table = collected.transpose(1, 0, 2)
        values[table_offset[t] : table_offset[t] + table.size] = table.reshape(-1)


def _subsets(mask: int) -> list[int]:
    subset, found = mask, [mask]
    while subset:
        subset = (subset - 1) & mask
        found.append(subset)
    return found


def _transform(values: NDArray[np.float64]) -> None:
    half = 1
    while half < len(values):
        pairs = values.reshape(-1, 2, half, *values.shape[1:])
        pairs[:, 0], pairs[:, 1] = pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]
        half *= 2


def cover(
    start: NDArray[np.int64],
    atoms: NDArray[np.int32],
    n_atoms: int,
    max_atoms: int,
    weights: NDArray[np.int64],
    block_of_term: NDArray[np.int32],
    block_start: NDArray[np.int64],
    block_atoms: NDArray[np.int32],
) -> int:
    """Cover terms by few blocks of atoms, greedily, and return the number of blocks.

    A block begins with the widest term that is not covered. It then takes, one by one, the atom with
    the highest score: the sum over the terms that contain it, and that the block does not cover yet, of
    ``weights[number of the term's atoms that the block lacks]``. Terms must come widest first.

    Parameters
    ----------
    start, atoms : (n_terms + 1,) int64, int32
    max_atoms : int
        Size of a block; a term that is wider gets a block of its own width.
    weights : (max_atoms + 1,) int64
        Score of a term by the number of atoms it lacks; beyond, 0.
    block_of_term : (n_terms,) int32, written
    block_start, block_atoms : (n_terms + 1,) int64, (n_terms * width,) int32, written
    """
    terms = [atoms[start[k] : start[k + 1]].tolist() for k in range(len(start) - 1)]
    block_of_term[:] = -1
    n_blocks, filled = 0, 0
    block_start[0] = 0
    for seed, members in enumerate(terms):
        if block_of_term[seed] >= 0:
            continue
        block = list(members)
        while True:
            for k, term in enumerate(terms):
                if block_of_term[k] < 0 and set(term) <= set(block):
                    block_of_term[k] = n_blocks
            if len(block) >= max_atoms:
                break
            score = np.zeros(n_atoms, dtype=np.int64)
            for k, term in enumerate(terms):
                lacking = set(term) - set(block)
                if block_of_term[k] < 0 and len(lacking) <= max_atoms:
                    score[list(lacking)] += weights[len(lacking)]
            if score.max(initial=0) == 0:
                break
            block.append(int(score.argmax()))
        block_atoms[filled : filled + len(block)] = block
        filled += len(block)
        n_blocks += 1
        block_start[n_blocks] = filled
    return n_blocks


def group(
    start: NDArray[np.int64],
    players: NDArray[np.int32],
    kinds: NDArray[np.int32],
    n_players: int,
    most_tables: int,
    reach: int,
    group_of_table: NDArray[np.int32],
    group_players: NDArray[np.int32],
) -> int:
    """Group tables that together have at most 8 players, greedily, and return the number of groups.

    Each table looks at the groups of its kind that hold one of its players, for each player at the ``reach``
    ones that took it in last. It joins the one that holds most of its players, has room for the others and
    fewer than ``most_tables`` tables; among equals the oldest. Else it founds one.

    Parameters
    ----------
    start, players : (n_tables + 1,) int64, int32
        The players of each table, at most 8. Kinds must come one after the other.
    kinds : (n_tables,) int32
        Only tables of one kind may share a group.
    group_of_table : (n_tables,) int32, written
    group_players : (n_tables, 8) int32, written
        Line g: the players of group g in the order in which they came, -1 after the last.
    """
    held: list[list[int]] = []
    sizes: list[int] = []
    holders: dict[int, list[int]] = {}
    group_players[:] = -1
    for t in range(len(kinds)):
        if t and kinds[t] != kinds[t - 1]:
            holders = {}
        mine = players[start[t] : start[t + 1]].tolist()
        best, most = len(held), 0
        for g in sorted({g for player in mine for g in holders.get(player, [])[-reach:]}):
            shared = len(set(held[g]).intersection(mine))
            if shared > most and sizes[g] < most_tables and len(held[g]) + len(mine) - shared <= WIDTH:
                best, most = g, shared
        if best == len(held):
            held.append([])
            sizes.append(0)
        for player in mine:
            if player not in held[best]:
                held[best].append(player)
                holders.setdefault(player, []).append(best)
        sizes[best] += 1
        group_of_table[t] = best
    for g, members in enumerate(held):
        group_players[g, : len(members)] = members
    return len(held)
