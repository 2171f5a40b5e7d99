"""PermutationExplainer of shap, at its defaults but with the whole background."""

from __future__ import annotations

import numpy as np

from peers import Explain, Predict


def permutation(predict: Predict, background: np.ndarray, seed: int) -> Explain:
    import shap

    masker = shap.maskers.Independent(background, max_samples=len(background))
    explainer = shap.PermutationExplainer(predict, masker, seed=seed)
    # At least one pass forth and back over all features, and shap's own number where that is more.
    evaluations = max(500, 2 * background.shape[1] + 1)
    explainer(background[:1], max_evals=evaluations, silent=True)  # numba compiles here, not on the clock
    return lambda X: np.asarray(explainer(X, max_evals=evaluations, silent=True).values)
