"""`Coordinates`: numbers on a scale on which Gaussians describe them, and back."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.headers import require

Floats = NDArray[np.float64]
ARRAYS = ("center", "scale", "values", "scores", "bounds", "discrete")
_MOST_KNOTS = 1024
_LEAST_RANK = 1e-15  # of rows with next to no weight
_FEW_VALUES = 32  # distinct values of a number that is drawn from these alone


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Numbers, centred and scaled; or, of ranks, as the scores that a normal distribution has at their ranks.

    Attributes
    ----------
    center, scale : (n_numbers,) float64
        0 and 1 for ranks.
    values, scores : (n_numbers, n_knots) float64
        Values in ascending order and their normal scores, with straight lines between; no knots where numbers are only
        scaled.
    bounds : (n_numbers, n_knots) float64
        Scores up to which a number has each value, for numbers of few values.
    discrete : (n_numbers,) bool
        Whether only the values of the data are drawn.
    """

    center: Floats
    scale: Floats
    values: Floats
    scores: Floats
    bounds: Floats
    discrete: NDArray[np.bool_]

    @property
    def are_ranks(self) -> bool:
        return bool(self.values.shape[1] > 0)

    def forward(self, numbers: Floats) -> Floats:
        """Return coordinates of numbers (..., n_numbers); missing ones stay NaN."""
        if not self.are_ranks:
            return np.asarray((numbers - self.center) / self.scale)
        out = np.empty_like(numbers)
        for f in range(numbers.shape[-1]):
            out[..., f] = np.interp(numbers[..., f], self.values[f], self.scores[f])
        return out

    def back(self, coordinates: Floats) -> Floats:
        """Return numbers (..., n_numbers)."""
        if not self.are_ranks:
            return np.asarray(coordinates * self.scale + self.center)
        out = np.empty_like(coordinates)
        for f in range(coordinates.shape[-1]):
            if self.discrete[f]:
                at = np.searchsorted(self.bounds[f], coordinates[..., f])
                out[..., f] = self.values[f][np.minimum(at, self.values.shape[1] - 1)]
            else:
                out[..., f] = np.interp(coordinates[..., f], self.scores[f], self.values[f])
        return out

    def verify(self, n_numbers: int) -> None:
        """Raise `FileFormatError` unless the arrays, from a file, are coordinates of so many numbers."""
        knots = self.values.shape
        for name in ARRAYS:
            array = getattr(self, name)
            shape = (n_numbers,) if name in ("center", "scale", "discrete") else knots
            fits = array.shape == shape and array.dtype == ("?" if name == "discrete" else "f8")
            require(fits and len(knots) == 2 and knots[0] == n_numbers, f"{name} does not match its numbers")
        require(np.isfinite(self.center).all() and (self.scale > 0).all(), "a number has no scale")
        require(np.isfinite(self.values).all() and np.isfinite(self.scores).all(), "a knot is not finite")


def scaled(numbers: Floats, weights: Floats) -> Coordinates:
    """Return coordinates that centre and scale numbers (n_rows, n_numbers)."""
    center, scale = _moments(numbers, weights)
    nothing = np.zeros((len(center), 0))
    return Coordinates(center, scale, nothing, nothing, nothing, np.zeros(len(center), dtype=bool))


def ranked(numbers: Floats, weights: Floats) -> Coordinates:
    """Return coordinates in which every number of the data is standard normal."""
    n = numbers.shape[1]
    found = [_scores(numbers[:, f], weights) for f in range(n)]
    most = max((len(each[0]) for each in found), default=0)
    padded = np.zeros((3, n, most))
    for f, each in enumerate(found):
        for part, array in zip(padded, each, strict=True):
            part[f] = np.pad(array, (0, most - len(array)), mode="edge")
    few = [len(values) <= _FEW_VALUES and 2 * len(values) <= len(numbers) for values, *_ in found]
    return Coordinates(np.zeros(n), np.ones(n), padded[0], padded[1], padded[2], np.array(few, dtype=bool))


def _moments(numbers: Floats, weights: Floats) -> tuple[Floats, Floats]:
    known = ~np.isnan(numbers)
    share = weights[:, None] * known
    total = np.maximum(share.sum(axis=0), np.finfo(float).tiny)
    center = (share * np.where(known, numbers, 0.0)).sum(axis=0) / total
    moved = np.where(known, numbers - center, 0.0)
    largest = np.abs(moved).max(axis=0, initial=0.0)  # whose square may overflow
    unit = np.where(largest > 0, largest, 1.0)
    scale = unit * np.sqrt((share * (moved / unit) ** 2).sum(axis=0) / total)
    # Of a constant, whose distance from its mean is rounding.
    scale = np.where(scale > 1e-12 * np.abs(center), scale, np.maximum(np.abs(center), 1.0))
    return center, scale


def _scores(numbers: Floats, weights: Floats) -> tuple[Floats, Floats, Floats]:
    """Return distinct values, the normal scores of their ranks, and the scores up to which they reach."""
    known = ~np.isnan(numbers)
    if not known.any():
        return np.zeros(1), np.zeros(1), np.full(1, np.inf)
    values, place = np.unique(numbers[known], return_inverse=True)
    share = np.bincount(place, weights[known])
    values, share = values[share > 0], share[share > 0]
    upper = np.cumsum(share) / share.sum()
    middle = np.clip(upper - share / share.sum() / 2, _LEAST_RANK, 1 - _LEAST_RANK)
    kept = np.arange(len(values))
    if len(kept) > _MOST_KNOTS:  # the outermost ones, and those between at equal steps
        kept = np.unique(np.linspace(0, len(values) - 1, _MOST_KNOTS).round().astype(int))
    normal = NormalDist()
    scores = np.array([normal.inv_cdf(rank) for rank in middle[kept].tolist()])
    bounds = np.array([normal.inv_cdf(rank) if rank < 1 else np.inf for rank in upper[kept].tolist()])
    bounds[-1] = np.inf
    return values[kept], scores, bounds
