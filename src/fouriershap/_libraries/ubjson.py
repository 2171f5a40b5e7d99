"""UBJSON, as XGBoost writes it: JSON in binary, with arrays of numbers stored as they are in memory."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from fouriershap._base.messages import error_text, truncated_repr

_NUMBERS = {"i": ">i1", "U": ">u1", "I": ">i2", "l": ">i4", "L": ">i8", "d": ">f4", "D": ">f8"}
_DTYPES = {ord(code): np.dtype(dtype) for code, dtype in _NUMBERS.items()}
_STRUCTS = {ord(code): struct.Struct(f">{form}") for code, form in zip(_NUMBERS, "bBhiqfd", strict=True)}
_INT64, _LONG = _STRUCTS[ord("L")], ord("L")
_CONSTANTS = {"Z": None, "T": True, "F": False}
_TYPE, _COUNT, _END_ARRAY, _END_OBJECT = b"$#]}"


def decode(data: bytes) -> Any:
    """Decode a document. Typed arrays become NumPy views of ``data`` (big-endian); ValueError if malformed."""
    try:
        return _Decoder(data).value()
    except (IndexError, KeyError, struct.error, UnicodeDecodeError) as error:
        raise ValueError(
            f"not a UBJSON document, or a truncated one ({type(error).__name__}: {error_text(error)})"
        ) from None


class _Decoder:
    """Reads from ``data`` at ``at``. A model has tens of thousands of small values, so every call counts."""

    __slots__ = ("at", "data", "kinds")

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0
        self.kinds: dict[int, Any] = {ord("S"): self.string, ord("{"): self.object, ord("["): self.array}
        self.kinds |= {ord(code): (lambda value=value: value) for code, value in _CONSTANTS.items()}

    def value(self) -> Any:
        code = self.data[self.at]
        self.at += 1
        form = _STRUCTS.get(code)
        if form is None:
            return self.kinds[code]()
        (number,) = form.unpack_from(self.data, self.at)
        self.at += form.size
        return number

    def _length(self) -> int:
        length = self.value()
        if not isinstance(length, int) or length < 0 or self.at + length > len(self.data):
            raise IndexError(f"a length of {truncated_repr(length)} at byte {self.at}")
        return length

    def string(self) -> str:
        data, at = self.data, self.at
        if data[at] == _LONG:
            (length,) = _INT64.unpack_from(data, at + 1)
            at += 9
        else:
            length, at = self.value(), self.at
        end = at + length
        if length < 0 or end > len(data):
            raise IndexError(f"a string of {length} bytes at byte {at}")
        self.at = end
        return data[at:end].decode()

    def object(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        data, value, string = self.data, self.value, self.string
        while data[self.at] != _END_OBJECT:
            key = string()
            at = self.at
            # Nearly all of a model is this: a typed array whose count is an int64. Worth a branch of its own.
            if data[at : at + 2] == b"[$" and data[at + 3 : at + 5] == b"#L":
                dtype = _DTYPES[data[at + 2]]
                (count,) = _INT64.unpack_from(data, at + 5)
                at += 13
                self.at = at + count * dtype.itemsize
                if count < 0 or self.at > len(data):
                    raise IndexError(f"an array of {count} items at byte {at}")
                found[key] = np.frombuffer(data, dtype, count, at)
            else:
                found[key] = value()
        self.at += 1
        return found

    def array(self) -> Any:
        data, value = self.data, self.value
        dtype = None
        if data[self.at] == _TYPE:
            dtype = _DTYPES[data[self.at + 1]]
            self.at += 2
        if data[self.at] == _COUNT:
            self.at += 1
            count = self._length()
            if dtype is None:
                return [value() for _ in range(count)]
            size = count * dtype.itemsize
            if self.at + size > len(data):
                raise IndexError(f"an array of {size} bytes at byte {self.at}")
            self.at += size
            return np.frombuffer(data, dtype, count, self.at - size)
        items = []
        while data[self.at] != _END_ARRAY:
            items.append(value())
        self.at += 1
        return items
