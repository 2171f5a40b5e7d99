"""Laying out tables: who is in which column of which table, before there is any value in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriershap import _kernels as kernels
from fouriershap._shapley.tables import BYTE_PATTERNS, WIDTH, Blocks, TableSet

# Tables per group: those of a group are read in turn, row after row, so they should share the first-level cache.
_MOST_TABLES, _MOST_LARGE_TABLES, _LARGE_TABLE = 4, 3, 8192
_REACH = 128  # how many groups of each player a table looks at: more find little more


class Members(NamedTuple):
    """What the blocks give values to: players, or pairs of them.

    Attributes
    ----------
    block, member, place : (n,) int
        Block by block: who is a member of it, and a number by which its terms or leaves know the member; a member
        may have several.
    n_places : int
        More than any such number, also of those who are left out here.
    """

    block: NDArray[Any]
    member: NDArray[Any]
    place: NDArray[Any]
    n_places: int


def lay_out(
    blocks: Blocks,
    members: Members,
    n_members: int,
    output: NDArray[np.int32],
    width: int,
    n_outputs: int,
    itemsize: int = 4,
) -> tuple[TableSet, NDArray[np.int32], int]:
    """Split the members of each block into tables of 8, and group these by output and pattern width.

    Parameters
    ----------
    output : (n_blocks,) int32
        First output of each block; its tables hold ``width`` of them.
    itemsize : int
        Bytes of a number.

    Returns
    -------
    tables : TableSet
        Without values.
    slots : (n_tables, n_places) int32
        The column of each place in each table, -1 for none.
    n_values : int
        Numbers in all tables.
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
    """The order of the tables, and the players of each group.

    Attributes
    ----------
    order : (n_tables,) int64
        Tables in the order of their groups.
    start : (n_groups + 1,) int32
        The tables of group g are ``order[start[g]:start[g + 1]]``.
    players : (n_groups, 8) int32
        -1 where a column is free.
    of_table : (n_tables,) int32
        Group of each table, in the caller's order.
    """

    order: NDArray[np.int64]
    start: NDArray[np.int32]
    players: NDArray[np.int32]
    of_table: NDArray[np.int32]


def group_tables(
    start: NDArray[np.int64],
    players: NDArray[np.int32],
    kinds: NDArray[np.int32],
    n_players: int,
    table_bytes: float,
) -> Grouping:
    """Gather tables whose players fit together into 8 columns; only tables of one kind may meet.

    Parameters
    ----------
    start, players : (n_tables + 1,) int64, int32
        The players of each table: sorted, at most 8.
    kinds : (n_tables,) int32
    table_bytes : float
        Mean size of a table.
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
