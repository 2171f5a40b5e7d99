"""What was given to be explained, by name: pages tell where a model came from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from fouriershap._base.short import short_text


def name_of(model: Any) -> str | None:
    """Where a model comes from: its class, a function's name, or the name of a file."""
    if model is None:
        return None
    if isinstance(model, str | os.PathLike):
        name = Path(model).name
    else:
        named = model if hasattr(model, "__qualname__") else type(model)
        package = str(getattr(named, "__module__", "")).partition(".")[0]
        name = f"{package}.{named.__qualname__}" if package else str(named.__qualname__)
    # Names of files may hold bytes that are no text, which could not be written.
    return short_text(name.encode("utf-8", "replace").decode("utf-8"))
