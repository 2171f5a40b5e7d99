"""Work in a process of its own: what memory it takes, and how fast another build of the kernels is.

A model and the data travel through a folder. `python -m tree_cells.child FOLDER TASK ...` prints one JSON
line; the other functions are the parent's side.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import joblib
import numpy as np

BENCHMARKS = Path(__file__).parent.parent


def hand_over(folder: Path, model: Any, X: np.ndarray, background: np.ndarray) -> None:
    joblib.dump(model, folder / "model.joblib")
    np.save(folder / "X.npy", X)
    np.save(folder / "background.npy", background)


def run_child(
    folder: Path, *task: str, environment: dict[str, str] | None = None, flags: tuple[str, ...] = ()
) -> Any:
    """The JSON that the child prints; raises `subprocess.CalledProcessError` where it fails."""
    command = [sys.executable, *flags, "-m", "tree_cells.child", str(folder), *task]
    done = subprocess.run(
        command,
        cwd=BENCHMARKS,
        env=os.environ | (environment or {}),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def _peak_memory(folder: Path, who: str, n_jobs: int) -> dict[str, float]:
    """Bytes of peak memory above what is resident once libraries, model and data are loaded."""
    from peers import trees as peers

    model = joblib.load(folder / "model.joblib")
    X, background = np.load(folder / "X.npy"), np.load(folder / "background.npy")
    explain = {
        "fouriershap": lambda X, B: peers.ours(model, X, B, n_jobs),
        "probability": lambda X, B: peers.ours(model, X, B, n_jobs, output="probability"),
        "woodelf": lambda X, B: peers.woodelf(model, X, B),
    }[who]
    explain(X[:2], background[:2])()  # what is imported at first use is no memory of the cell
    work = explain(X, background)
    before, exact = _start_counting()
    values = work()
    return {"peak_above_data": _peak() - before, "output_bytes": values.nbytes, "exact": exact}


def _start_counting() -> tuple[int, bool]:
    """Resident bytes now. Linux can forget the peak so far; elsewhere the baseline is that peak."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
        if _status("VmHWM") - _status("VmRSS") < 2**20:
            return _status("VmRSS"), True
    except (OSError, KeyError):
        pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, False


def _peak() -> int:
    try:
        return _status("VmHWM")
    except (OSError, KeyError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in lines if ":" in line)
    return int(fields[name].split()[0]) * 1024


def _speed(folder: Path, n_rounds: int) -> dict[str, Any]:
    """Quickest compile and explain on one thread, and a few values to compare."""
    import fouriershap as fs
    from fouriershap import _kernels as kernels

    reading = fs.read_model(joblib.load(folder / "model.joblib"))
    X, background = np.load(folder / "X.npy"), np.load(folder / "background.npy")
    compiling, explaining = float("inf"), float("inf")
    for _ in range(n_rounds):
        begin = time.perf_counter()
        explainer = fs.TreeExplainer(reading, background, check=False, n_jobs=1).compile()
        compiled = time.perf_counter()
        values = explainer.shap_values(X)
        explaining = min(explaining, time.perf_counter() - compiled)
        compiling = min(compiling, compiled - begin)
    return {
        "instruction_set": kernels.instruction_set(),
        "compile": compiling,
        "explain": explaining,
        "values": values[:50].tolist(),
    }


def main() -> None:
    folder, task, *rest = sys.argv[1:]
    if task == "memory":
        found = _peak_memory(Path(folder), rest[0], int(rest[1]))
    else:
        found = _speed(Path(folder), int(rest[0]))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
