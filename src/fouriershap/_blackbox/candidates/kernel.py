"""A kernel machine that teaches waves: smooth, in the directions in which the fitted waves change.

Its metric is the mean outer product of the slopes of fitted waves (Radhakrishnan et al. 2024), so directions in which
nothing happens do not keep rows apart. Such a kernel is not a product over players and has no SHAP values in
closed form, but waves can be fitted to its predictions of any row, without queries.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fouriershap._blackbox.task import N_FOLDS
from fouriershap._shapley.engine import Floats
from fouriershap._waves.training import Fitted

CENTRES, MOST_CENTRES = 1500, 2000  # rows that the kernel is centred at, and where answers are many
MANY_ANSWERS = 8000
MOST_COLUMNS = 1000  # beyond, the directions of a metric alone take seconds
RIDGES = (1e-6, 1e-4, 1e-3, 1e-2, 1e-1)
SHAPES = ((0.0, 1.0), (0.5, 0.3), (0.5, 1.0), (1.0, 0.3), (1.0, 1.0), (1.0, 2.0))  # power of slopes, width
_LINEAR = 0.02  # how much of a straight line is in the kernel
_JITTER = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 1e-5}  # below it, rounding
_SINGLE = 1e-4  # ridge from which single precision, which is quicker, is as good
_LEAST_OF_SOME = 1e-3  # ridge where some rows alone are centres
_N_SLOPES = 1000
_N_TRIED = 600  # rows by which shape and ridge are chosen, and a third of all, at most; as many to test them
_ROWS_PER_BLOCK = 4096


@dataclass(frozen=True, eq=False)
class Kernel:
    """Smooth bells around some rows.

    Attributes
    ----------
    root : (n_columns, n_columns) float64
        Turns columns into coordinates whose distances count.
    centres : (n_centres, n_columns)
        In these coordinates.
    width : float
        How fast a bell falls with the square of the distance.
    weights : (n_centres, n_outputs) float64
    """

    root: Floats
    centres: NDArray[np.floating]
    width: float
    weights: Floats

    def predict(self, inputs: NDArray[np.float32]) -> Floats:
        """Return outputs (n_rows, n_outputs) of columns (n_rows, n_columns)."""
        blocks = (inputs[i : i + _ROWS_PER_BLOCK] for i in range(0, len(inputs), _ROWS_PER_BLOCK))
        weights = self.weights.astype(self.centres.dtype)
        parts = [
            _bells(_moved(block, self.root, self.centres), self.centres, self.width) @ weights
            for block in blocks
        ]
        return np.concatenate(parts).astype(np.float64) if parts else np.empty((0, self.weights.shape[1]))


def can_fit_kernel(n_columns: int) -> bool:
    """Return whether columns are few enough for a metric, and scipy is installed."""
    return n_columns <= MOST_COLUMNS and importlib.util.find_spec("scipy") is not None


def kernel_work(n_answers: int) -> float:
    """Return the approximate number of multiplications of a fit."""
    n_centres = _n_centres(n_answers)
    return 2.0 * n_answers * n_centres**2 + 4.0 * n_centres**3


def _n_centres(n_answers: int) -> int:
    return min(n_answers, CENTRES if n_answers < MANY_ANSWERS else MOST_CENTRES)


def fit_kernel(
    inputs: NDArray[np.float32],
    targets: Floats,
    fold: NDArray[np.int64],
    nets: list[Fitted],
    rng: np.random.Generator,
) -> tuple[Kernel, Floats]:
    """Fit the kernel to all answers, and predict each fold by a fit to the others; NaN outside of folds.

    Parameters
    ----------
    inputs : (n_rows, n_columns) float32
    targets : (n_rows, n_outputs) float64
        Of mean 0 and a spread of about 1.
    fold : (n_rows,) int64
        -1 for rows that are in every fit.
    nets : list of Fitted
        Waves, by whose slopes distances are measured.
    """
    from scipy.linalg import cholesky, solve_triangular

    slopes = _slopes(nets, inputs[rng.permutation(len(inputs))[:_N_SLOPES]], targets.shape[1])
    root, width, ridge = _choose_shape(inputs, targets, fold, slopes, rng)
    chosen = rng.permutation(len(inputs))[: _n_centres(len(inputs))]
    if len(chosen) < len(inputs):
        ridge = max(ridge, _LEAST_OF_SOME)
    dtype = np.dtype(np.float64 if ridge < _SINGLE else np.float32)
    centres = np.asarray(inputs[chosen] @ root, dtype=dtype)
    exact = centres.astype(np.float64)  # in single precision it would not be positive
    between = _bells(exact, exact, width)
    between[np.diag_indices(len(between))] += _JITTER[dtype]
    lower = np.asarray(cholesky(between, lower=True, overwrite_a=True, check_finite=False), dtype=dtype)

    def features(rows: NDArray[np.float32]) -> NDArray[np.floating]:
        """Return features (n_rows, n_centres) whose scalar products are the kernel's."""
        bells = _bells(_moved(rows, root, centres), centres, width)
        return np.asarray(solve_triangular(lower, bells.T, lower=True, check_finite=False).T)

    weights, predictions = _ridge_by_folds(features, inputs, targets, fold, ridge)
    weights = solve_triangular(lower.astype(np.float64), weights, lower=True, trans=1, check_finite=False)
    return Kernel(root, centres, width, np.asarray(weights)), predictions


