"""When to build, and what was built: what engines keep from call to call, behind locks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np

from fouriershap._shapley.sets import InteractionEngine, Keys

T = TypeVar("T")
P = TypeVar("P", bound=InteractionEngine)


class Locked:
    """State behind a lock, which no copy shares."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __getstate__(self) -> dict[str, Any]:
        copied = {k: dict(v) if isinstance(v, dict) else v for k, v in self.__dict__.items()}
        return {k: v for k, v in copied.items() if k != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()


class BuildPolicy(Locked, Generic[T]):
    """The built object, and the cost of calls without it so far.

    The ski-rental rule: do without until that has cost as much as building, which is never more than twice the best in
    hindsight. ``built`` may be read without the lock, since it is set last and whole.
    """

    def __init__(self, built: T | None = None) -> None:
        super().__init__()
        self.built = built
        self._rows, self._seconds = 0, 0.0

    def build(self, make: Callable[[], T]) -> T:
        """Return what ``make`` builds, once."""
        with self._lock:
            if self.built is None:
                self.built = make()
            return self.built

    def record_cost(self, n_rows: int, seconds: float = 0.0) -> tuple[int, float]:
        """Add rows explained without it, and seconds that it would have saved; return the totals of both."""
        with self._lock:
            self._rows += n_rows
            self._seconds += seconds
            return self._rows, self._seconds


class Memo(Locked, Generic[T]):
    """Values that are made once for each key."""

    def __init__(self) -> None:
        super().__init__()
        self._made: dict[int, T] = {}

    def get(self, key: int, make: Callable[[int], T]) -> T:
        """Return what ``make`` makes of the key."""
        with self._lock:
            if key not in self._made:
                self._made[key] = make(key)
            return self._made[key]


class LastPairs(Locked, Generic[P]):
    """The tables of pairs that were made last, kept until other pairs are wanted."""

    def __init__(self, pairs: P | None = None) -> None:
        super().__init__()
        self._kept: tuple[Keys | None, P] | None = None if pairs is None else (None, pairs)

    def get(self, wanted: Keys | None, make: Callable[[], P]) -> P:
        """Return the tables that hold the wanted pairs (None for all): those that are kept, or new ones."""
        with self._lock:
            if self._kept is not None:
                keys, pairs = self._kept
                if keys is None or (wanted is not None and bool(np.isin(wanted, keys).all())):
                    return pairs
            made = make()
            self._kept = (wanted, made)
            return made
