"""Explaining alone, already compiled, beside the library's own `predict` and contributions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import fouriershap as fs
from tree_cells import models
from tree_cells.race import OURS, Contender, Outcome, race

GROUP = "explain"
N_ROWS, N_BACKGROUND, N_CONTRIBUTIONS = 100_000, 10_000, 10_000
PREDICT, CONTRIBUTIONS = "own predict", "own contributions"
NAMES = models.NAMES | models.FEW_FEATURES
AT_MOST = {"xgboost": 2.0, "lightgbm": 1.0, "forest": 2.0, "forest-5": 2.0}  # times the time of predict


def run(name: str, quick: bool) -> Outcome:
    """One thread, then two; float32 rows in, float64 values out, additivity not checked."""
    outcome = Outcome()
    X = models.rows(N_ROWS // 10 if quick else N_ROWS)
    explainer = fs.TreeExplainer(models.model(name), models.background(N_BACKGROUND)).compile()
    for n_jobs in (1, 2):
        contenders = {
            OURS: Contender(
                lambda n_jobs=n_jobs: explainer.shap_values(X, n_jobs=n_jobs),
                lambda values: values.sum(axis=1) + explainer.expected_value,
            ),
            PREDICT: Contender(_predict(name, X, n_jobs)),
        }
        cell = race((GROUP, NAMES[name], _threads(n_jobs)), contenders, rounds=20, most_seconds=4.0)
        outcome.cells.append(cell)
        if name in AT_MOST:
            what = f"{NAMES[name]}: explaining, {_threads(n_jobs)}, as a multiple of its own predict"
            outcome.targets.append(cell.target(what, PREDICT, AT_MOST[name], at_least=False))
    if name in ("xgboost", "lightgbm"):
        outcome.extend(_against_contributions(name, X))
    return outcome


def _threads(n_jobs: int) -> str:
    return "1 thread" if n_jobs == 1 else f"{n_jobs} threads"


def _predict(name: str, X: np.ndarray, n_jobs: int) -> Callable[[], np.ndarray]:
    model = models.model(name)
    if name == "xgboost":
        booster = model.get_booster()

        def run() -> np.ndarray:
            booster.set_param({"nthread": n_jobs})
            return booster.inplace_predict(X)  # predict on a DMatrix is cached

        return run
    if name == "lightgbm":
        return lambda: model.booster_.predict(X, num_threads=n_jobs)
    if name == "catboost":
        return lambda: model.predict(X, thread_count=n_jobs)
    return lambda: model.set_params(n_jobs=n_jobs).predict(X)


def _against_contributions(name: str, X: np.ndarray) -> Outcome:
    """The library's own contributions have no background: they race against path-dependent values.

    XGBoost 3.4 has a place for a background in `xgboost.interpret.shap_values`, and raises NotImplementedError there.
    """
    few = X[:N_CONTRIBUTIONS]
    by_path = fs.TreeExplainer(models.model(name), n_jobs=models.N_JOBS).compile()
    ours, whole = f"{OURS}, path-dependent", f"{OURS}, path-dependent, from the model"
    contenders = {
        ours: Contender(lambda: by_path.shap_values(X)),
        whole: Contender(lambda: fs.TreeExplainer(models.model(name), n_jobs=models.N_JOBS).shap_values(X)),
        CONTRIBUTIONS: Contender(_contributions(name, few), lambda v: v[:, :-1], share=len(few) / len(X)),
    }
    cell = race((GROUP, NAMES[name], "2 threads, by path"), contenders, reference=ours, rounds=3)
    outcome = Outcome([cell])
    if name == "xgboost":
        what = f"{NAMES[name]}: by path, 2 threads, times faster than its own contributions"
        outcome.targets.append(cell.target(what, CONTRIBUTIONS, 100.0, ours=ours))
    return outcome


def _contributions(name: str, X: np.ndarray) -> Callable[[], Any]:
    if name == "lightgbm":
        booster = models.model(name).booster_
        return lambda: booster.predict(X, pred_contrib=True, num_threads=models.N_JOBS)
    import xgboost

    booster = models.model(name).get_booster()
    booster.set_param({"nthread": models.N_JOBS})
    return lambda: booster.predict(xgboost.DMatrix(X, nthread=models.N_JOBS), pred_contribs=True)
