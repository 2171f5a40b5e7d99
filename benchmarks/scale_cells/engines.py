"""One engine, explaining one file: what `scale.py` runs in a process of its own.

    python -m scale_cells.engines dask 2 explain model.fshap rows.parquet answer

"null" instead of "explain" is the same job with numbers that are ready in place of SHAP values: what the engine itself
takes to read, to hand over and to write. Prints a JSON object as its last line: seconds to start, of a first small job,
and of the job, and the CPU seconds of the job.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from scale_cells import null

SMALL = 1_000  # rows of the first job, which pays for starting workers and opening the file

# By default Dask has workers give memory back at once: every large array then costs fresh pages.
KEEPING = {"MALLOC_TRIM_THRESHOLD_": 1 << 30, "MALLOC_MMAP_THRESHOLD_": 1 << 30, "OMP_NUM_THREADS": 1}

Explain = Callable[[int | None, Path], None]  # how many rows (None: all), where the answer goes


@contextmanager
def dask(
    workers: int, work: str, model: Path, rows: Path, keep: bool = False, files: bool = False
) -> Iterator[Explain]:
    import dask.dataframe as dd
    from dask import config
    from distributed import Client, LocalCluster

    from fouriershap.integrations import dask as engine

    if keep:
        config.set({"distributed.nanny.pre-spawn-environ": KEEPING})
    local = {"threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": None}
    with LocalCluster(n_workers=workers, processes=True, **local) as cluster, Client(cluster):
        ddf = dd.read_parquet(rows, split_row_groups=True)

        def explain(n_rows: int | None, answer: Path) -> None:
            if files:
                engine.explain_files(_few(rows, n_rows, answer), answer, model, ids=["key"])
                return
            some = (
                ddf if n_rows is None else ddf.partitions[:workers].loc[lambda part: part["key"] % 100 == 0]
            )
            made = null.dask(some) if work == "null" else engine.explain(some, model, ids=["key"])
            # As the command line writes: looking for repetitions takes as long as explaining.
            made.to_parquet(answer, write_index=False, use_dictionary=["key", "base_value"])

        yield explain


@contextmanager
def spark(workers: int, work: str, model: Path, rows: Path, files: bool = False) -> Iterator[Explain]:
    from pyspark.sql import SparkSession

    from fouriershap.integrations import spark as engine

    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "3g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.files.maxPartitionBytes": str(16 << 20),
    }
    builder = SparkSession.builder.master(f"local[{workers}]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")

    def explain(n_rows: int | None, answer: Path) -> None:
        if files:
            engine.explain_files(session, _few(rows, n_rows, answer), answer, model, ids=["key"])
            return
        df = session.read.parquet(str(rows))
        df = df if n_rows is None else df.limit(n_rows).repartition(workers)
        made = null.spark(df) if work == "null" else engine.explain(df, str(model), ids=["key"])
        made.write.option("parquet.enable.dictionary", "false").parquet(str(answer))

    try:
        yield explain
    finally:
        session.stop()


def _few(rows: Path, n_rows: int | None, answer: Path) -> Path:
    """A file of the first rows, beside the answer; that of all rows where None is given."""
    if n_rows is None:
        return rows
    few = answer.with_name("few.parquet")
    first = next(pq.ParquetFile(rows).iter_batches(n_rows))
    pq.write_table(pa.Table.from_batches([first]), few)
    return few


ENGINES = {"dask": dask, "spark": spark, "spark-files": partial(spark, files=True)}
ENGINES |= {"dask-kept": partial(dask, keep=True), "dask-files": partial(dask, files=True)}


def cpu_seconds() -> dict[str, float]:
    """CPU seconds so far of this process and all below it, and of those the JVM's."""
    found = {"all": 0.0, "JVM": 0.0}
    me = psutil.Process()
    for process in [me, *me.children(recursive=True)]:
        try:
            times, is_jvm = process.cpu_times(), "java" in process.name()
        except psutil.NoSuchProcess:
            continue
        found["all"] += times.user + times.system
        found["JVM"] += (times.user + times.system) * is_jvm
    return found


def main(name: str, workers: int, work: str, model: Path, rows: Path, answer: Path) -> dict[str, Any]:
    begin = time.perf_counter()
    with ENGINES[name](workers, work, model, rows) as explain:
        started = time.perf_counter()
        explain(SMALL, answer.with_name(answer.name + "-small"))
        warm, before = time.perf_counter(), cpu_seconds()
        explain(None, answer)
        done, after = time.perf_counter(), cpu_seconds()
    cpu = {who: after[who] - before[who] for who in after}
    return {"start": started - begin, "first_job": warm - started, "job": done - warm, "cpu": cpu}


if __name__ == "__main__":
    name, workers, work, *paths = sys.argv[1:]
    print(json.dumps(main(name, int(workers), work, *map(Path, paths))))
