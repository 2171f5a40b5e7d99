"""Grouping tables: which ones feed the same 8 players, and are summed before their sum is spread."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fouriershap import _kernels as kernels
from fouriershap._shapley.tables import WIDTH

# Tables per group: those of a group are read in turn, row after row, so they should share the first-level cache.
_MOST_TABLES, _MOST_LARGE_TABLES, _LARGE_TABLE = 4, 3, 8192
_REACH = 128  # how many groups of each player a table looks at: more find little more


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
