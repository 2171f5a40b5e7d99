"""Shapley values of one cooperative game from few queries, with standard errors.

Values depend on the odd part of a game alone, so coalitions are asked in pairs with their complements: sizes evenly,
and whole sizes where most coalitions would be asked anyway. A Gaussian process is fitted to the pairs (`game_kernel`);
a regression of its errors at pairs that were left out corrects its values as far as these exceed chance.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, islice
from math import comb, factorial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriershap._blackbox.game_kernel import Floats, GameKernel

Coalitions = NDArray[np.bool_]
_MOST_SAMPLED = 0.3  # share of a size's coalitions beyond which all are asked
_SHARE = 0.25  # of an error of the total that counts as uncertain
MOST_FITTED = 2500  # pairs that the process is fitted to


class Pairs(NamedTuple):
    """Coalitions that are asked together with their complements."""

    coalitions: Coalitions  # (m, n_players)
    weights: Floats  # (m,) of the regression that gives Shapley values, were all pairs asked
    missing: Floats  # (m,) share of the pairs of these sizes that are not asked


class Estimate(NamedTuple):
    """Shapley values and their variances, (n_players,), and the process that was fitted to the odd part."""

    values: Floats
    variances: Floats
    odd: GameKernel | None


def all_coalitions(n_players: int) -> Coalitions:
    """Return all coalitions, the last player's membership changing fastest."""
    return (np.arange(2**n_players)[:, None] >> np.arange(n_players)[::-1] & 1).astype(bool)


def exact_interactions(values: Floats, size: int) -> Floats:
    """Return the Shapley interaction index of all sets of this size, (n_sets, n_outputs); size 1: Shapley values.

    ``values`` (2**n_players, n_outputs) belong to `all_coalitions`.
    """
    return np.stack([np.einsum("so,s->o", d, w) for d, w in _differences(values, size, -1.0)])


def exact_variances(variances: Floats) -> Floats:
    """Return the variances of Shapley values, given those of the values of `all_coalitions`."""
    return np.stack([np.einsum("so,s->o", d, w**2) for d, w in _differences(variances, 1, 1.0)])


def _differences(values: Floats, size: int, sign: float) -> Iterator[tuple[Floats, Floats]]:
    """Yield, for each set, the values with its players plus ``sign`` times those without, and the others' weights."""
    n = len(values).bit_length() - 1
    cube, others = values.reshape(*(2,) * n, -1), n - size
    weights = [factorial(k) * factorial(others - k) / factorial(others + 1) for k in range(others + 1)]
    by_coalition = np.array(weights)[all_coalitions(others).sum(axis=1)]
    for players in combinations(range(n), size):
        difference = cube
        for axis in reversed(players):
            difference = np.asarray(difference.take(1, axis) + sign * difference.take(0, axis))
        yield difference.reshape(len(by_coalition), -1), by_coalition


_COUNTLESS = 10**15  # coalitions of one size: more than anybody asks


