"""Interaction indices of any order, as shares of simple games.

An index is linear, so it is known by what it makes of the games "all of T are in" (1 where a coalition holds T, else
0): the set S within T gets ``unanimity_share(index, order, |S|, |T|)``, every other set nothing. All that engines need
follows from it by whole numbers, exactly; only the last step rounds.

- SII, the Shapley interaction index (Grabisch and Roubens 1999): 1 / (|T| - |S| + 1), whatever the order.
- k-SII, n-Shapley values (Bordt and von Luxburg 2023): SII of the highest order; lower ones are corrected, by
  Bernoulli numbers, so that all sets together add up to the prediction.
- STII, Shapley-Taylor (Sundararajan et al. 2020): the pure effect of sets below the order, and of the highest order
  everything above it in equal shares.
- FSII, faithful Shapley (Tsai et al. 2023): of all sums of effects up to the order the one nearest to the game.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import comb

import numpy as np
from numpy.typing import NDArray

ORDER_INDICES = ("k-SII", "STII", "FSII", "SII")


@lru_cache
def _bernoulli(n: int) -> Fraction:
    """The Bernoulli number B_n, with B_1 = -1/2."""
    if n == 0:
        return Fraction(1)
    return -sum((comb(n + 1, j) * _bernoulli(j) for j in range(n)), Fraction(0)) / (n + 1)


@lru_cache(maxsize=1 << 16)
def unanimity_share(index: str, order: int, size: int, whole: int) -> Fraction:
    """What a set of ``size`` players, 1 <= size <= order, gets of the game "all of these ``whole`` players are in"."""
    if size > whole:
        return Fraction(0)
    others = whole - size
    if index == "SII":
        return Fraction(1, others + 1)
    if index == "k-SII":
        most = min(order - size, others)
        parts = (_bernoulli(r) * comb(others, r) / (others - r + 1) for r in range(most + 1))
        return sum(parts, Fraction(0))
    if whole <= order and not (index == "STII" and size == order):
        return Fraction(int(others == 0))
    if index == "STII":
        return Fraction(1, comb(whole, order)) if size == order else Fraction(0)
    sign = -1 if (order - size) % 2 else 1
    share = Fraction(size, order + size) * comb(order, size)
    return sign * share * Fraction(comb(whole - 1, order), comb(whole + order - 1, order + size))


@lru_cache(maxsize=32)
def leaf_shares(index: str, order: int, most: int) -> NDArray[np.float64]:
    """(most + 1, most + 1, order + 1) float64 by a, b, s: shares of a leaf.

    The game is 1 where a coalition holds all of a players and none of b others; of the a players a set of s gets this.
    A set that takes j of its players from the b gets (-1)^j times the entry (a + j, b - j, s): a player who must stay
    out is 1 minus one who must come in. Entries with a + b > most are 0.
    """
    shares = [
        [Fraction(0), *(unanimity_share(index, order, s, a) for s in range(1, order + 1))]
        for a in range(most + 1)
    ]
    out = np.zeros((most + 1, most + 1, order + 1))
    for b in range(most + 1):
        out[: most + 1 - b, b] = [[float(share) for share in row] for row in shares]
        shares = [
            [one - more for one, more in zip(row, following, strict=True)]
            for row, following in pairwise(shares)
        ]
    return out


@lru_cache(maxsize=32)
def character_shares(index: str, order: int, most: int) -> NDArray[np.float64]:
    """(most + 1, order + 1) float64 by m and s: what s of the m players that differ get of a character of +1."""
    out = np.zeros((most + 1, order + 1))
    for m in range(most + 1):
        for s in range(1, min(order, m) + 1):
            out[m, s] = sum(
                comb(m - s, r) * (-2) ** (s + r) * unanimity_share(index, order, s, s + r)
                for r in range(m - s + 1)
            )
    return out
