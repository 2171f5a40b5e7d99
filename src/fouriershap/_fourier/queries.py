"""Asking the function: in batches, counted, with progress, answers kept when something goes wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.bits import pack, unpack
from fouriershap._base.errors import QueryError
from fouriershap._base.progress import Progress, Report
from fouriershap._base.short import reason, short_text
from fouriershap._fourier.gf2 import Bits, Words

BATCH_SIZE = 1 << 14


class Queries:
    """A function on bits that is asked in batches.

    Parameters
    ----------
    h : callable
        Takes rows (n_rows, n_bits) uint8, returns (n_rows,) numbers.
    n_bits : int
    budget : int
        Most rows that will be asked: the total of the progress. Where it covers the cube (2^n_bits), every
        answer is remembered and no row is asked twice.
    """

    def __init__(
        self,
        h: Callable[[Bits], ArrayLike],
        n_bits: int,
        budget: int,
        batch_size: int = BATCH_SIZE,
        progress: Progress = None,
    ) -> None:
        self._h = h
        self.n_bits = n_bits
        self.budget = budget
        self._batch_size = batch_size
        self._n_batches = 0
        self.count = 0
        # Answers in single precision carry that rounding, whatever they are converted to.
        self.precision = float(np.finfo(np.float64).eps)
        self.magnitude = 0.0
        self._asked: list[tuple[Words, NDArray[np.float64]]] = []
        self._cube = np.full(1 << n_bits, np.nan) if n_bits <= 30 and 1 << n_bits <= budget else None
        self._report = Report(progress, budget)

    @property
    def covers_cube(self) -> bool:
        """Whether the budget is enough to ask every point there is."""
        return self._cube is not None

    def ask(self, count: int, rows_at: Callable[[NDArray[np.int64]], Bits]) -> NDArray[np.float64]:
        """Answers (count,) to the rows that ``rows_at`` makes of the indices 0 ... count - 1."""
        answers = np.empty(count)
        for first in range(0, count, self._batch_size):
            index = np.arange(first, min(first + self._batch_size, count))
            rows = rows_at(index)
            answers[index] = self._ask_batch(rows) if self._cube is None else self._look_up(rows)
        return answers

    def ask_cube(self) -> NDArray[np.float64]:
        """All 2^n_bits values; only the points that were never asked cost a query."""
        assert self._cube is not None
        unknown = np.flatnonzero(np.isnan(self._cube)).astype(np.uint64)[:, None]
        self.ask(len(unknown), lambda index: unpack(unknown[index], self.n_bits))
        return self._cube

    def close(self) -> None:
        """End the progress bar, if there is one."""
        self._report.close()

    def _look_up(self, rows: Bits) -> NDArray[np.float64]:
        assert self._cube is not None
        points = pack(rows)[:, 0]
        new = np.unique(points[np.isnan(self._cube[points])])
        if len(new):
            self._cube[new] = self._ask_batch(unpack(new[:, None], self.n_bits))
        return self._cube[points]

    def _ask_batch(self, rows: Bits) -> NDArray[np.float64]:
        words = pack(rows)
        try:
            raw = np.asarray(self._h(rows))
        except QueryError:
            raise  # h has asked another model, which failed: its rows and answers are the caller's
        except Exception as error:
            raise self._error(f"h raised {type(error).__name__}: {reason(error)}", len(rows)) from error
        answers = self._check(raw, len(rows))
        self._asked.append((words, answers))
        self.count += len(rows)
        self._n_batches += 1
        self.magnitude = max(self.magnitude, float(np.abs(answers).max(initial=0.0)))
        if raw.dtype.kind == "f":
            self.precision = max(self.precision, float(np.finfo(raw.dtype).eps))
        self._report(self.count)
        return answers

    def _check(self, raw: NDArray[Any], n_rows: int) -> NDArray[np.float64]:
        if raw.shape not in ((n_rows,), (n_rows, 1)):
            raise self._error(f"h returned shape {raw.shape}; return ({n_rows},), one number a row", n_rows)
        if raw.dtype.kind not in "biuf":
            raise self._error(f"h returned dtype {short_text(raw.dtype)}; return numbers", n_rows)
        answers = raw.reshape(n_rows).astype(np.float64)
        wrong = np.flatnonzero(~np.isfinite(answers))
        if len(wrong):
            message = f"h returned {len(wrong)} values that are not finite, the first ({answers[wrong[0]]})"
            raise self._error(f"{message} at row {wrong[0]} of the batch", n_rows)
        return answers

    def _error(self, what: str, n_rows: int) -> QueryError:
        rows = np.concatenate(
            [np.zeros((0, self.n_bits), np.uint8), *(self._rows(w) for w, _ in self._asked)]
        )
        answers = np.concatenate([np.zeros(0), *(a for _, a in self._asked)])
        return QueryError(
            f"batch {self._n_batches} (queries {self.count} to {self.count + n_rows - 1}): {what}. "
            f"The {self.count} answers before it are kept in `.rows` and `.answers` of this exception.",
            batch=self._n_batches,
            rows=rows,
            answers=answers,
        )

    def _rows(self, words: Words) -> Bits:
        return unpack(words, self.n_bits)
