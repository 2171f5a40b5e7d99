"""KernelSHAP of shap: at its defaults, which keep ten features (``l1_reg``), or with all of them."""

from __future__ import annotations

import logging
import warnings

import numpy as np

from peers import Explain, Predict


def kernel_shap(
    predict: Predict,
    background: np.ndarray,
    seed: int,
    *,
    all_features: bool = False,
    sample_factor: float = 1.0,
    n_samples: int | None = None,
) -> Explain:
    """``sample_factor`` multiplies the default number of coalitions, 2 M + 2048, M the number of varying features."""
    import shap

    logging.getLogger("shap").setLevel(logging.WARNING)
    explainer = shap.KernelExplainer(predict, background, seed=seed)
    options = {"l1_reg": 0} if all_features else {}

    def explain(X: np.ndarray) -> np.ndarray:
        np.random.seed(seed)  # noqa: NPY002 - KernelExplainer draws from the global generator
        varying = int((X[:, None] != background).any(axis=(0, 1)).sum())
        count = n_samples or (
            "auto" if sample_factor == 1.0 else max(int(sample_factor * (2 * varying + 2048)), 8)
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.asarray(
                explainer.shap_values(X, nsamples=count, silent=True, gc_collect=False, **options)
            )

    return explain
