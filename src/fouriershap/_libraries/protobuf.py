"""Messages of Protocol Buffers, read by field number: all that ONNX and YDF files need of that format.

A message is a sequence of fields: a key (number and wire type), then a value. Without its schema the wire type alone
is known, so whoever asks for a field says what is in it. The format has not changed since 2008, and what is unknown
is passed over, so that newer files read like older ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import InputError

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_WIDTH = {_FIXED64: 8, _FIXED32: 4}
_BIGGEST = 10  # bytes of a whole number
_CHUNK = 1 << 19  # bytes looked at together


class Message:
    """The fields of one message; those that hold messages are read when they are asked for."""

    def __init__(self, data: bytes | memoryview) -> None:
        self._data = memoryview(data)
        self._fields: dict[
            int, list[tuple[int, memoryview | bytes]]
        ] = {}  # number -> (wire type, bytes) of each
        self._index()

    def _index(self) -> None:
        data, at, size = self._data, 0, len(self._data)
        before = -1
        while at < size:
            start = at
            key, at = _varint(data, at)
            number, wire = key >> 3, key & 7
            if key == before and key < 0x80 and wire != _BYTES and wire in (_VARINT, *_WIDTH):
                values, at = _run(data, start, key)
                self._fields[number].append((wire, values))
                continue
            before = key
            if wire == _VARINT:
                begin, at = at, _after_varint(data, at)
            elif wire == _BYTES:
                length, begin = _varint(data, at)
                at = begin + length
            elif wire in _WIDTH:
                begin, at = at, at + _WIDTH[wire]
            else:
                raise InputError(f"no message of Protocol Buffers: wire type {wire} at byte {at}.")
            if at > size or not number:
                raise InputError(f"no message of Protocol Buffers, or cut off: field {number} at byte {at}.")
            self._fields.setdefault(number, []).append((wire, data[begin:at]))

    def __contains__(self, number: int) -> bool:
        return number in self._fields

    def messages(self, number: int) -> list[Message]:
        return [Message(data) for data in self.blobs(number)]

    def message(self, number: int) -> Message:
        """Return the message in a field; an empty one where there is none."""
        found = self.blobs(number)
        return Message(found[-1] if found else b"")

    def blobs(self, number: int) -> list[memoryview | bytes]:
        """Return the bytes of every occurrence."""
        return [data for wire, data in self._fields.get(number, ()) if wire == _BYTES]

    def blob(self, number: int) -> bytes:
        found = self.blobs(number)
        return bytes(found[-1]) if found else b""

    def texts(self, number: int) -> list[str]:
        return [bytes(data).decode("utf-8", "replace") for data in self.blobs(number)]

    def text(self, number: int) -> str:
        return self.blob(number).decode("utf-8", "replace")

    def whole(self, number: int, default: int = 0) -> int:
        """Return an integer in two's complement, as int32, int64, bool and enumerations are written."""
        found = self.wholes(number)
        return int(found[-1]) if len(found) else default

    def wholes(self, number: int) -> NDArray[np.int64]:
        """Whole numbers, packed or one by one."""
        return _varints(np.frombuffer(self._joined(number), dtype=np.uint8))

    def floats(self, number: int) -> NDArray[np.float32]:
        return self._numbers(number, np.dtype("<f4"))

    def doubles(self, number: int) -> NDArray[np.float64]:
        return self._numbers(number, np.dtype("<f8"))

    def number(self, number: int, default: float = 0.0) -> float:
        """One float, or double where it was written as such."""
        wires = [wire for wire, _ in self._fields.get(number, ())]
        found = self.doubles(number) if wires and wires[-1] == _FIXED64 else self.floats(number)
        return float(found[-1]) if len(found) else default

    def _numbers(self, number: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        joined = self._joined(number)
        if len(joined) % dtype.itemsize:
            size = f"{len(joined)} bytes: no numbers of {dtype.itemsize} bytes each"
            raise InputError(f"field {number} of a message has {size}.")
        return np.frombuffer(joined, dtype=dtype)

    def _joined(self, number: int) -> bytes:
        return b"".join(data for _, data in self._fields.get(number, ()))


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    """Return an unsigned integer, and where it ends."""
    end = _after_varint(data, at)
    value = 0
    for position in range(end - 1, at - 1, -1):
        value = value << 7 | data[position] & 0x7F
    return value, end


def _after_varint(data: memoryview, at: int) -> int:
    for end in range(at, min(at + _BIGGEST, len(data))):
        if data[end] < 0x80:
            return end + 1
    raise InputError(f"no message of Protocol Buffers, or cut off: a number at byte {at} does not end.")


def _run(data: memoryview, at: int, key: int) -> tuple[bytes, int]:
    """Return the values of consecutive fields with the same key of one byte, and where they end.

    Lists that are not packed are written so: read one by one, a million nodes would take a minute.
    """
    width = _WIDTH.get(key & 7)
    chunk = np.frombuffer(data[at : at + _CHUNK], dtype=np.uint8)
    if width is not None:
        table = chunk[: len(chunk) // (width + 1) * (width + 1)].reshape(-1, width + 1)
        count = _leading(table[:, 0] == key)
        if count:
            return table[:count, 1:].tobytes(), at + count * (width + 1)
    ends = np.flatnonzero(chunk < 0x80)
    ends = ends[: len(ends) // 2 * 2]  # of a key, of its value, of the next key ...
    keys = np.concatenate([[0], ends[1::2] + 1])[: len(ends) // 2]
    count = _leading((ends[::2] == keys) & (chunk[keys] == key))
    if width is not None or not count:
        raise InputError(f"no message of Protocol Buffers, or cut off: a number at byte {at} does not end.")
    end = int(ends[2 * count - 1]) + 1
    return np.delete(chunk[:end], keys[:count]).tobytes(), at + end


def _leading(same: NDArray[np.bool_]) -> int:
    return len(same) if same.all() else int(same.argmin())


def _varints(data: NDArray[np.uint8]) -> NDArray[np.int64]:
    """All whole numbers of a run, each in seven bits a byte, the lowest first."""
    ends = np.flatnonzero(data < 0x80)
    if not len(ends):
        return np.empty(0, dtype=np.int64)
    starts = np.concatenate([[0], ends[:-1] + 1])
    length = ends - starts + 1
    if length.max() > _BIGGEST or ends[-1] != len(data) - 1:
        raise InputError("no message of Protocol Buffers, or cut off: a list of numbers does not end.")
    values = np.zeros(len(ends), dtype=np.uint64)
    for place in range(int(length.max())):
        has = length > place
        values[has] |= (data[starts[has] + place] & np.uint8(0x7F)).astype(np.uint64) << np.uint64(7 * place)
    return values.astype(np.int64)
