"""A ridge regression with the kernel exp(-sum_j theta_j [x_j != z_j]), a weight per feature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.checks import need
from fouriershap._blackbox.candidates.trees import one_thread

Floats = NDArray[np.float64]
_BOUNDS = (-12.0, 3.0)  # of log theta: from "does not matter" to "nothing in common"
_NOISE_BOUNDS = (-16.0, 1.0)
_BLOCK = 4096


@dataclass(frozen=True, eq=False)
class OneHot:
    """Levels as 0/1 columns, so that counting differences is a matrix product.

    Attributes
    ----------
    levels : tuple of float arrays
        Per feature the sorted codes, or edges of intervals (``is_cut``).
    feature : (n_columns,) int64
        The feature of each column.
    """

    levels: tuple[Floats, ...]
    is_cut: tuple[bool, ...]
    feature: NDArray[np.int64]

    def __call__(self, codes: Floats) -> NDArray[np.float32]:
        """(n_rows, n_columns) of 0 and 1."""
        parts = []
        for f, (levels, is_cut) in enumerate(zip(self.levels, self.is_cut, strict=True)):
            column = codes[:, f]
            if is_cut:
                number = np.searchsorted(levels, column, side="right")
                parts.append(number[:, None] == np.arange(len(levels) + 1))
            else:
                both_missing = np.isnan(column)[:, None] & np.isnan(levels)
                parts.append((column[:, None] == levels) | both_missing)
        return np.concatenate(parts, axis=1).astype(np.float32)


def make_one_hot(pool_codes: Floats, most_levels: int = 64, n_cuts: int = 16) -> OneHot:
    """Levels of each feature in the data; numbers with more than ``most_levels`` are cut at quantiles."""
    levels, is_cut, feature = [], [], []
    for f in range(pool_codes.shape[1]):
        found = np.unique(pool_codes[:, f])
        cut = len(found) > most_levels
        if cut:
            found = np.unique(np.nanquantile(pool_codes[:, f], np.arange(1, n_cuts) / n_cuts))
        levels.append(found)
        is_cut.append(cut)
        feature += [f] * (len(found) + cut)
    return OneHot(tuple(levels), tuple(is_cut), np.array(feature))


def gram(
    a: NDArray[np.float32], b: NDArray[np.float32], theta: Floats, dtype: type[np.floating[Any]] = np.float64
) -> NDArray[Any]:
    """Kernel matrix (n_a, n_b) of one-hot rows; theta (n_columns,) is that of each column's feature.

    Factors need double precision: without noise the matrix is so close to singular that single is not enough.
    """
    shared: NDArray[Any] = (a * theta).astype(dtype) @ b.T.astype(dtype)
    shared -= dtype(_total(a, theta))
    np.exp(shared, out=shared)
    return shared


def _total(a: NDArray[np.float32], theta: Floats) -> float:
    """Sum of theta over features: what a row shares with itself."""
    return float((a[:1] @ theta)[0]) if len(a) else 0.0


def learn_theta(x: NDArray[np.float32], feature: NDArray[np.int64], y: Floats) -> tuple[Floats, float]:
    """Weights (n_features,) and noise by maximal marginal likelihood.

    Parameters
    ----------
    x : (n, n_columns) one-hot rows
    y : (n, n_outputs), each of mean 0 and spread 1; they share the kernel. Zeros, where an output is constant
    """
    scipy_linalg, minimize = scipy_tools()
    n, n_features = len(x), int(feature.max()) + 1
    start = np.append(np.full(n_features, np.log(1.0 / n_features)), np.log(1e-3))
    y = y[:, y.any(axis=0)]  # a constant tells nothing of the kernel
    if not y.shape[1]:
        return np.exp(start[:-1]), float(np.exp(start[-1]))
    x64 = x.astype(np.float64)

    def loss(log: Floats) -> tuple[float, Floats]:
        theta, noise = np.exp(log[:-1]), np.exp(log[-1])
        k = np.exp((x64 * theta[feature]) @ x64.T - theta.sum())
        factor = scipy_linalg.cho_factor(k + noise * np.eye(n), lower=True)
        lower, _ = scipy_linalg.lapack.dpotri(factor[0], lower=1)
        inverse = np.tril(lower) + np.tril(lower, -1).T
        alpha = inverse @ y
        scale = (y * alpha).sum(axis=0) / n  # the best variance, per output, in closed form
        value = 0.5 * n * np.log(scale).sum() + y.shape[1] * np.log(np.diag(factor[0])).sum()
        outer = (alpha / scale) @ alpha.T - y.shape[1] * inverse
        weighted = outer * k
        together = ((weighted @ x64) * x64).sum(axis=0)
        same = np.bincount(feature, together, minlength=n_features)
        gradient = 0.5 * theta * (weighted.sum() - same)
        return value, np.append(gradient, -0.5 * noise * np.trace(outer))

    bounds = [_BOUNDS] * n_features + [_NOISE_BOUNDS]
    options = {"maxiter": 40}
    with one_thread():
        best = minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B", options=options).x
    return np.exp(best[:-1]), float(np.exp(best[-1]))


@dataclass(frozen=True, eq=False)
class KernelRidge:
    """A fitted kernel ridge regression.

    Attributes
    ----------
    points : (n, n_columns) one-hot rows
    theta : (n_columns,) float64
    alpha : (n, n_outputs) float64
    mean : (n_outputs,) float64
    dtype : type
        Precision of the kernel in predictions: that in which it was solved.
    """

    one_hot: OneHot
    points: NDArray[np.float32]
    theta: Floats
    alpha: Floats
    mean: Floats
    dtype: type[np.floating[Any]] = np.float64

    def predict(self, codes: Floats) -> Floats:
        """Outputs (n_rows, n_outputs)."""
        out = np.empty((len(codes), self.alpha.shape[1]))
        alpha = self.alpha.astype(self.dtype)
        for first in range(0, len(codes), _BLOCK):
            rows = self.one_hot(codes[first : first + _BLOCK])
            out[first : first + _BLOCK] = gram(rows, self.points, self.theta, self.dtype) @ alpha
        return out + self.mean


def fit_ridge(
    one_hot: OneHot, points: NDArray[np.float32], y: Floats, theta: Floats, noise: float
) -> tuple[KernelRidge, Any]:
    """The regression and the Cholesky factor of its kernel matrix."""
    scipy_linalg, _ = scipy_tools()
    weights = theta[one_hot.feature]
    k = gram(points, points, weights)
    k[np.diag_indices(len(k))] += noise
    factor = scipy_linalg.cho_factor(k, lower=True, overwrite_a=True)
    mean = y.mean(axis=0)
    alpha = scipy_linalg.cho_solve(factor, y - mean)
    return KernelRidge(one_hot, points, weights, alpha, mean), factor


def held_out_residuals(factor: Any, alpha: Floats, fold: NDArray[np.int64]) -> Floats:
    """What each fold's answers miss when the others alone are fitted, (n, n_outputs), without refitting.

    With A the inverse kernel matrix, the residuals of fold F are A_FF^{-1} alpha_F. NaN for rows of fold -1, which
    are in every fit.
    """
    scipy_linalg, _ = scipy_tools()
    inverse, _ = scipy_linalg.lapack.dpotri(factor[0], lower=1)
    out = np.full_like(alpha, np.nan)
    for k in np.unique(fold[fold >= 0]):
        inside = np.flatnonzero(fold == k)
        block = np.tril(inverse[np.ix_(inside, inside)])
        block = block + np.tril(block, -1).T
        out[inside] = scipy_linalg.solve(block, alpha[inside], assume_a="pos")
    return out


def scipy_tools() -> tuple[Any, Any]:
    """Its linear algebra, and its minimiser."""
    linalg, optimize = (
        need(f"scipy.{name}", "the kernel candidate", "[blackbox]") for name in ("linalg", "optimize")
    )
    return linalg, optimize.minimize
