"""Answers of a model by the rows that they belong to, and the store that is looked into before a model is called."""

from __future__ import annotations

import os
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import InputError
from fouriershap._base.messages import truncated_repr

Row = tuple[Any, ...]  # text, numbers, booleans as Python has them; None for missing values
Answer = tuple[Any, ...]  # a number per output
AnswersOption = str | os.PathLike[str] | MutableMapping[Row, Any] | None


class Rows(Protocol):
    """Rows that are made when they are needed, and can be made again."""

    def __len__(self) -> int: ...

    def take(self, at: NDArray[np.int64]) -> Any:
        """Return the rows at some positions, as the function takes them."""
        ...

    def plain(self, taken: Any) -> list[Row]:
        """Return the result of `take` as plain values."""
        ...


class AnsweredRows(NamedTuple):
    """Answers (n, n_outputs) to the rows at some positions."""

    rows: Rows
    at: NDArray[np.int64]
    answers: NDArray[Any]


class Answers(MutableMapping[Row, Any]):
    """A mapping of rows to the answers of a function, first answers first.

    A row is the tuple of its values, None for missing ones. Its answers are a list, since a row may be asked more
    than once, of tuples with a number per output. The rows of ``parts`` are made at the first access only: at the
    time of an exception memory may be short. ``random_state=None`` takes ``random_state`` from here.
    """

    def __init__(
        self,
        known: MutableMapping[Row, Any] | None = None,
        parts: Iterable[AnsweredRows] = (),
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
    """Return answers (n, n_outputs) as tuples of Python's numbers; single precision stays what it is."""
    if answers.dtype.kind == "f" and answers.dtype.itemsize < 8:
        return [tuple(answer) for answer in answers]
    return [tuple(answer) for answer in answers.tolist()]


class AnswerStore:
    """Answers by row, in a mapping that is changed in place; ``names`` are the columns of a row.

    A row that was asked several times has several answers, which are taken in order.
    """

    where = "`answers`"  # its name in errors

    def __init__(self, answers: MutableMapping[Row, Any], names: Sequence[str]) -> None:
        self.answers, self.names = answers, tuple(names)
        self._n_taken: ChainMap[Row, int] = ChainMap()

    @property
    def n_outputs(self) -> int:
        """Numbers per answer; 0 while unknown."""
        row = next(iter(self.answers), None)
        answers = [] if row is None else self._known(row)
        return len(answers[0]) if answers else 0

    @property
    def to_give_back(self) -> Any:
        """Value of ``answers=`` with which the same call continues."""
        return self.answers

    def rescued(self, asked: Iterable[AnsweredRows]) -> Answers:
        """Return everything that was asked, for when answers could not be added."""
        return Answers(parts=asked, random_state=self._known_random_state())

    @contextmanager
    def session(self) -> Iterator[None]:
        """Hold the store open while answers are taken and added."""
        row = next(iter(self.answers), None)
        if row is not None and (not isinstance(row, tuple) or len(row) != len(self.names)):
            held = f"tuples of {len(row)} values" if isinstance(row, tuple) else f"{type(row).__name__} keys"
            raise InputError(
                f"answers has {held}; its keys are rows, here tuples of {len(self.names)} values. Is it about other "
                "data?"
            )
        yield

    def check_labels(self, labels: Mapping[str, Sequence[Any]]) -> None:
        """Raise if a column holds labels that cannot be stored, before the model is asked."""

    def resolve_seed(self, random_state: Any) -> Any:
        """Return the random state, or, if it is None, one with which the same call asks the same rows again."""
        if random_state is None:
            random_state = self._known_random_state()
        if isinstance(random_state, int | np.integer):
            self._keep_random_state(int(random_state))
        return random_state

    def _known_random_state(self) -> int:
        found = self.answers.random_state if isinstance(self.answers, Answers) else None
        return 0 if found is None else found

    def _keep_random_state(self, random_state: int) -> None:
        if isinstance(self.answers, Answers):
            self.answers.random_state = random_state

    def take(self, rows: list[Row]) -> tuple[list[int], list[Answer]]:
        """Return which rows have an answer left, and the next answer to each."""
        found: list[int] = []
        answers: list[Answer] = []
        for i, row in enumerate(rows):
            known, n_taken = self._known(row), self._n_taken.get(row, 0)
            if n_taken < len(known):
                found.append(i)
                answers.append(known[n_taken])
                self._n_taken[row] = n_taken + 1
        return found, answers

    def add(self, rows: list[Row], answers: NDArray[Any]) -> None:
        """Add new answers (n, n_outputs), which count as taken."""
        for row, answer in zip(rows, as_tuples(answers), strict=True):
            self.answers[row] = [*self._known(row), answer]
            self._n_taken[row] = self._n_taken.get(row, 0) + 1

    @contextmanager
    def transient(self) -> Iterator[None]:
        """Let everything that is taken within be taken again afterwards."""
        self._n_taken = self._n_taken.new_child()
        try:
            yield
        finally:
            self._n_taken = self._n_taken.parents

    def _known(self, row: Row) -> list[Answer]:
        """Return the answers to a row; the caller may have given a number, or a single answer."""
        try:
            value = self.answers[row]
        except KeyError:
            return []
        try:
            array = np.asarray(value)
        except ValueError:  # of different lengths
            array = np.asarray("")
        array = array.reshape((1, -1) if array.ndim < 2 else array.shape)
        if not array.size:
            return []
        if array.ndim != 2 or array.dtype.kind not in "biuf" or not np.isfinite(array).all():
            raise InputError(
                f"answers[{truncated_repr(row)}] is {truncated_repr(value)}; give a number, a number per "
                "output, or a list of answers."
            )
        return as_tuples(array)
