"""Black boxes: estimators, and functions of a Python module."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from fouriershap import InputError
from fouriershap._base.messages import error_text, truncated_text


def is_function(name: str) -> bool:
    """Return whether this is ``package.module:function`` rather than a file."""
    module, colon, function = name.partition(":")
    return bool(colon) and function.isidentifier() and all(part.isidentifier() for part in module.split("."))


def import_function(name: str) -> Any:
    """Import ``package.module:function``, a function or estimator; the current folder is searched first."""
    module, _, attribute = name.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"{truncated_text(name)}: cannot be imported ({type(error).__name__}: {error_text(error)})."
        ) from error
    except Exception as error:
        raise InputError(
            f"{truncated_text(name)}: importing {truncated_text(module)} failed ({type(error).__name__}: "
            f"{error_text(error)})."
        ) from error
    if not (callable(found) or hasattr(found, "predict")):
        raise InputError(f"{truncated_text(name)}: is a {type(found).__name__}, which cannot be called.")
    return found


def make_predict(estimator: Any) -> Any:
    """Return an estimator, or its prediction function for rows without names if it was trained on arrays."""
    if hasattr(estimator, "feature_names_in_"):
        return estimator
    for method in ("predict_proba", "decision_function", "predict"):
        if hasattr(estimator, method):
            predict = getattr(estimator, method)
            return lambda rows: predict(rows.to_numpy())  # which would warn about names
    raise InputError(f"the model is a {type(estimator).__name__}, which does not predict.")


def trained_columns(model: Any) -> tuple[str, ...] | None:
    """Return the columns that a model was trained on, if it knows them."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else tuple(str(name) for name in names)
