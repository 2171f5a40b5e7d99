"""Random rows: arrays of many types and frames whose columns draw from few values, so that they tie."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

Rows = Any  # an array or a frame of pandas

_LABELS = ("red", "green", "blue", "yellow", "black", "white", "a label of more than sixteen bytes")
_SPECIAL = (0.0, -0.0, 1e-36, -1e-36, 1e-35, -1e-35, 1e-30, 1.5, -3.0, 1e30, -1e30)
_BEYOND = (np.inf, -np.inf, 1e300, -1e300)


class Admits(NamedTuple):
    """What a library takes."""

    forms: tuple[str, ...]  # types of arrays, and "frame"
    missing: bool = True
    infinite: bool = False
    categories: bool = False  # categorical columns of frames
    nullable: bool = False  # pandas' Int64, Float64, boolean with NA
    sparse: bool = False  # matrices of scipy


class Column(NamedTuple):
    """The values that a column draws from; ``dtype`` is that of the array, or the column's own in a frame."""

    dtype: Any
    pool: tuple[Any, ...]

    @property
    def is_categorical(self) -> bool:
        return isinstance(self.dtype, pd.CategoricalDtype)

    @property
    def is_text(self) -> bool:
        return self.dtype is object and isinstance(self.pool[0], str)

    @property
    def is_integer(self) -> bool:
        return not self.is_categorical and isinstance(next(v for v in self.pool if v is not pd.NA), int)


class Table(NamedTuple):
    form: str
    columns: tuple[Column, ...]


def draw_table(rng: np.random.Generator, admits: Admits, most_features: int = 5) -> Table:
    """The form of the rows, and the values of each column."""
    form = str(rng.choice(admits.forms))
    n_features = int(rng.integers(1, most_features + 1))
    missing = admits.missing and rng.random() < 0.6
    infinite = admits.infinite and rng.random() < 0.2
    if form == "frame":
        columns = [_frame_column(rng, admits, missing, infinite) for _ in range(n_features)]
    elif form.startswith(("int", "uint")):
        columns = [Column(form, _integers(rng, np.iinfo(form))) for _ in range(n_features)]
    else:
        columns = [Column(form, _floats(rng, form, missing, infinite)) for _ in range(n_features)]
    return Table(form, tuple(columns))


def _frame_column(rng: np.random.Generator, admits: Admits, missing: bool, infinite: bool) -> Column:
    kinds = ["float64", "float64", "float32", "int64", "int64", "int32", "bool"]
    kinds += ["category"] * 4 if admits.categories else []
    kinds += ["Int64", "Float64", "boolean"] if admits.nullable else []
    kind = str(rng.choice(kinds))
    if kind == "category":
        return categorical_column(rng, missing)
    lacking = (pd.NA,) * int(rng.integers(1, 4)) if missing else ()
    if kind in ("bool", "boolean"):
        return Column(kind, (False, True, *(lacking if kind == "boolean" else ())))
    if kind in ("int64", "int32", "Int64"):
        return Column(kind, _integers(rng, np.iinfo(kind.lower())) + (lacking if kind == "Int64" else ()))
    if kind == "Float64":
        return Column(kind, _floats(rng, "float64", False, infinite) + lacking)
    return Column(kind, _floats(rng, kind, missing, infinite))


def categorical_column(rng: np.random.Generator, missing: bool) -> Column:
    """Labels of text or whole numbers, in an order of their own; some may never be drawn."""
    n = int(rng.integers(2, 8))
    known = list(rng.permutation(_LABELS)[:n]) if rng.random() < 0.6 else list(rng.permutation(30)[:n] * 10)
    known = [label.item() for label in known]
    drawn = known[: max(2, n - int(rng.integers(3)))]
    return Column(pd.CategoricalDtype(known), tuple(drawn) + (None,) * int(missing))


def _integers(rng: np.random.Generator, limits: np.iinfo[Any]) -> tuple[int, ...]:
    around = [0, 0, 0, 100, 2**24, -(2**24), 2**31, 2**53, -(2**53), 2**60]
    fitting = [center for center in around if limits.min <= center - 4 and center + 12 <= limits.max]
    center = int(rng.choice(fitting or [20]))
    n = int(rng.integers(2, 12))
    step = int(rng.choice([1, 1, 1, 3])) if abs(center) < 2**55 else int(rng.choice([1, 64, 2**34]))
    return tuple(center + step * i for i in range(n) if limits.min <= center + step * i <= limits.max)


