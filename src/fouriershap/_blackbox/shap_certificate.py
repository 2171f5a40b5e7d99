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
from fouriershap._blackbox.fidelity import N_RESAMPLES, UNSEEN, Interval
from fouriershap._blackbox.fit import Fitted
from fouriershap._blackbox.hybrids import hybrid_codes
from fouriershap._blackbox.oracle import Oracle
from fouriershap._blackbox.paths import differing, draw_paths, pair_means
from fouriershap._rows.pool import Pool

Floats = NDArray[np.float64]
LEAST_ROWS = 8  # that say something
MOST_ROWS = 64  # while fitting
SHARE = 0.1  # of the budget, at most, while fitting
_LEVEL = 0.95


def row_cost(n_players: int) -> int:
    """Most queries for a row: two permutations with their reverses, the row, and two background rows."""
    return 4 * max(n_players - 1, 1) + 3


def reserved_queries(budget: int, n_players: int) -> int:
    """What fitting leaves for the certificate; none where that would be too few rows."""
    n_rows = min(int(SHARE * budget) // row_cost(n_players), MOST_ROWS)
    return n_rows * row_cost(n_players) if n_rows >= LEAST_ROWS else 0


@dataclass(frozen=True, eq=False)
class _Found:
    """By row: the estimated square of what is missed, of the true values, and their sum."""

    missed: Floats
    square: Floats
    total: Floats
    n_players: int

    def r2(self, counts: Floats) -> Floats:
        """R^2 for resamples (n, n_rows) of the rows, by how often each occurs."""
        n = counts.sum(axis=1) * self.n_players
        spread = counts @ self.square - ((counts @ self.total) ** 2 / n[:, None]).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.where(spread > 0, 1 - (counts @ self.missed) / spread, np.nan))


def certify_values(
    oracle: Oracle,
    fitted: Fitted,
    pool: Pool,
    background: tuple[Pool, Floats | None],
    values: Floats,
    queries: int,
    compressed: float,
    rng: np.random.Generator,
) -> Interval:
    """R^2 of values (n_rows, n_players, n_outputs) against the model's own, about the mean of all, with its interval.

    Parameters
    ----------
    pool : Pool
        The rows.
    queries : int
        Most that the model is asked; rows are left out where they are too few for all.
    compressed : float
        What the values miss already since the background is compressed.
    """
    n_players = fitted.encoding.n_players
    n_rows = min(pool.n_rows, queries // row_cost(n_players))
    if n_rows < 2:
        least = 2 * row_cost(n_players)
        raise InputError(
            f"queries is {queries}, for {pool.n_rows} rows of {n_players} players; at least {least} and two rows "
            "say something."
        )
    pairs = max((queries // n_rows - 1) // (2 * max(n_players - 1, 1) + 1), 2)
    chosen = rng.permutation(pool.n_rows)[:n_rows]
    unit = unit_of(values)
    beyond = np.stack(
        [_beyond(oracle, fitted, pool.rows(np.array([i])), background, pairs, rng) for i in chosen]
    )
    found = _summed(values[chosen] / unit, beyond / unit)
    return _interval(found, compressed, rng)


def _beyond(
    oracle: Oracle,
    fitted: Fitted,
    row: Pool,
    background: tuple[Pool, Floats | None],
    pairs: int,
    rng: np.random.Generator,
) -> Floats:
    """Independent estimates (pairs, n_players, n_outputs) of what players have beyond the representation."""
    encoding, (rows, weights) = fitted.encoding, background
    drawn = rng.choice(rows.n_rows, pairs, p=weights)
    joined = row.joined(rows.rows(drawn))
    codes = encoding.encode(joined, "X")
    differs = differing(codes[0], codes[1:], encoding.player, encoding.n_players)
    paths = draw_paths(differs, np.arange(1, pairs + 1), 1, rng)
    points = hybrid_codes(codes, encoding.player, paths.index)
    with oracle.passing():
        answers = oracle.ask(joined, paths.index, points)
    estimates = paths.estimates(answers - fitted.surrogate.predict(points))
    return np.asarray(pair_means(estimates, pairs).mean(axis=(1, 2)))


def _summed(values: Floats, beyond: Floats) -> _Found:
    """Values (n_rows, n_players, n_outputs), estimates (n_rows, pairs, n_players, n_outputs)."""
    pairs = beyond.shape[1]
    whole, each = (beyond.sum(axis=1) ** 2).sum(axis=(1, 2)), (beyond**2).sum(axis=(1, 2, 3))
    missed = (whole - each) / (pairs * (pairs - 1))
    mean = beyond.mean(axis=1)
    square = (values**2).sum(axis=(1, 2)) + 2 * (values * mean).sum(axis=(1, 2)) + missed
    return _Found(missed, square, (values + mean).sum(axis=1), values.shape[1])


def _interval(found: _Found, compressed: float, rng: np.random.Generator) -> Interval:
    """The wider, end by end, of a bootstrap over rows, of Student's t, and of what rows cannot rule out."""
    n = len(found.missed)
    r2 = float(found.r2(np.ones((1, n)))[0])
    if not math.isfinite(r2):
        return Interval(math.nan, -math.inf, 1.0)
    resampled = found.r2(rng.multinomial(n, np.full(n, 1 / n), size=N_RESAMPLES).astype(np.float64))
    resampled = resampled[np.isfinite(resampled)]
    low, high = (
        np.quantile(resampled, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2]) if len(resampled) else (-math.inf, 1.0)
    )
    spread = float(found.square.sum())
    if spread > 0:
        around = found.missed - (1 - r2) * found.square
        reach = (
            _student(n - 1) * math.sqrt(n / (n - 1) * float(((around - around.mean()) ** 2).sum())) / spread
        )
        unseen = UNSEEN * float(np.abs(found.missed).max()) / spread
        low, high = min(low, r2 - math.hypot(reach, unseen)), max(high, r2 + reach)
    ends = (r2 - compressed, low - compressed, high)
    return Interval(*(float(min(end, 1.0)) for end in ends))


def _student(freedom: int) -> float:
    """The 97.5 % quantile of Student's t, by its expansion about the normal one."""
    z = 1.959964
    first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3
