"""RobustSWHT (Amrollahi et al. 2019): random hashes, a majority vote per bit, a median per amplitude."""

from __future__ import annotations

import math

import numpy as np

from fouriershap._fourier.bch import Code, Positions, term_keys
from fouriershap._fourier.fit import Fit, Outcome, Scale, drop_noise, is_exact, refit, start_fit, unexplained
from fouriershap._fourier.gf2 import xor_product
from fouriershap._fourier.hashing import (
    Bins,
    Floats,
    characters,
    locate,
    mean_square,
    measure,
    random_hash,
    total_queries,
)
from fouriershap._fourier.queries import Queries

N_REPEATS = 3
N_ROUNDS = 4
_FIRST_SIZE = 4
_KEEP_Z = 3.5
_FALL = 0.9
_SETTLED = 0.5
_CROWDED = 0.3


def round_sizes(code: Code, n_terms: int) -> list[int]:
    """Return the size b of each round: as many bins as terms, then half, since half of the terms are known."""
    first = min(max(1, math.ceil(math.log2(max(1, n_terms)))), code.rows.shape[1])
    return [first] + [max(1, first - 1)] * (N_ROUNDS - 1)


def hash_cost(code: Code, b: int) -> int:
    """Return the queries of one round with 2^b bins: 3 * 2^b (1 + r), r the number of shifts."""
    return N_REPEATS * (1 + len(code.rows)) << b


def plan_cost(code: Code, n_terms: int) -> int:
    """Return the queries of all rounds."""
    return sum(hash_cost(code, b) for b in round_sizes(code, n_terms))


def least_budget(code: Code) -> int:
    """Return the queries for a single term."""
    return plan_cost(code, 1)


def recover_robust(
    queries: Queries, code: Code, n_terms: int | None, available: int, rng: np.random.Generator
) -> Outcome:
    """Find ``n_terms`` terms, or with hashes of growing size as many as there are."""
    planned = _planned_sizes(code, n_terms, available)
    measured: list[Bins] = []
    shares: list[float] = []
    bins, centre = measure(queries, random_hash(code, planned[0], N_REPEATS, rng), None)
    measured.append(bins)
    fit = start_fit(measured, queries.n_bits, code.max_degree)
    while True:
        scale = Scale(mean_square(measured), (queries.precision * queries.magnitude) ** 2)
        wanted = n_terms if n_terms is not None else 2 * max(bins.n_bins for bins in measured)
        fit = _round(measured, code, fit, wanted, scale)
        shares.append(unexplained(measured, fit, scale))
        size = _next_size(code, planned, shares, len(measured[-1].hash.matrix), n_terms is None)
        room = available - total_queries(measured)
        if is_exact(measured, fit, scale) or size is None or hash_cost(code, size) > room:
            return Outcome(measured, fit, scale, centre)
        measured.append(measure(queries, random_hash(code, size, N_REPEATS, rng), centre)[0])
        fit = refit(measured, fit.positions, fit.coefficients)


def _planned_sizes(code: Code, n_terms: int | None, available: int) -> list[int]:
    wanted = n_terms if n_terms is not None else 1
    while wanted > 1 and plan_cost(code, wanted) > available:
        wanted //= 2
    if n_terms is not None:
        return round_sizes(code, wanted)
    size = min(_FIRST_SIZE, code.rows.shape[1])
    while size > 1 and hash_cost(code, size) > available:
        size -= 1
    return [size]


def _next_size(
    code: Code, planned: list[int], shares: list[float], size: int, open_ended: bool
) -> int | None:
    """Return the size b of the next round, None after the last one; without a plan, larger while bins are crowded."""
    if not open_ended:
        return planned[len(shares)] if len(shares) < len(planned) else None
    stuck = len(shares) > 2 and shares[-1] > _FALL * shares[-2] and shares[-2] > _FALL * shares[-3]
    if stuck and shares[-1] < _SETTLED:
        return None
    return min(size + int(shares[-1] > _CROWDED), len(code.rows.T))


def _round(measured: list[Bins], code: Code, fit: Fit, n_terms: int, scale: Scale) -> Fit:
    """Read the newest hash, without the known terms, and keep the ``n_terms`` largest terms in all."""
    positions, amplitudes = _vote(measured[-1], code, fit.residuals[-1])
    new = ~np.isin(term_keys(code, positions), term_keys(code, fit.positions))
    largest = np.argsort(-np.abs(amplitudes[new]), kind="stable")[:n_terms]
    merged = np.concatenate([fit.positions, positions[new][largest]])
    start = np.concatenate([fit.coefficients, np.zeros(len(largest))])
    fit = drop_noise(measured, refit(measured, merged, start), scale, _KEEP_Z)
    size = np.abs(fit.coefficients)
    size[0] = np.inf
    kept = np.sort(np.argsort(-size, kind="stable")[: n_terms + 1])
    return refit(measured, fit.positions[kept], fit.coefficients[kept])


def _vote(bins: Bins, code: Code, left: Floats) -> tuple[Positions, Floats]:
    """Read one term per bin: bits by majority over the repeats, amplitude by the median.

    A bin whose vote names a frequency that does not hash into it holds several terms, and is skipped.
    """
    values = left.reshape(len(left), N_REPEATS, -1)
    disagree = (values[:, :, 1:] < 0) != (values[:, :, :1] < 0)
    bits = (2 * disagree.sum(axis=1) > N_REPEATS).astype(np.uint8)
    positions, valid = code.decode(xor_product(bits, bins.hash.shift_keys))
    index, signs = locate(bins, positions)
    here = index == np.flatnonzero(valid)
    chosen = left[index[here]] * characters(signs[here], bins.n_shifts)
    return positions[here], np.median(chosen, axis=1)
