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
