"""How quick this machine is: one factor for each way of explaining trees, learned from what calls cost."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from fouriershap._base.atomic import atomic_file, translate_os_errors
from fouriershap._base.errors import CostWarning
from fouriershap._base.messages import truncated_text
from fouriershap._base.warn import warn

_FAR = 1.5  # powers of 2: what is nearer to a factor leaves it alone, so that runs choose alike
_WEIGHT = 0.5  # of the last call
LEAST = 0.05  # seconds of a call that tells something: shorter ones consist of what estimates leave out


class Factors(NamedTuple):
    """What estimated seconds are multiplied by: of reading tables, of building them, of streaming and of walking."""

    tables: float = 1.0
    build: float = 1.0
    stream: float = 1.0
    walk: float = 1.0


NEUTRAL = Factors()


class Speed:
    """Factors of a process: those of `calibrate`, if it has run on this machine, until calls tell otherwise.

    Attributes
    ----------
    factors : Factors
        Another object whenever one of them changes.
    """

    def __init__(self, factors: Factors = NEUTRAL) -> None:
        self._lock = Lock()
        self.start(factors)

    def start(self, factors: Factors) -> None:
        """Begin with these factors, and forget what calls took."""
        with self._lock:
            self.factors = factors
            self._off = dict.fromkeys(Factors._fields, 0.0)  # by how many powers of 2 factors were off lately

    def learn(self, way: str, factors: Factors, estimate: float, seconds: float) -> None:
        """Take in that a call took so many seconds of CPU, which was estimated with these factors."""
        if seconds < LEAST or not 0 < estimate < math.inf:
            return
        with self._lock:
            now: float = getattr(self.factors, way)
            off = math.log2(seconds / estimate * getattr(factors, way) / now)
            off = self._off[way] = self._off[way] + _WEIGHT * (off - self._off[way])
            if abs(off) > _FAR:
                self.factors = self.factors._replace(**{way: now * 2.0 ** round(off)})
                self._off[way] -= round(off)


def calibration_file() -> Path:
    """Return where `calibrate` leaves the factors of this machine."""
    folder = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    return Path(folder) / "fouriershap" / "speed.json"


def save_factors(factors: Factors) -> Path:
    """Write the factors of this machine for processes to come."""
    path = calibration_file()
    with translate_os_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as temporary:
        temporary.write_text(json.dumps(factors._asdict()) + "\n")
    return path


def saved_factors() -> Factors:
    """Return what `save_factors` wrote last, or neutral factors."""
    try:
        path = calibration_file()
        saved = Factors(**json.loads(path.read_text()))
        factors = Factors(*map(float, saved))
        if all(1e-6 < factor < 1e6 for factor in factors):
            return factors
    except (OSError, RuntimeError):  # not calibrated, or there is no home folder
        return NEUTRAL
    except (TypeError, ValueError):
        pass
    warn(f"{truncated_text(path)} is damaged and not used: run `fouriershap calibrate` again.", CostWarning)
    return NEUTRAL


SPEED = Speed(saved_factors())
