"""One row at a time, against 1,000 background rows, when everything is built: what a server takes for a request."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import fouriershap as fs
from deep_cells import models
from peers.own_predict import own_predict

GROUP = "serving"
MODELS = (
    "lightgbm:100:31",
    "xgboost:100:6",
    "lightgbm:1000:63",
    "xgboost:1000:8",
    "forest classifier:100",
    "forest regressor, leaves of 5:100",
)
N_BACKGROUND, N_ROWS, ROUNDS = 1_000, 20, 3


def run(name: str) -> list[dict[str, Any]]:
    """CPU milliseconds: the median over rows of the least of several rounds, ours and the library's in turn."""
    model, background = models.model(name), models.background(N_BACKGROUND)
    explainer = fs.TreeExplainer(model, background, check=False, n_jobs=1)
    build = _seconds(explainer.compile)
    ask = own_predict(model)
    rows = models.rows(N_ROWS)
    ours, own = (np.full(N_ROWS, np.inf) for _ in range(2))
    for _ in range(ROUNDS):
        for k in range(N_ROWS):
            row = rows[k : k + 1]
            ours[k] = min(ours[k], _seconds(lambda row=row: explainer.shap_values(row)))
            own[k] = min(own[k], _seconds(lambda row=row: ask(row)))
    cell = {"model": name, "background": N_BACKGROUND, "road": explainer.plan(1).strategy, "build": build}
    cell |= {"megabytes": explainer.info.table_bytes / 1e6}
    return [cell | {"milliseconds": float(np.median(ours)) * 1e3, "predict": float(np.median(own)) * 1e3}]


def _seconds(work: Callable[[], Any]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin
