"""All leaf values of an ensemble fitted together.

Boosting sets the values of a tree once and never looks back. Given the trees, the best values are a linear
least-squares problem: each row adds up one value per tree. A few steps of LSQR from the values that boosting
found solve it well enough; stopping early keeps them close to where they came from.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fouriershap._base.errors import MissingDependencyError
from fouriershap._shapley.engine import Floats
from fouriershap._trees.ensemble import TreeEnsemble, find_leaves

N_STEPS = 20
DAMPING = 1.0  # a pseudo-row per leaf that asks for no change


def refit_leaves(ensemble: TreeEnsemble, codes: Floats, y: Floats) -> TreeEnsemble:
    """The same trees with values that fit answers y (n,) better; one output, no categorical nodes."""
    rows = design(ensemble, codes)
    values = ensemble.values[:, 0]
    missed = y - ensemble.base[0] - rows @ values
    change = _lsqr()(rows, missed, damp=np.sqrt(DAMPING), iter_lim=N_STEPS)[0]
    return ensemble.replace(values=(values + change)[:, None])


def design(ensemble: TreeEnsemble, codes: Floats) -> Any:
    """Which leaves each row reaches: a sparse matrix (n_rows, n_nodes) of ones."""
    from scipy.sparse import csr_matrix

    none = np.zeros(0, dtype=np.int64)
    leaves = find_leaves(ensemble, ensemble.clean_rows(codes), none, 1)
    ends = np.arange(len(codes) + 1) * ensemble.n_trees
    ones = np.ones(leaves.size, dtype=np.float32)
    return csr_matrix((ones, leaves.reshape(-1), ends), shape=(len(codes), ensemble.n_nodes))


def _lsqr() -> Any:
    try:
        from scipy.sparse.linalg import lsqr
    except ImportError as error:
        raise MissingDependencyError(
            "refitting leaves needs scipy: pip install 'fouriershap[blackbox]'"
        ) from error
    return lsqr
