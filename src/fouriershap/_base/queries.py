"""The asker: batches, counts, checks, and whatever is raised carries the answers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.asking.answers import Answers, Part, Row, Rows
from fouriershap._base.asking.report import Report
from fouriershap._base.asking.store import Store
from fouriershap._base.checks import Progress
from fouriershap._base.errors import InputError, QueryError
from fouriershap._base.short import reason, short, short_text

Positions = NDArray[np.int64]
_LOOKED_UP = 4096  # rows at a time


class Asker:
    """A function that is asked for numbers: of rows, (n_rows,) or (n_rows, n_outputs), at most ``batch_size`` a call.

    Errors call it ``name``; ``budget`` is what the progress report expects. Answers are looked up in the ``store``
    and written to it; without one, only an exception carries them. ``single``: one number per row. ``count`` rows
    were answered, ``n_asked`` of them by the function itself.
    """

    def __init__(
        self,
        function: Callable[[Any], Any],
        name: str,
        batch_size: int,
        budget: int,
        progress: Progress = None,
        store: Store | None = None,
        single: bool = False,
    ) -> None:
        self._function, self._name, self._batch_size = function, name, batch_size
        self.count, self.n_asked, self.n_batches, self.n_outputs = 0, 0, 0, 0
        self._asked: list[Part] = []
        self._store, self._is_kept, self._single = store, True, single
        self._random_state: int | None = None
        self.report = Report(progress, budget)

    def settle(self, random_state: Any) -> Any:
        """The random state to work with: where none is given, one that can be kept with the answers."""
        try:
            np.random.default_rng(random_state)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"random_state is {short(random_state)}; give a whole number >= 0, or None."
            ) from error
        if self._store is not None:
            random_state = self._store.settle(random_state)
        elif random_state is None:
            random_state = int(np.random.default_rng().integers(2**31))
        self._random_state = random_state if isinstance(random_state, int) else None
        return random_state

    def answers_to(self, rows: Rows) -> Iterator[tuple[Positions, NDArray[Any]]]:
        """Answers (n, n_outputs) part by part, with their positions: first the store's, then the function's."""
        unknown, plain = np.arange(len(rows)), []
        if self._store is not None:
            left = []
            for part in _slices(len(rows), _LOOKED_UP):
                looked_up = rows.plain(rows.take(unknown[part]))
                known, answers = self._store.take(looked_up)
                if known:
                    yield unknown[part][known], self._count_known(answers)
                    self.report(self.count)
                new = np.delete(np.arange(len(looked_up)), known)
                left.append(unknown[part][new])
                plain += [looked_up[i] for i in new.tolist()]
            unknown = np.concatenate([unknown[:0], *left])
        for part in _slices(len(unknown), self._batch_size):
            yield unknown[part], self._ask(rows, unknown[part], plain[part])
            self.report(self.count)  # once whoever asks has the answers, too: a report may raise

    @contextlib.contextmanager
    def keeping(self) -> Iterator[None]:
        """Whatever is raised within carries the answers, or the place where they are, as ``answers``."""
        try:
            with contextlib.nullcontext() if self._store is None else self._store.session():
                if self._store is not None:
                    self.n_outputs = self.n_outputs or self._store.n_outputs
                yield
        except BaseException as error:
            self._attach(error)
            raise
        finally:
            self.report.close()

    @contextlib.contextmanager
    def passing(self) -> Iterator[None]:
        """What is asked within is not remembered here afterwards, unless something is raised."""
        n_parts = len(self._asked)
        with contextlib.nullcontext() if self._store is None else self._store.passing():
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
                f"{self._name} raised {type(error).__name__}: {reason(error)}", len(at)
            ) from error
        answers = self._check(raw, len(at))
        good = np.isfinite(answers).all(axis=1)
        fault = None if good.all() else self._not_finite(answers, int(np.argmin(good)), int((~good).sum()))
        self._keep(
            Part(rows, at[good], answers[good]), [plain[i] for i in np.flatnonzero(good)[: len(plain)]]
        )
        if fault is not None:
            raise self._error(fault, len(at), int(good.sum()))
        self.n_batches += 1
        return answers

    def _keep(self, part: Part, plain: list[Row]) -> None:
        self._asked.append(part)
        try:
            if self._store is not None:
                self._store.add(plain, part.answers)
        except BaseException:
            self._is_kept = False
            raise
        self.count += len(part.at)

    def _check(self, raw: NDArray[Any], n: int) -> NDArray[Any]:
        name = self._name
        if raw.ndim not in (1, 2) or len(raw) != n or not raw.size or (self._single and raw.size != n):
            each = "one number" if self._single else "one number, or one row,"
            raise self._error(f"{name} returned shape {raw.shape} for {n} rows; return {each} for each", n)
        if raw.dtype.kind == "O" or raw.dtype == np.longdouble:
            with contextlib.suppress(TypeError, ValueError):
                raw = raw.astype(np.float64)
        if raw.dtype.kind not in "biuf":
            raise self._error(f"{name} returned dtype {short_text(raw.dtype)}; return numbers", n)
        answers = raw.reshape(n, -1).copy()  # the function may use its array again
        if self.n_outputs and answers.shape[1] != self.n_outputs:
            before = "before" if self._store is None or self.n_batches else f"in {self._store.where}"
            what = f"{name} returned {answers.shape[1]} numbers a row, but {self.n_outputs} {before}"
            raise self._error(what, n)
        self.n_outputs = answers.shape[1]
        return answers

    def _not_finite(self, answers: NDArray[Any], first: int, n_wrong: int) -> str:
        what = f"{self._name} returned {n_wrong} answers that are not finite, the first at row {first}"
        return f"{what} of the batch: {answers[first, :5].tolist()}"

    def _error(self, what: str, n: int, n_good: int = 0) -> QueryError:
        """An error in a batch of ``n`` rows, of which ``n_good`` are answered and counted."""
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
            where = "`.answers` of this exception: given back by answers=, they are not asked again."
        else:
            n_kept, where = self.count, f"{self._store.where}: the same call goes on from there."
        return (
            f"The {n_kept} answers so far are kept in {where}"
            if n_kept
            else "There were no answers before it."
        )

    def _to_give_back(self) -> Any:
        if self._store is None:
            return Answers(parts=self._asked, random_state=self._random_state)
        return self._store.to_give_back if self._is_kept else self._store.rescued(self._asked)

    def _attach(self, error: BaseException) -> None:
        if isinstance(error, QueryError):
            return  # it has them from the beginning
        with contextlib.suppress(AttributeError):  # a property of the caller's own
            error.answers = self._to_give_back()  # type: ignore[attr-defined]
        if self.count:
            error.add_note(self._kept())


def _slices(n: int, size: int) -> Iterator[slice]:
    for first in range(0, n, size):
        yield slice(first, first + size)
