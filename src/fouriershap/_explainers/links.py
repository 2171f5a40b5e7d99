"""Link functions: from a raw output to what a model predicts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import ModelWarning, UnsupportedModelError
from fouriershap._base.links import (
    EXP,
    EXPM1,
    IDENTITY,
    LOGISTIC,
    MEAN,
    ONE_VS_REST_LOGISTIC,
    ONE_VS_REST_PROBABILITY,
    PROBABILITY,
    PROBIT,
    SOFTMAX,
    UNKNOWN,
)
from fouriershap._base.warn import warn

Floats = NDArray[np.float64]
# What a TransformedTargetRegressor makes of predictions (see `Opened`), as a link of products.
OF_TARGETS = {"same": "identity", "log": "exp", "log1p": "expm1", "other": "other"}
OBJECTIVES = {
    "binary": LOGISTIC,
    "multiclass": SOFTMAX,
    "probability": PROBABILITY,
    "squared_error": MEAN,
    "regression": IDENTITY,
    "log": EXP,
    "log1p": EXPM1,
    "one against the rest: binary": ONE_VS_REST_LOGISTIC,
    "one against the rest: probability": ONE_VS_REST_PROBABILITY,
}
PRODUCT_LINKS = {"identity": IDENTITY, "logistic": LOGISTIC, "normal": PROBIT, "softmax": SOFTMAX}
PRODUCT_LINKS |= {"exp": EXP, "expm1": EXPM1, "other": UNKNOWN}


def fit_lazily(margin: Any, predict: Any, asked_by: str) -> Any:
    """`fit_output`, imported when it is needed."""
    from fouriershap._blackbox.output_fit import fit_output

    return fit_output(margin, predict, asked_by)


def sigmoid(margin: Floats) -> Floats:
    """1 / (1 + exp(-margin)), without overflow."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * margin)))


def softmax(margin: Floats) -> Floats:
    """Shares of exp(margin) along the last axis."""
    power = np.exp(margin - margin.max(axis=-1, keepdims=True))
    return np.asarray(power / power.sum(axis=-1, keepdims=True))


def exponential(margin: Floats) -> Floats:
    """exp(margin); infinite beyond what float64 holds, as libraries have it."""
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(margin))


def exponential_less_one(margin: Floats) -> Floats:
    """exp(margin) - 1."""
    with np.errstate(over="ignore"):
        return np.asarray(np.expm1(margin))


def shares(scores: Floats) -> Floats:
    """Scores of classes, none negative, divided by their sum; zeros where all are zero."""
    total = scores.sum(axis=-1, keepdims=True)
    return np.asarray(np.divide(scores, total, out=np.zeros_like(scores), where=total != 0))


def shares_of_sigmoids(margin: Floats) -> Floats:
    """Probabilities of each class against the rest, divided by their sum."""
    return shares(sigmoid(margin))


def say_what_is_explained(known: bool, output: object) -> None:
    """Warn that values of a TransformedTargetRegressor are not in the units of what it predicts.

    ``known``: whether output="response" is.
    """
    if output == "response":
        if not known:
            raise UnsupportedModelError(
                "model is a TransformedTargetRegressor whose output='response' is not known here: only np.exp and "
                "np.expm1 of a regressor without a link are. fs.BlackBoxExplainer(model.predict, background) explains "
                "it; output='raw' is in the units of the transformed target."
            )
        return
    way = (
        "output='response' explains that, in its units."
        if known
        else ("fs.BlackBoxExplainer(model.predict, background) explains that, in its units.")
    )
    warn(
        "model is a TransformedTargetRegressor: values are those of the regressor inside it, in the units of the "
        f"transformed target, not of what model.predict returns. {way}",
        ModelWarning,
    )
