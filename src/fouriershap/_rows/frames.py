"""Rows in whatever the caller holds them, as a matrix of numbers. The only file that knows data frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import InputError
from fouriershap._trees import TreeEnsemble, category_codes
from fouriershap._trees.labels import is_missing

if TYPE_CHECKING:
    import narwhals as nw


def column_names(X: Any) -> tuple[str, ...] | None:
    """The column names of a data frame, None for anything else."""
    frame = as_frame(X)
    return None if frame is None else tuple(str(name) for name in frame.columns)


def is_sparse(X: Any) -> bool:
    """Whether X is a sparse matrix or array of scipy."""
    return hasattr(X, "toarray") and hasattr(X, "nnz")


def densified(X: Any, absent_is_missing: bool = False) -> Any:
    """A sparse matrix as an array, with 0 or NaN where it stores nothing; anything else as it is."""
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
    """The rows of a ``shap.maskers.Independent`` (or Partition), anything else as it is.

    They are the rows that the masker kept: shap keeps 100 unless ``max_samples`` says otherwise.
    """
    if type(background).__name__ not in ("Independent", "Partition") or not hasattr(background, "data"):
        return background
    if not getattr(background, "output_dataframe", False):
        return background.data
    import pandas as pd  # the masker was made from a frame of pandas

    return pd.DataFrame(background.data, columns=background.feature_names).infer_objects()


def check_columns(X: Any, names: tuple[str, ...], name: str) -> None:
    """Raise unless a data frame has these columns in this order; arrays have no names to check."""
    columns = column_names(X)
    if columns is not None:
        made_up = all(known == f"Feature {i}" for i, known in enumerate(names))
        _check_names(list(columns), None if made_up else names, len(names), name)


def to_rows(X: Any, ensemble: TreeEnsemble, name: str = "X") -> NDArray[Any]:
    """Rows as the ensemble compares them: (n_rows, n_features) of its dtype, missing values as NaN.

    Parameters
    ----------
    X : ndarray, scipy's sparse matrices, or a frame of pandas, polars, pyarrow (anything that narwhals reads)
        Categories as labels where the model has a vocabulary for the column, else as codes. What a sparse
        matrix does not store is what the model's library takes it for: missing in XGBoost, 0 elsewhere.
    ensemble : TreeEnsemble
    name : str
        What errors call it.
    """
    X = densified(X, ensemble.absent_is_missing)
    frame = as_frame(X, name)
    if frame is not None:
        columns = [str(column) for column in frame.columns]
        _check_names(columns, ensemble.feature_names, ensemble.n_features, name)
        in_order = _labels_in_order(frame, ensemble)
        parts = [
            _coded(frame[column], in_order[column])
            if column in in_order
            else _column(frame, f, column, ensemble, name)
            for f, column in enumerate(frame.columns)
        ]
        matrix = np.column_stack(parts) if parts else np.empty((len(frame), 0))
        return _cleaned(matrix, ensemble, name)
    array = _as_matrix(X, ensemble, name)
    if array.dtype.kind in "biuf":
        return _cleaned(_labelled(array, ensemble), ensemble, name)
    return _cleaned(_from_objects(array, ensemble, name), ensemble, name)


def _cleaned(matrix: NDArray[Any], ensemble: TreeEnsemble, name: str) -> NDArray[Any]:
    rows = ensemble.clean_rows(matrix)
    if not ensemble.accepts_missing and np.isnan(rows).any():
        row, column = np.argwhere(np.isnan(rows))[0]
        raise InputError(
            f"{name} has a missing value in row {row}, column {column}, but the model ({ensemble.kind}) takes "
            "none. Fill it in as the model's training data were."
        )
    return rows


def _as_matrix(X: Any, ensemble: TreeEnsemble, name: str) -> NDArray[Any]:
    """An array (n_rows, n_features) of numbers or objects, from whatever is no frame."""
    try:
        array = np.ma.filled(X.astype(np.float64), np.nan) if np.ma.isMaskedArray(X) else np.asarray(X)
    except ValueError as error:
        raise InputError(f"{name} is no matrix of rows: {error}.") from None
    if array.ndim != 2:
        if hasattr(X, "collect"):
            raise InputError(f"{name} is a lazy {type(X).__name__}; give `{name}.collect()`.")
        raise InputError(
            f"{name} has shape {array.shape}; give a matrix of rows (n_rows, {ensemble.n_features})"
            + (f", for one row `{name}.reshape(1, -1)`." if array.ndim == 1 else ".")
        )
    if array.shape[1] != ensemble.n_features:
        raise InputError(
            f"{name} has {array.shape[1]} columns, but the model has {ensemble.n_features} features."
        )
    if array.dtype.kind not in "biufOUST":
        raise InputError(f"{name} has dtype {array.dtype}; give numbers.")
    return array


def _labelled(array: NDArray[Any], ensemble: TreeEnsemble) -> NDArray[Any]:
    """Numbers of an array; where numbers are labels of a categorical feature, their codes."""
    if not ensemble.numbers_are_labels or not ensemble.vocabularies:
        return array
    out = array.astype(np.float64)
    for f in ensemble.vocabularies:
        out[:, f] = category_codes(ensemble, f, array[:, f])
    return out


def _from_objects(array: NDArray[Any], ensemble: TreeEnsemble, name: str) -> NDArray[np.float64]:
    out = np.empty(array.shape)
    for f in range(array.shape[1]):
        if f in ensemble.vocabularies:
            out[:, f] = category_codes(ensemble, f, array[:, f])
            continue
        try:
            out[:, f] = _numbers(array[:, f])
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(
                f"{name} has dtype {array.dtype}, and column {f} holds what is not a number ({error}). The model "
                "has no categories for it: encode it as the model's training data were."
            ) from None
    return out


def _numbers(column: NDArray[Any]) -> NDArray[np.float64]:
    values = column.tolist()
    for value in values:
        if isinstance(value, str | bytes):  # NumPy would read "1" as a number, which no library does
            raise ValueError(f"{value!r} is text")
    return np.array([np.nan if is_missing(value) else value for value in values], dtype=np.float64)


def as_frame(X: Any, name: str = "X") -> nw.DataFrame[Any] | None:
    """A data frame for narwhals, its columns named by texts; None for anything else."""
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
        # pandas numbers columns where nobody names them; narwhals takes numbers for rows.
        named: nw.DataFrame[Any] = nw.from_native(
            X.set_axis([str(column) for column in X.columns], axis=1), eager_only=True
        )
        return named
    except DuplicateError as error:
        raise InputError(f"{name} has two columns of one name: {error}") from None


def is_record_batch(X: Any) -> bool:
    """Whether X is a batch of pyarrow, which narwhals does not know."""
    return type(X).__name__ == "RecordBatch" and type(X).__module__.startswith("pyarrow")


def _check_names(columns: list[str], known: tuple[str, ...] | None, n_features: int, name: str) -> None:
    if len(columns) != n_features:
        detail = ""
        if known is not None:
            lacking = [n for n in known if n not in columns][:5]
            extra = [n for n in columns if n not in known][:5]
            detail = f" Missing: {lacking}. Not known to the model: {extra}."
        raise InputError(
            f"{name} has {len(columns)} columns, but the model has {n_features} features.{detail}"
        )
    # LightGBM keeps names with underscores for spaces.
    if known is None or all(a in (b, b.replace(" ", "_")) for a, b in zip(known, columns, strict=True)):
        return
    if sorted(known) == sorted(columns):
        raise InputError(
            f"{name} has the model's columns in another order; give them in the model's: "
            f"{name}[{list(known[:3])!r} ...]."
        )
    wrong = next((a, b) for a, b in zip(known, columns, strict=True) if a not in (b, b.replace(" ", "_")))
    raise InputError(f"{name} has a column {wrong[1]!r} where the model has the feature {wrong[0]!r}.")


def _labels_in_order(frame: nw.DataFrame[Any], ensemble: TreeEnsemble) -> dict[str, tuple[Any, ...]]:
    """Labels by column, where a model knows them by the order of a frame's categorical columns."""
    import narwhals as nw

    if not ensemble.frame_labels:
        return {}
    columns = [c for c, dtype in frame.schema.items() if isinstance(dtype, nw.Categorical | nw.Enum)]
    known = ensemble.frame_labels
    return dict(zip(columns, known, strict=True)) if len(columns) == len(known) else {}


