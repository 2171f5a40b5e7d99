"""Rows in whatever the caller holds them: as numbers, as codes for engines, as people read them.

The only file that knows data frames.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.checks import are_numbered_names
from fouriershap._base.errors import InputError
from fouriershap._base.messages import error_text, truncated_list, truncated_repr, truncated_text
from fouriershap._rows.text import MISSING, NO_LEVEL, text_of, without_prefix

if TYPE_CHECKING:
    import narwhals as nw


def column_names(X: Any) -> tuple[str, ...] | None:
    """Return the column names of a data frame; None for anything else."""
    frame = as_frame(X)
    return None if frame is None else tuple(str(name) for name in frame.columns)


def is_missing(label: Any) -> bool:
    """Return whether a label stands for a missing value."""
    # Comparisons with pandas' NA are not boolean.
    return label is None or type(label).__name__ == "NAType" or bool(label != label)


def is_sparse(X: Any) -> bool:
    """Return whether X is a sparse matrix or array of SciPy."""
    return hasattr(X, "toarray") and hasattr(X, "nnz")


def densified(X: Any, absent_is_missing: bool = False) -> Any:
    """Return a sparse matrix as an array, with 0 or NaN in absent cells; anything else as it is."""
    if not is_sparse(X):
        return X
    if not absent_is_missing:
        return X.toarray()
    stored = X.tocsr(copy=True)
    stored.sum_duplicates()
    cells = stored.tocoo()
    out = np.full(X.shape, np.nan, dtype=np.result_type(X.dtype, np.float32))
    out[cells.row, cells.col] = cells.data
    return out


def unmask(background: Any) -> Any:
    """Return the rows of a ``shap.maskers.Independent`` (or Partition); anything else as it is.

    They are the rows that the masker kept: 100, unless its ``max_samples`` says otherwise.
    """
    if type(background).__name__ not in ("Independent", "Partition") or not hasattr(background, "data"):
        return background
    if not getattr(background, "output_dataframe", False):
        return background.data
    import pandas as pd  # the masker was made from a frame of pandas

    return pd.DataFrame(background.data, columns=background.feature_names).infer_objects()


def check_columns(X: Any, names: tuple[str, ...], name: str) -> None:
    """Raise unless a data frame has these columns in this order; arrays have no names."""
    columns = column_names(X)
    if columns is not None:
        check_names(list(columns), None if are_numbered_names(names) else names, len(names), name)


def in_order(X: Any, names: tuple[str, ...] | None) -> Any:
    """Return a data frame with its columns in the order of ``names``, if it has just these; else X itself."""
    columns = column_names(X) if names is not None and not isinstance(X, np.ndarray) else None
    if names is None or columns is None or columns == names or len(columns) != len(names):
        return X
    # LightGBM keeps names with underscores for spaces.
    place = {column: j for j, column in enumerate(columns)}
    place |= {
        column.replace(" ", "_"): j
        for j, column in enumerate(columns)
        if column.replace(" ", "_") not in place
    }
    order = [place.get(name, -1) for name in names]
    if sorted(order) != list(range(len(names))) or order == sorted(order):
        return X
    if hasattr(X, "iloc"):
        return X.iloc[:, order]  # with its names as they are, even if they are not strings
    return X.select([columns[j] for j in order])


def some_columns(X: Any, names: tuple[str, ...] | None) -> Any:
    """Return a data frame with these columns alone, if it has them; anything else as it is."""
    columns = column_names(X) if names is not None else None
    if names is None or columns is None or not set(names) < set(columns):
        return X
    order = [columns.index(name) for name in names]
    return X.iloc[:, order] if hasattr(X, "iloc") else X.select([columns[j] for j in order])


def numbers_of(column: NDArray[Any], takes_na: bool = True) -> NDArray[np.float64]:
    """Return a column of objects as numbers; ``takes_na``: whether pandas' NA, too, is a missing one."""
    values = column.tolist()
    for value in values:
        if isinstance(value, str | bytes):  # NumPy would read "1" as a number; no library does
            raise ValueError(f"{truncated_repr(value)} is text")
        if not takes_na and type(value).__name__ == "NAType":
            raise ValueError("pandas.NA, which is not a number in an array")
    return np.array([np.nan if is_missing(value) else value for value in values], dtype=np.float64)


