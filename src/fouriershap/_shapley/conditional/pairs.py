"""Coalitions in complementary pairs, and the least squares by which their differences give Shapley values.

Shapley values are the slopes of the linear function nearest to the game, weighted by the kernel of the sizes. They
depend on v(S) - v(not S) alone. Sizes of which the budget covers all coalitions are taken whole, others are sampled
without replacement.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_LEAST = 4  # pairs of a size


@dataclass(frozen=True, eq=False)
class PairedCoalitions:
    """One of each pair of coalitions, in the order in which they are used.

    Attributes
    ----------
    masks : (n_pairs, n_players) bool
    sizes : (n_pairs,) int64
    totals : (n_players // 2 + 1,) float64
        Pairs that there are of each size.
    """

    masks: NDArray[np.bool_]
    sizes: NDArray[np.int64]
    totals: Floats

    @property
    def n_players(self) -> int:
        return int(self.masks.shape[1])

    def first(self, budget: int) -> NDArray[np.int64]:
        """Return positions of pairs for a budget of so many: those of a smaller budget are among them."""
        wanted = _counts(self.n_players, self.totals, budget)
        chosen = [np.flatnonzero(self.sizes == s)[:n] for s, n in enumerate(wanted.tolist())]
        return np.concatenate(chosen)

    def draws(self, chosen: NDArray[np.int64], budget: int, least: int) -> NDArray[np.int64]:
        """Return draws of pairs for a budget: one, as the spread among sampled pairs shows its noise.

        Pairs of a size that is taken whole share its part of the budget; at least so many draws show their noise.
        """
        share = _class_weights(self.n_players) / _class_weights(self.n_players).sum()
        counts = [
            np.bincount(sizes, minlength=len(self.totals)) for sizes in (self.sizes, self.sizes[chosen])
        ]
        will_be, is_whole = (count == self.totals for count in counts)
        shared = least * (
            share * budget / np.maximum(self.totals, 1) // least
        )  # even: what is added has a spread
        wanted = np.where(is_whole, np.maximum(shared, least), np.where(will_be, least, 1))
        return np.asarray(wanted[self.sizes[chosen]].astype(np.int64))

    def solve(
        self, chosen: NDArray[np.int64], differences: Floats, noise: Floats, total: Floats
    ) -> tuple[Floats, Floats]:
        """Return values and standard errors, (n_rows, n_players, n_outputs).

        Parameters
        ----------
        chosen : (n_pairs,) int64
        differences : (n_pairs, n_rows, n_outputs) float64
            v(S) - v(not S).
        noise : (n_pairs, n_rows, n_outputs) float64
            Variances of the differences where they are estimates.
        total : (n_rows, n_outputs) float64
            What the values add up to.
        """
        n, sizes = self.n_players, self.sizes[chosen]
        signs = np.where(self.masks[chosen], 1.0, -1.0)
        count = np.bincount(sizes, minlength=len(self.totals))
        weights = (_class_weights(n) / np.maximum(count, 1))[sizes]
        gram = np.linalg.inv((signs * weights[:, None]).T @ signs)
        ones = gram.sum(axis=1)
        gram -= np.outer(ones, ones) / ones.sum()  # values of what is left add up to 0
        influence = (gram @ signs.T) * weights
        rest = differences - signs.sum(axis=1)[:, None, None] * total / n
        values = np.tensordot(influence, rest, (1, 0))
        missed = rest - np.tensordot(signs, values, (1, 0))
        leverage = (signs * influence.T).sum(axis=1)
        sampled = 1 - count[sizes] / self.totals[sizes]  # 0 where all pairs of a size are there
        chance = sampled / np.maximum(1 - leverage, 1e-9) ** 2
        variance = chance[:, None, None] * missed**2 + (1 - sampled)[:, None, None] * noise
        errors = np.sqrt(np.tensordot(influence**2, variance, (1, 0)))
        return np.moveaxis(values + total / n, 0, 1), np.moveaxis(errors, 0, 1)


def pair_coalitions(n_players: int, most: int, rng: np.random.Generator) -> PairedCoalitions:
    """Return coalitions for budgets of up to ``most`` pairs."""
    totals = np.array([0.0] + [_n_pairs(n_players, s) for s in range(1, n_players // 2 + 1)])
    counts = _counts(n_players, totals, most)
    sizes = np.repeat(np.arange(len(counts)), counts)
    masks, first = np.zeros((len(sizes), n_players), dtype=bool), 0
    for s, n in enumerate(counts.tolist()):
        found: dict[tuple[int, ...], None] = {}
        while len(found) < n:
            for order in rng.random((n + 8, n_players)).argsort(axis=1)[:, :s].tolist():
                chosen = tuple(sorted(order))
                if 2 * s == n_players and chosen[0] != 0:  # both of a pair have this size
                    chosen = tuple(sorted(set(range(n_players)) - set(chosen)))
                found[chosen] = None
        if s:
            np.put_along_axis(masks[first : first + n], np.array(list(found)[:n]).reshape(n, s), True, axis=1)
        first += n
    return PairedCoalitions(masks, sizes, totals)


def _n_pairs(n: int, s: int) -> float:
    return comb(n, s) / (2 if 2 * s == n else 1)


def _class_weights(n: int) -> Floats:
    """Return the weight of all pairs of each size."""
    sizes = np.arange(1, n // 2 + 1)
    return np.concatenate([[0.0], np.where(2 * sizes == n, 1.0, 2.0) / (sizes * (n - sizes))])


def _counts(n: int, totals: Floats, budget: int) -> NDArray[np.int64]:
    """Return how many pairs of each size a budget pays for."""
    weights = _class_weights(n)
    counts = np.minimum(totals, _LEAST * (weights > 0))
    whole = weights == 0
    while True:
        left = budget - totals[whole].sum()
        share = weights * ~whole
        wanted = np.where(whole, totals, left * share / max(share.sum(), 1e-300))
        grown = whole | (wanted >= totals)
        if (grown == whole).all():
            break
        whole = grown
    return np.asarray(np.maximum(counts, np.minimum(wanted, totals)).astype(np.int64))
