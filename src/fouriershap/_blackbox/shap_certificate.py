"""A certificate of the SHAP values themselves: what they miss of the model's own, without bias.

R^2 on hybrids is not the accuracy of SHAP values. What the model has beyond the representation has SHAP values of its
own. A permutation between a row and a random background row, with its reverse, estimates them without bias, but with
much noise. The product of two independent estimates has the expectation of their square, and no noise in it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import InputError
from fouriershap._base.units import unit_of
from fouriershap._blackbox.fidelity import UNSEEN, Interval
from fouriershap._blackbox.fit import FitResult
from fouriershap._blackbox.hybrid_model import HybridModel
from fouriershap._blackbox.hybrids import hybrid_codes
from fouriershap._blackbox.paths import differing, draw_paths
from fouriershap._rows.pool import Pool

Floats = NDArray[np.float64]
LEAST_ROWS = 8  # for a useful interval
MOST_ROWS = 64  # while fitting
SHARE = 0.1  # of the budget, at most, while fitting
_NORMAL = 1.959964  # its quantile of 97.5 %
_RARE = 0.5  # of what the worst row misses: estimates that meet no rare miss know nothing of their own error either
_ROUNDING = 1e-12  # of the largest answer: values below it count as zero
_HYBRIDS = 100_000  # that are asked at a time


def row_cost(n_players: int) -> int:
    """Return the most queries for a row: two permutations with their reverses, the row, and two background rows."""
    return 4 * max(n_players - 1, 1) + 3


def reserved_queries(budget: int, n_players: int, n_rows: int = MOST_ROWS) -> int:
    """Return the queries that fitting leaves for the certificate; 0 where they suffice for too few rows."""
    if n_rows < 2:
        return 0
    n_rows = min(int(SHARE * budget) // row_cost(n_players), MOST_ROWS)
    return n_rows * row_cost(n_players) if n_rows >= LEAST_ROWS else 0


@dataclass(frozen=True, eq=False)
class _Found:
    """Sums of the estimates of some rows.

    Attributes
    ----------
    r2 : float
        Of the values about their mean; NaN where they do not vary.
    spread : float
        Square sum of the true values about their mean.
    missed : (n_rows,) float64
        Square sum of what is missed.
    between, within : (n_rows,) float64
        Variances that add up to that of ``r2 * spread``: as rows were drawn, too, and given the rows.
    """

    r2: float
    spread: float
    missed: Floats
    between: Floats
    within: Floats


def certify_values(
    model: HybridModel,
    result: FitResult,
    pool: Pool,
    background: tuple[Pool, Floats | None],
    values: Floats,
    queries: int,
    compressed: float,
    rng: np.random.Generator,
    is_sample: bool = False,
) -> Interval:
    """Return R^2 of values (n_rows, n_players, n_outputs) against the model's own, about their mean, with its interval.

    Parameters
    ----------
    pool : Pool
        The rows.
    queries : int
        Most that the model is asked; rows are left out where they are too few for all.
    compressed : float
        What the values miss already since the background is compressed.
    is_sample : bool
        Whether the rows stand for others, which the interval is for, too.
    """
    n_players = result.encoding.n_players
    n_rows = min(pool.n_rows, queries // row_cost(n_players))
    if n_rows < 2:
        least = 2 * row_cost(n_players)
        raise InputError(
            f"queries is {queries}, for {pool.n_rows} rows of {n_players} players; give at least {least} queries and "
            "two rows."
        )
    pairs = max((queries // n_rows - 1) // (2 * max(n_players - 1, 1) + 1), 2)
    chosen = rng.permutation(pool.n_rows)[:n_rows]
    unit = unit_of(values)
    step = max(_HYBRIDS // (pairs * row_cost(n_players)), 1)
    parts = [pool.rows(chosen[i : i + step]) for i in range(0, n_rows, step)]
    found = [_beyond(model, result, part, background, pairs, rng) for part in parts]
    beyond, largest = np.concatenate([each for each, _ in found]), max(size for _, size in found)
    if max(np.abs(values[chosen]).max(), np.abs(beyond).max()) <= _ROUNDING * largest:
        return Interval(1.0, 1.0, 1.0)  # a constant: there is nothing to explain, and nothing is missed
    known = 0.0 if is_sample else n_rows / pool.n_rows
    return _interval(_summed(values[chosen] / unit, beyond / unit), known, compressed)


def _beyond(
    model: HybridModel,
    result: FitResult,
    pool: Pool,
    background: tuple[Pool, Floats | None],
    pairs: int,
    rng: np.random.Generator,
) -> tuple[Floats, float]:
    """Return independent estimates of what the model has beyond the representation, and the size of the largest answer.

    The estimates are (n_rows, pairs, n_players, n_outputs).
    """
    encoding, (rows, weights) = result.encoding, background
    drawn, position = np.unique(rng.choice(rows.n_rows, pool.n_rows * pairs, p=weights), return_inverse=True)
    joined = pool.joined(rows.rows(drawn))
    codes = encoding.encode(joined, "X")
    firsts, others = np.repeat(np.arange(pool.n_rows), pairs), pool.n_rows + position
    differs = differing(codes[firsts], codes[others], encoding.player, encoding.n_players)
    paths = draw_paths(differs, firsts, others, 1, rng)
    points = hybrid_codes(codes, encoding.player, paths.index)
    with model.transient():
        answers = model.ask(joined, paths.index, points)
    estimates = paths.estimates(answers - result.surrogate.predict(points))
    means = estimates.mean(axis=(1, 2)).reshape(pool.n_rows, pairs, *estimates.shape[3:])
    return means, float(np.abs(answers).max())


def _summed(values: Floats, beyond: Floats) -> _Found:
    """Sum up values (n_rows, n_players, n_outputs) and estimates (n_rows, pairs, n_players, n_outputs)."""
    n_rows, pairs, n_players = beyond.shape[:3]
    whole, each = (beyond.sum(axis=1) ** 2).sum(axis=(1, 2)), (beyond**2).sum(axis=(1, 2, 3))
    missed = (whole - each) / (pairs * (pairs - 1))
    mean = beyond.mean(axis=1)
    square = (values**2).sum(axis=(1, 2)) + 2 * (values * mean).sum(axis=(1, 2)) + missed
    centre = (values + mean).mean(axis=(0, 1))
    spread = float(square.sum() - n_rows * n_players * (centre**2).sum())
    if not spread > 0:
        return _Found(math.nan, spread, missed, missed, missed)
    r2 = 1 - float(missed.sum()) / spread
    around = missed - (1 - r2) * square
    between = n_rows / (n_rows - 1) * (around - around.mean()) ** 2
    # What a pair does to r2 * spread, to first order. Of two pairs, the variance of a product is met without bias where
    # their chance is normal; where its tails are heavy it is overrated.
    slope = r2 * mean - (1 - r2) * (values - centre)
    change = 2 * np.einsum("rpjo,rjo->rp", beyond - mean[:, None], slope)
    within = (change**2).sum(axis=1) / (pairs * (pairs - 1))
    return _Found(r2, spread, missed, between, min(within, between, key=np.sum))


def _interval(found: _Found, known: float, compressed: float) -> Interval:
    """Return an interval by Student's t; ``known`` is the share of all rows in question that was looked at.

    Rows that were not looked at may differ from those that were, and some may miss as much as the worst.
    """
    r2 = found.r2
    if not math.isfinite(r2):
        return Interval(math.nan, -math.inf, 1.0)
    variance = known * found.within + (1 - known) * found.between
    error = math.sqrt(float(variance.sum())) / found.spread
    unseen = max((1 - known) * UNSEEN, _RARE) * float(np.abs(found.missed).max()) / found.spread
    margin = _student(_NORMAL, _freedom(variance)) * error
    low, high = r2 - margin - unseen, r2 + margin
    ends = (r2 - compressed, low - compressed, high)
    return Interval(*(float(min(end, 1.0)) for end in ends))


def _freedom(variance: Floats) -> float:
    """Return the degrees of freedom of a sum of variances of one each, by Satterthwaite; at least 2."""
    squares = float((variance**2).sum())
    return max(3 * float(variance.sum()) ** 2 / squares - 2, 2.0) if squares > 0 else 2.0


def _student(z: float, freedom: float) -> float:
    """Return a quantile of Student's t, by its expansion about the normal one, ``z``."""
    first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3
