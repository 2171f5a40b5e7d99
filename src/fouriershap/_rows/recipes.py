"""`Recipe`: what a file keeps of the Pipelines before a model."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import InputError
from fouriershap._base.headers import from_json, get_typed, require
from fouriershap._base.messages import error_text
from fouriershap._rows.frames import as_frame, as_matrix, check_columns, is_sparse, numbers_of
from fouriershap._rows.steps import (
    NULL,
    Column,
    Fill,
    OneHot,
    Ordinal,
    Parts,
    Scale,
    Select,
    Step,
    StepError,
    apply_steps,
    check_steps,
    labels_known,
)

Steps = tuple[Step, ...]
_KINDS: dict[str, type[Step]] = {
    "fill": Fill,
    "one-hot": OneHot,
    "ordinal": Ordinal,
    "parts": Parts,
    "scale": Scale,
    "select": Select,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}
DTYPES = ("float64", "float32", "int64", "int32", "int8", "uint8", "bool")


@dataclass(frozen=True, eq=False)
class Recipe:
    """Steps before a model as plain data (see `Preprocessing`): no library is needed to apply them."""

    names: tuple[str, ...] | None  # of the columns that enter, if the Pipeline was fitted on a frame
    n_columns: int
    steps: Steps
    dtype: str  # of what enters the model
    zeros_are_missing: bool  # absent cells of a sparse matrix, for models that treat them as missing

    def known_names(self) -> tuple[str, ...] | None:
        """Return the names of the columns that enter; None if the Pipeline was fitted on arrays."""
        return self.names

    def known_labels(self) -> dict[str, tuple[Any, ...]]:
        """Return the labels that the encoders know, by column."""
        _, found = labels_known(self.steps, list(range(self.n_columns)))
        names = self.names or ()
        return {names[c]: tuple(dict.fromkeys(found[c])) for c in sorted(found) if 0 <= c < len(names)}

    def transform(self, X: Any, name: str) -> NDArray[Any]:
        """Return rows as the model takes them, (n_rows, n_features)."""
        if self.names is not None:
            check_columns(X, self.names, name)
        try:
            columns = apply_steps(self.steps, self._columns(X, name))
            made = np.column_stack([_as_double(column) for column in columns])
        except (StepError, ValueError, TypeError, OverflowError) as error:
            raise InputError(f"{name} does not go through the pipeline: {error_text(error)}") from error
        if self.zeros_are_missing:
            made[made == 0] = np.nan
        return made.astype(self.dtype)

    def _columns(self, X: Any, name: str) -> list[Column]:
        if is_sparse(X):
            raise InputError(f"{name} is a sparse matrix; give the Pipeline's rows as a frame or an array.")
        frame = as_frame(X, name)
        if frame is None:
            matrix = as_matrix(X, self.n_columns, name)
            if (
                isinstance(X, list | tuple) and matrix.dtype.kind == "U"
            ):  # NumPy makes text of numbers beside text
                matrix = np.array(X, dtype=object)
            return list(matrix.T)
        if len(frame.columns) != self.n_columns:
            raise InputError(
                f"{name} has {len(frame.columns)} columns, but the pipeline has {self.n_columns}."
            )
        return [_column(frame[column]) for column in frame.columns]

    def to_recipe(self, sample: Any, absent_is_missing: bool) -> Recipe:
        """Return the recipe itself: it was tried out when it was made."""
        return self

    def to_json(self) -> dict[str, Any]:
        return {
            "names": self.names,
            "n_columns": self.n_columns,
            "dtype": self.dtype,
            "zeros_are_missing": self.zeros_are_missing,
            "steps": _to_json(self.steps),
        }

    @classmethod
    def from_json(cls, header: Any, n_features: int) -> Recipe:
        """Build what `to_json` gave, from a file: every size and position is checked."""
        require(isinstance(header, dict), "its steps are not an object")
        names = get_typed(header, "names", tuple[str, ...] | None)
        n_columns = get_typed(header, "n_columns", int)
        require(0 < n_columns <= 1 << 20, "its steps take an impossible number of columns")
        require(names is None or len(names) == n_columns, "its steps need a name for each column")
        dtype = get_typed(header, "dtype", str)
        require(dtype in DTYPES, "its steps make rows of an unknown type")
        zeros = get_typed(header, "zeros_are_missing", bool)
        require(not zeros or dtype.startswith("float"), "its steps make integers that may be missing")
        steps = _from_json(get_typed(header, "steps", Any))
        n_made = check_steps(steps, n_columns)
        require(n_made == n_features, "its steps do not make the columns that enter its model")
        return cls(names, n_columns, steps, dtype, zeros)


def _column(series: Any) -> Column:
    """Return a column of a frame: numbers, or labels as objects."""
    is_number = series.dtype.is_numeric() and series.null_count() < len(
        series
    )  # a column of nulls may be of any type
    is_whole = str(series.dtype) == "Boolean" and not series.null_count()
    if series.implementation.is_pandas_like() or is_number or is_whole:
        column = np.asarray(series.to_numpy())
        return column if column.dtype.kind in "biufO" else column.astype(object)
    column = np.empty(len(series), dtype=object)  # entry by entry, so that NumPy does not guess types
    missing = NULL if series.implementation.is_pyarrow() else None  # of polars scikit-learn, too, gets None
    column[:] = [missing if entry is None else entry for entry in series.to_list()]
    return column


def _as_double(column: Column) -> Column:
    numbers = column if column.dtype.kind in "biuf" else numbers_of(column)  # not of text, as NumPy would
    return numbers.astype(np.float64, copy=False)


def _to_json(steps: Steps) -> list[Any]:
    made = []
    for step in steps:
        parts: dict[str, Any] = {"kind": _NAMES[type(step)]}
        if isinstance(step, Parts):
            parts |= {"columns": step.columns, "steps": [_to_json(inner) for inner in step.steps]}
        else:
            parts |= asdict(step)
        made.append(parts)
    return made


def _from_json(value: Any) -> Steps:
    require(isinstance(value, list), "its steps are not a list")
    return tuple(_step(entry) for entry in value)


def _step(entry: Any) -> Step:
    require(isinstance(entry, dict), "a step is not an object")
    kind = _KINDS.get(get_typed(entry, "kind", str))
    require(kind is not None, "it has a step that this fouriershap does not know")
    rest = {key: value for key, value in entry.items() if key != "kind"}
    if kind is Parts:
        inner = get_typed(rest, "steps", Any)
        require(isinstance(inner, list) and rest.keys() == {"columns", "steps"}, "a step has unknown parts")
        columns = get_typed(rest, "columns", tuple[tuple[int, ...], ...])
        return Parts(columns, tuple(_from_json(steps) for steps in inner))
    step: Step = from_json(kind, rest, "a step")
    return step