def _ridge_by_folds(
    features: Callable[[NDArray[np.float32]], NDArray[np.floating]],
    inputs: NDArray[np.float32],
    targets: Floats,
    fold: NDArray[np.int64],
    ridge: float,
) -> tuple[Floats, Floats]:
    """Return weights of the features, and predictions of each fold by the others."""
    parts = [np.flatnonzero(fold == k) for k in range(-1, N_FOLDS)]
    rows = [features(inputs[part]) for part in parts]
    grams = [np.asarray(each.T @ each, dtype=np.float64) for each in rows]
    moments = [np.asarray(each.T @ targets[part]) for each, part in zip(rows, parts, strict=True)]
    gram, moment = sum(grams[1:], grams[0]), sum(moments[1:], moments[0])
    predictions = np.full(targets.shape, np.nan)
    for k in range(1, N_FOLDS + 1):
        predictions[parts[k]] = rows[k] @ _solve(gram - grams[k], moment - moments[k], ridge)
    return _solve(gram, moment, ridge), predictions


def _solve(gram: Floats, moment: Floats, ridge: float) -> Floats:
    from scipy.linalg import cho_factor, cho_solve

    ridged = gram.copy()
    ridged[np.diag_indices(len(ridged))] += ridge
    return np.asarray(cho_solve(cho_factor(ridged, check_finite=False, overwrite_a=True), moment))


def _slopes(nets: list[Fitted], inputs: NDArray[np.float32], n_outputs: int) -> Floats:
    """Return the mean outer product (n_columns, n_columns) of the slopes of waves, summed over outputs."""
    n_columns = inputs.shape[1]
    total = np.zeros((n_columns, n_columns))
    for net in nets:
        n_waves = len(net.frequencies)
        sines = np.sin(inputs @ net.frequencies.T + net.phases)
        weights = net.weights.astype(np.float32)
        for q in range(n_outputs):
            slope = (
                weights[n_waves : n_waves + n_columns, q] - (sines * weights[:n_waves, q]) @ net.frequencies
            )
            total += slope.T @ slope
    return total / (len(nets) * max(len(inputs), 1))


def _root(values: Floats, vectors: Floats, inputs: NDArray[np.float32], power: float) -> Floats:
    """Return the square root of a power of the slopes, scaled so that rows have a mean square distance of 2."""
    values = np.maximum(values, 0.0) ** power if power else np.ones_like(values)
    root = vectors * np.sqrt(values)
    spread = float(np.var(inputs @ root, axis=0).sum())
    return np.asarray(root / np.sqrt(spread)) if spread > 0 else root


def _choose_shape(
    inputs: NDArray[np.float32],
    targets: Floats,
    fold: NDArray[np.int64],
    slopes: Floats,
    rng: np.random.Generator,
) -> tuple[Floats, float, float]:
    """Choose root, width and ridge by some answers of fold 0, fitted to some others."""
    n = min(_N_TRIED, len(inputs) // 3)
    some, test = (rng.permutation(np.flatnonzero(rows))[:n] for rows in (fold != 0, fold == 0))
    best = np.inf, np.eye(inputs.shape[1]), 1.0, 1.0
    directions = np.linalg.eigh(slopes)
    roots = {power: _root(*directions, inputs, power) for power in {power for power, _ in SHAPES}}
    for power, width in SHAPES:
        centres, others = (inputs[rows] @ roots[power] for rows in (some, test))
        between, seen = (np.asarray(_bells(rows, centres, width), np.float64) for rows in (centres, others))
        for ridge in RIDGES:
            said = seen @ _solve(between, targets[some], ridge)
            missed = float(((said - targets[test]) ** 2).sum())
            best = min(best, (missed, roots[power], width, ridge), key=lambda each: each[0])
    return best[1:]


def _moved(rows: NDArray[np.float32], root: Floats, like: NDArray[np.floating]) -> NDArray[np.floating]:
    return np.asarray(rows @ root, dtype=like.dtype)


def _bells(rows: NDArray[np.floating], centres: NDArray[np.floating], width: float) -> NDArray[np.floating]:
    """Return the kernel (n_rows, n_centres): a bell, some of a straight line, and a constant."""
    products = rows @ centres.T
    squares = (rows**2).sum(axis=1)[:, None] + (centres**2).sum(axis=1) - 2 * products
    np.maximum(squares, 0, out=squares)
    squares *= -width
    np.exp(squares, out=squares)
    products *= _LINEAR
    squares += products
    squares += 1
    return np.asarray(squares)
