"""The `tables` kernels in NumPy: what `tables.cpp` must compute. Shapes and meanings are documented here.

A **block** reads some codes of a row and turns them into one number, the row's *pattern*:
``base + sum of weight over the block's cuts with code >= at``. A cut reads line ``column`` of ``codes8``, or
line ``~column`` of ``codes16`` where it is negative. A **table** of a block holds, for each pattern, the
contributions to 8 players. Tables that feed the same 8 players form a **group**, and are summed before
their sum is spread over the players.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

WIDTH = 8  # players of a table


class Blocks(NamedTuple):
    """Rules that turn rows of codes into patterns.

    Attributes
    ----------
    cut_start, cut_missing : (n_blocks + 1,) int32, (n_blocks,) int32
        The cuts of block b are ``cut_start[b]:cut_start[b + 1]``; from ``cut_missing[b]`` on, they tell
        missing values apart, and are left out where there are none.
    cut_column, cut_at, cut_weight : (n_cuts,) int32, uint16, int32
    base, n_patterns : (n_blocks,) int32
        At most 65,536 patterns.
    """

    cut_start: NDArray[np.int32]
    cut_missing: NDArray[np.int32]
    cut_column: NDArray[np.int32]
    cut_at: NDArray[np.uint16]
    cut_weight: NDArray[np.int32]
    base: NDArray[np.int32]
    n_patterns: NDArray[np.int32]

    def patterns(
        self, block: int, codes8: NDArray[np.uint8], codes16: NDArray[np.uint16], n_rows: int, missing: bool
    ) -> NDArray[np.int64]:
        """Return the patterns (n_rows,) of one block."""
        cuts = slice(self.cut_start[block], (self.cut_start[1:] if missing else self.cut_missing)[block])
        out = np.full(n_rows, self.base[block], dtype=np.int64)
        for column, at, weight in zip(
            self.cut_column[cuts], self.cut_at[cuts], self.cut_weight[cuts], strict=True
        ):
            codes = codes8[column] if column >= 0 else codes16[~column]
            out += np.where(codes[:n_rows] >= at, int(weight), 0)
        return out


class TableSet(NamedTuple):
    """Tables of blocks, grouped by the players that they feed.

    Attributes
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
    """

    blocks: Blocks
    table_block: NDArray[np.int32]
    table_offset: NDArray[np.int64]
    group_start: NDArray[np.int32]
    group_players: NDArray[np.int32]
    group_output: NDArray[np.int32]
    group_width: NDArray[np.int32]
    values: NDArray[Any]
    n_players: int
    n_outputs: int


def histogram(
    blocks: Blocks,
    codes8: NDArray[np.uint8],
    codes16: NDArray[np.uint16],
    n_rows: int,
    missing: bool,
    weights: NDArray[np.float64],
    offset: NDArray[np.int64],
    first_block: int,
    last_block: int,
    out: NDArray[np.float64],
) -> None:
    """Add up the weights of the rows with each pattern of each block.

    Parameters
    ----------
    codes8, codes16 : (n8, stride) uint8, (n16, stride) uint16
        Codes of the rows, a line per column; both have the same stride >= n_rows, a multiple of 64.
    missing : bool
        Whether any code of these rows may be a missing value's.
    weights : (n_rows, n_channels) float64
        Empty where every row weighs 1, in one channel.
    offset : (n_blocks + 1,) int64
        Where each block's patterns begin in ``out``.
    out : (n_patterns, n_channels) float64, added to
    """
    weight = weights if len(weights) else np.ones((n_rows, 1))
    for b in range(first_block, last_block):
        np.add.at(out[offset[b] :], blocks.patterns(b, codes8, codes16, n_rows, missing), weight)


def explain(
    tables: TableSet,
    codes8: NDArray[np.uint8],
    codes16: NDArray[np.uint16],
    n_rows: int,
    missing: bool,
    rows_per_block: int,
    out: NDArray[np.float64],
) -> None:
    """Add the table entries of every row.

    Parameters
    ----------
    codes8, codes16, n_rows, missing
        As in `histogram`.
    rows_per_block : int
        How many rows the native family carries through all tables at a time.
    out : (n_rows, n_players, n_outputs) float64, added to
    """
    for g, players in enumerate(tables.group_players):
        used = players >= 0
        for t in range(tables.group_start[g], tables.group_start[g + 1]):
            b = int(tables.table_block[t])
            p = tables.blocks.patterns(b, codes8, codes16, n_rows, missing)
            size = int(tables.blocks.n_patterns[b]) * WIDTH
            for w in range(tables.group_width[g]):
                first = tables.table_offset[t] + w * size
                table = tables.values[first : first + size].reshape(-1, WIDTH)
                out[:, players[used], tables.group_output[g] + w] += table[p][:, used]
