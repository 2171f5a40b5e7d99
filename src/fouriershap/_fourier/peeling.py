"""Peeling: decode terms from bins, accept those that all hashes support, subtract, decode again.

The signs of a bin's values over the shifts tell which frequency is in it, and the largest term of a bin decides the
signs. With two terms in a bin all signs are right; with three, the wrong ones are exactly those of smallest magnitude
(|a - b - c| is the smallest of the four possible magnitudes if a is the largest), so flipping the least reliable
signs one by one meets the right pattern.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from fouriershap._fourier.bch import Code, Positions, fold, term_keys
from fouriershap._fourier.fit import LOOSE, Evidence, Fit, Scale, drop_noise, refit, weigh
from fouriershap._fourier.gf2 import Words, xor_product
from fouriershap._fourier.hashing import Bins, Floats, Ints

_MOST_ROUNDS = 200
_ACCEPT_Z = 4.5  # about 1e4 valid candidates are seen in a run
_KEEP_Z = 3.5
_PROGRESS = 1 - 1e-6
_AGREE = 20.0
_AGREE_PURE, _PURE = 200.0, 0.85  # a term that is nearly alone in a bin may disagree with crowded bins
_AGREE_RELAXED = 100.0
_FLIPPED_SHARE = 0.55
_CHASE_SIGNS, _DEEP_SIGNS = 6, 8
_TRIPLE_SIGNS = 12
_DEEP_BINS = 5
# For terms that are guessed from related terms:
_MOST_CANDIDATES = 300_000
_MOST_RELATED_ROUNDS = 12
_RELATED_PROGRESS = 0.98
_AGREE_RELATED = 40.0
_WIDEST = 8  # 2^degree subsets of a term are formed


class Stage(IntEnum):
    """How hard to look; a stage is tried when the one before finds nothing."""

    SIGNS = 0
    ORDERED_FLIPS = 1
    CHASE = 2
    RELAXED_FLIPS = 3
    DEEP = 4


def peel(measured: list[Bins], code: Code, fit: Fit, scale: Scale, last_stage: Stage = Stage.DEEP) -> Fit:
    """Add terms to a fit of coded hashes until no bin yields another."""
    stage = Stage.SIGNS
    for _ in range(_MOST_ROUNDS):
        positions = _decode_bins(measured, code, fit, scale, stage)
        grown = grow(measured, fit, positions, scale)
        if len(positions) and grown.rss < _PROGRESS * fit.rss:
            fit, stage = grown, Stage.SIGNS
        elif not any(len(_active(left, scale)) for left in fit.residuals) or stage == last_stage:
            break
        else:
            stage = Stage(stage + 1)
    return fit


def grow(measured: list[Bins], fit: Fit, positions: Positions, scale: Scale) -> Fit:
    """Add terms to a fit, and drop those that turn out to be noise."""
    if not len(positions):
        return fit
    start = np.concatenate([fit.coefficients, np.zeros(len(positions))])
    grown = refit(measured, np.concatenate([fit.positions, positions]), start, LOOSE)
    return drop_noise(measured, grown, scale, _KEEP_Z)


def add_related(measured: list[Bins], code: Code, fit: Fit, scale: Scale) -> Fit:
    """Grow a fit by subsets and one-bit supersets of its terms, with a quick peel after each round.

    In tree-like functions the subsets of a frequency are frequencies too.
    """
    for _ in range(_MOST_RELATED_ROUNDS):
        positions = related(code, fit.positions)
        if not len(positions):
            break
        evidence = weigh(measured, fit.residuals, positions, scale.floor)
        threshold = np.sqrt(2 * np.log(len(positions))) + 1
        passed = np.flatnonzero((evidence.z > threshold) & (evidence.disagreement < _AGREE_RELATED))
        chosen = passed[_best_everywhere(evidence[passed])]
        grown = grow(measured, fit, positions[chosen], scale)
        if not len(chosen) or grown.rss > _RELATED_PROGRESS * fit.rss:
            break
        fit = peel(measured, code, grown, scale, Stage.SIGNS)
    return fit


def related(code: Code, positions: Positions) -> Positions:
    """Return subsets and one-bit supersets (n, width), over the bits in use, that are not among the terms."""
    n_bits = len(code.bit_words) - 1
    width = min(code.max_degree, _WIDEST)
    narrow = positions[(positions < n_bits).sum(axis=1) <= width, :width]
    known = term_keys(code, positions)
    candidates = _new(code, _subsets(narrow, n_bits), known)
    bits_in_use = np.unique(narrow[narrow < n_bits])
    extendable = narrow[(narrow < n_bits).sum(axis=1) < width]
    room = _MOST_CANDIDATES - len(candidates)
    if len(extendable) * len(bits_in_use) <= room:
        supersets = np.repeat(extendable, len(bits_in_use), axis=0)
        supersets[:, -1] = np.tile(bits_in_use, len(extendable))
        repeated = (supersets[:, :-1] == supersets[:, -1:]).any(axis=1)
        candidates = np.concatenate([candidates, np.sort(supersets[~repeated], axis=1)])
        candidates = _new(code, candidates, known)
    if len(candidates) > _MOST_CANDIDATES:
        return candidates[:0]
    padding = np.full((len(candidates), code.max_degree - width), n_bits, dtype=np.int32)
    return np.concatenate([candidates, padding], axis=1)


def _subsets(positions: Positions, n_bits: int) -> Positions:
    """Return all subsets of each line, as sorted lines."""
    width = positions.shape[1]
    lines = positions
    for column in range(width):
        without = lines[lines[:, column] < n_bits]
        without[:, column] = n_bits
        lines = np.concatenate([lines, without])
    return np.sort(lines, axis=1)


def _new(code: Code, positions: Positions, known: NDArray[np.uint64]) -> Positions:
    """Return each line once, without the known ones."""
    keys, firsts = np.unique(term_keys(code, positions), return_index=True)
    return positions[firsts[~np.isin(keys, known)]]


def _best_everywhere(evidence: Evidence) -> NDArray[np.int64]:
    """Return the candidates that are the best of their bin in every hash."""
    order = np.argsort(-evidence.z, kind="stable")
    best = np.ones(len(order), dtype=bool)
    for places in evidence.bins:
        _, firsts = np.unique(places[order], return_index=True)
        of_bin = np.zeros(len(order), dtype=bool)
        of_bin[order[firsts]] = True
        best &= of_bin
    return np.flatnonzero(best)


def _active(left: Floats, scale: Scale) -> Ints:
    return np.flatnonzero(np.einsum("ij,ij->i", left, left) > scale.empty * left.shape[1])


def _decode_bins(measured: list[Bins], code: Code, fit: Fit, scale: Scale, stage: Stage) -> Positions:
    """Return new terms (n, width) that the evidence supports, at most one per bin."""
    keys, origins = _all_keys(measured, fit, scale, stage)
    _, firsts, which = np.unique(fold(keys), return_index=True, return_inverse=True)
    positions, valid = code.decode(keys[firsts])
    new = ~np.isin(term_keys(code, positions), term_keys(code, fit.positions))
    evidence = weigh(measured, fit.residuals, positions, scale.floor)
    agree = evidence.disagreement < (_AGREE_RELAXED if stage == Stage.RELAXED_FLIPS else _AGREE)
    agree |= (evidence.purity > _PURE) & (evidence.disagreement < _AGREE_PURE)
    passed = new & agree & (evidence.z > _ACCEPT_Z)
    # Back from distinct keys to (bin, key) pairs: each bin proposes its best term.
    z = np.zeros(len(firsts))
    z[np.flatnonzero(valid)[passed]] = evidence.z[passed]
    chosen = which[_best_of_each(origins, z[which])]
    number = np.cumsum(valid) - 1
    accepted: Positions = positions[number[np.unique(chosen)]]
    return accepted


def _all_keys(measured: list[Bins], fit: Fit, scale: Scale, stage: Stage) -> tuple[Words, NDArray[np.int64]]:
    """Return keys (n, w) of all non-empty bins of all hashes, and the number (n,) of the bin of each."""
    keys, origins, offset = [], [], 0
    for bins, left in zip(measured, fit.residuals, strict=True):
        active = _active(left, scale)
        if stage == Stage.DEEP:
            energy = np.einsum("ij,ij->i", left[active], left[active])
            active = active[np.argsort(-energy, kind="stable")[:_DEEP_BINS]]
        read = read_keys(bins, left, active, stage)
        keys.append(read.reshape(-1, read.shape[2]))
        origins.append(np.repeat(offset + active, read.shape[1]))
        offset += bins.n_bins
    return np.concatenate(keys), np.concatenate(origins)


def _best_of_each(groups: Ints, z: Floats) -> Ints:
    """Return the index of the largest positive z of each group."""
    positive = np.flatnonzero(z > 0)
    order = positive[np.lexsort((-z[positive], groups[positive]))]
    first = np.ones(len(order), dtype=bool)
    first[1:] = groups[order][1:] != groups[order][:-1]
    return order[first]


def read_keys(bins: Bins, left: Floats, active: Ints, stage: Stage) -> Words:
    """Return keys (n_active, n_patterns, w) of frequencies that may dominate the ``active`` bins of a coded hash.

    ``left`` (2^b, n_shifts) is the residual.
    """
    shift_keys = bins.hash.shift_keys
    values = left[active, : len(shift_keys) + 1]
    negative = values < 0
    bits = (negative[:, 1:] ^ negative[:, :1]).astype(np.uint8)
    keys = (bins.key_of_bin[active] ^ xor_product(bits, shift_keys))[:, None]
    if stage == Stage.SIGNS:
        return keys
    # The sign at shift 0 is the reference of all others: flipping it flips them all.
    reference = np.bitwise_xor.reduce(shift_keys, axis=0)[None]
    flip_keys = np.concatenate([reference, shift_keys])
    if stage == Stage.CHASE:
        return keys ^ _all_flips(values, flip_keys, _CHASE_SIGNS)
    if stage == Stage.DEEP:
        return keys ^ _few_flips(values, flip_keys)
    n_flips = max(1, int(_FLIPPED_SHARE * values.shape[1]))
    doubtful = np.argsort(np.abs(values), axis=1)[:, :n_flips]
    flipped: Words = np.bitwise_xor.accumulate(flip_keys[doubtful], axis=1)
    return keys ^ flipped


def _all_flips(values: Floats, flip_keys: Words, n_signs: int) -> Words:
    """Return every subset of the least reliable signs, (n, 2^n_signs - 1, w)."""
    n_flips = min(n_signs, values.shape[1])
    doubtful = flip_keys[np.argsort(np.abs(values), axis=1)[:, :n_flips]]
    subsets = np.zeros((len(values), 1, flip_keys.shape[1]), dtype=np.uint64)
    for i in range(n_flips):
        subsets = np.concatenate([subsets, subsets ^ doubtful[:, i : i + 1]], axis=1)
    return subsets[:, 1:]


def _few_flips(values: Floats, flip_keys: Words) -> Words:
    """Return flips that noise may have caused: any two signs, three of the twelve least reliable, eight of eight."""
    ordered = flip_keys[np.argsort(np.abs(values), axis=1)]
    n_signs = ordered.shape[1]
    first, second = np.triu_indices(n_signs, 1)
    pairs = ordered[:, first] ^ ordered[:, second]
    doubtful = np.flatnonzero(second < min(_TRIPLE_SIGNS, n_signs))
    triples = [pairs[:, doubtful[second[doubtful] < i]] ^ ordered[:, i : i + 1] for i in range(n_signs)]
    subsets = _all_flips(values, flip_keys, _DEEP_SIGNS)
    return np.concatenate([ordered, pairs, *triples[:_TRIPLE_SIGNS], subsets], axis=1)
