"""Rows in forms: other types of columns, labels of other types, cells that are missing or unknown, containers.

A form is cast cell by cell, so that hybrids of rows have the form of the rows that they come from.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from fuzz_cells.rows import Rows
from fuzz_cells.trial import pick

_NUMBERS = ("float64", "float32", "int64", "Int64", "Float64", "bool", "boolean", "object", "str", "category")
_LABELS = (
    "category",
    "category",
    "reordered",
    "unused",
    "object",
    "str",
    "string",
    "int64",
    "Int64",
    "float64",
)
_CELLS = (None, np.nan, pd.NA, True, 7, 7.5, "7", "unseen", "", np.inf, 1e39, 2**60, datetime(2020, 1, 1))
_VALUES: dict[str, Callable[[Any], Any]] = {
    "of text": str,
    "of integers": lambda value: int(value) if str(value).lstrip("-").isdigit() else len(str(value)) % 3,
    "of floats": float,
    "of truth values": bool,
}
_ATTEMPTS = 50


class Form(NamedTuple):
    """Rows and background in a form; ``contain`` puts frames of pandas into its container."""

    name: str
    rows: pd.DataFrame
    background: pd.DataFrame
    contain: Callable[[pd.DataFrame], Rows]


def draw_form(rng: np.random.Generator, rows: pd.DataFrame, background: pd.DataFrame) -> Form:
    """Change a column or two of the same rows, or none, and put them into a container."""
    both = pd.concat([rows, background], ignore_index=True)
    n_changed = min(int(rng.choice([0, 1, 1, 1, 2])), both.shape[1])
    for _ in range(_ATTEMPTS):
        changed, words = both.copy(), []
        try:
            for name in rng.permutation(both.columns)[:n_changed]:
                changed[name], how = _change(rng, both[name], len(rows))
                words.append(f"{name}: {how}")
            container = pick(rng, *_CONTAINERS, "pandas", "pandas", "pandas", "array")
            halves = changed[: len(rows)], changed[len(rows) :].reset_index(drop=True)
            for part in (changed, *halves):
                _CONTAINERS[container](part)
        except (TypeError, ValueError, OverflowError, pa.ArrowException, pl.exceptions.PolarsError):
            continue  # this container, or type of column, has no place for these values
        return Form(", ".join([container, *words]), *halves, _CONTAINERS[container])
    return Form("pandas", rows, background, lambda frame: frame)


def _change(rng: np.random.Generator, column: pd.Series, n_rows: int) -> tuple[pd.Series, str]:
    """The column with values of another type, in another type, and with one strange cell among the rows."""
    values, words = column.astype(object).tolist(), []
    numeric = pd.api.types.is_numeric_dtype(column.dtype)
    if rng.random() < 0.3:
        how = str(rng.choice(list(_VALUES)))
        values = [value if pd.isna(value) else _VALUES[how](value) for value in values]
        words.append(how)
    if rng.random() < 0.4:
        cell = pick(rng, *_CELLS)
        values[int(rng.integers(n_rows))] = cell
        words.append(f"and {cell!r}")
    dtype = pick(rng, *(_NUMBERS if numeric else _LABELS), str(column.dtype))
    known = list(dict.fromkeys(value for value in values if not pd.isna(value)))
    if dtype in ("category", "reordered", "unused"):
        known = known[::-1] if dtype == "reordered" else [*known, "no row's"] if dtype == "unused" else known
        return pd.Series(pd.Categorical(values, known), name=column.name), " ".join([dtype, *words])
    return pd.Series(values, dtype=dtype, name=column.name), " ".join([dtype, *words])


def _polars_of_enums(frame: pd.DataFrame) -> Any:
    labels = {
        name: pl.Enum(dtype.categories.tolist())
        for name, dtype in frame.dtypes.items()
        if isinstance(dtype, pd.CategoricalDtype)
    }
    return pl.from_pandas(frame).with_columns(pl.col(name).cast(enum) for name, enum in labels.items())


_CONTAINERS: dict[str, Callable[[pd.DataFrame], Rows]] = {
    "pandas": lambda frame: frame,
    "array": lambda frame: frame.to_numpy(),
    "list": lambda frame: frame.astype(object).to_numpy().tolist(),
    "polars": pl.from_pandas,
    "polars of enums": _polars_of_enums,
    "arrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "one column more": lambda frame: frame.assign(more=1.0),
}
