"""Other people's ways to SHAP values, called alike.

A black-box peer is a function of (predict, background, seed) that returns what explains rows:
``explain(X) -> (n_rows, n_features)``. LinRegSHAP and FastSHAP are written from their papers; they are baselines
to compare with, no part of the product.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

import numpy as np

Predict = Callable[[np.ndarray], np.ndarray]
Explain = Callable[[np.ndarray], np.ndarray]


def missing(*modules: str) -> str | None:
    """Why a peer cannot run: the first module that cannot be imported, and the reason. None where all can."""
    for module in modules:
        try:
            import_module(module)
        except (ImportError, AttributeError) as error:  # AttributeError: written for an older NumPy
            return f"{module} cannot be imported ({error})"
    return None
