"""Named columns, and records of them, as a data frame."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np

from fouriershap._base.errors import InputError, MissingDependencyError
from fouriershap._base.messages import truncated_repr
from fouriershap._rows.frames import frame_library, is_series

_LIBRARIES = ("pandas", "polars", "pyarrow")


def to_frame(columns: dict[str, Any], like: Any) -> Any:
    """Return columns as a data frame in the library of ``like`` or, for anything else, the first that is installed."""
    library: Any = frame_library(like) or next((name for name in _LIBRARIES if find_spec(name)), None)
    if library is None:
        raise MissingDependencyError(
            "a frame needs a data frame library, and none is installed: pip install pandas (or polars, or pyarrow)."
        )
    import narwhals as nw

    return nw.from_dict(columns, backend=library).to_native()


def from_records(X: Any, names: tuple[str, ...] | None, name: str) -> tuple[Any, bool]:
    """Return a pandas Series, a dict or a list of dicts as a frame, and whether it was that; others as they are."""
    if is_series(X):
        return X.to_frame().T.infer_objects(), True
    records = [X] if isinstance(X, Mapping) else X
    if not isinstance(records, list | tuple) or not records or not isinstance(records[0], Mapping):
        return X, False
    if names is None:
        raise InputError(
            f"{name} has rows with names, but the columns of the model have none: give lists of numbers."
        )
    known = list(records[0])
    for k, record in enumerate(records):
        if (
            not isinstance(record, Mapping)
            or len(record) != len(known)
            or any(key not in record for key in known)
        ):
            raise InputError(f"{name}: row {k} does not have the same names as the rows before it.")
    columns = {str(key): [record[key] for record in records] for key in known}
    nested = next((key for key, column in columns.items() if any(np.ndim(value) for value in column)), None)
    if nested is not None:
        raise InputError(
            f"{name} is a dict whose {truncated_repr(nested)} is a list; give one value per name, or a data frame."
        )
    return to_frame(columns, None), True
