"""Players: which columns, or bits, get one attribution together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.checks import as_array, find_position
from fouriershap._base.errors import InputError, ModelWarning, UnsupportedModelError
from fouriershap._base.messages import error_text, truncated_repr, truncated_text
from fouriershap._base.warn import warn
from fouriershap._rows.preprocessing import InputColumn, LivePreprocessing


def check_players(players: ArrayLike | None, n_bits: int) -> NDArray[np.int32]:
    """Return the player of each bit, (n_bits,) int32; None makes every bit a player of its own.

    Players are numbered from 0 without gaps; a player may own any bits, in any order.
    """
    if players is None:
        return np.arange(n_bits, dtype=np.int32)
    array = as_array(players, "players")
    if array.shape != (n_bits,):
        raise InputError(
            f"players has shape {array.shape}; give one player number for each of the {n_bits} bits."
        )
    if array.dtype.kind not in "iu":
        raise InputError(
            f"players has dtype {truncated_text(array.dtype)}; give integers, the player that owns each bit."
        )
    if n_bits and array.min() < 0:
        raise InputError(f"players holds {array.min()}; player numbers begin at 0.")
    # More players than bits always leave gaps, so only the first n_bits + 1 numbers need a look.
    missing = np.setdiff1d(np.arange(min(int(array.max(initial=0)), n_bits) + 1 if n_bits else 0), array)
    if len(missing):
        raise InputError(
            f"players skips {missing[:5].tolist()}; number the players from 0 to {array.max()} without gaps "
            "(`numpy.unique(players, return_inverse=True)[1]` does)."
        )
    return array.astype(np.int32)


def check_groups(
    groups: Mapping[str, Sequence[Any]] | Sequence[Any] | None, names: Sequence[str]
) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """Return the player of each column (n_columns,) int32, and the players' names.

    ``groups`` are ``{"name": [columns]}``, columns by name or position; or one group name per column. Columns that
    are in no group stay players of their own. Players stand in the order of their first columns.
    """
    if groups is None:
        return np.arange(len(names), dtype=np.int32), tuple(names)
    label: list[Any] = [None] * len(names)
    if isinstance(groups, Mapping):
        for group, columns in groups.items():
            if isinstance(columns, str) or not isinstance(columns, Sequence | np.ndarray):
                raise InputError(
                    f"groups[{truncated_repr(group)}] is {truncated_repr(columns)}; give a list of columns."
                )
            for column in columns:
                position = find_position(column, names, f"groups[{truncated_repr(group)}]")
                if label[position] is not None:
                    raise InputError(f"groups has the column {truncated_repr(names[position])} twice.")
                label[position] = (str(group),)
    else:
        if isinstance(groups, str) or not isinstance(groups, Sequence | np.ndarray):
            raise InputError(
                f"groups is {truncated_repr(groups)}; give one group name per column, or a dict."
            )
        if len(groups) != len(names):
            raise InputError(
                f"groups has {len(groups)} entries; give one per column ({len(names)}), or a dict."
            )
        label = [None if group is None else (str(group),) for group in groups]
    players: dict[Any, int] = {}
    owner = [players.setdefault(i if group is None else group, len(players)) for i, group in enumerate(label)]
    player_names = tuple(names[key] if isinstance(key, int) else key[0] for key in players)
    if len(set(player_names)) < len(player_names):
        twice = next(name for name in player_names if player_names.count(name) > 1)
        raise InputError(
            f"groups has a group {truncated_repr(twice)}, which is also the name of a column outside of it: "
            "rename the group."
        )
    return np.array(owner, dtype=np.int32), player_names


def find_players(
    groups: Any, names: tuple[str, ...], before: LivePreprocessing | None, background: Any
) -> tuple[NDArray[np.int32], tuple[str, ...], tuple[InputColumn, ...] | None]:
    """Return the player of each feature, their names, and the input columns of a Pipeline if players are made of these.

    They are by default, and where ``groups`` names input columns, if the Pipeline keeps them apart.
    """
    if isinstance(groups, str) and groups in ("input", "encoded"):
        if before is None:
            raise InputError(
                f"groups is {truncated_repr(groups)}, which needs a Pipeline with steps before the model."
            )
        if groups == "encoded":
            return *check_groups(None, names), None
        return before.input_players(background, len(names))
    if before is None:
        return *check_groups(groups, names), None
    try:
        player, player_names, columns = before.input_players(background, len(names))
    except (UnsupportedModelError, InputError) as error:
        if groups is None:
            warn(
                f"{error_text(error)} Here the features that enter the final model are explained.",
                ModelWarning,
            )
        return *check_groups(groups, names), None
    try:
        group, group_names = check_groups(groups, player_names)
    except InputError:
        with suppress(InputError):
            return *check_groups(groups, names), None
        raise
    grouped = tuple(InputColumn(c.name, -1 if c.player < 0 else int(group[c.player])) for c in columns)
    return group[player], group_names, grouped
