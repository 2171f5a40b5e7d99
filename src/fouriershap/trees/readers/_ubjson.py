"""UBJSON, as XGBoost writes it: JSON in binary, with arrays of numbers stored as they are in memory."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

_NUMBERS = {"i": ">i1", "U": ">u1", "I": ">i2", "l": ">i4", "L": ">i8", "d": ">f4", "D": ">f8"}
_STRUCTS = {code: struct.Struct(f">{form}") for code, form in zip(_NUMBERS, "bBhiqfd", strict=True)}


def decode(data: bytes) -> Any:
    """Decode a document. Typed arrays become NumPy views of ``data`` (big-endian); ValueError if malformed."""
    try:
        value, _ = _value(data, 0)
    except (IndexError, KeyError, struct.error, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(
            f"not a UBJSON document, or a truncated one ({type(error).__name__}: {error})"
        ) from None
    return value


def _number(data: bytes, at: int, code: str) -> tuple[Any, int]:
    form = _STRUCTS[code]
    return form.unpack_from(data, at)[0], at + form.size


def _string(data: bytes, at: int) -> tuple[str, int]:
    length, at = _number(data, at + 1, chr(data[at]))
    if length < 0 or at + length > len(data):
        raise IndexError("a string runs past the end")
    return data[at : at + length].decode(), at + length


def _value(data: bytes, at: int) -> tuple[Any, int]:
    code = chr(data[at])
    at += 1
    if code in _STRUCTS:
        return _number(data, at, code)
    if code == "S":
        return _string(data, at)
    if code == "{":
        return _object(data, at)
    if code == "[":
        return _array(data, at)
    return {"Z": None, "T": True, "F": False}[code], at


def _object(data: bytes, at: int) -> tuple[dict[str, Any], int]:
    found: dict[str, Any] = {}
    while data[at] != ord("}"):
        key, at = _string(data, at)
        found[key], at = _value(data, at)
    return found, at + 1


def _array(data: bytes, at: int) -> tuple[Any, int]:
    kind = None
    if data[at] == ord("$"):
        kind, at = chr(data[at + 1]), at + 2
    if data[at] == ord("#"):
        count, at = _number(data, at + 2, chr(data[at + 1]))
        if kind is not None:
            dtype = np.dtype(_NUMBERS[kind])
            if count < 0 or at + count * dtype.itemsize > len(data):
                raise IndexError("an array runs past the end")
            return np.frombuffer(data, dtype, count, at), at + count * dtype.itemsize
        items = []
        for _ in range(count):
            item, at = _value(data, at)
            items.append(item)
        return items, at
    items = []
    while data[at] != ord("]"):
        item, at = _value(data, at)
        items.append(item)
    return items, at + 1
