"""`Reading`: a model as it was read, before anyone knows its players or its background."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import InputError, UnsupportedModelError
from fouriershap._waves.products import Products

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Reading:
    """What a library's model says of rows.

    Attributes
    ----------
    kind : str
        Library and class.
    model : Products
        Of the raw output, every feature a player.
    feature_names, output_names : tuple of str, optional
    link : {"identity", "exp", "expm1", "logistic", "normal", "softmax", "other"}
        What turns the raw output into the response, the mean or the probability that the model predicts.
    missing_is_zero : bool
        Whether a missing value adds nothing; else there may be none.
    single : bool
        Whether the library computes in single precision.
    """

    kind: str
    model: Products
    feature_names: tuple[str, ...] | None = None
    output_names: tuple[str, ...] | None = None
    link: str = "identity"
    missing_is_zero: bool = False
    single: bool = False

    def with_names(self, features: tuple[str, ...] | None) -> Reading:
        return replace(self, feature_names=features)


def kind_of(model: Any, library: str) -> str:
    """Library and class of a model, for people."""
    return f"{library} {type(model).__name__}"


def classes_of(model: Any, n_outputs: int) -> tuple[str, ...] | None:
    """Names of the outputs of a classifier: its classes; of one output for two classes that of the positive one."""
    classes = getattr(model, "classes_", None)
    if classes is None:
        return None
    names = tuple(str(label) for label in classes)
    names = names[1:] if (len(names), n_outputs) == (2, 1) else names
    return names if len(names) == n_outputs else None


def names_of(model: Any) -> tuple[str, ...] | None:
    """Names that scikit-learn's estimators were fitted with."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else tuple(str(name) for name in names)


def dense(array: Any) -> Floats:
    """Coefficients as an array, sparse ones too."""
    return np.asarray(array.toarray() if hasattr(array, "toarray") else array, dtype=np.float64)


def linear_products(weights: Any, constant: Any) -> Products:
    """A linear model: weights (n_outputs, n_features) and constant (n_outputs,), each feature a player."""
    slopes = np.atleast_2d(dense(weights))
    base = np.zeros(len(slopes)) + np.asarray(constant, dtype=np.float64).reshape(-1)
    if not (np.isfinite(slopes).all() and np.isfinite(base).all()):
        raise InputError("the model has coefficients that are not finite; fit it again.")
    return Products(np.arange(slopes.shape[1], dtype=np.int32), np.ascontiguousarray(slopes.T), base)


def need_fitted(model: Any, attribute: str) -> Any:
    """An attribute that fitting makes."""
    found = getattr(model, attribute, None)
    if found is None:
        raise InputError(f"model is a {type(model).__name__} that is not fitted; call fit first.")
    return found


def refuse(model: Any, why: str, ask: str = "model.predict") -> NoReturn:
    """Say why a model is no sum of products that can be paid for, and what to do."""
    raise UnsupportedModelError(
        f"model is a {type(model).__name__}, {why}. Explain it as a black box: "
        f"fs.BlackBoxExplainer({ask}, background)."
    )
