"""Asking the model: in batches, counted, never the same row twice, answers kept when something goes wrong."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import InputError, QueryError
from fouriershap._base.progress import Progress, Report
from fouriershap._rows.pool import Pool


class Oracle:
    """A model that is asked about hybrids of the rows of a pool.

    Parameters
    ----------
    predict : callable
        Takes rows in the caller's type, returns (n_rows,) or (n_rows, n_outputs) numbers.
    column_player : (n_columns,) int32
    batch_size : int
        Most rows per call.
    budget : int
        Queries that are expected, for the progress report.
    """

    def __init__(
        self,
        predict: Callable[[Any], Any],
        column_player: NDArray[np.int32],
        batch_size: int,
        budget: int,
        progress: Progress = None,
    ) -> None:
        if not callable(predict):
            raise InputError(
                f"predict is a {type(predict).__name__}; give a function, such as `model.predict`."
            )
        self._predict, self._column_player, self._batch_size = predict, column_player, batch_size
        self.count, self.n_batches, self.n_outputs, self.single = 0, 0, 0, True
        self._answers: list[NDArray[np.float64]] = []
        self._position: dict[bytes, int] = {}
        self._asked: list[tuple[Pool, NDArray[np.int32]]] = []
        self._report = None if progress is None or progress is False else Report(progress, budget)

    def ask(self, pool: Pool, index: NDArray[np.int32], codes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Answers (n, n_outputs) for hybrids ``index`` (n, n_players) with ``codes``; known ones are free."""
        keys = row_keys(codes)
        fresh = np.array([i for i in first_rows(keys) if keys[i] not in self._position], dtype=np.int64)
        for first in range(0, len(fresh), self._batch_size):
            part = fresh[first : first + self._batch_size]
            answers = self._ask_batch(pool, index[part])
            self._position.update((keys[i], len(self._answers) + k) for k, i in enumerate(part.tolist()))
            self._answers.extend(answers)
        return np.array([self._answers[self._position[key]] for key in keys]).reshape(
            len(keys), self.n_outputs
        )

    def ask_again(self, pool: Pool, index: NDArray[np.int32]) -> NDArray[np.float64]:
        """Fresh answers to rows that are known already: what a model without noise would repeat."""
        answers = self._ask_batch(pool, index)
        self._asked.pop()  # rows and answers that are kept belong together, one for one
        return answers

    @contextlib.contextmanager
    def passing(self) -> Iterator[None]:
        """What is asked within is forgotten afterwards, so that memory does not grow with the rows explained."""
        n_answers, n_batches = len(self._answers), len(self._asked)
        try:
            yield
        finally:
            del self._answers[n_answers:], self._asked[n_batches:]
            while self._position:
                key, position = self._position.popitem()
                if position < n_answers:
                    self._position[key] = position
                    break

    def close(self) -> None:
        """End the progress bar, if there is one."""
        if self._report is not None:
            self._report.close()

    def is_known(self, codes: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which rows have been answered."""
        return np.array([key in self._position for key in row_keys(codes)], dtype=bool)

    def recode(self, change: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> None:
        """Follow a change of the codes, by which answers are known."""
        codes = np.array([np.frombuffer(key) for key in self._position])
        self._position = dict(zip(row_keys(change(codes)), self._position.values(), strict=True))

    def _ask_batch(self, pool: Pool, index: NDArray[np.int32]) -> NDArray[np.float64]:
        rows = pool.take(index[:, self._column_player])
        try:
            raw = np.asarray(self._predict(rows))
        except Exception as error:
            raise self._error(f"predict raised {type(error).__name__}: {error}", len(index)) from error
        answers = self._check(raw, len(index))
        self._asked.append((pool, index))
        self.count += len(index)
        self.n_batches += 1
        if self._report is not None:
            self._report(self.count)
        return answers

    def _check(self, raw: NDArray[Any], n: int) -> NDArray[np.float64]:
        if raw.ndim not in (1, 2) or len(raw) != n:
            what = f"predict returned shape {raw.shape} for {n} rows; return one number, or one row, for each"
            raise self._error(what, n)
        if raw.dtype.kind == "O":
            with contextlib.suppress(TypeError, ValueError):
                raw = raw.astype(np.float64)
        if raw.dtype.kind not in "biuf":
            raise self._error(f"predict returned dtype {raw.dtype}; return numbers", n)
        wrong = np.flatnonzero(~np.isfinite(raw).reshape(n, -1).all(axis=1))
        if len(wrong):
            what = f"predict returned {len(wrong)} answers that are not finite, the first at row {wrong[0]}"
            raise self._error(f"{what} of the batch: {np.ravel(raw[wrong[0]])[:5].tolist()}", n)
        answers = raw.reshape(n, -1).astype(np.float64)
        if self.n_batches and answers.shape[1] != self.n_outputs:
            what = f"predict returned {answers.shape[1]} numbers a row, but {self.n_outputs} before"
            raise self._error(what, n)
        self.n_outputs, self.single = answers.shape[1], answers.shape[1] == 1
        return answers

    def _error(self, what: str, n: int) -> QueryError:
        rows = [pool.take(index[:, self._column_player]) for pool, index in self._asked]
        done = np.array(self._answers).reshape(len(self._answers), -1) if self._answers else np.empty((0, 0))
        return QueryError(
            f"batch {self.n_batches} (queries {self.count} to {self.count + n - 1}): {what}. "
            f"The {len(done)} answers before it are kept in `.rows` (a part per batch) and `.answers` of this "
            "exception.",
            batch=self.n_batches,
            rows=rows,
            answers=done,
        )


def first_rows(keys: list[bytes]) -> list[int]:
    """Where each different row comes first."""
    first: dict[bytes, int] = {}
    for i, key in enumerate(keys):
        first.setdefault(key, i)
    return list(first.values())


def row_keys(codes: NDArray[np.float64]) -> list[bytes]:
    """Rows as bytes: equal for equal rows; missing values are alike."""
    rows = np.ascontiguousarray(np.where(np.isnan(codes), np.nan, codes))
    return [row.tobytes() for row in rows]
