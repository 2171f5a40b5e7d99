"""Values, texts and errors of others, truncated to 80 characters for messages of ours."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Collection
from itertools import islice

from fouriershap._base.errors import FourierShapError

MOST = 80
_GAP = "..."


class _Short(reprlib.Repr):
    """Truncated representations, in which arrays and frames are shown by their shape."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 3
        self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdict = self.maxarray = 20
        self.maxstring = self.maxlong = self.maxother = MOST

    def repr_instance(self, x: object, level: int) -> str:
        shape = getattr(x, "shape", ())
        if isinstance(shape, tuple) and shape:
            return f"<{type(x).__name__} of shape {shape}>"
        return super().repr_instance(x, level)


_SHORT = _Short()


def truncated_repr(value: object) -> str:
    """Return the ``repr`` of any value, truncated."""
    try:
        text = _SHORT.repr(value)
    except Exception:  # noqa: BLE001 - the message must not fail
        text = f"<{type(value).__name__}>"
    return truncated_text(" ".join(text.splitlines()))


def truncated_text(text: object) -> str:
    """Return the ``str`` of a path, a name, a type; of a long one both ends."""
    try:
        whole = str(text)
    except Exception:  # noqa: BLE001
        whole = f"<{type(text).__name__}>"
    if len(whole) <= MOST:
        return whole
    head = (MOST - len(_GAP)) // 2
    return whole[:head] + _GAP + whole[head + len(_GAP) - MOST :]


def truncated_list(values: Collection[object], most: int = 5) -> str:
    """Return the first of several values, and how many more there are."""
    more = f" and {len(values) - most:,} more" if len(values) > most else ""
    return ", ".join(truncated_repr(value) for value in islice(values, most)) + more


def error_text(error: BaseException) -> str:
    """Return the message of an error: whole if it is one of ours, which hold no long values."""
    if isinstance(error, FourierShapError):
        return str(error)
    try:
        return truncated_text(" ".join(str(error).split()))
    except Exception:  # noqa: BLE001 - errors of other people's functions may do anything
        return f"<{type(error).__name__}>"


def duration_text(seconds: float) -> str:
    """Return a duration for people: "40 s", "12 min", "3 h"."""
    for size, unit in ((3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def wrapped(name: str, width: int = 30) -> str:
    """Return a name in lines that leave room for a plot, broken after spaces, underscores and the like."""
    lines = [""]
    for word in re.findall(r"[^\s_/\-]*[\s_/\-]?", name):
        if lines[-1] and len(lines[-1]) + len(word.rstrip()) > width:
            lines.append("")
        lines[-1] += word
    return "\n".join(line.rstrip(" ") for line in lines)
