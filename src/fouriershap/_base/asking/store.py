"""A store of answers in a mapping of the caller's: it is looked into before anything is asked."""

from __future__ import annotations

import os
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.asking.answers import Answer, Answers, Part, Row, as_tuples
from fouriershap._base.errors import InputError
from fouriershap._base.short import short

Given = str | os.PathLike[str] | MutableMapping[Row, Any] | None


class Store:
    """Answers by row, in a mapping that is changed in place; ``names`` are the columns of a row.

    A row that was asked several times has several answers, which are taken in order.
    """

    where = "`answers`"  # what errors call it

    def __init__(self, answers: MutableMapping[Row, Any], names: Sequence[str]) -> None:
        self.answers, self.names = answers, tuple(names)
        self._n_taken: ChainMap[Row, int] = ChainMap()

    @property
    def n_outputs(self) -> int:
        """Numbers per answer; 0 as long as that is not known."""
        row = next(iter(self.answers), None)
        answers = [] if row is None else self._known(row)
        return len(answers[0]) if answers else 0

    @property
    def to_give_back(self) -> Any:
        """What ``answers=`` must be to go on."""
        return self.answers

    def rescued(self, asked: Iterable[Part]) -> Answers:
        """The same where answers could not be added: all that was asked, what was known before is the caller's."""
        return Answers(parts=asked, random_state=self._known_random_state())

    @contextmanager
    def session(self) -> Iterator[None]:
        """While answers are taken and added."""
        row = next(iter(self.answers), None)
        if row is not None and (not isinstance(row, tuple) or len(row) != len(self.names)):
            held = f"tuples of {len(row)} values" if isinstance(row, tuple) else f"{type(row).__name__} keys"
            raise InputError(
                f"answers has {held}; its keys are rows, here tuples of {len(self.names)} values. Is it of other data?"
            )
        yield

    def check_labels(self, labels: Mapping[str, Sequence[Any]]) -> None:
        """Raise if a column holds labels that cannot be kept: better known before the model is asked than after."""

    def settle(self, random_state: Any) -> Any:
        """The random state, or, if there is none, one with which the same call asks the same rows again."""
        if random_state is None:
            random_state = self._known_random_state()
        if isinstance(random_state, int | np.integer):
            self._keep_random_state(int(random_state))
        return random_state

    def _known_random_state(self) -> int:
        """A plain mapping has no place for one."""
        found = self.answers.random_state if isinstance(self.answers, Answers) else None
        return 0 if found is None else found

    def _keep_random_state(self, random_state: int) -> None:
        if isinstance(self.answers, Answers):
            self.answers.random_state = random_state

    def take(self, rows: list[Row]) -> tuple[list[int], list[Answer]]:
        """The next answer to each row that has one left: which rows, and their answers."""
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
        """New answers (n, n_outputs), which count as taken."""
        for row, answer in zip(rows, as_tuples(answers), strict=True):
            self.answers[row] = [*self._known(row), answer]
            self._n_taken[row] = self._n_taken.get(row, 0) + 1

    @contextmanager
    def passing(self) -> Iterator[None]:
        """What is taken within can be taken again afterwards."""
        self._n_taken = self._n_taken.new_child()
        try:
            yield
        finally:
            self._n_taken = self._n_taken.parents

    def _known(self, row: Row) -> list[Answer]:
        """The answers to a row; the caller may have put in a number, or one answer by itself."""
        try:
            value = self.answers[row]
        except KeyError:
            return []
        array = _as_numbers(value)
        if array is not None and not array.size:
            return []
        if array is None:
            raise InputError(
                f"answers[{short(row)}] is {short(value)}; give a number, a number per output, or a list of answers."
            )
        return as_tuples(array)


def _as_numbers(value: Any) -> NDArray[Any] | None:
    """Answers (n, n_outputs), or None."""
    try:
        array = np.asarray(value)
    except ValueError:  # of different lengths
        return None
    array = array.reshape((1, -1) if array.ndim < 2 else array.shape)
    fits = array.ndim == 2 and array.dtype.kind in "biuf"
    return array if fits and bool(np.isfinite(array).all()) else None
