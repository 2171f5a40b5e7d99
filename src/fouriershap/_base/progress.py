"""Telling how far a long call is: by a bar, by lines in a log, or to a function of the caller."""

from __future__ import annotations

import inspect
import logging
import math
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

from fouriershap._base.checks import Progress, need

_LOG_EVERY = 10.0  # seconds between lines in a log
_TELLS = 0.02  # share of a stage from which on it tells how long the rest takes
_PERCENT = 100
_BAR = "{desc}: {percentage:3.0f} %|{bar}| {elapsed}, {remaining} left"
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


def takes_stage(function: Callable[..., Any]) -> bool:
    """Whether a function of (done, total) wants to know the ``stage``, too."""
    try:
        return "stage" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # written in C, perhaps
        return False


class Teller:
    """Tells where a call is, as ``progress`` asks for it.

    None: by a bar in a terminal or notebook that has tqdm, else in the log "fouriershap".
    """

    def __init__(self, progress: Progress) -> None:
        self._tell = progress if callable(progress) else None
        self._is_staged = self._tell is not None and takes_stage(self._tell)
        self._wants_bar = progress is True or (self._tell is None and _is_seen())
        self._bar: Any = None
        self._logged = time.perf_counter()

    def tell(self, name: str, share: float, seconds: float) -> None:
        """So much of a stage is done, after so many seconds."""
        stage = Stage(name, share, seconds * (1 - share) / share if share > _TELLS else math.nan)
        if self._tell is not None:
            more = {"stage": stage} if self._is_staged else {}
            self._tell(int(share * _PERCENT), _PERCENT, **more)
        elif self._wants_bar:
            self._draw(stage)
        elif time.perf_counter() - self._logged > _LOG_EVERY:
            self._logged = time.perf_counter()
            _log.info("%s: %.0f %%, about %.0f s left", name, share * _PERCENT, stage.seconds_left)

    def _draw(self, stage: Stage) -> None:
        if self._bar is None:
            otherwise = "A function of (done, total) needs nothing more."
            bar = need("tqdm.auto", "progress=True", "tqdm", otherwise).tqdm
            self._bar = bar(total=_PERCENT, desc=stage.name, leave=False, bar_format=_BAR)
        further = int(stage.share * _PERCENT) - self._bar.n
        if further < 0:
            self._bar.reset()
        if further:
            self._bar.set_description_str(stage.name, refresh=False)
            self._bar.update(int(stage.share * _PERCENT) - self._bar.n)

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.close()


def _is_seen() -> bool:
    """Whether somebody looks at a terminal or a notebook, and tqdm can draw there."""
    looks = "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())
    return looks and find_spec("tqdm") is not None
