"""Rows from files and pipes as a stream of Arrow tables."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

from fouriershap import InputError
from fouriershap._base.messages import error_text, truncated_list, truncated_repr, truncated_text

BATCH_ROWS = 65_536
PIPE = Path("-")
_CSV_BLOCK = 8 << 20  # bytes read at a time
_FORMAT = b"fouriershap.format"  # in the metadata of tables that come from CSV
_NULLS = ["", "NA", "N/A", "NaN", "nan", "null", "None"]

NUMBER, TEXT, NUMBER_LABEL, AS_IT_IS = "number", "text", "number as label", "as it is"
TEXT_LABEL, HASHED_LABEL = "text as label", "text, integer or truth value as label"
_CSV_TYPES = {NUMBER: pa.float64(), NUMBER_LABEL: pa.float64()}
_CSV_TYPES |= dict.fromkeys((TEXT, TEXT_LABEL, HASHED_LABEL, AS_IT_IS), pa.string())
_BOOLEANS = (NUMBER, NUMBER_LABEL, HASHED_LABEL)  # kinds of columns that may be written as True and False


@dataclass(frozen=True)
class Rows:
    """A stream of rows."""

    name: str  # for errors
    schema: Any
    total: int | None  # number of rows, if the file knows it
    tables: Iterator[Any]  # at least one, which has the columns


def open_rows(path: Path, kinds: Mapping[str, str] | None = None, drop: tuple[str, ...] = ()) -> Rows:
    """Open a file by its suffix, or standard input for ``-`` (Arrow stream or CSV), without the columns ``drop``.

    ``kinds`` are those of columns: `NUMBER`, `TEXT`, `NUMBER_LABEL`, or `AS_IT_IS` for texts that are never missing.
    Others are guessed from the first rows of a CSV file. Numbers that are labels become categories, since libraries
    take plain numbers for codes.
    """
    name = "standard input" if path == PIPE else truncated_text(path)
    kinds = dict(kinds or {}) | dict.fromkeys(drop, AS_IT_IS)
    try:
        schema, total, batches = _opener(path)(path, kinds)
    except FileNotFoundError:
        raise InputError(f"{name}: does not exist.") from None
    except IsADirectoryError:
        raise InputError(f"{name}: is a folder; give a file.") from None
    except pa.ArrowException as error:
        raise InputError(f"{name}: cannot be read: {error_text(error)}") from error
    lacking = [column for column in drop if column not in schema.names]
    if lacking:
        raise InputError(
            f"{name}: has no column {truncated_repr(lacking[0])} to drop; it has {truncated_list(schema.names)}."
        )
    if len(set(schema.names)) < len(schema.names):
        twice = next(column for column in schema.names if schema.names.count(column) > 1)
        raise InputError(f"{name}: has two columns named {truncated_repr(twice)}.")
    return Rows(name, schema, total, _tables(name, schema, batches, kinds, drop))


def read_all(rows: Rows) -> Any:
    """Return the whole stream as one table."""
    return pa.concat_tables(rows.tables)


def as_pandas(table: Any) -> Any:
    """Return the frame that pandas would read from the same file.

    Missing texts are NaN for CSV, and None or NaN, as pyarrow converts them, for other files. Encoders tell them apart.
    """
    frame = table.to_pandas()
    if (table.schema.metadata or {}).get(_FORMAT) != b"csv":
        return frame
    for name in frame.columns:
        if frame[name].dtype == object:
            frame[name] = frame[name].where(frame[name].notna(), float("nan"))
    return frame


def _tables(
    name: str, schema: Any, batches: Iterator[Any], kinds: Mapping[str, str], drop: tuple[str, ...]
) -> Iterator[Any]:
    try:
        first = next(batches, None)
        while True:
            table = schema.empty_table() if first is None else pa.Table.from_batches([first])
            yield _as_labels(table, kinds).drop_columns(list(drop))
            first = next(batches, None)
            if first is None:
                return
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise InputError(f"{name}: cannot be read: {error_text(error)}") from error


def _as_labels(table: Any, kinds: Mapping[str, str]) -> Any:
    for position, column in enumerate(table.column_names):
        kind = table[column].type
        if kinds.get(column) == TEXT_LABEL and (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
            raise InputError(
                f"the column {truncated_repr(column)} holds numbers, but the labels that the model knows are texts."
            )
        if kinds.get(column) == NUMBER_LABEL and not pa.types.is_dictionary(table[column].type):
            table = table.set_column(position, column, _as_integers(table[column]).dictionary_encode())
    return table


def _as_integers(column: Any) -> Any:
    """Return numbers as integers where all of them are, as CSV does not tell."""
    if not pa.types.is_floating(column.type):
        return column
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid:
        return column


_Opened = tuple[Any, int | None, Iterator[Any]]
_Opener = Callable[[Any, Mapping[str, str]], _Opened]


def _opener(path: Path) -> _Opener:
    if path == PIPE:
        return _open_pipe
    openers: dict[str, _Opener] = {
        ".parquet": _open_parquet,
        ".csv": _open_csv,
        ".arrow": _open_arrow,
        ".feather": _open_arrow,
        ".arrows": _open_arrow,
        ".ipc": _open_arrow,
    }
    opener = openers.get(path.suffix.lower())
    if opener is None:
        raise InputError(
            f"{truncated_text(path)}: the suffix {truncated_repr(path.suffix)} is not a known format of rows; "
            "known are "
            f"{', '.join(openers)}."
        )
    return opener


def _open_parquet(path: Path, kinds: Mapping[str, str]) -> _Opened:
    # Buffered: otherwise whole columns of a row group are held.
    file = pa.parquet.ParquetFile(path, buffer_size=1 << 16, pre_buffer=False)
    return file.schema_arrow, file.metadata.num_rows, file.iter_batches(BATCH_ROWS)


def _open_arrow(path: Path, kinds: Mapping[str, str]) -> _Opened:
    source = pa.memory_map(str(path))
    if source.size() == 0:
        raise InputError(f"{truncated_text(path)}: is empty.")
    try:
        reader = pa.ipc.open_file(source)
    except pa.ArrowInvalid:  # a stream, then
        source.seek(0)
        stream = pa.ipc.open_stream(source)
        return stream.schema, None, _cut(stream)
    batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
    return reader.schema, None, _cut(batches)


def _cut(batches: Any) -> Iterator[Any]:
    """Yield at most `BATCH_ROWS` rows at a time."""
    for batch in batches:
        for start in range(0, batch.num_rows, BATCH_ROWS):
            yield batch.slice(start, BATCH_ROWS)


def _open_csv(path: Path | Any, kinds: Mapping[str, str]) -> _Opened:
    if isinstance(path, Path) and path.is_dir():
        raise IsADirectoryError
    types = {column: _CSV_TYPES[kind] for column, kind in kinds.items()}
    if isinstance(path, Path):  # True and False, as pandas writes them and reads them
        first = _csv_reader(path, {})
        booleans = [f.name for f in first.schema if f.type == pa.bool_() and kinds.get(f.name) in _BOOLEANS]
        types |= dict.fromkeys(booleans, pa.bool_())
        first.close()
    reader = _csv_reader(path, types)
    # The first block of a column of unknown kind may have only integers, or no values at all.
    guessed = [f.name for f in reader.schema if f.name not in types and f.type in (pa.int64(), pa.null())]
    if guessed and isinstance(path, Path):
        reader.close()
        reader = _csv_reader(path, types | dict.fromkeys(guessed, pa.float64()))
    return reader.schema, None, _cut(_without_nulls(batch, kinds) for batch in reader)


def _csv_reader(source: Any, types: Mapping[str, Any]) -> Any:
    return pa.csv.open_csv(
        source,
        read_options=pa.csv.ReadOptions(block_size=_CSV_BLOCK),
        convert_options=pa.csv.ConvertOptions(column_types=types, null_values=_NULLS),
    )


def _without_nulls(batch: Any, kinds: Mapping[str, str]) -> Any:
    """Replace words for "missing" by nulls in texts, but not in ids (NA is also a country); mark the batch as CSV."""
    for position, field in enumerate(batch.schema):
        if field.type == pa.string() and kinds.get(field.name) != AS_IT_IS:
            column = batch.column(position)
            is_null = pa.compute.is_in(column, value_set=pa.array(_NULLS))
            batch = batch.set_column(
                position, field, pa.compute.if_else(is_null, pa.scalar(None, pa.string()), column)
            )
    return batch.replace_schema_metadata({_FORMAT: b"csv"})


def _open_pipe(path: Path, kinds: Mapping[str, str]) -> _Opened:
    stream = io.BufferedReader(sys.stdin.buffer)  # type: ignore[type-var]
    head = stream.peek(8)[:6]
    if not head:
        raise InputError("standard input: is empty.")
    if head[:1] == b"\xff":
        reader = pa.ipc.open_stream(pa.PythonFile(stream, mode="r"))
        return reader.schema, None, _cut(reader)
    if head.startswith((b"PAR1", b"ARROW1")):
        raise InputError(
            "standard input: parquet and Arrow files need a file; pipes take Arrow streams and CSV."
        )
    return _open_csv(stream, kinds)
