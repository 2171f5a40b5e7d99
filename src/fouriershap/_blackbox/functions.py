"""Any model as a function of rows: what a `BlackBoxExplainer` asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fouriershap._base.errors import UnsupportedModelError
from fouriershap._rows.frames import is_sparse

Function = Callable[[Any], Any]


def as_function(model: Any) -> tuple[Function, tuple[str, ...] | None]:
    """The function to explain, and the names of its outputs where they are classes.

    A classifier is explained in its probabilities, or, where it has none, in its decision function; any
    other object with ``predict`` in that; a plain function as it is.
    """
    if isinstance(model, type):
        raise UnsupportedModelError(
            f"predict is the class {model.__qualname__} itself; give a function or a fitted object."
        )
    classes = getattr(model, "classes_", None)
    names = None if classes is None else tuple(str(label) for label in classes)
    if hasattr(model, "predict_proba"):
        return model.predict_proba, names
    if names is not None:  # labels are no quantity that could be shared out
        if hasattr(model, "decision_function"):
            return model.decision_function, names if len(names) > 2 else None
        raise UnsupportedModelError(
            f"predict is a {type(model).__name__}, a classifier that only names a class. Give a function that "
            "returns numbers, such as `lambda rows: model.predict(rows) == label`."
        )
    if hasattr(model, "predict"):
        return model.predict, None
    return model, None


def asked_in(function: Function, background: Any) -> Function:
    """The function, for rows that are dense here, but in which the caller's own are sparse."""
    if not is_sparse(background):
        return function
    kind = type(background)
    return lambda rows: function(kind(rows))
