"""Shared by everything on JAX: device, precision, padded shapes, a budget of memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from fouriershap._base.checks import check_memory
from fouriershap._base.errors import CapacityError

# Larger temporaries gain nothing: a chunk of this size keeps any device busy for milliseconds.
CHUNK_BYTES = 256 << 20
LEAST = 8  # fewer rows are padded to this many


def device() -> Any:
    """Return the device that JAX would use now (it respects ``jax.default_device``)."""
    return next(iter(jnp.zeros(()).devices()))


def choose_dtype(precision: str | None) -> np.dtype[Any]:
    """Return the type for a precision; None for double on a CPU, single on an accelerator."""
    if precision is None:
        precision = "double" if device().platform == "cpu" else "single"
    return np.dtype(np.float64 if precision == "double" else np.float32)


def x64(enabled: bool) -> AbstractContextManager[None]:
    """Enable 64-bit arrays inside this context and thread alone; the user's own setting stays as it is."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(enabled)  # type: ignore[no-any-return]
    from jax.experimental import enable_x64  # older JAX

    return enable_x64(enabled)  # type: ignore[no-any-return]


def budget(memory: int | float | None) -> int:
    """Return a budget in bytes; None for a quarter of what the device has."""
    if memory is None:
        where = device()
        stats = where.memory_stats() if where.platform != "cpu" else None
        if stats and "bytes_limit" in stats:
            return int(stats["bytes_limit"]) // 4
    return check_memory(memory)


def padded_size(n: int, least: int = LEAST) -> int:
    """Return the next size of the form (4 ... 7) * 2^k: few shapes to compile, at most a fourth wasted."""
    n = max(n, least)
    step = 1 << max(0, (n - 1).bit_length() - 3)
    return -(-n // step) * step


def pad(array: NDArray[Any], size: int, axis: int = 0) -> NDArray[Any]:
    """Append zeros along one axis."""
    if array.shape[axis] == size:
        return array
    widths = [(0, 0)] * array.ndim
    widths[axis] = (0, size - array.shape[axis])
    return np.pad(array, widths)


def chunks(total: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield first and last of consecutive chunks, about equally long: padded, they share one compiled shape."""
    n_chunks = -(-total // size)
    bounds = [total * k // n_chunks for k in range(n_chunks + 1)] if n_chunks else []
    yield from pairwise(bounds)


def fit(
    wanted: tuple[int, ...], nbytes: Callable[..., int], memory: int, what: str, chunk: int = CHUNK_BYTES
) -> tuple[int, ...]:
    """Shrink sizes until a chunk fits into the budget: the first one, then the larger of the others."""
    sizes = [padded_size(n) for n in wanted]
    while nbytes(*sizes) > min(memory, chunk):
        largest = 0 if sizes[0] > LEAST else int(np.argmax(sizes))
        if sizes[largest] <= LEAST:
            break
        sizes[largest] = padded_size(sizes[largest] // 2)
    if nbytes(*sizes) > memory:
        raise CapacityError(
            f"{what} needs about {nbytes(*sizes):,} bytes for its smallest chunk, but memory is {memory:,}. "
            "Raise `memory`, or use the native kernels (strategy='auto', device='cpu')."
        )
    return tuple(sizes)


def each(function: Callable[..., Any], *arrays: Any) -> Any:
    """Apply a function along the leading axes.

    All at once, but one by one on a CPU, whose caches do not hold the temporaries of all: ten times faster.
    """
    return jax.lax.platform_dependent(
        *arrays,
        cpu=lambda *parts: jax.lax.map(lambda part: function(*part), parts),
        default=jax.vmap(function),
    )
