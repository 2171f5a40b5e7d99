"""The journal: a file to which answers are appended as they come, and that tells what of it is whole.

A line holds a checksum, a blank, and JSON. The first says what the file is about, every other one holds a batch. Only
the last line can be torn, by a process or a machine that died while writing it: it is left out.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import threading
import time
import zlib
from io import FileIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.asking.answers import Row
from fouriershap._base.atomic import room
from fouriershap._base.errors import FileFormatError, InputError
from fouriershap._base.short import short, short_text

VERSION = 1
_FORMAT = "fouriershap answers"
_START = f'{{"format": "{_FORMAT}"'.encode()
_SYNC_SECONDS = 1.0  # that a crash of the machine may cost; one of the process costs nothing
_in_use: set[Path] = set()  # locks of the system keep other processes out, but not other threads
_guard = threading.Lock()


class Batch(NamedTuple):
    """Rows with their answers (n, n_outputs)."""

    rows: list[Row]
    answers: NDArray[Any]


class Header(NamedTuple):
    """What a journal is about; ``name`` is its own, so that nothing is folded in twice."""

    name: str
    columns: tuple[str, ...]
    random_state: int | None


class Journal:
    """A journal that this process alone may write to; ``mode`` are its permissions, if it has to be made."""

    def __init__(self, path: Path, mode: int) -> None:
        self.path = path
        self._file = _open_locked(path, mode)
        self._n_whole = 0
        self._synced = time.monotonic()

    def read(self) -> tuple[Header | None, list[Batch]]:
        """What it holds; a torn end is cut off."""
        self._file.seek(0)
        header, batches, self._n_whole = parse(self._file.readall(), self.path)
        self._file.truncate(self._n_whole)
        return header, batches

    def start(self, columns: tuple[str, ...], random_state: int | None) -> None:
        """Make it an empty one."""
        header = {"format": _FORMAT, "version": VERSION, "name": secrets.token_hex(8)}
        self.clear()
        self._write(_line(header | {"columns": columns, "random_state": random_state}))

    def append(self, rows: list[Row], answers: NDArray[Any]) -> None:
        """Write a batch: once this returns, it outlasts the process."""
        content = {"dtype": answers.dtype.str, "rows": rows, "answers": answers.tolist()}
        self._write(_line(content))
        if time.monotonic() - self._synced > _SYNC_SECONDS:
            with room(self.path):
                os.fsync(self._file.fileno())
            self._synced = time.monotonic()

    def _write(self, line: bytes) -> None:
        with room(self.path):
            try:
                self._file.seek(self._n_whole)
                left = memoryview(line)
                while left:  # a disk that is nearly full takes a part
                    left = left[self._file.write(left) :]
            except BaseException:
                with contextlib.suppress(OSError):
                    self._file.truncate(self._n_whole)
                raise
        self._n_whole += len(line)

    def clear(self) -> None:
        self._file.truncate(0)
        self._n_whole = 0

    def close(self) -> None:
        """Give it free; an empty one is removed."""
        try:
            with contextlib.suppress(OSError):  # Windows removes no open files; an empty one does no harm
                if os.fstat(self._file.fileno()).st_size:
                    os.fsync(self._file.fileno())
                else:
                    self.path.unlink()
        finally:
            self._file.close()
            with _guard:
                _in_use.discard(self.path)


def parse(content: bytes, path: Path) -> tuple[Header | None, list[Batch], int]:
    """Header, batches, and how many bytes are whole."""
    lines = content.split(b"\n")[:-1]  # what follows the last line's end is torn
    if not _is_beginning(content[: 9 + len(_START)]):
        raise FileFormatError(
            f"{short_text(path)} is no journal of answers: move it away, or give answers= another path."
        )
    whole = 0
    header, batches = None, []
    for number, line in enumerate(lines):
        text = _checked(line)
        if text is None:
            if number == len(lines) - 1:
                break
            raise FileFormatError(
                f"{short_text(path)} is damaged from byte {whole} on. What comes before is whole: `truncate "
                f"-s {whole}` keeps it."
            )
        try:
            if header is None:
                header = _header(json.loads(text), path)
            else:
                batches.append(_batch(json.loads(text), header))
        except FileFormatError:
            raise
        except (KeyError, RecursionError, TypeError, ValueError) as error:
            raise FileFormatError(
                f"{short_text(path)} holds what no journal of answers does: {short(error)}."
            ) from error
        whole += len(line) + 1
    return header, batches, whole


def _is_beginning(content: bytes) -> bool:
    """Whether the first line may begin like this; a machine that died may leave zeros."""
    fits = set(content[:8]) <= set(b"0123456789abcdef") and content[8:9] in (b"", b" ")
    return (fits and _START.startswith(content[9:])) or not content.strip(b"\0")


def _line(content: dict[str, Any]) -> bytes:
    text = json.dumps(content).encode()
    return f"{zlib.crc32(text):08x} ".encode() + text + b"\n"


def _checked(line: bytes) -> bytes | None:
    """Its JSON, or None where the checksum is another one."""
    return line[9:] if line[:9] == f"{zlib.crc32(line[9:]):08x} ".encode() else None


def _header(content: dict[str, Any], path: Path) -> Header:
    if content["version"] > VERSION:
        raise FileFormatError(
            f"{short_text(path)} has version {content['version']}; this fouriershap reads up to version {VERSION}. "
            "Upgrade with `pip install --upgrade fouriershap`."
        )
    return Header(content["name"], tuple(content["columns"]), content["random_state"])


def _batch(content: dict[str, Any], header: Header) -> Batch:
    rows = [tuple(row) for row in content["rows"]]
    dtype = np.dtype(content["dtype"])
    if dtype.kind not in "biuf":
        raise ValueError(f"answers of type {short_text(dtype)}")
    answers = np.array(content["answers"], dtype=dtype)
    if answers.ndim != 2 or len(answers) != len(rows) or not np.isfinite(answers).all():
        raise ValueError(f"answers {answers.shape} to {len(rows)} rows")
    if any(len(row) != len(header.columns) for row in rows) or len({*rows}) > len(rows):
        raise ValueError("rows of another length")
    return Batch(rows, answers)


def _open_locked(path: Path, mode: int) -> FileIO:
    """The file, made if need be, for this process alone."""
    with _guard:
        # Before it is opened: a file that this process closes loses all locks of the process.
        if path in _in_use:
            raise InputError(
                f"{short_text(path)} is in use by another explainer of this process: wait until it has ended."
            )
        while True:
            file = FileIO(path, "r+", opener=lambda name, flags: os.open(name, flags | os.O_CREAT, mode))
            try:
                _lock(file, path)
                with contextlib.suppress(FileNotFoundError):  # whoever held the lock before has removed it
                    if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                        _in_use.add(path)
                        return file
            except BaseException:
                file.close()
                raise
            file.close()


def _lock(file: FileIO, path: Path) -> None:
    try:
        import fcntl
    except ImportError:  # Windows
        return
    try:
        # Not flock: workers that the process has forked would hold that lock for as long as they live.
        fcntl.lockf(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:  # not every network file system has locks
        if error.errno in (errno.EACCES, errno.EAGAIN):
            raise InputError(
                f"{short_text(path)} is in use by another process: wait until it has ended."
            ) from None
