"""Rows as an ensemble compares them, in whatever the caller holds them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import InputError
from fouriershap._base.short import reason, short, short_list, short_text
from fouriershap._rows.frames import (
    as_frame,
    as_matrix,
    check_names,
    densified,
    float_matrix,
    integers_of,
    is_missing,
    is_sparse,
    numbers_of,
)
from fouriershap._trees.ensemble import BEHIND_STEPS, MIXED, STEPS, TreeEnsemble
from fouriershap._trees.labels import category_codes

if TYPE_CHECKING:
    import narwhals as nw

# Where integers become float64 because some are missing, and are cast to the model's type only then.
_MISSING_THROUGH_DOUBLE = {("scikit-learn", "polars"), ("scikit-learn", "pyarrow"), ("catboost", "pandas")}
_WHOLE_IN_FLOAT32 = 1 << 24
_WHOLE_IN_FLOAT64 = 1 << 53
_SINGLE = ("float32", "float16")
_SINGLE_BESIDE_SINGLE = (
    "bool",
    "boolean",
    "int8",
    "uint8",
    "int16",
    "uint16",
)  # NumPy makes them float32 there


def to_rows(X: Any, ensemble: TreeEnsemble, name: str = "X") -> NDArray[Any]:
    """Rows as the ensemble compares them: (n_rows, n_features) of its dtype, missing values as NaN.

    X is an array, a sparse matrix, or a frame of any library that narwhals reads; errors call it ``name``.
    Categories are labels where the model has a vocabulary for the column, else codes; numbers of an array are codes
    for XGBoost and LightGBM, those of a frame are labels where the labels are numbers. What a sparse matrix does not
    store is what the model's library takes it for: missing in XGBoost, 0 elsewhere.
    """
    if not isinstance(X, np.ndarray):
        if is_sparse(X):
            X = densified(_sparse_as_cast(X, ensemble), absent_is_missing(ensemble, name))
        frame = as_frame(X, name)
        if frame is not None:
            _check_doubles(list(frame.schema.values()), ensemble, name)
            return _cleaned(_from_frame(frame, ensemble, name), ensemble, name)
    array = as_matrix(X, ensemble.n_features, name)
    if array.dtype.kind in "biuf":
        _check_doubles([array.dtype] * array.shape[1], ensemble, name)
        _check_integers(array, ensemble, name)
        array = _array_as_cast(array, ensemble, hasattr(X, "dtype"))
        return _cleaned(_labelled(array, ensemble), ensemble, name)
    objects = _from_objects(array, ensemble, name)
    return _cleaned(_objects_as_cast(objects, ensemble), ensemble, name)


def _from_frame(frame: nw.DataFrame[Any], ensemble: TreeEnsemble, name: str) -> NDArray[Any]:
    """Numbers and codes (n_rows, n_features) of a frame."""
    columns = [str(column) for column in frame.columns]
    check_names(columns, ensemble.feature_names, ensemble.n_features, name)
    plain = None if ensemble.vocabularies else float_matrix(frame)
    if plain is not None:  # no cast in between could round: widening is exact, and narrowing comes last
        return plain
    in_order, matters = _labels_in_order(frame, ensemble), _matters(ensemble)
    parts = [
        _coded(frame[column], in_order[column])
        if column in in_order
        else _column(frame, f, column, ensemble, name, not in_order)
        if matters[f]
        else np.zeros(len(frame))
        for f, column in enumerate(frame.columns)
    ]
    return _stack_columns(parts, len(frame), ensemble, _comes_apart(frame))


def _cleaned(matrix: NDArray[Any], ensemble: TreeEnsemble, name: str) -> NDArray[Any]:
    rows = ensemble.clean_rows(matrix)
    missing = np.zeros(0, dtype=bool) if ensemble.accepts_missing else np.isnan(rows) & _matters(ensemble)
    if missing.any():
        row, column = np.argwhere(missing)[0]
        raise InputError(
            f"{name} has a missing value in row {row}, column {column}, but the model ({short_text(ensemble.kind)}) "
            "takes none. Fill it in as the model's training data were."
        )
    return rows


def _matters(ensemble: TreeEnsemble) -> NDArray[np.bool_]:
    """(n_features,) whether it matters what a column holds: behind steps, which may drop columns, where it is tested.

    Everywhere else the model reads all columns, and what it could not read is an error.
    """
    if ensemble.casting not in BEHIND_STEPS:
        return np.ones(ensemble.n_features, dtype=bool)
    tested = np.zeros(ensemble.n_features + 1, dtype=bool)
    tested[ensemble.feature] = True  # of leaves the last, which is no feature
    return tested[:-1]


def _labelled(array: NDArray[Any], ensemble: TreeEnsemble) -> NDArray[Any]:
    """Numbers of an array; where numbers are labels of a categorical feature, their codes."""
    if not ensemble.numbers_are_labels or not ensemble.vocabularies:
        return array
    out = array.astype(ensemble.dtype)
    for f in ensemble.vocabularies:
        out[:, f] = category_codes(ensemble, f, array[:, f])
    return out


def _from_objects(array: NDArray[Any], ensemble: TreeEnsemble, name: str) -> NDArray[np.float64]:
    out = np.empty(array.shape)
    matters = _matters(ensemble)
    for f in range(array.shape[1]):
        if not matters[f]:
            out[:, f] = 0.0
            continue
        if f in ensemble.vocabularies:
            out[:, f] = category_codes(ensemble, f, array[:, f])
            continue
        try:
            out[:, f] = numbers_of(array[:, f])
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(
                f"{name} has dtype {short_text(array.dtype)}, and column {f} holds what is not a number "
                f"({reason(error)}). The model has no categories for it: encode it as the model's training data were."
            ) from None
    return out


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


def _comes_apart(frame: nw.DataFrame[Any]) -> bool:
    """Whether scikit-learn casts each column on its own: pyarrow's, and pandas' with Booleans or nullable types."""
    if frame.implementation.is_pyarrow():
        return True
    if not frame.implementation.is_pandas():
        return False
    return any(not isinstance(dtype, np.dtype) or dtype.kind == "b" for dtype in frame.to_native().dtypes)


def _column(
    frame: nw.DataFrame[Any], f: int, column: str, ensemble: TreeEnsemble, name: str, may_be_labels: bool
) -> NDArray[Any]:
    """Numbers and codes of a column; plain numbers are no labels where the frame's categories have all there are."""
    import narwhals as nw

    series = frame[column]
    dtype = series.dtype
    if dtype.is_integer() and f not in ensemble.vocabularies:
        _check_integers(integers_of(series)[0], ensemble, name)
    if isinstance(dtype, nw.Categorical | nw.Enum):
        return _categorical(series, f, ensemble, name)
    if f in ensemble.vocabularies:
        if may_be_labels and dtype.is_numeric() and _has_labels_of_numbers(ensemble, f):
            return _codes_of_numbers(series, f, ensemble, name)
        return category_codes(ensemble, f, series.to_numpy())
    if dtype in (nw.Int64, nw.UInt64):  # float64 would round what lies beyond 2^53
        return _integers_with_missing(*integers_of(series), ensemble, frame.implementation.name.lower())
    if dtype.is_numeric() or dtype == nw.Boolean:
        return series.cast(nw.Float64).to_numpy()
    raise InputError(
        f"{name} has a column {short(column)} of type {short_text(dtype)}, but the model has no categories for it. "
        "Give numbers, or a categorical type with the categories of the training data."
    )


