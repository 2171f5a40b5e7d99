"""Arrays and other long data as text inside a page: base64 of deflated bytes."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.messages import truncated_text

# Typed arrays of JavaScript. Booleans are stored as bytes, int64 as int32.
_DTYPES = ("uint8", "uint16", "int16", "int32", "float32", "float64")


def packed(array: NDArray[Any]) -> dict[str, str]:
    """Return an array as the page's `unpack` reads it."""
    if array.dtype == np.bool_:
        array = array.astype(np.uint8)
    elif array.dtype == np.int64:
        if array.size and not -(2**31) <= array.min() <= array.max() < 2**31:
            raise OverflowError("an array of the report has numbers that overflow 32 bits.")
        array = array.astype(np.int32)
    if array.dtype.name not in _DTYPES:
        raise TypeError(f"a report cannot hold arrays of {truncated_text(array.dtype)}.")
    little = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False))
    return {"dtype": array.dtype.name, "data": packed_bytes(_shuffled(little))}


def _shuffled(array: NDArray[Any]) -> bytes:
    """Return the first byte of every number, then the second ...: similar bytes together compress better."""
    return array.reshape(-1).view(np.uint8).reshape(-1, array.itemsize).T.tobytes()


def packed_bytes(whole: bytes) -> str:
    """Return base64 of deflated bytes."""
    return base64.b64encode(zlib.compress(whole)).decode()


def packed_all(arrays: dict[str, NDArray[Any]]) -> dict[str, dict[str, str]]:
    """Return named arrays, each packed."""
    return {name: packed(array) for name, array in arrays.items()}


def script_json(value: Any) -> str:
    """Return JSON that cannot end a script element: ASCII, without ``<``."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")
