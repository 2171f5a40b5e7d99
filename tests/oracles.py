"""Brute force: what the fast code must agree with. Plain loops over the definitions, no cleverness."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from math import comb, factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray

Function = Callable[[NDArray[Any]], NDArray[Any]]


def characters(frequencies: NDArray[Any], X: NDArray[Any]) -> NDArray[np.float64]:
    """(n_rows, n_terms) of (-1)^<f, x>."""
    return 1.0 - 2.0 * ((np.asarray(X, dtype=np.int64) @ np.asarray(frequencies, dtype=np.int64).T) % 2)


def evaluate(frequencies: NDArray[Any], coefficients: NDArray[Any], X: NDArray[Any]) -> NDArray[np.float64]:
    return characters(frequencies, X) @ np.asarray(coefficients, dtype=np.float64)


def all_rows(n_bits: int) -> NDArray[np.uint8]:
    """(2^n, n) every row of bits; row p has bit i = p >> i & 1."""
    return (np.arange(1 << n_bits)[:, None] >> np.arange(n_bits) & 1).astype(np.uint8)


def coalition_values(
    h: Function,
    row: NDArray[Any],
    background: NDArray[Any],
    players: NDArray[Any],
    weights: NDArray[Any] | None = None,
) -> NDArray[np.float64]:
    """v(S), (2^n_players, n_outputs): the mean of h over the background, with the players of S from the row.

    Coalition S is a number whose bit j tells whether player j belongs to it.
    """
    n_players = int(players.max()) + 1
    member = all_rows(n_players).astype(bool)  # (coalitions, players)
    hybrids = np.where(member[:, None, players], row, background[None])  # (coalitions, background, bits)
    values = np.asarray(h(hybrids.reshape(-1, len(row))), dtype=np.float64)
    values = values.reshape(len(member), len(background), -1)
    return np.asarray(np.average(values, axis=1, weights=weights))


def shapley_values(v: NDArray[Any], n_players: int) -> NDArray[np.float64]:
    """Eq. 1 of the paper, from the values of all 2^n coalitions: (n_players, n_outputs)."""
    phi = np.zeros((n_players, v.shape[1]))
    for i in range(n_players):
        others = [j for j in range(n_players) if j != i]
        for size in range(n_players):
            weight = factorial(size) * factorial(n_players - size - 1) / factorial(n_players)
            sets = np.array([sum(1 << j for j in S) for S in combinations(others, size)], dtype=np.int64)
            phi[i] += weight * (v[sets | 1 << i] - v[sets]).sum(axis=0)
    return phi


def shap_values(
    h: Function,
    X: NDArray[Any],
    background: NDArray[Any],
    players: NDArray[Any] | None = None,
    weights: NDArray[Any] | None = None,
) -> NDArray[np.float64]:
    """Interventional SHAP values by the exponential definition: (n_rows, n_players, n_outputs)."""
    X, background = np.asarray(X), np.asarray(background)
    owner = np.arange(X.shape[1]) if players is None else np.asarray(players)
    n_players = int(owner.max()) + 1
    return np.stack(
        [shapley_values(coalition_values(h, row, background, owner, weights), n_players) for row in X]
    )


def lemma_one(frequency: NDArray[Any], row: NDArray[Any], background: NDArray[Any]) -> NDArray[np.float64]:
    """The paper's Lemma 1 to the letter: SHAP values (n_bits,) of one character, one bit per player."""
    phi = np.zeros(len(frequency))
    for i in np.flatnonzero(frequency):
        for x in background:
            if x[i] == row[i]:
                continue
            others = sum(1 for j in np.flatnonzero(frequency) if j != i and x[j] != row[j])
            sign = (-1) ** int((frequency * x).sum())
            phi[i] += -2.0 / len(background) * sign * ((others + 1) % 2) / (others + 1)
    return phi


def interaction_matrix(v: NDArray[Any], n_players: int, banzhaf: bool = False) -> NDArray[np.float64]:
    """Halves of the interaction index of all pairs, from all coalitions: (n_players, n_players, n_outputs).

    The diagonal is what is left of the players' values, Shapley's or Banzhaf's.
    """
    phi = banzhaf_values(v, n_players) if banzhaf else shapley_values(v, n_players)
    out = np.zeros((n_players, n_players, v.shape[1]))
    for i, j in combinations(range(n_players), 2):
        others = [k for k in range(n_players) if k not in (i, j)]
        for size in range(n_players - 1):
            weight = factorial(size) * factorial(n_players - size - 2) / factorial(n_players - 1)
            weight = 0.5 ** (n_players - 2) if banzhaf else weight
            for S in (sum(1 << k for k in members) for members in combinations(others, size)):
                change = v[S | 1 << i | 1 << j] - v[S | 1 << i] - v[S | 1 << j] + v[S]
                out[i, j] += weight * change / 2
        out[j, i] = out[i, j]
    for i in range(n_players):
        out[i, i] = phi[i] - out[i].sum(axis=0)
    return out


