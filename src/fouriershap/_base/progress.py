"""Progress of long calls: a line on the standard error, or calls of the caller's function."""

from __future__ import annotations

import inspect
import math
import sys
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from threading import Event, Lock
from typing import Any, NamedTuple

from fouriershap._base.checks import ProgressOption, check_progress

QUERYING = "asking"  # the stage that counts queries
FIRST_QUERIES = "first queries"  # a stage after which it is known how many follow
SILENCE = 2.0  # seconds before anything is shown by default
_REDRAW, _NEXT_LINE = 0.1, 10.0  # seconds between lines that are written over, and below each other
_UNFINISHED = 0.99  # most of a stage that has not ended, whose last steps are not counted
_LEAST_SHARE = 0.02  # of a stage, before its own pace predicts how long the rest takes
_PERCENT = 100
_current: ContextVar[Progress | None] = ContextVar("fouriershap_progress", default=None)


class Stage(NamedTuple):
    """Where a long call is.

    Attributes
    ----------
    name : str
        Such as "building tables", "streaming", "asking" or "fitting waves".
    share : float
        How much of this stage is done, from 0 to 1.
    seconds_left : float
        Estimated seconds for the rest of the call; NaN while unknown.
    """

    name: str
    share: float
    seconds_left: float


class Progress:
    """Progress of one call, shown as the argument ``progress`` asks for.

    None writes a line to the standard error after two seconds and keeps it up to date, True at once; False shows
    nothing; a function is called with (done, total), and with ``stage=`` if it has such a parameter. With
    ``n_queries``, done and total count queries; without, they are the percentage of the current stage.

    As a context manager it counts the loops of `for_each_block` in the same thread: ``with Progress(option): ...``.
    """

    def __init__(self, option: ProgressOption, n_queries: int | None = None, stage: str = QUERYING) -> None:
        self.option = check_progress(option)
        self._function = option if callable(option) else None
        self._takes_stage = self._function is not None and _takes_stage(self._function)
        self._total = n_queries
        self._began = self._entered = self._shown = time.perf_counter()
        self._drawn = 0  # length of the line that is there
        self._n_done = 0
        self._name = "explaining" if n_queries is None else stage
        self._share = 0.0
        # A stage is counted by queries, by loops of about the same length, or by work.
        self._stage_queries, self._done_before = n_queries or 0, 0
        self._n_loops, self._loops_done, self._n_parts = 1, 0, 1
        self.is_counting = False
        self._work, self._work_done = 1.0, 0.0
        self._lock, self._stopped = Lock(), Event()
        self._expected: dict[str, float] = {}
        self._took: dict[str, float] = {}
        if option is True and n_queries is not None:
            self._show()

    def __enter__(self) -> Progress:
        self._token = _current.set(None if self.option is False else self)
        return self

    def __exit__(self, *_: object) -> None:
        _current.reset(self._token)
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """Return a copy that shows nothing: locks, bars and local functions cannot be pickled."""
        return Progress, (False, self._total)

    def enter(self, name: str, n_loops: int = 1, n_queries: int = 0) -> None:
        """Begin a stage: of ``n_loops`` loops of about the same length, or of so many queries."""
        now = time.perf_counter()
        self._took[self._name] = now - self._entered
        self._name, self._share, self._entered = name, 0.0, now
        self._n_loops, self._loops_done = n_loops, 0
        self._stage_queries, self._done_before = n_queries, self._n_done
        self._show()

    def expect(self, seconds: Mapping[str, float]) -> None:
        """Set the estimated seconds of the stages to come, in their order."""
        self._expected = dict(seconds)

    def expect_queries(self, n_queries: int) -> None:
        """Correct the number of queries in all."""
        if self._name != QUERYING:
            self.enter(QUERYING)
            self._done_before = self._n_done
        self._total, self._stage_queries = n_queries, n_queries - self._done_before

    def count(self, n_done: int) -> None:
        """Report the number of queries done so far."""
        self._n_done = n_done
        if self._total is not None and n_done > self._total:  # more than expected: how many more is unknown
            self._total, self._stage_queries = n_done, n_done - self._done_before
        if self._stage_queries:
            share = (n_done - self._done_before) / self._stage_queries
            self._share = min(share, _UNFINISHED)
        if self._function is not None and not self._takes_stage:
            self._function(n_done, self._total)
        self._show()

    def advance(self, share: float) -> None:
        """Report the share of the stage that is done."""
        self._share = min(max(share, self._share), _UNFINISHED)
        self._show()

    def start(self, work: float) -> None:
        """Begin ``work`` that `tick` counts, from any thread."""
        self._work, self._work_done = max(work, 1.0), 0.0
        self._stopped.clear()

    def adjust(self, work: float) -> None:
        """Correct the amount of work since `start`."""
        self._work = max(work, 1.0)

    def tick(self, work: float) -> None:
        """Report more work; InterruptedError once `stop` was called."""
        if self._stopped.is_set():
            raise InterruptedError("The fit was stopped.")
        with self._lock:
            self._work_done += work
            self.advance(self._work_done / self._work)

    def stop(self) -> None:
        """End all work at its next tick."""
        self._stopped.set()

    def begin_loop(self, n_parts: int) -> None:
        """Begin a loop over so many parts."""
        self.is_counting, self._n_parts = True, max(n_parts, 1)

    def show_loop(self, n_done: int) -> None:
        """Report the parts of the loop that are done; called by the thread that waits."""
        self._share = min((self._loops_done + n_done / self._n_parts) / self._n_loops, 1.0)
        self._show()

    def end_loop(self) -> None:
        self.is_counting = False
        self._loops_done += 1

    @property
    def stage(self) -> Stage:
        elapsed = time.perf_counter() - self._entered
        if self._name == FIRST_QUERIES:
            left = math.nan
        elif self._share > _LEAST_SHARE:
            left = elapsed * (1 - self._share) / self._share
        else:
            left = max(self._expected.get(self._name, math.nan) * self._pace() - elapsed, 0.0)
        names = list(self._expected)
        later = names[names.index(self._name) + 1 :] if self._name in names else names
        left += self._pace() * sum(self._expected[name] for name in later if name not in self._took)
        return Stage(self._name, self._share, left)

    def _pace(self) -> float:
        """Return how many times longer than expected stages took so far."""
        known = [name for name in self._took if self._expected.get(name)]
        expected = sum(self._expected[name] for name in known)
        return sum(self._took[name] for name in known) / expected if known else 1.0

    def close(self) -> None:
        """Remove the line where it can be written over."""
        if self._drawn and is_rewritten():
            self._write("")
            self._drawn = 0

    def _show(self) -> None:
        if self.option is False:
            return
        if self._function is not None:
            if self._takes_stage or self._total is None:
                counts = (self._n_done, self._total) if self._total is not None else self._percent()
                self._function(*counts, **({"stage": self.stage} if self._takes_stage else {}))
            return
        now = time.perf_counter()
        pause = _REDRAW if self._drawn and is_rewritten() else _NEXT_LINE
        if now - self._began >= (0.0 if self.option else SILENCE) and now - self._shown >= (
            pause if self._drawn else 0
        ):
            self._shown = now
            self._write(self._line(now))

    def _percent(self) -> tuple[int, int]:
        return int(self._share * _PERCENT), _PERCENT

    def _line(self, now: float) -> str:
        """Return how far the call is: in queries where these are counted, and always in the share of the stage."""
        name, share, left = self.stage
        queries = "" if self._total is None else f", {self._n_done:,} queries"
        rest = "" if math.isnan(left) else f", about {left:.0f} s left"
        return f"fouriershap: {name} {share:.0%}{queries}, {now - self._began:.0f} s{rest}"

    def _write(self, line: str) -> None:
        """Write over the last line where that is possible, else below it."""
        stream = sys.stderr
        if stream is None:
            return
        if is_rewritten():
            stream.write("\r" + line.ljust(self._drawn) + "\r" * (not line))
            self._drawn = len(line)
        elif line:
            stream.write(line + "\n")
            self._drawn = 1
        stream.flush()


def current_progress() -> Progress | None:
    """Return the progress of this thread's call, unless one of its loops is being counted already."""
    progress = _current.get()
    return None if progress is None or progress.is_counting else progress


def is_rewritten() -> bool:
    """Return whether a line on the standard error can be written over: in a terminal or a notebook."""
    return "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())


def _takes_stage(function: Callable[..., Any]) -> bool:
    try:
        return "stage" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # written in C, perhaps
        return False
