"""LightGBM's linear trees beside plain ones, 10,000 rows against 10,000: `python benchmarks/linear_trees.py`.

CPU time on one thread, from the live model to the values, the explainer made anew each time. The values of some rows
against a few background rows are compared with the definition, which asks LightGBM about every hybrid row, and the sums
of all values with its raw output.
"""

from __future__ import annotations

import argparse
import os
from functools import partial
from itertools import combinations
from math import comb
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from _cells import Cells
from _common import RESULTS, print_machine, time_interleaved
from _pages import markdown_table

PACKAGES = ("lightgbm",)
N_ROWS, N_FEATURES, N_COMPARED = 10_000, 10, 4
CASES = {"no missing numbers": 0.0, "5 % of the numbers missing": 0.05}


def by_definition(model: Any, rows: np.ndarray, background: np.ndarray) -> np.ndarray:
    """SHAP values (n_rows, n_features), over all coalitions."""
    out, worth = np.zeros(rows.shape), {}
    for size in range(N_FEATURES + 1):
        for chosen in map(list, combinations(range(N_FEATURES), size)):
            mixed = np.tile(background, (len(rows), 1))
            mixed[:, chosen] = np.repeat(rows[:, chosen], len(background), axis=0)
            worth[tuple(chosen)] = model.predict(mixed).reshape(len(rows), -1).mean(axis=1)
    for chosen, value in worth.items():
        for j in set(range(N_FEATURES)) - set(chosen):
            share = 1 / (N_FEATURES * comb(N_FEATURES - 1, len(chosen)))
            out[:, j] += share * (worth[tuple(sorted((*chosen, j)))] - value)
    return out


def one_cell(missing: float, rounds: int) -> dict[str, Any]:
    import lightgbm

    import fouriershap as fs

    rng = np.random.default_rng(0)
    X = rng.normal(size=(2 * N_ROWS, N_FEATURES))
    y = X[:, 0] * X[:, 1] + np.maximum(X[:, 2], 0) * X[:, 3] + np.sin(X[:, 4]) + X[:, 5] * (X[:, 6] > 0)
    X[rng.random(X.shape) < missing] = np.nan
    settings = {"n_estimators": 100, "num_leaves": 31, "verbose": -1, "n_jobs": 1}
    plain = lightgbm.LGBMRegressor(**settings).fit(X, y)
    linear = lightgbm.LGBMRegressor(**settings, linear_tree=True).fit(X, y)
    background, rows = X[:N_ROWS], X[N_ROWS:]

    def explain(model: Any) -> Any:
        return fs.TreeExplainer(model, background, n_jobs=1)(rows)

    found = explain(linear)
    sums = found.values.sum(axis=1) + found.base_values - linear.predict(rows)
    few = fs.TreeExplainer(linear, background[:N_COMPARED]).shap_values(rows[:N_COMPARED])
    gap = few - by_definition(linear, rows[:N_COMPARED], background[:N_COMPARED])
    contenders = {"plain": partial(explain, plain), "linear": partial(explain, linear)}
    return {
        "definition": float(np.abs(gap).max()),
        "additivity": float(np.abs(sums).max()),
        "times": time_interleaved(contenders, rounds=rounds),
    }


def told(cell: dict[str, Any]) -> tuple[str, ...]:
    plain, linear = (cell["times"][name]["cpu_seconds"] for name in ("plain", "linear"))
    gaps = (f"{cell[name]:.0e}" for name in ("definition", "additivity"))
    return f"{plain:.3f}", f"{linear:.3f}", f"{linear / plain:.1f}", *gaps


def page(cells: Cells) -> str:
    """A line for each cell that there is."""
    header = ("data", "plain trees, s", "linear trees, s", "x", "from definition", "from raw output")
    text = (
        f"# LightGBM's linear trees\n\n100 trees of 31 leaves on {N_FEATURES} features, {N_ROWS:,} rows against "
        f"{N_ROWS:,}; CPU seconds on one thread, from the live model to the values.\n{cells.told()}\n"
        f"`from definition`: the largest difference of the values of {N_COMPARED} rows against {N_COMPARED} from all "
        "coalitions by LightGBM's own predictions; `from raw output`: that of the sums of all values.\n\n"
    )
    return text + markdown_table(header, [(name, *told(cell)) for name, cell in cells.found.items()]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--again", action="store_true", help="measure all cells again")
    options = parser.parse_args()
    print_machine(PACKAGES)
    cells = Cells(RESULTS / "linear_trees.json", PACKAGES, wanted=CASES)
    cells.page = lambda: page(cells)
    for name, missing in CASES.items():
        cell = cells.measure(name, partial(one_cell, missing, options.rounds), again=options.again)
        print(" | ".join((name, *told(cell))), flush=True)
    cells.write()


if __name__ == "__main__":
    main()
