"""SHAP values of the rows of a Spark data frame."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from fouriershap import Explainer, InputError, OutputColumn
from fouriershap.integrations._distribute import Job, check_frame, import_engine, make_job
from fouriershap.integrations._parts import Part, explain_part, explain_parts

_GATHERED_ROWS = 50_000
_GATHERED_BYTES = 64 << 20  # limits the number of wide rows


def explain(
    df: Any,
    explainer: Explainer | str | os.PathLike[str],
    *,
    ids: Sequence[str] | None = None,
    layout: str = "columns",
    top_k: int = 3,
    n_jobs: int = 1,
) -> Any:
    """Explain the rows of a Spark data frame, lazily, where they are.

    Rows go between Spark and Python as Arrow batches (``mapInArrow``), so ids keep their types and nulls.
    The workers need fouriershap and pyarrow; the model and its library are not needed.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
        Features, found by name, and ids. A null is a missing value; text is the label of a category.
    explainer : Explainer or path
        A .fshap file on storage that driver and workers share is opened once per worker process, and the
        processes of one machine share its memory. An explainer is compiled and broadcast.
    ids, layout, top_k
        As in `Explainer.explain_batches`.
    n_jobs : int
        Threads per task. One, since Spark runs a task per core.

    Returns
    -------
    pyspark.sql.DataFrame
        The ids with their types, then doubles, texts, or arrays of doubles.

    Raises
    ------
    InputError
        An argument is wrong, or columns of ``df`` are missing or unknown to the model.

    Examples
    --------
    ::

        from fouriershap.integrations import spark

        reasons = spark.explain(df, "/shared/model.fshap", ids=["customer"], layout="top_k")
        reasons.write.parquet("/shared/reasons")
    """
    types = import_engine("pyspark.sql.types")
    check_frame(df, "df", "mapInArrow", "a Spark data frame, as of `spark.createDataFrame(rows)`")
    job = make_job(explainer, ids, layout, top_k, n_jobs)
    import pyarrow as pa

    # Explain no rows, so that wrong columns are errors here, not on a worker.
    next(job.explain([pa.Table.from_arrays([pa.nulls(0)] * len(df.columns), names=list(df.columns))]))
    added = [types.StructField(column.name, _spark_type(column, types)) for column in job.schema]
    schema = types.StructType([*(df.schema[name] for name in job.ids), *added])
    # Columns are numbered for mapInArrow, which takes a dot in a name for a field of a struct.
    numbered = df.toDF(*map(str, range(len(df.columns))))
    names = df.columns
    return numbered.mapInArrow(
        _with_job(lambda job, batches: _explain_batches(job, names, batches), job, df.sparkSession), schema
    )


def explain_files(
    session: Any,
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    explainer: Explainer | str | os.PathLike[str],
    *,
    ids: Sequence[str] | None = None,
    layout: str = "columns",
    top_k: int = 3,
    n_jobs: int = 1,
) -> int:
    """Explain parquet files on the workers of Spark, which read and write them themselves.

    Rows do not go through the JVM, which takes most of the time of `explain`: Spark distributes the work and repeats
    what fails. It runs at once, and returns when everything is written.

    Parameters
    ----------
    session : pyspark.sql.SparkSession
    source, target
        As in `fouriershap.integrations.dask.explain_files`.
    explainer, ids, layout, top_k, n_jobs
        As in `explain`. An object is sent with the tasks; a path is quicker.

    Returns
    -------
    int
        The number of rows.

    Examples
    --------
    ::

        from fouriershap.integrations import spark

        spark.explain_files(session, "/shared/rows", "/shared/reasons", "/shared/model.fshap", ids=["customer"])
    """
    import_engine("pyspark")
    if not hasattr(session, "range"):
        raise InputError(
            f"session is a {type(session).__name__}; give a SparkSession, as of `SparkSession.builder.getOrCreate()`."
        )

    def send(job: Job, parts: list[Part]) -> Iterable[int]:
        def explained(job: Job, batches: Iterator[Any]) -> Iterator[Any]:
            import pyarrow as pa

            for batch in batches:
                numbers = batch.column(0).to_pylist()
                n_rows = [explain_part(job, parts[number]) for number in numbers]
                yield pa.RecordBatch.from_pydict({"part": numbers, "n_rows": n_rows})

        numbers = session.range(0, len(parts), 1, len(parts))  # a part in each partition
        done = numbers.mapInArrow(_with_job(explained, job, session), "part long, n_rows long").collect()
        return [row["n_rows"] for row in done]

    return explain_parts(make_job(explainer, ids, layout, top_k, n_jobs), source, target, "spark", send)


def _spark_type(column: OutputColumn, types: Any) -> Any:
    if column.kind == "array":
        return types.ArrayType(types.DoubleType(), containsNull=False)
    return types.DoubleType() if column.kind == "float64" else types.StringType()


def _with_job(
    work: Callable[[Job, Iterator[Any]], Iterator[Any]], job: Job, session: Any
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return the function that runs on workers. An object is broadcast, so that each process unpickles it once."""
    if not isinstance(job.source, Explainer) or not hasattr(session, "sparkContext"):
        # A path is short; Spark Connect has no broadcast, and sends the object with the function.
        return lambda batches: work(job, batches)
    sent = session.sparkContext.broadcast(job)
    return lambda batches: work(sent.value, batches)


def _explain_batches(job: Job, names: Sequence[str], batches: Iterator[Any]) -> Iterator[Any]:
    import pyarrow as pa

    named = (pa.RecordBatch.from_arrays(batch.columns, names=names) for batch in batches)
    for result in job.explain(_join_batches(named)):
        yield from map(_with_lists, result.to_batches())


def _join_batches(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield tables of several of Spark's batches of 10,000 rows: opening one takes a tenth of explaining it."""
    import pyarrow as pa

    waiting: list[Any] = []
    n_rows = n_bytes = 0
    for batch in batches:
        waiting.append(batch)
        n_rows, n_bytes = n_rows + batch.num_rows, n_bytes + batch.nbytes
        if n_rows >= _GATHERED_ROWS or n_bytes >= _GATHERED_BYTES:
            yield pa.Table.from_batches(waiting)
            waiting, n_rows, n_bytes = [], 0, 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def _with_lists(batch: Any) -> Any:
    """Convert fixed-size lists, which Spark does not read, to lists."""
    import pyarrow as pa

    fixed = [i for i, kind in enumerate(batch.schema.types) if pa.types.is_fixed_size_list(kind)]
    for i in fixed:
        name, lists = batch.schema.names[i], batch.column(i).cast(pa.list_(pa.float64()))
        batch = batch.set_column(i, name, lists)
    return batch
