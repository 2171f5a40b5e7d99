"""Laying out tables: who is in which column of which table, before there is any value in it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriershap._shapley.grouping import group_tables
from fouriershap._shapley.tables import BYTE_PATTERNS, WIDTH, Blocks, TableSet


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
