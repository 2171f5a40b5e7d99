"""Numbers on their way into a library: a rounding more or less than its own sends a row to another leaf."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._trees.ensemble import TreeEnsemble

# Where integers become float64 because some are missing, and are cast to the model's type only then.
_MISSING_THROUGH_DOUBLE = {("scikit-learn", "polars"), ("scikit-learn", "pyarrow"), ("catboost", "pandas")}


def array_as_cast(array: NDArray[Any], ensemble: TreeEnsemble, was_array: bool) -> NDArray[Any]:
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


def objects_as_cast(numbers: NDArray[np.float64], ensemble: TreeEnsemble) -> NDArray[Any]:
    """The numbers of an array of objects. LightGBM's estimators make them float64, its Booster float32."""
    return numbers.astype(np.float32) if ensemble.casting == "lightgbm booster" else numbers


def sparse_as_cast(X: Any, ensemble: TreeEnsemble) -> Any:
    """A sparse matrix whose cells are of a type that can say "missing" where those absent are."""
    return X.astype(ensemble.dtype) if ensemble.absent_is_missing and X.dtype.kind in "iu" else X


def stack_columns(
    columns: list[NDArray[Any]], n_rows: int, ensemble: TreeEnsemble, apart: bool
) -> NDArray[Any]:
    """The columns of a frame as a matrix.

    XGBoost and CatBoost cast each column on its own; scikit-learn the whole frame, by way of the type that all
    columns share, unless the frame comes ``apart`` (see `fouriershap._rows.frames`).
    """
    if not columns:
        return np.empty((n_rows, 0))
    if apart or ensemble.casting in ("xgboost", "catboost"):
        with np.errstate(over="ignore"):
            columns = [column.astype(ensemble.dtype, copy=False) for column in columns]
    return np.column_stack(columns)


def integers_with_missing(
    integers: NDArray[Any], missing: NDArray[np.bool_], ensemble: TreeEnsemble, frame_library: str
) -> NDArray[Any]:
    """A column of integers as it is, or as numbers with NaN where some are missing (0 in ``integers``)."""
    if not missing.any():
        return integers
    through_double = (ensemble.casting, frame_library) in _MISSING_THROUGH_DOUBLE
    numbers = integers.astype(np.float64 if through_double else ensemble.dtype)
    numbers[missing] = np.nan
    return numbers
