"""`Link`: what turns the raw output of a model into what the model predicts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Link:
    """The meaning of a model's raw output.

    Callers ask for these properties and never compare names, which are for files and messages.

    Attributes
    ----------
    name : str
    response : callable, optional
        Raw outputs (..., n_outputs) to what ``predict`` or ``predict_proba`` returns; None if that is unknown.
    is_identity : bool
        Whether the response is the raw output itself.
    is_elementwise : bool
        Whether each response depends on its own raw output alone.
    gives_probability : bool
        Whether responses are class probabilities.
    loss : callable, optional
        Loss per row and output of raw outputs and labels; None if the model has none that is known.
    has_binary_labels : bool
        Whether the labels of ``loss`` are 0 and 1.
    raw_unit : str
        The unit of the raw output, such as "log-odds".
    """

    name: str
    response: Callable[[Floats], Floats] | None = None
    is_identity: bool = False
    is_elementwise: bool = True
    gives_probability: bool = False
    loss: Callable[[Floats, Floats], Floats] | None = None
    has_binary_labels: bool = False
    raw_unit: str = ""

    @property
    def raw_is_probability(self) -> bool:
        """Whether the raw output is a probability already."""
        return self.is_identity and self.gives_probability

    @property
    def raw_is_margin(self) -> bool:
        """Whether the raw output is the log odds, or logits, of probabilities."""
        return self.gives_probability and self.raw_unit in ("log-odds", "margin")

    def __repr__(self) -> str:
        return f"Link({self.name!r})"

    def __reduce__(self) -> tuple[Callable[[str], Link], tuple[str]]:
        return find_link, (self.name,)


def identity(raw: Floats) -> Floats:
    """Return the raw output."""
    return raw


def sigmoid(raw: Floats) -> Floats:
    """Return 1 / (1 + exp(-raw)), with all digits on both sides."""
    with np.errstate(over="ignore"):
        return np.asarray(1.0 / (1.0 + np.exp(-raw)))


def softmax(raw: Floats) -> Floats:
    """Return the shares of exp(raw) along the last axis."""
    power = np.exp(raw - raw.max(axis=-1, keepdims=True))
    return np.asarray(power / power.sum(axis=-1, keepdims=True))


def exponential(raw: Floats) -> Floats:
    """Return exp(raw), infinite where it overflows, as libraries do."""
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(raw))


def exponential_minus_one(raw: Floats) -> Floats:
    """Return exp(raw) - 1."""
    with np.errstate(over="ignore"):
        return np.asarray(np.expm1(raw))


def normalized(scores: Floats) -> Floats:
    """Return non-negative scores of classes divided by their sum; zeros where all are zero."""
    total = scores.sum(axis=-1, keepdims=True)
    return np.asarray(np.divide(scores, total, out=np.zeros_like(scores), where=total != 0))


def normalized_sigmoids(raw: Floats) -> Floats:
    """Return the probability of each class against the rest, divided by their sum."""
    return normalized(sigmoid(raw))


def normal_probability(raw: Floats) -> Floats:
    """Return the standard normal distribution function, which is the inverse of the probit link."""
    from scipy.special import ndtr  # a library with such a link depends on scipy

    return np.asarray(ndtr(raw))


def logistic_loss(raw: Floats, y: Floats) -> Floats:
    """Return the cross entropy of labels 0 and 1 against log odds."""
    return np.asarray(np.logaddexp(0.0, raw) - y * raw)


def squared_loss(raw: Floats, y: Floats) -> Floats:
    """Return the squared error."""
    return np.asarray((raw - y) ** 2)


UNKNOWN = Link("unknown")
IDENTITY = Link("identity", identity, is_identity=True)
MEAN = Link("mean", identity, is_identity=True, loss=squared_loss)  # trained by the squared error
PROBABILITY = Link("probability", identity, is_identity=True, gives_probability=True, raw_unit="probability")
LOGISTIC = Link(
    "logistic",
    sigmoid,
    gives_probability=True,
    loss=logistic_loss,
    has_binary_labels=True,
    raw_unit="log-odds",
)
SOFTMAX = Link("softmax", softmax, is_elementwise=False, gives_probability=True, raw_unit="margin")
PROBIT = Link("probit", normal_probability, gives_probability=True, raw_unit="probit score")
EXP = Link("exp", exponential, raw_unit="log of the prediction")
EXPM1 = Link("expm1", exponential_minus_one, raw_unit="log of 1 + the prediction")
ONE_VS_REST_LOGISTIC = Link(
    "one-vs-rest logistic", normalized_sigmoids, is_elementwise=False, gives_probability=True
)
ONE_VS_REST_PROBABILITY = Link(
    "one-vs-rest probability", normalized, is_elementwise=False, gives_probability=True
)

LINKS = {found.name: found for found in list(globals().values()) if isinstance(found, Link)}


def find_link(name: str) -> Link:
    """Return the link of this name; KeyError for any other name."""
    return LINKS[name]
