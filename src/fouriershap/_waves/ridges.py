"""Ridges: S-shaped functions of one direction, and the sines along it that reproduce them.

The slope of such a function is a bump that falls off quickly. Bumps repeated with a period P have Fourier coefficients
that are the bump's own transform, known in closed form; summed up they are the function itself, but for its copies a
period away, and a straight line. So where scores stay within a reach A, P = A + d keeps the copies below e^-d.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import InputError
from fouriershap._base.headers import require
from fouriershap._waves.terms import Exponentials

Floats = NDArray[np.float64]
MOST_TERMS = 1 << 14


class Shape(NamedTuple):
    """An S-shaped function with values from 0 to 1.

    Attributes
    ----------
    function : of scores
    transform : of frequencies
        The Fourier transform of its slope.
    gap : float
        So far from 0 it is 0 or 1, to 1e-11.
    most : float
        Frequencies beyond it add up to less than 1e-11.
    """

    function: Callable[[Floats], Floats]
    transform: Callable[[Floats], Floats]
    gap: float
    most: float


def sigmoid(scores: Floats) -> Floats:
    """1 / (1 + exp(-scores)), without overflow."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * np.asarray(scores))))


def normal_probability(scores: Floats) -> Floats:
    """The distribution function of the normal distribution."""
    from scipy.special import ndtr  # whose model has such a link has scipy

    return np.asarray(ndtr(scores))


SHAPES = {
    "logistic": Shape(sigmoid, lambda w: np.pi * w / np.sinh(np.pi * w), 26.5, 8.0),
    "normal": Shape(normal_probability, lambda w: np.exp(-(w**2) / 2), 6.9, 6.6),
}


@dataclass(frozen=True, eq=False)
class Ridges:
    """A sum of S-shaped functions, each of a direction.

    Attributes
    ----------
    directions : (n_ridges, n_features) float64
    offsets : (n_ridges,) float64
    weights : (n_ridges, n_outputs) float64
    shape : {"logistic", "normal"}
    """

    directions: Floats
    offsets: Floats
    weights: Floats
    shape: str

    def __len__(self) -> int:
        return len(self.directions)

    def predict(self, rows: Floats) -> Floats:
        """(n_rows, n_outputs)."""
        scores = rows @ self.directions.T + self.offsets
        return np.asarray(SHAPES[self.shape].function(scores) @ self.weights)

    def by_player(self, rows: Floats, player: NDArray[np.int32]) -> Floats:
        """(n_rows, n_players, n_ridges): what players add to the scores."""
        out = np.zeros((len(rows), int(player.max(initial=-1)) + 1, len(self)))
        for f, owner in enumerate(player):
            out[:, owner] += rows[:, f, None] * self.directions[:, f]
        return out

    def verify(self, n_features: int, n_outputs: int) -> None:
        """Raise `FileFormatError` unless the arrays, from a file, are ridges."""
        n = len(self.directions)
        wanted = ((n, n_features), (n,), (n, n_outputs))
        for array, shape in zip((self.directions, self.offsets, self.weights), wanted, strict=True):
            fits = array.shape == shape and array.dtype == np.float64 and np.isfinite(array).all()
            require(fits, "its ridges have the wrong arrays")
        require(self.shape in SHAPES, "its ridges have a shape that nobody knows")


class Expansion(NamedTuple):
    """Ridges as sines: a constant (n_outputs,), a linear part (n_features, n_outputs), terms, and the most error."""

    constant: Floats
    linear: Floats
    terms: Exponentials
    error: Floats


def n_sines(shape: str, reach: Floats) -> NDArray[np.int64]:
    """How many sines ridges take whose scores stay within a reach (n_ridges,)."""
    s = SHAPES[shape]
    counts = np.ceil(s.most * (reach + s.gap) / (2 * np.pi))
    if not counts.sum() <= MOST_TERMS:  # nor where it is no number
        raise InputError(
            f"scores of {len(reach):,} directions reach {reach.max():.3g}, which takes {counts.sum():.6g} sines, and "
            f"{MOST_TERMS:,} are the most. Explain output='raw', scale the features (where scores are that large, the "
            "response is a step), or explain the model by fs.BlackBoxExplainer(model, background)."
        )
    return np.asarray(counts, dtype=np.int64)


def expand(ridges: Ridges, low: Floats, high: Floats, origin: Floats) -> Expansion:
    """Sines that are the ridges wherever scores lie between ``low`` and ``high`` (n_ridges,).

    ``origin`` (n_features,) is where angles are counted from; rows near it lose fewest digits.
    """
    s = SHAPES[ridges.shape]
    flat = (low > s.gap) | (high < -s.gap)  # 1 or 0 wherever it can be seen
    constant = (ridges.weights * (flat & (low > 0))[:, None]).sum(axis=0)
    bent = np.flatnonzero(~flat)
    reach = np.maximum(np.abs(low), np.abs(high))[bent]
    counts = n_sines(ridges.shape, reach)
    period = reach + s.gap
    which = np.repeat(np.arange(len(bent)), counts)
    step = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts) + 1
    frequency = 2 * np.pi * step / period[which]
    amplitude = 2 / period[which] * s.transform(frequency) / frequency
    directions, weights = ridges.directions[bent], ridges.weights[bent]
    at_origin = directions @ origin + ridges.offsets[bent]
    constant = constant + ((0.5 + ridges.offsets[bent] / period)[:, None] * weights).sum(axis=0)
    linear = (directions / period[:, None]).T @ weights
    # amplitude * sin(angle) is the real part of -i * amplitude * exp(i * angle).
    phase = frequency * at_origin[which]
    heights = weights[which].T * amplitude
    coefficients = np.stack([heights * np.sin(phase), heights * np.cos(phase)], axis=1)
    rates = np.stack([np.zeros((len(which), len(origin))), frequency[:, None] * directions[which]])
    # Both bounds are 1e-11 of a ridge (see `Shape`).
    error = 3e-11 * np.abs(ridges.weights).sum(axis=0)
    return Expansion(constant, linear, Exponentials(rates, origin, coefficients), error)
