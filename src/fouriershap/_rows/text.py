"""Values as text: the one place where that is decided."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

MISSING = "missing"
NO_LEVEL = "none of them"  # of a one-hot group


def text_of(value: Any, digits: int | None = 6) -> str:
    """Return a number with so many digits, None for all of them; anything else as ``str`` has it."""
    if not isinstance(value, float | np.floating):
        return str(value)
    if np.isnan(value):
        return MISSING
    return str(value).removesuffix(".0") if digits is None else f"{value:.{digits}g}"


def texts_of(values: NDArray[Any]) -> list[str]:
    """Return the texts of a column, each number with all its digits."""
    if values.dtype.kind == "f":
        return [text.removesuffix(".0") for text in values.astype(str).tolist()]
    return [text_of(value, None) for value in values.tolist()]


def without_prefix(names: Sequence[str]) -> list[str]:
    """Strip the common prefix of names, up to a separator: colour_red, colour_rose -> red, rose."""
    first, last = min(names), max(names)
    pairs = enumerate(zip(first, last, strict=False))
    common = next((i for i, (a, b) in pairs if a != b), min(len(first), len(last)))
    begin = 1 + max(first.rfind(separator, 0, common) for separator in "_=: ")
    return [name[begin:] for name in names]
