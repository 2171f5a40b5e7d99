"""Drift of many rows against a large background, in multiples of explaining the rows: `python benchmarks/drift.py`."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import xgboost

import fouriershap as fs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--background", type=int, default=100_000)
    parser.add_argument("--features", type=int, default=30)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    X = rng.normal(size=(options.background, options.features)).astype(np.float32)
    y = X[:, 0] * X[:, 1] + np.sin(X[:, 2]) + X[:, 3:8].sum(axis=1) + rng.normal(size=len(X))
    model = xgboost.XGBRegressor(n_estimators=100, max_depth=6, n_jobs=2).fit(X, y)
    new = rng.normal(size=(options.rows, options.features)).astype(np.float32) + np.float32(0.1)
    explainer = fs.TreeExplainer(model, X).compile()
    explainer.shap_values(new[:1000])
    seconds = {}
    for name, work in (
        ("explaining the rows", lambda: explainer.shap_values(new)),
        ("drift, no intervals", lambda: explainer.drift(new, level=None)),
        ("drift", lambda: explainer.drift(new)),
        ("drift, 12 groups", lambda: explainer.drift(new, by=np.arange(len(new)) % 12)),
    ):
        begin, cpu = time.perf_counter(), time.process_time()
        work()
        seconds[name] = (time.perf_counter() - begin, time.process_time() - cpu)
    unit = seconds["explaining the rows"][1]
    what = f"XGBoost, 100 trees of depth 6, {options.features} features"
    lines = [
        f"{what}: {len(new):,} rows, {len(X):,} background rows.",
        "",
        "| what | CPU seconds | times explaining |",
        "|---|---:|---:|",
        *(f"| {name} | {cpu:.2f} | {cpu / unit:.2f} |" for name, (_, cpu) in seconds.items()),
    ]
    print("\n".join(lines))
    (Path(__file__).parent / "results" / "drift.md").write_text("\n".join(["# Drift", "", *lines, ""]))


if __name__ == "__main__":
    main()
