"""Results of statsmodels: least squares, generalised linear models, discrete ones. Rows are its ``exog``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fouriershap._base.links import EXP, IDENTITY, LOGISTIC, PROBIT, SOFTMAX, UNKNOWN
from fouriershap._libraries.reading import (
    Answer,
    Library,
    Question,
    Reading,
    linear_products,
    product_reading,
    refuse_product,
)

_LEAST_SQUARES = {"OLS", "WLS", "GLS", "GLSAR", "RLM", "QuantReg"}
_DISCRETE = {
    "Logit": LOGISTIC,
    "Probit": PROBIT,
    "Poisson": EXP,
    "NegativeBinomial": EXP,
    "MNLogit": SOFTMAX,
}
_ASK = "results.predict"
_LINKS = {"identity": IDENTITY, "log": EXP, "logit": LOGISTIC, "probit": PROBIT}


def read_results(results: Any) -> Reading:
    """Fitted results; the raw output is the linear predictor."""
    model = results.model
    name = type(model).__name__
    if name not in _LEAST_SQUARES and name not in _DISCRETE and name != "GLM":
        refuse_product(model, "which is not a linear model that is known here", _ASK)
    if hasattr(model, "formula"):
        refuse_product(model, "made by a formula, which turns its rows into others", _ASK)
    weights = np.asarray(results.params, dtype=np.float64)
    n_features, classes = np.shape(model.exog)[1], None
    link = _DISCRETE.get(name, IDENTITY)
    if name == "GLM":
        link = _LINKS.get(type(model.family.link).__name__.lower(), UNKNOWN)
    elif name == "MNLogit":  # the first class is what the others are compared with
        weights = np.concatenate([np.zeros((n_features, 1)), weights], axis=1).T
        classes = tuple(str(label) for label in _labels(model, len(weights)))
    elif name == "NegativeBinomial":
        weights = weights[:n_features]  # the last is its dispersion
    if weights.shape[-1] != n_features:
        refuse_product(
            model, f"whose {weights.shape[-1]} parameters are not those of its {n_features} columns", _ASK
        )
    names = tuple(str(column) for column in model.exog_names)[:n_features]
    return product_reading(f"statsmodels {name}", linear_products(weights, 0.0), names, classes, link)


def _labels(model: Any, n_classes: int) -> list[Any]:
    """Classes of a multinomial model, by their numbers where it keeps no names."""
    found = getattr(model, "_ynames_map", None) or {}
    return [found.get(k, k) for k in range(n_classes)]


def _ask(reading: Reading, question: Question) -> Iterator[Answer]:
    if reading.link.response is not None:
        yield Answer(reading.model.predict(question.asked), reading.link.response)


LIBRARY = Library(
    name="statsmodels",
    package="statsmodels",
    supported_products=("results of statsmodels: least squares, generalised linear and discrete models",),
    tested="0.14 and 0.15",
    products={"ResultsWrapper": read_results, "Results": read_results},
    ask=_ask,
)
