"""How much memory tables may take."""

from __future__ import annotations

import math
import os

import numpy as np

from fouriershap._base.errors import InputError

_UNKNOWN_MACHINE = 4 << 30


def check_memory(memory: int | float | None) -> int:
    """The budget in bytes; None is a quarter of the machine's memory."""
    if memory is None:
        try:
            return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")) // 4
        except (AttributeError, ValueError, OSError):
            return _UNKNOWN_MACHINE // 4
    number = isinstance(memory, int | float | np.integer) and not isinstance(memory, bool)
    if not number or not math.isfinite(memory) or memory < 0:
        raise InputError(
            f"memory is {memory!r}; give a budget in bytes, or None for a quarter of the machine's."
        )
    return int(memory)
