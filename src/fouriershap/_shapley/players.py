"""Players and index from the arguments ``groups``, ``coalitions``, ``causal_order`` and ``index`` of explainers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.checks import check_choice, find_position
from fouriershap._base.errors import InputError
from fouriershap._base.messages import truncated_list, truncated_repr
from fouriershap._rows.players import check_groups
from fouriershap._shapley.indices import ASYMMETRIC, OWEN, SHAPLEY, Index, find_index, structured_index

Players = TypeVar("Players", bound=tuple[NDArray[np.int32], tuple[str, ...], *tuple[Any, ...]])
_COALITIONS = ("whole", OWEN)


def players_and_index(
    groups: Any,
    coalitions: str,
    causal_order: Any,
    index: str,
    find_players: Callable[[Any], Players],
) -> tuple[Players, Index]:
    """Return the players, as ``find_players`` finds them for ``groups``, and how their values are averaged."""
    check_choice("coalitions", coalitions, _COALITIONS)
    found = find_index(index)
    if coalitions == "whole" and causal_order is None:
        return find_players(groups), found
    asked = "causal_order" if coalitions == "whole" else "coalitions='owen'"
    if found is not SHAPLEY:
        raise InputError(f"{asked} averages over orders, as index='shapley' does; leave out index.")
    if coalitions == "whole":
        players = find_players(groups)
        return players, structured_index(ASYMMETRIC, chain_of(causal_order, players[1]))
    if causal_order is not None:
        raise InputError(
            "causal_order and coalitions='owen' were given, which exclude each other; give one of them."
        )
    if groups is None:
        raise InputError("coalitions='owen' shares the value of groups among their columns: give groups=.")
    by_input = isinstance(groups, str) and groups == "input"
    players = find_players("encoded" if by_input else None)
    if isinstance(groups, Mapping):
        seen: set[int] = set()
        tree = _tree(groups, players[1], "groups", seen)
        tree += [player for player in range(len(players[1])) if player not in seen]
    else:
        owner = find_players(groups)[0] if isinstance(groups, str) else check_groups(groups, players[1])[0]
        tree = [np.flatnonzero(owner == group).tolist() for group in np.unique(owner)]
    return players, structured_index(OWEN, _without_singles(tree))


def chain_of(given: Any, names: Sequence[str]) -> list[list[int]]:
    """Return the players of each group of the argument ``causal_order``."""
    if isinstance(given, str | Mapping) or not isinstance(given, Sequence | np.ndarray) or not len(given):
        raise InputError(
            f"causal_order is {truncated_repr(given)}; give a list of lists of features, causes first, such as "
            "[['age', 'sex'], ['income']]."
        )
    chain: list[list[int]] = []
    seen: set[int] = set()
    for group in given:
        members = (
            group if isinstance(group, Sequence | np.ndarray) and not isinstance(group, str) else [group]
        )
        if not len(members):
            raise InputError("causal_order has an empty group; leave it out.")
        chain.append(_positions(members, names, "causal_order", seen))
    missing = [name for player, name in enumerate(names) if player not in seen]
    if missing:
        raise InputError(
            f"causal_order lacks {truncated_list(missing)}; every feature needs its place. Features without known "
            "causes or effects can come together in one group, such as the last one."
        )
    return chain


def _tree(groups: Mapping[Any, Any], names: Sequence[str], argument: str, seen: set[int]) -> list[Any]:
    """Return the players of groups, and of groups of groups, as nested lists."""
    out: list[Any] = []
    for name, members in groups.items():
        mine = f"{argument}[{truncated_repr(name)}]"
        if isinstance(members, Mapping):
            out.append(_tree(members, names, mine, seen))
        elif isinstance(members, str) or not isinstance(members, Sequence | np.ndarray):
            raise InputError(
                f"{mine} is {truncated_repr(members)}; give a list of columns, or a dict of groups."
            )
        else:
            out.append(_positions(members, names, mine, seen))
    return out


def _positions(members: Any, names: Sequence[str], argument: str, seen: set[int]) -> list[int]:
    """Return the positions of players; each may come once, so those in ``seen`` are refused."""
    out = [find_position(member, names, argument) for member in members]
    for position in out:
        if position in seen:
            raise InputError(
                f"{argument} has {truncated_repr(names[position])}, which came before; give it once."
            )
        seen.add(position)
    return out


def _without_singles(tree: list[Any]) -> list[Any]:
    """Return the same groups without empty ones, and with the only member in place of a group of one."""
    out = []
    for child in tree:
        inner = _without_singles(child) if isinstance(child, list) else [child]
        if inner:
            out.append(inner if len(inner) > 1 else inner[0])
    return out
