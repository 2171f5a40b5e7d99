"""Background data: checking it and its weights."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.arrays import as_floats
from fouriershap._base.errors import InputError


def check_weights(weights: ArrayLike | None, n_rows: int) -> NDArray[np.float64] | None:
    """Weights (n_rows,) float64 that sum to 1, or None where every row counts the same."""
    if n_rows == 0:
        raise InputError("background has no rows; SHAP values need at least one row to compare with.")
    if weights is None:
        return None
    array = as_floats(weights, "weights")
    if array.shape != (n_rows,):
        raise InputError(f"weights has shape {array.shape}; give one weight per background row, ({n_rows},).")
    if not (np.isfinite(array).all() and (array >= 0).all() and array.sum() > 0):
        raise InputError("weights must be finite and >= 0, and not all zero.")
    normalised: NDArray[np.float64] = array / array.sum()
    return normalised
