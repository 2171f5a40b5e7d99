"""Trees behind preprocessing steps, as trees on the columns that enter these steps.

A scaler or an imputer makes each of its columns from one input column, and keeps the order of its numbers. So a
threshold behind it is a threshold on the input: the least number that goes right behind the steps. A threshold on the
output of an encoder is a set of labels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriershap._rows.steps import Column, Fill, OneHot, Ordinal, Parts, Select, Step, StepError, apply_steps
from fouriershap._trees.arithmetic import map_columns
from fouriershap._trees.ensemble import TreeEnsemble
from fouriershap._trees.level_sets import Levels, split_by_level

Floats = NDArray[np.float64]

_FURTHEST = 1e38  # about where float32 ends, in which libraries compare
_BITS = 64  # of a double: as many halvings find one
_ENCODED = "an encoder gives numbers to labels"
_MARKED = "an imputer takes a number for a missing value"


class BeforeSteps(NamedTuple):
    """Trees on the columns that enter the steps before them."""

    trees: TreeEnsemble
    steps_accept_missing: bool
    fills_missing: bool  # whether no missing value reaches the trees


def before_steps(e: TreeEnsemble, steps: tuple[Step, ...], n_columns: int, levels: Levels) -> BeforeSteps:
    """Return the trees on the ``n_columns`` columns that enter the steps before them.

    In columns for which ``levels`` are given, rows hold the number of a level. ValueError or `StepError` where a step
    mixes columns, or does not keep the order of numbers.
    """
    return _Entering(e, steps, n_columns, levels).trees()


class _Entering:
    """Trees, and the columns that enter the steps before them."""

    def __init__(self, e: TreeEnsemble, steps: tuple[Step, ...], n_columns: int, levels: Levels) -> None:
        self.e, self.steps, self.n_columns, self.levels = e, steps, n_columns, levels
        made = _origins(steps, [(c, "") for c in range(n_columns)])
        if len(made) != e.n_features:
            raise ValueError("they make other columns than the trees have")
        self.origin = np.array([c for c, _ in made])
        self.tested = np.unique(e.feature[e.feature >= 0])
        numbers = [f for f in self.tested if self.origin[f] not in levels]
        for f in numbers:
            if made[f][1]:
                raise ValueError(made[f][1])
        if e.is_categorical[numbers].any():
            raise ValueError("the trees test labels of what the steps make")
        self.numbers = np.array(numbers, dtype=np.int64)

    def trees(self) -> BeforeSteps:
        missing, accept_missing = self._of_missing()
        e = self.e
        thresholds, missing_left = e.threshold.copy(), e.missing_left.copy()
        for f, (old, new) in self._thresholds().items():
            nodes = (e.feature == f) & ~np.isnan(e.threshold)
            thresholds[nodes] = new[np.searchsorted(old, e.threshold[nodes])]
            if not np.isnan(missing[f]):  # an imputer fills it in
                missing_left[e.feature == f] = ~(missing[f] >= e.threshold[e.feature == f])
        tables = {int(f): v for f, v in self._of_levels().items()}
        e = split_by_level(e.replace(threshold=thresholds, missing_left=missing_left), tables, missing)
        e = map_columns(e.replace(dtype=np.dtype(np.float64)), self.origin, self.n_columns)
        return BeforeSteps(e, accept_missing, not np.isnan(missing[self.tested]).any())

    def _made(self, columns: list[Column]) -> NDArray[Any]:
        """Return what the trees see, (n_rows, n_features), in their own precision."""
        made = apply_steps(self.steps, columns)
        with np.errstate(over="ignore"):
            return np.column_stack([np.asarray(c, dtype=np.float64) for c in made]).astype(self.e.dtype)

    def _columns(self, n_rows: int) -> list[Column]:
        """Return rows of zeros, and of the first label where there are labels."""
        return [
            np.full(n_rows, self.levels[c][0], dtype=object) if c in self.levels else np.zeros(n_rows)
            for c in range(self.n_columns)
        ]

    def _of_missing(self) -> tuple[Floats, bool]:
        """Return (n_features,) what the trees see where a value is missing, and whether every step accepts one."""
        found, takes = np.full(self.e.n_features, np.nan), True
        for c in np.unique(self.origin[self.tested]):
            columns = self._columns(1)
            columns[c] = np.array([np.nan], dtype=columns[c].dtype)
            try:
                made = self._made(columns)[0]
            except StepError:
                takes = False
                continue
            found[self.origin == c] = made[self.origin == c]
        return found, takes

    def _of_levels(self) -> dict[int, Floats]:
        """Return, for each tested feature that comes from labels, its value at each of them."""
        labelled = [f for f in self.tested if self.origin[f] in self.levels]
        found: dict[int, Floats] = {}
        for c in np.unique(self.origin[labelled]).tolist():
            columns = self._columns(len(self.levels[c]))
            columns[c] = np.array([*self.levels[c], None], dtype=object)[:-1]
            made = self._made(columns)
            found |= {f: made[:, f] for f in labelled if self.origin[f] == c}
        return found

    def _thresholds(self) -> dict[int, tuple[Floats, Floats]]:
        """Return the sorted thresholds of each numerical feature, and the least input that goes right at each."""
        e = self.e
        old = {
            int(f): np.unique(e.threshold[(e.feature == f) & ~np.isnan(e.threshold)]) for f in self.numbers
        }
        if not old:
            return {}
        n_rows, at = max(map(len, old.values())), {f: k for k, f in enumerate(old)}

        def goes_right(position: NDArray[np.int64]) -> NDArray[np.bool_]:
            """Whether numbers (n_rows, tested features), given by their place in the order of all doubles, go right."""
            right = np.zeros(position.shape, dtype=bool)
            numbers = _number(position)
            for batch in _apart(self.origin, list(old)):
                columns = self._columns(n_rows)
                for f in batch:
                    columns[self.origin[f]] = numbers[:, at[f]]
                made = self._made(columns)
                for f in batch:
                    right[: len(old[f]), at[f]] = made[: len(old[f]), f] >= old[f]
            return right

        first = _halved(goes_right, (n_rows, len(old)))
        return {f: (t, _least(first[: len(t), at[f]])) for f, t in old.items()}


def _origins(steps: tuple[Step, ...], columns: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Return the origin of each column after the steps, and why numbers may not keep their order ("" if they do)."""
    for step in steps:
        if isinstance(step, Select):
            columns = [columns[c] for c in step.columns]
        elif isinstance(step, Fill):
            columns = [columns[c] for c in (*step.kept, *step.indicated)]
            if not step.missing_is_nan:
                columns = [(c, _MARKED) for c, _ in columns]
        elif isinstance(step, Ordinal):
            columns = [(c, _ENCODED) for c, _ in columns]
        elif isinstance(step, OneHot):
            columns = [
                (c, _ENCODED) for (c, _), w in zip(columns, step.widths, strict=True) for _ in range(w)
            ]
        elif isinstance(step, Parts):
            parts = zip(step.columns, step.steps, strict=True)
            columns = [
                made for chosen, inner in parts for made in _origins(inner, [columns[c] for c in chosen])
            ]
    return columns


