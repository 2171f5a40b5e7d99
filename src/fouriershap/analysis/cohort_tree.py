"""A tree of few leaves that splits rows where their SHAP values differ most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._rows.text import text_of
from fouriershap.analysis.moments import Floats

_CUTS = 32  # of a column of numbers
_MOST_LEVELS = 30  # of a column of labels
_LEAST_SHARE = 0.05  # of the rows, in a leaf


@dataclass(frozen=True)
class Split:
    """A test of one column: whether a number is at least ``cut``, or a label equals ``cut``.

    ``has_missing``: whether some number is missing; missing numbers fail the test.
    """

    column: int
    cut: Any
    is_label: bool
    has_missing: bool = False

    def __call__(self, columns: list[NDArray[Any]]) -> NDArray[np.bool_]:
        values = columns[self.column]
        return np.asarray(values == self.cut if self.is_label else values >= self.cut)


Leaf = tuple[tuple[Split, bool], ...]  # the tests on the way to a leaf, with their results


def grow(columns: list[NDArray[Any]], values: Floats, max_leaves: int) -> list[Leaf]:
    """Return the leaves of a tree that greedily reduces the variance of the values (n_rows, n_numbers)."""
    least = max(2, int(_LEAST_SHARE * len(values)))
    leaves: list[tuple[Leaf, NDArray[np.int64]]] = [((), np.arange(len(values)))]
    while len(leaves) < max_leaves:
        found = [_best_split(columns, values, rows, least) for _, rows in leaves]
        k = int(np.argmax([gain for gain, _ in found]))
        gain, test = found[k]
        if test is None or gain <= 0:
            break
        leaf, rows = leaves.pop(k)
        passed = test([column[rows] for column in columns])
        leaves[k:k] = [((*leaf, (test, result)), rows[passed == result]) for result in (False, True)]
    return [leaf for leaf, _ in leaves]


def find_leaves(leaves: list[Leaf], columns: list[NDArray[Any]]) -> NDArray[np.int64]:
    """Return the leaf of each row."""
    found = np.zeros(len(columns[0]) if columns else 0, dtype=np.int64)
    for k, leaf in enumerate(leaves):
        mine = np.ones(len(found), dtype=bool)
        for test, result in leaf:
            mine &= test(columns) == result
        found[mine] = k
    return found


def describe_leaf(leaf: Leaf, names: tuple[str, ...]) -> str:
    """Return a leaf as a readable condition, with both bounds of a number together."""
    parts = []
    for column in dict.fromkeys(test.column for test, _ in leaf):
        name = names[column]
        mine = [(test, result) for test, result in leaf if test.column == column]
        parts += [f"{name} {'is' if yes else 'is not'} {test.cut}" for test, yes in mine if test.is_label]
        low = max((test.cut for test, yes in mine if yes and not test.is_label), default=None)
        high = min((test.cut for test, yes in mine if not yes and not test.is_label), default=None)
        if low is not None and high is not None:
            parts.append(f"{text_of(low, 4)} <= {name} < {text_of(high, 4)}")
        elif low is not None:
            parts.append(f"{name} >= {text_of(low, 4)}")
        elif high is not None:
            missing = any(test.has_missing for test, _ in mine)
            parts.append(f"{name} < {text_of(high, 4)}{' or missing' * missing}")
    if len(parts) > 1:
        parts = [f"({part})" if part.endswith(" or missing") else part for part in parts]
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
            if gain > best[0] * (1 + 1e-9):  # the first of equal ones
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
    has_missing = len(there) < len(column)
    # The smallest number separates the rest from missing numbers only.
    cuts = distinct if has_missing else distinct[distinct > there.min()]
    return [Split(number, float(cut), False, has_missing) for cut in cuts]


def shown_columns(data: NDArray[Any], labels: NDArray[Any] | None) -> list[NDArray[Any]]:
    """Return what rows show of each player (see `Rows.display`): float64 numbers, or labels as objects."""
    found: list[NDArray[Any]] = []
    for j in range(data.shape[1]):
        if labels is not None and any(isinstance(label, str) for label in labels[:, j].tolist()):
            found.append(np.array([text_of(label) for label in labels[:, j].tolist()], dtype=object))
        else:
            found.append(data[:, j].astype(np.float64))
    return found