def _coded(series: Any, labels: tuple[Any, ...]) -> NDArray[np.float64]:
    """Positions among labels, NaN for any other."""
    position = {label: float(code) for code, label in enumerate(labels)}
    return np.array([np.nan if is_missing(v) else position.get(v, np.nan) for v in series.to_list()])


def _column(
    frame: nw.DataFrame[Any], f: int, column: str, ensemble: TreeEnsemble, name: str
) -> NDArray[np.float64]:
    import narwhals as nw

    series = frame[column]
    dtype = series.dtype
    if isinstance(dtype, nw.Categorical | nw.Enum):
        return _categorical(series, f, ensemble, name)
    if f in ensemble.vocabularies:
        return category_codes(ensemble, f, series.to_numpy())
    if dtype.is_numeric() or dtype == nw.Boolean:
        return series.cast(nw.Float64).to_numpy()
    raise InputError(
        f"{name} has a column {column!r} of type {dtype}, but the model has no categories for it. Give numbers, "
        "or a categorical type with the categories of the training data."
    )


def _categorical(series: Any, f: int, ensemble: TreeEnsemble, name: str) -> NDArray[np.float64]:
    """Labels by the model's vocabulary; without one, the positions of the categories."""
    if f in ensemble.vocabularies:
        return category_codes(ensemble, f, np.array(series.to_list(), dtype=object))
    if f in ensemble.lost_labels:
        raise InputError(
            f"{name} has a categorical column {series.name!r}, but the model ({ensemble.kind}) does not say which "
            "labels it was trained on. Give the codes of the training data, as numbers."
        )
    if not ensemble.is_categorical[f] and (ensemble.feature == f).any():
        raise InputError(
            f"{name} has a categorical column {series.name!r}, but the model treats this feature as a number."
        )
    native = series.to_native()
    if hasattr(native, "cat") and hasattr(native.cat, "codes"):  # pandas
        codes = np.array(native.cat.codes, dtype=np.float64)
    elif hasattr(series.dtype, "categories"):  # Enum
        positions = {label: float(c) for c, label in enumerate(series.dtype.categories)}
        codes = np.array([positions.get(label, -1.0) for label in series.to_list()])
    else:  # Arrow's dictionaries, too, may differ from batch to batch
        raise InputError(
            f"{name} has a column {series.name!r} of type {series.dtype}, whose categories have no fixed order, "
            "and the model keeps no labels. Give the codes of the training data, or an Enum."
        )
    return np.where(codes < 0, np.nan, codes)


