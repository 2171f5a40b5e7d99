"""Files explained by the workers of Spark themselves: every row once, in order, also when a worker dies."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import fouriershap as fs
from engine_files import check_bad_values, check_death, check_refusals, check_workers
from fouriershap.integrations import spark as engine
from spark_session import java_version, spark_session

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'fouriershap[spark]'")

pytestmark = [
    pytest.mark.xdist_group("spark"),  # one session
    pytest.mark.skipif(
        java_version() < 17, reason=f"Spark needs Java >= 17; found {java_version() or 'none'}"
    ),
]


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    with spark_session() as session:
        yield session


@pytest.mark.parametrize("given", ["object", "path"])
def test_a_session_says_what_one_process_says(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    check_workers(partial(engine.explain_files, spark), tmp_path, given, monkeypatch)
    assert spark.read.parquet(str(tmp_path / "answer")).count() == 75


@pytest.mark.parametrize("when", ["in the middle", "at the end"])
def test_a_worker_that_dies_loses_and_doubles_no_row(
    spark: Any, tmp_path: Path, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_death(partial(engine.explain_files, spark), engine, tmp_path, when, monkeypatch)


def test_what_is_wrong_is_said_before_anything_is_written(spark: Any, tmp_path: Path) -> None:
    check_refusals(partial(engine.explain_files, spark), tmp_path)
    with pytest.raises(fs.InputError, match="session is a str; give a SparkSession"):
        engine.explain_files("local", tmp_path, tmp_path / "a", tmp_path / "e.fshap")


def test_errors_of_workers_name_the_file(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.errors import PythonException

    check_bad_values(partial(engine.explain_files, spark), tmp_path, PythonException, monkeypatch)
