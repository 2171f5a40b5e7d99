"""Partial dependence of 10 features over 100 points against 100,000 rows: `python benchmarks/dependence.py`.

Beside scikit-learn's brute force, which is asked for every tenth point of one feature and counted a hundred times, and
woodelf. CPU time on one thread, everything made anew each time; values are compared.
"""

from __future__ import annotations

import argparse
import os
from functools import partial
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from _cells import Cells
from _common import RESULTS, print_machine, time_interleaved
from _pages import markdown_table

PACKAGES = ("scikit-learn", "woodelf_explainer", "xgboost")
N_FEATURES, N_POINTS = 10, 100
PARTS = 10 * N_FEATURES  # of all that scikit-learn is asked for


def make_models(X: Any, y: np.ndarray) -> dict[str, Any]:
    import xgboost
    from sklearn.ensemble import HistGradientBoostingRegressor

    models = {
        "XGBoost, 100 x depth 6": xgboost.XGBRegressor(n_estimators=100, max_depth=6, n_jobs=1),
        "HistGradientBoosting, 100 x 31 leaves": HistGradientBoostingRegressor(),
    }
    return {name: model.fit(X, y) for name, model in models.items()}


def one_cell(model: Any, X: Any, rounds: int) -> dict[str, Any]:
    from sklearn.inspection import partial_dependence

    import fouriershap as fs

    def ours() -> Any:
        return fs.TreeExplainer(model, X, n_jobs=1).partial_dependence(list(X.columns), X)

    found = ours().curves[0]
    some = found.grid[0][::10]

    def brute() -> Any:
        return partial_dependence(model, X, ["f0"], method="brute", custom_values={"f0": some})

    def woodelf() -> Any:
        from woodelf.pdp import woodelf_pdp

        return woodelf_pdp(model, X, k=N_POINTS, centered=False, verbose=False)[0]

    gaps = [brute()["average"][0] - found.values[::10, 0]]
    run = {"fouriershap": ours, "scikit-learn, in part": brute}
    if type(model).__module__.startswith("xgboost"):  # woodelf does not read scikit-learn's histograms
        gaps.append(np.asarray(woodelf()["f0"]) - found.values[:, 0])
        run["woodelf"] = woodelf
    differs = max(float(np.abs(gap).max()) for gap in gaps)
    return {"differs": differs, "times": time_interleaved(run, rounds=rounds, most_seconds=30.0)}


def main() -> None:
    import pandas as pd

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--again", action="store_true", help="measure all cells again")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    names = [f"f{j}" for j in range(N_FEATURES)]
    X = pd.DataFrame(rng.normal(size=(options.rows, N_FEATURES)).astype(np.float32), columns=names)
    y = X.f0 * X.f1 * (X.f2 > 0) + np.sin(X.f2) + X.iloc[:, 3:8].sum(axis=1)
    models = make_models(X, y)
    print_machine(PACKAGES)
    cells = Cells(RESULTS / "dependence.json", PACKAGES, wanted=models)
    cells.page = lambda: page(cells)
    cells.beside = {"rows": options.rows, "features": N_FEATURES, "points": N_POINTS}
    for name, model in models.items():
        cell = cells.measure(name, partial(one_cell, model, X, options.rounds), again=options.again)
        print(" | ".join((name, *told(cell))), flush=True)
    cells.write()


def told(cell: dict[str, Any]) -> tuple[str, ...]:
    """Seconds, how many times ours, and how far apart the values are."""
    seconds = {name: each["cpu_seconds"] for name, each in cell["times"].items()}
    ours, brute = seconds["fouriershap"], PARTS * seconds["scikit-learn, in part"]
    woodelf = seconds.get("woodelf")
    theirs = ("", "") if woodelf is None else (f"{woodelf:.2f}", f"{woodelf / ours:.1f}")
    return f"{ours:.3f}", f"{brute:.0f}", f"{brute / ours:.0f}", *theirs, f"{cell['differs']:.0e}"


def page(cells: Cells) -> str:
    """A line for each cell that there is."""
    header = ("model", "ours, s", "scikit-learn, s", "x", "woodelf, s", "x", "differs")
    text = (
        f"# Partial dependence\n\n{N_FEATURES} features over {N_POINTS} points each, against 100,000 rows; CPU seconds "
        f"on one thread, the explainer made anew each time.\n{cells.told()}\n"
        "scikit-learn's brute force is asked for ten points of one feature, and counted a hundred times; `x`: its time "
        "over ours; `differs`: the largest difference.\n\n"
    )
    lines = [(name, *told(cell)) for name, cell in cells.found.items()]
    return text + markdown_table(header, lines) + "\n"


if __name__ == "__main__":
    main()
