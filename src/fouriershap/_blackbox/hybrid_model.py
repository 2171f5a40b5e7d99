"""Queries of a model about hybrids: never the same row twice, unless that is wanted."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.answers import Row
from fouriershap._base.queries import QueryModel
from fouriershap._rows.pool import Pool


@dataclass(frozen=True, eq=False)
class Hybrids:
    """Rows put together from those of a pool: column j of row r is that of data row ``index[r, column_player[j]]``."""

    pool: Pool
    index: NDArray[np.int32]
    column_player: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.index)

    def take(self, at: NDArray[np.int64]) -> Any:
        return self.pool.take(self.index[at][:, self.column_player])

    def plain(self, taken: Any) -> list[Row]:
        if isinstance(taken, np.ndarray) and taken.dtype.kind in "biuf" and not np.isnan(taken).any():
            return [tuple(row) for row in taken.tolist()]
        pool = Pool(taken, "X")
        columns = ([_plain(value) for value in pool.labels(j)] for j in range(len(pool.names)))
        return list(zip(*columns, strict=True))


class HybridModel:
    """A model that is asked about hybrids of the rows of a pool, in the caller's type.

    ``queries`` counts and keeps what it is asked.
    """

    def __init__(self, queries: QueryModel, column_player: NDArray[np.int32]) -> None:
        self.queries, self._column_player = queries, column_player
        self._before = queries.count
        self._answers: list[NDArray[np.float64]] = []
        self._position: dict[bytes, int] = {}

    @property
    def count(self) -> int:
        """Number of rows answered since this object was made, by the model or by a store."""
        return self.queries.count - self._before

    def ask(self, pool: Pool, index: NDArray[np.int32], codes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return answers (n, n_outputs) for hybrids ``index`` (n, n_players) with ``codes``; known ones are free."""
        keys = row_keys(codes)
        fresh = np.array([i for i in first_rows(keys) if keys[i] not in self._position], dtype=np.int64)
        for at, answers in self.queries.answers_to(Hybrids(pool, index[fresh], self._column_player)):
            self._position.update((keys[i], len(self._answers) + k) for k, i in enumerate(fresh[at].tolist()))
            self._answers.extend(answers.astype(np.float64))
        return np.array([self._answers[self._position[key]] for key in keys]).reshape(
            len(keys), self.queries.n_outputs
        )

    def ask_again(self, pool: Pool, index: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return fresh answers to rows that are known already, which a model without noise repeats."""
        out = np.empty((len(index), self.queries.n_outputs))
        for at, answers in self.queries.answers_to(Hybrids(pool, index, self._column_player)):
            out[at] = answers
        return out

    @contextlib.contextmanager
    def transient(self) -> Iterator[None]:
        """Forget afterwards what is asked within, so that memory does not grow with the rows explained.

        Unless something is raised: then the same rows will be asked for again.
        """
        n_answers = len(self._answers)
        with self.queries.transient():
            yield
        del self._answers[n_answers:]
        while self._position:
            key, position = self._position.popitem()
            if position < n_answers:
                self._position[key] = position
                break

    def is_known(self, codes: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which rows have been answered."""
        return np.array([key in self._position for key in row_keys(codes)], dtype=bool)

    def remap(self, change: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> None:
        """Follow a change of the codes, by which answers are known."""
        codes = np.array([np.frombuffer(key) for key in self._position])
        self._position = dict(zip(row_keys(change(codes)), self._position.values(), strict=True))


def _plain(value: Any) -> Any:
    """Return decimals and the like as they are asked about: as numbers."""
    if isinstance(value, str | int | float) or not isinstance(value, Number):
        return value
    return float(value)  # type: ignore[arg-type]


def first_rows(keys: list[bytes]) -> list[int]:
    """Return where each different row comes first."""
    first: dict[bytes, int] = {}
    for i, key in enumerate(keys):
        first.setdefault(key, i)
    return list(first.values())


def row_keys(codes: NDArray[np.float64]) -> list[bytes]:
    """Return rows as bytes: equal for equal rows; missing values are alike."""
    rows = np.ascontiguousarray(np.where(np.isnan(codes), np.nan, codes))
    return [row.tobytes() for row in rows]
