"""Linear models of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np

from fouriershap._base.links import EXP, IDENTITY, LOGISTIC, SOFTMAX, UNKNOWN, Link
from fouriershap._libraries.reading import (
    Reading,
    class_names,
    fitted_names,
    linear_products,
    product_reading,
    refuse_product,
    require_fitted,
)


def read_linear(model: Any) -> Reading:
    """Read a regression, one output for each target."""
    weights = require_fitted(model, "coef_")
    linear = linear_products(weights, getattr(model, "intercept_", 0.0))
    name, computes_in = f"scikit-learn {type(model).__name__}", _precision(weights)
    return product_reading(name, linear, fitted_names(model), computes_in=computes_in)


def _precision(weights: Any) -> Any:
    """Return the precision in which rows of single precision are predicted: that of the weights."""
    return np.float32 if getattr(weights, "dtype", None) == np.float32 else np.float64


def read_classifier(model: Any) -> Reading:
    """Read the decision function of a classifier: one output for two classes, one for each of several."""
    weights = require_fitted(model, "coef_")
    linear = linear_products(weights, model.intercept_)
    several = linear.n_outputs > 1
    names = class_names(model, linear.n_outputs)
    return product_reading(
        f"scikit-learn {type(model).__name__}",
        linear,
        fitted_names(model),
        names,
        _class_link(model, several),
        computes_in=_precision(weights),
    )


def _class_link(model: Any, several: bool) -> Link:
    """Return what turns the decision function into probabilities."""
    bases = {base.__name__ for base in type(model).__mro__}
    if "LogisticRegression" in bases:
        way = getattr(model, "multi_class", "auto")
        if several:
            return UNKNOWN if way == "ovr" or getattr(model, "solver", "") == "liblinear" else SOFTMAX
        return (
            UNKNOWN if way == "multinomial" else LOGISTIC
        )  # of old versions: the sigmoid of twice the score
    if "LinearDiscriminantAnalysis" in bases:
        return SOFTMAX if several else LOGISTIC
    if "SGDClassifier" in bases and model.loss == "log_loss":
        return UNKNOWN if several else LOGISTIC
    return UNKNOWN if hasattr(model, "predict_proba") else IDENTITY


def read_generalised(model: Any) -> Reading:
    """Read a generalised linear model: the raw output is before its link."""
    linear = linear_products(require_fitted(model, "coef_"), model.intercept_)
    name = type(model._base_loss.link).__name__
    links = {"LogLink": EXP, "IdentityLink": IDENTITY}
    return product_reading(
        f"scikit-learn {type(model).__name__}", linear, fitted_names(model), link=links.get(name, UNKNOWN)
    )


def read_one_class(model: Any) -> Reading:
    """Read a linear one-class machine fitted by stochastic gradients."""
    linear = linear_products(require_fitted(model, "coef_"), -np.asarray(model.offset_))
    return product_reading(f"scikit-learn {type(model).__name__}", linear, fitted_names(model))


def read_partial_least_squares(model: Any) -> Reading:
    """Read partial least squares, which centre the features."""
    weights = np.asarray(require_fitted(model, "coef_"))
    if len(weights) != len(np.atleast_1d(model.intercept_)):
        refuse_product(model, "which this version of scikit-learn stores in another way")
    linear = linear_products(weights, model.intercept_ - weights @ model._x_mean)
    return product_reading(f"scikit-learn {type(model).__name__}", linear, fitted_names(model))
