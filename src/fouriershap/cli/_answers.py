"""Answers to files and pipes: nothing, or all of it, and never over what is read."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import IO, Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

from fouriershap import InputError
from fouriershap._base.atomic import atomic_file
from fouriershap._base.short import short, short_text
from fouriershap.cli._rows import PIPE
from fouriershap.cli._spreadsheet import as_text

_BASE = "base_value"  # what the columns of the base values begin with
_FORMATS = {".parquet": "parquet", ".csv": "csv", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow"}
_FORMATS |= {".arrows": "stream"}


class Writer:
    """Writes tables of one schema to a path or an open file.

    With ``behind`` a table is written on a thread while the caller works on the next one; what goes wrong there
    is raised by the next call. Texts of CSV are such that no spreadsheet runs them, unless ``raw_text``.
    """

    def __init__(self, target: Any, form: str, behind: bool = False, raw_text: bool = False) -> None:
        self._target, self._form, self._behind, self._raw_text = target, form, behind, raw_text
        self._writer: Any = None
        self._thread: Thread | None = None
        self._failures: list[BaseException] = []

    def write(self, table: Any) -> None:
        """Append a table; the first one decides the columns."""
        self._wait()
        if not self._behind:
            self._write(table)
            return
        self._thread = Thread(target=self._try, args=(table,), name="fouriershap_writer")
        self._thread.start()

    def close(self) -> None:
        """End the file."""
        try:
            self._wait()
        finally:
            if self._writer is not None:
                self._writer.close()

    def _wait(self) -> None:
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._failures:
            raise self._failures.pop()

    def _try(self, table: Any) -> None:
        try:
            self._write(table)
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
            self._failures.append(error)

    def _write(self, table: Any) -> None:
        if self._form == "arrow":
            table = _plain(table)
        if self._form == "csv" and not self._raw_text:
            table = as_text(table)
        if self._writer is None:
            make = {
                "parquet": _parquet_writer,
                "csv": pa.csv.CSVWriter,
                "arrow": pa.ipc.new_file,
                "stream": pa.ipc.new_stream,
            }
            self._writer = make[self._form](self._target, table.schema)
        self._writer.write_table(table)


def _plain(table: Any) -> Any:
    """Labels in place of dictionaries: an Arrow file takes one dictionary per column, batches may bring others."""
    for position, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            plain = table.column(position).cast(field.type.value_type)
            table = table.set_column(position, field.name, plain)
    return table


def _parquet_writer(target: Any, schema: Any) -> Any:
    """SHAP values rarely repeat: looking for repetitions would take longer than explaining."""
    repeating = [f.name for f in schema if f.type != pa.float64() or f.name.startswith(_BASE)]
    return pa.parquet.ParquetWriter(target, schema, use_dictionary=repeating)


def answer_format(path: Path, form: str | None) -> str:
    """What will be written; an error now rather than after hours of work."""
    if path == PIPE:
        chosen = {None: "csv", "csv": "csv", "arrow": "stream"}.get(form)
        if chosen is None:
            raise InputError(f"--format {short_text(form)}: a pipe takes csv or arrow.")
        return chosen
    found = form or _FORMATS.get(path.suffix.lower())
    if found is None:
        raise InputError(
            f"{short_text(path)}: the suffix {short(path.suffix)} says no known format; known are "
            f"{', '.join(_FORMATS)}."
        )
    check_folder(path)
    return found


def check_folder(path: Path) -> None:
    """Raise where ``path`` cannot become a file."""
    if path.is_dir():
        raise InputError(f"{short_text(path)}: is a folder; give the name of a file.")
    if path.exists() and not path.is_file():
        # A file that takes the place of /dev/null is missed by everybody.
        raise InputError(f"{short_text(path)}: is a device or a pipe; give the name of a file.")
    if not path.parent.is_dir():
        raise InputError(f"{short_text(path)}: the folder {short(str(path.parent))} does not exist.")


def check_apart(output: Path, *inputs: Path | None) -> None:
    """Raise where ``output`` is one of the inputs, however it is spelled: as a link, or redirected by the shell."""
    written = _status(output, sys.stdout)
    if written is None or not stat.S_ISREG(written.st_mode):  # all may read and write one terminal
        return
    for path in inputs:
        read = None if path is None else _status(path, sys.stdin)
        if read is not None and os.path.samestat(read, written):
            source = "standard input" if path == PIPE else short_text(path)
            target = "standard output" if output == PIPE else short_text(output)
            raise InputError(
                f"{target}: is the same file as the input {source}; give the output another name."
            )


def _status(path: Path, stream: IO[Any]) -> os.stat_result | None:
    """What the system knows of a file or, for ``-``, of a stream; None where there is none."""
    try:
        return os.fstat(stream.fileno()) if path == PIPE else path.stat()
    except OSError:  # io.UnsupportedOperation of streams in memory, too
        return None


@contextmanager
def open_answer(path: Path, form: str, behind: bool, raw_text: bool) -> Iterator[Writer]:
    """A writer; the file appears under its name when all is written."""
    if path == PIPE:
        writer = Writer(pa.PythonFile(sys.stdout.buffer, mode="w"), form, behind, raw_text)
        yield writer
        writer.close()
        sys.stdout.buffer.flush()
        return
    with atomic_file(path) as temporary:
        writer = Writer(temporary, form, behind, raw_text)
        try:
            yield writer
        finally:
            writer.close()