def _has_labels_of_numbers(ensemble: TreeEnsemble, f: int) -> bool:
    """Whether a feature's labels are numbers, in a library that takes numbers of arrays for codes."""
    labels = ensemble.vocabularies[f]
    are_numbers = all(isinstance(label, int | float) and not isinstance(label, bool) for label in labels)
    return are_numbers and not ensemble.numbers_are_labels


def _codes_of_numbers(series: Any, f: int, ensemble: TreeEnsemble, name: str) -> NDArray[np.float64]:
    """Codes of plain numbers in a frame, where the labels are numbers, too: they are the labels.

    XGBoost and LightGBM take no such frame; other libraries of frames, and files, keep no categories of numbers, and
    give them back as plain ones. Codes are taken where no label could be one; what may be neither is refused.
    """
    labels = ensemble.vocabularies[f]
    codes: dict[Any, float] = {label: float(code) for code, label in enumerate(labels)}
    if not any(code in codes for code in range(len(labels))):
        codes |= {code: float(code) for code in range(len(labels))}
    entries = series.to_list()
    other = next((entry for entry in entries if not is_missing(entry) and entry not in codes), None)
    if other is not None:
        raise InputError(
            f"{name} has the number {short(other)} in the column {short(series.name)}, which is none of the labels "
            f"that the model was trained on: {short_list(labels)}. Give labels (of a categorical type, where some are "
            "new), or the codes of the training data as an array."
        )
    return np.array([np.nan if is_missing(entry) else codes[entry] for entry in entries])


