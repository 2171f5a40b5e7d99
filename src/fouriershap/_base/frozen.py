"""`Frozen`: dataclasses that pickle without what they derive."""

from __future__ import annotations

from dataclasses import fields
from typing import Any


class Frozen:
    """Base of frozen dataclasses with cached properties, which are not pickled: they can be derived again."""

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
