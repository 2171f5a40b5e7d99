"""What everything on JAX shares: device, precision, padded shapes, a budget of memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from fouriershap._base.checks import check_memory
from fouriershap._base.errors import CapacityError
from fouriershap._shapley.spectrum.terms import Terms

# Larger temporaries gain nothing: a chunk of this size keeps any device busy for milliseconds.
CHUNK_BYTES = 256 << 20
LEAST = 8  # fewer rows are padded to so many

Arrays = tuple[NDArray[Any], ...]


@dataclass(frozen=True)
class Sizes:
    """What the memory of a version depends on, beside the chunk itself."""

    n_atoms: int
    n_players: int
    n_outputs: int
    degree: int
    itemsize: int


@dataclass(frozen=True, eq=False)
class Layout:
    """Terms as a version wants them: units along the leading axis, to be cut anywhere and padded with zeros.

    Attributes
    ----------
    n_units : int
    part : callable
        ``part(first, last)`` gives the arrays of these units; a unit of zeros must contribute nothing.
    shared : tuple of arrays
        What all units need.
    """

    n_units: int
    part: Callable[[int, int], Arrays]
    shared: Arrays = ()


@dataclass(frozen=True, eq=False)
class Version:
    """One of the paper's versions.

    Attributes
    ----------
    lay_out : Terms -> Layout
    prepare : (shared, part, background, weights) -> state
        ``background`` (n_atoms + 1, B) uint8 holds atoms, the last line is 0; ``weights`` (B,).
    explain : (state, rows, n_players) -> values (R, n_players, n_outputs)
        ``rows`` (n_atoms + 1, R) as the background.
    nbytes : (units, B, R, Sizes) -> (bytes of the state, bytes of temporaries and result)
    """

    lay_out: Callable[[Terms], Layout]
    prepare: Callable[..., Any]
    explain: Callable[..., Any]
    nbytes: Callable[[int, int, int, Sizes], tuple[int, int]]


def device() -> Any:
    """The device that JAX would use now (it heeds ``jax.default_device``)."""
    return next(iter(jnp.zeros(()).devices()))


def choose_dtype(precision: str | None) -> np.dtype[Any]:
    """Double on a CPU, single on an accelerator, unless one of them is asked for."""
    if precision is None:
        precision = "double" if device().platform == "cpu" else "single"
    return np.dtype(np.float64 if precision == "double" else np.float32)


def x64(enabled: bool) -> AbstractContextManager[None]:
    """64-bit arrays inside this context and thread alone; the user's own setting stays as it is."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(enabled)  # type: ignore[no-any-return]
    from jax.experimental import enable_x64  # older JAX

    return enable_x64(enabled)  # type: ignore[no-any-return]


def budget(memory: int | float | None) -> int:
    """Bytes; None for a quarter of what the device has."""
    if memory is None:
        where = device()
        stats = where.memory_stats() if where.platform != "cpu" else None
        if stats and "bytes_limit" in stats:
            return int(stats["bytes_limit"]) // 4
    return check_memory(memory)


def padded_size(n: int, least: int = LEAST) -> int:
    """The next size of the form (4 ... 7) * 2^k: few shapes to compile, at most a fourth wasted."""
    n = max(n, least)
    step = 1 << max(0, (n - 1).bit_length() - 3)
    return -(-n // step) * step


def pad(array: NDArray[Any], size: int, axis: int = 0) -> NDArray[Any]:
    """Zeros appended along one axis."""
    if array.shape[axis] == size:
        return array
    widths = [(0, 0)] * array.ndim
    widths[axis] = (0, size - array.shape[axis])
    return np.pad(array, widths)


def chunks(total: int, size: int) -> Iterator[tuple[int, int]]:
    """First and last of consecutive chunks, about equally long: padded, they share one compiled shape."""
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
            f"{what} needs about {nbytes(*sizes):,} bytes for its smallest chunk, and memory is {memory:,}. "
            "Raise `memory`, or take the native road (method='auto', device='cpu')."
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


def each_summed(function: Callable[..., Any], *arrays: Any) -> Any:
    """`each`, and the sum of the results."""

    def one_by_one(*parts: Any) -> Any:
        first = jax.eval_shape(function, *(part[0] for part in parts))
        zero = jnp.zeros(first.shape, first.dtype)
        return jax.lax.scan(lambda total, part: (total + function(*part), None), zero, parts)[0]

    return jax.lax.platform_dependent(
        *arrays, cpu=one_by_one, default=lambda *parts: jax.vmap(function)(*parts).sum(axis=0)
    )


def pack(atoms: Any) -> Any:
    """Atoms (..., D, B) as bits of words: (..., words, B) uint32."""
    words = []
    for first in range(0, atoms.shape[-2], 32):
        bits = atoms[..., first : first + 32, :].astype(jnp.uint32)
        shifts = jnp.arange(bits.shape[-2], dtype=jnp.uint32)[:, None]
        words.append((bits << shifts).sum(axis=-2, dtype=jnp.uint32))
    return jnp.stack(words, axis=-2)


def signed_weights(packed: Any, weights: Any) -> Any:
    """-2 chi_f(x) times the weight of x, for the packed atoms (..., words, B) of f: (..., B)."""
    return jnp.where(count_ones(packed) & 1 == 1, 2 * weights, -2 * weights)


def count_ones(words: Any, axis: int = -2) -> Any:
    """Ones of words, summed over the axis of words."""
    return jax.lax.population_count(words).sum(axis=axis, dtype=jnp.uint32)


def one_over(m: Any, chosen: Any, dtype: Any) -> Any:
    """1 / m where the lowest bit of ``chosen`` is set (m is not 0 there), else 0."""
    return jnp.where(chosen & 1 == 1, 1 / jnp.maximum(m, 1).astype(dtype), 0)


def kept_products(atoms: Any, packed: Any, weights: Any) -> Any:
    """The signed weights, then their products with each atom: (..., D + 1, B) from (..., D, B).

    With them, everything that a term needs of the background is one matrix (see `values_of_term`).
    """
    signed = signed_weights(packed, weights)[..., None, :]
    return jnp.concatenate([signed, signed * atoms], axis=-2)


def values_of_term(products: Any, background: Any, rows: Any, row_atoms: Any) -> Any:
    """Values (D, R) of the atoms of one term, averaged over the background.

    From the `kept_products` (D + 1, B), packed atoms (words, B) of the background and (words, R) of rows, and their
    atoms (D, R). e_i = x_i xor x*_i, so the sum over the background of share times e_i is that of share times x_i
    where x*_i = 0, and what this leaves of the sum of all shares where x*_i = 1.
    """
    m = count_ones(background[:, :, None] ^ rows[:, None, :], axis=0)
    sums = jnp.matmul(products, one_over(m, m, products.dtype), precision="highest")
    return jnp.where(row_atoms == 1, sums[0] - sums[1:], sums[1:])
