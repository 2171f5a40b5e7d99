"""XGBoost's linear booster, ``gblinear``."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

import numpy as np

from fouriershap._base.errors import InputError
from fouriershap._base.short import reason
from fouriershap._waves.readers.reading import Reading, linear_products

_LINKS = {
    "binary:logistic": "logistic",
    "reg:logistic": "logistic",
    "multi:softprob": "softmax",
    "multi:softmax": "softmax",
    "count:poisson": "exp",
    "reg:gamma": "exp",
    "reg:tweedie": "exp",
    "survival:cox": "exp",
    "reg:squarederror": "identity",
    "reg:absoluteerror": "identity",
    "binary:logitraw": "identity",
}


def is_linear(model: Any) -> bool:
    """Whether an estimator or Booster has the linear booster."""
    if hasattr(model, "get_booster"):
        return getattr(model, "booster", None) == "gblinear"
    return bool(_learner(model)["gradient_booster"]["name"] == "gblinear")


def _learner(booster: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(booster.save_config())["learner"]
    return found


def read_model(model: Any) -> Reading:
    """An estimator or a Booster."""
    booster, labels = model, None
    if hasattr(model, "get_booster"):
        try:
            booster = model.get_booster()
        except Exception as error:
            raise InputError(
                f"model is a {type(model).__name__} that is not fitted: {reason(error)}"
            ) from error
        labels = getattr(model, "classes_", None)
    saved = json.loads(bytes(booster.save_raw("json")))["learner"]
    flat = np.array(saved["gradient_booster"]["model"]["weights"], dtype=np.float64)
    n_features = int(booster.num_features())
    weights = flat.reshape(n_features + 1, -1)[
        :-1
    ].T  # the last line is the bias, which the library adds itself
    matrix = import_module("xgboost").DMatrix(
        np.zeros((1, n_features), np.float32),
        feature_names=booster.feature_names,
        feature_types=booster.feature_types,
    )
    constant = booster.predict(matrix, output_margin=True).reshape(-1)
    several = len(weights) > 1 and labels is not None and len(labels) == len(weights)
    return Reading(
        "xgboost gblinear",
        linear_products(weights, constant),
        None if booster.feature_names is None else tuple(booster.feature_names),
        tuple(str(label) for label in labels) if several and labels is not None else None,
        _LINKS.get(saved["objective"]["name"], "other"),
        missing_is_zero=True,
        single=True,
    )
