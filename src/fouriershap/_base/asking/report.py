"""Telling how far a fit is: the queries done, the stage that it is in, and a guess of what is left."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from threading import Event, Lock
from typing import Any

from fouriershap._base.checks import Progress, check_progress, need
from fouriershap._base.parallel import SILENCE
from fouriershap._base.progress import Stage, is_seen, takes_stage

ASKING = "asking"
_TELLS = 0.02  # share of a stage from which on it tells how long the rest takes


class Report:
    """Tells how many queries of ``total`` are done, and the stage: by a tqdm bar (True), to a function, or not (False).

    None draws the bar after two seconds, where somebody looks.
    """

    def __init__(self, progress: Progress, total: int) -> None:
        self._total = total
        self._tell = progress if callable(progress) else None
        self._is_staged = self._tell is not None and takes_stage(self._tell)
        self._bar: Any = None
        self._may_draw, self._made = check_progress(progress) is None, time.perf_counter()
        if progress is True:
            self._draw()
        self._done = 0
        self._expected: dict[str, float] = {}
        self._took: dict[str, float] = {}
        self._begin_stage(ASKING, total)

    def _draw(self) -> None:
        otherwise = "A function of (done, total) needs nothing more."
        bar = need("tqdm.auto", "progress=True", "tqdm", otherwise).tqdm
        self._bar = bar(total=self._total, unit="query")

    def _begin_stage(self, name: str, queries: int) -> None:
        self._name, self._share, self._began = name, 0.0, time.perf_counter()
        self._queries, self._done_before = queries, self._done

    def __call__(self, done: int) -> None:
        """So many queries are done in all."""
        self._done = done
        self._draw_if_long()
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

    def _draw_if_long(self) -> None:
        if self._may_draw and time.perf_counter() - self._made > SILENCE:
            self._may_draw = False
            if is_seen():
                self._draw()
                self._bar.update(self._done)

    def _tell_stage(self) -> None:
        self._draw_if_long()
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
