"""Warnings that point at the caller's line, outside this package."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

# Frames of the standard library that stand between two of ours: cached properties, context managers.
_SKIPPED = (__name__.partition(".")[0], "functools", "contextlib")


def warn(message: str, category: type[Warning]) -> None:
    """Warn as if the caller's own line had called `warnings.warn`, from any depth of this package.

    As ``skip_file_prefixes`` does from Python 3.12 on; 3.11 does not have it.
    """
    warnings.warn(message, category, stacklevel=1 + _level_outside(sys._getframe(1)))


def _level_outside(frame: FrameType) -> int:
    """Return the ``stacklevel`` of the first frame outside this package."""
    level = 1
    while frame.f_back is not None and (_is_skipped(frame) or _is_import(frame)):
        frame = frame.f_back
        level += not _is_import(frame)  # `warnings` does not count those
    return level


def _is_skipped(frame: FrameType) -> bool:
    # By module, not by file: methods that `dataclasses` writes have a module, but no file.
    return str(frame.f_globals.get("__name__")).partition(".")[0] in _SKIPPED


def _is_import(frame: FrameType) -> bool:
    name = frame.f_code.co_filename
    return "importlib" in name and "_bootstrap" in name
