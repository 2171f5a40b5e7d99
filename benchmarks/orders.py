"""Interactions of order 2 and 3 beside shapiq, against rows or path-dependent: `python benchmarks/orders.py`.

CPU time on one thread, explainers made anew each time, the quickest of some rounds. shapiq is asked twice: by its
public TreeExplainer, and by the class beneath it row by row, which is its C++ with little around. Every number is
compared. Cells are kept one by one (`_cells.py`): a run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import os
from functools import partial
from types import SimpleNamespace
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from _cells import Cells
from _common import RESULTS, print_machine, time_interleaved
from _pages import markdown_table
from peers.trees import ABOUT_SHAPIQ

PACKAGES = ("shapiq", "xgboost", "scikit-learn")
N_FEATURES = 30
MOST_SECONDS = 10.0  # of the rounds of a cell; two are run anyhow
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
    model: Any, rows: np.ndarray, background: np.ndarray | None, order: int, index: str
) -> dict[str, Any]:
    """Return the calls; without a background the public ones alone, path-dependent."""
    import shapiq
    from shapiq.tree.interventional.computer import InterventionalTreeSHAPIQ

    import fouriershap as fs

    many = rows.astype(float)

    def ours() -> Any:
        return fs.TreeExplainer(model, background, n_jobs=1).interactions(rows, order, index=index)

    def theirs_by_path() -> Any:
        return shapiq.TreeExplainer(model, index=index, max_order=order, min_order=1).explain_X(many)

    if background is None:
        return {"fouriershap": ours, "shapiq": theirs_by_path}
    others = background.astype(float)

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


def one_cell(
    model: Any, rows: np.ndarray, background: np.ndarray | None, order: int, index: str, rounds: int
) -> dict[str, Any]:
    run = contenders(model, rows, background, order, index)
    theirs = run["shapiq"]()
    if isinstance(theirs, list):  # path-dependent: one result for each row
        sets = {players for one in theirs for players in one.dict_values if players}
        stacked = {players: np.array([one[players] for one in theirs]) for players in sets}
        theirs = SimpleNamespace(values=stacked)
    differs = largest_difference(run["fouriershap"](), theirs)
    return {"differs": differs, "times": time_interleaved(run, rounds=rounds, most_seconds=MOST_SECONDS)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--large", type=int, default=1000, help="rows and background rows of the last cell")
    parser.add_argument(
        "--again", action="store_true", help="measure all cells, those that are there as well"
    )
    options = parser.parse_args()
    X, y = make_data(5000)
    models = make_models(X, y)
    wanted = [(name, 100, order, index) for name in models for order in (2, 3) for index in INDICES]
    wanted.append(("XGBoost, 100 x depth 6", options.large, 3, "STII"))
    print_machine(PACKAGES)
    labelled = {
        (name, f"{n:,} x {n:,}", str(order), index): (n, n, order) for name, n, order, index in wanted
    }
    by_path = [name for name in models if name.endswith("depth 6")]
    labelled |= {
        (name, f"{n:,}, path-dependent", "3", "k-SII"): (n, 0, 3)
        for name in by_path
        for n in (100, options.large)
    }
    cells = Cells(RESULTS / "orders.json", PACKAGES, wanted=map(", ".join, labelled))
    cells.page = lambda: page(cells, list(labelled))
    cells.beside = {"features": N_FEATURES}
    for labels, (n, n_background, order) in labelled.items():
        background = X[:n_background] if n_background else None
        work = partial(one_cell, models[labels[0]], X[-n:], background, order, labels[-1], options.rounds)
        found = told(cells.measure(", ".join(labels), work, again=options.again))
        print(" | ".join((*labels, *found)), flush=True)
    cells.write()


def told(cell: dict[str, Any]) -> tuple[str, ...]:
    """Seconds, how many times ours, and how far apart the numbers are."""
    ours, *others = (each["cpu_seconds"] for each in cell["times"].values())
    nothing = [""] * (2 - len(others))  # path-dependent: nothing is asked beneath
    seconds = (f"{value:.3f}" for value in (ours, *others))
    times = (f"{other / ours:.1f}" for other in others)
    return (*seconds, *nothing, *times, *nothing, f"{cell['differs']:.0e}")


def page(cells: Cells, labelled: list[tuple[str, ...]]) -> str:
    """A line for each cell that there is."""
    there = {labels: cells.found.get(", ".join(labels)) for labels in labelled}
    lines = [(*labels, *told(cell)) for labels, cell in there.items() if cell is not None]
    header = (
        "model",
        "rows",
        "order",
        "index",
        "ours, s",
        "shapiq, s",
        "beneath, s",
        "x shapiq",
        "x beneath",
    )
    text = (
        f"# Interactions of higher order\n\nRows x background rows, {N_FEATURES} features; CPU seconds on one thread, "
        f"the explainer made anew each time.\n{cells.told()}\n"
        "`shapiq` is its public `TreeExplainer`, `beneath` the class that it calls, asked row by row; `x`: its time "
        "over ours; `differs`: the largest difference, as a share of the largest value. "
        f"{ABOUT_SHAPIQ}\n\n"
    )
    return text + markdown_table((*header, "differs"), lines) + "\n"


if __name__ == "__main__":
    main()
