"""PermutationExplainer of shap, with the whole background, at its defaults or with more rounds."""

from __future__ import annotations

import numpy as np

from peers import Explain, Predict


def permutation(predict: Predict, background: np.ndarray, seed: int, *, rounds: int = 1) -> Explain:
    import shap

    masker = shap.maskers.Independent(background, max_samples=len(background))
    explainer = shap.PermutationExplainer(predict, masker, seed=seed)
    # So many passes forth and back over all features, and shap's own number where that is more.
    evaluations = max(500, rounds * (2 * background.shape[1] + 1))
    explainer(background[:1], max_evals=evaluations, silent=True)  # numba compiles here, not on the clock
    return lambda X: np.asarray(explainer(X, max_evals=evaluations, silent=True).values)
