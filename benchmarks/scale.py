"""A large file by the command line, Spark and Dask: rows per second, speed-up, memory, and what that adds up to.

    python benchmarks/scale.py                          # 10^7 rows; a quarter of an hour; goes on where it stopped
    python benchmarks/scale.py --rows 100000 --dry-run  # to see that all works; writes nothing
    python benchmarks/scale.py --only command-line memory

Needs `pip install -e '.[cli,spark,dask,bench]'`, Java >= 17 for Spark, and about 6 GB of disk.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

import fouriershap as fs
from _cells import Cells
from _common import RESULTS, cores, print_machine
from _pages import ROOT, fill
from scale_cells import inputs, report
from scale_cells.processes import run_watched, shared_memory, start_seconds

PACKAGES = ("xgboost", "pyarrow", "pyspark", "dask", "distributed")
ENGINES = ("command-line", "dask", "dask-kept", "dask-files", "spark", "spark-files")
# Rows go through no engine, or through the same.
WITHOUT_NULL = ("command-line", "dask-kept", "dask-files", "spark-files")
WORKERS = (1, 2)
WORKS = ("explain", "null")


def role(engine: str, command: list[str]) -> str | None:
    """Which processes of an engine are workers."""
    line = " ".join(command)
    if engine == "command-line":
        return "worker" if "fouriershap.cli" in line else None
    if engine.startswith("dask"):
        return "worker" if "spawn_main" in line else None
    if "java" in line.split(" ")[0]:
        return "JVM"
    return "worker" if "pyspark.daemon" in line else None


def command(engine: str, workers: int, work: str, model: Path, rows: Path, answer: Path) -> list[str]:
    if engine == "command-line":
        options = ["--id", "key", "--n-jobs", str(workers), "--quiet"]
        explain = ["explain", str(model), str(rows), "-o", str(answer.with_suffix(".parquet"))]
        return [sys.executable, "-m", "fouriershap.cli", *explain, *options]
    paths = map(str, (model, rows, answer))
    return [sys.executable, "-m", "scale_cells.engines", engine, str(workers), work, *paths]


def check_answer(model: Path, rows: Path, written: Path, n_rows: int, who: str) -> float:
    """Every row came back once, and those of the first and last row groups with the values of this process."""
    keys = pq.read_table(written, columns=["key"])["key"].to_numpy()
    if len(keys) != n_rows or len(np.unique(keys)) != n_rows:
        raise SystemExit(f"{who}: {len(keys):,} answers for {n_rows:,} rows.")
    ends = [[("key", "<", inputs.GROUP_ROWS)], [("key", ">=", n_rows - inputs.GROUP_ROWS)]]
    some = pq.read_table(rows, filters=ends)
    there = pq.read_table(written, filters=ends).sort_by("key")
    here = fs.load(model).shap_values(np.column_stack([some[name] for name in inputs.NAMES]))
    difference = float(np.abs(np.column_stack([there[name] for name in inputs.NAMES]) - here).max())
    if not difference <= 1e-6:
        raise SystemExit(f"{who}: SHAP values differ by {difference:.1e} from those of one process.")
    return difference


def run_engine(engine: str, workers: int, work: str, n_rows: int, folder: Path) -> dict[str, Any]:
    """Explain the first ``n_rows`` rows, and check the answer; or let the engine do its null job."""
    model, rows, answer = folder / "model.fshap", folder / f"rows-{n_rows}.parquet", folder / "answer"
    if not rows.exists():
        inputs.write_rows(rows, n_rows)
    n_threads = workers if engine == "command-line" else 1
    watched = run_watched(
        command(engine, workers, work, model, rows, answer), n_threads, lambda line: role(engine, line)
    )
    times = (
        {"job": watched.seconds, "cpu": {"all": watched.cpu_seconds, "JVM": 0.0}}
        if engine == "command-line"
        else json.loads(watched.output.splitlines()[-1])
    )
    written = answer.with_suffix(".parquet") if engine == "command-line" else answer
    who = f"{engine}, {workers} workers"
    difference = check_answer(model, rows, written, n_rows, who) if work == "explain" else None
    size = sum(
        path.stat().st_size for path in ([written] if written.is_file() else written.rglob("*.parquet"))
    )
    for path in folder.glob("answer*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    peaks = {name: sorted(found)[-workers:] for name, found in watched.peaks.items()}
    return {
        "engine": engine,
        "workers": workers,
        "work": work,
        "rows": n_rows,
        "largest_difference": difference,
        "seconds": times,
        "rows_per_second": n_rows / times["job"],
        "peak_bytes": {name: max(found) for name, found in peaks.items()},
        "bytes_per_row": {"read": rows.stat().st_size / n_rows, "written": size / n_rows},
    }


def jobs() -> list[tuple[str, int, str]]:
    """Engine, workers and work of each run."""
    every = itertools.product(ENGINES, WORKERS, WORKS)
    return [job for job in every if job[2] == "explain" or job[0] not in WITHOUT_NULL]


def wanted() -> list[str]:
    return [*("/".join(map(str, job)) for job in jobs()), "start", "memory", "shares"]


def run(cells: Cells, arguments: argparse.Namespace, folder: Path) -> None:
    """Measure what is missing, was disturbed, or is asked for again."""
    model, again = folder / "model.fshap", bool(arguments.only)
    inputs.write_explainer(model)
    for engine, workers, work in jobs():
        if again and engine not in arguments.only:
            continue
        n_rows = arguments.rows if engine == "command-line" else min(arguments.rows, arguments.engine_rows)
        cell = cells.measure(
            f"{engine}/{workers}/{work}",
            lambda e=engine, w=workers, k=work, n=n_rows: run_engine(e, w, k, n, folder),
            again=again,
            threads=cores(),
        )
        print(f"{engine}, {workers}, {work}: {cell['rows_per_second']:,.0f} rows/s", flush=True)
    if again and "memory" not in arguments.only:
        return
    cells.measure("start", lambda: {"seconds": start_seconds(model)}, again=again)
    cells.measure("memory", lambda: shared_memory(model), again=again)
    cells.measure("shares", lambda: {"microseconds": run_shares(model, folder, arguments.rows)}, again=again)


def run_shares(model: Path, folder: Path, n_rows: int) -> dict[str, float]:
    """The steps of one process, in a process of its own."""
    rows = folder / f"rows-{n_rows}.parquet"
    if not rows.exists():
        inputs.write_rows(rows, n_rows)
    command = [sys.executable, "-m", "scale_cells.shares", str(model), str(rows)]
    watched = run_watched(command, 1, lambda line: None)
    return dict(json.loads(watched.output.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000, help="of the file, for the command line")
    parser.add_argument("--engine-rows", type=int, default=3_000_000, help="at most, for Spark and Dask")
    parser.add_argument("--only", nargs="+", choices=(*ENGINES, "memory"), help="these again")
    parser.add_argument("--dry-run", action="store_true", help="everything, print the page, write nothing")
    parser.add_argument("--report", action="store_true", help="no run: the pages from the results")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="scale-") as name:
        folder = Path(name)
        path = (folder if arguments.dry_run else RESULTS) / "scale.json"
        cells = Cells(path, PACKAGES, wanted=wanted())
        if not arguments.report:
            print_machine(PACKAGES)
            run(cells, arguments, folder)
    print(report.markdown(report.gather(cells)))
    if not arguments.dry_run:
        path.with_suffix(".md").write_text(report.page(cells))
        fill(ROOT / "docs" / "scale.md", "scale", report.summary(report.gather(cells)))


if __name__ == "__main__":
    main()
