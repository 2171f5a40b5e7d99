"""Telling how far a long call is: nothing for two seconds, then a bar, lines in a log, or a function of the caller."""

from __future__ import annotations

import inspect
import logging
import math
import sys
import time
from collections.abc import Callable
from contextvars import ContextVar
from importlib.util import find_spec
from typing import Any, NamedTuple

from fouriershap._base.checks import need
from fouriershap._base.errors import InputError
from fouriershap._base.short import short

Progress = bool | Callable[..., Any] | None

_PATIENCE = 2.0  # seconds before anything is told that nobody asked for
_LOG_EVERY = 10.0  # seconds between lines in a log
_TELLS = 0.02  # share of a stage from which on it tells how long the rest takes
_PERCENT = 100
_BAR = "{desc}: {percentage:3.0f} %|{bar}| {elapsed}, {remaining} left"
_watch: ContextVar[Watch | None] = ContextVar("fouriershap_watch", default=None)
_log = logging.getLogger("fouriershap")


class Stage(NamedTuple):
    """Where a long call is.

    Attributes
    ----------
    name : str
        Such as "building tables", "streaming", "asking" or "fitting waves".
    share : float
        How much of this stage is done, from 0 to 1.
    seconds_left : float
        A guess for what is left of it; NaN while nothing is known.
    """

    name: str
    share: float
    seconds_left: float


def check_progress(progress: Any) -> Progress:
    """What callers may give: None for the default, True, False, or a function."""
    if progress is None or isinstance(progress, bool) or callable(progress):
        return progress  # type: ignore[no-any-return]
    raise InputError(f"progress is {short(progress)}; give None, True, False or a function of (done, total).")


def takes_stage(function: Callable[..., Any]) -> bool:
    """Whether a function of (done, total) wants to know the ``stage``, too."""
    try:
        return "stage" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # written in C, perhaps
        return False


def current() -> Watch | None:
    """The watch over this thread, unless one of its loops is being counted already."""
    watch = _watch.get()
    return None if watch is None or watch.is_counting else watch


def enter(name: str, n_loops: int = 1) -> None:
    """The next ``n_loops`` loops, of about the same length, make a stage of this name, where somebody watches."""
    watch = current()
    if watch is not None:
        watch.enter(name, n_loops)


class Watch:
    """A call that is watched: ``with Watch(progress): ...``. The loops of `_base.parallel` in it are counted.

    None tells after two seconds: by a bar in a terminal or notebook that has tqdm, else in the log "fouriershap".
    """

    def __init__(self, progress: Progress) -> None:
        self._tell = progress if callable(progress) else None
        self._is_staged = self._tell is not None and takes_stage(self._tell)
        self._wants_bar = progress is True
        self._is_silent = progress is False
        self._bar: Any = None
        self.is_counting = False
        self._began = self._entered = self._logged = time.perf_counter()
        self._name, self._n_loops, self._n_done, self._total = "explaining", 1, 0, 1

    def __enter__(self) -> Watch:
        self._outer = _watch.set(None if self._is_silent else self)
        return self

    def __exit__(self, *_: object) -> None:
        _watch.reset(self._outer)
        if self._bar is not None:
            self._bar.close()

    def enter(self, name: str, n_loops: int = 1) -> None:
        """See `enter`."""
        self._name, self._n_loops, self._n_done = name, n_loops, 0
        self._entered = time.perf_counter()
        if self._bar is not None:
            self._bar.reset()
            self._bar.set_description_str(name)

    def begin(self, total: int) -> None:
        """A loop over so many parts begins."""
        self.is_counting, self._total = True, max(total, 1)

    def end(self) -> None:
        """The loop is over."""
        self.is_counting = False
        self._n_done += 1

    def show(self, done: int) -> None:
        """So many parts of the loop are done; called by the thread that waits."""
        now = time.perf_counter()
        if self._tell is None and not self._wants_bar and now - self._began < _PATIENCE:
            return
        share = min((self._n_done + done / self._total) / self._n_loops, 1.0)
        left = (now - self._entered) * (1 - share) / share if share > _TELLS else math.nan
        stage = Stage(self._name, share, left)
        if self._tell is not None:
            more = {"stage": stage} if self._is_staged else {}
            self._tell(int(share * _PERCENT), _PERCENT, **more)
        elif self._has_bar():
            further = int(share * _PERCENT) - self._bar.n
            if further > 0:
                self._bar.update(further)
        elif now - self._logged > _LOG_EVERY:
            self._logged = now
            _log.info("%s: %.0f %%, about %.0f s left", self._name, share * _PERCENT, left)

    def _has_bar(self) -> bool:
        if self._bar is None and (self._wants_bar or _is_seen()):
            otherwise = "A function of (done, total) needs nothing more."
            bar = need("tqdm.auto", "progress=True", "tqdm", otherwise).tqdm
            self._bar = bar(total=_PERCENT, desc=self._name, leave=False, bar_format=_BAR)
        return self._bar is not None


def _is_seen() -> bool:
    """Whether somebody looks at a terminal or a notebook, and tqdm can draw there."""
    looks = "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())
    return looks and find_spec("tqdm") is not None
