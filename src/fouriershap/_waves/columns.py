"""`Columns`: how features become the columns that frequencies belong to.

A number has one column, centred and scaled. A label has a column for each of its levels, and missing values have one of
their own. So a row uses exactly one column of each feature, its *slot*, and is 0 in the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.checks import as_floats
from fouriershap._base.errors import InputError
from fouriershap._base.headers import require

Floats = NDArray[np.float64]
LABEL_VALUE = 0.5**0.5  # two labels are as far apart as two numbers one standard deviation apart
ARRAYS = ("center", "scale", "low", "high", "least", "most", "n_levels", "missing", "player")
_TAIL = 0.01  # share of the data rows at either end that are compressed, ...
_BULK = 3.0  # ... but nothing within this many standard deviations


@dataclass(frozen=True, eq=False)
class Columns:
    """Features and their columns.

    Attributes
    ----------
    center, scale : (n_features,) float64
        Centre and scale of numbers.
    low, high : (n_features,) float64
        Bounds of centred and scaled numbers beyond which they grow logarithmically. So a distant row stays near the
        rows that waves were fitted to, and each player still has one factor.
    least, most : (n_features,) float64
        Bounds at which they are clipped: outside its data a model is taken to be as at their edge.
    n_levels : (n_features,) int32
        Number of labels, whose codes are 0 ... n_levels - 1; 0 for numbers.
    missing : (n_features,) bool
        Whether there is a column for missing values.
    player : (n_features,) int32
        The owner of each feature.
    """

    center: Floats
    scale: Floats
    low: Floats
    high: Floats
    least: Floats
    most: Floats
    n_levels: NDArray[np.int32]
    missing: NDArray[np.bool_]
    player: NDArray[np.int32]

    @property
    def n_features(self) -> int:
        return len(self.center)

    @property
    def n_players(self) -> int:
        return int(self.player.max(initial=-1)) + 1

    @cached_property
    def width(self) -> NDArray[np.int64]:
        """Number of columns of each feature."""
        return np.asarray(np.maximum(self.n_levels, 1) + self.missing, dtype=np.int64)

    @cached_property
    def first(self) -> NDArray[np.int64]:
        """First column of each feature."""
        return np.asarray(np.cumsum(self.width) - self.width)

    @property
    def n_columns(self) -> int:
        return int(self.width.sum())

    @cached_property
    def column_player(self) -> NDArray[np.int32]:
        """Owner of each column, (n_columns,)."""
        return np.repeat(self.player, self.width)

    def slots(self, rows: Any) -> tuple[Floats, NDArray[np.int32]]:
        """Return the value (n_rows, n_features) in the slot of each feature, and the column of the slot."""
        codes = as_floats(rows, "rows")
        if codes.ndim != 2 or codes.shape[1] != self.n_features:
            raise InputError(f"rows has shape {codes.shape}; give (n_rows, {self.n_features}).")
        gone = np.isnan(codes)
        if (gone & ~self.missing).any():
            f = int(np.flatnonzero((gone & ~self.missing).any(axis=0))[0])
            raise InputError(
                f"rows has a missing value in feature {f}, but the waves were fitted without any there."
            )
        label = self.n_levels > 0
        known = np.where(gone, 0.0, codes)
        wrong = label & ((known != np.floor(known)) | (known < 0) | (known >= np.maximum(self.n_levels, 1)))
        if wrong.any():
            f = int(np.flatnonzero(wrong.any(axis=0))[0])
            raise InputError(
                f"rows has an unknown label in feature {f}; its codes are 0 to {self.n_levels[f] - 1}."
            )
        scaled = (known - self.center) / self.scale
        inner = np.clip(scaled, self.low, self.high)
        beyond = np.clip(scaled, self.least, self.most) - inner
        values = np.where(label, LABEL_VALUE, inner + np.sign(beyond) * np.log1p(np.abs(beyond)))
        values[gone] = np.broadcast_to(np.where(label, LABEL_VALUE, 1.0), gone.shape)[gone]
        step = np.where(label, known, 0.0)
        step[gone] = np.broadcast_to(np.maximum(self.n_levels, 1), gone.shape)[gone]
        return values, (self.first + step).astype(np.int32)

    def design(self, rows: Any, dtype: Any = np.float32) -> NDArray[Any]:
        """Return all columns (n_rows, n_columns)."""
        values, slot = self.slots(rows)
        if self.n_columns == self.n_features:  # one per feature
            return values.astype(dtype)
        out = np.zeros((len(values), self.n_columns), dtype=dtype)
        np.put_along_axis(out, slot.astype(np.int64), values.astype(dtype), axis=1)
        return out

    def verify(self) -> None:
        """Raise `FileFormatError` unless the arrays, read from a file, are consistent."""
        kinds = {"n_levels": "i4", "missing": "?", "player": "i4"}
        for name in ARRAYS:
            array, kind = getattr(self, name), np.dtype(kinds.get(name, "f8"))
            fits = array.dtype == kind and array.shape == self.center.shape and array.ndim == 1
            require(fits, f"{name} does not match its features")
        finite = np.isfinite(self.center).all() and np.isfinite(self.scale).all() and (self.scale > 0).all()
        require(finite, "a number has no center or scale")
        in_order = (self.least <= self.low) & (self.low <= self.high) & (self.high <= self.most)
        require(in_order.all(), "a number has no range")
        require((self.n_levels >= 0).all(), "a label has a negative number of levels")
        players = np.unique(self.player)
        require(np.array_equal(players, np.arange(len(players))), "its players are not numbered from 0")


def number_columns(n_features: int) -> Columns:
    """Return columns of plain numbers, each a player of its own."""
    zeros, ends = np.zeros(n_features), np.full(n_features, np.inf)
    levels, missing = np.zeros(n_features, dtype=np.int32), np.zeros(n_features, dtype=bool)
    players = np.arange(n_features, dtype=np.int32)
    return Columns(zeros, np.ones(n_features), -ends, ends, -ends, ends, levels, missing, players)


def columns_of(
    codes: Floats, n_levels: NDArray[np.int32], missing: NDArray[np.bool_], player: NDArray[np.int32]
) -> Columns:
    """Return columns for data rows, by which numbers are centred and scaled.

    Parameters
    ----------
    codes : (n_rows, n_features) float64
        NaN for missing values.
    """
    known = ~np.isnan(codes)
    count = np.maximum(known.sum(axis=0), 1)
    zeroed = np.where(known, codes, 0.0)
    # Divided by the largest first, since squares of huge numbers overflow.
    size = np.maximum(np.abs(zeroed).max(axis=0, initial=0.0), np.finfo(float).tiny)
    center = (zeroed / size).sum(axis=0) / count
    spread = np.where(known, zeroed / size - center, 0.0)
    scale = np.sqrt((spread**2).sum(axis=0) / count)
    center, scale = center * size, scale * size
    scale[~(scale > 1e-12 * np.abs(center))] = 1.0  # a constant
    center[n_levels > 0], scale[n_levels > 0] = 0.0, 1.0
    low, high = np.full((2, len(center)), np.inf) * [[-1], [1]]
    least, most = low.copy(), high.copy()
    for f in np.flatnonzero((n_levels == 0) & known.any(axis=0)):
        values = (codes[known[:, f], f] - center[f]) / scale[f]
        least[f], low[f], high[f], most[f] = np.quantile(values, [0.0, _TAIL, 1 - _TAIL, 1.0])
    low, high = np.minimum(low, -_BULK), np.maximum(high, _BULK)
    least, most = np.minimum(least, low), np.maximum(most, high)
    return Columns(center, scale, low, high, least, most, n_levels, missing, player)