def _categorical(series: Any, f: int, ensemble: TreeEnsemble, name: str) -> NDArray[np.float64]:
    """Labels by the model's vocabulary; without one, the positions of the categories."""
    if f in ensemble.vocabularies:
        return category_codes(ensemble, f, np.array(series.to_list(), dtype=object))
    if f in ensemble.lost_labels:
        raise InputError(
            f"{name} has a categorical column {short(series.name)}, but the model ({short_text(ensemble.kind)}) does "
            "not say which labels it was trained on. Give the codes of the training data, as numbers."
        )
    if not ensemble.is_categorical[f] and (ensemble.feature == f).any():
        raise InputError(
            f"{name} has a categorical column {short(series.name)}, but the model treats this feature as a number."
        )
    native = series.to_native()
    if hasattr(native, "cat") and hasattr(native.cat, "codes"):  # pandas
        codes = np.array(native.cat.codes, dtype=np.float64)
    elif hasattr(series.dtype, "categories"):  # Enum
        positions = {label: float(c) for c, label in enumerate(series.dtype.categories)}
        codes = np.array([positions.get(label, -1.0) for label in series.to_list()])
    else:  # Arrow's dictionaries, too, may differ from batch to batch
        raise InputError(
            f"{name} has a column {short(series.name)} of type {short_text(series.dtype)}, whose categories have no "
            "fixed order, and the model keeps no labels. Give the codes of the training data, or an Enum."
        )
    return np.where(codes < 0, np.nan, codes)


# Casts: a rounding more or less than the library's own sends a row to another leaf.


def _check_integers(values: NDArray[Any], ensemble: TreeEnsemble, name: str) -> None:
    """Raise where libraries that read the same row round its integers in different ways."""
    if ensemble.casting not in (MIXED, *BEHIND_STEPS) or values.dtype.kind not in "iu":
        return
    if values.ndim == 2:
        values = values[:, _matters(ensemble)]
    if not values.size:
        return
    largest = max(int(values.max()), -int(values.min()))
    if ensemble.casting == STEPS:  # steps compute in float64, and trees round once
        if largest > _WHOLE_IN_FLOAT64:
            raise InputError(
                f"{name} holds the integer {largest}, which float64 does not hold, and in which the steps before the "
                f"trees of the model ({short_text(ensemble.kind)}) compute. Give float64."
            )
    elif largest > _WHOLE_IN_FLOAT32:
        raise InputError(
            f"{name} holds the integer {largest}, which libraries inside the model ({short_text(ensemble.kind)}) may "
            "round in different ways. Give float64."
        )


def _check_doubles(types: Sequence[Any], ensemble: TreeEnsemble, name: str) -> None:
    """Raise where steps before the trees would compute in single precision: they were read for float64."""
    if _in_single(types, ensemble):
        raise InputError(
            f"{name} has float32 numbers, which the steps before the trees of the model ({short_text(ensemble.kind)}) "
            "would round in their own way. Give float64."
        )


