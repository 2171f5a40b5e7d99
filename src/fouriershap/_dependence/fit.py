"""Fit a `Mixture` to rows, by expectation and maximisation where there are several components or missing numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fouriershap._dependence.coordinates import ranked, scaled
from fouriershap._dependence.mixture import LEAST_VARIANCE, Mixture, row_patterns
from fouriershap._waves.columns import LABEL_VALUE

Floats = NDArray[np.float64]
MODELS = ("gaussian", "copula", "mixture")
_MOST_ROWS = 5_000  # from which several components are learnt
_MOST_STEPS, _SETTLED = 100, 1e-4  # steps, and the gain of the mean log likelihood at which they end
_STARTS = 2
_FEW_VALUES = 5  # distinct values of a number that counts as a label in a mixture
_COMPONENTS = (2, 4, 8)
_ROWS_PER_COMPONENT = 20
_ROUNDS, _MOST_TOLD = 10, 20  # of k-means, from which components start, and symbols that it sees
_PSEUDO = 1.0  # rows that the shares of all components have in common


def fit_dependence(
    name: str, rows: Floats, is_label: NDArray[np.bool_], weights: Floats | None, seed: int
) -> Mixture:
    """Return the model of this name, one of MODELS; of mixtures the likeliest, less a penalty for its size (BIC)."""
    share = np.full(len(rows), 1 / len(rows)) if weights is None else weights / weights.sum()
    rng = np.random.default_rng(seed)
    if name != "mixture":
        return _fit(rows, is_label, share, 1, rng, of_ranks=name == "copula")
    chosen = rng.permutation(len(rows))[:_MOST_ROWS]
    rows, share = rows[chosen], share[chosen] / share[chosen].sum()
    few = [len(np.unique(column[~np.isnan(column)])) <= _FEW_VALUES for column in rows.T]
    is_label = is_label | np.array(few, dtype=bool)
    counts = [k for k in _COMPONENTS if k * _ROWS_PER_COMPONENT <= len(rows)] or [1]
    found = [_fit(rows, is_label, share, k, rng) for k in counts for _ in range(_STARTS)]
    return min(found, key=lambda each: _criterion(each, rows, share))


def _criterion(mixture: Mixture, rows: Floats, share: Floats) -> float:
    d = len(mixture.numbers)
    size = mixture.n_components * (1 + d + d * (d + 1) / 2 + (mixture.n_symbols - 1).sum())
    return float(-2 * len(rows) * (share @ mixture.log_density(rows)) + size * np.log(len(rows)))


def _fit(
    rows: Floats,
    is_label: NDArray[np.bool_],
    share: Floats,
    n_components: int,
    rng: np.random.Generator,
    of_ranks: bool = False,
) -> Mixture:
    numbers = rows[:, ~is_label]
    coordinates = ranked(numbers, share) if of_ranks else scaled(numbers, share)
    n, d = len(is_label), numbers.shape[1]
    levels = [
        np.unique(column[~np.isnan(column)]) if label else np.zeros(0)
        for column, label in zip(rows.T, is_label, strict=True)
    ]
    n_symbols = np.array([max(len(found), 1) + 1 for found in levels], dtype=np.int64)
    most = int(n_symbols.max(initial=1))
    codes = np.full((n, max(most - 1, 1)), np.inf)
    for f, found in enumerate(levels):
        codes[f, : len(found)] = found
    empty = Mixture(
        coordinates,
        is_label,
        codes,
        n_symbols,
        np.full(n_components, 1 / n_components),
        np.zeros((n_components, d)),
        np.tile(np.eye(d), (n_components, 1, 1)),
        np.zeros((n_components, n, most)),
    )
    positions, symbols = empty.positions(rows), empty.symbols(rows)
    is_whole = not np.isnan(positions).any()
    mixture = _maximise(empty, positions, symbols, share, _start(positions, symbols, n_components, rng))
    if n_components == 1 and is_whole:
        return _with_unit_scores(mixture)
    before = -np.inf
    for _ in range(_MOST_STEPS):
        log = np.empty((n_components, len(rows)))
        for some, gone in row_patterns(positions):
            everything = mixture.condition(np.ones((1, n), dtype=bool), gone)
            log[:, some] = everything.log_joint(positions[some], symbols[some])[:, 0]
        total = np.logaddexp.reduce(log, axis=0)
        mixture = _maximise(mixture, positions, symbols, share, np.exp(log - total))
        reached = float(share @ total)
        if reached - before < _SETTLED:
            break
        before = reached
    return _with_unit_scores(mixture)


def _with_unit_scores(mixture: Mixture) -> Mixture:
    """Return the mixture with standard normal ranks of few values, whose scores are those of their middle ranks."""
    spread = np.sqrt(np.diagonal(mixture.covariances, axis1=1, axis2=2))
    unit = np.where(mixture.coordinates.discrete, 1 / spread, 1.0)
    means = np.where(mixture.coordinates.discrete, 0.0, mixture.means)
    return replace(mixture, means=means, covariances=mixture.covariances * unit[:, :, None] * unit[:, None])


def _start(
    positions: Floats, symbols: NDArray[np.int64], n_components: int, rng: np.random.Generator
) -> Floats:
    """Return a component for each row, (n_components, n_rows) of 0 and 1: that of the nearest of distant rows."""
    if n_components == 1:
        return np.ones((1, len(positions)))
    told = [(symbols == s) * LABEL_VALUE for s in range(1, min(int(symbols.max(initial=0)), _MOST_TOLD) + 1)]
    points = np.column_stack([np.where(np.isnan(positions), 0.0, positions), *told])
    centers = points[rng.integers(len(points), size=1)]
    while len(centers) < n_components:
        distance = ((points[:, None] - centers) ** 2).sum(axis=2).min(axis=1)
        total = distance.sum()
        chosen = int(rng.choice(len(points), p=distance / total) if total > 0 else rng.integers(len(points)))
        centers = np.concatenate([centers, points[chosen][None]])
    for _ in range(_ROUNDS):
        nearest = ((points[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
        for k in np.unique(nearest).tolist():
            centers[k] = points[nearest == k].mean(axis=0)
    nearest = ((points[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
    return np.asarray((nearest == np.arange(n_components)[:, None]).astype(np.float64))


def _maximise(
    mixture: Mixture, positions: Floats, symbols: NDArray[np.int64], share: Floats, component: Floats
) -> Mixture:
    """Return the likeliest mixture where rows belong to components with these probabilities."""
    n_components, d = mixture.means.shape
    belongs = component * share
    size = belongs.sum(axis=1)
    total = np.maximum(size, 1e-12)
    filled = np.empty((n_components, *positions.shape))
    covariances = np.zeros((n_components, d, d))
    for some, gone in row_patterns(positions):
        filled[:, some] = positions[some]
        if gone.any():  # missing numbers are what the others let expect
            rest = mixture.condition(np.ones((1, len(mixture.is_label)), dtype=bool), gone)
            filled[:, some] = rest.means_of(positions[some])[:, 0]
            covariances += belongs[:, some].sum(axis=1)[:, None, None] * rest.covariances[:, 0]
    means = (belongs[:, :, None] * filled).sum(axis=1) / total[:, None]
    moved = filled - means[:, None]
    covariances += (belongs[:, :, None] * moved).swapaxes(1, 2) @ moved
    # Towards no correlation, by the square of the features for each row: nothing where rows are many.
    pull = d**2 / np.maximum(size * len(positions), 1.0) ** 2
    variances = np.maximum(np.diagonal(covariances.sum(axis=0)), LEAST_VARIANCE)
    pulled = covariances / total[:, None, None] + pull[:, None, None] * np.diag(variances)
    covariances = pulled / (1 + pull)[:, None, None] + LEAST_VARIANCE * np.eye(d)
    shares = np.zeros_like(mixture.shares)
    for s in range(shares.shape[2]):
        shares[..., s] = belongs @ (symbols == s)
    together = shares.sum(axis=0)
    pseudo = _PSEUDO / len(positions) if n_components > 1 else 0.0
    shares = (shares + pseudo * together) / (total + pseudo)[:, None, None]
    shares /= np.maximum(shares.sum(axis=2, keepdims=True), 1e-300)
    return replace(
        mixture,
        weights=np.maximum(size, 1e-12) / total.sum(),
        means=means,
        covariances=covariances,
        shares=shares,
    )
