"""Queries of a function on bits: in batches, counted, with progress, no row twice where the cube is small."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.answers import Row
from fouriershap._base.bits import pack, unpack
from fouriershap._base.checks import ProgressOption
from fouriershap._base.progress import Progress
from fouriershap._base.queries import QueryModel
from fouriershap._base.units import unit_of
from fouriershap._fourier.gf2 import Bits, Words

BATCH_SIZE = 1 << 14


class Queries:
    """A function on bits that is queried in batches, at most ``budget`` rows, with progress.

    ``h`` takes rows (n_rows, n_bits) uint8 and returns (n_rows,) finite numbers, as `asked_by` ensures. If the budget
    covers the cube (2^n_bits), every answer is stored and no row is queried twice. Answers are divided by ``unit``,
    from the first one that is not zero on, so that their squares neither vanish nor overflow.
    """

    def __init__(
        self,
        h: Callable[[Bits], ArrayLike],
        n_bits: int,
        budget: int,
        batch_size: int = BATCH_SIZE,
        progress: ProgressOption = None,
    ) -> None:
        self._h = h
        self.n_bits = n_bits
        self.budget = budget
        self._batch_size = batch_size
        self.count = 0
        # Answers in single precision carry that rounding, whatever they are converted to.
        self.precision = float(np.finfo(np.float64).eps)
        self.magnitude = 0.0
        self.unit = 1.0
        self._cube = np.full(1 << n_bits, np.nan) if n_bits <= 30 and 1 << n_bits <= budget else None
        self._progress = Progress(progress, budget)

    @property
    def covers_cube(self) -> bool:
        """Whether the budget suffices to query every point of the cube."""
        return self._cube is not None

    def ask(self, count: int, rows_at: Callable[[NDArray[np.int64]], Bits]) -> NDArray[np.float64]:
        """Return answers (count,), in `unit`, to the rows that ``rows_at`` makes of the indices 0 ... count - 1."""
        answers = np.empty(count)
        for first in range(0, count, self._batch_size):
            index = np.arange(first, min(first + self._batch_size, count))
            rows = rows_at(index)
            answers[index] = self._ask_batch(rows) if self._cube is None else self._look_up(rows)
        return answers

    def ask_cube(self) -> NDArray[np.float64]:
        """Return all 2^n_bits values; only points that were never queried cost a query."""
        assert self._cube is not None
        unknown = np.flatnonzero(np.isnan(self._cube)).astype(np.uint64)[:, None]
        self.ask(len(unknown), lambda index: unpack(unknown[index], self.n_bits))
        return self._cube

    def close(self) -> None:
        """End the progress bar, if there is one."""
        self._progress.close()

    def _look_up(self, rows: Bits) -> NDArray[np.float64]:
        assert self._cube is not None
        points = pack(rows)[:, 0]
        new = np.unique(points[np.isnan(self._cube[points])])
        if len(new):
            self._cube[new] = self._ask_batch(unpack(new[:, None], self.n_bits))
        return self._cube[points]

    def _ask_batch(self, rows: Bits) -> NDArray[np.float64]:
        raw = np.asarray(self._h(rows))
        answers = raw.reshape(len(rows)).astype(np.float64)
        self.count += len(rows)
        if self.magnitude == 0:
            self.unit = unit_of(answers)
        answers = answers / self.unit
        self.magnitude = max(self.magnitude, float(np.abs(answers).max(initial=0.0)))
        if raw.dtype.kind == "f":
            self.precision = max(self.precision, float(np.finfo(raw.dtype).eps))
        self._progress.count(self.count)
        return answers


@dataclass(frozen=True, eq=False)
class BitRows:
    """Rows of bits, packed until they are used."""

    words: Words
    n_bits: int

    def __len__(self) -> int:
        return len(self.words)

    def take(self, at: NDArray[np.int64]) -> Bits:
        return unpack(self.words[at], self.n_bits)

    def plain(self, taken: Bits) -> list[Row]:
        return [tuple(row) for row in taken.tolist()]


def asked_by(model: QueryModel, n_bits: int) -> Callable[[Bits], NDArray[Any]]:
    """Return the model as a function of rows of bits (n_rows, n_bits), which returns (n_rows,) numbers of its type."""

    def ask(rows: Bits) -> NDArray[Any]:
        parts = list(model.answers_to(BitRows(pack(rows), n_bits)))
        out = np.empty(len(rows), np.result_type(*(answers for _, answers in parts)))
        for at, answers in parts:
            out[at] = answers[:, 0]
        return out

    return ask
