"""Answers to files and pipes: nothing, or all of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

from fouriershap._batches import BASE
from fouriershap._errors import InputError
from fouriershap._io import atomic_file
from fouriershap.cli._rows import PIPE

_FORMATS = {".parquet": "parquet", ".csv": "csv", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow"}
_FORMATS |= {".arrows": "stream"}


class Writer:
    """Writes tables of one schema to a path or an open file."""

    def __init__(self, target: Any, form: str) -> None:
        self._target, self._form = target, form
        self._writer: Any = None

    def write(self, table: Any) -> None:
        """Append a table; the first one decides the columns."""
        if self._writer is None:
            make = {
                "parquet": _parquet_writer,
                "csv": pa.csv.CSVWriter,
                "arrow": pa.ipc.new_file,
                "stream": pa.ipc.new_stream,
            }
            self._writer = make[self._form](self._target, table.schema)
        self._writer.write_table(table)

    def close(self) -> None:
        """End the file."""
        if self._writer is not None:
            self._writer.close()


def _parquet_writer(target: Any, schema: Any) -> Any:
    """SHAP values rarely repeat: looking for repetitions would take longer than explaining."""
    repeating = [f.name for f in schema if f.type != pa.float64() or f.name.startswith(BASE)]
    return pa.parquet.ParquetWriter(target, schema, use_dictionary=repeating)


def answer_format(path: Path, form: str | None) -> str:
    """What will be written; an error now rather than after hours of work."""
    if path == PIPE:
        chosen = {None: "csv", "csv": "csv", "arrow": "stream"}.get(form)
        if chosen is None:
            raise InputError(f"--format {form}: a pipe takes csv or arrow.")
        return chosen
    found = form or _FORMATS.get(path.suffix.lower())
    if found is None:
        raise InputError(
            f"{path}: the suffix {path.suffix!r} says no known format; known are {', '.join(_FORMATS)}."
        )
    check_folder(path)
    return found


def check_folder(path: Path) -> None:
    """Raise where ``path`` cannot become a file."""
    if path.is_dir():
        raise InputError(f"{path}: is a folder; give the name of a file.")
    if not path.parent.is_dir():
        raise InputError(f"{path}: the folder {str(path.parent)!r} does not exist.")


@contextmanager
def open_answer(path: Path, form: str) -> Iterator[Writer]:
    """A writer; the file appears under its name when all is written."""
    if path == PIPE:
        writer = Writer(pa.PythonFile(sys.stdout.buffer, mode="w"), form)
        yield writer
        writer.close()
        sys.stdout.buffer.flush()
        return
    with atomic_file(path) as temporary:
        writer = Writer(temporary, form)
        try:
            yield writer
        finally:
            writer.close()