def frame_library(X: Any) -> str | None:
    """The library of a data frame, as narwhals calls it; None for anything else."""
    frame = as_frame(X)
    return None if frame is None else frame.implementation.value


def frame_columns(X: Any) -> list[tuple[NDArray[np.float64], NDArray[Any] | None]]:
    """Each column as numbers (n_rows,) and, where these are positions of labels, the labels (n_rows,).

    Missing values are NaN among the numbers and "missing" among the labels.
    """
    frame = as_frame(X)
    if frame is None:
        array = np.ma.filled(X.astype(np.float64), np.nan) if np.ma.isMaskedArray(X) else np.asarray(X)
        return [_numbers_and_labels(array[:, j]) for j in range(array.shape[1])]
    return [_series_and_labels(frame[column]) for column in frame.columns]


def _series_and_labels(series: Any) -> tuple[NDArray[np.float64], NDArray[Any] | None]:
    import narwhals as nw

    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64), None
    order = None
    native = series.to_native()
    if isinstance(series.dtype, nw.Enum):
        order = list(series.dtype.categories)
    elif hasattr(native, "cat") and hasattr(native.cat, "categories"):  # pandas
        order = native.cat.categories.tolist()
    return _numbers_and_labels(np.array(series.to_list(), dtype=object), order)


def _numbers_and_labels(
    column: NDArray[Any], order: list[Any] | None = None
) -> tuple[NDArray[np.float64], NDArray[Any] | None]:
    try:
        if order is None:
            return _numbers(column), None
    except (TypeError, ValueError):
        pass  # labels
    labels = [None if is_missing(label) else label for label in column.tolist()]
    found = {label for label in labels if label is not None}
    known = sorted(found, key=str) if order is None else order
    position = {label: float(i) for i, label in enumerate(known)}
    shown = np.array(["missing" if label is None else label for label in labels], dtype=object)
    return np.array([position.get(label, np.nan) for label in labels]), shown
