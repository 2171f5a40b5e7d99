"""Sets of players and their keys, and `InteractionEngine`: what computes the interactions of sets, row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import CapacityError, InputError

Floats = NDArray[np.float64]
Keys = NDArray[np.int64]

MOST_LISTED = 1 << 27  # sets of players, counted each time that they meet, that are listed at most
_CHUNK = 1 << 22  # of these at a time
_AS_QUICK = 4  # sets that are listed in the time that filling one more column with zeros takes


class InteractionEngine(Protocol):
    """Interactions of sets of players, row by row.

    Attributes
    ----------
    keys : (n_sets,) int64, ascending
        See `set_keys`. All other sets have no interaction.
    n_outputs, rows_per_block : int
    """

    @property
    def keys(self) -> Keys: ...

    @property
    def n_outputs(self) -> int: ...

    @property
    def rows_per_block(self) -> int: ...

    def add(self, rows: NDArray[Any], out: Floats) -> None:
        """Add the interactions of rows, all on this thread, to ``out`` (n_rows, n_sets, n_outputs)."""

    def seconds(self, rows: NDArray[Any]) -> tuple[float, str]:
        """Estimate the seconds that these rows take on one core, and name what takes them; 0 where they are quick."""


class QuickInteractions:
    """Interactions that need no warning of their cost."""

    def seconds(self, rows: NDArray[Any]) -> tuple[float, str]:
        """Return 0: see `InteractionEngine`."""
        del rows
        return 0.0, ""


def radix_of(n_players: int) -> int:
    """Return the base of the digits of a key."""
    return n_players + 1


def set_keys(players: NDArray[Any], n_players: int) -> Keys:
    """Return a number for each set (n, size) of ascending players: keys sort by size, then by players."""
    keys = np.zeros(len(players), dtype=np.int64)
    for column in players.T:
        keys = keys * radix_of(n_players) + column + 1
    return keys


def key_sets(keys: Keys, n_players: int) -> list[tuple[int, ...]]:
    """Return the players of each key."""
    found: list[tuple[int, ...]] = [()] * len(keys)
    left = keys.copy()
    digits: list[NDArray[np.int64]] = []
    while len(keys) and (left > 0).any():
        left, digit = np.divmod(left, radix_of(n_players))
        digits.insert(0, digit - 1)
    size = np.sum([digit >= 0 for digit in digits], axis=0) if digits else np.zeros(len(keys), dtype=np.int64)
    for mine in np.unique(size).tolist():
        which = np.flatnonzero(size == mine).tolist()
        for k, players in zip(which, np.stack(digits[-mine:], axis=1)[which].tolist(), strict=True):
            found[k] = tuple(players)
    return found


def pair_keys(first: NDArray[Any], second: NDArray[Any], n_players: int) -> Keys:
    """Return the key of each pair of players, whatever their order."""
    low, high = np.minimum(first, second), np.maximum(first, second)
    return np.asarray((low.astype(np.int64) + 1) * radix_of(n_players) + high + 1)


def key_pairs(keys: Keys, n_players: int) -> NDArray[np.int32]:
    """Return the pairs (n, 2) of keys of pairs (n,)."""
    return (np.stack(np.divmod(keys, radix_of(n_players)), axis=1) - 1).astype(np.int32)


def first_key(size: int, n_players: int) -> int:
    """Return the least key that a set of this size can have; all smaller sets have smaller keys."""
    return sum(radix_of(n_players) ** digit for digit in range(size))


def check_keys(order: int, n_players: int) -> None:
    """Raise `CapacityError` where sets of ``order`` players have no key."""
    if radix_of(n_players) ** order > np.iinfo(np.int64).max:
        raise CapacityError(
            f"order={order} with {n_players:,} players: there are more sets than int64 can number. Use a lower order, "
            "or fewer players by groups=."
        )


def count_sets(n: int, order: int) -> int:
    """Return the number of sets of 1 to ``order`` of n players."""
    return sum(comb(n, size) for size in range(1, min(order, n) + 1))


def check_count(n_players: int, order: int) -> None:
    """Raise `CapacityError` where players have too many sets of up to ``order`` of them."""
    n_sets = count_sets(n_players, order)
    if n_sets > MOST_LISTED // 8:
        raise CapacityError(
            f"order={order}: {n_players:,} players have {n_sets:,} sets, too many to list. Use a lower order, or fewer "
            "players by groups=."
        )


def all_keys(players: Sequence[int], order: int, n_players: int) -> Keys:
    """Return the keys of all sets of up to ``order`` of these players."""
    ascending = np.sort(np.asarray(players, dtype=np.int64))
    parts = [set_keys(ascending[_choices(len(ascending), s)], n_players) for s in range(1, order + 1)]
    return np.concatenate([np.empty(0, dtype=np.int64), *parts])


def takes_longer(listed: int, n_met: int, order: int) -> bool:
    """Return whether listing so many sets takes longer than a column for every set of the players that are met."""
    return _AS_QUICK * count_sets(n_met, order) <= listed


def keys_within(members: NDArray[np.bool_], order: int) -> Keys:
    """Return the keys of all sets of up to ``order`` players within a line of ``members`` (n_lines, n_players)."""
    n_players = members.shape[1]
    sizes = members.sum(axis=1)
    by_size = zip(*np.unique(sizes, return_counts=True), strict=True)
    listed = sum(count_sets(int(size), order) * int(times) for size, times in by_size)
    met = np.flatnonzero(members.any(axis=0))
    if takes_longer(listed, len(met), order):
        return all_keys(met.tolist(), order, n_players)  # more than meet, perhaps, but quickly found
    if listed > MOST_LISTED:
        raise CapacityError(
            f"order={order}: {len(members):,} paths of up to {sizes.max()} players each have {listed:,} sets of them "
            "in all, too many to list. Use a lower order, shallower trees, or fewer players by groups=."
        )
    found = np.empty(0, dtype=np.int64)
    for part in _keys_by_size(members, sizes, order):
        found = np.union1d(found, part)
    return found


def _keys_by_size(members: NDArray[np.bool_], sizes: NDArray[np.int64], order: int) -> Iterator[Keys]:
    for size in np.unique(sizes).tolist():
        players = np.nonzero(members[sizes == size])[1].reshape(-1, size)
        for taken in range(1, min(order, size) + 1):
            choices = _choices(size, taken)
            step = max(1, _CHUNK // max(len(choices), 1))
            for first in range(0, len(players), step):
                sets = players[first : first + step][:, choices].reshape(-1, taken)
                yield np.unique(set_keys(sets, members.shape[1]))


def _choices(n: int, size: int) -> NDArray[np.int64]:
    """Return the positions of all choices, (n choose size, size)."""
    return np.array(list(combinations(range(n), size)), dtype=np.int64).reshape(-1, size)


def select_keys(keys: Keys, wanted: Keys | None, min_order: int, n_players: int) -> Keys:
    """Return those keys that are wanted (None for all) and of sets of at least ``min_order`` players."""
    keys = keys if wanted is None else np.intersect1d(keys, wanted)
    return keys if min_order == 1 else keys[keys >= first_key(min_order, n_players)]


@dataclass(frozen=True, eq=False)
class RecodedInteractions:
    """Interactions of rows that are encoded first (see `InteractionEngine`)."""

    inner: InteractionEngine
    encode: Callable[[NDArray[Any]], NDArray[Any]]

    @property
    def keys(self) -> Keys:
        return self.inner.keys

    @property
    def n_outputs(self) -> int:
        return self.inner.n_outputs

    @property
    def rows_per_block(self) -> int:
        return self.inner.rows_per_block

    def add(self, rows: NDArray[Any], out: Floats) -> None:
        self.inner.add(self.encode(rows), out)

    def seconds(self, rows: NDArray[Any]) -> tuple[float, str]:
        return self.inner.seconds(self.encode(rows))


@dataclass(frozen=True, eq=False)
class SumInteractions:
    """Interactions that add up (see `InteractionEngine`); ``columns``: where the sets of each part are in ``keys``."""

    parts: tuple[InteractionEngine, ...]
    keys: Keys
    columns: tuple[NDArray[np.int64], ...]

    @property
    def n_outputs(self) -> int:
        return self.parts[0].n_outputs

    @property
    def rows_per_block(self) -> int:
        return min(part.rows_per_block for part in self.parts)

    def add(self, rows: NDArray[Any], out: Floats) -> None:
        for part, columns in zip(self.parts, self.columns, strict=True):
            mine = np.zeros((len(rows), len(columns), out.shape[2]))
            part.add(rows, mine)
            out[:, columns] += mine

    def seconds(self, rows: NDArray[Any]) -> tuple[float, str]:
        return max(part.seconds(rows) for part in self.parts)


def sum_interactions(parts: Sequence[InteractionEngine]) -> SumInteractions:
    """Return the sum of interactions of the same rows."""
    keys = np.unique(np.concatenate([part.keys for part in parts]))
    columns = tuple(np.searchsorted(keys, part.keys).astype(np.int64) for part in parts)
    return SumInteractions(tuple(parts), keys, columns)


def lost_background() -> InputError:
    """Return the error for an explainer from a file that needs rows which the file does not have."""
    return InputError(
        "this explainer was loaded from a file without background rows. Pass them again: "
        "explainer.with_background(rows), on the command line --background."
    )


def place_of(first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.int64]:
    """Return the number of a pair of members within a block: j (j - 1) / 2 + i for i < j."""
    low, high = np.minimum(first, second), np.maximum(first, second).astype(np.int64)
    return np.asarray(high * (high - 1) // 2 + low)


def n_places(start: NDArray[np.int64]) -> int:
    """Return one more than the last place of the largest block, blocks ``start[k]:start[k + 1]``."""
    most = int(np.diff(start).max(initial=0))
    return most * (most - 1) // 2


def pairs_within(start: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return all pairs of entries of the same list, lists ``start[k]:start[k + 1]``: list, first and second entry."""
    owner = np.repeat(np.arange(len(start) - 1), np.diff(start))
    rank = np.arange(len(owner)) - start[owner]
    second = np.repeat(np.arange(len(owner)), rank)
    step = np.arange(len(second)) - np.repeat(np.cumsum(rank) - rank, rank)
    return owner[second], start[owner[second]] + step, second
