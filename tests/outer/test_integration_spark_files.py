"""Files explained by the workers of Spark themselves: every row once, in order, also when a worker dies."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import fouriershap as fs
from engine_files import answer_of, check_answer, write_rows
from fouriershap.integrations import _parts
from fouriershap.integrations import spark as engine
from fouriershap.integrations._travel import make_job
from spark_session import java_version, spark_session

needs_spark = [
    pytest.mark.xdist_group("spark"),  # one session
    pytest.mark.skipif(
        java_version() < 17, reason=f"Spark needs Java >= 17; found {java_version() or 'none'}"
    ),
]


@pytest.mark.parametrize("part_rows", [1, 25, 10**6])
@pytest.mark.parametrize("sizes", [(40,), (1,), (0,), (30, 0, 41)])
def test_parts_hold_every_row_once_and_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...], part_rows: int
) -> None:
    monkeypatch.setattr(_parts, "_PART_ROWS", part_rows)
    explainer, rows = write_rows(tmp_path / "rows", sizes, group_rows=10)
    (tmp_path / "rows" / "_unfinished.parquet").write_text("not a file of rows")
    target = tmp_path / "answer"
    target.mkdir()
    job = make_job(explainer, ["key"], "columns", 3, 1)
    parts = _parts.plan_parts(tmp_path / "rows", target, "spark")
    _parts.check_parts(job, parts)
    assert all(part.n_rows <= max(part_rows, 10) for part in parts)
    for part in reversed(parts):
        assert _parts.explain_part(job, part) == part.n_rows
    assert _parts.explain_part(job, parts[0]) == parts[0].n_rows  # a task that is repeated
    if sum(sizes):
        check_answer(answer_of(target), explainer, rows)
    else:
        assert answer_of(target).columns[0] == "key" and answer_of(target).empty
    assert {path.suffix for path in target.iterdir()} == {".parquet"}


def test_what_cannot_be_explained_is_said_before_any_work(tmp_path: Path) -> None:
    explainer, _ = write_rows(tmp_path / "rows", (5,), group_rows=10)
    job = make_job(explainer, None, "columns", 3, 1)  # the key is no feature
    with pytest.raises(fs.InputError, match=r"0\.parquet: batch 0: the batch has the column 'key'"):
        _parts.check_parts(job, _parts.plan_parts(tmp_path / "rows", tmp_path / "answer", "spark"))
    for source, message in [("nothing", "does not exist"), (".", r"has no \*\.parquet files")]:
        with pytest.raises(fs.InputError, match=f"source .*{message}.*give a parquet file"):
            _parts.plan_parts(tmp_path / source, tmp_path / "answer", "spark")
    with pytest.raises(fs.InputError, match=r"target .* is there already.*new, or empty"):
        _parts.plan_parts(tmp_path / "rows", tmp_path / "rows", "spark")


def test_a_part_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    explainer, _ = write_rows(tmp_path / "rows", (5,), group_rows=10)
    (part,) = _parts.plan_parts(tmp_path / "rows", tmp_path / "answer", "spark")
    (tmp_path / "answer").mkdir()
    with pytest.raises(fs.InputError, match="key"):
        _parts.explain_part(make_job(explainer, None, "columns", 3, 1), part)
    assert not list((tmp_path / "answer").iterdir())


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'fouriershap[spark]'")
    with spark_session() as session:
        yield session


class TestOnSpark:
    pytestmark = needs_spark

    @pytest.mark.parametrize("given", ["object", "path"])
    def test_a_session_says_what_one_process_says(
        self, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str
    ) -> None:
        monkeypatch.setattr(_parts, "_PART_ROWS", 20)
        explainer, rows = write_rows(tmp_path / "rows", (45, 30), group_rows=10)
        explainer.save(tmp_path / "e.fshap")
        source = explainer if given == "object" else tmp_path / "e.fshap"
        options = {"out": "top_k", "top_k": 2}
        n_rows = engine.explain_files(
            spark, tmp_path / "rows", tmp_path / "answer", source, ids=["key"], **options
        )
        assert n_rows == len(rows)
        assert len(list((tmp_path / "answer").glob("*.parquet"))) == 5
        check_answer(answer_of(tmp_path / "answer"), explainer, rows, **options)
        assert spark.read.parquet(str(tmp_path / "answer")).count() == len(rows)

    def test_a_worker_that_dies_loses_and_doubles_no_row(
        self, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        explainer, rows = write_rows(tmp_path / "rows", (45, 30), group_rows=10)
        explainer.save(tmp_path / "e.fshap")
        once, work = tmp_path / "killed", engine.explain_part

        def killed_once(job: Any, part: Any) -> int:
            n_rows = work(job, part)
            try:
                once.touch(exist_ok=False)
            except FileExistsError:
                return n_rows
            os.kill(os.getpid(), signal.SIGKILL)
            return n_rows

        monkeypatch.setattr(engine, "_explained_parts", _explained_by(killed_once))
        assert engine.explain_files(
            spark, tmp_path / "rows", tmp_path / "answer", tmp_path / "e.fshap", ids=["key"]
        ) == len(rows)
        assert once.exists()
        check_answer(answer_of(tmp_path / "answer"), explainer, rows)

    def test_a_session_is_asked_for(self, tmp_path: Path) -> None:
        with pytest.raises(fs.InputError, match="session is a str; give a SparkSession"):
            engine.explain_files("local", tmp_path, tmp_path / "a", tmp_path / "e.fshap")


def _explained_by(explain_part: Any) -> Any:
    def explained(job: Any, parts: Any, batches: Any) -> Any:
        for batch in batches:
            numbers = batch.column(0).to_pylist()
            n_rows = [explain_part(job, parts[number]) for number in numbers]
            yield pa.RecordBatch.from_pydict({"part": numbers, "n_rows": n_rows})

    return explained
