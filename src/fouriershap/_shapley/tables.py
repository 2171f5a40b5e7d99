"""`TableSet`: compiled tables as flat arrays, and how they are applied to coded rows.

Nothing here knows where the tables came from: a spectrum's atoms and a tree's features are both codes.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap import _kernels as kernels
from fouriershap._trees.codes import Codes

WIDTH = 8  # players of one table: a table entry is one or two vector registers, and one cache line
BYTE_PATTERNS = 256  # tables with more have wider pattern numbers, and form groups of their own
_CACHE_BYTES = 8 << 20  # tables beyond this are fetched from memory, so more rows share each fetch


@dataclass(frozen=True, eq=False)
class Blocks:
    """How rows of codes become patterns (see `kernels.tables_numpy`).

    Attributes
    ----------
    cut_start, cut_missing : (n_blocks + 1,) int32, (n_blocks,) int32
    cut_column, cut_at, cut_weight : (n_cuts,) int32, uint16, int32
    base, n_patterns : (n_blocks,) int32
    """

    cut_start: NDArray[np.int32]
    cut_missing: NDArray[np.int32]
    cut_column: NDArray[np.int32]
    cut_at: NDArray[np.uint16]
    cut_weight: NDArray[np.int32]
    base: NDArray[np.int32]
    n_patterns: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.base)

    @property
    def offset(self) -> NDArray[np.int64]:
        """(n_blocks + 1,) where each block's patterns begin when all are laid end to end."""
        return np.concatenate([[0], np.cumsum(self.n_patterns, dtype=np.int64)])

    def arrays(
        self,
    ) -> tuple[
        NDArray[np.int32],
        NDArray[np.int32],
        NDArray[np.int32],
        NDArray[np.uint16],
        NDArray[np.int32],
        NDArray[np.int32],
        NDArray[np.int32],
    ]:
        """The arrays in the order in which kernels take them."""
        cuts = (self.cut_start, self.cut_missing, self.cut_column, self.cut_at, self.cut_weight)
        return *cuts, self.base, self.n_patterns


@dataclass(frozen=True, eq=False)
class TableSet:
    """Tables grouped by the players that they feed (see `kernels.tables_numpy.explain`).

    Attributes
    ----------
    blocks : Blocks
    table_block, table_offset : (n_tables,) int32, int64
    group_start : (n_groups + 1,) int32
    group_players : (n_groups, 8) int32
    group_output, group_width : (n_groups,) int32
    values : float32 or float64
    n_players, n_outputs : int
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

    @property
    def nbytes(self) -> int:
        return int(self.values.nbytes)

    @property
    def n_tables(self) -> int:
        """Look-ups per row and output."""
        return len(self.table_block)

    @property
    def rows_per_block(self) -> int:
        """Rows carried through all tables at a time: many where the tables outgrow the cache."""
        rows = 8192 if self.nbytes <= _CACHE_BYTES else 16384
        # The running sums of these rows should not outgrow the cache either.
        bytes_per_row = self.n_players * self.n_outputs * self.values.itemsize
        while rows > 128 and rows * bytes_per_row > _CACHE_BYTES // 2:
            rows //= 2
        return rows

    def add(self, codes: Codes, out: NDArray[np.float64]) -> None:
        """Add the values of all rows to ``out`` (n_rows, n_players, n_outputs)."""
        if not self.n_tables or not codes.n_rows:
            return
        kernels.tables.explain(
            codes.narrow,
            codes.wide,
            codes.n_rows,
            codes.any_missing,
            *self.blocks.arrays(),
            self.table_block,
            self.table_offset,
            self.group_start,
            self.group_players,
            self.group_output,
            self.group_width,
            self.values,
            self.rows_per_block,
            out,
        )


def histograms(
    blocks: Blocks, codes: Codes, weights: NDArray[np.float64] | None, first: int, last: int
) -> NDArray[np.float64]:
    """Share of the background on each pattern of blocks first ... last - 1, end to end; each sums to 1.

    ``weights`` sum to 1; None for equal ones.
    """
    offset = blocks.offset
    out = np.zeros(offset[last] - offset[first])
    shifted = np.ascontiguousarray(offset - offset[first])
    given = np.empty(0) if weights is None else weights
    kernels.tables.histogram(
        codes.narrow,
        codes.wide,
        codes.n_rows,
        codes.any_missing,
        given,
        *blocks.arrays(),
        shifted,
        first,
        last,
        out,
    )
    if weights is None:
        out /= codes.n_rows
    return out


def tables_to_arrays(tables: TableSet) -> dict[str, NDArray[Any]]:
    """Named arrays for a file."""
    named = {field.name: getattr(tables, field.name) for field in fields(TableSet)}
    blocks, _, _ = named.pop("blocks"), named.pop("n_players"), named.pop("n_outputs")
    return named | {f"blocks.{field.name}": getattr(blocks, field.name) for field in fields(Blocks)}


def tables_from_arrays(arrays: dict[str, NDArray[Any]], n_players: int, n_outputs: int) -> TableSet:
    """The inverse of `tables_to_arrays`."""
    blocks = Blocks(*(arrays[f"blocks.{field.name}"] for field in fields(Blocks)))
    rest: dict[str, Any] = {field.name: arrays[field.name] for field in fields(TableSet)[1:-2]}
    return TableSet(blocks=blocks, **rest, n_players=n_players, n_outputs=n_outputs)
