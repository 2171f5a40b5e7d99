"""Queries of a function that costs something: in batches, counted, checked, and no answer is ever lost."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.answers import AnsweredRows, Answers, AnswerStore, Row, Rows
from fouriershap._base.checks import ProgressOption
from fouriershap._base.errors import InputError, QueryError
from fouriershap._base.messages import error_text, truncated_repr, truncated_text
from fouriershap._base.progress import QUERYING, Progress

Positions = NDArray[np.int64]
_LOOKED_UP = 4096  # rows at a time


class QueryModel:
    """A function that is asked for numbers: of rows, (n_rows,) or (n_rows, n_outputs), at most ``batch_size`` a call.

    Errors call it ``name``; ``budget`` is the number of queries that the progress expects. Answers are looked up in
    the ``store`` and written to it; without one, only an exception carries them. ``single``: one number per row.
    ``count`` rows were answered, ``n_asked`` of them by the function itself.
    """

    def __init__(
        self,
        function: Callable[[Any], Any],
        name: str,
        batch_size: int,
        budget: int | None,
        progress: ProgressOption = None,
        store: AnswerStore | None = None,
        single: bool = False,
    ) -> None:
        self._function, self._name, self._batch_size = function, name, batch_size
        self.count, self.n_asked, self.n_batches, self.n_outputs = 0, 0, 0, 0
        self._asked: list[AnsweredRows] = []
        self._store, self._is_kept, self._single = store, True, single
        self._random_state: int | None = None
        self._option, self._before = progress, 0
        self.progress = Progress(progress, budget)

    def resolve_seed(self, random_state: Any) -> Any:
        """Return the random state to work with; where it is None, one that can be kept with the answers."""
        check_random_state(random_state)
        if self._store is not None:
            random_state = self._store.resolve_seed(random_state)
        elif random_state is None:
            random_state = int(np.random.default_rng().integers(2**31))
        self._random_state = random_state if isinstance(random_state, int) else None
        return random_state

    def begin(self, n_queries: int, stage: str = QUERYING) -> None:
        """Begin the progress of a call whose first stage expects so many queries."""
        self.progress, self._before = Progress(self._option, n_queries, stage), self.count

    def expect(self, n_more: int) -> None:
        """Expect so many more queries in this call."""
        self.progress.expect_queries(self.count - self._before + n_more)

    def answers_to(self, rows: Rows) -> Iterator[tuple[Positions, NDArray[Any]]]:
        """Yield answers (n, n_outputs) with their positions: first the store's, then the function's."""
        unknown, plain = np.arange(len(rows)), []
        if self._store is not None:
            left = []
            for part in _slices(len(rows), _LOOKED_UP):
                looked_up = rows.plain(rows.take(unknown[part]))
                known, answers = self._store.take(looked_up)
                if known:
                    yield unknown[part][known], self._count_known(answers)
                    self._report()
                new = np.delete(np.arange(len(looked_up)), known)
                left.append(unknown[part][new])
                plain += [looked_up[i] for i in new.tolist()]
            unknown = np.concatenate([unknown[:0], *left])
        for part in _slices(len(unknown), self._batch_size):
            yield unknown[part], self._ask(rows, unknown[part], plain[part])
            self._report()  # after the caller has the answers: the caller's function may raise

    def _report(self) -> None:
        self.progress.count(self.count - self._before)

    @contextlib.contextmanager
    def attach_answers(self) -> Iterator[None]:
        """Attach the answers, or the place where they are, as ``answers`` to whatever is raised within."""
        try:
            with contextlib.nullcontext() if self._store is None else self._store.session():
                if self._store is not None:
                    self.n_outputs = self.n_outputs or self._store.n_outputs
                yield
        except BaseException as error:
            if not isinstance(error, QueryError):  # which has them already
                with contextlib.suppress(AttributeError):  # a property of the caller's own
                    error.answers = self._to_give_back()  # type: ignore[attr-defined]
                if self.count:
                    error.add_note(self._kept())
            raise
        finally:
            self.progress.close()

    @contextlib.contextmanager
    def transient(self) -> Iterator[None]:
        """Forget afterwards what is asked within, unless something is raised."""
        n_parts = len(self._asked)
        with contextlib.nullcontext() if self._store is None else self._store.transient():
            yield
        del self._asked[n_parts:]

    def _count_known(self, known: list[Any]) -> NDArray[Any]:
        other = next((len(answer) for answer in known if len(answer) != self.n_outputs), None)
        if other is not None:
            raise InputError(
                f"answers has {other} numbers for a row, but {self.n_outputs} for others: they are of different models."
            )
        self.count += len(known)
        return np.array(known)

    def _ask(self, rows: Rows, at: Positions, plain: list[Row]) -> NDArray[Any]:
        taken = rows.take(at)
        self.n_asked += len(at)
        try:
            raw = np.asarray(self._function(taken))
        except Exception as error:
            raise self._error(
                f"{self._name} raised {type(error).__name__}: {error_text(error)}", len(at)
            ) from error
        answers = self._check(raw, len(at))
        good = np.isfinite(answers).all(axis=1)
        self._asked.append(AnsweredRows(rows, at[good], answers[good]))
        if self._store is not None:
            self._is_kept = False
            self._store.add([plain[i] for i in np.flatnonzero(good)], answers[good])
            self._is_kept = True
        self.count += int(good.sum())
        if not good.all():
            first = int(np.argmin(good))
            raise self._error(
                f"{self._name} returned {int((~good).sum())} answers that are not finite, the first at row {first} "
                f"of the batch: {answers[first, :5].tolist()}",
                len(at),
                int(good.sum()),
            )
        self.n_batches += 1
        return answers

    def _check(self, raw: NDArray[Any], n: int) -> NDArray[Any]:
        name = self._name
        if raw.ndim not in (1, 2) or len(raw) != n or not raw.size or (self._single and raw.size != n):
            each = "one number" if self._single else "one number, or one row,"
            raise self._error(f"{name} returned shape {raw.shape} for {n} rows; return {each} for each", n)
        if raw.dtype.kind == "O" or raw.dtype == np.longdouble:
            with contextlib.suppress(TypeError, ValueError):
                raw = raw.astype(np.float64)
        if raw.dtype.kind not in "biuf":
            raise self._error(f"{name} returned dtype {truncated_text(raw.dtype)}; return numbers", n)
        answers = raw.reshape(n, -1).copy()  # the function may use its array again
        if self.n_outputs and answers.shape[1] != self.n_outputs:
            before = "before" if self._store is None or self.n_batches else f"in {self._store.where}"
            what = f"{name} returned {answers.shape[1]} numbers a row, but {self.n_outputs} {before}"
            raise self._error(what, n)
        self.n_outputs = answers.shape[1]
        return answers

    def _error(self, what: str, n: int, n_good: int = 0) -> QueryError:
        """Return an error about a batch of ``n`` rows, of which ``n_good`` are answered and counted."""
        begin = self.count - n_good
        return QueryError(
            f"batch {self.n_batches} (queries {begin} to {begin + n - 1}): {what}. {self._kept()}",
            batch=self.n_batches,
            rows=[part.rows.take(part.at) for part in self._asked if len(part.at)],
            answers=self._to_give_back(),
        )

    def _kept(self) -> str:
        if self._store is None:
            n_kept = sum(len(part.at) for part in self._asked)
            where = "`.answers` of this exception: pass them as answers= and they are not asked again."
        else:
            n_kept, where = self.count, f"{self._store.where}: the same call continues from there."
        return (
            f"The {n_kept} answers so far are kept in {where}"
            if n_kept
            else "There were no answers before it."
        )

    def _to_give_back(self) -> Any:
        if self._store is None:
            return Answers(parts=self._asked, random_state=self._random_state)
        return self._store.to_give_back if self._is_kept else self._store.rescued(self._asked)


def check_random_state(random_state: Any) -> None:
    """Raise unless random numbers can begin with this."""
    try:
        np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"random_state is {truncated_repr(random_state)}; give an integer >= 0, or None."
        ) from error


def _slices(n: int, size: int) -> Iterator[slice]:
    for first in range(0, n, size):
        yield slice(first, first + size)
