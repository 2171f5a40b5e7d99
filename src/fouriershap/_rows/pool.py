"""Rows of the caller, from which new rows of the same type are assembled column by column."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.checks import are_numbered_names, as_array, numbered_names
from fouriershap._base.errors import InputError
from fouriershap._base.messages import truncated_repr, truncated_text
from fouriershap._rows.frames import as_frame, in_order, is_missing, one_row, refuse_parts

_LABEL_TYPES = ("Categorical", "Enum", "String", "Object")


class Pool:
    """Data rows in the caller's own type; errors call them ``name``.

    A mixed row is described by the row that each column comes from. Nothing is decoded: every value that the model
    sees is a value of the data, in its own type.
    """

    def __init__(self, X: Any, name: str = "data") -> None:
        self.native = X
        self._frame = as_frame(X, name)
        if self._frame is None:
            array = as_array(X.to_numpy() if hasattr(X, "to_numpy") else X, name)
            if array.ndim != 2:
                refuse_parts(array, name)
                raise InputError(
                    f"{name} has shape {array.shape}; give a matrix of rows (n_rows, n_columns)"
                    + (f", for one row {one_row(X, name)}." if array.ndim == 1 else ".")
                )
            self.native = array
            self.n_rows, n_columns = array.shape
            self.names = numbered_names(n_columns)
        else:
            self.n_rows = len(self._frame)
            self.names = tuple(self._frame.columns)
        if (not self.n_rows and name != "X") or not self.names:  # explaining no rows is allowed
            raise InputError(
                f"{name} has {self.n_rows} rows and {len(self.names)} columns; give at least one of each."
            )

    def __len__(self) -> int:
        return int(self.n_rows)

    def __getitem__(self, keep: slice | NDArray[Any]) -> Pool:
        return self.rows(keep)

    @property
    def is_frame(self) -> bool:
        return self._frame is not None

    def check_names(self, known: tuple[str, ...], name: str) -> None:
        """Raise unless these are the columns; arrays, and backgrounds that were arrays, have no names to check."""
        if len(self.names) != len(known):
            raise InputError(f"{name} has {len(self.names)} columns; the background has {len(known)}.")
        if self.is_frame and self.names != known and not are_numbered_names(known):
            there, here = next(pair for pair in zip(known, self.names, strict=True) if pair[0] != pair[1])
            raise InputError(
                f"{name} has a column {truncated_repr(here)} where the background has {truncated_repr(there)}."
            )

    def like(self, given: Any, name: str) -> Pool:
        """Return rows with the same columns as a pool; errors call them ``name``."""
        rows = Pool(in_order(given, self.names), name)
        rows.check_names(self.names, name)
        if self._frame is None or rows.is_frame:
            return rows
        if name != "X":
            raise InputError(
                f"{name} is an array, but the background is a data frame: give {name} as one, too."
            )
        import narwhals as nw

        columns = {column: rows.native[:, j].tolist() for j, column in enumerate(self.names)}
        framed = nw.to_native(nw.from_dict(columns, backend=self._frame.implementation))
        return Pool(framed.set_axis(self.native.columns, axis=1) if hasattr(framed, "iloc") else framed, name)

    def joined(self, other: Pool) -> Pool:
        """Return the rows of this pool, then those of the other, in the type of this one."""
        if self._frame is None:
            return Pool(np.concatenate([self.native, np.asarray(other.native)]))
        import narwhals as nw

        if other._frame is None:
            raise InputError("an array cannot be joined to a data frame: give a data frame.")
        both = nw.to_native(nw.concat([self._frame, other._frame], how="vertical"))
        # The model sees the caller's own names, even if they are not strings.
        return Pool(both.set_axis(self.native.columns, axis=1) if hasattr(self.native, "iloc") else both)

    def rows(self, keep: slice | NDArray[Any]) -> Pool:
        """Return some of the rows."""
        index = np.arange(self.n_rows)[keep]
        return Pool(self.take(np.tile(index[:, None], len(self.names))))

    def take(self, index: NDArray[Any]) -> Any:
        """Return rows in the caller's type: column j of row r is that of data row ``index[r, j]``."""
        if self._frame is None:
            return self.native[index, np.arange(index.shape[1])]
        if hasattr(self.native, "iloc"):
            # Arrays, not series: pandas would align series by their index.
            columns = {name: self.native.iloc[:, j].array for j, name in enumerate(self.native.columns)}
            taken = {name: column.take(index[:, j]) for j, (name, column) in enumerate(columns.items())}
            for j, (name, column) in enumerate(taken.items()):
                given = self.native.iloc[:, j]
                if given.dtype == object:  # from which pandas would infer text, with NaN for None
                    taken[name] = type(given)(column, dtype=object)
            return type(self.native)(taken)
        import narwhals as nw

        series = {name: self._frame[name][index[:, j]] for j, name in enumerate(self._frame.columns)}
        return nw.to_native(nw.from_dict(series))

    def written(self, rows: Any, j: int, values: NDArray[np.float64]) -> Any:
        """Return rows from `take`, into which numbers are written as column j."""
        if self._frame is None:
            dtype = np.result_type(rows.dtype, np.float64) if rows.dtype.kind in "biuf" else object
            rows = rows.astype(dtype, copy=False)
            rows[:, j] = values
            return rows
        if hasattr(rows, "isetitem"):
            rows.isetitem(j, values)
            return rows
        import narwhals as nw

        name, backend = self._frame.columns[j], self._frame.implementation
        column = nw.new_series(name, values, nw.Float64, backend=backend)
        return nw.to_native(nw.from_native(rows, eager_only=True).with_columns(column))

    def numbers(self, j: int) -> NDArray[np.float64] | None:
        """Return column j as numbers, missing values as NaN; None if it holds labels."""
        if self._frame is None:
            column = self.native[:, j]
            if column.dtype.kind in "biuf":
                return np.asarray(column, dtype=np.float64)
            try:
                return np.array([_number(v) for v in column], dtype=np.float64)
            except (TypeError, ValueError):
                return None
        import narwhals as nw

        series = self._frame[self._frame.columns[j]]
        if type(series.dtype).__name__ in _LABEL_TYPES or series.dtype in (nw.Categorical, nw.String):
            return None
        if not (series.dtype.is_numeric() or series.dtype == nw.Boolean):
            raise InputError(
                f"the column {truncated_repr(self.names[j])} has type {truncated_text(series.dtype)}; give "
                "numbers or categories."
            )
        return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)

    def labels(self, j: int) -> list[Any]:
        """Return column j as plain Python labels, missing values as None."""
        if self._frame is None:
            values: Iterable[Any] = self.native[:, j].tolist()
        else:
            values = self._frame[self._frame.columns[j]].to_list()
        return [None if is_missing(v) else getattr(v, "item", lambda v=v: v)() for v in values]

    def category_order(self, j: int) -> list[Any] | None:
        """Return the categories of an ordered categorical column in their order; None for any other."""
        if self._frame is None:
            return None
        series = self._frame[self._frame.columns[j]]
        # Only an Enum has them; `cat.get_categories` gives them in the order in which they appear.
        categories = getattr(series.dtype, "categories", None)
        return None if categories is None else list(categories)


def _number(value: Any) -> float:
    """Return a number or NaN. Text is a label even if it reads like a number: "01" and "1" differ."""
    if isinstance(value, str | bytes):
        raise TypeError
    return np.nan if is_missing(value) else float(value)
