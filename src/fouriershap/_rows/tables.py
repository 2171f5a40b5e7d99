"""Named columns as a data frame."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from fouriershap._base.errors import MissingDependencyError
from fouriershap._rows.frames import frame_library

_LIBRARIES = ("pandas", "polars", "pyarrow")


def to_frame(columns: dict[str, Any], like: Any) -> Any:
    """Return columns as a data frame in the library of ``like`` or, for anything else, the first that is installed."""
    library: Any = frame_library(like) or next((name for name in _LIBRARIES if find_spec(name)), None)
    if library is None:
        raise MissingDependencyError(
            "a frame needs a data frame library, and none is installed: pip install pandas (or polars, or pyarrow)."
        )
    import narwhals as nw

    return nw.from_dict(columns, backend=library).to_native()
