"""Least squares for the coefficients on every answer paid for, by conjugate gradients in bin space.

The transform is orthogonal, so least squares on the answers is least squares on the bins, with the rows of a
hash weighted by its number of bins. Two terms meet only where they share a bin: the normal equations are
sparse, and with more queries than terms close to a multiple of the identity.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fouriershap._fourier.bch import Positions
from fouriershap._fourier.hashing import Bins, Floats, Ints, characters, locate, total_queries

TIGHT = 1e-13
LOOSE = 1e-8  # enough to decide about terms
_MOST_STEPS = 400


@dataclass(frozen=True)
class Fit:
    """Terms, their coefficients, and what is left of the bins."""

    positions: Positions  # (n_terms, width) the first term is the constant
    coefficients: Floats  # (n_terms,)
    residuals: tuple[Floats, ...]  # one (2^b, n_shifts) float64 per hash

    @property
    def rss(self) -> float:
        """Sum of squared residuals of the answers."""
        return float(sum(len(r) * np.vdot(r, r) for r in self.residuals))


def start_fit(measured: list[Bins], n_bits: int, width: int) -> Fit:
    """Only the constant."""
    constant = np.full((1, width), n_bits, dtype=np.int32)
    return refit(measured, constant, np.zeros(1))


def refit(measured: list[Bins], positions: Positions, start: Floats, tolerance: float = TIGHT) -> Fit:
    """Least-squares coefficients from a warm start (n_terms,)."""
    places = [locate(bins, positions) for bins in measured]
    residuals = _subtract(measured, places, start)
    gradient = np.zeros(len(positions))
    rows, columns, weights = [], [], []
    for bins, (index, signs), left in zip(measured, places, residuals, strict=True):
        gradient += bins.n_bins * np.einsum("ij,ij->i", left[index], characters(signs, bins.n_shifts))
        first, second = _sharing(index)
        agree = bins.n_shifts - 2.0 * np.bitwise_count(signs[first] ^ signs[second]).sum(
            axis=1, dtype=np.int64
        )
        rows.append(first)
        columns.append(second)
        weights.append(bins.n_bins * agree)
    n_queries = total_queries(measured)
    pairs = np.concatenate(rows), np.concatenate(columns), np.concatenate(weights) / n_queries
    step = _conjugate_gradients(
        pairs, gradient / n_queries, tolerance * float(np.linalg.norm(start)), tolerance
    )
    coefficients = start + step
    return Fit(positions, coefficients, _subtract(measured, places, coefficients))


def _subtract(
    measured: list[Bins], places: list[tuple[Ints, NDArray[np.uint64]]], coefficients: Floats
) -> tuple[Floats, ...]:
    """The bins less the terms."""
    left = []
    for bins, (index, signs) in zip(measured, places, strict=True):
        shifts = bins.n_shifts
        cells = index[:, None] * shifts + np.arange(shifts)
        parts = coefficients[:, None] * characters(signs, shifts)
        explained = np.bincount(cells.ravel(), parts.ravel(), minlength=bins.values.size)
        left.append(bins.values - explained.reshape(bins.values.shape))
    return tuple(left)


def _sharing(index: Ints) -> tuple[Ints, Ints]:
    """All ordered pairs of terms, a term with itself included, that are in the same bin."""
    order = np.argsort(index, kind="stable")
    counts = np.bincount(index)[index[order]]
    first_of_bin = np.searchsorted(index[order], index[order])
    starts = np.cumsum(counts) - counts
    within = np.arange(counts.sum()) - np.repeat(starts, counts)
    return np.repeat(order, counts), order[np.repeat(first_of_bin, counts) + within]


def _conjugate_gradients(
    pairs: tuple[Ints, Ints, Floats], target: Floats, small: float, tolerance: float
) -> Floats:
    """Solve the normal equations, given as (row, column, value), until the residual is small."""
    rows, columns, values = pairs
    solution = np.zeros_like(target)
    residual = target.copy()
    direction = residual.copy()
    energy = float(residual @ residual)
    goal = max(tolerance**2 * energy, small**2)
    for _ in range(_MOST_STEPS):
        if energy <= goal:
            break
        image = np.bincount(rows, values * direction[columns], minlength=len(target))
        curvature = direction @ image
        if curvature <= 0:
            break
        step = energy / curvature
        solution += step * direction
        residual -= step * image
        before, energy = energy, float(residual @ residual)
        direction = residual + (energy / before) * direction
    return solution
