"""Ensembles without categorical nodes put together: side by side as outputs, or as a weighted sum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._trees.ensemble import TreeEnsemble

_SAME = ("feature", "threshold", "missing_left", "category_set", "cover")


def stack_outputs(ensembles: Sequence[TreeEnsemble]) -> TreeEnsemble:
    """Ensembles of one output each as one ensemble of several outputs."""
    return _joined(
        ensembles,
        n_outputs=len(ensembles),
        tree_output=np.repeat(np.arange(len(ensembles)), [e.n_trees for e in ensembles]),
        base=np.concatenate([e.base for e in ensembles]),
        values=np.concatenate([e.values for e in ensembles]),
    )


def weighted_sum(ensembles: Sequence[TreeEnsemble], weights: Sequence[float]) -> TreeEnsemble:
    """The ensemble that predicts the weighted sum of what the others do."""
    pairs = list(zip(ensembles, weights, strict=True))
    return _joined(
        ensembles,
        tree_output=np.concatenate([e.tree_output for e in ensembles]),
        base=np.sum([weight * e.base for e, weight in pairs], axis=0),
        values=np.concatenate([weight * e.values for e, weight in pairs]),
    )


def _joined(ensembles: Sequence[TreeEnsemble], **changes: Any) -> TreeEnsemble:
    """All nodes in one numbering."""
    sizes = np.array([e.n_nodes for e in ensembles])
    start = np.cumsum(sizes) - sizes
    first = ensembles[0]

    def shifted(name: str) -> NDArray[Any]:
        parts = [
            np.where(getattr(e, name) < 0, -1, getattr(e, name) + s)
            for e, s in zip(ensembles, start, strict=True)
        ]
        return np.concatenate(parts)

    changes |= {name: shifted(name) for name in ("roots", "left", "right")}
    changes |= {name: np.concatenate([getattr(e, name) for e in ensembles]) for name in _SAME}
    kind = first.kind.removeprefix("surrogate ").removeprefix("scikit-learn ")
    return first.replace(output_names=None, kind="surrogate " + kind, **changes)