def is_in_single(X: Any, ensemble: TreeEnsemble, name: str = "X") -> bool:
    """Whether `to_rows` refuses rows because steps before the trees would compute with them in single precision."""
    if ensemble.casting not in BEHIND_STEPS or is_sparse(X):
        return False
    frame = None if isinstance(X, np.ndarray) else as_frame(X, name)
    if frame is not None:
        return _in_single(list(frame.schema.values()), ensemble)
    return _in_single([as_matrix(X, ensemble.n_features, name).dtype] * ensemble.n_features, ensemble)


def _in_single(types: Sequence[Any], ensemble: TreeEnsemble) -> bool:
    """The same of the types of columns."""
    if ensemble.casting not in BEHIND_STEPS:
        return False
    names = [str(dtype).lower() for dtype in types]
    tested = {name for name, matters in zip(names, _matters(ensemble), strict=False) if matters}
    if not tested.isdisjoint(_SINGLE):
        return True
    return not set(names).isdisjoint(_SINGLE) and not tested.isdisjoint(_SINGLE_BESIDE_SINGLE)


def _array_as_cast(array: NDArray[Any], ensemble: TreeEnsemble, was_array: bool) -> NDArray[Any]:
    """An array of numbers after what the library does to its type before it compares.

    ``was_array``: False where the caller gave lists.
    """
    is_float = array.dtype in (np.float32, np.float64)
    if ensemble.casting.startswith("lightgbm") and not is_float:
        return array.astype(np.float32)
    from_lists = ensemble.casting in ("scikit-learn", "catboost") and not was_array
    if from_lists or (ensemble.casting == "catboost" and array.dtype == np.longdouble):
        return array.astype(np.float64)  # they go through Python's own numbers
    return array


def _objects_as_cast(numbers: NDArray[np.float64], ensemble: TreeEnsemble) -> NDArray[Any]:
    """The numbers of an array of objects. LightGBM's estimators make them float64, its Booster float32."""
    return numbers.astype(np.float32) if ensemble.casting == "lightgbm booster" else numbers


def absent_is_missing(ensemble: TreeEnsemble, name: str = "X") -> bool:
    """What the model takes a cell for that a sparse matrix does not store: missing, or else 0."""
    if ensemble.casting in (MIXED, *BEHIND_STEPS):
        raise InputError(
            f"{name} is sparse, and what it does not store is 0 to some members of the model ("
            f"{short_text(ensemble.kind)}) and may be missing to others. Give a dense matrix, {name}.toarray()."
        )
    return ensemble.absent_is_missing


def _sparse_as_cast(X: Any, ensemble: TreeEnsemble) -> Any:
    """A sparse matrix whose cells are of a type that can say "missing" where those absent are."""
    return X.astype(ensemble.dtype) if ensemble.absent_is_missing and X.dtype.kind in "iu" else X


def _stack_columns(
    columns: list[NDArray[Any]], n_rows: int, ensemble: TreeEnsemble, apart: bool
) -> NDArray[Any]:
    """The columns of a frame as a matrix.

    XGBoost and CatBoost cast each column on its own; scikit-learn the whole frame, by way of the type that all
    columns share, unless the frame comes ``apart`` (see `_comes_apart`).
    """
    if not columns:
        return np.empty((n_rows, 0))
    if apart or ensemble.casting in ("xgboost", "catboost"):
        with np.errstate(over="ignore"):
            columns = [column.astype(ensemble.dtype, copy=False) for column in columns]
    return np.column_stack(columns)


def _integers_with_missing(
    integers: NDArray[Any], missing: NDArray[np.bool_], ensemble: TreeEnsemble, frame_library: str
) -> NDArray[Any]:
    """A column of integers as it is, or as numbers with NaN where some are missing (0 in ``integers``)."""
    if not missing.any():
        return integers
    through_double = (ensemble.casting, frame_library) in _MISSING_THROUGH_DOUBLE
    numbers = integers.astype(np.float64 if through_double else ensemble.dtype)
    numbers[missing] = np.nan
    return numbers
