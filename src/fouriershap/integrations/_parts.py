"""Parquet files explained part by part: each task reads and writes its own part."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fouriershap import InputError
from fouriershap._base.atomic import atomic_file, remove_unfinished
from fouriershap._base.checks import import_optional
from fouriershap._base.messages import truncated_text
from fouriershap.integrations._distribute import Job

_BATCH_ROWS = 65_536
_PART_ROWS = 1_000_000  # small row groups are joined up to this size, since each task has a cost


@dataclass(frozen=True)
class Part:
    """Row groups of one file, and the file of their result."""

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
    """Explain parquet files into a folder, and return the number of rows.

    ``send`` lets the workers of an engine call `explain_part` for each part, repeats what a lost worker has left, and
    returns their numbers of rows. Wrong arguments or columns are errors before that.
    """
    parts = plan_parts(source, target, engine)
    check_parts(job, parts)
    folder = Path(target).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    n_rows = sum(send(job, parts))
    # A killed worker may have left incomplete files; another has written its parts since.
    remove_unfinished(folder, {Path(part.target).name for part in parts})
    return n_rows


def plan_parts(source: str | os.PathLike[str], target: str | os.PathLike[str], engine: str) -> list[Part]:
    """Return the parts of a file, or of all files in a folder; ``target`` becomes a folder.

    The name of a result depends on its position, so that a repeated task replaces its result. ``engine`` is the name
    of the integration that needs pyarrow, for the message.
    """
    pq = import_optional("pyarrow.parquet", f"fouriershap.integrations.{engine}", f"[{engine}]")
    files, folder = _files(Path(source).absolute()), Path(target).absolute()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"target {truncated_text(folder)} exists already; give a new or empty folder.")
    chosen = [(file, groups, n) for file in files for groups, n in _share_out(pq.read_metadata(file))]
    width = max(5, len(str(len(chosen) - 1)))  # so that names sort like numbers
    return [
        Part(str(file), groups, str(folder / f"part-{number:0{width}d}.parquet"), n)
        for number, (file, groups, n) in enumerate(chosen)
    ]


def _files(source: Path) -> list[Path]:
    if source.is_file():
        return [source]
    # Spark's markers and incomplete files begin with these.
    found = sorted(path for path in source.glob("*.parquet") if path.name[0] not in "._")
    if not found:
        what = "has no *.parquet files" if source.is_dir() else "does not exist"
        raise InputError(f"source {truncated_text(source)} {what}; give a parquet file, or a folder of them.")
    return found


def _share_out(metadata: Any) -> list[tuple[tuple[int, ...], int]]:
    """Return neighbouring row groups of a file and their rows; one part without groups if the file has no rows."""
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
    """Read, explain and write a part; return the number of rows."""
    try:
        return _explain_part(job, part)
    except InputError as error:  # batches are counted from the first row group of the part
        where, groups = truncated_text(part.source), part.groups
        if len(groups) == 1:
            where += f", row group {groups[0]}"
        elif groups:
            where += f", row groups {groups[0]} to {groups[-1]}"
        raise InputError(f"{where}: {error}") from error


def _explain_part(job: Job, part: Part) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(part.source, pre_buffer=False) as file:
        given = file.iter_batches(_BATCH_ROWS, row_groups=list(part.groups))
        if not part.n_rows:  # the result has columns nevertheless
            given = iter([file.schema_arrow.empty_table()])
        with atomic_file(Path(part.target)) as unfinished:
            writer, n_rows = None, 0
            try:
                for result in job.explain(given):
                    table = pa.table(result) if isinstance(result, pa.RecordBatch) else result
                    writer = writer or _writer(pq, unfinished, table.schema, job)
                    writer.write_table(table)
                    n_rows += table.num_rows
            finally:
                if writer is not None:
                    writer.close()
    return n_rows


def _writer(pq: Any, path: Path, schema: Any, job: Job) -> Any:
    """Return a writer that encodes as dictionaries only what repeats: for SHAP values it would be slow."""
    numbers = {column.name for column in job.schema if column.kind == "float64"}
    repeating = [name for name in schema.names if name not in numbers or name.startswith("base_value")]
    return pq.ParquetWriter(path, schema, use_dictionary=repeating)


def check_parts(job: Job, parts: Sequence[Part]) -> None:
    """Explain no rows of each file, so that wrong columns are errors here, not on a worker."""
    import pyarrow.parquet as pq

    for source in dict.fromkeys(part.source for part in parts):
        try:
            next(job.explain([pq.read_schema(source).empty_table()]))
        except InputError as error:
            raise InputError(f"{truncated_text(source)}: {error}") from error
