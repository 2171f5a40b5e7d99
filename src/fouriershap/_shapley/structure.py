"""Structures of players: groups that share their value among their members, and orders that respect a chain.

A structured value is that of a plain game for each group of siblings: the siblings join with one probability t, and all
other players are merged into a few, of one or more classes, each class with a t of its own. Shapley values are the case
of a single class.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain as chain_of
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MOST_LEVELS = 64  # of groups within groups
UNIFORM, ALWAYS, NEVER = range(3)  # laws of t: uniform in [0, 1], 1, and 0


@dataclass(frozen=True, eq=False)
class Subgame:
    """The game that gives some players their values.

    Attributes
    ----------
    own : (n_own,) int64
        Players that get their values here: the first players of the merged game, in this order.
    merged : (n_players,) int32
        Player of the merged game that each player belongs to.
    kind : (n_merged,) int32
        Class of each player of the merged game; 0 for those whose values are wanted, and groups beside them.
    laws : tuple of int
        Law of the t with which each class joins. That of class 0 is `UNIFORM`.
    """

    own: NDArray[np.int64]
    merged: NDArray[np.int32]
    kind: NDArray[np.int32]
    laws: tuple[int, ...]

    @property
    def n_merged(self) -> int:
        return len(self.kind)


def group_subgames(tree: list[Any]) -> Iterator[Subgame]:
    """Yield the games of Owen and Winter values; ``tree`` holds players, and lists of them, and so on."""
    n_players = len(list(_members(tree)))

    def descend(node: list[Any], above: list[list[Any]]) -> Iterator[Subgame]:
        players = [child for child in node if not isinstance(child, list)]
        groups = [child for child in node if isinstance(child, list)]
        if players:
            classes = [[[player] for player in players] + groups, *above]
            yield _subgame(players, n_players, classes, (UNIFORM,) * len(classes))
        for group in groups:
            yield from descend(
                group, [*above, [c if isinstance(c, list) else [c] for c in node if c is not group]]
            )

    yield from descend(tree, [])


def chain_subgames(chain: list[list[int]]) -> Iterator[Subgame]:
    """Yield the games of asymmetric values: all groups before have joined, and those after have not."""
    n_players = sum(map(len, chain))
    for place, group in enumerate(chain):
        before, after = chain[:place], chain[place + 1 :]
        others = [[list(chain_of.from_iterable(some))] for some in (before, after) if some]
        laws = [law for law, some in ((ALWAYS, before), (NEVER, after)) if some]
        yield _subgame(group, n_players, [[[player] for player in group], *others], (UNIFORM, *laws))


def any_places(n_orders: int, n_players: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw orders of players: their places, (n_orders, 2, n_players), and those in the reversed order."""
    place = rng.permuted(np.tile(np.arange(n_players), (n_orders, 1)), axis=1).argsort(axis=1)
    return np.stack([place, n_players - 1 - place], axis=1)


def places_within(
    tree: list[Any], is_fixed: bool, n_orders: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw places as `any_places` does, in orders that keep every group together.

    ``is_fixed``: whether the groups themselves come in the order of the list, reversed or not.
    """
    out = np.empty((n_orders, 2, len(list(_members(tree)))), dtype=np.int64)

    def fill(node: list[Any], start: NDArray[np.int64], is_fixed: bool) -> None:
        rank = (
            np.tile(np.arange(len(node)), (n_orders, 1))
            if is_fixed
            else any_places(n_orders, len(node), rng)[:, 0]
        )
        sizes = np.array([len(list(_members([child]))) for child in node])
        both = np.empty((n_orders, 2, len(node)), dtype=np.int64)
        for way, mine in enumerate((rank, rank if is_fixed else len(node) - 1 - rank)):
            order = mine.argsort(axis=1)
            before = np.cumsum(sizes[order], axis=1) - sizes[order]
            np.put_along_axis(both[:, way], order, before + start[:, way, None], axis=1)
        for c, child in enumerate(node):
            if isinstance(child, list):
                fill(child, both[:, :, c], False)
            else:
                out[:, :, child] = both[:, :, c]

    fill(tree, np.zeros((n_orders, 2), dtype=np.int64), is_fixed)
    return out


def _subgame(
    own: list[int], n_players: int, classes: list[list[list[Any]]], laws: tuple[int, ...]
) -> Subgame:
    merged, kind = np.empty(n_players, dtype=np.int32), list[int]()
    filled = [(law, units) for law, units in zip(laws, classes, strict=True) if units]
    for number, (_, units) in enumerate(filled):
        for unit in units:
            merged[list(_members(unit))] = len(kind)
            kind.append(number)
    return Subgame(
        np.array(own, dtype=np.int64), merged, np.array(kind, dtype=np.int32), tuple(law for law, _ in filled)
    )


def _members(tree: list[Any]) -> Iterator[int]:
    for child in tree:
        if isinstance(child, list):
            yield from _members(child)
        else:
            yield child


def parse_structure(name: str, begin: str) -> list[Any] | None:
    """Return the lists of players that follow ``begin`` in the name of an index; None where it holds no such lists."""
    try:
        tree = json.loads(name.removeprefix(begin))
    except (ValueError, RecursionError):
        return None
    return tree if isinstance(tree, list) and _is_partition(tree) else None


def _is_partition(tree: list[Any]) -> bool:
    """Return whether every player is somewhere in the lists, once, and no list is empty."""
    players, level = list[Any](), [tree]
    for _ in range(_MOST_LEVELS):
        if not all(level):
            return False
        children = list(chain_of.from_iterable(level))
        players += [child for child in children if not isinstance(child, list)]
        level = [child for child in children if isinstance(child, list)]
    all_integers = all(type(player) is int for player in players)
    return not level and all_integers and sorted(players) == list(range(len(players)))
