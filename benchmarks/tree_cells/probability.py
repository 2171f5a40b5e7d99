"""Probabilities and responses: against all pairs of rows, raw values and shap. One thread, CPU time."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import fouriershap as fs
from _data import regression
from tree_cells import models
from tree_cells.child import hand_over, run_child
from tree_cells.race import OURS, Cell, Contender, Outcome, Target, race

GROUP = "probability"
NAMES = {
    "many": "LightGBM, 200 trees, 31 leaves",
    "raw": "XGBoost, 100 trees, depth 6",
    "row": "LightGBM, 100 trees, 31 leaves",
    "hist": "HistGradientBoostingClassifier, default",
    "poisson": "HistGradientBoostingRegressor, Poisson",
    "gamma": "HistGradientBoostingRegressor, Gamma",
    "memory": "LightGBM, 200 trees, 31 leaves",
    "exact": "LightGBM, 200 trees, 31 leaves, 20 features",
    "classes-3": "LightGBM, 100 trees for each of 3 classes, 20 features",
    "classes-5": "LightGBM, 100 trees for each of 5 classes, 20 features",
    "classes-10": "LightGBM, 100 trees for each of 10 classes, 20 features",
}
RAW = "raw output"
PAIRWISE = 2e-6  # of the largest value: how far values may be from those of every pair


def run(name: str, quick: bool) -> Outcome:
    """Every cell compares some rows with the definition first."""
    if name == "exact" or name.startswith("classes"):
        return _exact(name, 100 // (10 if quick else 1), 15_000)
    model, output = _model(name), "response" if name in ("poisson", "gamma") else "probability"
    outcome = Outcome()
    rows, background = models.rows(40), models.background(200)
    difference = _difference(model, output, rows, background)
    outcome.targets.append(
        Target(
            f"{NAMES[name]}: largest difference to all pairs", difference, PAIRWISE, at_least=False, unit=""
        )
    )
    sizes = {"many": [(1_000, 15_000)], "raw": [(10_000, 10_000), (100_000, 100_000)]}
    hist = [(20_000, 20_000), (100, 100), (100, 1_000)]
    shrink = 10 if quick else 1
    if name == "row":
        outcome.extend(_one_row(model, 10_000 // shrink))
    elif name == "memory":
        outcome.extend(_memory(model, 15_000 // shrink))
    for n_rows, n_background in sizes.get(name, hist if name in ("hist", "poisson", "gamma") else []):
        outcome.extend(_race(name, model, output, n_rows // shrink, n_background // shrink))
    return outcome


def _race(name: str, model: Any, output: str, n_rows: int, n_background: int) -> Outcome:
    X, background = models.rows(n_rows), models.background(n_background)

    def explain(what: str) -> Callable[[], np.ndarray]:
        return lambda: fs.TreeExplainer(model, background, output=what, n_jobs=1).shap_values(X)

    contenders = {OURS: Contender(explain(output)), RAW: Contender(explain("raw"), values=None)}
    peer = ""
    if n_rows * n_background <= 100_000 and name in ("hist", "poisson", "gamma"):
        import shap

        # shap knows no exponentials: of responses it can explain the logarithm, pair by pair as probabilities.
        peer = "shap" if name == "hist" else "shap, raw output"
        masker = shap.maskers.Independent(background, max_samples=n_background)
        given = {
            "feature_perturbation": "interventional",
            "model_output": output if name == "hist" else "raw",
        }
        contenders[peer] = Contender(
            lambda: shap.TreeExplainer(model, masker, **given).shap_values(X, check_additivity=False),
            **({} if name == "hist" else {"values": None}),
        )
    cell = race((GROUP, NAMES[name], f"{n_rows:,} x {n_background:,}, {output}"), contenders, rounds=3)
    outcome, label = Outcome([cell]), f"{NAMES[name]}: {cell.cell}"
    if name == "many":
        outcome.targets.append(Target(f"{label}, CPU time", cell.cpu[OURS], 1.0, at_least=False, unit="s"))
    elif name == "raw":
        outcome.targets.append(cell.target(f"{label}, as a multiple of raw", RAW, 40.0, at_least=False))
    elif n_rows > 10_000:
        outcome.targets.append(Target(f"{label}, CPU time", cell.cpu[OURS], 10.0, at_least=False, unit="s"))
    elif peer:
        least = 20.0 if n_background < 1000 else 100.0
        outcome.targets.append(cell.target(f"{label}, against {peer}", peer, least))
    return outcome


def _one_row(model: Any, n_background: int) -> Outcome:
    explainer = fs.TreeExplainer(
        model, models.background(n_background), output="probability", n_jobs=1
    ).compile()
    seconds = []
    for row in models.rows(1_000):
        begin = time.perf_counter()
        explainer.shap_values(row[None])
        seconds.append(time.perf_counter() - begin)
    cell = Cell(GROUP, NAMES["row"], f"one row, {n_background:,} background rows, median of 1,000")
    cell.wall = {OURS: float(np.median(seconds))}
    cell.runs = {OURS: len(seconds)}
    target = Target(
        f"{NAMES['row']}: one row, probability", 1e3 * cell.wall[OURS], 1.0, at_least=False, unit="ms"
    )
    return Outcome([cell], [target])


def _exact(name: str, n_rows: int, n_background: int) -> Outcome:
    """The probability itself, sampled until every standard error is below 1 % of its row's largest value."""
    from lightgbm import LGBMClassifier

    X, target = regression(models.TRAINING_ROWS, random_state=0)
    n_classes = 2 if name == "exact" else int(name.split("-")[1])
    labels = np.searchsorted(np.quantile(target, np.arange(1, n_classes) / n_classes), target)
    n_trees = 200 if n_classes == 2 else 100
    model = LGBMClassifier(n_estimators=n_trees, num_leaves=31, n_jobs=models.N_JOBS, verbose=-1)
    model.fit(X[:, :20], labels)
    explainer = fs.TreeExplainer(
        model, models.background(n_background)[:, :20], output="probability", exact=True
    )
    rows = models.rows(n_rows)[:, :20]
    wall, cpu = time.perf_counter(), time.process_time()
    values, errors = explainer.shap_values(rows, errors=True)
    cell = Cell(GROUP, NAMES[name], f"{n_rows:,} x {n_background:,}, exact=True")
    cell.wall, cell.cpu = {OURS: time.perf_counter() - wall}, {OURS: time.process_time() - cpu}
    cell.runs = {OURS: 1}
    each = tuple(range(1, values.ndim))  # of a row: players, and classes
    worst = float((errors.max(axis=each) / np.abs(values).max(axis=each)).max())
    gap = float(np.abs(values.sum(axis=1) + explainer.expected_value - explainer.predict(rows)).max())
    label = f"{cell.model}: {cell.cell}"
    found = [
        Target(f"{label}, CPU time", cell.cpu[OURS], 30.0, at_least=False, unit="s"),
        Target(
            f"{label}, largest standard error, of the row's largest value",
            worst,
            0.01,
            at_least=False,
            unit="",
        ),
        Target(f"{label}, sums less predictions", gap, 1e-9, at_least=False, unit=""),
    ]
    return Outcome([cell], found)


