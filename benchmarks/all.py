"""All benchmarks, the most important first: `make bench`, or `make bench-status` to see how far they have come.

    python benchmarks/all.py                   # goes on where it stopped; Ctrl-C loses the cell at work alone
    python benchmarks/all.py --minutes 75      # begins nothing after so long, and stops what runs then
    python benchmarks/all.py --only trees.py growth.py
    python benchmarks/all.py --status          # by file: cells, of this state, in quiet, missing; no run

A benchmark that fails does not keep the next from running. In the end it lists what failed, and how many cells are
missing or of another state of the package (exit code 1 then). What lacks a browser or a checkout is left out, and told.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from _cells import Cells, is_disturbed
from _common import RESULTS, print_table

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Step:
    """A script with its arguments, and the modules and programs without which it is left out."""

    script: str
    arguments: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()

    def missing(self) -> str:
        """What it needs and is not there."""
        absent = [name for name in self.modules if find_spec(name) is None]
        return ", ".join(absent + [name for name in self.programs if shutil.which(name) is None])

    def __str__(self) -> str:
        return " ".join((self.script, *self.arguments))


STEPS = (
    Step("deep_trees.py", ("--only", "sizes", "serving")),
    Step("trees.py"),
    Step("growth.py"),
    Step("blackbox.py"),
    Step("games.py", modules=("shapiq_benchmark",)),
    Step("deep_trees.py", ("--only", "depth", "regret")),
    Step("interactions.py"),
    Step("gallery.py"),
    Step("blackbox.py", ("--peers",), modules=("shap", "lightshap")),
    Step("linear.py"),
    Step("scale.py", modules=("pyspark", "dask", "distributed", "pyarrow"), programs=("java",)),
    Step("orders.py"),
    Step("dependence.py"),
    Step("conditional.py"),
    Step("catboost_ctr.py"),
    Step("linear_trees.py"),
    Step("wave_orders.py"),
    Step("new_forms.py"),
    Step("sparse_wht.py"),
    Step("jax_versions.py"),
    Step("questions.py"),
    Step("drift.py"),
    Step("drift_coverage.py"),
    Step("report_page.py", modules=("playwright",)),
    Step("branchmarks.py", modules=("treebranchmarks",)),
)


def run(steps: list[Step], minutes: float) -> list[str]:
    """Run them in order, in this environment; what failed or was stopped, in words."""
    faults, begin = [], time.monotonic()
    for step in steps:
        left = 60 * minutes - (time.monotonic() - begin)
        if left <= 0:
            faults.append(f"{step}: not begun, {minutes:g} minutes were over")
        elif absent := step.missing():
            print(f"=== {step}: left out, it needs {absent}", flush=True)
        else:
            print(f"=== {step} (at {(time.monotonic() - begin) / 60:.0f} min)", flush=True)
            began = time.monotonic()
            code = _run(step, left)
            print(f"=== {step}: {(time.monotonic() - began) / 60:.1f} min", flush=True)
            faults += [f"{step}: stopped, {minutes:g} minutes were over"] if code is None else []
            faults += [f"{step}: exit code {code}"] if code else []
    return faults


def _run(step: Step, seconds: float) -> int | None:
    """The exit code; None where the time was over. Its cells are written one by one, so that stopping it loses one."""
    child = subprocess.Popen([sys.executable, FOLDER / step.script, *step.arguments], start_new_session=True)
    try:
        return child.wait(None if math.isinf(seconds) else seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGTERM)  # its own processes, too
            child.wait()


def status() -> tuple[list[tuple[str, ...]], int]:
    """A line for each script, and how many cells are missing, of another state, or were disturbed."""
    lines, wrong = [], 0
    for name, absent in {step.script.removesuffix(".py"): step.missing() for step in STEPS}.items():
        path = RESULTS / f"{name}.json"
        document = json.loads(path.read_text()) if path.exists() else {}
        if "run" not in document:
            lines.append((name, "", "", "", f"left out, needs {absent}" if absent else "not begun", ""))
            wrong += not absent
            continue
        kept = _cells_of(path, document)
        names = kept.wanted or list(kept.found)
        there = [kept.found[each] for each in names if each in kept.found]
        current = [cell for cell in there if kept.is_current(cell)]
        quiet = sum(not is_disturbed(cell, kept.most_load) for cell in current)
        took = sum(cell.get("took", 0.0) for cell in current)
        numbers = (len(names), len(current), quiet, len(names) - len(there))
        lines.append((name, *map(str, numbers), f"{took / 60:.1f}"))
        wrong += len(names) - quiet
    return lines, wrong


def _cells_of(path: Path, document: dict[str, Any]) -> Cells:
    asked, versions = document["run"], list(document["machine"]["versions"])
    most_load = math.inf if asked["most_load"] is None else asked["most_load"]
    packages = tuple(name for name in versions if name not in ("fouriershap", "numpy"))
    return Cells(path, packages, most_load, tuple(asked["where"]), asked["wanted"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--status", action="store_true", help="how far the results have come, and no run")
    parser.add_argument("--only", nargs="+", metavar="SCRIPT", help="these scripts")
    parser.add_argument("--minutes", type=float, default=math.inf, help="after which it stops")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
    faults: list[str] = []
    if not options.status:
        chosen = [step for step in STEPS if options.only is None or step.script in options.only]
        if not chosen:
            raise SystemExit(f"--only: there are {', '.join(dict.fromkeys(step.script for step in STEPS))}.")
        try:
            faults = run(chosen, options.minutes)
        except KeyboardInterrupt:
            faults = ["stopped; finished cells are kept"]
    lines, wrong = status()
    print_table(("results", "cells", "of this state", "of these in quiet", "missing", "minutes"), lines)
    print(
        *faults, f"{wrong} cells are missing, of another state, or were measured beside other work.", sep="\n"
    )
    sys.exit(1 if faults or wrong else 0)


if __name__ == "__main__":
    main()
