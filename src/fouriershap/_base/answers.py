"""Answers by the rows that they belong to: what an exception carries, and what ``answers=`` takes back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Row = tuple[Any, ...]  # text, numbers, booleans as Python has them; None for what is missing
Answer = tuple[Any, ...]  # a number per output


class Rows(Protocol):
    """Rows that are made when they are needed, and can be made again."""

    def __len__(self) -> int: ...

    def take(self, at: NDArray[np.int64]) -> Any:
        """Some of them, as the function takes them."""
        ...

    def plain(self, taken: Any) -> list[Row]:
        """What `take` gave, as plain values."""
        ...


class Part(NamedTuple):
    """Answers (n, n_outputs) to the rows at some positions."""

    rows: Rows
    at: NDArray[np.int64]
    answers: NDArray[Any]


class Answers(MutableMapping[Row, Any]):
    """A mapping of rows to the answers that a function gave, first answers first.

    A row is the tuple of its values, None for missing ones; its answers are a list, since a row may be asked more
    than once, of tuples with a number per output. The rows of ``parts`` are only made when somebody looks: at the
    time of an exception memory may be short. ``random_state=None`` takes ``random_state`` from here.
    """

    def __init__(
        self,
        known: MutableMapping[Row, Any] | None = None,
        parts: Iterable[Part] = (),
        random_state: int | None = None,
    ) -> None:
        self._known: MutableMapping[Row, Any] = {} if known is None else known
        self._parts = list(parts)
        self.random_state = random_state

    @property
    def _rows(self) -> MutableMapping[Row, Any]:
        while self._parts:
            rows, at, answers = self._parts[0]
            for row, answer in zip(rows.plain(rows.take(at)), as_tuples(answers), strict=True):
                self._known.setdefault(row, []).append(answer)
            del self._parts[0]
        return self._known

    def __getitem__(self, row: Row) -> Any:
        return self._rows[row]

    def __setitem__(self, row: Row, answers: Any) -> None:
        self._rows[row] = answers

    def __delitem__(self, row: Row) -> None:
        del self._rows[row]

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"Answers(to {len(self):,} rows, random_state={self.random_state})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Answers, (dict(self._rows), (), self.random_state)


def as_tuples(answers: NDArray[Any]) -> list[Answer]:
    """Answers (n, n_outputs) as tuples of Python's numbers; single precision stays what it is."""
    if answers.dtype.kind == "f" and answers.dtype.itemsize < 8:
        return [tuple(answer) for answer in answers]
    return [tuple(answer) for answer in answers.tolist()]
