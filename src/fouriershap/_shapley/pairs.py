"""Pairs of players as players of their own: what gives interactions, whatever they come from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


class PairEngine(Protocol):
    """Interaction index of pairs of players, row by row.

    Attributes
    ----------
    pairs : (n_pairs, 2) int32
        i < j. All other pairs have no interaction at all.
    n_outputs, rows_per_block : int
    """

    @property
    def pairs(self) -> NDArray[np.int32]: ...

    @property
    def n_outputs(self) -> int: ...

    @property
    def rows_per_block(self) -> int: ...

    def add(self, rows: NDArray[Any], out: NDArray[np.float64]) -> None:
        """Add the interactions of rows, all on this thread, to ``out`` (n_rows, n_pairs, n_outputs)."""


@runtime_checkable
class SlowPairs(Protocol):
    """What a `PairEngine` has whose rows may take seconds each."""

    def slow_part(self, rows: NDArray[Any]) -> tuple[float, str]:
        """About how many seconds on one core these rows take, beside what is looked up, and what takes them."""


@dataclass(frozen=True, eq=False)
class RecodedPairs:
    """Interactions of rows that become ``codes`` first (see `PairEngine`)."""

    inner: PairEngine
    codes: Callable[[NDArray[Any]], NDArray[Any]]

    @property
    def pairs(self) -> NDArray[np.int32]:
        return self.inner.pairs

    @property
    def n_outputs(self) -> int:
        return self.inner.n_outputs

    @property
    def rows_per_block(self) -> int:
        return self.inner.rows_per_block

    def add(self, rows: NDArray[Any], out: NDArray[np.float64]) -> None:
        self.inner.add(self.codes(rows), out)


def pair_keys(first: NDArray[Any], second: NDArray[Any], n_players: int) -> NDArray[np.int64]:
    """A number for each pair of players, whatever their order."""
    low, high = np.minimum(first, second), np.maximum(first, second)
    return np.asarray(low.astype(np.int64) * n_players + high)


def key_pairs(keys: NDArray[np.int64], n_players: int) -> NDArray[np.int32]:
    """Pairs (n, 2) of keys (n,)."""
    return np.stack(np.divmod(keys, max(n_players, 1)), axis=1).astype(np.int32)


def place_of(first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.int64]:
    """The number by which a block knows a pair of its members: j (j - 1) / 2 + i for i < j."""
    low, high = np.minimum(first, second), np.maximum(first, second).astype(np.int64)
    return np.asarray(high * (high - 1) // 2 + low)


def n_places(start: NDArray[np.int64]) -> int:
    """One more than the last place of the largest block, blocks ``start[k]:start[k + 1]``."""
    most = int(np.diff(start).max(initial=0))
    return most * (most - 1) // 2


def pairs_within(start: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """All pairs of entries of the same list, lists ``start[k]:start[k + 1]``: list, first and second entry."""
    owner = np.repeat(np.arange(len(start) - 1), np.diff(start))
    rank = np.arange(len(owner)) - start[owner]
    second = np.repeat(np.arange(len(owner)), rank)
    step = np.arange(len(second)) - np.repeat(np.cumsum(rank) - rank, rank)
    return owner[second], start[owner[second]] + step, second
