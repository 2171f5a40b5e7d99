"""Rows as codes: what tables read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_STRIDE = 64  # codes are padded to a multiple of this many rows


@dataclass(frozen=True, eq=False)
class Codes:
    """Rows as codes, a line per column: (n8, stride) uint8 and (n16, stride) uint16, padded."""

    narrow: NDArray[np.uint8]
    wide: NDArray[np.uint16]
    n_rows: int
    any_missing: bool = False


def empty_codes(n_narrow: int, n_wide: int, n_rows: int) -> Codes:
    """Codes to be filled. The stride is odd in cache lines, so that columns do not share cache sets."""
    stride = (-(-n_rows // _STRIDE) | 1) * _STRIDE
    return Codes(np.zeros((n_narrow, stride), np.uint8), np.zeros((n_wide, stride), np.uint16), n_rows)
