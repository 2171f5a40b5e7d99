"""The sparse Walsh-Hadamard transform of a model, as the candidate "swht" is given it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fouriershap._blackbox.bit_code import BitCode
from fouriershap._blackbox.fidelity import r_squared
from fouriershap._fourier.spectrum import Spectrum
from fouriershap._shapley.engine import Floats

Bits = NDArray[np.uint8]
EXACT = 1 - 1e-9  # R^2


@dataclass(frozen=True)
class Limits:
    """Limits on the terms: their number and their degree."""

    n_terms: int | None = None
    max_degree: int | None = None


@dataclass(frozen=True, eq=False)
class Transform:
    """The model's spectrum on the cube.

    Attributes
    ----------
    code : BitCode
    frequencies : (n_terms, n_bits) bool
    coefficients : (n_terms, n_outputs) float64
    r2 : float
        R^2 at uniform points of the cube that took no part in it.
    points : (n, n_bits) uint8
    answers : (n, n_outputs) float64
        Those points and their answers; every point where all were asked.
    exhaustive : bool
        Whether all were asked.
    n_queries : int
    limits : Limits
    """

    code: BitCode
    frequencies: NDArray[np.bool_]
    coefficients: Floats
    r2: float
    points: Bits
    answers: Floats
    exhaustive: bool
    n_queries: int
    limits: Limits

    @property
    def is_exact(self) -> bool:
        return self.r2 >= EXACT

    def recoded(self, changes: Sequence[Floats | None]) -> Transform:
        """Return the same transform after `Encoding.reordered`."""
        return replace(self, code=self.code.recoded(changes))

    def in_unit(self, unit: float) -> Transform:
        """Return the same transform of the model's answers in another unit."""
        return replace(self, coefficients=self.coefficients / unit, answers=self.answers / unit)

    def certified(self, points: Bits, answers: Floats) -> Transform:
        """Return the same transform, judged by other points and their answers."""
        spectrum = make_spectrum(self.frequencies, self.coefficients.reshape(-1, answers.shape[1]))
        r2 = r_squared(answers, spectrum(points).reshape(answers.shape)) if len(points) else 0.0
        return replace(self, r2=r2, points=points, answers=answers, exhaustive=False)


def make_spectrum(frequencies: NDArray[np.bool_], coefficients: Floats) -> Spectrum:
    """Return the spectrum of terms (n_terms, n_bits) with coefficients (n_terms, n_outputs)."""
    return Spectrum(frequencies, coefficients[:, 0] if coefficients.shape[1] == 1 else coefficients)