def _apart(origin: NDArray[np.int64], features: list[int]) -> list[list[int]]:
    """Return the features in batches, none of which has two of one column."""
    batches: list[dict[int, int]] = []
    for f in features:
        c = int(origin[f])
        batch = next((batch for batch in batches if c not in batch), None)
        if batch is None:
            batches.append(batch := {})
        batch[c] = f
    return [list(batch.values()) for batch in batches]


# Doubles as integers in the same order, which can be bisected.


def _place(number: float) -> int:
    bits = int(np.float64(number).view(np.int64))
    return bits if bits >= 0 else -(bits & (2**63 - 1))


def _number(place: NDArray[np.int64]) -> Floats:
    size = np.abs(place).view(np.float64)
    return np.asarray(np.where(place < 0, -size, size))


_FIRST, _LAST = _place(-_FURTHEST), _place(_FURTHEST)


def _halved(
    goes_right: Callable[[NDArray[np.int64]], NDArray[np.bool_]], shape: tuple[int, int]
) -> NDArray[np.int64]:
    """Return the first places that go right; just beyond the last one where there are none."""
    low, high = np.full(shape, _FIRST - 1), np.full(shape, _LAST + 1)
    for _ in range(_BITS):
        middle = (low & high) + ((low ^ high) >> 1)  # their mean, whose sum would be too large
        between = high > low + 1
        right = goes_right(np.clip(middle, _FIRST, _LAST))
        high = np.where(between & right, middle, high)
        low = np.where(between & ~right, middle, low)
    return high


def _least(place: NDArray[np.int64]) -> Floats:
    """Return the number at a place; -inf where all numbers go right, NaN where all go left."""
    inside = (place > _FIRST) & (place <= _LAST)
    return np.where(inside, _number(np.clip(place, _FIRST, _LAST)), np.where(place > _LAST, np.nan, -np.inf))
