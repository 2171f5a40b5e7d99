"""A batch of rows split into ids and features, and its result as a frame of the same kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import InputError
from fouriershap._base.messages import truncated_list, truncated_repr
from fouriershap._rows.frames import as_frame, densified, is_record_batch, is_sparse
from fouriershap._rows.text import texts_of


@dataclass(frozen=True)
class Batch:
    """Rows of one batch."""

    features: Any  # the columns of the model, in its order, in the caller's type
    n_rows: int
    ids: Any = None  # the columns that are carried along; None for arrays
    frame: Any = None  # ``features`` again, for narwhals; None for arrays
    native: Any = None  # the batch as it came

    @property
    def is_frame(self) -> bool:
        return self.frame is not None

    def answer(self, names: list[str], columns: Sequence[NDArray[Any]]) -> Any:
        """Return ids and new columns as a frame of the batch's kind (and index), or a matrix for an array.

        A column is (n_rows,) of numbers or texts, or (n_rows, length) of arrays.
        """
        if self.frame is None:
            return np.column_stack(columns)
        import narwhals as nw

        native = self._numbers(names, columns)
        if native is None:
            kind = self.frame.implementation
            series = {name: _series(name, column, kind) for name, column in zip(names, columns, strict=True)}
            # Native series: those of narwhals would be copied element by element (narwhals 2.28, pyarrow).
            made = nw.from_dict({name: one.to_native() for name, one in series.items()}, backend=kind)
            native = made.to_native()
            if hasattr(self.native, "index"):
                native.index = self.native.index
        out = nw.from_native(native, eager_only=True)
        if len(self.ids.columns):
            out = nw.concat([self.ids, out], how="horizontal")
        answer = out.to_native()
        return _record_batch(answer) if is_record_batch(self.native) else answer

    def _numbers(self, names: list[str], columns: Sequence[NDArray[Any]]) -> Any:
        """Return a frame of pandas or pyarrow on one array; None for other libraries, texts and arrays.

        A series per column costs more than explaining a thousand rows.
        """
        kind = self.frame.implementation
        if not (kind.is_pandas() or kind.is_pyarrow()) or not columns:
            return None
        if any(column.ndim != 1 or column.dtype != np.float64 for column in columns):
            return None
        lines = np.stack(columns)
        if kind.is_pandas():
            frame = kind.to_native_namespace().DataFrame
            return frame(lines.T, index=self.native.index, columns=names, copy=False)
        import pyarrow as pa

        return pa.Table.from_arrays([pa.array(line) for line in lines], names=names)


class Texts:
    """The values of rows as text."""

    def __init__(self, rows: Any) -> None:
        self._frame = as_frame(rows)
        self._array = np.asarray(densified(rows)) if self._frame is None else None

    def __call__(self, column: int, rows: NDArray[np.int64]) -> NDArray[np.object_]:
        """Return the values of a column in some rows (positions); None where they are missing."""
        if self._frame is None:
            values = self._array[rows, column]  # type: ignore[index]
            missing = np.array([value is None for value in values.tolist()], dtype=bool)
        else:
            series = self._frame[self._frame.columns[column]][rows]
            values, missing = series.to_numpy(), series.is_null().to_numpy()
        if values.dtype.kind == "f":
            missing = missing | np.isnan(values)
        out = np.array(texts_of(values), dtype=object)
        out[missing] = None
        return out


def is_one_frame(batches: Any) -> bool:
    """Return whether this is one batch rather than an iterator of batches."""
    if isinstance(batches, np.ndarray):
        return batches.ndim == 2 or (batches.ndim < 2 and batches.dtype != object)  # else an array of frames
    return is_sparse(batches) or as_frame(batches) is not None


def open_batch(native: Any, ids: tuple[str, ...], known: tuple[str, ...] | None) -> Batch:
    """Find ids and features by name; without ``known`` names all other columns are features, in their order."""
    frame = as_frame(native, "the batch")
    if frame is None:
        if ids:
            raise InputError(
                f"the batch is an array, which has no columns named {truncated_repr(list(ids))}; give frames."
            )
        if is_sparse(native):
            return Batch(native, native.shape[0], native=native)
        return Batch(native, len(native) if hasattr(native, "__len__") else 1, native=native)
    actual = {str(name): name for name in frame.columns}
    lacking = [name for name in ids if name not in actual]
    if lacking:
        raise InputError(
            f"the batch has no column {truncated_repr(lacking[0])}, which ids names; it has {truncated_list(actual)}."
        )
    rest = {name: actual[name] for name in actual if name not in ids}
    features = list(rest.values()) if known is None else _matched(rest, known)
    chosen = _typed(frame.select(features))
    return Batch(chosen.to_native(), len(frame), frame.select([actual[name] for name in ids]), chosen, native)


def _typed(frame: Any) -> Any:
    """Turn columns that are empty in this batch, and so may lack a type, into missing numbers."""
    import narwhals as nw

    untyped = (nw.Unknown, nw.Object, nw.String)
    empty = [name for name, dtype in frame.schema.items() if dtype in untyped and frame[name].is_null().all()]
    if not empty:
        return frame
    return frame.with_columns(nw.lit(None, dtype=nw.Float64).alias(name) for name in empty)


def _matched(columns: dict[str, Any], known: tuple[str, ...]) -> list[Any]:
    """Return the columns of the features in the model's order; raise if one is missing or left over."""
    if not all(name in columns for name in known):  # LightGBM keeps names with underscores for spaces
        underscored = {name.replace(" ", "_"): column for name, column in columns.items()}
        if all(name in underscored for name in known):
            columns = underscored
    lacking = [name for name in known if name not in columns]
    if lacking:
        raise InputError(f"the batch lacks {_list(lacking)}; it has {_list(list(columns))}.")
    wanted = set(known)
    extra = [name for name in columns if name not in wanted]
    if extra:
        raise InputError(
            f"the batch has {_list(extra)}, which the model does not know: drop columns that are not features, or "
            "name them in ids= where there is one."
        )
    return [columns[name] for name in known]


def _list(names: list[str]) -> str:
    return f"the column{'s' * (len(names) > 1)} {truncated_list(names)}" if names else "no columns"


def _series(name: str, column: NDArray[Any], kind: Any) -> Any:
    """Return a narwhals series; arrays as fixed-size lists, or as objects if there is no such type."""
    import narwhals as nw

    if column.dtype == object:
        return nw.new_series(name, column.tolist(), nw.String, backend=kind)
    if column.ndim == 1:
        return nw.new_series(name, column, nw.Float64, backend=kind)
    if kind.is_pyarrow():
        import pyarrow as pa

        lists = pa.FixedSizeListArray.from_arrays(pa.array(column.reshape(-1)), column.shape[1])
        return nw.from_native(pa.chunked_array([lists]), series_only=True).alias(name)
    if kind.is_pandas_like():
        objects = np.empty(len(column), dtype=object)
        objects[:] = list(column)
        made = kind.to_native_namespace().Series(objects, dtype=object, name=name)
        return nw.from_native(made, series_only=True)
    given: Any = column if len(column) else []  # polars before 1.12 cannot reshape what is empty
    return nw.new_series(name, given, nw.Array(nw.Float64, column.shape[1]), backend=kind)


def _record_batch(table: Any) -> Any:
    import pyarrow as pa

    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)
