"""What the mean of repeated answers is worth, where a model answers the same row differently."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fouriershap._blackbox.fidelity import Fidelity, Interval

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_Z = 1.96


@dataclass(frozen=True, eq=False)
class Repeats:
    """Answers to the same rows, each asked at least once."""

    count: Ints  # (n,)
    mean: Floats  # (n, n_outputs)
    variance: Floats  # (n, n_outputs) of one answer; of all rows together where a row was asked but once

    def of_output(self, j: int) -> Repeats:
        return Repeats(self.count, self.mean[:, j : j + 1], self.variance[:, j : j + 1])


def ask_in_rounds(
    ask_again: Callable[[Ints], Floats],
    answers: Floats,
    looks: tuple[Ints, Floats],
    n_more: int,
    rng: np.random.Generator,
) -> Repeats:
    """Ask rows again, all of them in each round, in another order, until ``n_more`` queries are spent.

    ``ask_again`` gives fresh answers (m, n_outputs) to the rows at positions (m,); ``answers`` (n, n_outputs) are
    the first ones, ``looks`` positions and answers of what was asked again already.
    """
    n = len(answers)
    count, total, square = np.ones(n, dtype=np.int64), np.zeros_like(answers), np.zeros_like(answers)

    def add(rows: Ints, more: Floats) -> None:
        # Differences from the first answer: sums of squares of the answers themselves would cancel.
        np.add.at(count, rows, 1)
        np.add.at(total, rows, more - answers[rows])
        np.add.at(square, rows, (more - answers[rows]) ** 2)

    add(*looks)
    while n_more > 0:
        rows = rng.permutation(n)[:n_more]
        add(rows, ask_again(rows))
        n_more -= len(rows)
    times, freedom = count[:, None], count[:, None] - 1
    within = square - total**2 / times  # sums of squares around the mean
    pooled = within.sum(axis=0) / max(int(freedom.sum()), 1)
    variance = np.where(freedom > 0, within / np.maximum(freedom, 1), pooled)
    return Repeats(count, answers + total / times, variance)


def certify_mean(repeats: Repeats, weights: Floats, noise: float, n_queries: int) -> Fidelity:
    """Certify the mean answers to all combinations of levels, where the model is noisy.

    ``weights`` (n,): how often hybrids show each combination.
    """
    n, n_outputs = repeats.mean.shape
    found = interval_of_mean(repeats, weights)
    outputs = range(n_outputs) if n_outputs > 1 else ()
    return Fidelity(
        *found,
        n_points=0,
        n_queries=n_queries,
        noise=noise,
        k_fold=found.r2,
        cube=interval_of_mean(repeats, np.full(n, 1 / n)),
        by_output=tuple(interval_of_mean(repeats.of_output(j), weights).r2 for j in outputs),
    )


def interval_of_mean(repeats: Repeats, weights: Floats) -> Interval:
    """Return R^2, with its interval, of the mean answers against their limit after ever more repeats.

    ``weights`` (n,), which add up to 1, say how often each row counts. The mean of row i misses by v_i = (variance
    of an answer) / (number of answers) in the mean square. The true spread is that of the means less what noise adds
    to it. Both ends take the numbers that are not known, the noise and how it fell, at the ends of their own 95 %
    intervals.
    """
    w, v = weights[:, None], repeats.variance / repeats.count[:, None]
    distance = (repeats.mean - (w * repeats.mean).sum(axis=0)) ** 2
    error = float((w * v).sum())
    spread = float((w * distance).sum()) - float((w * (1 - w) * v).sum())
    if error == 0:
        return Interval(1.0, 1.0, 1.0)
    of_error = float((2 * w**2 * v**2).sum())  # variance of what the means miss, around its expectation
    of_estimate = _variance_of_estimate(repeats, weights)
    of_spread = float((w**2 * (4 * distance * v + 2 * v**2)).sum()) + of_estimate
    less, more = (_chi_square(2 * error**2 / of_error, z) for z in (-_Z, _Z))
    least, most = (_chi_square(2 * error**2 / of_estimate, z) for z in (-_Z, _Z))
    reach = _Z * math.sqrt(of_spread)
    worst = _ratio(error * more, least * (spread - reach))
    best = _ratio(error * less, most * (spread + reach))
    r2 = 1 - _ratio(error, spread)
    return Interval(r2, min(1 - worst, r2), max(1 - best, r2))


def _variance_of_estimate(repeats: Repeats, weights: Floats) -> float:
    """Return the variance of the estimated mean square error, a weighted sum of the rows' variances of an answer."""
    freedom = repeats.count - 1
    own = weights / repeats.count
    # Rows that were asked once have the variance of the others, in proportion to what these know of it.
    share = np.where(freedom > 0, own, 0.0) + own[freedom == 0].sum() * freedom / freedom.sum()
    square = (repeats.variance**2).sum(axis=1)
    return float((2 * share**2 * square / np.maximum(freedom, 1))[freedom > 0].sum())


def _chi_square(freedom: float, z: float) -> float:
    """Return a chi-square quantile by its degrees of freedom (Wilson and Hilferty 1931); z is that of the normal."""
    return max(1 - 2 / (9 * freedom) + z * math.sqrt(2 / (9 * freedom)), 0.0) ** 3


def _ratio(error: float, spread: float) -> float:
    return error / spread if spread > 0 else math.inf
