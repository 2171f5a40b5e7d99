"""One fresh row at a time, call overhead included, beside the library's own predict of the same row."""

from __future__ import annotations

import time

import numpy as np

import fouriershap as fs
from peers.own_predict import own_predict
from tree_cells import models
from tree_cells.explain import PREDICT
from tree_cells.race import OURS, Cell, Outcome, Target

GROUP = "latency"
N_BACKGROUND = 10_000


def run(name: str, quick: bool) -> Outcome:
    """Medians over many different rows: the same row again would be a fiction of the branch predictor."""
    n_rows = {"forest": 100}.get(name, 2_000) // (5 if quick else 1)
    X = models.rows(n_rows)
    explainer = fs.TreeExplainer(models.model(name), models.background(N_BACKGROUND)).compile()
    contenders = {OURS: explainer.shap_values, PREDICT: own_predict(models.model(name))}
    seconds = {who: np.empty(n_rows) for who in contenders}
    for i in range(n_rows):
        row = X[i : i + 1]
        for who, call in contenders.items():
            begin = time.perf_counter()
            call(row)
            seconds[who][i] = time.perf_counter() - begin
    cell = Cell(GROUP, models.NAMES[name], f"one row, median of {n_rows:,}")
    cell.wall = {who: float(np.median(found)) for who, found in seconds.items()}
    cell.runs = dict.fromkeys(contenders, n_rows)
    cell.notes = [
        f"{who}: 99th percentile {np.quantile(found, 0.99) * 1e6:.0f} us" for who, found in seconds.items()
    ]
    outcome = Outcome([cell])
    if name == "xgboost":
        quickest = min(cell.wall[who] for who in contenders if who != OURS)
        what = f"{models.NAMES[name]}: one fresh row, as a multiple of its own predict of the row"
        outcome.targets.append(Target(what, cell.wall[OURS] / quickest, 1.0, at_least=False))
    return outcome
