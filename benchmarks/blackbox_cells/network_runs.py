"""Cells of smooth models: accuracy, CPU seconds of fitting on one thread, microseconds a row."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

import fouriershap as fs
from blackbox_cells.networks import CLASSES, Split, against, split
from blackbox_cells.runs import Counted, import_fitters
from blackbox_cells.truth import r_squared

N_TIMED, N_LARGE = 1000, 1000  # rows that are timed, and rows of the background against which they are
REFINED = (1, 3)  # pairs
FEW, FEW_REFINED = 1, (1, 5)  # row of a background with which refining asks least, and pairs then
BUDGETS = {
    "diabetes": (1_000,),
    "diabetes_hard": (1_000, 5_000),
    "friedman": (1_000,),
    "california": (1_000,),
    "logistic": (1_000, 5_000),
    "breast": (5_000, 20_000),
    "credit": (5_000, 20_000),
    "credit_hard": (5_000, 20_000),
    "sgemm_tanh": (5_000, 20_000),
    "digits": (20_000,),
}
# SHAP R^2, CPU seconds of fitting, microseconds a row.
TARGETS = {
    ("diabetes", 1_000): (0.985, 1.0, 50),
    ("diabetes_hard", 1_000): (0.985, 1.0, 50),
    ("friedman", 1_000): (0.996, 1.0, 50),
    ("california", 1_000): (0.998, 1.0, 50),
    ("logistic", 1_000): (0.95, 1.5, 80),
    ("logistic", 5_000): (0.99, 3.0, 80),
    ("breast", 5_000): (0.955, 3.0, 80),
    ("breast", 20_000): (0.98, 8.0, 80),
    ("credit", 5_000): (0.985, 4.0, 80),
    ("credit", 20_000): (0.995, 12.0, 80),
    ("credit_hard", 5_000): (0.985, 4.0, 80),
    ("credit_hard", 20_000): (0.995, 12.0, 80),
    ("sgemm_tanh", 5_000): (0.99, 4.0, 120),
    ("sgemm_tanh", 20_000): (0.997, 10.0, 120),
    ("digits", 20_000): (0.90, 20.0, 1000),
}


def network_cell(name: str, method: str, budget: int, seed: int) -> dict[str, Any]:
    """`BlackBoxExplainer` on one thread."""
    from threadpoolctl import threadpool_limits

    found = split(name, seed)
    network, model = found.network, Counted(found.network.asked)
    import_fitters()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", fs.FidelityWarning)
        begin = time.process_time()
        explainer = fs.BlackBoxExplainer(
            model,
            network.frame(found.background),
            data=network.frame(found.data),
            method=method,
            budget=budget,
            random_state=seed,
            n_jobs=1,
        )
        fitted = time.process_time() - begin - model.seconds
        values = explainer.shap_values(network.frame(found.explained))
        rows = network.frame(np.resize(found.data, (N_TIMED, found.data.shape[1])))
        large = explainer.with_background(network.frame(found.data[:N_LARGE]))
        codes = large.inputs.encode(rows).codes
        begin = time.process_time()
        large.engine.shap_values(codes, 1)
        row = (time.process_time() - begin) / N_TIMED
    shap = explainer.fidelity.shap
    return {
        "shap_r2": accuracy(found, values),
        "ceiling": found.ceiling,
        "method": explainer.fit.method,
        "fidelity": [explainer.fidelity.r2, explainer.fidelity.low, explainer.fidelity.high],
        "shap_fidelity": None if shap is None else list(shap),
        "fit_cpu_seconds": fitted,
        "row_seconds": row,
        "model_seconds": model.seconds / model.count,
        "queries": model.count,
        "candidates": {line.name: [line.r2, line.seconds, line.note] for line in explainer.fit.candidates},
    }


def refine_cell(name: str, budget: int, seed: int) -> dict[str, Any]:
    """What asking the model again adds, by pairs of permutations for each background row."""
    found = split(name, seed)
    network, model = found.network, Counted(found.network.asked)
    frames = [network.frame(part) for part in (found.background, found.data, found.explained)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fs.FidelityWarning)
        explainer = fs.BlackBoxExplainer(
            model, frames[0], data=frames[1], budget=budget, random_state=seed, n_jobs=1
        )
    cell: dict[str, Any] = {"plain": accuracy(found, explainer.shap_values(frames[2]))}
    for pairs in REFINED:
        before = model.count
        cell[f"refined_{pairs}"] = accuracy(found, explainer.fit.refine(frames[2], pairs=pairs))
        cell[f"queries_{pairs}"] = (model.count - before) / len(found.explained)
    few = explainer.with_background(network.frame(found.background[:FEW]))
    truth = against(network, found.explained, found.background[:FEW])
    cell["few_plain"] = r_squared(truth, few.shap_values(frames[2]))
    for pairs in FEW_REFINED:
        cell[f"few_refined_{pairs}"] = r_squared(truth, few.fit.refine(frames[2], pairs=pairs))
    return cell


def accuracy(found: Split, values: np.ndarray) -> float:
    """R^2 of the values; of several classes the worst."""
    if values.ndim == 2:
        return r_squared(found.truth, values)
    return min(r_squared(found.truth[..., k], values[..., c]) for k, c in enumerate(CLASSES))