def _floats(rng: np.random.Generator, form: str, missing: bool, infinite: bool) -> tuple[float, ...]:
    n = int(rng.integers(2, 40))
    kind = rng.integers(8)
    if kind <= 2:
        values = rng.normal(size=n).round(1)
    elif kind == 3:
        values = rng.normal(size=n)
    elif kind == 4:
        values = rng.integers(0, 3, size=n).astype(float)
    elif kind == 5:  # neighbours that float32 does not tell apart
        values = float(rng.choice([1.0, 2.0**24, 2.0**53])) * (1 + rng.integers(0, 9, n) * 2.0**-25)
    elif kind == 6:  # beside LightGBM's zero
        values = rng.choice(_SPECIAL[:7], size=n)
    else:
        values = rng.normal(size=n) * 10.0 ** rng.integers(-30, 30)
    if form == "float32":
        values = values.astype(np.float32)
    pool = [float(value) for value in values]
    pool += [np.nan] * (int(rng.integers(1, 1 + max(2, n // 3))) if missing else 0)
    pool += [np.inf, -np.inf] if infinite else []
    return tuple(pool)


def sample(rng: np.random.Generator, table: Table, n_rows: int) -> tuple[np.ndarray, Rows]:
    """Positions (n_rows, n_features) in the pools, and the rows."""
    positions = np.stack([rng.integers(len(c.pool), size=n_rows) for c in table.columns], axis=1)
    values = []
    for column, position in zip(table.columns, positions.T, strict=True):
        pool = np.empty(len(column.pool), dtype=object)
        pool[:] = column.pool
        values.append(pool[position])
    if table.form == "frame":
        typed = [pd.Series(v, dtype=c.dtype) for v, c in zip(values, table.columns, strict=True)]
        return positions, pd.DataFrame({f"c{i}": series for i, series in enumerate(typed)})
    return positions, np.stack(values, axis=1).astype(table.form)


def target(rng: np.random.Generator, table: Table, positions: np.ndarray) -> np.ndarray:
    """A number per row: an effect per value, products of two, noise."""
    effects = [rng.normal(size=len(c.pool)) for c in table.columns]
    parts = np.stack([e[p] for e, p in zip(effects, positions.T, strict=True)], axis=1)
    noise = rng.normal(size=len(positions)) * rng.choice([0.0, 0.1, 1.0])
    return parts.sum(axis=1) + parts[:, 0] * parts[:, -1] + noise


def classes(y: np.ndarray, n: int) -> np.ndarray:
    """Labels 0 to n - 1 by rank, so that each is there."""
    return np.argsort(np.argsort(y, kind="stable"), kind="stable") * n // len(y)


def beside_thresholds(
    rng: np.random.Generator, table: Table, admits: Admits, thresholds: list[np.ndarray]
) -> Table:
    """The same table with pools that hold thresholds, their neighbours, and values that are special."""
    columns = []
    for column, cuts in zip(table.columns, thresholds, strict=True):
        if column.is_categorical or column.is_text or column.dtype in ("bool", "boolean"):
            columns.append(column)
            continue
        cuts = rng.permutation(cuts[np.isfinite(cuts)])[:6]
        more = _whole(column, cuts) if column.is_integer else _neighbours(column, admits, cuts)
        columns.append(column._replace(pool=(*column.pool, *more)))
    return table._replace(columns=tuple(columns))


def _whole(column: Column, cuts: np.ndarray) -> list[int]:
    limits = np.iinfo(str(column.dtype).lower() if str(column.dtype) != "object" else "int64")
    near = [
        int(edge) + shift for cut in cuts for edge in (np.floor(cut), np.ceil(cut)) for shift in (-1, 0, 1)
    ]
    return [value for value in near if limits.min <= value <= limits.max]


def _neighbours(column: Column, admits: Admits, cuts: np.ndarray) -> list[float]:
    with np.errstate(over="ignore", under="ignore"):
        narrow = cuts.astype(np.float32)
        near = [cuts, narrow]
        for infinity in (np.inf, -np.inf):
            near += [np.nextafter(cuts, infinity), np.nextafter(narrow, np.float32(infinity))]
        found = np.concatenate([np.asarray(part, dtype=np.float64) for part in near])
        found = np.concatenate([found, _SPECIAL, _BEYOND if admits.infinite else []])
        if str(column.dtype) == "float32":
            found = found.astype(np.float32).astype(np.float64)
    if not admits.infinite:
        found = found[np.abs(found) < np.finfo(np.float32).max]
    return found.tolist()


def take(rows: Rows, index: np.ndarray) -> Rows:
    return rows.iloc[index].reset_index(drop=True) if isinstance(rows, pd.DataFrame) else rows[index]


def hybrids(rows: Rows, background: Rows, present: np.ndarray) -> Rows:
    """For each coalition of columns (n_coalitions, n_columns), row and background row, in this order, a hybrid."""
    coalition, row, other = (part.ravel() for part in np.indices((len(present), len(rows), len(background))))
    source = np.where(present[coalition], row[:, None], len(rows) + other[:, None])
    if not isinstance(rows, pd.DataFrame):
        return np.concatenate([rows, background])[source, np.arange(rows.shape[1])]
    both = pd.concat([rows, background], ignore_index=True)
    columns = {name: both[name].take(source[:, i]).reset_index(drop=True) for i, name in enumerate(both)}
    return pd.DataFrame(columns)
