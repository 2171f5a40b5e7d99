"""Rows with or without names, as scikit-learn's estimators want them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np


def match_names(rows: Any, model: Any) -> Any:
    """Return rows with names where the model was fitted with names, and without where not; it warns otherwise."""
    names = getattr(model, "feature_names_in_", None)
    if type(rows).__module__.startswith("pyarrow"):
        raise TypeError("scikit-learn reads null in tables of pyarrow as a label, not as a missing value")
    if hasattr(rows, "columns"):
        return rows if names is not None else rows.to_numpy(dtype=np.float64)
    return rows if names is None else import_module("pandas").DataFrame(rows, columns=names)
