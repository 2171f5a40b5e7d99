"""From fitted terms to a spectrum: prune what is noise, choose how many terms, put the centre back."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fouriershap._fourier.bch import Code
from fouriershap._fourier.hashing import Bins, Ints, characters, locate, total_queries
from fouriershap._fourier.peeling import Scale, drop_noise
from fouriershap._fourier.refit import Fit, refit
from fouriershap._fourier.spectrum import Spectrum

_EXACT = 1e-10
_SOLVED = 1e-12  # relative error of the least-squares solution
_MOST_FOLDS = 4
_SHRINK = 0.75


@dataclass(frozen=True)
class Outcome:
    """What a search ended with."""

    measured: list[Bins]
    fit: Fit
    scale: Scale
    centre: float

    @property
    def exact(self) -> bool:
        return is_exact(self.measured, self.fit, self.scale)


def unexplained(measured: list[Bins], fit: Fit, scale: Scale) -> float:
    """Share of the variance that the terms leave, corrected for their number."""
    freedom = max(1, total_queries(measured) - len(fit.positions))
    return fit.rss / (freedom * scale.energy) if scale.energy > scale.rounding else 0.0


def is_exact(measured: list[Bins], fit: Fit, scale: Scale) -> bool:
    """Nothing but rounding is left, by terms that are few against the answers they explain."""
    n_queries = total_queries(measured)
    limit = max(_EXACT, 4 * scale.rounding / max(scale.energy, scale.rounding, 1e-300))
    return unexplained(measured, fit, scale) < limit and n_queries > 2 * len(fit.positions)


def finish(outcome: Outcome, code: Code, n_terms: int | None) -> Outcome:
    """Drop the terms that the maximum of pure noise would reach, then all but the best number of terms."""
    measured, fit, scale = outcome.measured, outcome.fit, outcome.scale
    threshold = noise_threshold(code.rows.shape[1], code.max_degree)
    for _ in range(10):
        n_before = len(fit.positions)
        fit = drop_noise(measured, fit, scale, threshold)
        if len(fit.positions) == n_before:
            break
    order = _by_size(fit)
    if n_terms is not None:
        n_kept = min(len(order), n_terms + 1)
    else:
        n_kept = len(order) if is_exact(measured, fit, scale) else _best_size(measured, fit, order)
    kept = order[:n_kept]
    fit = refit(measured, fit.positions[kept], fit.coefficients[kept])
    return Outcome(measured, fit, scale, outcome.centre)


def to_spectrum(outcome: Outcome, n_bits: int) -> Spectrum:
    """Terms as a `Spectrum`; the constant is left out where it is zero to the precision of the answers."""
    fit, measured = outcome.fit, outcome.measured
    coefficients = fit.coefficients.copy()
    coefficients[0] += outcome.centre
    n_queries = total_queries(measured)
    variance = fit.rss / max(1, n_queries - len(coefficients)) / n_queries + outcome.scale.rounding
    frequencies = np.zeros((len(coefficients), n_bits + 1), dtype=bool)
    np.put_along_axis(frequencies, fit.positions.astype(np.int64), True, axis=1)
    zero = 4 * math.sqrt(variance) + _SOLVED * math.sqrt(outcome.scale.energy)
    first = 1 if abs(coefficients[0]) <= zero else 0
    return Spectrum(frequencies[first:, :n_bits], coefficients[first:])


def noise_threshold(n_bits: int, max_degree: int) -> float:
    """What the largest of all admissible terms reaches, in standard errors, if there is only noise."""
    n_admissible = sum(math.comb(n_bits, d) for d in range(min(max_degree, n_bits) + 1))
    return math.sqrt(2 * math.log(max(2, n_admissible)))


def _by_size(fit: Fit) -> Ints:
    """Terms by falling size, the constant first."""
    size = np.abs(fit.coefficients)
    size[0] = np.inf
    return np.argsort(-size, kind="stable")


def _best_size(measured: list[Bins], fit: Fit, order: Ints) -> int:
    """Number of terms with the smallest loss on hashes that the coefficients were not fitted to."""
    if len(measured) < 2 or len(order) < 2:
        return len(order)
    sizes = [len(order)]
    while sizes[-1] > 2:
        sizes.append(int(_SHRINK * sizes[-1]))
    losses = np.zeros(len(sizes))
    for fold in range(min(_MOST_FOLDS, len(measured))):
        rest = [bins for i, bins in enumerate(measured) if i != len(measured) - 1 - fold]
        for i, size in enumerate(sizes):
            kept = order[:size]
            partial = refit(rest, fit.positions[kept], fit.coefficients[kept])
            losses[i] += _loss(measured[-1 - fold], partial)
    return sizes[int(np.argmin(losses))]


def _loss(bins: Bins, fit: Fit) -> float:
    """Sum of squared errors on a hash."""
    index, signs = locate(bins, fit.positions)
    left = bins.values.copy()
    np.add.at(left, index, -fit.coefficients[:, None] * characters(signs, bins.n_shifts))
    return bins.n_bins * float(np.vdot(left, left))