def draw_pairs(n_players: int, n_pairs: int, rng: np.random.Generator) -> Pairs:
    """Draw coalitions of at most half of the players: no pair twice, sizes evenly, small sizes whole."""
    sizes = np.arange(1, n_players // 2 + 1)
    is_half = 2 * sizes == n_players  # a coalition and its complement have the same size
    totals = np.array([min(comb(n_players, k), _COUNTLESS) for k in sizes.tolist()], dtype=float) / (
        1 + is_half
    )
    counts = _share_out(totals, 2.0 - is_half, n_pairs, rng)
    drawn, weights, missing = [], [], []
    for size, half, total, count in zip(
        sizes.tolist(), is_half.tolist(), totals.tolist(), counts.tolist(), strict=True
    ):
        if count == total:  # of half of the players, those with the first
            players = list(islice(combinations(range(n_players), size), count))
            drawn.append(_members(np.array(players), n_players))
        else:
            drawn.append(_draw_size(n_players, size, half, count, rng))
        weight = (2.0 - half) / (size * (n_players - size))
        weights.append(np.full(count, weight / max(count, 1)))
        missing.append(np.full(count, 1 - count / total))
    return Pairs(np.concatenate(drawn), np.concatenate(weights), np.concatenate(missing))


def _share_out(totals: Floats, shares: Floats, n_pairs: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return how many pairs of each size to draw: all of a size, or in proportion to ``shares``."""
    left, quota, is_open = float(min(n_pairs, totals.sum())), np.zeros(len(totals)), shares > 0
    while is_open.any():
        even = left * shares / shares[is_open].sum()
        whole = np.flatnonzero(is_open & (even >= _MOST_SAMPLED * totals) & (totals <= left))
        if not len(whole):
            quota[is_open] = np.minimum(even, totals)[is_open]
            break
        quota[whole[0]] = totals[whole[0]]
        left -= totals[whole[0]]
        is_open[whole[0]] = False
    # Round so that the sum stays: the running sum from a random place on.
    order = rng.permutation(len(quota))
    ends = np.floor(np.cumsum(quota[order]) + rng.random() + 1e-9)
    counts = np.empty(len(quota), dtype=np.int64)
    counts[order] = np.diff(ends, prepend=0.0)
    return np.minimum(counts, totals.astype(np.int64)) if len(totals) else counts


def _draw_size(n_players: int, size: int, is_half: bool, count: int, rng: np.random.Generator) -> Coalitions:
    """Draw coalitions of one size; players are dealt from shuffled decks, so that each is drawn about equally often."""
    found: dict[bytes, Coalitions] = {}
    dealt = 1 if is_half else n_players // size
    while len(found) < count:
        decks = np.argsort(rng.random((-(-(count - len(found)) // dealt), n_players)), axis=1)
        for row in _members(decks[:, : dealt * size].reshape(-1, size), n_players):
            row = ~row if is_half and not row[0] else row
            found.setdefault(row.tobytes(), row)
    return np.array(list(found.values())[:count], dtype=bool).reshape(count, n_players)


def _members(players: NDArray[np.int64], n_players: int) -> Coalitions:
    out = np.zeros((len(players), n_players), dtype=bool)
    np.put_along_axis(out, players, True, axis=1)
    return out


def estimate(
    pairs: Pairs, y: Floats, total: float, known: float | None, rng: np.random.Generator
) -> Estimate:
    """Estimate the Shapley values of a game.

    ``y`` are the differences of values between coalitions and complements, ``total`` that of all players and none.
    ``known`` is the variance of ``total``, None if the game is not noisy.
    """
    n = pairs.coalitions.shape[1]
    signs = np.where(pairs.coalitions, 1.0, -1.0)
    if not (y.any() or total):
        return Estimate(np.zeros(n), np.zeros(n), None)
    fitted = np.arange(len(y))
    if len(y) > MOST_FITTED:
        fitted = np.sort(rng.choice(len(y), MOST_FITTED, replace=False))
    others = np.setdiff1d(np.arange(len(y)), fitted)
    rows = np.concatenate([np.ones((1, n)), signs[fitted]])
    kernel = GameKernel(rows, np.append(total, y[fitted]), True, known or 0.0, rng)
    # Values are an even share of the total plus a weighted sum over all pairs, of which some are not asked.
    sums = n / 4 * pairs.weights[:, None] * (signs - signs.mean(axis=1, keepdims=True))
    missing = pairs.missing if known is None else np.ones(len(y))
    whole = np.concatenate([np.full((1, n), 1 / n), sums[fitted]])
    shares = whole * np.append(float(known is None), 1 - missing[fitted])[:, None]
    values, variances = kernel.shapley(shares)
    variances += kernel.noise @ (shares * whole)
    left_out, expected = (each[1:] for each in kernel.left_out())
    weights = pairs.weights[fitted]
    calibration = max(float(weights @ left_out**2) / float(weights @ expected), 1.0)
    errors = np.empty(len(y))
    errors[fitted] = left_out
    if len(others):
        errors[others] = y[others] - kernel.predict(signs[others])
        values += ((1 - missing) * errors)[others] @ sums[others]
    correction, spread = (missing * errors) @ sums, (missing * errors**2) @ sums**2
    values += max(0.0, 1 - spread.sum() / max((correction**2).sum(), 1e-300)) * correction
    # The process learnt its parameters from few pairs, so it is not believed to be better than what corrects it.
    variances = np.maximum(calibration * variances, spread) * (1 + 2 * n / len(y))
    # Where its total is off, nobody knows whose share of that is how large.
    variances += (_SHARE * kernel.noise[0] * kernel.dual[0] / n) ** 2 + (known or 0.0) / n**2
    return Estimate(values + (total - values.sum()) / n, variances, kernel)
