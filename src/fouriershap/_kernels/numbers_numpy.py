"""The `numbers` kernel in NumPy: what `numbers.cpp` must compute. Shapes and meanings are documented here."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def parse(text: NDArray[np.uint8], out: NDArray[np.float64]) -> int:
    """Numbers in decimal digits, each rounded once to float64; returns how many were read.

    Parameters
    ----------
    text : (n_bytes,) uint8
        Numbers as C prints them ("-1.5e-07", "inf", "nan"), with spaces between them, ASCII.
    out : (n,) float64, written
        The first n numbers. Reading ends before the first word that is no number, and after n.
    """
    n = 0
    for word in text.tobytes().split(b" "):
        if not word:
            continue
        if n == len(out):
            break
        try:
            out[n] = float(word)
        except ValueError:
            break
        n += 1
    return n
