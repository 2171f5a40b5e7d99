"""Sets of players as players of their own: what gives interactions of any order, whatever they come from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import CapacityError, InputError

Floats = NDArray[np.float64]
Keys = NDArray[np.int64]

MOST_LISTED = 1 << 27  # sets of players, each time that they meet, that are listed at most
_CHUNK = 1 << 22  # of these at a time
_AS_QUICK = 4  # so many sets are listed while one column more is filled with zeros


class SetEngine(Protocol):
    """Interactions of sets of players, row by row.

    Attributes
    ----------
    keys : (n_sets,) int64, ascending
        See `set_keys`. All other sets have no interaction at all.
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


@runtime_checkable
class SlowSets(Protocol):
    """What a `SetEngine` has whose rows may take long."""

    def seconds(self, rows: NDArray[Any]) -> tuple[float, str]:
        """About how many seconds on one core these rows take, and what takes them."""


@runtime_checkable
class HigherOrders(Protocol):
    """What an `Engine` has that gives interactions of any order."""

    def sets(self, index: str, order: int, wanted: Keys | None) -> SetEngine:
        """What gives the interactions of the sets with these keys, None for all that occur, up to an order."""


def radix_of(n_players: int) -> int:
    """Of the digits of a key."""
    return n_players + 1


def set_keys(players: NDArray[Any], n_players: int) -> Keys:
    """A number for each set (n, size) of ascending players: keys sort by size, then by players."""
    keys = np.zeros(len(players), dtype=np.int64)
    for column in players.T:
        keys = keys * radix_of(n_players) + column + 1
    return keys


def key_sets(keys: Keys, n_players: int) -> list[tuple[int, ...]]:
    """The players of each key."""
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


def first_key(size: int, n_players: int) -> int:
    """The least key that a set of this size can have; all smaller sets have smaller ones."""
    return sum(radix_of(n_players) ** digit for digit in range(size))


def check_keys(order: int, n_players: int) -> None:
    """Raise where a set of so many players has no key."""
    if radix_of(n_players) ** order > np.iinfo(np.int64).max:
        raise CapacityError(
            f"order={order} of {n_players:,} players: sets of so many are too many to be numbered. Take a lower order, "
            "or fewer players by groups=."
        )


def count_sets(n: int, order: int) -> int:
    """The sets of 1 to ``order`` of n players."""
    return sum(comb(n, size) for size in range(1, min(order, n) + 1))


def all_keys(players: Sequence[int], order: int, n_players: int) -> Keys:
    """Of all sets of up to ``order`` of these players."""
    ascending = np.sort(np.asarray(players, dtype=np.int64))
    parts = [set_keys(ascending[_choices(len(ascending), s)], n_players) for s in range(1, order + 1)]
    return np.concatenate([np.empty(0, dtype=np.int64), *parts])


def takes_longer(listed: int, n_met: int, order: int) -> bool:
    """Whether listing so many sets takes longer than a column for every set of the players that are met."""
    return _AS_QUICK * count_sets(n_met, order) <= listed


def keys_within(members: NDArray[np.bool_], order: int) -> Keys:
    """Of all sets of up to ``order`` players within a line of ``members`` (n_lines, n_players)."""
    n_players = members.shape[1]
    sizes = members.sum(axis=1)
    listed = sum(count_sets(int(size), order) * int(times) for size, times in _counted(sizes))
    met = np.flatnonzero(members.any(axis=0))
    if takes_longer(listed, len(met), order):
        return all_keys(met.tolist(), order, n_players)  # more than meet, perhaps, but quickly found
    if listed > MOST_LISTED:
        raise CapacityError(
            f"order={order}: {len(members):,} paths of up to {sizes.max()} players each have {listed:,} sets of them "
            "in all, too many to be listed. Take a lower order, shallower trees, or fewer players by groups=."
        )
    found = np.empty(0, dtype=np.int64)
    for part in _keys_by_size(members, sizes, order):
        found = np.union1d(found, part)
    return found


def _counted(sizes: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    return zip(*(each.tolist() for each in np.unique(sizes, return_counts=True)), strict=True)


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
    """(n choose size, size) positions."""
    return np.array(list(combinations(range(n), size)), dtype=np.int64).reshape(-1, size)


def only_wanted(keys: Keys, wanted: Keys | None) -> Keys:
    return keys if wanted is None else np.intersect1d(keys, wanted)


@dataclass(frozen=True, eq=False)
class RecodedSets:
    """Interactions of rows that become ``codes`` first (see `SetEngine`)."""

    inner: SetEngine
    codes: Callable[[NDArray[Any]], NDArray[Any]]

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
        self.inner.add(self.codes(rows), out)

    def seconds(self, rows: NDArray[Any]) -> tuple[float, str]:
        return self.inner.seconds(self.codes(rows)) if isinstance(self.inner, SlowSets) else (0.0, "")


@dataclass(frozen=True, eq=False)
class SumSets:
    """Interactions that add up (see `SetEngine`); ``columns``: for each part, where its sets are among ``keys``."""

    parts: tuple[SetEngine, ...]
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
        told = [part.seconds(rows) for part in self.parts if isinstance(part, SlowSets)]
        return max(told, default=(0.0, ""))


def sum_sets(parts: Sequence[SetEngine]) -> SumSets:
    keys = np.unique(np.concatenate([part.keys for part in parts]))
    columns = tuple(np.searchsorted(keys, part.keys).astype(np.int64) for part in parts)
    return SumSets(tuple(parts), keys, columns)


def lost_background() -> InputError:
    """What is raised where an explainer from a file is asked without rows."""
    return InputError(
        "this explainer was loaded from a file, which has no background rows. Give them again: "
        "explainer.with_background(rows), on the command line --background."
    )


def sets_of(engine: Any, index: str, order: int, wanted: Keys | None) -> SetEngine:
    """What gives the interactions of an engine, if it can."""
    if not isinstance(engine, HigherOrders):
        raise InputError(
            "interactions of higher order are for trees against a background and for spectra; this explainer has "
            "another representation. Pairs have shap_interaction_values(X); for more, explain a tree model, or the "
            "same function by BlackBoxExplainer(predict, background, method='trees')."
        )
    check_keys(order, engine.n_players)  # type: ignore[attr-defined]
    return engine.sets(index, order, wanted)
