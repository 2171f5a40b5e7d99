"""The `tables` kernels in NumPy: what `tables.cpp` must compute. Shapes and meanings are documented here.

A **block** reads some codes of a row and turns them into one number, the row's *pattern*:
``base + sum of weight over the block's cuts with code >= at``. A cut reads line ``column`` of ``codes8``, or
line ``~column`` of ``codes16`` where it is negative. A **table** of a block holds, for each pattern, the
contributions to 8 players. Tables that feed the same 8 players form a **group**, and are summed before
their sum is spread over the players.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

WIDTH = 8  # players of a table


def patterns(
    codes8: NDArray[np.uint8],
    codes16: NDArray[np.uint16],
    cuts: slice,
    cut_column: NDArray[np.int32],
    cut_at: NDArray[np.uint16],
    cut_weight: NDArray[np.int32],
    base: int,
) -> NDArray[np.int64]:
    """Patterns (n_rows,) of one block."""
    out = np.full(codes8.shape[1], base, dtype=np.int64)
    for column, at, weight in zip(cut_column[cuts], cut_at[cuts], cut_weight[cuts], strict=True):
        codes = codes8[column] if column >= 0 else codes16[~column]
        out += np.where(codes >= at, int(weight), 0)
    return out


def histogram(
    codes8: NDArray[np.uint8],
    codes16: NDArray[np.uint16],
    n_rows: int,
    missing: bool,
    weights: NDArray[np.float64],
    cut_start: NDArray[np.int32],
    cut_missing: NDArray[np.int32],
    cut_column: NDArray[np.int32],
    cut_at: NDArray[np.uint16],
    cut_weight: NDArray[np.int32],
    block_base: NDArray[np.int32],
    block_patterns: NDArray[np.int32],
    offset: NDArray[np.int64],
    first_block: int,
    last_block: int,
    out: NDArray[np.float64],
) -> None:
    """Add up the weight of the rows that show each pattern of each block.

    Parameters
    ----------
    codes8, codes16 : (n8, stride) uint8, (n16, stride) uint16
        Codes of the rows, a line per column; both have the same stride >= n_rows, a multiple of 64.
    weights : (n_rows,) float64
        Empty where every row weighs 1.
    missing : bool
        Whether any code of these rows may be a missing value's.
    cut_start, cut_missing : (n_blocks + 1,) int32, (n_blocks,) int32
        The cuts of block b are ``cut_start[b]:cut_start[b + 1]``; from ``cut_missing[b]`` on, they tell
        missing values apart, and are left out where there are none.
    block_patterns : (n_blocks,) int32
        Number of patterns, at most 65,536.
    offset : (n_blocks + 1,) int64
        Where each block's patterns begin in ``out``.
    out : (offset[-1],) float64, added to
    """
    weight = weights if len(weights) else np.ones(n_rows)
    for b in range(first_block, last_block):
        cuts = slice(cut_start[b], cut_start[b + 1] if missing else cut_missing[b])
        p = patterns(codes8, codes16, cuts, cut_column, cut_at, cut_weight, int(block_base[b]))[:n_rows]
        out[offset[b] : offset[b + 1]] += np.bincount(p, weight, minlength=int(block_patterns[b]))


def explain(
    codes8: NDArray[np.uint8],
    codes16: NDArray[np.uint16],
    n_rows: int,
    missing: bool,
    cut_start: NDArray[np.int32],
    cut_missing: NDArray[np.int32],
    cut_column: NDArray[np.int32],
    cut_at: NDArray[np.uint16],
    cut_weight: NDArray[np.int32],
    block_base: NDArray[np.int32],
    block_patterns: NDArray[np.int32],
    table_block: NDArray[np.int32],
    table_offset: NDArray[np.int64],
    group_start: NDArray[np.int32],
    group_players: NDArray[np.int32],
    group_output: NDArray[np.int32],
    group_width: NDArray[np.int32],
    values: NDArray[Any],
    rows_per_block: int,
    out: NDArray[np.float64],
) -> None:
    """Add the table entries of every row.

    Parameters
    ----------
    table_block : (n_tables,) int32
    table_offset : (n_tables,) int64
        Where a table begins in ``values``: (group_width, n_patterns, 8) numbers.
    group_start : (n_groups + 1,) int32
        The tables of group g are ``group_start[g]:group_start[g + 1]``.
    group_players : (n_groups, 8) int32
        Player of each column, -1 for none.
    group_output, group_width : (n_groups,) int32
        The tables hold outputs ``group_output ... group_output + group_width - 1``.
    values : float32 or float64
    rows_per_block : int
        How many rows are carried through all tables at a time (a matter of caches).
    out : (n_rows, n_players, n_outputs) float64, added to
    """
    for g in range(len(group_output)):
        used = group_players[g] >= 0
        for t in range(group_start[g], group_start[g + 1]):
            b = table_block[t]
            cuts = slice(cut_start[b], cut_start[b + 1] if missing else cut_missing[b])
            p = patterns(codes8, codes16, cuts, cut_column, cut_at, cut_weight, int(block_base[b]))[:n_rows]
            size = int(block_patterns[b]) * WIDTH
            for w in range(group_width[g]):
                first = table_offset[t] + w * size
                table = values[first : first + size].reshape(-1, WIDTH)
                out[:, group_players[g][used], group_output[g] + w] += table[p][:, used]


def spectrum_tables(
    block_bits: NDArray[np.int32],
    histogram_offset: NDArray[np.int64],
    histograms: NDArray[np.float64],
    term_start: NDArray[np.int64],
    term_mask: NDArray[np.uint32],
    coefficients: NDArray[np.float64],
    shares: NDArray[np.float64],
    table_block: NDArray[np.int32],
    table_offset: NDArray[np.int64],
    table_slots: NDArray[np.int32],
    first_table: int,
    last_table: int,
    values: NDArray[np.float64],
) -> None:
    """Fill the tables of a spectrum.

    With H(u) the background's mean of the character u, the SHAP value of player i from the term f is
    ``-2 a_f sum_{s in f} g_i(s) H(f xor s) chi_s(x)``, where g_i is the transform of "player i differs, and
    an odd number m of players, so i's share is 1 / m". So the terms of a block are collected as
    coefficients of characters s, and one Walsh-Hadamard transform makes the table.

    Parameters
    ----------
    block_bits : (n_blocks,) int32
        Atoms of a block; it has 2^bits patterns.
    histogram_offset, histograms : (n_blocks + 1,) int64, float64
        Weight of the background (in total 1) on each pattern.
    term_start : (n_blocks + 1,) int64
    term_mask : (n_terms,) uint32
        The atoms of a term as bits of its block's pattern.
    coefficients : (n_terms, n_outputs) float64
    shares : (D + 1, D + 1, 2) float64
        ``g_i(s)`` by the degree of f, the size of s, and whether i is in s.
    table_slots : (n_tables, n) int32
        Column of the table that takes the share of each atom, -1 for none.
    values : float64, written
    """
    n_outputs = coefficients.shape[1]
    for t in range(first_table, last_table):
        b = int(table_block[t])
        n_bits = int(block_bits[b])
        mean = histograms[histogram_offset[b] : histogram_offset[b + 1]].copy()
        _transform(mean)
        collected = np.zeros((1 << n_bits, n_outputs, WIDTH))
        for k in range(term_start[b], term_start[b + 1]):
            f = int(term_mask[k])
            members = [i for i in range(n_bits) if f >> i & 1]
            for s in _subsets(f):
                weight = -2.0 * coefficients[k] * mean[f ^ s]
                for i in members:
                    if table_slots[t, i] >= 0:
                        share = shares[len(members), s.bit_count(), s >> i & 1]
                        collected[s, :, table_slots[t, i]] += share * weight
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
    """Cover terms by few blocks of atoms, greedily; returns the number of blocks.

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
    group_of_table: NDArray[np.int32],
    group_players: NDArray[np.int32],
) -> int:
    """Gather tables whose players fit together into 8 columns, greedily; returns the number of groups.

    Each table joins the group of its kind that already holds most of its players (at least one), has room
    for the others and fewer than ``most_tables`` tables; among equals the oldest. Else it founds one.

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
    sets: list[set[int]] = []
    sizes: list[int] = []
    group_players[:] = -1
    first_of_kind = 0
    for t in range(len(kinds)):
        if t and kinds[t] != kinds[t - 1]:
            first_of_kind = len(sets)
        mine = players[start[t] : start[t + 1]].tolist()
        best, most = len(sets), 0
        for g in range(first_of_kind, len(sets)):
            shared = len(sets[g].intersection(mine))
            if shared > most and sizes[g] < most_tables and len(sets[g]) + len(mine) - shared <= WIDTH:
                best, most = g, shared
        if best == len(sets):
            sets.append(set())
            sizes.append(0)
        for player in mine:
            if player not in sets[best]:
                group_players[best, len(sets[best])] = player
                sets[best].add(player)
        sizes[best] += 1
        group_of_table[t] = best
    return len(sets)


def encode32(
    rows: NDArray[Any],
    tiers: NDArray[Any],
    tier_start: NDArray[np.int64],
    n_levels: NDArray[np.int64],
    categorical: NDArray[np.bool_],
    codes: NDArray[np.int32],
) -> bool:
    """Turn values into codes; returns whether any value is missing (NaN).

    Parameters
    ----------
    rows : (n_rows, n_features) float32 or float64
    tiers, tier_start : same dtype, (n_features,) int64
        The sorted levels of feature f are the first ``n_levels[f]`` from ``tier_start[f]`` on (what follows
        them serves the native search).
    categorical : (n_features,) bool
        Where False, the code is the number of levels <= the value. Where True, it is the position of the
        value, cut to an integer, among the levels, or ``n_levels`` where it is none of them.
    codes : (n_features, >= n_rows) int32, written
        A missing value becomes ``n_levels + 1``.
    """
    for f, line in enumerate(codes):
        levels = tiers[tier_start[f] : tier_start[f] + n_levels[f]]
        column = rows[:, f]
        if categorical[f]:
            whole = np.trunc(column)
            position = np.searchsorted(levels, whole)
            known = np.append(levels, np.nan)[position] == whole
            line[: len(rows)] = np.where(known, position, len(levels))
        else:
            line[: len(rows)] = np.searchsorted(levels, column, side="right")
        line[: len(rows)][np.isnan(column)] = len(levels) + 1
    return bool(np.isnan(rows).any())


def encode(
    rows: NDArray[Any],
    tiers: NDArray[Any],
    tier_start: NDArray[np.int64],
    n_levels: NDArray[np.int64],
    categorical: NDArray[np.bool_],
    column: NDArray[np.int32],
    codes8: NDArray[np.uint8],
    codes16: NDArray[np.uint16],
) -> bool:
    """Turn values into codes as `encode32` does, and write them where tables read them.

    Parameters
    ----------
    column : (n_features,) int32
        Line of ``codes8`` that takes the feature, ``~line`` of ``codes16`` where negative, the largest int32
        for features that no table reads.
    """
    n_rows = len(rows)
    used = column != np.iinfo(np.int32).max
    codes = np.empty((len(column), n_rows), dtype=np.int32)
    encode32(rows, tiers, tier_start, n_levels, categorical, codes)
    for f in np.flatnonzero(used):
        (codes8[column[f]] if column[f] >= 0 else codes16[~column[f]])[:n_rows] = codes[f]
    return bool(np.isnan(rows[:, used]).any())
