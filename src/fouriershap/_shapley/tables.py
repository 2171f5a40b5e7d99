"""`TableSet`: look-up tables as flat arrays, their layout, and their application to rows of codes.

Spectra and trees share these tables: the atoms of a spectrum and the features of a tree are both codes.
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
WIDTH = 8  # players of one table: a table entry fills one or two vector registers, and at most one cache line
BYTE_PATTERNS = 256  # tables with more have wider pattern numbers, and form groups of their own
_CACHE_BYTES = 8 << 20  # tables beyond this are fetched from memory, so more rows share each fetch
# Tables per group. Each row reads all tables of a group, so they should fit into the first-level cache together.
_MOST_TABLES, _MOST_LARGE_TABLES, _LARGE_TABLE = 4, 3, 8192
_REACH = 128  # groups of each player to try for a table: more hardly improve the result


@dataclass(frozen=True, eq=False)
class Blocks(Frozen):
    """Rules that turn rows of codes into patterns (see `kernels.tables_numpy.Blocks`)."""

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
        """Position of the first pattern of each block among the patterns of all, (n_blocks + 1,)."""
        return np.concatenate([[0], np.cumsum(self.n_patterns, dtype=np.int64)])

    @cached_property
    def bound(self) -> kernels.tables.Blocks:
        """Bound blocks for the kernels."""
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
        """Number of look-ups per row and output."""
        return len(self.table_block)

    @property
    def rows_per_block(self) -> int:
        """Rows that read all tables at a time: more where the tables do not fit into the cache."""
        rows = 8192 if self.nbytes <= _CACHE_BYTES else 16384
        # The running sums of these rows should fit into the cache as well.
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
        """Bound tables for the kernels."""
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
    """Return the share of the background with each pattern of the blocks ``first`` to ``last - 1``, concatenated.

    ``weights`` are (n_rows,) or (n_rows, n_channels), None for equal ones; the result is (n_patterns, n_channels). The
    shares of a block have the sum of the weights.
    """
    offset = blocks.offset
    given = np.empty((0, 1)) if weights is None else weights.reshape(len(weights), -1)
    out = np.zeros((offset[last] - offset[first], given.shape[1]))
    shifted = np.ascontiguousarray(offset - offset[first])
    lines = (codes.narrow, codes.wide, codes.n_rows, codes.any_missing)
    kernels.tables.histogram(blocks.bound, *lines, given, shifted, first, last, out)
    if weights is None:
        out /= codes.n_rows
    return out


def tables_to_arrays(tables: TableSet) -> dict[str, NDArray[Any]]:
    """Return the arrays by name, for a file."""
    named = {field.name: getattr(tables, field.name) for field in fields(TableSet)}
    blocks, _, _ = named.pop("blocks"), named.pop("n_players"), named.pop("n_outputs")
    return named | {f"blocks.{field.name}": getattr(blocks, field.name) for field in fields(Blocks)}


def tables_from_arrays(arrays: dict[str, NDArray[Any]], n_players: int, n_outputs: int) -> TableSet:
    """Build tables from the arrays that `tables_to_arrays` returned."""
    blocks = Blocks(*(arrays[f"blocks.{field.name}"] for field in fields(Blocks)))
    rest: dict[str, Any] = {field.name: arrays[field.name] for field in fields(TableSet)[1:-2]}
    return TableSet(blocks=blocks, **rest, n_players=n_players, n_outputs=n_outputs)


class Members(NamedTuple):
    """Members of the blocks, to which their tables add values: players, or pairs of players."""

    block: NDArray[Any]  # (n,) ascending
    member: NDArray[Any]  # (n,) player or pair
    place: NDArray[Any]  # (n,) number of the member within its block; a member may have several
    n_places: int  # upper bound of these numbers, members that are left out included


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

    ``output`` (n_blocks,) is the first output of each block, whose tables hold ``width`` outputs, in numbers of
    ``itemsize`` bytes. Return tables without values, the column (n_tables, n_places) of each place in each table (-1
    for none), and the number of values in all.
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
    """Order of the tables, and players of each group."""

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
    """Group tables of the same kind that together have at most 8 players, one per column.

    The players of table t, ``players[start[t]:start[t + 1]]``, are sorted and at most 8; ``table_bytes`` is the mean
    size of a table.
    """
    n_tables = len(kinds)
    sizes = np.diff(start)
    padded = np.full((n_tables, WIDTH), -1, dtype=np.int32)
    table = np.repeat(np.arange(n_tables), sizes)
    padded[table, np.arange(len(players)) - start[:-1][table]] = players
    # Large sets first, similar ones together, so that smaller ones find a group that contains them.
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