def banzhaf_values(v: NDArray[Any], n_players: int) -> NDArray[np.float64]:
    """The mean marginal contribution over all coalitions of the others: (n_players, n_outputs)."""
    coalitions = np.arange(1 << n_players)
    without = [coalitions[coalitions >> i & 1 == 0] for i in range(n_players)]
    return np.stack([(v[S | 1 << i] - v[S]).mean(axis=0) for i, S in enumerate(without)])


def set_interactions(
    v: NDArray[Any], n_players: int, index: str, order: int
) -> dict[tuple[int, ...], NDArray[np.float64]]:
    """Interactions of all sets of 1 to ``order`` players, each index by its own definition.

    Shapley and Banzhaf: Grabisch and Roubens 1999; n-Shapley: Bordt and von Luxburg 2023, by their recursion; Taylor:
    Sundararajan et al. 2020; faithful: Tsai et al. 2023, by the weighted regression that defines it.
    """
    if index in ("FSII", "FBII"):
        return _faithful(v, n_players, order, is_banzhaf=index == "FBII")
    sets = [S for s in range(1, order + 1) for S in combinations(range(n_players), s)]
    if index == "Moebius":
        return {S: _derivative(v, S, 0) for S in sets}
    if index == "STII":
        return {S: _taylor(v, n_players, S, order) for S in sets}
    if index == "BII":
        return {S: np.mean([_derivative(v, S, T) for T in _others(n_players, S)], axis=0) for S in sets}
    plain = {S: _shapley_interaction(v, n_players, S) for S in sets}
    if index == "SII":
        return plain
    found = {S: plain[S] for S in sets if len(S) == 1}
    for k in range(2, order + 1):  # from order k - 1 to order k
        more = {S: plain[S] for S in sets if len(S) == k}
        for S in found:
            larger = [plain[T] for T in more if set(S) <= set(T)]
            found[S] = found[S] + BERNOULLI[k - len(S)] * np.sum(larger, axis=0) if larger else found[S]
        found |= more
    return found


BERNOULLI = (1.0, -1 / 2, 1 / 6, 0.0, -1 / 30, 0.0, 1 / 42, 0.0)


def _derivative(v: NDArray[Any], S: tuple[int, ...], T: int) -> NDArray[Any]:
    """What the players of S bring together to the coalition T."""
    parts = [sum(1 << i for i in L) for size in range(len(S) + 1) for L in combinations(S, size)]
    return np.sum([(-1) ** (len(S) - L.bit_count()) * v[T | L] for L in parts], axis=0)


def _others(n_players: int, S: tuple[int, ...]) -> list[int]:
    mine = sum(1 << i for i in S)
    return [T for T in range(1 << n_players) if not T & mine]


def _shapley_interaction(v: NDArray[Any], n_players: int, S: tuple[int, ...]) -> NDArray[Any]:
    total = np.zeros(v.shape[1])
    for T in _others(n_players, S):
        t, s = T.bit_count(), len(S)
        weight = factorial(n_players - t - s) * factorial(t) / factorial(n_players - s + 1)
        total += weight * _derivative(v, S, T)
    return total


def _taylor(v: NDArray[Any], n_players: int, S: tuple[int, ...], order: int) -> NDArray[Any]:
    if len(S) < order:
        return _derivative(v, S, 0)
    total = np.zeros(v.shape[1])
    for T in _others(n_players, S):
        total += order / n_players / comb(n_players - 1, T.bit_count()) * _derivative(v, S, T)
    return total


def _faithful(
    v: NDArray[Any], n: int, order: int, is_banzhaf: bool = False
) -> dict[tuple[int, ...], NDArray[np.float64]]:
    sets = [S for s in range(min(order, n) + 1) for S in combinations(range(n), s)]
    masks = np.array([sum(1 << i for i in S) for S in sets])
    coalitions = np.arange(1 << n)
    design = (coalitions[:, None] & masks == masks).astype(float)
    size = np.bitwise_count(coalitions).astype(int)
    middle = (size > 0) & (size < n)
    weight = np.array([1 / comb(n, s) / s / (n - s) for s in size[middle]])
    ends = design[[0, -1]]
    # Minimise over the middle, exact at the ends: the system of Lagrange.
    normal = design[middle].T @ (weight[:, None] * design[middle])
    system = np.block([[normal, ends.T], [ends, np.zeros((2, 2))]])
    right = np.concatenate([design[middle].T @ (weight[:, None] * v[middle]), v[[0, -1]]])
    found = (
        np.linalg.lstsq(design, v, rcond=None)[0]
        if is_banzhaf
        else np.linalg.lstsq(system, right, rcond=None)[0]
    )
    missing = {S: np.zeros(v.shape[1]) for s in range(n + 1, order + 1) for S in combinations(range(n), s)}
    return {S: found[k] for k, S in enumerate(sets) if S} | missing


def variance_freedom(values: np.ndarray) -> np.ndarray:
    """Degrees of freedom of a variance over the first axis, by scipy's kurtosis."""
    from scipy.stats import kurtosis

    return (len(values) - 1) / (1 + np.maximum(kurtosis(values, axis=0, bias=False), 0) / 2)
