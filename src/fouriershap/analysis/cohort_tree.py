"""A tree of few leaves that splits rows where their SHAP values differ most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._explainers.questions.moments import Floats
from fouriershap._rows.text import text_of

_CUTS = 32  # of a column of numbers
_MOST_LEVELS = 30  # of a column of labels
_LEAST_SHARE = 0.05  # of the rows, in a leaf


@dataclass(frozen=True)
class Split:
    """A question about one column: whether a number is at least ``cut``, or a label is ``cut``.

    ``has_missing``: whether some number is missing, for which the answer is no.
    """

    column: int
    cut: Any
    is_label: bool
    has_missing: bool = False

    def __call__(self, columns: list[NDArray[Any]]) -> NDArray[np.bool_]:
        values = columns[self.column]
        if self.is_label:
            return np.asarray(values == self.cut)
        return np.asarray(values >= self.cut)  # a missing number is not


Path = tuple[tuple[Split, bool], ...]  # what leads to a leaf


def grow(columns: list[NDArray[Any]], values: Floats, leaves: int) -> list[Path]:
    """Leaves of the tree that takes most of the square sum of the values (n_rows, n_numbers) away, split by split."""
    least = max(2, int(_LEAST_SHARE * len(values)))
    paths: list[tuple[Path, NDArray[np.int64]]] = [((), np.arange(len(values)))]
    while len(paths) < leaves:
        found = [_best_split(columns, values, rows, least) for _, rows in paths]
        k = int(np.argmax([gain for gain, _ in found]))
        gain, test = found[k]
        if test is None or gain <= 0:
            break
        path, rows = paths.pop(k)
        yes = test([column[rows] for column in columns])
        paths[k:k] = [((*path, (test, answer)), rows[yes == answer]) for answer in (False, True)]
    return [path for path, _ in paths]


def members(paths: list[Path], columns: list[NDArray[Any]]) -> NDArray[np.int64]:
    """The leaf of each row."""
    found = np.zeros(len(columns[0]) if columns else 0, dtype=np.int64)
    for k, path in enumerate(paths):
        mine = np.ones(len(found), dtype=bool)
        for test, answer in path:
            mine &= test(columns) == answer
        found[mine] = k
    return found


def words(path: Path, names: tuple[str, ...]) -> str:
    """A leaf as people read it; both bounds of a number together."""
    parts = []
    for column in dict.fromkeys(test.column for test, _ in path):
        name = names[column]
        mine = [(test, answer) for test, answer in path if test.column == column]
        parts += [f"{name} {'is' if yes else 'is not'} {test.cut}" for test, yes in mine if test.is_label]
        low = max((test.cut for test, yes in mine if yes and not test.is_label), default=None)
        high = min((test.cut for test, yes in mine if not yes and not test.is_label), default=None)
        if low is not None and high is not None:
            parts.append(f"{text_of(low, 4)} <= {name} < {text_of(high, 4)}")
        elif low is not None:
            parts.append(f"{name} >= {text_of(low, 4)}")
        elif high is not None:
            missing = " or missing" if any(test.has_missing for test, _ in mine) else ""
            parts.append(f"{name} < {text_of(high, 4)}{missing}")
    return " and ".join(parts) or "all rows"


def _best_split(
    columns: list[NDArray[Any]], values: Floats, rows: NDArray[np.int64], least: int
) -> tuple[float, Split | None]:
    best: tuple[float, Split | None] = (0.0, None)
    mine = values[rows] - values[rows].mean(axis=0)
    for number, column in enumerate(columns):
        for test in _tests(number, column[rows]):
            yes = test([np.empty(0)] * number + [column[rows]])
            n_yes = int(yes.sum())
            if min(n_yes, len(rows) - n_yes) < least:
                continue
            total = mine[yes].sum(axis=0)  # the sums of both sides cancel
            gain = float((total**2).sum() * (1 / n_yes + 1 / (len(rows) - n_yes)))
            if gain > best[0] * (1 + 1e-9):  # of equal ones the first
                best = (gain, test)
    return best


def _tests(number: int, column: NDArray[Any]) -> list[Split]:
    if column.dtype == object:
        levels = sorted(set(column.tolist()), key=str)
        return [Split(number, level, True) for level in levels] if len(levels) <= _MOST_LEVELS else []
    there = column[~np.isnan(column)]
    if not len(there):
        return []
    distinct = np.unique(there)
    if len(distinct) > _CUTS:
        distinct = np.unique(np.quantile(there, np.arange(1, _CUTS + 1) / (_CUTS + 1), method="higher"))
    cuts = (
        distinct if len(there) < len(column) else distinct[distinct > there.min()]
    )  # the least parts off what is missing
    return [Split(number, float(cut), False, len(there) < len(column)) for cut in cuts]


def columns_of(data: NDArray[Any], labels: NDArray[Any] | None) -> list[NDArray[Any]]:
    """What rows show of each player (see `Rows.display`): float64 columns of numbers, object columns of labels."""
    found: list[NDArray[Any]] = []
    for j in range(data.shape[1]):
        if labels is not None and any(isinstance(label, str) for label in labels[:, j].tolist()):
            found.append(np.array([text_of(label) for label in labels[:, j].tolist()], dtype=object))
        else:
            found.append(data[:, j].astype(np.float64))
    return found
