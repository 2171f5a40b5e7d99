"""Means of weighted rows with their errors, from power sums that are updated block by block."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import InputError
from fouriershap._base.messages import truncated_repr

Floats = NDArray[np.float64]
_IN_CACHE = 1 << 15  # numbers summed at a time
_MOST_SKEW = 0.6  # of a mean; beyond it the correction does more harm than good


class Moments:
    """Sums over rows of w^k a^j, for the mean of weighted rows and its first three cumulants.

    Either all blocks have weights or none has. Values are summed about the mean of the first block, so that cubes do
    not cancel.
    """

    def __init__(self) -> None:
        self.n_rows = 0
        self._shift: Floats | None = None
        self._weight = np.zeros(5)  # sums of w^k
        self._sums: dict[tuple[int, int], Floats] = {}

    def add(self, values: Floats, weights: Floats | None = None) -> None:
        """Add rows (n_rows, ...), with weights (n_rows,) or None for equal ones."""
        if not len(values):
            return
        if self._shift is None:
            self._shift = values.mean(axis=0)
        self.n_rows += len(values)
        step = max(1, _IN_CACHE // max(values[0].size, 1))
        for first in range(0, len(values), step):
            part = slice(first, first + step)
            self._add(values[part] - self._shift, None if weights is None else weights[part])

    def _add(self, centred: Floats, weights: Floats | None) -> None:
        square = centred * centred
        factors: list[tuple[Floats, Floats | None]]
        factors = [(centred, None), (square, None), (square, centred), (square, square)]
        for k in (1, 2, 3, 4):
            power = None if weights is None else weights**k
            self._weight[k] += len(centred) if power is None else power.sum()
            # Without weights the sums of a^j are the same for all k: add each once.
            for j in range(1 if weights is not None else k, k + 1):
                found = _sum_of(*factors[j - 1], power)
                self._sums[k, j] = self._sums[k, j] + found if (k, j) in self._sums else found

    def _sum(self, k: int, j: int) -> Floats:
        return self._sums[k, j] if (k, j) in self._sums else self._sums[j, j]

    @property
    def weight(self) -> float:
        """Sum of the weights."""
        return float(self._weight[1])

    @property
    def mean(self) -> Floats:
        assert self._shift is not None
        return np.asarray(self._shift + self._sum(1, 1) / self._weight[1])

    def error(self) -> MeanError:
        """Return the error of the mean of rows that are drawn together with their weights."""
        w1, w2, w3, w4 = self._weight[1:]
        d = self._sum(1, 1) / w1
        n = w1 * w1 / w2  # the effective number of rows
        second = self._sum(2, 2) - 2 * d * self._sum(2, 1) + d * d * w2
        third = self._sum(3, 3) - 3 * d * self._sum(3, 2) + 3 * d * d * self._sum(3, 1) - d**3 * w3
        if n - 1 < 1e-9:
            unknown = np.full_like(d, np.nan)
            return MeanError(unknown, unknown, 0.0, np.zeros_like(d))
        # A spread below the rounding error of the sums is noise.
        second = np.where(second <= 1e-14 * (np.abs(self._sum(2, 2)) + d * d * w2), 0.0, second)
        fourth = self._sum(4, 4) - 4 * d * self._sum(4, 3) + 6 * d * d * self._sum(4, 2)
        fourth += d**4 * w4 - 4 * d**3 * self._sum(4, 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            excess = np.where(second > 0, n * fourth / second**2 - 3, 0.0)
        if n > 4:  # Fisher's correction: few rows seldom show the tails
            excess = (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * excess + 6)
        robust_freedom = (n - 1) / (1 + np.maximum(excess, 0.0) / 2)
        variance, third = np.asarray(second / w1**2 * n / (n - 1)), np.asarray(third / w1**3)
        return MeanError(variance, third, n - 1, np.asarray(robust_freedom))


def _sum_of(values: Floats, times: Floats | None, weights: Floats | None) -> Floats:
    """Return the sum over rows of products, without holding the products."""
    if times is None:
        return np.asarray(values.sum(axis=0) if weights is None else np.tensordot(weights, values, 1))
    if weights is None:
        return np.asarray(np.einsum("i...,i...->...", values, times))
    return np.asarray(np.einsum("i,i...,i...->...", weights, values, times))


@dataclass(frozen=True, eq=False)
class MeanError:
    """Variance and third cumulant of a mean, NaN where unknown, and their degrees of freedom.

    ``freedom`` holds for normal rows; ``robust_freedom`` follows from the rows' own fourth moments, and is smaller if
    few rows have most of the spread.
    """

    variance: Floats
    third: Floats
    freedom: float
    robust_freedom: Floats


def interval(estimate: Floats, errors: list[MeanError], level: float) -> tuple[Floats, Floats]:
    """Return the ends of the interval of a sum of independent means.

    Student's interval, with Welch's degrees of freedom from the robust ones of each mean, and Hall's correction for
    skewness. It agrees with a bootstrap of the rows' contributions. NaN if a mean is of one row.
    """
    variance = np.sum([e.variance for e in errors], axis=0)
    third = np.sum([e.third for e in errors], axis=0)
    spread = np.sqrt(variance)
    with np.errstate(divide="ignore", invalid="ignore"):
        welch = np.sum([e.variance**2 / np.maximum(e.robust_freedom, 1e-9) for e in errors], axis=0)
        freedom = np.where(welch > 0, variance**2 / welch, np.inf)
        skew = np.where(variance > 0, third / variance**1.5, 0.0)
    z = NormalDist().inv_cdf(0.5 + level / 2)
    t = student_quantile(z, freedom)
    skew_shift = np.clip(skew, -_MOST_SKEW, _MOST_SKEW) * (2 * z * z + 1) / 6
    return np.asarray(estimate - (t - skew_shift) * spread), np.asarray(estimate + (t + skew_shift) * spread)


def student_quantile(z: float, freedom: Floats) -> Floats:
    """Return Student's quantile from the normal one, by the Cornish-Fisher series in 1 / freedom."""
    v = np.maximum(freedom, 1.0)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return np.asarray(z + terms[0] / v + terms[1] / v**2 + terms[2] / v**3)


def upper_tail(estimate: Floats, error: MeanError) -> Floats:
    """Return the probability of a mean at least this large if the true one is 0; NaN if the error is unknown."""
    normal = NormalDist()
    with np.errstate(divide="ignore", invalid="ignore"):
        score = np.where(error.variance > 0, estimate / np.sqrt(error.variance), 0.0)
        skew = np.where(error.variance > 0, error.third / error.variance**1.5, 0.0)
        skew_shift = np.clip(skew, -_MOST_SKEW, _MOST_SKEW)
        v = max(error.freedom, 1.0)
        # From Student's to the normal scale, and from the skewed to the symmetric one.
        score = np.sign(score) * np.sqrt(v * np.log1p(score**2 / v)) * (1 - 1 / (4 * v))
        score = score + skew_shift * (2 * np.minimum(score**2, 4.0) + 1) / 6
    flat = [normal.cdf(-s) if np.isfinite(s) else np.nan for s in np.ravel(score).tolist()]
    tail = np.reshape(flat, np.shape(score))
    return np.where(np.isnan(error.variance), np.nan, tail)


def check_level(level: Any) -> float | None:
    """Return the coverage of intervals, None for no intervals."""
    if level is None:
        return None
    is_number = isinstance(level, int | float | np.floating) and not isinstance(level, bool)
    if not is_number or not 0.5 <= float(level) < 1:
        raise InputError(
            f"level is {truncated_repr(level)}; give a number from 0.5 to below 1, or None for no intervals."
        )
    return float(level)
