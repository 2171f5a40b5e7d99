"""`Rows`: what was read at the door, as codes for engines and as people read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriershap._rows.frames import frame_columns
from fouriershap._rows.text import NO_LEVEL, text_of, without_prefix


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows, read once.

    Attributes
    ----------
    codes : (n_rows, n_features)
        What the engine takes.
    shown : array or data frame, shape (n_rows, n_columns)
        What people see of them.
    player : (n_columns,) int32
        Player of each column that is shown, -1 for none.
    names : tuple of str
        Names of these columns.
    entered : array or data frame, optional
        What the codes were made from, where that is not what is shown: rows that went through a Pipeline.
    """

    codes: NDArray[Any]
    shown: Any
    player: NDArray[np.int32]
    names: tuple[str, ...]
    entered: Any = None

    def __len__(self) -> int:
        return len(self.codes)

    def display(self, n_players: int) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """What the players look like, see `displayed`."""
        return displayed(self.shown, self.player, self.names, n_players)


class Column(NamedTuple):
    """A column: numbers (n_rows,) float64, NaN for missing; labels (n_rows,) where the numbers are codes."""

    numbers: NDArray[np.float64]
    labels: NDArray[Any] | None


def displayed(
    X: Any, player: NDArray[np.int32], names: tuple[str, ...], n_players: int
) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """What the players of rows look like.

    Parameters
    ----------
    X : array or data frame, shape (n_rows, n_columns)
    player : (n_columns,) int32
        Player of each column, -1 for none.
    names : tuple of str
        Names of the columns.
    n_players : int

    Returns
    -------
    data : (n_rows, n_players)
        Numbers; positions of labels; the position of the one in a one-hot group; NaN for other groups.
    labels : (n_rows, n_players) object, or None where the numbers say everything
    """
    members = [np.flatnonzero(player == j) for j in range(n_players)]
    one_each = all(len(columns) == 1 for columns in members)
    if isinstance(X, np.ndarray) and X.dtype.kind in "biuf" and one_each:
        return X[:, np.concatenate(members)] if n_players else X[:, :0], None
    columns = [Column(*pair) for pair in frame_columns(X)]
    shown = [
        columns[int(group[0])]
        if len(group) == 1
        else _group([columns[c] for c in group], [names[c] for c in group])
        for group in members
    ]
    data = np.column_stack([column.numbers for column in shown])
    if all(column.labels is None for column in shown):
        return data, None
    labels = np.empty(data.shape, dtype=object)
    for j, column in enumerate(shown):
        labels[:, j] = column.numbers.tolist() if column.labels is None else column.labels
    return data, labels


def _group(columns: list[Column], names: list[str]) -> Column:
    """Several columns of one player: the name of the one in a one-hot group, else all values in a line."""
    matrix = np.column_stack([np.nan_to_num(column.numbers) for column in columns])
    is_one_hot = np.isin(matrix, (0.0, 1.0)).all() and (matrix.sum(axis=1) <= 1).all()
    if is_one_hot and all(column.labels is None for column in columns):
        short = np.array([*without_prefix(names), NO_LEVEL], dtype=object)
        position = np.where(matrix.any(axis=1), matrix.argmax(axis=1), len(names))
        return Column(np.where(position < len(names), position.astype(np.float64), np.nan), short[position])
    parts = [column.numbers if column.labels is None else column.labels for column in columns]
    lines = [", ".join(map(text_of, cells)) for cells in zip(*(part.tolist() for part in parts), strict=True)]
    return Column(np.full(len(matrix), np.nan), np.array(lines, dtype=object))
