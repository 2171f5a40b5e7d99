"""Does the data support a term? Its estimates from the bins of all hashes, compared."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fouriershap._fourier.bch import Positions
from fouriershap._fourier.hashing import Bins, Floats, Ints, characters, locate
from fouriershap._fourier.refit import Fit

_BLOCK = 1 << 15


@dataclass(frozen=True)
class Evidence:
    """For n candidate terms."""

    z: Floats  # (n,) the pooled estimate in standard errors
    disagreement: Floats  # (n,) chi-square of the hashes' estimates around the pooled one
    purity: Floats  # (n,) the largest share of a bin's energy that the term alone explains
    bins: Ints  # (n_hashes, n) the term's bin in each hash

    def __getitem__(self, kept: NDArray[np.bool_] | Ints) -> Evidence:
        return Evidence(self.z[kept], self.disagreement[kept], self.purity[kept], self.bins[:, kept])


def weigh(
    measured: list[Bins], residuals: tuple[Floats, ...], positions: Positions, floor: float
) -> Evidence:
    """Evidence for each of the terms at positions (n, width); ``floor`` bounds a bin's energy from below."""
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
    """(n_terms,) size of each fitted coefficient in standard errors, from what is left in its own bins."""
    weight = np.zeros(len(fit.positions))
    for bins, left in zip(measured, fit.residuals, strict=True):
        index, _ = locate(bins, fit.positions)
        weight += (bins.n_shifts - 1) / np.maximum(_energies(left)[index], floor)
    return np.abs(fit.coefficients) * np.sqrt(weight)


def _energies(left: Floats) -> Floats:
    energies: Floats = np.einsum("ij,ij->i", left, left) / left.shape[1]
    return energies
