"""`TableSet`: compiled tables as flat arrays, how they are laid out, and how they are applied to coded rows.

Nothing here knows where the tables came from: a spectrum's atoms and a tree's features are both codes.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriershap import _kernels as kernels
from fouriershap._base.frozen import Frozen
from fouriershap._trees.codes import Codes

Ints = NDArray[np.int32]
WIDTH = 8  # players of one table: a table entry is one or two vector registers, and one cache line
BYTE_PATTERNS = 256  # tables with more have wider pattern numbers, and form groups of their own
_CACHE_BYTES = 8 << 20  # tables beyond this are fetched from memory, so more rows share each fetch
# Tables per group: those of a group are read in turn, row after row, so they should share the first-level cache.
_MOST_TABLES, _MOST_LARGE_TABLES, _LARGE_TABLE = 4, 3, 8192
_REACH = 128  # how many groups of each player a table looks at: more find little more


@dataclass(frozen=True, eq=False)
class Blocks(Frozen):
    """How rows of codes become patterns (see `kernels.tables_numpy.Blocks`)."""

    cut_start: Ints  # (n_blocks + 1,)
    cut_missing: Ints  # (n_blocks,)
    cut_column: Ints  # (n_cuts,)
    cut_at: NDArray[np.uint16]  # (n_cuts,)
    cut_weight: Ints  # (n_cuts,)
    base: Ints  # (n_blocks,)
    n_patterns: Ints  # (n_blocks,)

    def __len__(self) -> int:
        return len(self.base)

    @property
    def offset(self) -> NDArray[np.int64]:
        """(n_blocks + 1,) where each block's patterns begin when all are laid end to end."""
        return np.concatenate([[0], np.cumsum(self.n_patterns, dtype=np.int64)])

    @cached_property
    def bound(self) -> kernels.tables.Blocks:
        """The blocks as kernels take them."""
        cuts = (self.cut_start, self.cut_missing, self.cut_column, self.cut_at, self.cut_weight)
        return kernels.tables.Blocks(*cuts, self.base, self.n_patterns)


