"""`walsh_hadamard`: the exact transform, the whole spectrum from all 2^n values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.arguments import check_arguments
from fouriershap._base.bits import unpack
from fouriershap._base.checks import as_floats, check_int
from fouriershap._base.errors import CapacityError, InputError
from fouriershap._base.messages import truncated_repr
from fouriershap._fourier.spectrum import Spectrum

_MOST_BITS = 30
_BATCH = 1 << 16


@check_arguments
def walsh_hadamard(
    h: ArrayLike | Callable[[NDArray[np.uint8]], ArrayLike], n_bits: int, *, batch_size: int = _BATCH
) -> Spectrum:
    """Compute the exact spectrum of a function on ``n_bits`` bits from all of its 2^n values.

    Parameters
    ----------
    h : array_like of shape (2**n_bits,) or (2**n_bits, n_outputs), or callable
        The values, where position p belongs to the row whose bit i is ``p >> i & 1``; or a function that
        takes rows (n_rows, n_bits) uint8 and returns their values, called in batches.
    n_bits : int
    batch_size : int
        Rows per call of a callable ``h``.

    Returns
    -------
    Spectrum
        Every frequency whose coefficient is not exactly zero.

    Examples
    --------
    >>> from fouriershap import walsh_hadamard
    >>> h = walsh_hadamard(lambda x: x[:, 0] & x[:, 1], 2)  # x0 and x1
    >>> h.coefficients
    array([ 0.25, -0.25, -0.25,  0.25])
    """
    check_int("n_bits", n_bits, 0)
    if n_bits > _MOST_BITS:
        raise CapacityError(
            f"n_bits is {truncated_repr(n_bits)}; the exact transform would need 2^{truncated_repr(n_bits)} "
            "values, and is limited to "
            f"{_MOST_BITS} bits. Use `sparse_walsh_hadamard`."
        )
    values, single = _values(h, n_bits, batch_size)
    transform_in_place(values)
    values /= len(values)
    kept = np.flatnonzero(values.any(axis=1))
    words = kept.astype(np.uint64)[:, None]
    coefficients = values[kept]
    return Spectrum.from_words(words, coefficients[:, 0] if single else coefficients, int(n_bits))


def transform_in_place(values: NDArray[np.float64]) -> None:
    """Transform along axis 0, whose length is a power of two, without normalising."""
    size = len(values)
    half = 1
    while half < size:
        pairs = values.reshape(size // (2 * half), 2, half, *values.shape[1:])
        even, odd = pairs[:, 0], pairs[:, 1]
        difference = even - odd
        even += odd
        odd[...] = difference
        half *= 2


def _values(h: Any, n_bits: int, batch_size: int) -> tuple[NDArray[np.float64], bool]:
    size = 1 << n_bits
    if not callable(h):
        values = as_floats(h, "h", copy=True)
        if values.ndim not in (1, 2) or len(values) != size:
            raise InputError(
                f"h has shape {values.shape}; for {n_bits} bits give 2**{n_bits} = {size} values."
            )
    else:
        check_int("batch_size", batch_size)
        values = np.empty(0)
        for first in range(0, size, batch_size):
            points = np.arange(first, min(first + batch_size, size), dtype=np.uint64)
            answer = as_floats(h(unpack(points[:, None], n_bits)), "the value of h")
            if first == 0:
                values = np.empty((size, *answer.shape[1:]))
            if answer.ndim not in (1, 2) or answer.shape != (len(points), *values.shape[1:]):
                raise InputError(
                    f"h returned shape {answer.shape} for {len(points)} rows; it must return one value, "
                    "or one vector, per row."
                )
            values[first : first + len(points)] = answer
    if not np.isfinite(values).all():
        raise InputError(f"h has {int((~np.isfinite(values)).sum())} values that are not finite.")
    return (values[:, None], True) if values.ndim == 1 else (values, False)
