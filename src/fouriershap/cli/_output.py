"""Results written to files and pipes: completely or not at all, and never over an input."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

from fouriershap import InputError
from fouriershap._base.atomic import atomic_file
from fouriershap._base.messages import truncated_repr, truncated_text
from fouriershap.cli._rows import PIPE

_BASE = "base_value"  # prefix of the columns of base values
_FORMATS = {".parquet": "parquet", ".csv": "csv", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow"}
_FORMATS |= {".arrows": "stream"}
# How formulas of spreadsheets start, also after a character that is stripped, also in full width:
# https://owasp.org/www-community/attacks/CSV_Injection
_FORMULA = r"^(?:[=+\-@\t\r\n]|＝|＋|－|＠)"
_NUMBER = r"^[+-]?(?:[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|inf)$"


class Writer:
    """Writes tables of one schema to a path or an open file.

    With ``behind`` a table is written on a thread while the caller works on the next one; an error there is raised by
    the next call. Texts of CSV that a spreadsheet would run are escaped, unless ``raw_text`` is set.
    """

    def __init__(self, target: Any, form: str, behind: bool = False, raw_text: bool = False) -> None:
        self._target, self._form, self._raw_text = target, form, raw_text
        self._writer: Any = None
        self._pool = ThreadPoolExecutor(1, "fouriershap_writer") if behind else None
        self._pending: Future[None] | None = None

    def write(self, table: Any) -> None:
        """Append a table; the first one decides the columns."""
        self._wait()
        if self._pool is None:
            self._write(table)
        else:
            self._pending = self._pool.submit(self._write, table)

    def close(self) -> None:
        """End the file."""
        try:
            self._wait()
        finally:
            if self._pool is not None:
                self._pool.shutdown()
            if self._writer is not None:
                self._writer.close()

    def _wait(self) -> None:
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()

    def _write(self, table: Any) -> None:
        if self._form == "arrow":
            table = _plain(table)
        if self._form == "csv" and not self._raw_text:
            table = escape_formulas(table)
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
    """Replace dictionaries by labels: an Arrow file takes one dictionary per column, but batches have their own."""
    for position, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            plain = table.column(position).cast(field.type.value_type)
            table = table.set_column(position, field.name, plain)
    return table


def _parquet_writer(target: Any, schema: Any) -> Any:
    """Return a writer that encodes as dictionaries only what repeats: for SHAP values it would be slower than SHAP."""
    repeating = [f.name for f in schema if f.type != pa.float64() or f.name.startswith(_BASE)]
    return pa.parquet.ParquetWriter(target, schema, use_dictionary=repeating)


def find_format(path: Path, form: str | None) -> str:
    """Return the format to write; raise now rather than after hours of work."""
    if path == PIPE:
        chosen = {None: "csv", "csv": "csv", "arrow": "stream"}.get(form)
        if chosen is None:
            raise InputError(f"--format {truncated_text(form)}: a pipe takes csv or arrow.")
        return chosen
    found = form or _FORMATS.get(path.suffix.lower())
    if found is None:
        raise InputError(
            f"{truncated_text(path)}: the suffix {truncated_repr(path.suffix)} is not a known format; known are "
            f"{', '.join(_FORMATS)}."
        )
    check_folder(path)
    return found


def check_folder(path: Path) -> None:
    """Raise if ``path`` cannot become a file."""
    if path.is_dir():
        raise InputError(f"{truncated_text(path)}: is a folder; give the name of a file.")
    if path.exists() and not path.is_file():
        raise InputError(f"{truncated_text(path)}: is a device or a pipe; give the name of a file.")
    if not path.parent.is_dir():
        raise InputError(
            f"{truncated_text(path)}: the folder {truncated_repr(str(path.parent))} does not exist."
        )


def check_not_input(output: Path, *inputs: Path | None) -> None:
    """Raise if ``output`` is one of the inputs, also as a link or redirected by the shell."""
    written = _status(output, sys.stdout)
    if written is None or not stat.S_ISREG(written.st_mode):  # a terminal may be read and written
        return
    for path in inputs:
        read = None if path is None else _status(path, sys.stdin)
        if read is not None and os.path.samestat(read, written):
            source = "standard input" if path == PIPE else truncated_text(path)
            target = "standard output" if output == PIPE else truncated_text(output)
            raise InputError(
                f"{target}: is the same file as the input {source}; give the output another name."
            )


def _status(path: Path, stream: IO[Any]) -> os.stat_result | None:
    """Return the status of a file or, for ``-``, of a stream; None if there is none."""
    try:
        return os.fstat(stream.fileno()) if path == PIPE else path.stat()
    except OSError:  # also io.UnsupportedOperation, for streams in memory
        return None


@contextmanager
def open_output(path: Path, form: str, behind: bool, raw_text: bool) -> Iterator[Writer]:
    """Yield a writer; the file appears under its name when it is complete."""
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


def escape_formulas(table: Any) -> Any:
    """Put an apostrophe before texts and column names that a spreadsheet would run; texts of plain numbers stay."""
    for position, field in enumerate(table.schema):
        text = _as_plain_text(table.column(position))
        if text is not None:
            table = table.set_column(position, field.name, _escaped(text))
    return table.rename_columns(_escaped(pa.array(table.column_names, pa.string())).to_pylist())


def _as_plain_text(column: Any) -> Any:
    """Return a column as texts or bytes, however Arrow stores them; None if it is not text."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
        column = column.cast(kind)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return column
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return column
    if pa.types.is_fixed_size_binary(kind):
        return column.cast(pa.binary())
    return column.cast(pa.string()) if str(kind) == "string_view" else None


def _escaped(texts: Any) -> Any:
    compute = pa.compute
    runs = compute.match_substring_regex(texts, _FORMULA)
    if not compute.any(runs).as_py():
        return texts
    runs = compute.and_not(runs, compute.match_substring_regex(texts, _NUMBER))
    mark, nothing = (pa.scalar(part, texts.type) for part in ("'", ""))
    return compute.if_else(runs, compute.binary_join_element_wise(mark, texts, nothing), texts)
