"""Steps before a model as plain data: what a file keeps of a Pipeline, and how it transforms rows.

A step is a frozen record of numbers and labels that JSON can hold. It maps columns, arrays (n_rows,) of numbers or
objects, to columns, as the transformer does that it was read from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import FileFormatError
from fouriershap._base.headers import Label, require
from fouriershap._base.messages import truncated_list, truncated_repr
from fouriershap._rows.frames import numbers_of

Column = NDArray[Any]  # (n_rows,)
Numbers = tuple[float | None, ...]  # None stands for NaN, which JSON lacks

MOST_COLUMNS = 1 << 20
_MOST_DEPTH = 30


class _Null(float):
    """A missing label of a frame library that has null instead of NaN (Arrow, polars).

    Steps treat it as whichever missing value they know, NaN or None: models are trained on pandas frames, in which
    the version and the file decide between the two.
    """


NULL = _Null("nan")


class StepError(ValueError):
    """Rows that a step cannot transform."""


@dataclass(frozen=True)
class Scale:
    """Numbers less ``minus``, over ``divisor``, times ``factor``, more ``plus``, between ``low`` and ``high``."""

    n_columns: int
    minus: tuple[float, ...] | None = None
    divisor: tuple[float, ...] | None = None
    factor: tuple[float, ...] | None = None
    plus: tuple[float, ...] | None = None
    low: float | None = None
    high: float | None = None
    own_precision: bool = False  # whether the numbers above are rounded to float32 first, where rows are

    def check(self, n_columns: int, depth: int) -> int:
        fits = all(part is None or len(part) == n_columns for part in self._parts())
        require(fits and self.n_columns == n_columns, "a scaler does not fit the columns that enter it")
        return n_columns

    def _parts(self) -> tuple[tuple[float, ...] | None, ...]:
        return self.minus, self.divisor, self.factor, self.plus

    def apply(self, columns: list[Column]) -> list[Column]:
        X = matrix(columns)
        for part, change in zip(self._parts(), (np.subtract, np.divide, np.multiply, np.add), strict=True):
            if part is not None:
                by = np.array(part, dtype=X.dtype if self.own_precision else np.float64)
                X = change(X, by).astype(X.dtype, copy=False)
        if self.low is not None or self.high is not None:
            X = np.clip(X, self.low, self.high).astype(X.dtype, copy=False)
        return list(X.T)


@dataclass(frozen=True)
class Fill:
    """Fills missing values of the columns ``kept`` with ``values``; appends masks of the columns ``indicated``."""

    missing: Label  # what stands for a missing value; None with ``missing_is_nan`` for NaN
    missing_is_nan: bool
    kept: tuple[int, ...]
    values: tuple[Label, ...]
    indicated: tuple[int, ...]
    numeric: bool  # whether the columns are numbers

    def check(self, n_columns: int, depth: int) -> int:
        require(len(self.kept) == len(self.values), "an imputer needs a value for each column")
        require(
            all(0 <= c < n_columns for c in (*self.kept, *self.indicated)),
            "an imputer names a column that does not exist",
        )
        numbers = all(value is None or type(value) in (int, float) for value in self.values)
        require(not self.numeric or numbers, "an imputer of numbers fills in other values")
        return len(self.kept) + len(self.indicated)

    def apply(self, columns: list[Column]) -> list[Column]:
        if self.numeric:
            columns = list(matrix(columns).T)
        empty = [self._is_missing(column) for column in columns]
        filled = []
        for c, value in zip(self.kept, self.values, strict=True):
            column = columns[c].copy() if self.numeric else columns[c].astype(object)
            column[empty[c]] = np.nan if self.numeric and value is None else value
            filled.append(column)
        return filled + [empty[c].astype(np.float64) for c in self.indicated]

    def _is_missing(self, column: Column) -> NDArray[np.bool_]:
        if self.missing_is_nan:
            return np.array(column != column, dtype=bool)
        if column.dtype.kind == "f" and np.isnan(column).any():
            raise StepError("there is a NaN, but the imputer has another value for missing")
        if self.missing is None:
            return np.array([entry is None or entry is NULL for entry in column.tolist()], dtype=bool)
        return np.array(column == self.missing, dtype=bool)


@dataclass(frozen=True)
class Vocabulary:
    """Labels of one column; the one at ``nan`` is NaN, although it is written as None (-1: no label is)."""

    labels: tuple[Label, ...]
    nan: int
    # What to do with other labels: an error, or the number that stands for them.
    refuses_others: bool
    other: float | None
    numbers: Numbers  # what stands for each label: its column of a one-hot encoder (-1 for none), or its code

    def check(self) -> None:
        require(-1 <= self.nan < len(self.labels), "an encoder's missing label is not one of its labels")
        require(len(self.numbers) == len(self.labels), "an encoder needs a number for each label")

    def lookup(self, column: Column) -> NDArray[np.float64]:
        """Return the number that stands for each entry, (n_rows,)."""
        known = {
            label: number
            for k, (label, number) in enumerate(zip(self.labels, self.numbers, strict=True))
            if k != self.nan
        }
        if column.dtype.kind == "b" and not any(isinstance(label, bool) for label in self.labels):
            raise StepError(
                f"there are truth values, but the labels of the encoder are {truncated_list(self.labels)}"
            )
        if column.dtype.kind in "biuf" and any(isinstance(label, str) for label in self.labels):
            raise StepError(
                f"there are numbers, but the labels of the encoder are texts: {truncated_list(self.labels)}"
            )
        entries = column.tolist()
        if column.dtype.kind == "f":  # NaN is the missing value of numbers, whatever the encoder calls it
            _refuse_infinite(column)
            entries = [NULL if entry != entry else entry for entry in entries]
        try:
            of_each = {entry: self._number_of(entry, known) for entry in set(entries)}
        except TypeError as error:  # what cannot be hashed is not a label
            raise StepError(str(error)) from None
        return np.array([of_each[entry] for entry in entries], dtype=np.float64)

    def _number_of(self, entry: Any, known: dict[Label, float | None]) -> float:
        if isinstance(entry, float) and entry != entry:
            if entry is NULL and self.nan >= 0 and None in known:
                raise StepError("there is a missing label, but the encoder distinguishes None and NaN")
            if self.nan >= 0:
                return _number(self.numbers[self.nan])
            if entry is NULL and None in known:
                return _number(known[None])
        elif entry in known:
            return _number(known[entry])
        if self.refuses_others:
            raise StepError(f"{truncated_repr(entry)} is not a label that the encoder knows")
        return _number(self.other)


def _number(value: float | None) -> float:
    return np.nan if value is None else value


@dataclass(frozen=True)
class Ordinal:
    """Turns labels into numbers."""

    columns: tuple[Vocabulary, ...]

    def check(self, n_columns: int, depth: int) -> int:
        require(len(self.columns) == n_columns, "an encoder does not fit the columns that enter it")
        for vocabulary in self.columns:
            vocabulary.check()
        return n_columns

    def apply(self, columns: list[Column]) -> list[Column]:
        return [vocabulary.lookup(c) for vocabulary, c in zip(self.columns, columns, strict=True)]


@dataclass(frozen=True)
class OneHot:
    """Turns each label into a column of zeros and ones; labels with -1 have none."""

    columns: tuple[Vocabulary, ...]
    widths: tuple[int, ...]  # columns that each makes

    def check(self, n_columns: int, depth: int) -> int:
        require(
            len(self.columns) == n_columns == len(self.widths),
            "an encoder does not fit the columns that enter it",
        )
        for vocabulary, width in zip(self.columns, self.widths, strict=True):
            vocabulary.check()
            require(
                0 <= width <= len(vocabulary.labels) + 1, "a one-hot encoder has more columns than labels"
            )
            places = (*vocabulary.numbers, -1 if vocabulary.refuses_others else vocabulary.other)
            inside = all(p is not None and p == int(p) and -1 <= p < width for p in places)
            require(inside, "a one-hot encoder names a column that does not exist")
        return sum(self.widths)

    def apply(self, columns: list[Column]) -> list[Column]:
        made: list[Column] = []
        for vocabulary, width, column in zip(self.columns, self.widths, columns, strict=True):
            place = vocabulary.lookup(column)
            made += [(place == k).astype(np.float64) for k in range(width)]
        return made


@dataclass(frozen=True)
class Select:
    """Some of the columns, in this order."""

    columns: tuple[int, ...]

    def check(self, n_columns: int, depth: int) -> int:
        require(
            all(0 <= c < n_columns for c in self.columns), "a selection names a column that does not exist"
        )
        return len(self.columns)

    def apply(self, columns: list[Column]) -> list[Column]:
        return [columns[c] for c in self.columns]


@dataclass(frozen=True)
class Parts:
    """Steps that each take some of the columns, what they give side by side."""

    columns: tuple[tuple[int, ...], ...]
    steps: tuple[tuple[Step, ...], ...]

    def check(self, n_columns: int, depth: int) -> int:
        require(len(self.columns) == len(self.steps), "it needs steps for each selection")
        total = 0
        for chosen, steps in zip(self.columns, self.steps, strict=True):
            total += check_steps(steps, Select(chosen).check(n_columns, depth), depth + 1)
        return total

    def apply(self, columns: list[Column]) -> list[Column]:
        made: list[Column] = []
        for chosen, steps in zip(self.columns, self.steps, strict=True):
            made += apply_steps(steps, [columns[c] for c in chosen])
        return made


Step = Scale | Fill | Ordinal | OneHot | Select | Parts


def apply_steps(steps: tuple[Step, ...], columns: list[Column]) -> list[Column]:
    """Return columns after all steps; raise `StepError` if a step cannot transform them."""
    for step in steps:
        columns = step.apply(columns)
    return columns


def check_steps(steps: tuple[Step, ...], n_columns: int, depth: int = 0) -> int:
    """Return the number of columns after all steps; raise `FileFormatError` if they do not fit together."""
    if depth > _MOST_DEPTH:
        raise FileFormatError("the file is damaged: its steps are nested too deeply.")
    for step in steps:
        n_columns = step.check(n_columns, depth)
        require(n_columns <= MOST_COLUMNS, "its steps make too many columns")
    return n_columns


def labels_known(steps: tuple[Step, ...], origins: list[int]) -> tuple[list[int], dict[int, list[Label]]]:
    """Return the origins of the columns after all steps (-1 for codes of labels), and the known labels of each."""
    found: dict[int, list[Label]] = {}
    for step in steps:
        if isinstance(step, Select):
            origins = [origins[c] for c in step.columns]
        elif isinstance(step, Fill):
            if not step.numeric:
                for c, value in zip(step.kept, step.values, strict=True):
                    found.setdefault(origins[c], []).append(value)
            origins = [origins[c] for c in step.kept] + [-1] * len(step.indicated)
        elif isinstance(step, Ordinal | OneHot):
            for origin, vocabulary in zip(origins, step.columns, strict=True):
                found.setdefault(origin, []).extend(vocabulary.labels)
            origins = [-1] * (len(step.columns) if isinstance(step, Ordinal) else sum(step.widths))
        elif isinstance(step, Parts):
            after: list[int] = []
            for chosen, inner in zip(step.columns, step.steps, strict=True):
                ends, more = labels_known(inner, [origins[c] for c in chosen])
                after += ends
                for origin, labels in more.items():
                    found.setdefault(origin, []).extend(labels)
            origins = after
    return origins, found


def matrix(columns: list[Column]) -> NDArray[Any]:
    """Return (n_rows, n_columns) in the floating type to which scikit-learn would convert these columns."""
    try:
        numbers = [c if c.dtype.kind in "biuf" else numbers_of(c) for c in columns]
    except (TypeError, ValueError) as error:
        raise StepError(str(error)) from None
    dtype = np.result_type(*(c.dtype for c in numbers)) if numbers else np.dtype(np.float64)
    X = np.column_stack(numbers).astype(dtype if dtype.kind == "f" else np.float64)
    _refuse_infinite(X)
    return X


def _refuse_infinite(numbers: NDArray[Any]) -> None:
    if np.isinf(numbers).any():
        raise StepError("there is an infinite number")
