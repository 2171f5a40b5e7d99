"""Models of models that are no sums of trees: with their members read, and as any black box, from the same queries.

Values of a few rows are compared with the definition, over all coalitions. CPU seconds are those of fitting and of
explaining these rows, on one thread. Data are made anew for each seed; no constant of the library was chosen on them.

    python benchmarks/members.py
"""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable
from math import factorial
from typing import Any

import numpy as np
import pandas as pd

import fouriershap as fs
from _cells import Cells
from _common import RESULTS, print_machine, print_table
from _pages import markdown_table

N_TRAINING, N_BACKGROUND, N_EXPLAINED, BUDGET = 2000, 50, 10, 8000
SEEDS = (1001, 1002, 1003)
PACKAGES = ("scikit-learn", "xgboost", "lightgbm")
HEADER = ("model", "members read: method", "CPU", "R²", "from rows: method", "CPU", "R²")


def data(seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Six numbers and two columns of labels, and a score."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(N_TRAINING, 6)), columns=list("abcdef"))
    frame["city"] = rng.choice(["Bern", "Basel", "Chur", "Zug"], N_TRAINING)
    frame["size"] = rng.choice(list("SML"), N_TRAINING)
    weights = rng.normal(size=4)
    score = (
        weights[0] * frame["a"] * frame["b"] + weights[1] * np.sin(2 * frame["c"]) + weights[2] * frame["d"]
    )
    score += weights[3] * (frame["city"] == "Zug") * frame["e"] + (frame["size"] == "L")
    return frame, (score + 0.3 * rng.normal(size=N_TRAINING)).to_numpy()


def models() -> dict[str, tuple[Any, bool, bool]]:
    """Of each name a model, whether it is of two classes, and whether its rows have labels."""
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import (
        RandomForestClassifier,
        RandomForestRegressor,
        StackingRegressor,
        VotingClassifier,
    )
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler
    from xgboost import XGBClassifier, XGBRegressor

    forest = RandomForestClassifier(50, max_depth=6, random_state=0, n_jobs=1)
    boosted = XGBClassifier(n_estimators=50, max_depth=4, n_jobs=1)
    members = [("forest", RandomForestRegressor(50, max_depth=6, random_state=0, n_jobs=1))]
    members += [("boosted", XGBRegressor(n_estimators=50, max_depth=4, n_jobs=1))]
    last = RandomForestRegressor(50, min_samples_leaf=20, random_state=0, n_jobs=1)
    columns = (OneHotEncoder(), ["city", "size"]), (StandardScaler(), list("abcdef"))
    prepared = make_pipeline(make_column_transformer(*columns), forest)
    return {
        "isotonic calibration of a forest": (
            CalibratedClassifierCV(forest, method="isotonic", cv=3),
            True,
            False,
        ),
        "soft votes of a forest and XGBoost": (
            VotingClassifier([("forest", forest), ("boosted", boosted)], voting="soft"),
            True,
            False,
        ),
        "a forest stacked on a forest and XGBoost": (StackingRegressor(members, last, cv=3), False, False),
        "calibration of Pipelines with labels": (
            CalibratedClassifierCV(prepared, method="isotonic", cv=3),
            True,
            True,
        ),
    }


def by_definition(
    ask: Callable[[Any], np.ndarray], rows: pd.DataFrame, background: pd.DataFrame
) -> np.ndarray:
    """SHAP values (n_rows, n_columns), over all coalitions."""
    columns = list(rows.columns)
    n = len(columns)
    values = np.zeros((len(rows), n))
    for i in range(len(rows)):
        subsets = [s for k in range(n + 1) for s in itertools.combinations(range(n), k)]
        mixed = pd.concat([background] * len(subsets), ignore_index=True)
        for j, column in enumerate(columns):
            mixed.loc[np.repeat([j in s for s in subsets], len(background)), column] = rows[column].iloc[i]
        worth = dict(zip(subsets, ask(mixed).reshape(len(subsets), -1).mean(axis=1), strict=True))
        for s in subsets:
            for j in set(range(n)) - set(s):
                share = factorial(len(s)) * factorial(n - len(s) - 1) / factorial(n)
                values[i, j] += share * (worth[tuple(sorted((*s, j)))] - worth[s])
    return values


def measure(name: str, seed: int) -> dict[str, Any]:
    model, two, has_labels = models()[name]
    frame, score = data(seed)
    frame = frame if has_labels else frame.drop(columns=["city", "size"])
    model.fit(frame, (score > 0).astype(int) if two else score)
    ask = (lambda X: model.predict_proba(X)[:, 1]) if two else model.predict
    background, rows = frame[:N_BACKGROUND], frame[N_BACKGROUND : N_BACKGROUND + N_EXPLAINED]
    want = by_definition(ask, rows, background)
    found: dict[str, Any] = {}
    for way, asked in (("members", model), ("rows", ask)):
        begin = time.process_time()
        options = {"data": frame, "random_state": seed, "n_jobs": 1, "progress": False}
        explainer = fs.BlackBoxExplainer(asked, background, **options).fit(budget=BUDGET)
        values = explainer.shap_values(rows)
        cpu = time.process_time() - begin
        values = values[..., 1] if values.ndim == 3 else values
        r2 = 1 - ((values - want) ** 2).sum() / ((want - want.mean()) ** 2).sum()
        found[way] = {
            "cpu": cpu,
            "r2": float(r2),
            "method": explainer.fitted.method,
            "held_out": explainer.fidelity.r2,
        }
    return found


def lines(cells: dict[str, dict[str, Any]]) -> list[tuple[str, ...]]:
    out = []
    for name, found in cells.items():
        read, asked = found["members"], found["rows"]
        out.append(
            (
                name,
                read["method"],
                f"{read['cpu']:.1f} s",
                f"{read['r2']:.3f}",
                asked["method"],
                f"{asked['cpu']:.1f} s",
                f"{asked['r2']:.3f}",
            )
        )
    return out


def main() -> None:
    warnings.simplefilter("ignore")
    print_machine(PACKAGES)
    wanted = {f"{name}, seed {seed}": (name, seed) for name, seed in itertools.product(models(), SEEDS)}
    kept = Cells(RESULTS / "members.json", PACKAGES, wanted=wanted)
    kept.page = lambda: page(kept)
    results = {}
    for key, (name, seed) in wanted.items():
        results[key] = kept.measure(key, lambda name=name, seed=seed: measure(name, seed))
        print(key, results[key]["members"], results[key]["rows"], flush=True)
    print_table(HEADER, lines(results))


def page(kept: Cells) -> str:
    title = (
        f"# Models of models that are no sums\n\n{BUDGET:,} queries each, background {N_BACKGROUND}; `R²` of the SHAP "
        f"values of {N_EXPLAINED} rows against the definition; CPU time on one thread, of one run, the model's own "
        f"answers included.\n{kept.told()}\n"
    )
    return f"{title}\n{markdown_table(HEADER, lines(kept.found))}\n"


if __name__ == "__main__":
    main()
