"""What the tests of `explain_files` share: parquet files of rows, what is to come of them, and workers that die."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fouriershap as fs
from engines import make_explainer
from fouriershap.integrations import _parts

ExplainFiles = Callable[..., int]  # that of an engine, from the paths on


def write_rows(folder: Path, sizes: tuple[int, ...], group_rows: int) -> tuple[Any, pd.DataFrame]:
    """Files of some rows each, with a key beside the features; the explainer, and all rows in order."""
    explainer, X = make_explainer("several outputs")
    rng = np.random.default_rng(0)
    rows = X.iloc[rng.integers(0, len(X), sum(sizes))].reset_index(drop=True)
    rows = rows.assign(key=2**60 + np.arange(len(rows)))
    folder.mkdir()
    first = 0
    for number, size in enumerate(sizes):
        write_file(folder / f"{number}.parquet", rows[first : first + size], group_rows)
        first += size
    return explainer, rows


def write_file(path: Path, rows: pd.DataFrame, group_rows: int) -> None:
    pq.write_table(pa.Table.from_pandas(rows, preserve_index=False), path, row_group_size=group_rows)


def answer_of(folder: Path) -> pd.DataFrame:
    return pd.concat([pq.read_table(path).to_pandas() for path in sorted(folder.glob("*.parquet"))])


def check_answer(found: pd.DataFrame, explainer: Any, rows: pd.DataFrame, **options: Any) -> None:
    expected = next(explainer.explain_batches([rows], ids=["key"], **options))
    pd.testing.assert_frame_equal(found.reset_index(drop=True), expected, rtol=1e-12)


def check_workers(explain_files: ExplainFiles, folder: Path, given: str, patch: pytest.MonkeyPatch) -> None:
    """Workers say what one process says, in several files; ``given`` is "object" or "path"."""
    patch.setattr(_parts, "_PART_ROWS", 20)
    explainer, rows = write_rows(folder / "rows", (45, 30), group_rows=10)
    explainer.save(folder / "e.fshap")
    source = explainer if given == "object" else folder / "e.fshap"
    options = {"layout": "top_k", "top_k": 2}
    n_rows = explain_files(folder / "rows", folder / "answer", source, ids=["key"], **options)
    assert n_rows == len(rows)
    assert names_in(folder / "answer") == [f"part-{number:05d}.parquet" for number in range(5)]
    check_answer(answer_of(folder / "answer"), explainer, rows, **options)


def check_death(
    explain_files: ExplainFiles, engine: Any, folder: Path, when: str, patch: pytest.MonkeyPatch
) -> None:
    """A worker that dies (see `killed_once`) loses and doubles no row, and nothing of it stays behind."""
    explainer, rows = write_rows(folder / "rows", (45, 30), group_rows=10)
    explainer.save(folder / "e.fshap")
    left = folder / "left behind"
    patch.setattr(engine, "explain_part", killed_once(engine.explain_part, when, left))
    paths = (folder / "rows", folder / "answer", folder / "e.fshap")
    assert explain_files(*paths, ids=["key"]) == len(rows)
    unfinished = r"\.part-0000[01]\.parquet\.[0-9a-f]{12}\.part"
    assert re.fullmatch(unfinished if when == "in the middle" else "", left.read_text())
    assert names_in(folder / "answer") == ["part-00000.parquet", "part-00001.parquet"]
    check_answer(answer_of(folder / "answer"), explainer, rows)


def killed_once(work: Callable[[Any, Any], int], when: str, left: Path) -> Callable[[Any, Any], int]:
    """`explain_part` whose first worker is killed "in the middle" of a file, or "at the end", before it has said so.

    ``left`` then names the file that it had begun. Nothing is outside of the function: workers lack this module.
    """

    def work_or_die(job: Any, part: Any) -> int:
        try:
            left.touch(exist_ok=False)
        except FileExistsError:
            return work(job, part)

        def die() -> None:
            begun = Path(part.target).parent.glob(f".{Path(part.target).name}.*")
            left.write_text("\n".join(path.name for path in begun))
            os.kill(os.getpid(), signal.SIGKILL)

        def explain(batches: Any) -> Any:
            yield next(job.explain(batches))
            if when == "in the middle":
                die()

        n_rows = work(SimpleNamespace(explain=explain, schema=job.schema), part)
        die()
        return n_rows

    return work_or_die


def check_refusals(explain_files: ExplainFiles, folder: Path) -> None:
    """What is wrong with arguments and columns is said before anything is written."""
    explainer, _ = write_rows(folder / "rows", (5,), group_rows=10)
    target = folder / "answer"
    with pytest.raises(fs.InputError, match=r"0\.parquet: batch 0: the batch has the column 'key'"):
        explain_files(folder / "rows", target, explainer)
    with pytest.raises(fs.InputError, match=r"source .*does not exist"):
        explain_files(folder / "nothing", target, explainer, ids=["key"])
    with pytest.raises(fs.InputError, match="layout is 'rows'"):
        explain_files(folder / "rows", target, explainer, ids=["key"], layout="rows")
    assert not target.exists()


def check_bad_values(
    explain_files: ExplainFiles, folder: Path, kind: type[Exception], patch: pytest.MonkeyPatch
) -> None:
    """The error of a worker, as the engine hands it on, tells the file and its row groups."""
    patch.setattr(_parts, "_PART_ROWS", 20)
    explainer, rows = write_rows(folder / "rows", (30,), group_rows=10)
    write_file(folder / "rows" / "1.parquet", rows.assign(a="much"), group_rows=10)
    message = r"1\.parquet, row group(s 0 to 1| 2): batch 0: X has a column 'a' of type String"
    with pytest.raises(kind, match=message):
        explain_files(folder / "rows", folder / "answer", explainer, ids=["key"])


def names_in(folder: Path) -> list[str]:
    """Of all files, hidden ones too."""
    return sorted(path.name for path in folder.iterdir())
