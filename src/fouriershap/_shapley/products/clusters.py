"""Clusters of rows by k-means, the same at every run."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_ROUNDS = 12
_MOST_ROWS = 4096  # that place the centres; the others are only assigned
_ROWS_PER_BLOCK = 1 << 16


def cluster(points: NDArray[np.float32], weights: NDArray[np.float64], n: int) -> NDArray[np.int64]:
    """Return the cluster of each point, (n_rows,), numbered 0, 1, ... without gaps; at most ``n``."""
    rng = np.random.default_rng(0)
    chosen = np.arange(len(points))
    if len(points) > _MOST_ROWS:
        chosen = rng.choice(len(points), _MOST_ROWS, replace=False, p=weights / weights.sum())
    some = points[chosen]
    mass = np.ones(len(some)) if len(points) > _MOST_ROWS else weights / weights.sum()
    centres = _first_centres(some, mass, n, rng)
    for _ in range(_ROUNDS):
        labels = _nearest(some, centres)
        share = np.zeros((len(centres), len(some)), dtype=np.float32)
        share[labels, np.arange(len(some))] = mass
        total = share.sum(axis=1, keepdims=True)
        moved = share @ some
        centres = np.where(total > 0, moved / np.where(total > 0, total, 1), centres)
    labels = np.concatenate(
        [_nearest(points[i : i + _ROWS_PER_BLOCK], centres) for i in range(0, len(points), _ROWS_PER_BLOCK)]
    )
    return np.asarray(np.unique(labels, return_inverse=True)[1], dtype=np.int64)


def _first_centres(
    points: NDArray[np.float32], mass: NDArray[np.float64], n: int, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Draw centres far from each other: each by its squared distance from those before."""
    centres = [points[rng.choice(len(points), p=mass / mass.sum())]]
    distance = ((points - centres[0]) ** 2).sum(axis=1).astype(np.float64)
    while len(centres) < n and (chance := distance * mass).sum() > 0:
        centres.append(points[rng.choice(len(points), p=chance / chance.sum())])
        distance = np.minimum(distance, ((points - centres[-1]) ** 2).sum(axis=1))
    return np.stack(centres)


def _nearest(points: NDArray[np.float32], centres: NDArray[np.float32]) -> NDArray[np.int64]:
    return np.asarray(((centres**2).sum(axis=1) - 2 * points @ centres.T).argmin(axis=1), dtype=np.int64)
