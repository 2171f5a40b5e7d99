"""Where the time of a row goes in one process: each step by itself, CPU microseconds on one thread.

    python -m scale_cells.shares model.fshap rows.parquet

Prints a JSON object as its last line.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import fouriershap as fs
from scale_cells.inputs import NAMES

ROWS, BATCH, SMALL_BATCH = 500_000, 65_536, 10_000  # 10,000: what Spark hands over at a time
ROUNDS = 3


def main(model: Path, rows: Path) -> dict[str, float]:
    """CPU microseconds a row by step, the least of some rounds in turn."""
    pa.set_cpu_count(1)
    explainer = fs.load(model)
    file = pq.ParquetFile(rows)
    batches = list(pa.Table.from_batches(file.iter_batches(BATCH))[:ROWS].to_batches())
    n_rows = sum(batch.num_rows for batch in batches)
    small = [batch.slice(i, SMALL_BATCH) for batch in batches for i in range(0, batch.num_rows, SMALL_BATCH)]
    matrices = [np.column_stack([batch[name] for name in NAMES]) for batch in batches]
    frames = [batch.to_pandas() for batch in batches]

    def explain(given: list[Any]) -> list[Any]:
        return list(explainer.explain_batches(given, ids=["key"], n_jobs=1))

    answers, tables = explain(frames), [pa.Table.from_batches([batch]) for batch in explain(batches)]
    groups = range(-(-n_rows // file.metadata.row_group(0).num_rows))
    with tempfile.TemporaryDirectory() as folder:
        steps: dict[str, Callable[[], Any]] = {
            "read parquet": lambda: list(file.iter_batches(BATCH, row_groups=groups)),
            "SHAP values of matrices": lambda: [explainer.shap_values(X, n_jobs=1) for X in matrices],
            "explain_batches, Arrow": lambda: explain(batches),
            f"explain_batches, Arrow, {SMALL_BATCH:,} rows at a time": lambda: explain(small),
            "explain_batches, pandas": lambda: explain(frames),
            "Arrow to pandas": lambda: [batch.to_pandas() for batch in batches],
            "pandas to Arrow": lambda: [pa.Table.from_pandas(f, preserve_index=False) for f in answers],
            "write parquet": lambda: _write(Path(folder) / "a", tables, ["key", "base_value"]),
            "write parquet, looking for repetitions": lambda: _write(Path(folder) / "b", tables, True),
        }
        return {name: seconds / n_rows * 1e6 for name, seconds in _least(steps).items()}


def _write(path: Path, tables: list[Any], use_dictionary: bool | list[str]) -> None:
    with pq.ParquetWriter(path, tables[0].schema, use_dictionary=use_dictionary) as writer:
        for table in tables:
            writer.write_table(table)


def _least(steps: dict[str, Callable[[], Any]]) -> dict[str, float]:
    found = dict.fromkeys(steps, float("inf"))
    for _ in range(ROUNDS):
        for name, step in steps.items():
            begin = time.process_time()
            step()
            found[name] = min(found[name], time.process_time() - begin)
    return found


if __name__ == "__main__":
    print(json.dumps(main(*map(Path, sys.argv[1:]))))
