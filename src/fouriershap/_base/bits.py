"""Rows of bits: checks and packing."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.checks import as_array
from fouriershap._base.errors import InputError
from fouriershap._base.headers import require
from fouriershap._base.messages import truncated_text


def check_bits(X: ArrayLike, n_bits: int, name: str = "X") -> NDArray[np.uint8]:
    """Return rows (n_rows, n_bits) of 0 and 1 as uint8, whatever numeric type or frame they came in."""
    array = as_array(X, name)
    if array.ndim != 2:
        raise InputError(
            f"{name} has shape {array.shape}; give a matrix of rows (n_rows, {n_bits})"
            + (f", for one row `{name}[None, :]`." if array.ndim == 1 else ".")
        )
    if array.shape[1] != n_bits:
        raise InputError(f"{name} has {array.shape[1]} columns, but the spectrum has {n_bits} bits.")
    if array.dtype == np.bool_:
        return array.view(np.uint8)
    if array.dtype.kind not in "iuf":
        raise InputError(
            f"{name} has dtype {truncated_text(array.dtype)}; give 0 and 1 as numbers or booleans."
        )
    with np.errstate(invalid="ignore"):
        bits = array.astype(np.uint8) if array.dtype.kind in "iu" else np.equal(array, 1).view(np.uint8)
    wrong = (bits > 1) | (bits != array)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        value = array[row, column]
        raise InputError(
            f"{name} must hold only 0 and 1, but row {row}, column {column} is {value!s}. "
            "Encode the features as bits first (one-hot, or quantile codes)."
        )
    return bits


def pack(bits: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Return words (n, ceil(m / 64)) of bits (n, m): bit j of a line at position j % 64 of its word j // 64."""
    n_lines, n_bits = bits.shape
    padded = np.zeros((n_lines, 8 * max(1, -(-n_bits // 64))), dtype=np.uint8)
    packed = np.packbits(bits, axis=1, bitorder="little")
    padded[:, : packed.shape[1]] = packed
    return padded.view("<u8").astype(np.uint64, copy=False)


def unpack(words: NDArray[np.uint64], n_bits: int) -> NDArray[np.uint8]:
    """Return the bits of words: the inverse of `pack`."""
    raw = np.ascontiguousarray(words).astype("<u8", copy=False).view(np.uint8)
    return np.unpackbits(raw, axis=1, bitorder="little", count=n_bits)


def check_packed(words: NDArray[np.uint64], n_bits: int) -> None:
    """Raise `FileFormatError` unless words from a file are what `pack` makes, with no bit beyond the last."""
    fits = n_bits >= 0 and words.dtype == np.uint64 and words.ndim == 2
    require(fits and words.shape[1] == max(1, -(-n_bits // 64)), f"lines do not have {n_bits} bits")
    if n_bits % 64 and len(words):
        beyond = words[:, -1] >> np.uint64(n_bits % 64)
        require(not beyond.any(), f"there are bits beyond the last of {n_bits}")
