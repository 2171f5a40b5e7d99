"""CPU seconds of shap's own explainers, without and with `fs.patch_shap`: 200 rows, 20 columns."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import lightgbm
import numpy as np
import shap
import xgboost
from sklearn.datasets import make_regression
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge

import fouriershap as fs

ROWS = 200


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.process_time()
    result = call()
    return time.process_time() - begin, result


def main() -> None:
    warnings.simplefilter("ignore")
    X, y = make_regression(5_000, 20, n_informative=12, random_state=0)
    X = X.astype(np.float32)
    xgb = xgboost.XGBRegressor(n_estimators=300, max_depth=6, n_jobs=1).fit(X, y)
    lgb = lightgbm.LGBMRegressor(n_estimators=300, verbose=-1, n_jobs=1).fit(X, y)
    forest = RandomForestRegressor(50, max_depth=10, random_state=0).fit(X, y)
    cases: dict[str, Callable[[], Any]] = {
        "XGBoost, 300 trees, no background": lambda: shap.TreeExplainer(xgb).shap_values(X[:ROWS]),
        "XGBoost, 300 trees, 100 background rows": lambda: shap.TreeExplainer(xgb, X).shap_values(X[:ROWS]),
        "LightGBM, 300 trees, no background": lambda: shap.TreeExplainer(lgb).shap_values(X[:ROWS]),
        "LightGBM, 300 trees, 100 background rows": lambda: shap.TreeExplainer(lgb, X).shap_values(X[:ROWS]),
        "random forest, 50 trees of depth 10, 100 background rows": lambda: shap.TreeExplainer(
            forest, X
        ).shap_values(X[:ROWS]),
        "ridge regression, `explainer(X)` of 5,000 rows": lambda: (
            shap.Explainer(Ridge().fit(X, y), X)(X).values
        ),
    }
    with fs.patched_shap():
        shap.TreeExplainer(xgb).shap_values(X[:2])  # imports
    print("| program | shap | patched | largest difference |\n|---|---|---|---|", flush=True)
    for name, call in cases.items():
        before, want = seconds(call)
        with fs.patched_shap():
            after, found = seconds(call)
        difference = np.abs(found - want).max() / np.abs(want).max()
        print(f"| {name} | {before:.2g} s | {after:.2g} s | {difference:.0e} |", flush=True)


if __name__ == "__main__":
    main()