def as_frame(X: Any, name: str = "X") -> nw.DataFrame[Any] | None:
    """Return a data frame for narwhals, its columns named by strings; None for anything else."""
    if isinstance(X, np.ndarray | list | tuple):
        return None
    import narwhals as nw
    from narwhals.exceptions import DuplicateError

    if is_record_batch(X):
        import pyarrow as pa

        X = pa.Table.from_batches([X])
    try:
        frame = nw.from_native(X, eager_only=True, pass_through=True)
        if not isinstance(frame, nw.DataFrame) or frame.columns is None:
            return None
        if all(isinstance(column, str) for column in frame.columns):
            return frame
        # pandas numbers unnamed columns; narwhals takes numbers for rows.
        named: nw.DataFrame[Any] = nw.from_native(
            X.set_axis([str(column) for column in X.columns], axis=1), eager_only=True
        )
        return named
    except DuplicateError as error:
        raise InputError(f"{name} has two columns of one name: {error_text(error)}") from None


def as_matrix(X: Any, n_features: int, name: str) -> NDArray[Any]:
    """Return an array (n_rows, n_features) of numbers or objects of what is not a frame; errors call it ``name``."""
    if hasattr(X, "predict"):  # ensembles are sequences of their members
        raise InputError(f"{name} is {truncated_repr(X)}; give a matrix of rows (n_rows, {n_features}).")
    try:
        array = np.ma.filled(X.astype(np.float64), np.nan) if np.ma.isMaskedArray(X) else np.asarray(X)
        if array.dtype.kind in "US" and isinstance(X, list | tuple):
            array = np.array(
                X, dtype=object
            )  # where there is one text, NumPy would make texts of numbers, too
    except ValueError as error:
        raise InputError(f"{name} is not a matrix of rows: {error_text(error)}.") from None
    if array.ndim != 2:
        refuse_parts(array, name)
        if hasattr(X, "collect"):
            raise InputError(f"{name} is a lazy {type(X).__name__}; give `{name}.collect()`.")
        what = f"has shape {array.shape}" if array.ndim else f"is {truncated_repr(X)}"
        raise InputError(
            f"{name} {what}; give a matrix of rows (n_rows, {n_features})"
            + (f", for one row {one_row(X, name)}." if array.ndim == 1 else ".")
        )
    if array.shape[1] != n_features:
        raise InputError(f"{name} has {array.shape[1]} columns, but the model has {n_features} features.")
    if array.dtype.kind not in "biufOUST":
        raise InputError(f"{name} has dtype {truncated_text(array.dtype)}; give numbers.")
    return array


def refuse_parts(array: NDArray[Any], name: str) -> None:
    """Raise if an array is of images or texts, which have no columns."""
    is_text = (
        array.ndim == 1
        and array.dtype.kind in "UO"
        and all(isinstance(entry, str) for entry in array.tolist())
    )
    if array.ndim < 3 and not (is_text and array.size):
        return
    kind = "has texts" if is_text else f"has shape {array.shape}, such as images have"
    raise InputError(
        f"{name} {kind}, and no columns. Explain one of them by its parts (words, tiles): "
        "fs.explain_game(value, n_parts), where value(coalitions) asks the model with the other parts hidden; or use "
        "shap's maskers for texts and images."
    )


def one_row(X: Any, name: str) -> str:
    """Say how to give one row as a matrix."""
    if hasattr(X, "to_frame") and hasattr(X, "iloc"):
        return f"`{name}.to_frame().T`, or `frame.iloc[[i]]`"
    if hasattr(X, "to_frame"):
        return "`frame[i]`, which is a frame"
    return f"`{name}.reshape(1, -1)`"


def is_record_batch(X: Any) -> bool:
    """Return whether X is a RecordBatch of pyarrow, which narwhals does not know."""
    return type(X).__name__ == "RecordBatch" and type(X).__module__.startswith("pyarrow")


def check_names(columns: list[str], known: tuple[str, ...] | None, n_features: int, name: str) -> None:
    if len(columns) != n_features:
        detail = ""
        if known is not None:
            lacking = [n for n in known if n not in columns]
            extra = [n for n in columns if n not in known]
            detail = f" Missing: {truncated_list(lacking)}." * bool(lacking)
            detail += f" Not known to the model: {truncated_list(extra)}." * bool(extra)
        raise InputError(
            f"{name} has {len(columns)} columns, but the model has {n_features} features.{detail}"
        )
    # LightGBM keeps names with underscores for spaces.
    if known is None or all(a in (b, b.replace(" ", "_")) for a, b in zip(known, columns, strict=True)):
        return
    if sorted(known) == sorted(columns):
        raise InputError(
            f"{name} has the model's columns in another order; give them in the model's: "
            f"{name}[{truncated_repr(list(known[:3]))} ...]."
        )
    wrong = next((a, b) for a, b in zip(known, columns, strict=True) if a not in (b, b.replace(" ", "_")))
    raise InputError(
        f"{name} has a column {truncated_repr(wrong[1])} where the model has the feature {truncated_repr(wrong[0])}."
    )


