"""`Prepared`: a version applied to all terms, background rows and rows, chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.bits import check_bits
from fouriershap._shapley.jax.common import (
    CHUNK_BYTES,
    Sizes,
    Version,
    budget,
    choose_dtype,
    chunks,
    fit,
    pad,
    padded_size,
    x64,
)
from fouriershap._shapley.spectrum.terms import Terms

_FEW_ROWS = 1024  # rows are few at a time where their number is not known yet


class Prepared:
    """Terms and background on a device, ready to explain rows. Made by `prepare`.

    Attributes
    ----------
    dtype : float32 or float64
        Of the arithmetic on the device; chunks are added up in float64.
    chunk : (int, int)
        Units (terms, or terms per player) and background rows that are worked on at a time.
    nbytes : int
        Memory of what is kept on the device: all that does not depend on rows, where it takes at most half
        of the budget, else nothing (it is computed again for every call).
    """

    def __init__(
        self,
        version: Version,
        terms: Terms,
        background: NDArray[np.uint8],
        weights: NDArray[np.float64],
        memory: int | float | None,
        precision: str | None,
        single: bool,
    ) -> None:
        self._version, self._terms, self._single = version, terms, single
        self._background, self._weights = _atoms(terms, background), weights
        self.dtype = choose_dtype(precision)
        self._layout = version.lay_out(terms)
        self._memory = budget(memory)
        degree = int(terms.degrees.max(initial=1))
        self._sizes = Sizes(terms.n_atoms + 1, terms.n_players, terms.n_outputs, degree, self.dtype.itemsize)
        units, rows = (self._layout.n_units, len(background))
        chunk = self._fit((units, rows, _FEW_ROWS), self._chunk_bytes)
        self.chunk = (chunk[0], chunk[1])
        n_chunks = -(-units // chunk[0]) * -(-rows // chunk[1])
        everything = n_chunks * version.nbytes(chunk[0], chunk[1], 0, self._sizes)[0]
        keep = everything <= self._memory // 2
        self.nbytes = everything if keep else 0
        self._kept = list(self._states()) if keep else None

    def _chunk_bytes(self, units: int, background: int, rows: int) -> int:
        return sum(self._version.nbytes(units, background, rows, self._sizes))

    def _states(self) -> Iterator[Any]:
        """What depends on terms and background alone, a chunk at a time."""
        units, rows = self.chunk
        with x64(self.dtype.itemsize == 8):
            shared = tuple(jnp.asarray(array) for array in self._layout.shared)
        for first, last in chunks(self._layout.n_units, units):
            size = padded_size(last - first, least=1)
            part = tuple(pad(_cast(array, self.dtype), size) for array in self._layout.part(first, last))
            for begin, end in chunks(len(self._weights), rows):
                size = padded_size(end - begin)
                background = pad(self._background[:, begin:end], size, axis=1)
                weights = pad(self._weights[begin:end].astype(self.dtype), size)
                with x64(self.dtype.itemsize == 8):
                    state = self._version.prepare(shared, part, background, weights)
                yield state

    def shap_values(self, X: ArrayLike) -> NDArray[np.float64]:
        """Explain rows of bits (n_rows, n_bits): (n_rows, n_players) or (n_rows, n_players, n_outputs)."""
        bits = check_bits(X, self._terms.n_bits)
        out = np.zeros((len(bits), self._terms.n_players, self._terms.n_outputs))
        if len(bits) and self._layout.n_units:
            atoms = _atoms(self._terms, bits)
            size = self._rows_per_chunk(len(bits))
            for state in self._states() if self._kept is None else self._kept:
                for first, last in chunks(len(bits), size):
                    rows = pad(atoms[:, first:last], padded_size(last - first), axis=1)
                    with x64(self.dtype.itemsize == 8):
                        values = self._version.explain(state, rows, n_players=self._terms.n_players)
                        out[first:last] += np.asarray(values)[: last - first]
        return out[:, :, 0] if self._single else out

    def _rows_per_chunk(self, n_rows: int) -> int:
        """Units and background rows are settled; the rows take what the budget leaves."""
        return self._fit((n_rows,), lambda rows: self._chunk_bytes(*self.chunk, rows))[0]

    def _fit(self, wanted: tuple[int, ...], nbytes: Callable[..., int]) -> tuple[int, ...]:
        """Sizes whose chunk takes half of the budget; the other half is for what may be kept."""
        return fit(
            wanted, lambda *sizes: 2 * nbytes(*sizes), self._memory, "this method", chunk=2 * CHUNK_BYTES
        )


def _atoms(terms: Terms, bits: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """(n_atoms + 1, n_rows): the last line is the atom of positions that are not there, always 0."""
    return pad(terms.values(bits), terms.n_atoms + 1)


def _cast(array: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    return array.astype(dtype) if array.dtype.kind == "f" else array
