"""Rows of plain numbers, from whatever the caller holds them in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import InputError
from fouriershap._base.short import reason, short, short_text
from fouriershap._rows.frames import as_frame, as_matrix, check_names, densified, integers_of, numbers_of

if TYPE_CHECKING:
    import narwhals as nw


def to_numbers(
    X: Any, known: tuple[str, ...] | None, n_features: int, name: str, missing: bool = False
) -> NDArray[np.float64]:
    """Rows (n_rows, n_features) float64 of a model of numbers; errors call them ``name``.

    Parameters
    ----------
    X : array, sparse matrix or data frame
    known : tuple of str, optional
        Names that the columns of a frame must have, in this order.
    missing : bool
        Whether NaN may stand among them.
    """
    X = densified(X)
    frame = as_frame(X, name)
    if frame is not None:
        check_names([str(column) for column in frame.columns], known, n_features, name)
        columns = [_numbers(frame[column], name) for column in frame.columns]
        rows = np.column_stack(columns) if columns else np.empty((len(frame), 0))
    else:
        array = as_matrix(X, n_features, name)
        rows = array.astype(np.float64) if array.dtype.kind in "biuf" else _from_objects(array, name)
    _refuse_what_is_no_number(rows, missing, name)
    return rows


def _numbers(series: nw.Series[Any], name: str) -> NDArray[np.float64]:
    import narwhals as nw

    if series.dtype in (nw.Int64, nw.UInt64):
        integers, gone = integers_of(series)
        return np.where(gone, np.nan, integers.astype(np.float64))
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
    try:
        if series.dtype == nw.Object:
            return numbers_of(np.array(series.to_list(), dtype=object))
    except (TypeError, ValueError, OverflowError):
        pass
    raise InputError(
        f"{name} has a column {short(series.name)} of type {short_text(series.dtype)}, but the model takes numbers. "
        "Encode it as the model's training data were, or give a Pipeline whose steps do."
    )


def _from_objects(array: NDArray[Any], name: str) -> NDArray[np.float64]:
    out = np.empty(array.shape)
    for f in range(array.shape[1]):
        try:
            out[:, f] = numbers_of(array[:, f])
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(
                f"{name} has dtype {short_text(array.dtype)}, and column {f} holds what is not a number "
                f"({reason(error)}). Encode it as the model's training data were."
            ) from None
    return out


def _refuse_what_is_no_number(rows: NDArray[np.float64], missing: bool, name: str) -> None:
    wrong = ~np.isfinite(rows)
    if missing:
        wrong &= ~np.isnan(rows)
    if not wrong.any():
        return
    row, column = np.argwhere(wrong)[0]
    if np.isnan(rows[row, column]):
        raise InputError(
            f"{name} has a missing value in row {row}, column {column}, but the model takes none. Fill it in as the "
            "model's training data were."
        )
    raise InputError(f"{name} has {rows[row, column]} in row {row}, column {column}; give finite numbers.")
