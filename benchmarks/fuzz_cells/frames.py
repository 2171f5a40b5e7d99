"""Frames of pandas in other libraries: the same numbers, labels and missing values."""

from __future__ import annotations

from typing import Any

import pandas as pd


def has_twins(frame: pd.DataFrame) -> bool:
    """Whether the frame can be told in polars: its categories are of texts alone."""
    return all(
        isinstance(label, str) for name in frame for label in getattr(frame[name].dtype, "categories", ())
    )


def as_polars(frame: pd.DataFrame) -> Any:
    """Categories of texts become an Enum, in their order."""
    import polars as pl

    columns = {}
    for name in frame:
        values = _plain(frame[name])
        categories = getattr(frame[name].dtype, "categories", None)
        dtype = _polars_type(frame[name]) if categories is None else pl.Enum(categories.tolist())
        columns[name] = pl.Series(values, dtype=dtype, strict=True)
    return pl.DataFrame(columns)


def _polars_type(column: pd.Series) -> Any:
    import polars as pl

    kind = str(column.dtype).lower()
    names = {"float64": pl.Float64, "float32": pl.Float32, "int64": pl.Int64, "int32": pl.Int32}
    names |= {"bool": pl.Boolean, "boolean": pl.Boolean}
    return names.get(kind, pl.String)


def as_arrow(frame: pd.DataFrame) -> Any:
    """A table of pyarrow."""
    import pyarrow as pa

    return pa.table({name: _arrow(frame[name]) for name in frame})


def _arrow(column: pd.Series) -> Any:
    import pyarrow as pa

    kind = str(column.dtype).lower()
    names = {"float64": pa.float64(), "float32": pa.float32(), "int64": pa.int64(), "int32": pa.int32()}
    names |= {"bool": pa.bool_(), "boolean": pa.bool_()}
    return pa.array(_plain(column), type=names.get(kind, pa.string()))


def _plain(column: pd.Series) -> list[Any]:
    """Python's own values, None for what is missing in a column that is not of plain numbers."""
    if str(column.dtype) in ("float64", "float32"):
        return column.tolist()
    return [None if value is pd.NA or value != value else value for value in column.tolist()]
