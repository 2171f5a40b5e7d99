"""The certificate of SHAP values: how often its 95 % interval holds the truth.

    python benchmarks/certificate.py                  # what is not in results/certificate.json yet
    python benchmarks/certificate.py --only california --repeats 100

A model is fitted once. Its values of 20 rows have an R^2 against the true ones (the definition, or converged
permutations; see blackbox.py), and are certified again and again, by other random numbers. Every finished model is
written at once.
"""

from __future__ import annotations

import argparse
import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

import fouriershap as fs
from _cells import Cells
from _common import RESULTS
from blackbox_cells.networks import N_BACKGROUND, N_EXPLAINED, Network, Split, split
from blackbox_cells.truth import enumerated, r_squared

BUDGETS = {
    "diabetes": 1_000,
    "diabetes_hard": 1_000,
    "california": 1_000,
    "logistic": 1_000,
    "breast": 5_000,
    "credit": 5_000,
    "sgemm_tanh": 5_000,
    "spike": 1_000,
}
SEED = 0
METHOD = (
    f"Per model: one fit, {N_EXPLAINED} rows against {N_BACKGROUND} background rows, `certify` of these rows with "
    "other random numbers each time. Asked: 90 to 98 of 100 intervals hold the true R^2.",
)


def spike_split() -> Split:
    """A smooth function of six columns, and a spike in one of a hundred rows."""
    rng = np.random.default_rng(SEED)
    data = rng.normal(size=(4000, 6))

    def predict(rows: np.ndarray) -> np.ndarray:
        return np.tanh(rows @ np.linspace(-1, 1, 6)) + 5.0 * ((rows[:, 0] > 1.5) & (rows[:, 1] > 1.0))

    parts = np.split(data, [N_EXPLAINED, N_EXPLAINED + N_BACKGROUND])
    truth = enumerated(predict, parts[0], parts[1], np.arange(6))
    return Split(Network(predict, data), *parts, truth, 1.0)


def coverage(name: str, repeats: int) -> dict[str, Any]:
    found = spike_split() if name == "spike" else split(name, SEED)
    network = found.network
    frames = [network.frame(part) for part in (found.background, found.data, found.explained)]
    explainer = fs.BlackBoxExplainer(
        network.asked, frames[0], data=frames[1], budget=BUDGETS[name], random_state=SEED, n_jobs=1
    )
    true = r_squared(found.truth, explainer.shap_values(frames[2]))
    queries = 4 * N_EXPLAINED * len(explainer.player_names)
    intervals = []
    for repeat in range(repeats):
        explainer.fit._live = replace(explainer.fit._live, seed=1000 + repeat)
        intervals.append(explainer.fit.certify(frames[2], queries=queries))
    low, high = (np.array([getattr(i, end) for i in intervals]) for end in ("low", "high"))
    return {
        "true_r2": true,
        "mean_estimate": float(np.mean([i.r2 for i in intervals])),
        "median_low": float(np.median(low)),
        "median_high": float(np.median(high)),
        "held": int(((low <= true) & (true <= high)).sum()),
        "too_high": int((low > true).sum()),
        "repeats": repeats,
        "queries": queries,
    }


def markdown(cells: Cells) -> str:
    head = "| model | true R^2 | mean estimate | median interval | held | claimed too much | queries |"
    lines = ["# The certificate of SHAP values", "", *METHOD, "", cells.told(), "", head, "|" + "---|" * 7]
    for name, cell in cells.found.items():
        ends = f"{cell['median_low']:.3f} to {cell['median_high']:.3f}"
        lines.append(
            f"| {name} | {cell['true_r2']:.4f} | {cell['mean_estimate']:.4f} | {ends} | {cell['held']} of "
            f"{cell['repeats']} | {cell['too_high']} | {cell['queries']:,} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=list(BUDGETS), help="again, these models")
    parser.add_argument("--repeats", type=int, default=100)
    arguments = parser.parse_args()
    # How often an interval holds does not depend on what else the machine does.
    cells = Cells(
        RESULTS / "certificate.json", ("scikit-learn",), math.inf, where=("results", "cells"), wanted=BUDGETS
    )
    cells.beside = {"method": METHOD}
    cells.page = lambda: markdown(cells)
    warnings.simplefilter("ignore", fs.FidelityWarning)
    for name in arguments.only or BUDGETS:
        found = cells.measure(
            name, lambda name=name: coverage(name, arguments.repeats), again=bool(arguments.only)
        )
        print(name, found, flush=True)


if __name__ == "__main__":
    main()