def _memory(model: Any, n_background: int) -> Outcome:
    cell = Cell(GROUP, NAMES["memory"], f"1,000 x {n_background:,}, peak memory above the data")
    with tempfile.TemporaryDirectory() as folder:
        hand_over(Path(folder), model, models.rows(1_000), models.background(n_background))
        cell.megabytes[OURS] = run_child(Path(folder), "memory", "probability", "1")["peak_above_data"] / 1e6
    label = f"{cell.model}: {cell.cell}"
    return Outcome([cell], [Target(label, cell.megabytes[OURS], 500.0, at_least=False, unit="MB")])


def _difference(model: Any, output: str, rows: np.ndarray, background: np.ndarray) -> float:
    """How far values are from raw values against each background row, times that row's slope."""
    raw = fs.TreeExplainer(model, background, precision="double", n_jobs=1)
    mine, theirs = (raw.predict(X) for X in (rows, background))
    function = np.exp if output == "response" else lambda margin: 1 / (1 + np.exp(-margin))
    want = np.zeros((len(rows), rows.shape[1]))
    for other, margin in zip(background, theirs, strict=True):
        change = mine - margin
        slope = np.where(
            np.abs(change) < 1e-6, (function(mine + 1e-4) - function(mine - 1e-4)) / 2e-4,
            (function(mine) - function(margin)) / np.where(change == 0, 1.0, change),
        )  # fmt: skip
        want += slope[:, None] * raw.with_background(other[None]).shap_values(rows) / len(background)
    got = fs.TreeExplainer(model, background, output=output, n_jobs=1).compile().shap_values(rows)
    return float(np.abs(got - want).max() / np.abs(want).max())


@cache
def _model(name: str) -> Any:
    X, target = regression(models.TRAINING_ROWS, random_state=0)
    rate = np.exp((target - target.mean()) / target.std())
    y = target + np.random.default_rng(3).standard_normal(len(target)) > np.median(target)
    if name == "raw":
        from xgboost import XGBClassifier

        return XGBClassifier(n_estimators=100, max_depth=6, random_state=0, n_jobs=models.N_JOBS).fit(X, y)
    if name in ("many", "row", "memory"):
        from lightgbm import LGBMClassifier

        n_trees = 100 if name == "row" else 200
        return LGBMClassifier(n_estimators=n_trees, num_leaves=31, n_jobs=models.N_JOBS, verbose=-1).fit(X, y)
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    if name == "hist":
        return HistGradientBoostingClassifier(random_state=0).fit(X, y)
    counts = np.random.default_rng(4).poisson(rate) if name == "poisson" else rate
    return HistGradientBoostingRegressor(loss=name, random_state=0).fit(X, counts)
