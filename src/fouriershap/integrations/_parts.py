"""Parquet files explained part by part: what a task reads by itself, and writes by itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fouriershap import InputError
from fouriershap._base.atomic import atomic_file, remove_unfinished
from fouriershap._base.checks import need
from fouriershap._base.short import short_text
from fouriershap.integrations._travel import Job

_BATCH_ROWS = 65_536
_PART_ROWS = 1_000_000  # row groups are put together up to here: a task has a cost of its own


@dataclass(frozen=True)
class Part:
    """Row groups of one file, and the file that their answer goes to."""

    source: str
    groups: tuple[int, ...]
    target: str
    n_rows: int


def explain_parts(
    job: Job,
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    engine: str,
    send: Callable[[Job, list[Part]], Iterable[int]],
) -> int:
    """Explain parquet files into a folder; the number of rows.

    ``send`` has the workers of an engine call `explain_part` for each part, repeats what is lost with a worker, and
    gives back what they returned when all is written. What is wrong with arguments or columns is said before that.
    """
    parts = plan_parts(source, target, engine)
    check_parts(job, parts)
    folder = Path(target).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    n_rows = sum(send(job, parts))
    # A worker that was killed could not tidy up; another has written its parts since.
    remove_unfinished(folder, {Path(part.target).name for part in parts})
    return n_rows


def plan_parts(source: str | os.PathLike[str], target: str | os.PathLike[str], engine: str) -> list[Part]:
    """Share out the row groups of a file, or of all files in a folder; ``target`` becomes a folder.

    The name of an answer says its place, so that a task that is repeated replaces what it wrote before. ``engine``
    is what needs pyarrow, for the message.
    """
    pq = need("pyarrow.parquet", f"fouriershap.integrations.{engine}", f"[{engine}]")
    files, folder = _files(Path(source).absolute()), Path(target).absolute()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(
            f"target {short_text(folder)} is there already; give a folder that is new, or empty."
        )
    chosen = [(file, groups, n) for file in files for groups, n in _share_out(pq.read_metadata(file))]
    width = max(5, len(str(len(chosen) - 1)))  # names sort as their numbers do
    return [
        Part(str(file), groups, str(folder / f"part-{number:0{width}d}.parquet"), n)
        for number, (file, groups, n) in enumerate(chosen)
    ]


def _files(source: Path) -> list[Path]:
    if source.is_file():
        return [source]
    # Spark's own marks and unfinished files begin with these.
    found = sorted(path for path in source.glob("*.parquet") if path.name[0] not in "._")
    if not found:
        what = "has no *.parquet files" if source.is_dir() else "does not exist"
        raise InputError(f"source {short_text(source)} {what}; give a parquet file, or a folder of them.")
    return found


def _share_out(metadata: Any) -> list[tuple[tuple[int, ...], int]]:
    """Neighbouring row groups of a file, and their rows; one part without groups where the file has no rows."""
    shared: list[tuple[tuple[int, ...], int]] = []
    groups: tuple[int, ...] = ()
    rows = 0
    for group in range(metadata.num_row_groups):
        more = metadata.row_group(group).num_rows
        if groups and rows + more > _PART_ROWS:
            shared.append((groups, rows))
            groups, rows = (), 0
        groups, rows = (*groups, group), rows + more
    return [*shared, (groups, rows)]


def explain_part(job: Job, part: Part) -> int:
    """Read, explain and write a part; the number of rows."""
    try:
        return _explain_part(job, part)
    except InputError as error:
        raise InputError(f"{_place(part)}: {error}") from error


def _place(part: Part) -> str:
    """Where the rows of a part are: batches are counted from its first row group on."""
    source, groups = short_text(part.source), part.groups
    if len(groups) < 2:
        return f"{source}, row group {groups[0]}" if groups else source
    return f"{source}, row groups {groups[0]} to {groups[-1]}"


def _explain_part(job: Job, part: Part) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(part.source, pre_buffer=False) as file:
        given = file.iter_batches(_BATCH_ROWS, row_groups=list(part.groups))
        if not part.n_rows:  # even so the answer has columns
            given = iter([file.schema_arrow.empty_table()])
        with atomic_file(Path(part.target)) as unfinished:
            writer, n_rows = None, 0
            try:
                for answer in job.explain(given):
                    table = pa.table(answer) if isinstance(answer, pa.RecordBatch) else answer
                    writer = writer or _writer(pq, unfinished, table.schema, job)
                    writer.write_table(table)
                    n_rows += table.num_rows
            finally:
                if writer is not None:
                    writer.close()
    return n_rows


def _writer(pq: Any, path: Path, schema: Any, job: Job) -> Any:
    """SHAP values rarely repeat: looking for repetitions would take as long as explaining."""
    numbers = {column.name for column in job.schema if column.kind == "float64"}
    repeating = [name for name in schema.names if name not in numbers or name.startswith("base_value")]
    return pq.ParquetWriter(path, schema, use_dictionary=repeating)


def check_parts(job: Job, parts: Sequence[Part]) -> None:
    """Explain no rows of each file: what is wrong with its columns is said here, not on a worker."""
    import pyarrow.parquet as pq

    for source in dict.fromkeys(part.source for part in parts):
        try:
            next(job.explain([pq.read_schema(source).empty_table()]))
        except InputError as error:
            raise InputError(f"{short_text(source)}: {error}") from error
