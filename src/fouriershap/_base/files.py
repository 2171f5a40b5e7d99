""".fshap files: safetensors with a versioned JSON header and a checksum; memory-mapped; never pickle."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.atomic import atomic_file, translate_os_errors
from fouriershap._base.checks import check_path
from fouriershap._base.errors import FileFormatError, InputError
from fouriershap._base.messages import truncated_repr, truncated_text
from fouriershap._base.safetensors import Layout, map_tensors, parse_json, read_layout, write_tensors

T = TypeVar("T")
VERSION = 3
_MOST_DIGITS = 9
_FORMAT = "fouriershap"


# What building from contents that do not fit together may raise.
_MISFITS = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)


class Contents(NamedTuple):
    """What a file holds: its kind, named arrays (read-only), a JSON header, and a checksum over all of it."""

    kind: str
    arrays: dict[str, NDArray[Any]]
    header: dict[str, Any]
    checksum: str = ""


def _digest(kind: str, arrays: Mapping[str, NDArray[Any]], header: str) -> str:
    """Return a checksum over everything that a reader uses."""
    digest = hashlib.sha256(f"{_FORMAT} {VERSION} {kind} {header}".encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _refuse(value: Any) -> None:
    raise InputError(
        f"the label {truncated_repr(value)} is a {type(value).__name__}, which a file cannot keep: labels of "
        "categories may be text, numbers, True and False. Train with such labels as text, astype(str)."
    )


def write(
    path: str | os.PathLike[str],
    kind: str,
    arrays: Mapping[str, NDArray[Any]],
    header: Mapping[str, Any] | None = None,
) -> None:
    """Write a file atomically: it appears whole under ``path``, or not at all."""
    text = json.dumps(dict(header or {}), sort_keys=True, default=_refuse)
    tensors = {
        name: np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
        for name, array in arrays.items()
    }
    metadata = {"format": _FORMAT, "version": str(VERSION), "kind": kind, "header": text}
    metadata["sha256"] = _digest(kind, tensors, text)
    with atomic_file(check_path(path)) as temporary, temporary.open("wb") as file:
        write_tensors(file, tensors, metadata)


def read(path: str | os.PathLike[str], kind: str | None = None) -> Contents:
    """Read and verify a file. The arrays are read-only views of the memory map.

    The file is opened once: where another one takes its place meanwhile, the first is read to its end. A
    `FileFormatError` says what is wrong with it.
    """
    with _opened(path) as (file, layout):
        _check_version(path, layout.metadata)
        arrays = map_tensors(file, layout)
    found, text = layout.metadata.get("kind", ""), layout.metadata.get("header", "")
    digest = _digest(found, arrays, text)
    if digest != layout.metadata.get("sha256"):
        raise FileFormatError(f"{truncated_text(path)} is damaged: its contents do not match its checksum.")
    if kind is not None and found != kind:
        raise FileFormatError(
            f"{truncated_text(path)} holds a {truncated_repr(found)}, not a {truncated_repr(kind)}; "
            "`fouriershap.load` opens any kind."
        )
    try:
        header = parse_json(text)
    except ValueError as error:
        raise FileFormatError(
            f"{truncated_text(path)} has no readable header: {truncated_repr(error)}"
        ) from error
    if not isinstance(header, dict):
        raise FileFormatError(f"{truncated_text(path)} has a header that is not a JSON object.")
    return Contents(found, arrays, header, digest)


def _check_version(path: str | os.PathLike[str], metadata: dict[str, str]) -> None:
    if metadata.get("format") != _FORMAT:
        raise FileFormatError(
            f"{truncated_text(path)} is a safetensors file, but not one that fouriershap wrote."
        )
    version = metadata.get("version", "")
    if not version.isdecimal() or len(version) > _MOST_DIGITS or int(version) < 1:
        raise FileFormatError(
            f"{truncated_text(path)} has no valid version ({truncated_repr(version)}); the file is damaged."
        )
    if int(version) != VERSION:
        way_out = (
            "save the model again with this fouriershap"
            if int(version) < VERSION
            else "upgrade with `pip install --upgrade fouriershap`"
        )
        raise FileFormatError(
            f"{truncated_text(path)} has format version {version}; this fouriershap reads version {VERSION}: {way_out}."
        )


def checksum(path: str | os.PathLike[str]) -> str:
    """Return the checksum that a file states, without reading its arrays."""
    with _opened(path) as (_, layout):
        return layout.metadata.get("sha256", "")


def load(path: str | os.PathLike[str], kind: str | None, build: Callable[[Contents], T]) -> T:
    """Read a file and build an object from it; `FileFormatError` where its contents do not fit together."""
    contents = read(path, kind)
    try:
        return build(contents)
    except FileFormatError as error:
        raise FileFormatError(f"{truncated_text(path)}: {error}") from error
    except _MISFITS as error:
        raise FileFormatError(
            f"the contents of {truncated_text(path)} do not fit together: {type(error).__name__}: "
            f"{truncated_repr(error)}"
        ) from error


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[tuple[BinaryIO, Layout]]:
    """Yield an open file and its header; errors of its layout within the block become `FileFormatError`."""
    with translate_os_errors(path), check_path(path).open("rb") as file:
        try:
            yield file, read_layout(file)
        except FileFormatError:
            raise
        except (OSError, ValueError) as error:
            raise FileFormatError(
                f"{truncated_text(path)} is not a .fshap file, or it is truncated: {truncated_repr(error)}."
            ) from error
