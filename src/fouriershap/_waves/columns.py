"""`Columns`: how features become the columns that frequencies belong to.

A number has one column, centred and scaled. A label has a column for each of its levels, a missing value one of its
own. So a row shows exactly one column of each feature, its *slot*, and is 0 in the others.
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
_TAIL = 0.01  # share of the data rows on either side that are taken as far out, ...
_BULK = 3.0  # ... but nothing within so many standard deviations


@dataclass(frozen=True, eq=False)
class Columns:
    """Features and their columns.

    Attributes
    ----------
    center, scale : (n_features,) float64
        Of numbers: where they are 0, and by how much they are 1.
    low, high : (n_features,) float64
        Of centred and scaled numbers: beyond these they grow by their logarithm. So a row far out is not beyond all
        that waves were fitted to, and players keep one factor each.
    least, most : (n_features,) float64
        Likewise: nothing is beyond these. Outside of its data a model is taken to be as at their edge.
    n_levels : (n_features,) int32
        Of labels, whose codes are 0 ... n_levels - 1; 0 for numbers.
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
        """Columns of each feature."""
        return np.asarray(np.maximum(self.n_levels, 1) + self.missing, dtype=np.int64)

    @cached_property
    def first(self) -> NDArray[np.int64]:
        """The first column of each feature."""
        return np.asarray(np.cumsum(self.width) - self.width)

    @property
    def n_columns(self) -> int:
        return int(self.width.sum())

    @cached_property
    def column_player(self) -> NDArray[np.int32]:
        """(n_columns,) the owner of each column."""
        return np.repeat(self.player, self.width)

    def slots(self, rows: Any) -> tuple[Floats, NDArray[np.int32]]:
        """The value (n_rows, n_features) in the one column that a feature shows, and which column that is."""
        codes = as_floats(rows, "rows")
        if codes.ndim != 2 or codes.shape[1] != self.n_features:
            raise InputError(f"rows has shape {codes.shape}; give (n_rows, {self.n_features}).")
        gone = np.isnan(codes)
        if (gone & ~self.missing).any():
            f = int(np.flatnonzero((gone & ~self.missing).any(axis=0))[0])
            raise InputError(f"rows has a missing value in feature {f}, where these waves know none.")
        label = self.n_levels > 0
        known = np.where(gone, 0.0, codes)
        wrong = label & ((known != np.floor(known)) | (known < 0) | (known >= np.maximum(self.n_levels, 1)))
        if wrong.any():
            f = int(np.flatnonzero(wrong.any(axis=0))[0])
            raise InputError(
                f"rows has a label in feature {f} that is none of its {self.n_levels[f]} codes, which begin at 0."
            )
        values = np.where(label, LABEL_VALUE, self._drawn_in((known - self.center) / self.scale))
        values[gone] = np.broadcast_to(np.where(label, LABEL_VALUE, 1.0), gone.shape)[gone]
        step = np.where(label, known, 0.0)
        step[gone] = np.broadcast_to(np.maximum(self.n_levels, 1), gone.shape)[gone]
        return values, (self.first + step).astype(np.int32)

    def _drawn_in(self, values: Floats) -> Floats:
        """Values with their tails drawn in."""
        inner = np.clip(values, self.low, self.high)
        beyond = np.clip(values, self.least, self.most) - inner
        return np.asarray(inner + np.sign(beyond) * np.log1p(np.abs(beyond)))

    def design(self, rows: Any, dtype: Any = np.float32) -> NDArray[Any]:
        """All columns (n_rows, n_columns)."""
        values, slot = self.slots(rows)
        if self.n_columns == self.n_features:  # every feature has one
            return values.astype(dtype)
        out = np.zeros((len(values), self.n_columns), dtype=dtype)
        np.put_along_axis(out, slot.astype(np.int64), values.astype(dtype), axis=1)
        return out

    def verify(self) -> None:
        """Raise `FileFormatError` unless the arrays, from a file, describe columns."""
        kinds = {
            "center": "f8",
            "scale": "f8",
            "low": "f8",
            "high": "f8",
            "n_levels": "i4",
            "missing": "?",
            "player": "i4",
        }
        for name, kind in kinds.items():
            array = getattr(self, name)
            fits = array.dtype == np.dtype(kind) and array.shape == self.center.shape and array.ndim == 1
            require(fits, f"{name} is no array of its features")
        finite = np.isfinite(self.center).all() and np.isfinite(self.scale).all() and (self.scale > 0).all()
        require(finite, "a number has no center or scale")
        in_order = (self.least <= self.low) & (self.low <= self.high) & (self.high <= self.most)
        require(in_order.all(), "a number has no range")
        require((self.n_levels >= 0).all(), "a label has fewer levels than none")
        players = np.unique(self.player)
        require(np.array_equal(players, np.arange(len(players))), "its players are not numbered")


def number_columns(n_features: int) -> Columns:
    """Columns of plain numbers, each a player of its own."""
    zeros, ends = np.zeros(n_features), np.full(n_features, np.inf)
    levels, missing = np.zeros(n_features, dtype=np.int32), np.zeros(n_features, dtype=bool)
    players = np.arange(n_features, dtype=np.int32)
    return Columns(zeros, np.ones(n_features), -ends, ends, -ends, ends, levels, missing, players)


def columns_of(
    codes: Floats, n_levels: NDArray[np.int32], missing: NDArray[np.bool_], player: NDArray[np.int32]
) -> Columns:
    """Columns of data rows: numbers are centred and scaled by what these show.

    Parameters
    ----------
    codes : (n_rows, n_features) float64
        NaN for missing values.
    """
    known = ~np.isnan(codes)
    count = np.maximum(known.sum(axis=0), 1)
    zeroed = np.where(known, codes, 0.0)
    size = np.maximum(
        np.abs(zeroed).max(axis=0, initial=0.0), np.finfo(float).tiny
    )  # squares of huge numbers are inf
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
