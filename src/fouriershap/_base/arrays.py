"""Arguments as arrays: what NumPy cannot convert is an `InputError` that names the argument."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.errors import InputError


def as_array(value: ArrayLike, name: str) -> NDArray[Any]:
    """An array of whatever type ``value`` has."""
    try:
        return np.asarray(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is not an array: {error}") from error


def as_floats(value: ArrayLike, name: str, *, copy: bool = False) -> NDArray[np.float64]:
    """A float64 array; ``copy`` for one that shares no memory with ``value``."""
    try:
        return np.array(value, dtype=np.float64, copy=True if copy else None)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} cannot be read as numbers: {error}") from error
