"""Drift of many rows against a large background, in multiples of explaining the rows: `python benchmarks/drift.py`."""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import xgboost

import fouriershap as fs
from _cells import Cells
from _common import RESULTS, cores


def measure(n_rows: int, n_background: int, n_features: int) -> dict[str, Any]:
    """CPU seconds of each question, on one model."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_background, n_features)).astype(np.float32)
    y = X[:, 0] * X[:, 1] + np.sin(X[:, 2]) + X[:, 3:8].sum(axis=1) + rng.normal(size=len(X))
    model = xgboost.XGBRegressor(n_estimators=100, max_depth=6, n_jobs=2).fit(X, y)
    new = rng.normal(size=(n_rows, n_features)).astype(np.float32) + np.float32(0.1)
    explainer = fs.TreeExplainer(model, X).compile()
    explainer.shap_values(new[:1000])
    took = {}
    for name, work in (
        ("explaining the rows", lambda: explainer.shap_values(new)),
        ("drift, no intervals", lambda: explainer.drift(new, level=None)),
        ("drift", lambda: explainer.drift(new)),
        ("drift, 12 groups", lambda: explainer.drift(new, by=np.arange(len(new)) % 12)),
    ):
        begin = time.process_time()
        work()
        took[name] = time.process_time() - begin
    return {"cpu_seconds": took}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--background", type=int, default=100_000)
    parser.add_argument("--features", type=int, default=30)
    options = parser.parse_args()
    size = (options.rows, options.background, options.features)
    what = f"XGBoost, 100 trees of depth 6, {size[2]} features: {size[0]:,} rows, {size[1]:,} background rows"
    cells = Cells(RESULTS / "drift.json", ("xgboost",), wanted=(what,))
    took = cells.measure(what, lambda: measure(*size), threads=cores())["cpu_seconds"]
    unit = took["explaining the rows"]
    lines = [f"{what}.", "", cells.told(), "", "| what | CPU seconds | times explaining |", "|---|---:|---:|"]
    lines += [f"| {name} | {cpu:.2f} | {cpu / unit:.2f} |" for name, cpu in took.items()]
    print("\n".join(lines))
    (RESULTS / "drift.md").write_text("\n".join(["# Drift", "", *lines, ""]))


if __name__ == "__main__":
    main()
