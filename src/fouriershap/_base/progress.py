"""Progress of long work: a bar, a function of the caller's, or nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fouriershap._base.errors import InputError, MissingDependencyError
from fouriershap._base.short import short

Progress = bool | Callable[[int, int], Any] | None


class Report:
    """Tells how many queries of ``total`` are done, in the way that was asked for.

    Parameters
    ----------
    progress : bool or callable, optional
        True for a tqdm bar, a function of (done, total), or nothing.
    total : int
    """

    def __init__(self, progress: Progress, total: int) -> None:
        self._total = total
        self._tell = progress if callable(progress) else None
        self._bar: Any = None
        if self._tell is not None or progress is None or progress is False:
            return
        if progress is not True:
            raise InputError(
                f"progress is {short(progress)}; give None, True or a function of (done, total)."
            )
        try:
            from tqdm.auto import tqdm
        except ImportError as error:
            raise MissingDependencyError(
                "progress=True needs tqdm: `pip install tqdm`, or give a function of (done, total)."
            ) from error
        self._bar = tqdm(total=total, unit="query")

    def __call__(self, done: int) -> None:
        if self._tell is not None:
            self._tell(done, self._total)
        if self._bar is not None:
            self._bar.update(done - self._bar.n)

    def close(self) -> None:
        """End the bar, if there is one."""
        if self._bar is not None:
            self._bar.close()
