"""Responses: what a link makes of the raw output, where that is a sum of products again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import InputError
from fouriershap._base.links import Link
from fouriershap._waves.products import Products
from fouriershap._waves.ridges import Ridges, normal_probability, sigmoid
from fouriershap._waves.terms import Exponentials

Floats = NDArray[np.float64]
_MOST_EXPONENT = 600.0


def softmax(raw: Floats) -> Floats:
    """Shares of exp(raw) along the last axis."""
    power = np.exp(raw - raw.max(axis=-1, keepdims=True))
    return np.asarray(power / power.sum(axis=-1, keepdims=True))


LINKS: dict[str, Callable[[Floats], Floats]] = {
    "identity": lambda raw: raw,
    "exp": lambda raw: np.asarray(np.exp(raw)),
    "expm1": lambda raw: np.asarray(np.expm1(raw)),
    "logistic": sigmoid,
    "normal": normal_probability,
    "softmax": softmax,
}
PROBABILITIES = ("logistic", "normal", "softmax")


def respond(model: Products, by: Link, origin: Floats) -> Products | None:
    """The response as products, exact; None where it is no sum of them.

    An exponential of a linear score is one product; S-shaped functions of it are ridges. ``origin`` (n_features,) is a
    typical row, from which exponentials are counted.
    """
    link = {"probit": "normal"}.get(by.name, by.name)
    if by.is_identity:
        return model
    if model.terms or model.ridges is not None or link not in ("exp", "expm1", "logistic", "normal"):
        return None
    nothing = replace(model, linear=np.zeros_like(model.linear), constant=np.zeros_like(model.constant))
    weights = np.eye(model.n_outputs)
    if link not in ("exp", "expm1"):
        return replace(
            nothing, ridges=Ridges(np.ascontiguousarray(model.linear.T), model.constant, weights, link)
        )
    level = origin @ model.linear + model.constant
    if level.max() > _MOST_EXPONENT:
        raise InputError(
            f"the mean of the background has a raw output of {level.max():.3g}, whose exponential is no number. "
            "Explain output='raw'."
        )
    rates = np.stack([model.linear.T, np.zeros(model.linear.T.shape)])
    heights = weights * np.exp(level)
    terms = Exponentials(rates, origin, np.stack([heights, np.zeros(heights.shape)], axis=1))
    constant = nothing.constant - (link == "expm1")
    return replace(nothing, constant=constant, terms=(terms,))
