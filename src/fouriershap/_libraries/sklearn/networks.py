"""scikit-learn's networks with one hidden layer of S-shaped units: sums of ridges."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.links import EXP, IDENTITY, LOGISTIC, SOFTMAX, UNKNOWN
from fouriershap._libraries.reading import (
    Reading,
    class_names,
    fitted_names,
    linear_products,
    product_reading,
    refuse_product,
    require_fitted,
)
from fouriershap._waves.products import Products
from fouriershap._waves.ridges import Ridges

Floats = NDArray[np.float64]
MOST_UNITS = 128
_LINKS = {"identity": IDENTITY, "logistic": LOGISTIC, "softmax": SOFTMAX, "exp": EXP}


def read_network(model: Any) -> Reading:
    """MLPRegressor or MLPClassifier, by what enters the last activation."""
    layers = [np.asarray(layer, dtype=np.float64) for layer in require_fitted(model, "coefs_")]
    offsets = [np.asarray(offset, dtype=np.float64) for offset in model.intercepts_]
    ask = "model.predict_proba" if hasattr(model, "classes_") else "model.predict"
    if model.activation == "identity" or len(layers) == 1:
        products = _linear(layers, offsets)
    elif len(layers) > 2:
        return refuse_product(
            model, f"with {len(layers) - 1} hidden layers; one is a sum of functions of one direction", ask
        )
    elif model.activation not in ("tanh", "logistic"):
        return refuse_product(
            model, f"whose units are {model.activation}, which no sines reproduce exactly", ask
        )
    elif len(offsets[0]) > MOST_UNITS:
        return refuse_product(
            model, f"with {len(offsets[0])} hidden units; up to {MOST_UNITS} can be paid for", ask
        )
    else:
        products = units(layers[0].T, offsets[0], layers[1], offsets[1], model.activation)
    names = class_names(model, products.n_outputs)
    return product_reading(
        f"scikit-learn {type(model).__name__}",
        products,
        fitted_names(model),
        names,
        _LINKS.get(model.out_activation_, UNKNOWN),
    )


def _linear(layers: list[Any], offsets: list[Any]) -> Products:
    weights, constant = layers[0], offsets[0]
    for layer, offset in zip(layers[1:], offsets[1:], strict=True):
        weights, constant = weights @ layer, constant @ layer + offset
    return linear_products(weights.T, constant)


def units(weights: Floats, offsets: Floats, last: Floats, constant: Floats, activation: str) -> Products:
    """Return a sum of units: weights (n_units, n_features), offsets (n_units,), what they add (n_units, n_outputs)."""
    if activation == "tanh":  # tanh(u) is 2 / (1 + exp(-2u)) - 1
        weights, offsets, last, constant = 2 * weights, 2 * offsets, 2 * last, constant - last.sum(axis=0)
    n_features = weights.shape[1]
    return Products(
        player=np.arange(n_features, dtype=np.int32),
        linear=np.zeros((n_features, len(constant))),
        constant=constant,
        ridges=Ridges(weights, offsets, last, LOGISTIC),
    )
