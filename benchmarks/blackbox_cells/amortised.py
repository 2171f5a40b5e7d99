"""Paying once: many rows against a large background after one fit, and model calls per explained row."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

import fouriershap as fs
from blackbox_cells.models import SUBJECTS, data_set, draw_rows, predict_of
from blackbox_cells.runs import Counted

BUDGET = 20_000
N_ROWS, N_BACKGROUND = 100_000, 1_000


def many_rows(quick: bool) -> dict[str, Any]:
    """The SGEMM network, its 14 settings as players."""
    subject = SUBJECTS["sgemm14"]
    n_rows, n_background = (2_000, 100) if quick else (N_ROWS, N_BACKGROUND)
    rows, model = draw_rows(subject, 0), Counted(predict_of(subject))
    begin = time.perf_counter()
    explainer = fs.BlackBoxExplainer(
        model,
        rows.background,
        data=rows.data,
        method="trees",
        budget=2_000 if quick else BUDGET,
        groups=subject.groups,
        random_state=0,
        min_fidelity=0.0,
    )
    fitted = time.perf_counter()
    asked = model.count
    X = data_set(40).X.astype(np.float64)
    chosen = np.random.default_rng(9).permutation(len(X))
    explainer = explainer.with_background(X[chosen[:n_background]])
    explainer.shap_values(X[chosen[-1:]])
    compiled = time.perf_counter()
    explainer.shap_values(X[chosen[n_background : n_background + n_rows]])
    done = time.perf_counter()
    return {
        "rows": n_rows,
        "background": n_background,
        "queries": asked,
        "queries_after_fitting": model.count - asked,
        "fit_seconds": fitted - begin,
        "compile_seconds": compiled - fitted,
        "explain_seconds": done - compiled,
    }


def plot(budget: int, per_row: dict[str, float], path: Path) -> None:
    """Model calls per explained row against the number of rows, as PNG and SVG."""
    import matplotlib.pyplot as plt

    n = np.logspace(0, 6, 200)
    figure, axes = plt.subplots(figsize=(7.2, 4.4), layout="constrained")
    axes.loglog(n, budget / n, color="#c8102e", linewidth=2.5)
    at = 2_000
    axes.annotate(
        f"fouriershap: {budget:,} calls, once",
        (at, budget / at),
        xytext=(10, 6),
        textcoords="offset points",
        color="#c8102e",
        weight="bold",
    )
    for (label, calls), colour in zip(per_row.items(), ("#1f4e79", "#4d8fbf"), strict=False):
        axes.loglog(n, np.full_like(n, calls), color=colour, linewidth=2)
        text = f"{label}: {calls:,.0f} calls for every row"
        axes.annotate(text, (1e6, calls), xytext=(0, 5), textcoords="offset points", color=colour, ha="right")
    axes.set(xlabel="rows explained", ylabel="model calls per explained row", xlim=(1, 1e6))
    axes.set_title("Calls of the SGEMM network, 20 background rows", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, which="major", color="#e6e6e6", linewidth=0.8)
    axes.set_axisbelow(True)
    for suffix in (".png", ".svg"):
        figure.savefig(path.with_suffix(suffix), dpi=150)
    plt.close(figure)
