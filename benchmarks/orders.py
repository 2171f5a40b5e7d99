"""Interactions of order 2 and 3 beside shapiq, 100 rows against 100: `python benchmarks/orders.py`.

CPU time on one thread, explainers made anew each time, the quickest of some rounds. shapiq is asked twice: by its
public TreeExplainer, and by the class beneath it row by row, which is its C++ with little around. Every number is
compared.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from _common import RESULTS, describe_machine, print_machine, time_interleaved, times, write_results
from _pages import markdown_table

PACKAGES = ("shapiq", "xgboost", "scikit-learn")
N_FEATURES = 30
INDICES = ("k-SII", "STII", "FSII")


def make_data(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, N_FEATURES)).astype(np.float32)
    y = X[:, 0] * X[:, 1] * (X[:, 2] > 0) + np.sin(X[:, 2]) + X[:, 3:8].sum(axis=1)
    return X, y + 0.1 * rng.normal(size=n_rows)


def make_models(X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    import xgboost
    from sklearn.ensemble import RandomForestRegressor

    models: dict[str, Any] = {
        f"XGBoost, 100 x depth {depth}": xgboost.XGBRegressor(n_estimators=100, max_depth=depth, n_jobs=1)
        for depth in (4, 6, 8)
    }
    models |= {
        f"random forest, 100 x depth {depth}": RandomForestRegressor(100, max_depth=depth, random_state=0)
        for depth in (6, 8, 10)
    }
    return {name: model.fit(X, y) for name, model in models.items()}


def contenders(
    model: Any, rows: np.ndarray, background: np.ndarray, order: int, index: str
) -> dict[str, Any]:
    import shapiq
    from shapiq.tree.interventional.computer import InterventionalTreeSHAPIQ

    import fouriershap as fs

    many, others = rows.astype(float), background.astype(float)

    def ours() -> Any:
        return fs.TreeExplainer(model, background, n_jobs=1).interactions(rows, order, index=index)

    def theirs() -> Any:
        options = {"mode": "interventional", "reference_dataset": others, "backend": "shapiq"}
        explainer = shapiq.TreeExplainer(model, index=index, max_order=order, min_order=1, **options)
        return explainer.explain_X(many)

    def beneath() -> Any:
        computer = InterventionalTreeSHAPIQ(model, others, max_order=order, index=index)
        return [computer.explain(row) for row in many]

    return {"fouriershap": ours, "shapiq": theirs, "shapiq, beneath": beneath}


def largest_difference(ours: Any, theirs: Any) -> float:
    """Over all sets that either lists, as a share of the largest value."""
    mine = dict(zip(ours.positions, ours.values.T, strict=True))
    none = np.zeros(len(ours.values))
    gaps = [mine.get(players, none) - theirs.values.get(players, none) for players in mine | theirs.values]
    return float(np.abs(gaps).max() / np.abs(ours.values).max())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--background", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    X, y = make_data(5000)
    background, rows = X[: options.background], X[-options.rows :]
    print_machine(PACKAGES)
    results, lines = [], []
    for name, model in make_models(X, y).items():
        for order in (2, 3):
            for index in INDICES:
                run = contenders(model, rows, background, order, index)
                differs = largest_difference(run["fouriershap"](), run["shapiq"]())
                spent = time_interleaved(run, rounds=options.rounds, most_seconds=20)
                ratios = [times(spent["fouriershap"], spent[peer])["cpu"] for peer in list(run)[1:]]
                results.append(
                    {"model": name, "order": order, "index": index, "differs": differs, "times": spent}
                )
                seconds = [f"{spent[contender].cpu_seconds:.3f}" for contender in run]
                ratio = [f"{value:.1f}" for value in ratios]
                lines.append((name, str(order), index, *seconds, *ratio, f"{differs:.0e}"))
                print(" | ".join(lines[-1]), flush=True)
    what = {"rows": options.rows, "background": options.background, "features": N_FEATURES}
    write_results("orders", what | {"cells": results}, PACKAGES)
    write_page(lines, options.rows, options.background)


def write_page(lines: list[tuple[str, ...]], n_rows: int, n_background: int) -> None:
    machine = describe_machine(PACKAGES)
    versions = ", ".join(f"{name} {found}" for name, found in machine["versions"].items())
    header = (
        "model",
        "order",
        "index",
        "ours, s",
        "shapiq, s",
        "beneath, s",
        "x shapiq",
        "x beneath",
        "differs",
    )
    text = (
        f"# Interactions of higher order\n\n{n_rows} rows, {n_background} background rows, {N_FEATURES} features; CPU "
        f"seconds on one thread, the explainer made anew each time.\n{machine['cpu']}; {versions}.\n"
        "`shapiq` is its public `TreeExplainer`, `beneath` the class that it calls, asked row by row; `x`: its time "
        "over ours; `differs`: the largest difference, as a share of the largest value.\n\n"
    )
    (RESULTS / "orders.md").write_text(text + markdown_table(header, lines) + "\n")


if __name__ == "__main__":
    main()
