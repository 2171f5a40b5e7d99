"""Least squares for the coefficients on every answer paid for, and the evidence that the answers give for a term.

The transform is orthogonal, so least squares on the answers is least squares on the bins, with the rows of a
hash weighted by its number of bins. Two terms meet only where they share a bin: the normal equations are
sparse, and with more queries than terms close to a multiple of the identity. Conjugate gradients solve them.
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
_BLOCK = 1 << 15
_EXACT = 1e-10
_EMPTY = 1e-13  # a bin with less than this share of the energy is empty
_FLOOR = 1e-15  # no variance is taken to be below this share of the energy
_TINY = 1e-200  # its inverse is still finite


@dataclass(frozen=True)
class Scale:
    """The size of the answers, to which thresholds are relative."""

    energy: float  # mean square of the centred answers
    rounding: float  # mean square of the rounding error of an answer

    @property
    def floor(self) -> float:
        """The least variance of a bin."""
        return max(_FLOOR * self.energy, self.rounding, _TINY)

    @property
    def empty(self) -> float:
        """Mean squares below this are those of empty bins."""
        return max(_EMPTY * self.energy, self.rounding, _TINY)


@dataclass(frozen=True)
class Fit:
    """Terms, their coefficients, and the residuals of the bins."""

    positions: Positions  # (n_terms, width) the first term is the constant
    coefficients: Floats  # (n_terms,)
    residuals: tuple[Floats, ...]  # one (2^b, n_shifts) float64 per hash

    @property
    def rss(self) -> float:
        """Sum of squared residuals of the answers."""
        return float(sum(len(r) * np.vdot(r, r) for r in self.residuals))


@dataclass(frozen=True)
class Outcome:
    """The result of a search."""

    measured: list[Bins]
    fit: Fit
    scale: Scale
    centre: float  # of the answers, subtracted before fitting

    @property
    def exact(self) -> bool:
        return is_exact(self.measured, self.fit, self.scale)


def start_fit(measured: list[Bins], n_bits: int, width: int) -> Fit:
    """Fit the constant alone."""
    constant = np.full((1, width), n_bits, dtype=np.int32)
    return refit(measured, constant, np.zeros(1))


def refit(measured: list[Bins], positions: Positions, start: Floats, tolerance: float = TIGHT) -> Fit:
    """Fit coefficients by least squares from a warm start (n_terms,)."""
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


def drop_noise(measured: list[Bins], fit: Fit, scale: Scale, threshold: float) -> Fit:
    """Refit, loosely, without the terms below ``threshold`` standard errors. The constant stays."""
    kept = term_scores(measured, fit, scale.floor) >= threshold
    kept[0] = True
    return fit if kept.all() else refit(measured, fit.positions[kept], fit.coefficients[kept], LOOSE)


def unexplained(measured: list[Bins], fit: Fit, scale: Scale) -> float:
    """Return the share of the variance that the terms leave, corrected for their number."""
    freedom = max(1, total_queries(measured) - len(fit.positions))
    return fit.rss / (freedom * scale.energy) if scale.energy > scale.rounding else 0.0


def is_exact(measured: list[Bins], fit: Fit, scale: Scale) -> bool:
    """Return whether nothing but rounding is left, with few terms relative to the answers they explain."""
    limit = max(_EXACT, 4 * scale.rounding / max(scale.energy, scale.rounding, 1e-300))
    few = total_queries(measured) > 2 * len(fit.positions)
    return unexplained(measured, fit, scale) < limit and few


@dataclass(frozen=True)
class Evidence:
    """How well the bins of all hashes support n candidate terms."""

    z: Floats  # (n,) the pooled estimate in standard errors
    disagreement: Floats  # (n,) chi-square of the hashes' estimates around the pooled one
    purity: Floats  # (n,) the largest share of a bin's energy that the term alone explains
    bins: Ints  # (n_hashes, n) the term's bin in each hash

    def __getitem__(self, kept: NDArray[np.bool_] | Ints) -> Evidence:
        return Evidence(self.z[kept], self.disagreement[kept], self.purity[kept], self.bins[:, kept])


def weigh(
    measured: list[Bins], residuals: tuple[Floats, ...], positions: Positions, floor: float
) -> Evidence:
    """Return evidence for each of the terms at positions (n, width); ``floor`` bounds a bin's energy from below."""
    blocks = range(0, max(1, len(positions)), _BLOCK)
    parts = [_weigh(measured, residuals, positions[i : i + _BLOCK], floor) for i in blocks]
    if len(parts) == 1:
        return parts[0]
    return Evidence(
        np.concatenate([p.z for p in parts]),
        np.concatenate([p.disagreement for p in parts]),
        np.concatenate([p.purity for p in parts]),
        np.concatenate([p.bins for p in parts], axis=1),
    )


def _weigh(
    measured: list[Bins], residuals: tuple[Floats, ...], positions: Positions, floor: float
) -> Evidence:
    estimates, weights = np.empty((2, len(measured), len(positions)))
    places = np.empty(estimates.shape, dtype=np.int64)
    purity = np.zeros(len(positions))
    for c, (bins, left) in enumerate(zip(measured, residuals, strict=True)):
        index, signs = locate(bins, positions)
        mean = np.einsum("ij,ij->i", left[index], characters(signs, bins.n_shifts)) / bins.n_shifts
        energy = np.maximum(_energies(left)[index], floor)
        estimates[c], places[c] = mean, index
        weights[c] = (bins.n_shifts - 1) / np.maximum(energy - mean**2, floor)
        purity = np.maximum(purity, mean**2 / energy)
    total = weights.sum(axis=0)
    pooled = (weights * estimates).sum(axis=0) / total
    disagreement = (weights * (estimates - pooled) ** 2).sum(axis=0)
    return Evidence(np.abs(pooled) * np.sqrt(total), disagreement, purity, places)


def term_scores(measured: list[Bins], fit: Fit, floor: float) -> Floats:
    """Return each fitted coefficient (n_terms,) in standard errors, from the residuals of its own bins."""
    weight = np.zeros(len(fit.positions))
    for bins, left in zip(measured, fit.residuals, strict=True):
        index, _ = locate(bins, fit.positions)
        weight += (bins.n_shifts - 1) / np.maximum(_energies(left)[index], floor)
    return np.abs(fit.coefficients) * np.sqrt(weight)


def _energies(left: Floats) -> Floats:
    energies: Floats = np.einsum("ij,ij->i", left, left) / left.shape[1]
    return energies


def _subtract(
    measured: list[Bins], places: list[tuple[Ints, NDArray[np.uint64]]], coefficients: Floats
) -> tuple[Floats, ...]:
    """Subtract the terms from the bins."""
    left = []
    for bins, (index, signs) in zip(measured, places, strict=True):
        shifts = bins.n_shifts
        cells = index[:, None] * shifts + np.arange(shifts)
        parts = coefficients[:, None] * characters(signs, shifts)
        explained = np.bincount(cells.ravel(), parts.ravel(), minlength=bins.values.size)
        left.append(bins.values - explained.reshape(bins.values.shape))
    return tuple(left)


def _sharing(index: Ints) -> tuple[Ints, Ints]:
    """Return all ordered pairs of terms in the same bin, a term with itself included."""
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
