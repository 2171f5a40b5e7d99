"""Groups of columns that are players together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import InputError
from fouriershap._base.short import short


def check_groups(
    groups: Mapping[str, Sequence[Any]] | Sequence[Any] | None, names: Sequence[str]
) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """Player of each column (n_columns,) int32, and the players' names.

    Parameters
    ----------
    groups : mapping or sequence, optional
        ``{"name": [columns]}``, columns by name or position; or one group name per column. Columns that are in
        no group stay players of their own. Players stand in the order of their first columns.
    names : sequence of str
        Column names.
    """
    if groups is None:
        return np.arange(len(names), dtype=np.int32), tuple(names)
    label: list[Any] = [None] * len(names)
    if isinstance(groups, Mapping):
        for group, columns in groups.items():
            if isinstance(columns, str) or not isinstance(columns, Sequence | np.ndarray):
                raise InputError(f"groups[{short(group)}] is {short(columns)}; give a list of columns.")
            for column in columns:
                position = _position(column, names, group)
                if label[position] is not None:
                    raise InputError(f"groups has the column {short(names[position])} twice.")
                label[position] = (str(group),)
    else:
        if isinstance(groups, str) or not isinstance(groups, Sequence | np.ndarray):
            raise InputError(f"groups is {short(groups)}; give one group name per column, or a dict.")
        if len(groups) != len(names):
            raise InputError(
                f"groups has {len(groups)} entries; give one per column ({len(names)}), or a dict."
            )
        label = [None if group is None else (str(group),) for group in groups]
    players: dict[Any, int] = {}
    owner = [players.setdefault(i if group is None else group, len(players)) for i, group in enumerate(label)]
    player_names = tuple(names[key] if isinstance(key, int) else key[0] for key in players)
    return np.array(owner, dtype=np.int32), player_names


def _position(column: Any, names: Sequence[str], group: Any) -> int:
    if isinstance(column, str):
        if column not in names:
            raise InputError(
                f"groups[{short(group)}] names the column {short(column)}, which does not exist."
            )
        return list(names).index(column)
    if isinstance(column, bool) or not isinstance(column, int | np.integer) or not 0 <= column < len(names):
        raise InputError(
            f"groups[{short(group)}] holds {short(column)}; give names or positions from 0 to {len(names) - 1}."
        )
    return int(column)
