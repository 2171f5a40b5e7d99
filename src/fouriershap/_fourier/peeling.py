"""Peeling: decode terms from bins, accept those that all hashes support, subtract, decode again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fouriershap._fourier.bch import Code, Positions, fold
from fouriershap._fourier.candidates import DEEP_BINS, Stage, read_keys
from fouriershap._fourier.evidence import Evidence, term_scores, weigh
from fouriershap._fourier.gf2 import Words
from fouriershap._fourier.hashing import Bins, Floats, Ints
from fouriershap._fourier.refit import LOOSE, Fit, refit

_MOST_ROUNDS = 200
_EMPTY = 1e-13  # a bin with less than this share of the energy is empty
_FLOOR = 1e-15  # no variance is taken to be below this share of the energy
_ACCEPT_Z = 4.5  # about 1e4 valid candidates are seen in a run
_TINY = 1e-200  # its inverse is still finite
_KEEP_Z = 3.5
_PROGRESS = 1 - 1e-6
_AGREE = 20.0
_AGREE_PURE, _PURE = 200.0, 0.85  # a term that is nearly alone in a bin may disagree with crowded bins
_AGREE_RELAXED = 100.0


@dataclass(frozen=True)
class Scale:
    """What is large and what is nothing, from the answers: thresholds are relative to it."""

    energy: float  # mean square of the centred answers
    rounding: float  # mean square of the rounding error of an answer

    @property
    def floor(self) -> float:
        return max(_FLOOR * self.energy, self.rounding, _TINY)

    @property
    def empty(self) -> float:
        return max(_EMPTY * self.energy, self.rounding, _TINY)


def peel(measured: list[Bins], code: Code, fit: Fit, scale: Scale, last_stage: Stage = Stage.DEEP) -> Fit:
    """Add terms to a fit of coded hashes until no bin yields another."""
    stage = Stage.SIGNS
    for _ in range(_MOST_ROUNDS):
        positions = _decode_bins(measured, code, fit, scale, stage)
        grown = grow(measured, fit, positions, scale)
        if len(positions) and grown.rss < _PROGRESS * fit.rss:
            fit, stage = grown, Stage.SIGNS
        elif _is_empty(fit, scale) or stage == last_stage:
            break
        else:
            stage = Stage(stage + 1)
    return fit


def grow(measured: list[Bins], fit: Fit, positions: Positions, scale: Scale) -> Fit:
    """The fit with these terms more, and without those that turn out to be noise."""
    if not len(positions):
        return fit
    start = np.concatenate([fit.coefficients, np.zeros(len(positions))])
    grown = refit(measured, np.concatenate([fit.positions, positions]), start, LOOSE)
    return drop_noise(measured, grown, scale, _KEEP_Z)


def drop_noise(measured: list[Bins], fit: Fit, scale: Scale, threshold: float) -> Fit:
    """Refit, loosely, without the terms below ``threshold`` standard errors. The constant stays."""
    kept = term_scores(measured, fit, scale.floor) >= threshold
    kept[0] = True
    return fit if kept.all() else refit(measured, fit.positions[kept], fit.coefficients[kept], LOOSE)


def known_keys(code: Code, positions: Positions) -> Words:
    """(n,) one word per term, equal for equal terms."""
    return fold(np.bitwise_xor.reduce(code.bit_words[positions], axis=1))


def _is_empty(fit: Fit, scale: Scale) -> bool:
    return not any(len(_active(left, scale)) for left in fit.residuals)


def _active(left: Floats, scale: Scale) -> Ints:
    return np.flatnonzero(np.einsum("ij,ij->i", left, left) > scale.empty * left.shape[1])


def _decode_bins(measured: list[Bins], code: Code, fit: Fit, scale: Scale, stage: Stage) -> Positions:
    """New terms (n, width) that the gate accepts, at most one per bin."""
    keys, origins = _all_keys(measured, fit, scale, stage)
    _, firsts, which = np.unique(fold(keys), return_index=True, return_inverse=True)
    positions, valid = code.decode(keys[firsts])
    new = ~np.isin(known_keys(code, positions), known_keys(code, fit.positions))
    evidence = weigh(measured, fit.residuals, positions, scale.floor)
    passed = new & _gate(evidence, stage)
    # Back from distinct keys to (bin, key) pairs: each bin proposes its best term.
    z = np.zeros(len(firsts))
    z[np.flatnonzero(valid)[passed]] = evidence.z[passed]
    chosen = which[_best_of_each(origins, z[which])]
    number = np.cumsum(valid) - 1
    accepted: Positions = positions[number[np.unique(chosen)]]
    return accepted


def _all_keys(measured: list[Bins], fit: Fit, scale: Scale, stage: Stage) -> tuple[Words, NDArray[np.int64]]:
    """Keys (n, w) of all non-empty bins of all hashes, and the number (n,) of the bin each came from."""
    keys, origins, offset = [], [], 0
    for bins, left in zip(measured, fit.residuals, strict=True):
        active = _active(left, scale)
        if stage == Stage.DEEP:
            energy = np.einsum("ij,ij->i", left[active], left[active])
            active = active[np.argsort(-energy, kind="stable")[:DEEP_BINS]]
        read = read_keys(bins, left, active, stage)
        keys.append(read.reshape(-1, read.shape[2]))
        origins.append(np.repeat(offset + active, read.shape[1]))
        offset += bins.n_bins
    return np.concatenate(keys), np.concatenate(origins)


def _gate(evidence: Evidence, stage: Stage) -> NDArray[np.bool_]:
    agree = evidence.disagreement < (_AGREE_RELAXED if stage == Stage.RELAXED_FLIPS else _AGREE)
    agree |= (evidence.purity > _PURE) & (evidence.disagreement < _AGREE_PURE)
    return agree & (evidence.z > _ACCEPT_Z)


def _best_of_each(groups: Ints, z: Floats) -> Ints:
    """Index of the largest positive z of each group."""
    positive = np.flatnonzero(z > 0)
    order = positive[np.lexsort((-z[positive], groups[positive]))]
    first = np.ones(len(order), dtype=bool)
    first[1:] = groups[order][1:] != groups[order][:-1]
    return order[first]
