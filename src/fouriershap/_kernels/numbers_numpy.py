"""The `numbers` kernel in NumPy: what `numbers.cpp` must compute. Shapes and meanings are documented here."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def parse_lines(
    text: NDArray[np.uint8], start: NDArray[np.int64], count: NDArray[np.int64], out: NDArray[np.float64]
) -> int:
    """Parse decimal numbers, each rounded once to float64, and return the number of lines read.

    Parameters
    ----------
    text : (n_bytes,) uint8
        Numbers as C prints them ("-1.5e-07", "inf", "nan"), with spaces between them, ASCII.
    start, count : (n_lines,) int64
        Where the numbers of a line begin, and how many there are up to the end of the line, or of the text.
    out : (sum of count,) float64, written
        The numbers of all lines. Reading ends in the first line that has more, fewer, or text that is not a number.
    """
    everything, first = text.tobytes(), 0
    for line, (begin, size) in enumerate(zip(start.tolist(), count.tolist(), strict=True)):
        words = everything[begin:].partition(b"\n")[0].split()
        for number, word in enumerate(words[:size], first):
            try:
                out[number] = float(word)
            except ValueError:
                return line
        if len(words) != size:
            return line
        first += size
    return len(start)
