"""Terms guessed from terms: in tree-like functions the subsets of a frequency are frequencies too."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fouriershap._fourier.bch import Code, Positions
from fouriershap._fourier.candidates import Stage
from fouriershap._fourier.evidence import Evidence, weigh
from fouriershap._fourier.hashing import Bins
from fouriershap._fourier.peeling import Scale, grow, known_keys, peel
from fouriershap._fourier.refit import Fit

_MOST_CANDIDATES = 300_000
_MOST_ROUNDS = 12
_PROGRESS = 0.98
_AGREE = 40.0
_WIDEST = 8  # 2^degree subsets of a term are formed


def add_related(measured: list[Bins], code: Code, fit: Fit, scale: Scale) -> Fit:
    """Grow a fit by subsets and one-bit supersets of its terms, with a quick peel after each round."""
    for _ in range(_MOST_ROUNDS):
        positions = related(code, fit.positions)
        if not len(positions):
            break
        evidence = weigh(measured, fit.residuals, positions, scale.floor)
        threshold = np.sqrt(2 * np.log(len(positions))) + 1
        passed = np.flatnonzero((evidence.z > threshold) & (evidence.disagreement < _AGREE))
        chosen = passed[_best_everywhere(evidence[passed])]
        grown = grow(measured, fit, positions[chosen], scale)
        if not len(chosen) or grown.rss > _PROGRESS * fit.rss:
            break
        fit = peel(measured, code, grown, scale, Stage.SIGNS)
    return fit


def related(code: Code, positions: Positions) -> Positions:
    """Subsets and one-bit supersets (n, width), over the bits in use, that are not among the terms."""
    n_bits = len(code.bit_words) - 1
    width = min(code.max_degree, _WIDEST)
    narrow = positions[(positions < n_bits).sum(axis=1) <= width, :width]
    known = known_keys(code, positions)
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
    """All subsets of each line, as sorted lines; a key costs less than a line, so lines stay narrow."""
    width = positions.shape[1]
    lines = positions
    for column in range(width):
        without = lines[lines[:, column] < n_bits]
        without[:, column] = n_bits
        lines = np.concatenate([lines, without])
    return np.sort(lines, axis=1)


def _new(code: Code, positions: Positions, known: NDArray[np.uint64]) -> Positions:
    """Each line once, without the known ones."""
    keys, firsts = np.unique(known_keys(code, positions), return_index=True)
    return positions[firsts[~np.isin(keys, known)]]


def _best_everywhere(evidence: Evidence) -> NDArray[np.int64]:
    """Candidates that are the best of their bin in every hash."""
    order = np.argsort(-evidence.z, kind="stable")
    best = np.ones(len(order), dtype=bool)
    for places in evidence.bins:
        _, firsts = np.unique(places[order], return_index=True)
        of_bin = np.zeros(len(order), dtype=bool)
        of_bin[order[firsts]] = True
        best &= of_bin
    return np.flatnonzero(best)