def float_matrix(frame: nw.DataFrame[Any]) -> NDArray[Any] | None:
    """Return a frame of pandas or pyarrow as a matrix if all columns are float32 or all float64; else None.

    Going column by column through narwhals costs more than explaining a thousand rows.
    """
    native = frame.to_native()
    if frame.implementation.is_pandas():
        types = column_types(native)
        return native.to_numpy() if types in ({np.dtype(np.float32)}, {np.dtype(np.float64)}) else None
    if not frame.implementation.is_pyarrow():
        return None
    import pyarrow as pa

    if set(native.schema.types) not in ({pa.float32()}, {pa.float64()}):
        return None
    # Nulls become NaN.
    return np.column_stack([column.to_numpy() for column in native.columns])


def column_types(X: Any, in_order: bool = False) -> Any:
    """Return the types of a frame's columns, as a key: a set, or ``in_order`` a tuple."""
    if hasattr(X, "dtypes") and hasattr(X, "iloc"):  # pandas
        blocks = getattr(getattr(X, "_mgr", None), "blocks", None)
        if not in_order and blocks is not None:  # a tenth of the time that `dtypes` takes
            return frozenset(_hashable(block.dtype) for block in blocks)
        types = [_hashable(dtype) for dtype in X.dtypes]
    else:
        frame = as_frame(X)
        types = [] if frame is None else [str(dtype) for dtype in frame.schema.values()]
    return tuple(types) if in_order else frozenset(types)


def _hashable(dtype: Any) -> Any:
    """Return a type of pandas without its categories, which take long to hash."""
    if isinstance(dtype, np.dtype):
        return dtype
    categories = getattr(dtype, "categories", None)
    return str(dtype) if categories is None else ("category", str(getattr(categories, "dtype", "")))


def dtype_holds_labels(dtype: Any) -> bool:
    """Return whether a column of narwhals' type may hold labels."""
    import narwhals as nw

    return not (dtype.is_numeric() or dtype == nw.Boolean)


def column_of(X: Any, j: int) -> list[Any] | None:
    """Return a column whose values may each have a type of their own; None for any other."""
    if isinstance(X, np.ndarray):
        return X[:, j].tolist() if X.dtype == object else None
    if isinstance(X, list | tuple):
        return [row[j] for row in X]
    if hasattr(X, "iloc"):
        column = X.iloc[:, j]
        return column.tolist() if column.dtype == object else None
    return None


def take_rows(X: Any, positions: NDArray[np.intp]) -> Any:
    """Return some rows in the caller's own container."""
    if isinstance(X, list | tuple):
        return [X[i] for i in positions.tolist()]
    if is_sparse(X):
        return X.tocsr()[positions].asformat(X.format)
    if hasattr(X, "iloc"):
        return X.take(positions)
    if np.ma.isMaskedArray(X):
        return np.ma.filled(X.astype(np.float64), np.nan)[positions]
    frame = None if isinstance(X, np.ndarray) else as_frame(X)
    return np.asarray(X)[positions] if frame is None else frame[positions.tolist()].to_native()


