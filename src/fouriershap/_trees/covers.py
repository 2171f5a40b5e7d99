"""Covers counted from a background instead of the training rows, for path-dependent values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._trees.ensemble import TreeEnsemble, leaves_of

# Weight below nodes that no row reaches: next to nothing, in the proportions of training.
_NEXT_TO_NOTHING = 1e-200


def recounted(
    ensemble: TreeEnsemble, rows: NDArray[Any], weights: NDArray[np.float64] | None
) -> TreeEnsemble:
    """Return the ensemble with ``cover`` counted from weighted rows (n_rows, n_features).

    Below a node that no row reaches, the proportions of training stay; without these, halves.
    """
    weight = np.ones(len(rows)) if weights is None else weights
    cover = np.zeros(ensemble.n_nodes)
    for start, leaves in leaves_of(ensemble, rows):
        some = np.repeat(weight[start : start + len(leaves)], ensemble.n_trees)
        cover += np.bincount(leaves.ravel(), some, minlength=ensemble.n_nodes)
    _add_to_parents(ensemble, cover)
    return ensemble.replace(cover=np.where(cover > 0, cover, _NEXT_TO_NOTHING * ensemble.cover))


def _add_to_parents(e: TreeEnsemble, cover: NDArray[np.float64]) -> None:
    """Add the counts of leaves up to the roots, in place."""
    levels = [e.roots]
    while len(levels[-1]):
        inner = levels[-1][e.feature[levels[-1]] >= 0]
        levels.append(np.concatenate([e.left[inner], e.right[inner]]))
    for level in reversed(levels):
        inner = level[e.feature[level] >= 0]
        cover[inner] = cover[e.left[inner]] + cover[e.right[inner]]
