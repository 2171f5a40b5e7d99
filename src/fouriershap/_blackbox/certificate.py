"""A certificate of SHAP values: how far those of a representation are from the model's own, at rows that took no part.

What the model has beyond the representation is sampled at these rows. Its squares, less what chance adds to them, have
no bias.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from fouriershap._blackbox.black_box import BlackBox
from fouriershap._blackbox.draws import Ints, Masks
from fouriershap._blackbox.fidelity import Interval
from fouriershap._blackbox.fit import FitResult
from fouriershap._blackbox.hybrid_model import HybridModel
from fouriershap._blackbox.hybrids import hybrid_codes
from fouriershap._blackbox.sampler import Game, Sampler
from fouriershap._blackbox.stand_in import stand_in_of
from fouriershap._rows.pool import Pool
from fouriershap._shapley.engine import Floats

_SHARE, _MOST_SHARE = 0.1, 0.25  # of the budget, usually and at most
_LEAST_ROWS = 8
_LEAST_BUDGET = 500  # of which any is spared
_N_RESAMPLES = 2000
_FEW = 8.0
_LEVEL = (0.025, 0.975)
_AS_MANY = math.sqrt(2.0)  # other rows, as many, have a chance of their own
_WORST = (
    12.0  # in 39 of 40 times, the worst of others is less than so many times that of these (tail index 1.5)
)


class Certified(NamedTuple):
    """R^2 of SHAP values, and the number of rows that it was measured on."""

    interval: Interval
    n_rows: int


def _row_cost(n_players: int) -> int:
    return 2 * max(2 * n_players, 16)


def reserved_queries(budget: int, n_players: int, n_rows: int, n_background: int) -> int:
    """Return the queries that fitting leaves for the certificate of at most ``n_rows`` rows."""
    cost = _row_cost(n_players) + 1
    usual = max(int(_SHARE * budget) // cost, _LEAST_ROWS)
    n_rows = min(n_rows, usual, (int(_MOST_SHARE * budget) - n_background) // cost)
    return n_rows * cost + n_background if n_rows >= 2 and budget >= _LEAST_BUDGET else 0


def certify_values(
    box: BlackBox, model: HybridModel, result: FitResult, rows: Pool, queries: int
) -> Certified:
    """Return R^2 of the representation's SHAP values at some of these rows, with its 95 % interval."""
    cost, n_background = _row_cost(box.n_players) + 1, box.background.n_rows
    rows = rows.rows(np.arange(min(rows.n_rows, (queries - n_background) // cost)))
    joined, encoding = box.background.joined(rows), result.encoding
    codes = encoding.encode(joined, "data")

    def ask(owner: Ints, z: Ints, masks: Masks) -> Floats:
        index = np.where(masks, (n_background + owner)[:, None], z[:, None]).astype(np.int32)
        return model.ask(joined, index, hybrid_codes(codes, encoding.player, index))  # known rows are free

    every = np.arange(joined.n_rows)
    answers = ask(every - n_background, every, np.zeros((len(every), box.n_players), dtype=bool))
    others, own = answers[:n_background], answers[n_background:]
    game = Game(ask, box.index, own, others, box.shares, box.n_players)
    stand_in = stand_in_of(box, result, rows, answers.shape[1])
    assert stand_in is not None  # the rows are of the data, whose levels are known
    values, missed, variance = Sampler(game, 1.0, box.seed).compare(stand_in, (cost - 1) // 2)
    return Certified(_interval(values + missed, missed, variance), rows.n_rows)


def _interval(values: Floats, missed: Floats, variance: Floats) -> Interval:
    """Return R^2 from estimated values, what is missed of them, and the variance of both; all (n_rows, ...).

    The interval is that of R^2 at as many other rows of the same kind.
    """
    n = len(values)
    values, missed, variance = (each.reshape(n, -1) for each in (values, missed, variance))
    centred = values - values.mean(axis=0)
    spread = (centred**2 - (1 - 1 / n) * variance).sum(axis=1)
    error = (missed**2 - variance).sum(axis=1)
    total = float(spread.sum())
    if not total > 1e-24 * float((values**2).sum()):
        return Interval(1.0, 1.0, 1.0) if not missed.any() else Interval(math.nan, -math.inf, 1.0)
    r2 = 1 - float(error.sum()) / total
    rng = np.random.default_rng(0)
    counts = rng.multinomial(n, np.full(n, 1 / n), size=_N_RESAMPLES)
    sums = np.maximum(counts @ spread, 1e-300)
    # The t of each resample: few rows have heavy tails.
    ratio = (counts @ error) / sums
    residual = error - (1 - r2) * spread
    scale = math.sqrt(float((residual**2).sum())) * math.sqrt(n / max(n - 1, 1)) / total
    spreads = counts @ residual**2
    scales = np.sqrt(np.maximum(spreads, 1e-300)) / sums
    t = np.clip((ratio - (1 - r2)) / scales, -8.0, 8.0)
    low_t, high_t = np.quantile(t, _LEVEL)
    scale *= _AS_MANY * (1 + _FEW / n)  # few rows show too little
    # Chance in the sums themselves: squares of about normal estimates.
    chance = (
        math.sqrt(float((2 * variance**2 + 4 * np.maximum(missed**2 - variance, 0) * variance).sum())) / total
    )
    worst = (1 - r2) - min(low_t, -1.96) * scale + _WORST * max(float(error.max()), 0.0) / total
    best = (1 - r2) - max(high_t, 1.96) * scale
    low = min(1 - worst, r2 - 1.96 * chance)
    high = max(1 - best, r2 + 1.96 * chance)
    return Interval(r2, low, min(max(high, r2), max(1.0, r2)))
