"""The safetensors layout: the length of a JSON header, the header, arrays end to end.

The library of that name is not used: it opens paths only, but a file that another process may replace has to be opened
once; it raises no OSError on a full disk; and it copies all arrays before it writes them.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.messages import truncated_repr

_CODES = {
    "F64": "f8",
    "F32": "f4",
    "I64": "i8",
    "I32": "i4",
    "U64": "u8",
    "U16": "u2",
    "U8": "u1",
    "BOOL": "?",
}
_DTYPES = {name: np.dtype(code) for name, code in _CODES.items()}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
_METADATA = "__metadata__"
_LENGTH = 8  # bytes of the header's length; data begin at a multiple of it, so that all arrays are aligned
_MOST_HEADER = 100_000_000  # the library's limit


class Entry(NamedTuple):
    """One array: its type, its shape, and its bytes from the beginning of the file."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    first: int
    last: int


class Layout(NamedTuple):
    """Contents of a file's header."""

    metadata: dict[str, str]
    entries: dict[str, Entry]


def write_tensors(file: BinaryIO, arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]) -> None:
    """Write arrays, which must be contiguous, and texts."""
    names = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))
    header: dict[str, Any] = {_METADATA: dict(metadata)}
    offset = 0
    for name in names:
        array = arrays[name]
        end = offset + array.nbytes
        header[name] = {
            "dtype": _NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [offset, end],
        }
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _LENGTH)
    file.write(len(text).to_bytes(_LENGTH, "little") + text)
    for name in names:
        file.write(arrays[name].reshape(-1).view(np.uint8).data)


def read_layout(file: BinaryIO) -> Layout:
    """Read the header of a file; ValueError unless it accounts for every byte."""
    size = os.fstat(file.fileno()).st_size
    file.seek(0)
    length = int.from_bytes(file.read(_LENGTH), "little")
    if size < _LENGTH or length > min(size - _LENGTH, _MOST_HEADER):
        raise ValueError("it has no header, or is cut off within it")
    header = parse_json(file.read(length))
    if not isinstance(header, dict):
        raise ValueError("its header is not a JSON object")
    metadata = header.pop(_METADATA, None) or {}
    if not isinstance(metadata, dict) or not all(isinstance(text, str) for text in metadata.values()):
        raise ValueError("its metadata are not texts")
    "".join([*header, *metadata, *metadata.values()]).encode()  # ValueError for half a surrogate pair
    begin = _LENGTH + length
    entries = {name: _entry(entry, begin) for name, entry in header.items()}
    for entry in sorted(entries.values(), key=lambda entry: (entry.first, entry.last)):
        if entry.first != begin:
            raise ValueError("its arrays overlap, or leave gaps")
        begin = entry.last
    if begin != size:
        raise ValueError(f"it has {size:,} bytes, but its header describes {begin:,}")
    return Layout(metadata, entries)


def parse_json(text: str | bytes) -> Any:
    """Return the value of a JSON document; ValueError where it is damaged or nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _entry(entry: Any, begin: int) -> Entry:
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise ValueError("its header describes an array in an unknown way")
    if not isinstance(entry["dtype"], str) or entry["dtype"] not in _DTYPES:
        raise ValueError(
            f"it holds arrays of type {truncated_repr(str(entry['dtype'])[:20])}, which fouriershap never writes"
        )
    dtype, shape, offsets = _DTYPES[entry["dtype"]], entry["shape"], entry["data_offsets"]
    for sizes in (shape, offsets):
        if not isinstance(sizes, list) or not all(type(size) is int and size >= 0 for size in sizes):
            raise ValueError("its header has invalid sizes")
    if len(offsets) != 2 or offsets[1] - offsets[0] != math.prod(shape) * dtype.itemsize:
        raise ValueError("an array has another size than its header states")
    return Entry(dtype, tuple(shape), begin + offsets[0], begin + offsets[1])


def map_tensors(file: BinaryIO, layout: Layout) -> dict[str, NDArray[Any]]:
    """Return the arrays as read-only views of a memory map, which outlasts the open file."""
    mapped = np.memmap(file, dtype=np.uint8, mode="r")
    arrays = {}
    for name, entry in layout.entries.items():
        array = np.asarray(mapped[entry.first : entry.last]).view(entry.dtype).reshape(entry.shape)
        # Kernels need aligned arrays, which only other writers than ours leave unaligned.
        array = np.require(array, requirements="A")
        array.flags.writeable = False
        arrays[name] = array
    return arrays
