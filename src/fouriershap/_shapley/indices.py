"""Indices: Shapley and Banzhaf as integrals of the multilinear extension.

Both average a player's marginal contribution, or that of a pair, over coalitions that everyone else joins with
probability t: the Shapley value over all t in [0, 1] alike, the Banzhaf value at t = 1/2 alone. Everything else
(tables, walks, closed forms) is the same, so an index is no more than points, moments and shares.
"""

from __future__ import annotations

from functools import lru_cache
from math import comb

import numpy as np
from numpy.typing import NDArray

INDICES = ("shapley", "banzhaf")


@lru_cache(maxsize=64)
def points(index: str, n_points: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Points in (0, 1) and their weights: exact for polynomials of degree up to 2 n_points - 1."""
    if index == "banzhaf":
        weights = np.zeros(n_points)
        weights[0] = 1.0
        return np.full(n_points, 0.5), weights
    t, weights = np.polynomial.legendre.leggauss(n_points)
    return (t + 1) / 2, weights / 2


@lru_cache
def quadrature(index: str, most_players: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Points and weights for products of u players, u = 0 ... most_players, end to end, and where each begins.

    Entry u holds its points, then its weights, both padded with zero weights to a multiple of 4 (a vector).
    """
    parts: list[NDArray[np.float64]] = []
    for u in range(most_players + 1):
        n = 1 if index == "banzhaf" else max(1, (u + 1) // 2)
        padded = -(-n // 4) * 4
        t, weights = np.full(padded, 0.5), np.zeros(padded)
        t[:n], weights[:n] = points(index, n)
        parts.append(np.concatenate([t, weights]))
    start = np.concatenate([[0], np.cumsum([len(p) for p in parts])]).astype(np.int64)
    return np.concatenate(parts), start


@lru_cache(maxsize=64)
def moments(index: str, most: int) -> NDArray[np.float64]:
    """(most + 1, most + 1) float64: the integral of t^p (1 - t)^q, by p and q.

    p! q! / (p + q + 1)! by recurrence: no factorial overflows, and what is too small for a double becomes 0.
    """
    q = np.arange(most + 1.0)
    if index == "banzhaf":
        return np.asarray(0.5 ** (q[:, None] + q))
    out = np.empty((most + 1, most + 1))
    out[0] = 1.0 / (q + 1)
    for p in range(most):
        out[p + 1] = out[p] * (p + 1) / (p + 2 + q)
    return out


def difference_weight(index: str, order: int, m: int) -> float:
    """What each player (order 1) or pair (order 2) of the m that differ gets from a character of +1.

    By these the character is a product of m factors 1 - 2 t, of which ``order`` are taken out, for -2 each.
    """
    rest = m - order
    if index == "banzhaf":
        return (-2.0) ** order if rest == 0 else 0.0
    return (-2.0) ** order / (rest + 1) if rest >= 0 and rest % 2 == 0 else 0.0


@lru_cache(maxsize=64)
def term_shares(index: str, order: int, max_degree: int) -> NDArray[np.float64]:
    """``shares[d, s, k]``: transform of "these players of d differ, with m - order others", weighted with m.

    The character belongs to a set of s of the d players, ``k <= order`` of the players (one, or a pair) inside
    it. Summed over how many of the others differ inside the set (u, each with a factor -1) and outside it (v).
    """
    shares = np.zeros((max_degree + 1, max_degree + 1, order + 1))
    for degree in range(order, max_degree + 1):
        for size in range(degree + 1):
            for inside in range(order + 1):
                others = size - inside
                if not 0 <= others <= degree - order:
                    continue
                total = 0.0
                for u in range(others + 1):
                    for v in range(degree - order - others + 1):
                        ways = comb(others, u) * comb(degree - order - others, v)
                        total += (-1) ** u * ways * difference_weight(index, order, order + u + v)
                shares[degree, size, inside] = (-1) ** inside * total / 2**degree
    return shares
