"""The `encode` kernels in NumPy: what `encode.cpp` must compute. Shapes and meanings are documented here."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Levels(NamedTuple):
    """Sorted levels of every feature, among which codes are searched.

    Attributes
    ----------
    tiers, tier_start : float32 or float64, (n_features,) int64
        The sorted levels of feature f are the first ``n_levels[f]`` from ``tier_start[f]`` on (what follows
        them serves the native search).
    n_levels : (n_features,) int64
    categorical : (n_features,) bool
        Where False, the code is the number of levels <= the value. Where True, it is the position of the
        value, cut to an integer, among the levels, or ``n_levels`` where it is not among them.
    """

    tiers: NDArray[Any]
    tier_start: NDArray[np.int64]
    n_levels: NDArray[np.int64]
    categorical: NDArray[np.bool_]


def encode32(levels: Levels, rows: NDArray[Any], codes: NDArray[np.int32]) -> bool:
    """Turn values into codes, and return whether any value is missing (NaN).

    Parameters
    ----------
    rows : (n_rows, n_features), of the type of the levels
    codes : (n_features, >= n_rows) int32, written
        A missing value becomes ``n_levels + 1``.
    """
    for f, line in enumerate(codes):
        first = levels.tier_start[f]
        mine = levels.tiers[first : first + levels.n_levels[f]]
        column = rows[:, f]
        if levels.categorical[f]:
            whole = np.trunc(column)
            position = np.searchsorted(mine, whole)
            known = np.append(mine, np.nan)[position] == whole
            line[: len(rows)] = np.where(known, position, len(mine))
        else:
            line[: len(rows)] = np.searchsorted(mine, column, side="right")
        line[: len(rows)][np.isnan(column)] = len(mine) + 1
    return bool(np.isnan(rows).any())


def encode(
    levels: Levels,
    rows: NDArray[Any],
    column: NDArray[np.int32],
    codes8: NDArray[np.uint8],
    codes16: NDArray[np.uint16],
) -> bool:
    """Turn values into codes as `encode32` does, and write them to the columns that tables read.

    Parameters
    ----------
    column : (n_features,) int32
        Line of ``codes8`` that takes the feature, ``~line`` of ``codes16`` where negative, the largest int32
        for features that no table reads.
    """
    n_rows = len(rows)
    used = column != np.iinfo(np.int32).max
    codes = np.empty((len(column), n_rows), dtype=np.int32)
    encode32(levels, rows, codes)
    for f in np.flatnonzero(used):
        (codes8[column[f]] if column[f] >= 0 else codes16[~column[f]])[:n_rows] = codes[f]
    return bool(np.isnan(rows[:, used]).any())


def remap(
    codes16: NDArray[np.uint16],
    n_rows: int,
    source: NDArray[np.int32],
    offset: NDArray[np.int64],
    lut: NDArray[np.uint8],
    first_line: int,
    codes8: NDArray[np.uint8],
) -> None:
    """Turn wide codes into bytes, line by line: each new line distinguishes only the cuts of some trees.

    Parameters
    ----------
    codes16 : (n16, stride) uint16
    source : (n,) int32
        The line of ``codes16`` that a new line reads.
    offset, lut : (n,) int64, uint8
        The byte of code c in new line p is ``lut[offset[p] + c]``.
    first_line : int
        New line p is line ``first_line + p`` of ``codes8``.
    """
    for p, line in enumerate(source):
        codes8[first_line + p, :n_rows] = lut[offset[p] + codes16[line, :n_rows].astype(np.int64)]
