"""The coded sparse transform: add hashes and peel them until nothing is left to find."""

from __future__ import annotations

import math

import numpy as np

from fouriershap._fourier.bch import Code
from fouriershap._fourier.fit import Fit, Outcome, Scale, is_exact, refit, start_fit, unexplained
from fouriershap._fourier.hashing import Bins, coded_hash, mean_square, measure, total_queries
from fouriershap._fourier.peeling import add_related, peel
from fouriershap._fourier.queries import Queries

N_HASHES = 3
N_EXTRA = 4  # random shifts a hash: an alias of higher degree stays unseen with probability 2^-12
_FIRST_SIZE = 4
_SMALLEST_SIZE = 2
_TERMS_PER_BIN = 4
_MOST_TERMS_PER_BIN = 16
_OVERLOADED = 0.7
_NEARLY_DONE = 0.01
_FEW_LEFT = 0.1
_MOST_RESCUES = 2
_WIDEST_STEP = 3
_MOST_SEARCHES = 4
_PROGRESS = 0.9
_SETTLED = 0.5
_FALL = 0.9
_SPREAD = 0.7


def hash_cost(code: Code, b: int) -> int:
    """Return the queries of one hash with 2^b bins: 2^b (1 + r - b + 4), r the number of the code's parities."""
    return (1 + len(code.rows) - b + N_EXTRA) << b


def first_size(code: Code, n_terms: int | None) -> int:
    """Return the size b of the first three hashes: about four terms to a bin where their number is known."""
    size = _FIRST_SIZE if n_terms is None else math.ceil(math.log2(max(1, n_terms) / _TERMS_PER_BIN))
    return min(max(size, _SMALLEST_SIZE), len(code.rows))


def least_budget(code: Code) -> int:
    """Return the queries of the smallest set of hashes."""
    return N_HASHES * hash_cost(code, min(_SMALLEST_SIZE, len(code.rows)))


def recover_coded(
    queries: Queries, code: Code, n_terms: int | None, available: int, spend: bool, rng: np.random.Generator
) -> Outcome:
    """Find the terms with at most ``available`` queries (`least_budget` or more).

    Hashes are added while something is left to find. With ``spend`` they are added until the function is
    exact or the queries are used up, since answers also average noise.
    """
    size = first_size(code, n_terms)
    while size > _SMALLEST_SIZE and N_HASHES * hash_cost(code, size) > available:
        size -= 1
    measured: list[Bins] = []
    centre: float | None = None
    for _ in range(N_HASHES):
        bins, centre = measure(queries, coded_hash(code, size, N_EXTRA, rng), centre)
        measured.append(bins)
    assert centre is not None
    fit = start_fit(measured, queries.n_bits, code.max_degree)
    shares: list[float] = []
    while True:
        scale = Scale(mean_square(measured), (queries.precision * queries.magnitude) ** 2)
        fit = _search(measured, code, fit, scale)
        shares.append(unexplained(measured, fit, scale))
        done = is_exact(measured, fit, scale) or (not spend and _is_settled(measured, fit, shares))
        size = _next_size(measured, code, fit, shares, available, n_terms is not None, spend)
        if done or hash_cost(code, size) > available - total_queries(measured):
            return Outcome(measured, fit, scale, centre)
        measured.append(measure(queries, coded_hash(code, size, N_EXTRA, rng), centre)[0])


def _search(measured: list[Bins], code: Code, fit: Fit, scale: Scale) -> Fit:
    """Peel the hashes that are large enough for it; the coefficients are then fitted to all answers."""
    used = _uncrowded(measured, len(fit.positions))
    fit = refit(used, fit.positions, fit.coefficients)
    for _ in range(_MOST_SEARCHES):
        fit = peel(used, code, fit, scale)
        if is_exact(used, fit, scale):
            break
        peeled = fit.rss
        fit = add_related(used, code, fit, scale)
        if fit.rss > _PROGRESS * peeled:
            break
    return refit(measured, fit.positions, fit.coefficients)


def _uncrowded(measured: list[Bins], n_terms: int) -> list[Bins]:
    """Return the three largest hashes, and those with a fair number of bins.

    Bins that hold dozens of terms say nothing about any one of them, but make the normal equations dense.
    """
    order = sorted(range(len(measured)), key=lambda i: -measured[i].n_bins)
    enough = max(measured[order[0]].n_bins >> _WIDEST_STEP, n_terms // _MOST_TERMS_PER_BIN)
    kept = [i for rank, i in enumerate(order) if rank < N_HASHES or measured[i].n_bins >= enough]
    return [measured[i] for i in sorted(kept)]


def _next_size(
    measured: list[Bins],
    code: Code,
    fit: Fit,
    shares: list[float],
    available: int,
    planned: bool,
    spend: bool,
) -> int:
    """Return the size b of the next hash, as far as the budget allows.

    Large hashes are best against noise: their bins have the least. The few terms that a plan for a known number may
    leave need few bins. Otherwise bins are crowded: take more of them, sooner where most is unexplained.
    """
    sizes = [len(bins.hash.matrix) for bins in measured]
    size = max(sizes)
    share = shares[-1]
    if share < _SETTLED and _is_spread(measured, fit):
        size += _WIDEST_STEP if spend else 1
    elif planned and share < _FEW_LEFT and sum(b < size for b in sizes) < _MOST_RESCUES:
        size -= 2
    elif share > _OVERLOADED or sizes.count(size) >= (3 if share < _NEARLY_DONE else 2):
        size += 1
    size = min(max(size, _SMALLEST_SIZE), len(code.rows))
    while size > _SMALLEST_SIZE and hash_cost(code, size) > available - total_queries(measured):
        size -= 1
    return size


def _is_settled(measured: list[Bins], fit: Fit, shares: list[float]) -> bool:
    """Return whether the residual looks like noise: it stopped falling and is spread evenly over the bins.

    A large share that does not fall means overloaded bins, not noise.
    """
    if len(shares) < 3 or shares[-1] >= _SETTLED:
        return False
    stuck = shares[-1] > _FALL * shares[-2] and shares[-2] > _FALL * shares[-3]
    return stuck and _is_spread(measured, fit)


def _is_spread(measured: list[Bins], fit: Fit) -> bool:
    """Return whether the median bin holds about as much as noise puts into every bin, not next to nothing."""
    energies = [len(r) * np.einsum("ij,ij->i", r, r) / r.shape[1] for r in fit.residuals]
    variance = fit.rss / total_queries(measured)
    return float(np.median(np.concatenate(energies))) > _SPREAD * variance
