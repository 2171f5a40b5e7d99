"""Spark on one machine says what one process says, also when a worker dies."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

import fouriershap as fs
from engines import Example, check_same, examples, make_explainer, plain_categories
from fouriershap.integrations import spark as engine
from fouriershap.integrations._distribute import make_job
from spark_session import java_version, spark_session

pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'fouriershap[spark]'")


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


def spark_frame(spark: Any, X: pd.DataFrame, n_parts: int) -> Any:
    """Rows as Spark holds them: whole numbers with nulls, text, and no categories."""
    import pyarrow as pa

    table = pa.Table.from_pandas(plain_categories(X), preserve_index=False)
    return spark.createDataFrame(table).repartition(n_parts)


def collected(answer: Any) -> pd.DataFrame:
    return answer.toArrow().to_pandas()


@settings(max_examples=5, deadline=None)
@given(example=examples())
def test_a_session_says_what_one_process_says(spark: Any, example: Example) -> None:
    with tempfile.TemporaryDirectory() as folder:
        df = spark_frame(spark, example.rows, len(example.parts))
        answer = engine.explain(df, example.given(Path(folder)), **example.options)
        check_same(collected(answer), example.single_process(plain=True))


def test_ids_keep_their_types(spark: Any) -> None:
    explainer, X = make_explainer("xgboost")
    df = spark_frame(spark, X[:20], 3).selectExpr(
        "*",
        "cast(monotonically_increasing_id() % 1000 as int) as key",
        "timestamp'2026-01-01 12:00:00' as when",
        "cast('1.25' as decimal(10, 2)) as price",
        "array(1, null) as parts",
        "cast(null as bigint) as nothing",
        "named_struct('x', 1, 'y', 'z') as `a.b`",
    )
    ids = ["when", "key", "price", "parts", "nothing", "a.b"]
    answer = engine.explain(df, explainer, ids=ids, layout="array")
    assert answer.schema.fields[: len(ids)] == [df.schema[name] for name in ids]
    assert answer.schema["shap_values"].dataType.simpleString() == "array<double>"
    carried = sorted(map(repr, answer.select(*ids[:-1], "`a.b`").collect()))
    assert carried == sorted(map(repr, df.select(*ids[:-1], "`a.b`").collect()))


class Sabotaged:
    """A data frame whose Python workers get killed once, when a part of their rows has been explained."""

    def __init__(self, df: Any, marker: Path) -> None:
        self._df, self._marker = df, marker

    def __getattr__(self, name: str) -> Any:
        return getattr(self._df, name)

    def toDF(self, *names: str) -> Sabotaged:  # noqa: N802
        return Sabotaged(self._df.toDF(*names), self._marker)

    def mapInArrow(self, explain: Callable[[Any], Any], schema: Any) -> Any:  # noqa: N802
        marker = self._marker

        def explain_and_die(batches: Any) -> Iterator[Any]:
            for number, answer in enumerate(explain(batches)):
                if number == 2 and not marker.exists():
                    marker.touch()
                    os.kill(os.getpid(), signal.SIGKILL)
                yield answer

        return self._df.mapInArrow(explain_and_die, schema)


@pytest.mark.parametrize("source", ["object", "path"])
def test_a_worker_that_dies_loses_and_doubles_no_row(spark: Any, tmp_path: Path, source: str) -> None:
    explainer, X = make_explainer("xgboost")
    rows = pd.concat([X] * 4, ignore_index=True).assign(key=lambda rows: np.arange(len(rows)))
    example = Example(explainer, [rows], source, {"ids": ["key"]})
    df = Sabotaged(spark_frame(spark, rows, 4), tmp_path / "died")
    found = collected(engine.explain(df, example.given(tmp_path), ids=["key"]))
    assert (tmp_path / "died").exists()
    assert len(found) == len(rows)
    check_same(found, example.single_process())


@pytest.mark.parametrize("layout", ["columns", "array", "top_k"])
@pytest.mark.parametrize("sizes", [(), (0,), (7,), (30, 30, 30, 1), (0, 200, 3)])
def test_batches_are_explained_together_and_answered_in_order(
    monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...], layout: str
) -> None:
    pa = pytest.importorskip("pyarrow")
    monkeypatch.setattr(engine, "_GATHERED_ROWS", 60)
    explainer, X = make_explainer("several outputs")
    rows = pd.concat([X] * 4, ignore_index=True)[: sum(sizes)].assign(key=lambda rows: np.arange(len(rows)))
    ends = np.cumsum(sizes)
    batches = [
        pa.RecordBatch.from_pandas(rows[end - size : end], preserve_index=False)
        for end, size in zip(ends, sizes, strict=True)
    ]
    job = make_job(explainer, ["key"], layout, 2, 1)
    names = [str(name) for name in rows.columns]
    taken = [table.num_rows for table in engine._join_batches(iter(batches))]
    assert sum(taken) == sum(sizes) and all(n_rows >= 60 for n_rows in taken[:-1])
    answer = list(engine._explain_batches(job, names, iter(batches)))
    assert all(isinstance(batch, pa.RecordBatch) for batch in answer)
    if sum(sizes):
        alone = pa.Table.from_batches(map(engine._with_lists, job.explain(batches)))
        assert pa.Table.from_batches(answer).combine_chunks().equals(alone.combine_chunks())


@pytest.mark.parametrize(
    ("n_rows", "n_bytes", "taken"),
    [
        (10**9, 10**9, [12]),
        (4, 10**9, [4, 4, 4]),
        (10**9, 2500, [6, 6]),  # two rows of 500 bytes in each batch
        (4, 2500, [4, 4, 4]),
        (8, 2500, [6, 6]),
        (10**9, 1, [2] * 6),
    ],
)
def test_gathered_batches_are_few_rows_and_few_bytes(
    monkeypatch: pytest.MonkeyPatch, n_rows: int, n_bytes: int, taken: list[int]
) -> None:
    pa = pytest.importorskip("pyarrow")
    monkeypatch.setattr(engine, "_GATHERED_ROWS", n_rows)
    monkeypatch.setattr(engine, "_GATHERED_BYTES", n_bytes)
    kind = pa.binary(500)
    batches = [pa.record_batch({"row": pa.array([bytes([i]) * 500] * 2, kind)}) for i in range(6)]
    assert batches[0].nbytes == 1000
    tables = list(engine._join_batches(iter(batches)))
    assert [table.num_rows for table in tables] == taken
    assert pa.concat_tables(tables).equals(pa.Table.from_batches(batches))


def test_what_is_wrong_is_said_before_anything_runs(spark: Any) -> None:
    explainer, X = make_explainer("xgboost")
    df = spark_frame(spark, X[:5], 1)
    for frame, options, message in [
        (X, {}, "df is a DataFrame; give a Spark data frame"),
        (df, {"ids": ["key"]}, "no column 'key'"),
        (df.drop("b"), {}, "lacks the column 'b'"),
        (df.withColumnRenamed("b", "a"), {}, "two columns of one name"),
        (df.withColumnRenamed("b", "B"), {}, "lacks the column 'b'"),
    ]:
        with pytest.raises(fs.InputError, match=message):
            engine.explain(frame, explainer, **options)
