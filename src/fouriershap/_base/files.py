""".fshap files: safetensors with a versioned JSON header and a checksum; memory-mapped; never pickle."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import FileFormatError

T = TypeVar("T")
VERSION = 1
_MOST_DIGITS = 9
_ATTEMPTS = 3
_FORMAT = "fouriershap"
_NUMPY_TYPES = {
    "F64": np.float64,
    "F32": np.float32,
    "I64": np.int64,
    "I32": np.int32,
    "U64": np.uint64,
    "U16": np.uint16,
    "U8": np.uint8,
    "BOOL": np.bool_,
}


# What building from contents that do not fit together may raise.
_MISFITS = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)


class Contents(NamedTuple):
    """What a file holds: its kind, named arrays (read-only), a JSON header, and a checksum over all of it."""

    kind: str
    arrays: dict[str, NDArray[Any]]
    header: dict[str, Any]
    checksum: str = ""


def _digest(kind: str, arrays: Mapping[str, NDArray[Any]], header: str) -> str:
    """Checksum over everything that a reader uses."""
    digest = hashlib.sha256(f"{_FORMAT} {VERSION} {kind} {header}".encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def write(
    path: str | os.PathLike[str],
    kind: str,
    arrays: Mapping[str, NDArray[Any]],
    header: Mapping[str, Any] | None = None,
) -> None:
    """Write a file atomically: it appears whole under ``path``, or not at all."""
    from safetensors.numpy import save_file

    path = Path(path)
    text = json.dumps(dict(header or {}), sort_keys=True)
    tensors = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    metadata = {"format": _FORMAT, "version": str(VERSION), "kind": kind, "header": text}
    metadata["sha256"] = _digest(kind, tensors, text)
    with atomic_file(path) as temporary:
        save_file(tensors, temporary, metadata=metadata)


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """A path to write to: the file appears whole under ``path`` when the block ends, or not at all."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.part")
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666))
    permissions = (
        temporary.stat().st_mode & 0o777
    )  # what the umask leaves; asking for it would change it for all
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.chmod(permissions)  # writers may have made a file of their own
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def read(path: str | os.PathLike[str], kind: str | None = None) -> Contents:
    """Read and verify a file, see `_read`. If another one takes its place meanwhile, that one is read."""
    for _ in range(_ATTEMPTS):
        before = _stamp(path)
        try:
            contents = _read(path, kind)
        except (FileFormatError, ValueError):
            if _stamp(path) == before:
                raise
            continue
        if _stamp(path) == before:
            return contents
    return _read(path, kind)


def _stamp(path: str | os.PathLike[str]) -> tuple[int, int, int]:
    found = Path(path).stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _read(path: str | os.PathLike[str], kind: str | None = None) -> Contents:
    """Read and verify a file. The arrays are read-only views of the memory map.

    Raises
    ------
    FileFormatError
        The file is truncated, changed, not a .fshap file, of a newer version, or of another kind.
    OSError
        The file is not there, or may not be read.
    """
    path = Path(path)
    metadata, entries, data_start = _parse(path)
    if metadata.get("format") != _FORMAT:
        raise FileFormatError(f"{path} is a safetensors file, but not one that fouriershap wrote.")
    version = metadata.get("version", "")
    if not version.isdecimal() or len(version) > _MOST_DIGITS or int(version) < 1:
        raise FileFormatError(f"{path} has no valid version ({version!r}); the file is damaged.")
    if int(version) > VERSION:
        raise FileFormatError(
            f"{path} has version {version}; this fouriershap reads up to version {VERSION}. "
            "Upgrade with `pip install --upgrade fouriershap`."
        )
    mapped = np.memmap(path, dtype=np.uint8, mode="r") if path.stat().st_size else np.empty(0, np.uint8)
    arrays: dict[str, NDArray[Any]] = {}
    for name, entry in entries.items():
        first, last = (data_start + offset for offset in entry["data_offsets"])
        raw = np.asarray(mapped[first:last])
        arrays[name] = raw.view(_NUMPY_TYPES[entry["dtype"]]).reshape(entry["shape"])
    found = metadata.get("kind", "")
    digest = _digest(found, arrays, metadata.get("header", ""))
    if digest != metadata.get("sha256"):
        raise FileFormatError(f"{path} is damaged: its contents do not match its checksum.")
    if kind is not None and found != kind:
        raise FileFormatError(f"{path} holds a {found!r}, not a {kind!r}; `fouriershap.load` opens any kind.")
    try:
        header = json.loads(metadata["header"])
    except (KeyError, ValueError, RecursionError) as error:
        raise FileFormatError(f"{path} has no readable header: {error!r}") from error
    return Contents(found, arrays, header, digest)


def load(path: str | os.PathLike[str], kind: str | None, build: Callable[[Contents], T]) -> T:
    """Read a file and build an object from it; contents that do not fit together are its fault."""
    contents = read(path, kind)
    try:
        return build(contents)
    except FileFormatError:
        raise
    except _MISFITS as error:
        raise FileFormatError(f"the contents of {path} do not fit together: {error!r}") from error


def _parse(path: Path) -> tuple[dict[str, str], dict[str, dict[str, Any]], int]:
    """Metadata, tensor entries and the offset of the data; safetensors' own parser checks the layout."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            metadata = dict(file.metadata() or {})
        with path.open("rb") as raw:
            length = int.from_bytes(raw.read(8), "little")
            entries = json.loads(raw.read(length))
        entries.pop("__metadata__", None)
    except (FileNotFoundError, IsADirectoryError, PermissionError):
        raise
    except (SafetensorError, OSError, ValueError) as error:
        raise FileFormatError(f"{path} is not a .fshap file, or it is truncated: {error}") from error
    foreign = {entry["dtype"] for entry in entries.values()} - _NUMPY_TYPES.keys()
    if foreign:
        raise FileFormatError(
            f"{path} holds arrays of type {sorted(foreign)}, which fouriershap never writes."
        )
    return metadata, entries, 8 + length
