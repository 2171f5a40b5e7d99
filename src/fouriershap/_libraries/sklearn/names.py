"""Rows with or without names, as scikit-learn's estimators want them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from fouriershap._rows.frames import is_sparse


def match_names(rows: Any, model: Any) -> Any:
    """Return rows with names where the model was fitted with names, and without where not; it warns otherwise."""
    names = getattr(model, "feature_names_in_", None)
    if names is None or hasattr(rows, "columns") or is_sparse(rows):
        return rows
    return import_module("pandas").DataFrame(rows, columns=names)
