"""What the regression methods share: coalitions drawn from the Shapley kernel, and the interventional game."""

from __future__ import annotations

import numpy as np

from peers import Predict


def size_shares(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Sizes 1 to n - 1, and the share of coalitions of each size."""
    sizes = np.arange(1, n)
    kernel = 1.0 / (sizes * (n - sizes))
    return sizes, kernel / kernel.sum()


def draw(rng: np.random.Generator, shape: tuple[int, ...], n: int) -> np.ndarray:
    """Coalitions (*shape, n) bool."""
    sizes, share = size_shares(n)
    size = rng.choice(sizes, (*shape, 1), p=share)
    return rng.random((*shape, n)).argsort(axis=-1) < size


def values(predict: Predict, background: np.ndarray, row: np.ndarray, coalitions: np.ndarray) -> np.ndarray:
    """v(S) per coalition: the mean over the background, with the features of S from the row."""
    hybrids = np.where(np.asarray(coalitions, dtype=bool)[:, None], row, background[None])
    return predict(hybrids.reshape(-1, len(row))).reshape(len(coalitions), -1).mean(axis=1)
