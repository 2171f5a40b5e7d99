"""CatBoost's target statistics (CTRs) of labels: SHAP values from the model, exact against a background.

A table of credits: six columns of 5 to 2,000 labels and three numbers; a model with CatBoost's settings, one without
combinations of labels, and one with a column of 10,000 labels. The time is wall-clock, from the live model to the
values, reading and checking it included. Values of some rows are compared with the definition, over all coalitions and
the whole background, by CatBoost's own predictions; the sums of the values of all rows with its raw output.

    python benchmarks/catboost_ctr.py
"""

from __future__ import annotations

import argparse
import itertools
import time
from math import factorial
from typing import Any

import numpy as np
import pandas as pd

import fouriershap as fs
from _cells import Cells
from _common import RESULTS, print_machine, print_table, seconds
from _pages import markdown_table

N_TRAINING, N_EXPLAINED, N_BACKGROUND, N_BY_DEFINITION = 20_000, 5_000, 1_000, 2
PACKAGES = ("catboost", "pandas")
LABELS = {"purpose": 5, "region": 20, "job": 60, "employer": 200, "dealer": 600, "postcode": 2_000}
MODELS: dict[str, tuple[dict[str, int], dict[str, Any]]] = {
    "CatBoost's settings": ({}, {}),
    "combinations of two": ({}, {"max_ctr_complexity": 2}),
    "no combinations": ({}, {"max_ctr_complexity": 1}),
    "10,000 labels": ({"postcode": 10_000}, {}),
}
HEADER = (
    "model",
    "nodes",
    "labels",
    "read",
    "model to values",
    "CPU",
    "strategy",
    "from definition",
    "from raw output",
    "CatBoost's own (path-dependent)",
)


def table(n_rows: int, seed: int, cardinality: dict[str, int]) -> tuple[pd.DataFrame, np.ndarray]:
    """Applications for credit, and whether each was repaid."""
    effects, rows = np.random.default_rng(0), np.random.default_rng(seed)
    columns: dict[str, Any] = {}
    codes = {}
    score = np.zeros(n_rows)
    for name, k in cardinality.items():
        share, effect = effects.dirichlet(np.ones(k)), effects.normal(size=k)
        codes[name] = rows.choice(k, n_rows, p=share)
        columns[name] = np.array([f"{name} {i}" for i in range(k)])[codes[name]]
        score += 0.6 * effect[codes[name]]
    score += effects.normal(size=(5, 60))[codes["purpose"], codes["job"]]
    for name in ("amount", "income", "age"):
        columns[name] = rows.normal(size=n_rows)
    score += columns["amount"] - 0.5 * np.abs(columns["income"]) + columns["age"] * (codes["purpose"] == 2)
    repaid = rows.random(n_rows) < 1 / (1 + np.exp(-score))
    return pd.DataFrame(columns), repaid.astype(int)


def by_definition(model: Any, row: pd.DataFrame, background: pd.DataFrame) -> np.ndarray:
    """SHAP values (n_columns,) of one row, over all coalitions."""
    n = row.shape[1]
    worth = {}
    for size in range(n + 1):
        for chosen in itertools.combinations(range(n), size):
            mixed = background.copy()
            for j in chosen:
                mixed.isetitem(j, np.repeat(row.iloc[0, j], len(mixed)))
            worth[chosen] = model.predict(mixed, prediction_type="RawFormulaVal").mean()
    values = np.zeros(n)
    for chosen, value in worth.items():
        for j in set(range(n)) - set(chosen):
            share = factorial(len(chosen)) * factorial(n - len(chosen) - 1) / factorial(n)
            values[j] += share * (worth[tuple(sorted((*chosen, j)))] - value)
    return values


def measure(name: str, n_trees: int) -> dict[str, Any]:
    import catboost

    sizes, options = MODELS[name]
    cardinality = LABELS | sizes
    X, y = table(N_TRAINING, 1, cardinality)
    rows, _ = table(N_EXPLAINED, 2, cardinality)  # some of their labels are new
    background = X[:N_BACKGROUND]
    settings = {
        "iterations": n_trees,
        "depth": 6,
        "random_seed": 0,
        "verbose": 0,
        "allow_writing_files": False,
    }
    model = catboost.CatBoostClassifier(**settings, **options).fit(X, y, cat_features=list(cardinality))
    begin = time.perf_counter()
    reading = fs.read_model(model)
    read = time.perf_counter() - begin
    begin, cpu_begin = time.perf_counter(), time.process_time()
    explainer = fs.TreeExplainer(model, background, precision="double")
    explanation = explainer(rows)
    wall, cpu = time.perf_counter() - begin, time.process_time() - cpu_begin
    total = explanation.values.sum(axis=1) + explanation.base_values
    gap = np.abs(total - model.predict(rows, prediction_type="RawFormulaVal")).max()
    want = np.stack([by_definition(model, rows[i : i + 1], background) for i in range(N_BY_DEFINITION)])
    pool = catboost.Pool(rows, cat_features=list(cardinality))
    begin = time.perf_counter()
    model.get_feature_importance(pool, type="ShapValues")
    return {
        "nodes": reading.trees.n_nodes,
        "labels": sum(map(len, reading.rules.vocabularies.values())),
        "read": read,
        "wall": wall,
        "cpu": cpu,
        "strategy": explainer.plan(N_EXPLAINED).strategy,
        "definition": float(np.abs(explanation.values[:N_BY_DEFINITION] - want).max()),
        "additivity": float(gap),
        "catboost": time.perf_counter() - begin,
    }


def lines(cells: dict[str, dict[str, Any]]) -> list[tuple[str, ...]]:
    return [
        (
            name,
            f"{cell['nodes']:,}",
            f"{cell['labels']:,}",
            seconds(cell["read"]),
            seconds(cell["wall"]),
            seconds(cell["cpu"]),
            cell["strategy"],
            f"{cell['definition']:.0e}",
            f"{cell['additivity']:.0e}",
            seconds(cell["catboost"]),
        )
        for name, cell in cells.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=MODELS, help="some models, again", metavar="MODEL")
    parser.add_argument("--quick", action="store_true", help="20 trees; writes nothing")
    arguments = parser.parse_args()
    print_machine(PACKAGES)
    chosen = arguments.only or list(MODELS)
    if arguments.quick:
        print_table(HEADER, lines({name: measure(name, 20) for name in chosen}))
        return
    kept = Cells(RESULTS / "catboost_ctr.json", PACKAGES, wanted=MODELS)
    kept.page = lambda: page(kept)
    again = arguments.only is not None
    found = {n: kept.measure(n, lambda n=n: measure(n, 200), again=again, threads=2) for n in chosen}
    print_table(HEADER, lines(found))


def page(kept: Cells) -> str:
    title = (
        f"# CatBoost's target statistics\n\n200 trees of depth 6, trained on {N_TRAINING:,} rows; {N_EXPLAINED:,} "
        f"fresh rows against a background of {N_BACKGROUND:,}, in double precision on two threads. "
        f"`from definition` is the largest difference of the values of {N_BY_DEFINITION} rows from the definition, "
        "`from raw output` that of the sums of all rows from CatBoost's raw output. "
        f"CatBoost's own values have no background.\n{kept.told()}\n"
    )
    return f"{title}\n{markdown_table(HEADER, lines(kept.found))}\n"


if __name__ == "__main__":
    main()
