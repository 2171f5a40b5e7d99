"""One engine, explaining one file: what `scale.py` runs in a process of its own.

    python -m scale_cells.engines dask 2 model.fshap rows.parquet answer

Prints a JSON object as its last line: seconds to start, of a first small job, and of the job.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SMALL = 1_000  # rows of the first job, which pays for starting workers and opening the file

Explain = Callable[[int | None, Path], None]  # how many rows (None: all), where the answer goes


@contextmanager
def dask(workers: int, model: Path, rows: Path) -> Iterator[Explain]:
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    from fouriershap.integrations import dask as engine

    local = {"threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": None}
    with LocalCluster(n_workers=workers, processes=True, **local) as cluster, Client(cluster):
        ddf = dd.read_parquet(rows, split_row_groups=True)

        def explain(n_rows: int | None, answer: Path) -> None:
            some = (
                ddf if n_rows is None else ddf.partitions[:workers].loc[lambda part: part["key"] % 100 == 0]
            )
            engine.explain(some, model, ids=["key"]).to_parquet(answer, compression=None, write_index=False)

        yield explain


@contextmanager
def spark(workers: int, model: Path, rows: Path) -> Iterator[Explain]:
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
        "spark.sql.parquet.compression.codec": "none",
    }
    builder = SparkSession.builder.master(f"local[{workers}]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")

    def explain(n_rows: int | None, answer: Path) -> None:
        df = session.read.parquet(str(rows))
        df = df if n_rows is None else df.limit(n_rows).repartition(workers)
        engine.explain(df, str(model), ids=["key"]).write.parquet(str(answer))

    try:
        yield explain
    finally:
        session.stop()


ENGINES = {"dask": dask, "spark": spark}


def main(name: str, workers: int, model: Path, rows: Path, answer: Path) -> dict[str, Any]:
    begin = time.perf_counter()
    with ENGINES[name](workers, model, rows) as explain:
        started = time.perf_counter()
        explain(SMALL, answer.with_name(answer.name + "-small"))
        warm = time.perf_counter()
        explain(None, answer)
        done = time.perf_counter()
    return {"start": started - begin, "first_job": warm - started, "job": done - warm}


if __name__ == "__main__":
    name, workers, *paths = sys.argv[1:]
    print(json.dumps(main(name, int(workers), *map(Path, paths))))
