"""Numbers of docs/questions.md about importance and cohorts: `python benchmarks/questions.py`, some three minutes.

- Columns that matter, and columns of noise: how often the test of `importance` calls them helpful at 5 %.
- Importance by loss beside the package `sage-importance` (`pip install sage-importance`; left out where it is missing).
- Groups that do not differ: how often the 95 % intervals of `cohorts` hold 0.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor

import fouriershap as fs
from _cells import Cells
from _common import RESULTS, print_machine
from _pages import markdown_table

PACKAGES = ("scikit-learn", "sage-importance")
N_COLUMNS, N_USEFUL = 6, 2
LOSSES = ("squared_error", "log_loss")


def make_data(n_rows: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Two columns that matter, together, and four that do not."""
    X = rng.normal(size=(n_rows, N_COLUMNS))
    return X, 2 * X[:, 0] * X[:, 1] + X[:, 0] + rng.normal(size=n_rows)


def size_of_test(n_draws: int) -> dict[str, Any]:
    """Shares of draws in which each column was called helpful, on rows that the model was not trained on."""
    rng = np.random.default_rng(0)
    found = {}
    for loss in LOSSES:
        hits = np.zeros(N_COLUMNS)
        for _ in range(n_draws):
            (X, y), (new, labels) = make_data(200, rng), make_data(300, rng)
            options = {"n_estimators": 30, "max_depth": 3, "random_state": 0}
            if loss == "log_loss":
                y, labels = y > 0, (labels > 0).astype(float)
                model: Any = GradientBoostingClassifier(**options).fit(X, y)
            else:
                model = GradientBoostingRegressor(**options).fit(X, y)
            explainer = fs.TreeExplainer(model, X, n_jobs=1)
            answer = explainer.importance(new, labels, loss=loss, budget=50)
            hits += np.asarray(answer.p_values) < 0.05
        found[loss] = (hits / n_draws).tolist()
    return found


def beside_sage() -> dict[str, Any]:
    """Our values, exact and sampled, and those of sage with its standard errors."""
    import sage

    rng = np.random.default_rng(1)
    model = GradientBoostingRegressor(n_estimators=50, max_depth=3, random_state=0).fit(*make_data(2000, rng))
    (background, _), (X, y) = make_data(64, rng), make_data(500, rng)
    explainer = fs.TreeExplainer(model, background, n_jobs=1)
    exact = explainer.importance(X, y, budget=10**8)
    sampled = explainer.importance(X, y, budget=500 * 16 * (N_COLUMNS - 1) * 8)
    imputer = sage.MarginalImputer(model, background)
    theirs = sage.PermutationEstimator(imputer, "mse")(X, y, bar=False, thresh=0.01)
    return {
        "methods": [exact.method, sampled.method],
        "exact": exact.values[:, 0].tolist(),
        "sampled": sampled.values[:, 0].tolist(),
        "sampled_error": sampled.error.tolist(),
        "sage": theirs.values.tolist(),
        "sage_error": theirs.std.tolist(),
    }


def cohorts_alike(n_draws: int) -> list[float]:
    """Shares of draws, of 100 rows in two groups at random, in which intervals of differences held 0."""
    rng = np.random.default_rng(2)
    X, y = make_data(2000, rng)
    model = GradientBoostingRegressor(n_estimators=30, max_depth=3, random_state=0).fit(X, y)
    explainer = fs.TreeExplainer(model, X[:200], strategy="tables", n_jobs=1)
    hits = np.zeros(N_COLUMNS)
    for _ in range(n_draws):
        rows = rng.normal(size=(100, N_COLUMNS))
        found = explainer.cohorts(rows, by=rng.permutation(100) < 40)
        hits += (found.difference_low[0, :, 0] <= 0) & (found.difference_high[0, :, 0] >= 0)
    return (hits / n_draws).tolist()


def page(kept: Cells) -> str:
    columns = tuple(f"column {k}" for k in range(N_COLUMNS))
    text = [
        f"# Importance and cohorts\n\n{kept.told()} Columns 0 and 1 matter, models fitted the others to noise.\n"
    ]
    if "test" in kept.found:
        test = kept.found["test"]
        lines = [(loss, *(f"{share:.3f}" for share in test[loss])) for loss in LOSSES]
        text += [
            f"Share of {test['draws']} draws in which the test at 5 % called a column helpful:\n",
            markdown_table(("loss", *columns), lines),
        ]
    if "sage" in kept.found:
        beside = kept.found["sage"]
        ours = zip(beside["exact"], beside["sampled"], beside["sampled_error"], strict=True)
        theirs = zip(beside["sage"], beside["sage_error"], strict=True)
        lines = [
            (column, f"{a:.4f}", f"{b:.4f}", f"{c:.4f}", f"{d:.4f}", f"{e:.4f}", f"{(d - a) / e:+.1f}")
            for column, (a, b, c), (d, e) in zip(columns, ours, theirs, strict=True)
        ]
        heads = ("", "exact", "sampled", "its error", "sage", "its error", "sage less exact, in its errors")
        text += [
            "\nSquared error saved, 500 rows, 64 background rows, the same for both:\n",
            markdown_table(heads, lines),
        ]
    if "cohorts" in kept.found:
        text += [
            "\nTwo groups of 100 rows that do not differ: share of draws in which 95 % intervals held 0:\n",
            markdown_table(columns, [tuple(f"{share:.3f}" for share in kept.found["cohorts"]["held"])]),
        ]
    return "\n".join([*text, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=300)
    options = parser.parse_args()
    print_machine(PACKAGES)
    draws = options.draws
    work: dict[str, Callable[[], dict[str, Any]]] = {
        "test": lambda: size_of_test(draws) | {"draws": draws},
        "cohorts": lambda: {"held": cohorts_alike(draws), "draws": draws},
    }
    if find_spec("sage") is None:
        print("sage: left out, sage-importance is not installed")
    else:
        work["sage"] = beside_sage
    # Shares of draws, and values: what else the machine does changes none of them.
    kept = Cells(RESULTS / "questions.json", PACKAGES, math.inf, wanted=work)
    kept.page = lambda: page(kept)
    for name, measure in work.items():
        kept.measure(name, measure)
    print(page(kept))


if __name__ == "__main__":
    main()
