"""Units in which squares of numbers neither underflow nor overflow."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def unit_of(values: NDArray[np.float64]) -> float:
    """Return the power of two just below the largest magnitude; 1 where all are zero.

    Dividing by it changes no digit, and what is computed from squares (R^2, energies) no longer depends on the
    unit that the numbers came in: below 1e-154 squares are zero, above 1e154 infinite.
    """
    largest = float(np.abs(values).max(initial=0.0))
    if largest == 0 or not math.isfinite(largest):
        return 1.0
    return math.ldexp(1.0, math.frexp(largest)[1] - 1)
