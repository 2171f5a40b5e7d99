"""The `encode` kernels in NumPy: what `encode.cpp` must compute. Shapes and meanings are documented here."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def encode32(
    rows: NDArray[Any],
    tiers: NDArray[Any],
    tier_start: NDArray[np.int64],
    n_levels: NDArray[np.int64],
    categorical: NDArray[np.bool_],
    codes: NDArray[np.int32],
) -> bool:
    """Turn values into codes; returns whether any value is missing (NaN).

    Parameters
    ----------
    rows : (n_rows, n_features) float32 or float64
    tiers, tier_start : same dtype, (n_features,) int64
        The sorted levels of feature f are the first ``n_levels[f]`` from ``tier_start[f]`` on (what follows
        them serves the native search).
    categorical : (n_features,) bool
        Where False, the code is the number of levels <= the value. Where True, it is the position of the
        value, cut to an integer, among the levels, or ``n_levels`` where it is none of them.
    codes : (n_features, >= n_rows) int32, written
        A missing value becomes ``n_levels + 1``.
    """
    for f, line in enumerate(codes):
        levels = tiers[tier_start[f] : tier_start[f] + n_levels[f]]
        column = rows[:, f]
        if categorical[f]:
            whole = np.trunc(column)
            position = np.searchsorted(levels, whole)
            known = np.append(levels, np.nan)[position] == whole
            line[: len(rows)] = np.where(known, position, len(levels))
        else:
            line[: len(rows)] = np.searchsorted(levels, column, side="right")
        line[: len(rows)][np.isnan(column)] = len(levels) + 1
    return bool(np.isnan(rows).any())


def encode(
    rows: NDArray[Any],
    tiers: NDArray[Any],
    tier_start: NDArray[np.int64],
    n_levels: NDArray[np.int64],
    categorical: NDArray[np.bool_],
    column: NDArray[np.int32],
    codes8: NDArray[np.uint8],
    codes16: NDArray[np.uint16],
) -> bool:
    """Turn values into codes as `encode32` does, and write them where tables read them.

    Parameters
    ----------
    column : (n_features,) int32
        Line of ``codes8`` that takes the feature, ``~line`` of ``codes16`` where negative, the largest int32
        for features that no table reads.
    """
    n_rows = len(rows)
    used = column != np.iinfo(np.int32).max
    codes = np.empty((len(column), n_rows), dtype=np.int32)
    encode32(rows, tiers, tier_start, n_levels, categorical, codes)
    for f in np.flatnonzero(used):
        (codes8[column[f]] if column[f] >= 0 else codes16[~column[f]])[:n_rows] = codes[f]
    return bool(np.isnan(rows[:, used]).any())


def pages(
    codes16: NDArray[np.uint16],
    n_rows: int,
    source: NDArray[np.int32],
    offset: NDArray[np.int64],
    lut: NDArray[np.uint8],
    first_line: int,
    codes8: NDArray[np.uint8],
) -> None:
    """Turn wide codes into bytes, page by page: each page knows only the cuts of some trees.

    Parameters
    ----------
    codes16 : (n16, stride) uint16
    source : (n_pages,) int32
        The line of ``codes16`` that a page reads.
    offset, lut : (n_pages,) int64, uint8
        The byte of code c in page p is ``lut[offset[p] + c]``.
    first_line : int
        Page p writes line ``first_line + p`` of ``codes8``.
    """
    for p, line in enumerate(source):
        codes8[first_line + p, :n_rows] = lut[offset[p] + codes16[line, :n_rows].astype(np.int64)]