def integers_of(series: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return a column of integers, 0 where they are missing, and a mask of the missing ones."""
    missing = series.is_null()
    whole = series.fill_null(0) if missing.any() else series
    return whole.to_numpy(), missing.to_numpy()


def frame_library(X: Any) -> str | None:
    """Return the library of a data frame, by narwhals' name; None for anything else."""
    frame = as_frame(X)
    return None if frame is None else frame.implementation.name.lower()


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of the caller, read once."""

    codes: NDArray[Any]  # (n_rows, n_features) what the engine takes
    shown: Any  # what people see of them
    player: NDArray[np.int32]  # (n_columns,) player of each column that is shown, -1 for none
    names: tuple[str, ...]  # names of these columns
    # What the codes were made from, where that is not what is shown: rows that went through a Pipeline.
    entered: Any = None

    def __len__(self) -> int:
        return len(self.codes)

    def display(self, n_players: int) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Return the values of the players as people see them.

        Returns
        -------
        data : (n_rows, n_players)
            Numbers; positions of labels; the position of the one in a one-hot group; NaN for other groups.
        labels : (n_rows, n_players) object, or None if the numbers say everything
        """
        members = [np.flatnonzero(self.player == j) for j in range(n_players)]
        one_each = all(len(columns) == 1 for columns in members)
        X = self.shown
        if isinstance(X, np.ndarray) and X.dtype.kind in "biuf" and one_each:
            return X[:, np.concatenate(members)] if n_players else X[:, :0], None
        columns = _columns(X)
        shown = [
            columns[int(group[0])]
            if len(group) == 1
            else _group([columns[c] for c in group], [self.names[c] for c in group])
            for group in members
        ]
        data = np.column_stack([column.numbers for column in shown])
        if all(column.labels is None and not column.is_boolean for column in shown):
            return data, None
        labels = np.empty(data.shape, dtype=object)
        for j, column in enumerate(shown):
            labels[:, j] = column.words()
        return data, labels


class Column(NamedTuple):
    """Numbers (n_rows,), NaN for missing ones; where they are positions of labels, these, "missing" among them."""

    numbers: NDArray[np.float64]
    labels: NDArray[Any] | None = None
    is_boolean: bool = False  # numbers 0 and 1 that read False and True

    def words(self) -> Any:
        """Return the values as people read them."""
        if self.is_boolean:
            return [MISSING if np.isnan(number) else bool(number) for number in self.numbers.tolist()]
        return self.numbers.tolist() if self.labels is None else self.labels


def _columns(X: Any) -> list[Column]:
    frame = as_frame(X)
    if frame is None:
        array = np.ma.filled(X.astype(np.float64), np.nan) if np.ma.isMaskedArray(X) else np.asarray(X)
        return [_numbers_and_labels(array[:, j]) for j in range(array.shape[1])]
    return [_series_and_labels(frame[column]) for column in frame.columns]


def _series_and_labels(series: Any) -> Column:
    import narwhals as nw

    if series.dtype in (nw.Int64, nw.UInt64):  # pyarrow casts none beyond 2^53
        integers, missing = integers_of(series)
        return Column(np.where(missing, np.nan, integers.astype(np.float64)))
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        numbers = np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
        return Column(numbers, is_boolean=bool(series.dtype == nw.Boolean))
    order = None
    native = series.to_native()
    if isinstance(series.dtype, nw.Enum):
        order = list(series.dtype.categories)
    elif hasattr(native, "cat") and hasattr(native.cat, "categories"):  # pandas
        order = native.cat.categories.tolist()
    return _numbers_and_labels(np.array(series.to_list(), dtype=object), order)


def _numbers_and_labels(column: NDArray[Any], order: list[Any] | None = None) -> Column:
    try:
        if order is None:
            return Column(numbers_of(column))
    except (TypeError, ValueError):
        pass  # labels
    labels = [None if is_missing(label) else label for label in column.tolist()]
    found = {label for label in labels if label is not None}
    known = sorted(found, key=str) if order is None else order
    position = {label: float(i) for i, label in enumerate(known)}
    shown = np.array([MISSING if label is None else label for label in labels], dtype=object)
    return Column(np.array([position.get(label, np.nan) for label in labels]), shown)


def _group(columns: list[Column], names: list[str]) -> Column:
    """Return several columns as one: the name of the active column of a one-hot group, else all values joined."""
    matrix = np.column_stack([np.nan_to_num(column.numbers) for column in columns])
    is_one_hot = np.isin(matrix, (0.0, 1.0)).all() and (matrix.sum(axis=1) <= 1).all()
    if is_one_hot and all(column.labels is None for column in columns):
        truncated_repr = np.array([*without_prefix(names), NO_LEVEL], dtype=object)
        position = np.where(matrix.any(axis=1), matrix.argmax(axis=1), len(names))
        return Column(
            np.where(position < len(names), position.astype(np.float64), np.nan), truncated_repr[position]
        )
    parts = [column.numbers if column.labels is None else column.labels for column in columns]
    lines = [", ".join(map(text_of, cells)) for cells in zip(*(part.tolist() for part in parts), strict=True)]
    return Column(np.full(len(matrix), np.nan), np.array(lines, dtype=object))


def is_series(X: Any) -> bool:
    """Return whether X is a pandas Series."""
    return (
        hasattr(X, "to_frame") and hasattr(X, "index") and hasattr(X, "iloc") and getattr(X, "ndim", 2) == 1
    )


def _all_scalars(X: Any) -> bool:
    return all(np.ndim(value) == 0 and not isinstance(value, Mapping) for value in X)


def as_rows(X: Any) -> tuple[Any, bool]:
    """Return rows, and whether one row was given: an array, a list of numbers, a dict, or a pandas Series."""
    if is_series(X):
        return X.to_frame().T.infer_objects(), True
    if isinstance(X, Mapping):
        return [X], True
    if isinstance(X, np.ndarray) and X.ndim == 1 and X.dtype.names is None:
        return X[None], True
    if isinstance(X, list | tuple) and len(X) and _all_scalars(X):
        return [list(X)], True
    return X, False
