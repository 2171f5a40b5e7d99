"""Answers as a Parquet file: a column per column of the rows, by name, then the answers."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.asking.answers import Row, as_tuples
from fouriershap._base.asking.journal import Batch
from fouriershap._base.atomic import atomic_file
from fouriershap._base.errors import FileFormatError, InputError
from fouriershap._base.short import short, short_text

VERSION = 1
_KEY = b"fouriershap_answers"


class Contents(NamedTuple):
    """What a file holds."""

    # The columns of the rows, in their order, then the answers; None where there is no file yet.
    table: Any = None
    random_state: int | None = None
    folded: str = ""  # name of the journal that went into it last


def answer_names(n_outputs: int) -> tuple[str, ...]:
    """The columns that hold answers."""
    return ("answer",) if n_outputs == 1 else tuple(f"answer_{k}" for k in range(n_outputs))


def read(path: Path, names: tuple[str, ...]) -> Contents:
    """A file of answers about rows of these columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.exists():
        return Contents()
    try:
        table = pq.read_table(path, partitioning=None)
        stated = json.loads((table.schema.metadata or {}).get(_KEY, b"{}"))
        version, state, folded = (stated.get(name) for name in ("version", "random_state", "journal"))
    except (pa.ArrowException, OSError, ValueError, AttributeError, RecursionError) as error:
        raise FileFormatError(
            f"{short_text(path)} is no Parquet file, or damaged ({error!s:.80}): move it away, or give "
            "answers= another path."
        ) from error
    if isinstance(version, int) and version > VERSION:
        raise FileFormatError(
            f"{short_text(path)} has version {version}; this fouriershap reads up to version {VERSION}. Upgrade with "
            "`pip install --upgrade fouriershap`."
        )
    answers = _check_columns(path, table.column_names, names)
    table = table.select([*names, *answers])
    _check_answers(path, table.select(answers))
    return Contents(table, state if isinstance(state, int) else None, str(folded or ""))


def rows_and_answers(table: Any, n_columns: int) -> tuple[list[Row], list[tuple[Any, ...]]]:
    """Rows as plain values, and an answer for each."""
    columns = [_plain(table.column(j)) for j in range(n_columns)]
    return list(zip(*columns, strict=True)), as_tuples(
        _matrix(table.select(range(n_columns, table.num_columns)))
    )


def write(path: Path, contents: Contents, names: tuple[str, ...], batches: Sequence[Batch]) -> None:
    """Replace the file, whole or not at all, by one with more answers."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = _table(contents, names, batches)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise InputError(
            f"answers: {short_text(path)} cannot hold the new answers: {error!s:.80}."
        ) from error
    with atomic_file(path) as temporary:
        pq.write_table(table, temporary)
    _sync_folder(path.parent)  # the journal is only removed once the new file is there to stay


def _table(contents: Contents, names: tuple[str, ...], batches: Sequence[Batch]) -> Any:
    """What the file held, and the batches after it."""
    import pyarrow as pa

    rows = [*chain.from_iterable(batch.rows for batch in batches)]
    answers = np.concatenate([batch.answers for batch in batches])
    every = (*names, *answer_names(answers.shape[1]))
    new: list[Any] = [*zip(*rows, strict=True), *answers.T]
    old = [None] * len(every) if contents.table is None else contents.table.columns
    columns = [_joined(before, values) for before, values in zip(old, new, strict=True)]
    stated = {"version": VERSION, "random_state": contents.random_state, "journal": contents.folded}
    fields = [(name, column.type) for name, column in zip(every, columns, strict=True)]
    return pa.table(columns, schema=pa.schema(fields, metadata={_KEY: json.dumps(stated).encode()}))


def _sync_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):  # not every system opens folders
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def column_fault(values: Sequence[Any]) -> str | None:
    """Why the values cannot be one column of a file, if they cannot."""
    import pyarrow as pa

    foreign = next((v for v in values if not isinstance(v, str | int | float | None)), None)
    if foreign is not None:
        return f"a {type(foreign).__name__}"
    try:
        _array(values)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        return " and ".join(sorted({type(v).__name__ for v in values if v is not None}))
    return None


def _check_columns(path: Path, found: list[str], names: tuple[str, ...]) -> list[str]:
    """The columns that hold the answers; an error unless the others are those of the rows."""
    others = [name for name in found if name not in set(names)]
    lacking = [name for name in names if name not in set(found)]
    if lacking:
        raise InputError(
            f"answers: {short_text(path)} is about other data: it has no column {short(lacking[0])}. Give another path."
        )
    if not others or others != [*answer_names(len(others))] or len(found) != len(names) + len(others):
        raise InputError(
            f"answers: beside those of the rows, {short_text(path)} has the columns {short(others)}; 'answer', or "
            "'answer_0' and so on, are what belongs there. Give another path."
        )
    return others


def _check_answers(path: Path, table: Any) -> None:
    for column in table.columns:
        kind = column.type
        if str(kind) not in _NUMBERS or column.null_count or not np.isfinite(column.to_numpy()).all():
            raise FileFormatError(
                f"{short_text(path)} has answers that are no finite numbers. Give answers= another path."
            )


_NUMBERS = {"halffloat", "float", "double", "bool"} | {
    f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64)
}


def _matrix(table: Any) -> NDArray[Any]:
    return np.column_stack([column.to_numpy() for column in table.columns])


def _plain(column: Any) -> list[Any]:
    """Values of a column as Python has them, equal ones as one object, so that wide rows take little memory."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)  # chunks may have dictionaries of their own
    whole = column.combine_chunks().dictionary_encode()
    levels = [None if level != level else level for level in whole.dictionary.to_pylist()]
    positions = whole.indices.fill_null(len(levels)).to_pylist()
    levels.append(None)
    return [levels[position] for position in positions]


def _joined(before: Any, values: Any) -> Any:
    """A column with more values, of one type."""
    import pyarrow as pa

    after = _array(values)
    if before is None:
        return after
    if before.type == after.type:
        return pa.chunked_array([*before.chunks, after])
    return _array([*_plain(before), *after.to_pylist()])


def _array(values: Sequence[Any]) -> Any:
    """Values as Arrow has them; whole numbers, fractions and truth values together are floating point."""
    import pyarrow as pa

    try:
        return pa.array(values)
    except (pa.ArrowException, TypeError, OverflowError):
        if any(isinstance(v, str) for v in values):
            raise
        return pa.array([None if v is None else float(v) for v in values], pa.float64())
