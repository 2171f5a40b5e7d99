"""The response of a linear model as `Products`: an exponential, or ridges, of its raw output."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import InputError
from fouriershap._base.links import EXP, EXPM1, Link
from fouriershap._waves.products import Products
from fouriershap._waves.ridges import SHAPES, Ridges
from fouriershap._waves.terms import Exponentials

_MOST_EXPONENT = 600.0
_EXPONENTIALS = {EXP: 0.0, EXPM1: 1.0}  # what is subtracted from the exponential


def respond(model: Products, link: Link, origin: NDArray[np.float64]) -> Products | None:
    """Return the response as products, exactly; None if it is not a sum of products.

    An exponential of a linear score is one product; S-shaped functions of it are ridges. ``origin`` (n_features,) is a
    typical row, from which exponentials are counted.
    """
    if link.is_identity:
        return model
    if model.terms or model.ridges is not None:
        return None
    nothing = replace(model, linear=np.zeros_like(model.linear), constant=np.zeros_like(model.constant))
    weights = np.eye(model.n_outputs)
    if link in SHAPES:
        return replace(
            nothing, ridges=Ridges(np.ascontiguousarray(model.linear.T), model.constant, weights, link)
        )
    if link not in _EXPONENTIALS:
        return None
    level = origin @ model.linear + model.constant
    if level.max() > _MOST_EXPONENT:
        raise InputError(
            f"the mean of the background has a raw output of {level.max():.3g}, whose exponential overflows. "
            "Use output='raw'."
        )
    rates = np.stack([model.linear.T, np.zeros(model.linear.T.shape)])
    heights = weights * np.exp(level)
    terms = Exponentials(rates, origin, np.stack([heights, np.zeros(heights.shape)], axis=1))
    return replace(nothing, constant=nothing.constant - _EXPONENTIALS[link], terms=(terms,))
