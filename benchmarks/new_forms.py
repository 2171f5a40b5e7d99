"""Rows in a form not seen before: what asking the library about them costs beyond the library's own time.

100 rows of ten numbers, half of the models with two columns of labels, too; 50 trees each, on one thread. Times are
the least CPU time of 300 calls: of encoding the rows where their form is new, where it was seen, and without a live
model (as from a file), and of the library's own predict of the 32 rows that it is asked about.

    python benchmarks/new_forms.py
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from catboost import CatBoostRegressor
from lightgbm import LGBMRegressor
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from xgboost import XGBRegressor

import fouriershap as fs
from _cells import Cells
from _common import RESULTS, print_machine, print_table, seconds
from _pages import markdown_table

N_ASKED, N_TREES = 32, 50
PACKAGES = ("scikit-learn", "xgboost", "lightgbm", "catboost", "pandas")
HEADER = ("model", "rows", "new form", "seen before", "from a file", "own predict", "beyond own predict")


def _pipeline() -> Any:
    encoder = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["c", "d"]), remainder="passthrough"
    )
    return make_pipeline(encoder, RandomForestRegressor(N_TREES, max_depth=6))


_CATBOOST = {"iterations": N_TREES, "thread_count": 1, "verbose": 0, "allow_writing_files": False}
_LIGHTGBM = {"n_estimators": N_TREES, "n_jobs": 1, "verbose": -1}
MODELS: dict[str, tuple[str, Callable[[], Any]]] = {
    "random forest": ("numbers", lambda: RandomForestRegressor(N_TREES, max_depth=6)),
    "XGBoost": ("numbers", lambda: XGBRegressor(n_estimators=N_TREES, n_jobs=1)),
    "LightGBM": ("numbers", lambda: LGBMRegressor(**_LIGHTGBM)),
    "CatBoost": ("numbers", lambda: CatBoostRegressor(**_CATBOOST)),
    "HistGradientBoosting, labels": ("categories", lambda: HistGradientBoostingRegressor(max_iter=N_TREES)),
    "XGBoost, labels": (
        "categories",
        lambda: XGBRegressor(n_estimators=N_TREES, n_jobs=1, enable_categorical=True),
    ),
    "LightGBM, labels": ("categories", lambda: LGBMRegressor(**_LIGHTGBM)),
    "CatBoost, labels": (
        "text",
        lambda: CatBoostRegressor(**_CATBOOST, one_hot_max_size=9, cat_features=["c", "d"]),
    ),
    "Pipeline of a one-hot encoder": ("text", _pipeline),
}


def measure(name: str, n_calls: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    X: Any = pd.DataFrame(rng.normal(size=(1000, 10))).add_prefix("x")
    labels = {"c": rng.choice(["red", "green", "blue"], 1000), "d": rng.choice(list("uvwxyz"), 1000)}
    y = X["x0"] * 2 + X["x1"] * X["x2"] + (labels["c"] == "red")
    kind, make = MODELS[name]
    X = X.to_numpy() if kind == "numbers" else X.assign(**labels)
    X = X.astype({"c": "category", "d": "category"}) if kind == "categories" else X
    model = make().fit(X, y)
    inputs = fs.TreeExplainer(model, X[:100], n_jobs=1).inputs
    rows, unasked = X[500:600], replace(inputs, check=None)

    def encode_new() -> None:
        inputs.check._seen.clear()
        inputs.encode(rows)

    calls = {
        "new": encode_new,
        "seen": lambda: inputs.encode(rows),
        "file": lambda: unasked.encode(rows),
        "predict": lambda: model.predict(X[500 : 500 + N_ASKED]),
    }
    least = dict.fromkeys(calls, np.inf)
    for what, call in calls.items():
        for _ in range(n_calls):
            begin = time.process_time()
            call()
            least[what] = min(least[what], time.process_time() - begin)
    return {"kind": kind} | least


def lines(cells: dict[str, dict[str, Any]]) -> list[tuple[str, ...]]:
    return [
        (
            name,
            cell["kind"],
            *(seconds(cell[what]) for what in ("new", "seen", "file", "predict")),
            f"{(cell['new'] - cell['file'] - cell['predict']) * 1e3:+.2f} ms",
        )
        for name, cell in cells.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few calls; writes nothing")
    arguments = parser.parse_args()
    print_machine(PACKAGES)
    if arguments.quick:
        print_table(HEADER, lines({name: measure(name, 10) for name in MODELS}))
        return
    kept = Cells(RESULTS / "new_forms.json", PACKAGES, wanted=MODELS)
    kept.page = lambda: page(kept)
    print_table(HEADER, lines({n: kept.measure(n, lambda n=n: measure(n, 300), threads=1) for n in MODELS}))


def page(kept: Cells) -> str:
    what = " ".join(__doc__.split("\n\n")[1].split())
    return f"# Rows in a new form\n\n{what}\n{kept.told()}\n\n{markdown_table(HEADER, lines(kept.found))}\n"


if __name__ == "__main__":
    main()
