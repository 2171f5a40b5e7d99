"""scikit-learn's linear models, of every kind."""

from __future__ import annotations

from typing import Any

import numpy as np

from fouriershap._waves.readers.reading import (
    Reading,
    classes_of,
    kind_of,
    linear_products,
    names_of,
    need_fitted,
    refuse,
)

LIBRARY = "scikit-learn"


def read_linear(model: Any) -> Reading:
    """A regression, one output for each target."""
    weights = need_fitted(model, "coef_")
    linear = linear_products(weights, getattr(model, "intercept_", 0.0))
    return Reading(kind_of(model, LIBRARY), linear, names_of(model))


def read_classifier(model: Any) -> Reading:
    """A classifier, by its decision function: one output for two classes, one for each of several."""
    linear = linear_products(need_fitted(model, "coef_"), model.intercept_)
    several = linear.n_outputs > 1
    names = classes_of(model, linear.n_outputs)
    return Reading(kind_of(model, LIBRARY), linear, names_of(model), names, _class_link(model, several))


def _class_link(model: Any, several: bool) -> str:
    """What turns the decision function into probabilities; "other" where that is no function known here."""
    bases = {base.__name__ for base in type(model).__mro__}
    if "LogisticRegression" in bases:
        way = getattr(model, "multi_class", "auto")
        if several:
            return "other" if way == "ovr" or getattr(model, "solver", "") == "liblinear" else "softmax"
        return (
            "other" if way == "multinomial" else "logistic"
        )  # of old versions: the sigmoid of twice the score
    if "LinearDiscriminantAnalysis" in bases:
        return "softmax" if several else "logistic"
    if "SGDClassifier" in bases and model.loss == "log_loss":
        return "other" if several else "logistic"
    return "other" if hasattr(model, "predict_proba") else "identity"


def read_generalised(model: Any) -> Reading:
    """A generalised linear model: the raw output is before its link."""
    linear = linear_products(need_fitted(model, "coef_"), model.intercept_)
    name = type(model._base_loss.link).__name__
    links = {"LogLink": "exp", "IdentityLink": "identity"}
    return Reading(kind_of(model, LIBRARY), linear, names_of(model), link=links.get(name, "other"))


def read_one_class(model: Any) -> Reading:
    """A linear one-class machine by stochastic gradients."""
    linear = linear_products(need_fitted(model, "coef_"), -np.asarray(model.offset_))
    return Reading(kind_of(model, LIBRARY), linear, names_of(model))


def read_partial_least_squares(model: Any) -> Reading:
    """Partial least squares, which centre the features."""
    weights = np.asarray(need_fitted(model, "coef_"))
    if len(weights) != len(np.atleast_1d(model.intercept_)):
        refuse(model, "which this version of scikit-learn stores in another way")
    linear = linear_products(weights, model.intercept_ - weights @ model._x_mean)
    return Reading(kind_of(model, LIBRARY), linear, names_of(model))
