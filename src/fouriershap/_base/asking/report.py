"""Telling how far a fit is: the queries done, the stage that it is in, and a guess of what is left."""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable, Mapping
from threading import Event, Lock
from typing import Any, NamedTuple

from fouriershap._base.checks import need
from fouriershap._base.errors import InputError
from fouriershap._base.short import short

Progress = bool | Callable[..., Any] | None
ASKING = "asking"
_TELLS = 0.02  # share of a stage from which on it tells how long the rest takes


class Stage(NamedTuple):
    """Where a fit is.

    Attributes
    ----------
    name : str
        "asking", "fitting waves", "fitting trees", "choosing", "compiling the background" or "certifying".
    share : float
        How much of this stage is done, from 0 to 1.
    seconds_left : float
        A guess for this stage and all that follow; NaN while nothing is known.
    """

    name: str
    share: float
    seconds_left: float


class Report:
    """Tells how many queries of ``total`` are done, and the stage: by a tqdm bar (True), to a function, or not."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._total = total
        self._tell = progress if callable(progress) else None
        self._is_staged = self._tell is not None and _takes_stage(self._tell)
        self._bar: Any = None
        if progress is True:
            otherwise = "A function of (done, total) needs nothing more."
            self._bar = need("tqdm.auto", "progress=True", "tqdm", otherwise).tqdm(total=total, unit="query")
        elif self._tell is None and progress is not None and progress is not False:
            raise InputError(
                f"progress is {short(progress)}; give None, True or a function of (done, total)."
            )
        self._done = 0
        self._expected: dict[str, float] = {}
        self._took: dict[str, float] = {}
        self._begin_stage(ASKING, total)

    def _begin_stage(self, name: str, queries: int) -> None:
        self._name, self._share, self._began = name, 0.0, time.perf_counter()
        self._queries, self._done_before = queries, self._done

    def __call__(self, done: int) -> None:
        """So many queries are done in all."""
        self._done = done
        if self._queries:
            self._share = min((done - self._done_before) / self._queries, 1.0)
        if self._tell is not None and not self._is_staged:
            self._tell(done, self._total)
        if self._bar is not None:
            self._bar.update(done - self._bar.n)
        self._tell_stage()

    def expect(self, seconds: Mapping[str, float]) -> None:
        """About so long the stages to come take, in their order."""
        self._expected = dict(seconds)

    def enter(self, name: str, queries: int = 0) -> None:
        """Another stage; where it asks so many ``queries``, these tell how far it is."""
        self._took[self._name] = time.perf_counter() - self._began
        self._begin_stage(name, queries)
        self._tell_stage()

    def advance(self, share: float) -> None:
        """So much of the stage is done."""
        self._share = min(max(share, self._share), 1.0)
        self._tell_stage()

    def stage(self) -> Stage:
        return Stage(self._name, self._share, self._seconds_left())

    def _seconds_left(self) -> float:
        elapsed = time.perf_counter() - self._began
        if self._share > _TELLS:
            left = elapsed * (1 - self._share) / self._share
        else:
            left = max(self._expected.get(self._name, math.nan) * self._pace() - elapsed, 0.0)
        names = list(self._expected)
        later = names[names.index(self._name) + 1 :] if self._name in names else names
        return left + self._pace() * sum(self._expected[name] for name in later if name not in self._took)

    def _pace(self) -> float:
        """How many times longer than expected stages took so far."""
        known = [name for name in self._took if self._expected.get(name)]
        expected = sum(self._expected[name] for name in known)
        return sum(self._took[name] for name in known) / expected if known else 1.0

    def _tell_stage(self) -> None:
        if self._tell is not None and self._is_staged:
            self._tell(self._done, self._total, stage=self.stage())
        if self._bar is not None and self._name != ASKING:
            _, share, left = self.stage()
            rest = "" if math.isnan(left) else f", about {left:.0f} s left"
            self._bar.set_description_str(f"{self._name} {share:.0%}{rest}")

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


class Meter:
    """Work of several threads, as the share of a stage; `stop` ends all of it at the next tick."""

    def __init__(self, report: Report, total: float) -> None:
        self._report, self.total, self._done = report, total, 0.0
        self._lock, self._stopped = Lock(), Event()

    def tick(self, work: float) -> None:
        """So much more is done."""
        if self._stopped.is_set():
            raise InterruptedError("The fit was stopped.")
        with self._lock:
            self._done += work
            self._report.advance(self._done / max(self.total, 1.0))

    def stop(self) -> None:
        self._stopped.set()


def _takes_stage(function: Callable[..., Any]) -> bool:
    try:
        return "stage" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # written in C, perhaps
        return False
