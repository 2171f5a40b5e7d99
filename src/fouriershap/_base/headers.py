"""Values of a file's JSON header, checked against the types that the code expects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from fouriershap._base.errors import FileFormatError
from fouriershap._base.messages import truncated_repr

Label = str | int | float | bool | None  # of a category, as JSON has it
_REQUIRED: Any = object()
_MOST = 1 << 63  # sizes are below it


def get_typed(header: Mapping[str, Any], name: str, kind: Any, default: Any = _REQUIRED) -> Any:
    """Return the value of a key, checked against its type; ``default`` where it is optional and missing."""
    if name not in header and default is not _REQUIRED:
        return default
    require(name in header, f"its header lacks {truncated_repr(name)}")
    return from_json(kind, header[name], name)


def get_size(header: Mapping[str, Any], name: str) -> int | None:
    """Return a size that may be unknown."""
    size: int | None = get_typed(header, name, int | None, None)
    require(size is None or size >= 0, f"{name} is negative")
    return size


def get_part(header: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a header within the header."""
    part = get_typed(header, name, Any)
    require(isinstance(part, dict), f"{name} is not an object")
    return dict(part)


def from_json(kind: Any, value: Any, name: str) -> Any:
    """Return ``value`` as an object of type ``kind``; `FileFormatError` where it does not fit.

    ``kind`` is str, int, float, bool, a union of these, ``T | None``, ``tuple[T, ...]``, a dataclass (from an object),
    a named tuple (from a list), or Any.
    """
    if isinstance(kind, UnionType):
        return _one_of(get_args(kind), value, name)
    if get_origin(kind) is tuple:
        require(isinstance(value, list), f"{name} is not a list")
        item = get_args(kind)[0]
        return tuple(from_json(item, entry, name) for entry in value)
    if is_dataclass(kind):
        return _record(kind, value, name)
    if hasattr(kind, "_fields"):
        require(
            isinstance(value, list) and len(value) == len(kind._fields), f"{name} is not a list of its parts"
        )
        hints = get_type_hints(kind)
        return kind(
            *(from_json(hints[part], entry, name) for part, entry in zip(kind._fields, value, strict=True))
        )
    return _plain(kind, value, name)


def _plain(kind: Any, value: Any, name: str) -> Any:
    if kind is Any:
        return value
    fits = type(value) is kind or (kind is float and type(value) is int)
    require(fits, f"{name} is not of type {kind.__name__}")
    if kind is str:
        value.encode()  # ValueError for half a surrogate pair
    elif kind is int:
        require(-_MOST <= value < _MOST, f"{name} overflows")
    return float(value) if kind is float else value


def _one_of(kinds: tuple[Any, ...], value: Any, name: str) -> Any:
    if value is None and NoneType in kinds:
        return None
    others = [kind for kind in kinds if kind is not NoneType]
    if len(others) == 1:
        return from_json(others[0], value, name)
    require(type(value) in others, f"{name} is none of {', '.join(kind.__name__ for kind in others)}")
    return value


def _record(kind: Any, value: Any, name: str) -> Any:
    require(isinstance(value, dict), f"{name} is not an object")
    known = {field.name: field for field in fields(kind)}
    require(value.keys() <= known.keys(), f"{name} has unknown parts")
    for field in known.values():
        optional = field.default is not MISSING or field.default_factory is not MISSING
        require(field.name in value or optional, f"{name} lacks {truncated_repr(field.name)}")
    hints = get_type_hints(kind)
    return kind(**{part: from_json(hints[part], entry, f"{name}.{part}") for part, entry in value.items()})


def require(condition: Any, what: str) -> None:
    """Raise `FileFormatError` unless the condition holds."""
    if not condition:
        raise FileFormatError(f"the file is damaged: {what}.")
