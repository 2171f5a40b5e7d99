"""Does `auto` choose well? Ten models from stumps to full forests, rows and background from 1 to 10,000."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

import fouriershap as fs
from deep_cells import models
from fouriershap._shapley.trees.engine import TreeEngine
from fouriershap._shapley.trees.model import make_background

GROUP = "regret"
SIZES = (1, 10, 100, 1_000, 10_000)
MODELS = (
    "xgboost:300:1",
    "xgboost:100:3",
    "xgboost:100:6",
    "xgboost:100:8",
    "lightgbm:100:31",
    "lightgbm:100:63",
    "lightgbm:50:255",
    "forest, depth 8:50",
    "forest regressor, leaves of 5:10",
    "forest classifier:10",
)
STRATEGIES = ("walk", "stream", "tables")
_MOST_SECONDS = 15.0  # of a strategy: beyond, it is extrapolated from fewer rows, or not the quickest anyway
_TABLE_BYTES = 4 << 30


def run(name: str) -> list[dict[str, Any]]:
    """A cell per number of rows and of background rows: CPU seconds by strategy, on one thread, tables built."""
    explainer = fs.TreeExplainer(models.model(name), models.background(2), memory=_TABLE_BYTES, check=False)
    read, cells = explainer.engine.model, []
    for n_rows, n_background in product(SIZES, SIZES):
        X = explainer.inputs.encode(models.rows(n_rows)).codes
        others = explainer.inputs.encode(models.background(n_background)).codes
        auto = TreeEngine(read, make_background(read, others))
        seconds: dict[str, float] = {}
        for strategy in STRATEGIES:
            seconds[strategy] = _measure(auto, strategy, X, others, min(seconds.values(), default=math.inf))
        chosen = auto.plan(n_rows).strategy
        taken = sum(seconds[strategy] for strategy in chosen.split("+"))
        cell = {"model": name, "rows": n_rows, "background": n_background, "chosen": chosen}
        cells.append(cell | {"seconds": seconds, "regret": taken / min(seconds.values())})
    return cells


def _measure(auto: TreeEngine, strategy: str, X: np.ndarray, others: np.ndarray, best: float) -> float:
    """CPU seconds of a first call by one strategy; infinite where that is not possible, or far beyond the best."""
    model, n_rows, most = replace(auto.model, strategy=strategy), len(X), 20 * best + 1
    if strategy == "walk":
        X = X[: max(8, int(4e6 / len(others) / model.ensemble.n_trees))]
    elif strategy == "stream" and auto.plan(n_rows).stream_seconds > most:
        return math.inf
    elif strategy == "tables":
        build = auto.plan(None).build_seconds
        if not auto.in_tables.all() or build > min(_MOST_SECONDS, most):
            return math.inf
    found = math.inf
    for _ in range(3):
        begin = time.process_time()
        TreeEngine(model, auto.tree_background).shap_values(X, n_jobs=1)
        found = min(found, (time.process_time() - begin) * n_rows / len(X))
        if found > 0.3:
            break
    return found
