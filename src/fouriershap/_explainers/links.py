"""Link functions: from a raw output to what a model predicts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
OUTPUTS = ("raw", "probability", "response", "log_loss")


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
