"""The portable build as a wheel has it, its baseline, and a build tuned for this very machine."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from tree_cells import models
from tree_cells.child import hand_over, run_child
from tree_cells.race import TOLERANCE, Cell, Outcome, Target

GROUP = "builds"
PORTABLE, BASELINE, NATIVE = "portable, best set", "portable, baseline", "-march=native"
PROJECT = Path(__file__).parents[2]


def run(quick: bool) -> Outcome:
    """Explaining and compiling on one thread, each build in processes of its own, in turn."""
    outcome = Outcome()
    with tempfile.TemporaryDirectory() as folder:
        builds, note = _builds(Path(folder))
        for name in ("xgboost",) if quick else ("xgboost", "lightgbm", "forest"):
            n_rows = 10_000 if quick else 50_000
            hand_over(Path(folder), models.model(name), models.rows(n_rows), models.background(10_000))
            found = _measure(Path(folder), builds, 1 if quick else 2)
            for what in ("explain", "compile"):
                cell = Cell(GROUP, models.NAMES[name], f"{what}, {n_rows:,} rows, 1 thread")
                cell.wall = {build: best[what] for build, best in found.items()}
                cell.notes += [f"{build}: {best['instruction_set']} kernels" for build, best in found.items()]
                cell.notes += [note] if note else []
                outcome.cells.append(cell)
            if NATIVE in found:
                ratio = found[PORTABLE]["explain"] / found[NATIVE]["explain"]
                what = f"{models.NAMES[name]}: explaining, portable build as a multiple of -march=native"
                outcome.targets.append(Target(what, ratio, 1.1, at_least=False))
    return outcome


def _builds(folder: Path) -> tuple[dict[str, dict[str, Any]], str]:
    """Arguments of `run_child` per build, and why the native one is missing, if it is."""
    builds: dict[str, dict[str, Any]] = {
        PORTABLE: {},
        BASELINE: {"environment": {"FOURIERSHAP_KERNELS": "baseline"}},
    }
    target = folder / "native"
    settings = {"cmake.define.FOURIERSHAP_NATIVE": "ON", "build-dir": str(folder / "build")}
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target)]
    command += [f"--config-settings={key}={value}" for key, value in settings.items()]
    done = subprocess.run([*command, str(PROJECT)], capture_output=True, text=True, check=False)
    if done.returncode:
        return builds, f"{NATIVE}: not built ({done.stderr.strip().splitlines()[-1]})"
    # -S: an editable installation hooks into imports by a .pth file, and would come first.
    path = f"{target}:{sysconfig.get_path('platlib')}:{sysconfig.get_path('purelib')}"
    builds[NATIVE] = {"environment": {"PYTHONPATH": path}, "flags": ("-S",)}
    return builds, ""


def _measure(folder: Path, builds: dict[str, dict[str, Any]], n_rounds: int) -> dict[str, dict[str, Any]]:
    """The quickest of several processes each; their values are compared first."""
    best: dict[str, dict[str, Any]] = {}
    for _ in range(n_rounds):
        for build, arguments in builds.items():
            found = run_child(folder, "speed", "5", **arguments)
            values = np.array(found.pop("values"))
            reference = best.setdefault(PORTABLE, found | {"values": values})["values"]
            if np.abs(values - reference).max() > TOLERANCE * np.abs(reference).max():
                raise SystemExit(f"builds: {build} gives other values. No time is reported.")
            known = best.setdefault(build, found)
            for what in ("compile", "explain"):
                known[what] = min(known[what], found[what])
    return best
