"""Kernel ridge regression on many points by conjugate gradients, all folds at once.

A fit that leaves out a fold has the same kernel matrix, with the fold's rows and columns struck out. So the fit of
all points and those of the folds are columns of one block: they share the one large product of each step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._blackbox.candidates.kernel_ridge import Floats, gram, scipy_tools

N_PIVOTS = 1_000  # points of the preconditioner: its cost grows with their square
MOST_STEPS = 60
TOLERANCE = 1e-2  # length of what is missed, as a share of the answers'
LEAST_NOISE = 3e-2  # to be asked for: with less, steps are many more, and folds miss no less
_BLOCK = 1024


def solve_with_folds(
    points: NDArray[np.float32], y: Floats, weights: Floats, noise: float, fold: NDArray[np.int64]
) -> tuple[Floats, Floats]:
    """Ridge regression of all points, and what each fold's answers miss when the others alone are fitted.

    Parameters
    ----------
    points : (n, n_columns) one-hot rows
    y : (n, n_outputs) float64, of mean 0
    weights : (n_columns,) float64
        theta of each column's feature.
    fold : (n,) int64
        -1 for rows that are in every fit.

    Returns
    -------
    alpha, missed : (n, n_outputs) float64
        NaN is what rows miss that are in every fit.
    """
    folds = np.unique(fold[fold >= 0])
    masks = np.stack([np.ones(len(y), dtype=bool)] + [fold != number for number in folds])
    near = _near_inverses(points, weights, noise, masks)
    alpha, missed = _conjugate_gradients(single_gram(points, weights), y, noise, masks, near)
    missed[fold < 0] = np.nan
    return alpha, missed


def single_gram(points: NDArray[np.float32], weights: Floats) -> NDArray[np.float32]:
    """Kernel matrix (n, n) in single precision, made in blocks."""
    n = len(points)
    k = np.empty((n, n), dtype=np.float32)
    for first in range(0, n, _BLOCK):
        k[first : first + _BLOCK] = gram(points[first : first + _BLOCK], points, weights, np.float32)
    return k


@dataclass(frozen=True, eq=False)
class _NearInverse:
    """The inverse of F F^T + shift for the rows F that a mask keeps, by Woodbury's formula.

    Attributes
    ----------
    rows : (n, n_pivots) float64
        With those that the mask leaves out. The formula subtracts what is nearly equal: single precision fails.
    factor : Cholesky factor of F^T F + shift
    """

    rows: Floats
    factor: Any
    shift: float

    def __call__(self, vectors: Floats) -> Floats:
        """Times vectors (n, n_outputs), 0 outside the mask; what comes out there is to be ignored."""
        scipy_linalg, _ = scipy_tools()
        inner = scipy_linalg.cho_solve(self.factor, self.rows.T @ vectors)
        out: Floats = (vectors - self.rows @ inner) / self.shift
        return out


def _near_inverses(
    points: NDArray[np.float32], weights: Floats, noise: float, masks: NDArray[np.bool_]
) -> list[_NearInverse]:
    """Nystroem's approximation of the kernel matrix from the first points (they come in random order).

    What it misses of the diagonal counts as noise: so the first steps already are a sensible regression.
    """
    scipy_linalg, _ = scipy_tools()
    pivots = points[:N_PIVOTS]
    among = gram(pivots, pivots, weights)
    among[np.diag_indices(len(among))] += 1e-6
    root = scipy_linalg.cholesky(among, lower=True)
    rows = np.empty((len(points), len(pivots)))
    for first in range(0, len(points), _BLOCK):
        block = gram(points[first : first + _BLOCK], pivots, weights)
        rows[first : first + _BLOCK] = scipy_linalg.solve_triangular(root, block.T, lower=True).T
    shift = noise + max(1.0 - float((rows**2).sum(axis=1).mean()), 0.0)
    whole = rows.T @ rows + shift * np.eye(len(pivots))
    found = []
    for mask in masks:
        square = whole - rows[~mask].T @ rows[~mask]
        found.append(_NearInverse(rows, scipy_linalg.cho_factor(square, lower=True), shift))
    return found


def _conjugate_gradients(
    k: NDArray[np.float32], y: Floats, noise: float, masks: NDArray[np.bool_], near: list[_NearInverse]
) -> tuple[Floats, Floats]:
    """Solution of the first mask, which keeps all rows, and what the others miss in rows that they leave out.

    Each step's product also says how it changes the predictions of the rows left out.
    """
    inside = masks[:, :, None]
    alpha, direction = np.zeros((2, len(masks), *y.shape))
    left, last = np.where(inside, y, 0.0), np.ones((len(masks), 1, y.shape[1]))
    missed, enough = y.copy(), TOLERANCE**2 * float((left**2).sum())
    tiny = np.finfo(np.float64).tiny
    for _ in range(MOST_STEPS):
        if (left**2).sum() <= enough:
            break
        towards = np.stack([solve(part) for solve, part in zip(near, left, strict=True)])
        towards = np.where(inside, towards, 0.0)
        size = (left * towards).sum(axis=1, keepdims=True)
        direction = towards + size / np.maximum(last, tiny) * direction
        last = size
        product = _times(k, direction)
        image = np.where(inside, product + noise * direction, 0.0)
        step = size / np.maximum((direction * image).sum(axis=1, keepdims=True), tiny)
        alpha += step * direction
        left -= step * image
        missed -= np.where(inside, 0.0, step * product).sum(axis=0)
    return alpha[0], missed


def _times(k: NDArray[np.float32], vectors: Floats) -> Floats:
    """K times each of (n_masks, n, n_outputs) vectors, in one product."""
    n_masks, n, n_outputs = vectors.shape
    flat = vectors.transpose(1, 0, 2).reshape(n, -1).astype(np.float32)
    product = (k @ flat).astype(np.float64)
    return product.reshape(n, n_masks, n_outputs).transpose(1, 0, 2)