@dataclass(frozen=True, eq=False)
class TableSet(Frozen):
    """Tables grouped by the players that they feed (see `kernels.tables_numpy.TableSet`)."""

    blocks: Blocks
    table_block: Ints  # (n_tables,)
    table_offset: NDArray[np.int64]  # (n_tables,)
    group_start: Ints  # (n_groups + 1,)
    group_players: Ints  # (n_groups, 8)
    group_output: Ints  # (n_groups,)
    group_width: Ints  # (n_groups,)
    values: NDArray[Any]  # float32 or float64
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
        lines = (codes.narrow, codes.wide, codes.n_rows, codes.any_missing)
        kernels.tables.explain(self.bound, *lines, self.rows_per_block, out)

    @cached_property
    def bound(self) -> kernels.tables.TableSet:
        """The tables as kernels take them."""
        return kernels.tables.TableSet(
            self.blocks.bound,
            self.table_block,
            self.table_offset,
            self.group_start,
            self.group_players,
            self.group_output,
            self.group_width,
            self.values,
            self.n_players,
            self.n_outputs,
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
    lines = (codes.narrow, codes.wide, codes.n_rows, codes.any_missing)
    kernels.tables.histogram(blocks.bound, *lines, given, shifted, first, last, out)
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


class Members(NamedTuple):
    """What the blocks give values to: players, or pairs of them."""

    block: NDArray[Any]  # (n,) block by block
    member: NDArray[Any]  # (n,) who is a member of it
    place: NDArray[Any]  # (n,) a number by which its terms or leaves know the member, who may have several
    n_places: int  # more than any such number, also of those who are left out here


def lay_out(
    blocks: Blocks,
    members: Members,
    n_members: int,
    output: Ints,
    width: int,
    n_outputs: int,
    itemsize: int = 4,
) -> tuple[TableSet, Ints, int]:
    """Split the members of each block into tables of 8, and group these by output and pattern width.

    ``output`` (n_blocks,) is the first one of each block, whose tables hold ``width`` of them, in numbers of
    ``itemsize`` bytes. Gives tables without values, the column (n_tables, n_places) of each place in each table, -1
    for none, and how many values there are in all.
    """
    # The distinct (block, member) pairs in order; each run of 8 within a block is a table.
    distinct, of_place = np.unique(members.block * max(n_members, 1) + members.member, return_inverse=True)
    owner, member = np.divmod(distinct, max(n_members, 1))
    rank = np.arange(len(member)) - np.searchsorted(owner, owner)
    begins = rank % WIDTH == 0
    table_of = (np.cumsum(begins) - 1)[of_place]
    block = owner[begins].astype(np.int32)
    start = np.append(np.flatnonzero(begins), len(member)).astype(np.int64)
    kinds = (2 * output[block] + (blocks.n_patterns[block] > BYTE_PATTERNS)).astype(np.int32)
    table_bytes = float(itemsize * WIDTH * blocks.n_patterns[block].mean()) if len(block) else 0.0
    grouping = group_tables(start, member.astype(np.int32), kinds, n_members, table_bytes)
    position = np.empty(len(block), dtype=np.int64)
    position[grouping.order] = np.arange(len(block))
    slots = np.full((len(block), max(members.n_places, 1)), -1, dtype=np.int32)
    layout = grouping.players[grouping.of_table[table_of]]
    slots[position[table_of], members.place] = (layout == members.member[:, None]).argmax(axis=1)
    group_kinds = kinds[grouping.order[grouping.start[:-1]]]
    table_block = block[grouping.order]
    sizes = blocks.n_patterns[table_block].astype(np.int64) * (WIDTH * width)
    offset = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    skeleton = TableSet(
        blocks,
        table_block,
        offset[:-1].copy(),
        grouping.start,
        grouping.players,
        group_kinds // 2,
        np.full(len(group_kinds), width, dtype=np.int32),
        np.empty(0, dtype=np.float32),
        n_members,
        n_outputs,
    )
    return skeleton, slots, int(offset[-1])


@dataclass(frozen=True, eq=False)
class Grouping:
    """The order of the tables, and the players of each group."""

    order: NDArray[np.int64]  # (n_tables,) tables in the order of their groups
    start: Ints  # (n_groups + 1,) the tables of group g are ``order[start[g]:start[g + 1]]``
    players: Ints  # (n_groups, 8) -1 where a column is free
    of_table: Ints  # (n_tables,) group of each table, in the caller's order


def group_tables(
    start: NDArray[np.int64],
    players: Ints,
    kinds: Ints,
    n_players: int,
    table_bytes: float,
) -> Grouping:
    """Gather tables whose players fit together into 8 columns; only tables of one kind may meet.

    The players of each table, ``players[start[t]:start[t + 1]]``, are sorted, at most 8; ``table_bytes`` is the mean
    size.
    """
    n_tables = len(kinds)
    sizes = np.diff(start)
    padded = np.full((n_tables, WIDTH), -1, dtype=np.int32)
    table = np.repeat(np.arange(n_tables), sizes)
    padded[table, np.arange(len(players)) - start[:-1][table]] = players
    # Large sets first, alike ones together: later, smaller ones find a group that holds them.
    order = np.lexsort((*padded.T[::-1], -sizes, kinds))
    sorted_padded = padded[order]
    sorted_start = np.concatenate([[0], np.cumsum(sizes[order])]).astype(np.int64)
    of_sorted = np.empty(n_tables, dtype=np.int32)
    layout = np.empty((n_tables, WIDTH), dtype=np.int32)
    n_groups = kernels.build.group(
        sorted_start,
        sorted_padded[sorted_padded >= 0],
        np.ascontiguousarray(kinds[order]),
        n_players,
        _MOST_TABLES if table_bytes <= _LARGE_TABLE else _MOST_LARGE_TABLES,
        _REACH,
        of_sorted,
        layout,
    )
    of_table = np.empty(n_tables, dtype=np.int32)
    of_table[order] = of_sorted
    by_group = np.argsort(of_table, kind="stable")
    first = np.searchsorted(of_table[by_group], np.arange(n_groups + 1)).astype(np.int32)
    return Grouping(by_group, first, layout[:n_groups].copy(), of_table)
