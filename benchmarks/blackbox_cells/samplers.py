"""Cells of samplers, which ask the model anew for each row: as many rows as some seconds allow."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from blackbox_cells.models import SUBJECTS, draw_rows, predict_of
from blackbox_cells.networks import CLASSES, split
from blackbox_cells.runs import Counted
from blackbox_cells.truth import r_squared, truth_of
from peers import Explain, Predict, missing
from peers.kernel_shap import kernel_shap
from peers.light_shap import light_shap
from peers.permutation import permutation
from peers.shapiq_peers import shapiq

SECONDS = 4.0  # of wall-clock time, after which no other row is begun
# What it needs, and the function of a model, a background and a seed that gives what explains rows.
SAMPLERS: dict[str, tuple[str, Callable[[Predict, np.ndarray, int], Explain]]] = {
    "KernelSHAP": ("shap", partial(kernel_shap, all_features=True)),
    "PermutationSHAP": ("shap", partial(permutation, rounds=10)),
    "shapiq-KernelSHAP": ("shapiq", partial(shapiq, method="kernelshap")),
    "OddSHAP": ("shapiq", partial(shapiq, method="oddshap")),
    "PolySHAP": ("shapiq", partial(shapiq, method="polyshap")),
    "ProxySHAP": ("shapiq", partial(shapiq, method="proxyshap")),
    "LightSHAP": ("lightshap", light_shap),
}


def can_run(way: str) -> str | None:
    """Why a sampler cannot run here; None where it can."""
    module, _ = SAMPLERS[way]
    reason = missing(module)
    if reason is None and way in ("OddSHAP", "PolySHAP", "ProxySHAP"):
        reason = None if hasattr(__import__(module), way) else f"this {module} has no {way}"
    return reason


def sampler_cell(name: str, way: str, seed: int) -> dict[str, Any]:
    """A sampler on one thread: accuracy, queries and CPU seconds a row; of several classes, the first compared."""
    from threadpoolctl import threadpool_limits

    predict, background, rows, truth = _task(name, seed)
    model = Counted(predict)
    with threadpool_limits(1):
        explain = SAMPLERS[way][1](model, background, seed)
        model.count, model.seconds = 0, 0.0  # some ask while they are made
        values, begin, cpu = [], time.perf_counter(), time.process_time()
        while len(values) < len(rows) and (not values or time.perf_counter() - begin < SECONDS):
            values.append(explain(rows[len(values)][None])[0])
        seconds = time.process_time() - cpu - model.seconds
    n = len(values)
    return {
        "shap_r2": r_squared(truth[:n], np.array(values)),
        "rows": n,
        "fit_seconds": 0.0,
        "fit_cpu_seconds": 0.0,
        "row_seconds": seconds / n,
        "model_seconds": model.seconds / model.count,
        "queries": model.count,
        "queries_per_row": model.count / n,
    }


def _task(name: str, seed: int) -> tuple[Predict, np.ndarray, np.ndarray, np.ndarray]:
    """The model, background rows, rows, and their true values; strings are given to samplers as numbers."""
    if name in SUBJECTS:
        rows = draw_rows(SUBJECTS[name], seed)
        return (
            predict_of(SUBJECTS[name]),
            rows.background,
            rows.explained,
            truth_of(SUBJECTS[name], seed)[0],
        )
    found = split(name, seed)
    if found.truth.ndim == 2:
        return found.network.predict, found.background, found.explained, found.truth
    return (
        lambda some: found.network.predict(some)[:, CLASSES[0]],
        found.background,
        found.explained,
        found.truth[..., 0],
    )
