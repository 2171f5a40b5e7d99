"""Models of the sizes that are in use, 1,000 x 1,000 and 10,000 x 10,000 rows."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import fouriershap as fs
from deep_cells import models

GROUP = "sizes"
LARGE = (
    "forest classifier:100",
    "forest regressor, leaves of 5:100",
    "lightgbm:500:255",
    "lightgbm:1000:63",
    "xgboost:1000:8",
)
MODELS = (*LARGE, *(name + models.DIGITS for name in LARGE))
SIZES = (1_000, 10_000)
_LONG = 5.0  # seconds: measured once
_WALKED = 64  # rows: the walk is extrapolated
AGREES = 2e-6  # of the largest value


def run(name: str) -> list[dict[str, Any]]:
    """CPU seconds on one thread: of a first call, of the walk, of the library's own predict; values compared."""
    return [_cell(name, size) for size in SIZES if size == SIZES[-1] or not name.endswith(models.DIGITS)]


def _cell(name: str, size: int) -> dict[str, Any]:
    X, background = models.rows(size, name), models.background(size, name)
    explainer, walking = _explainer(name, background, "auto"), _explainer(name, background, "walk")
    seconds, values = _timed(lambda: explainer.shap_values(X))
    repeats = 0 if seconds > _LONG else 3
    again = min((_timed(lambda: explainer.shap_values(X))[0] for _ in range(repeats)), default=seconds)
    walked, want = _timed(lambda: walking.shap_values(X[:_WALKED]))
    error = float(np.abs(values[:_WALKED] - want).max() / np.abs(want).max())
    if error > AGREES:
        raise SystemExit(f"{name}, {size}: values differ from the walk by {error:.1e} of the largest.")
    cell = {"model": name, "rows": size, "chosen": explainer.plan(size).strategy, "error": error}
    cell |= {"seconds": seconds, "again": again, "walk": walked * size / _WALKED}
    return cell | {"predict": _predict(name, X), "megabytes": _memory(name, size)}


def _explainer(name: str, background: np.ndarray, strategy: str) -> fs.Explainer:
    return fs.TreeExplainer(models.model(name), background, strategy=strategy, check=False, n_jobs=1)


def _timed(work: Any) -> tuple[float, np.ndarray]:
    begin = time.process_time()
    found = work()
    return time.process_time() - begin, found


def _predict(name: str, X: np.ndarray) -> float:
    model = models.model(name)
    model.set_params(n_jobs=1)
    ask = model.predict_proba if "classifier" in name else model.predict
    return min(_timed(lambda: ask(X))[0] for _ in range(3))


def _memory(name: str, size: int) -> float:
    """Megabytes that a call needs beyond model, data and answer, in a process of its own."""
    command = [sys.executable, "-m", "deep_cells.sizes", name, str(size)]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, cwd=Path(__file__).parent.parent
    )
    return float(done.stdout.split()[-1])


def _megabytes(field: str) -> float:
    """Memory of this process: in use (VmRSS), or the most since the peak was forgotten (VmHWM)."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) / 1024


def main(name: str, size: int) -> None:
    X, background = models.rows(size, name), models.background(size, name)
    explainer = _explainer(name, background, "auto")
    explainer.shap_values(X[:1])
    gc.collect()
    ctypes.CDLL(None).malloc_trim(
        0
    )  # what reading the model has left free would be used again, and not be seen
    Path("/proc/self/clear_refs").write_text("5")  # forgets the peak
    before = _megabytes("VmRSS")
    answer = explainer.shap_values(X)
    print(max(_megabytes("VmHWM") - before - answer.nbytes / 2**20, 0.0))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
