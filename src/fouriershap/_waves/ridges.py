"""Ridges: S-shaped functions of one direction, and the sines along it that reproduce them.

The slope of such a function is a bump that falls off quickly. The Fourier coefficients of bumps repeated with a period
P are the transform of one bump, which has a closed form; integrated, they give the function itself, except for its
copies a period away, and a straight line. Where scores stay within a reach A, P = A + d keeps the copies below e^-d.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import InputError
from fouriershap._base.headers import require
from fouriershap._base.links import LOGISTIC, PROBIT, Link
from fouriershap._waves.terms import Exponentials

Floats = NDArray[np.float64]
MOST_TERMS = 1 << 14


class Shape(NamedTuple):
    """Facts about an S-shaped function with values from 0 to 1, for its expansion into sines.

    Attributes
    ----------
    transform : callable
        Fourier transform of its slope, by frequency.
    gap : float
        Distance from 0 beyond which the function is 0 or 1, to 1e-11.
    most : float
        Frequency beyond which the transform adds up to less than 1e-11.
    """

    transform: Callable[[Floats], Floats]
    gap: float
    most: float


SHAPES: dict[Link, Shape] = {
    LOGISTIC: Shape(lambda w: np.pi * w / np.sinh(np.pi * w), 26.5, 8.0),
    PROBIT: Shape(lambda w: np.exp(-(w**2) / 2), 6.9, 6.6),
}


@dataclass(frozen=True, eq=False)
class Ridges:
    """A sum of S-shaped functions, each of one direction.

    Attributes
    ----------
    directions : (n_ridges, n_features) float64
    offsets : (n_ridges,) float64
    weights : (n_ridges, n_outputs) float64
    link : Link
        The function, LOGISTIC or PROBIT.
    """

    directions: Floats
    offsets: Floats
    weights: Floats
    link: Link

    def __len__(self) -> int:
        return len(self.directions)

    def predict(self, rows: Floats) -> Floats:
        """Return the outputs of rows, (n_rows, n_outputs)."""
        scores = rows @ self.directions.T + self.offsets
        assert self.link.response is not None
        return np.asarray(self.link.response(scores) @ self.weights)

    def by_player(self, rows: Floats, player: NDArray[np.int32]) -> Floats:
        """Return what players add to the scores, (n_rows, n_players, n_ridges)."""
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
        require(self.link in SHAPES, "its ridges are of an unknown function")


def expand(
    ridges: Ridges, low: Floats, high: Floats, origin: Floats
) -> tuple[Floats, Floats, Exponentials, Floats]:
    """Return sines that equal the ridges wherever scores lie between ``low`` and ``high`` (n_ridges,).

    They are a constant (n_outputs,), a linear part (n_features, n_outputs), and terms; the last is their largest error
    (n_outputs,). Angles are counted from ``origin`` (n_features,); rows near it lose the fewest digits.
    """
    s = SHAPES[ridges.link]
    flat = (low > s.gap) | (high < -s.gap)  # 1 or 0 for all scores in reach
    constant = (ridges.weights * (flat & (low > 0))[:, None]).sum(axis=0)
    bent = np.flatnonzero(~flat)
    reach = np.maximum(np.abs(low), np.abs(high))[bent]
    period = reach + s.gap
    needed = np.ceil(s.most * period / (2 * np.pi))
    if not needed.sum() <= MOST_TERMS:  # also refuses NaN
        raise InputError(
            f"scores of {len(reach):,} directions reach {reach.max():.3g}, which needs {needed.sum():.6g} sines; the "
            f"limit is {MOST_TERMS:,}. Use output='raw', scale the features (where scores are that large, the "
            "response is a step), or use fs.BlackBoxExplainer(model, background)."
        )
    counts = needed.astype(np.int64)
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
    return constant, linear, Exponentials(rates, origin, coefficients), error
