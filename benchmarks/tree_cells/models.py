"""The models that are explained, each trained once per run, on rows that are neither explained nor background."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from _data import regression

N_JOBS = 2
TRAINING_ROWS = 20_000
NAMES = {
    "xgboost": "XGBoost, 100 trees, depth 6",
    "lightgbm": "LightGBM, 100 trees, 31 leaves",
    "forest": "random forest, 100 trees, depth 8",
    "catboost": "CatBoost, 100 trees, depth 6",
}
# How many features matter decides how many a path holds, and so how large tables are: the forest that learns
# Friedman's function as it stands, with 5 informative features instead of 15, shows how much that is.
FEW_FEATURES = {"forest-5": "random forest, 100 trees, depth 8, 5 informative features"}


@cache
def rows(n_rows: int) -> np.ndarray:
    """Fresh rows to explain."""
    return regression(n_rows, random_state=1)[0]


@cache
def background(n_rows: int) -> np.ndarray:
    return regression(n_rows, random_state=2)[0]


@cache
def model(name: str) -> Any:
    firsts = (0,) if name in FEW_FEATURES else (0, 5, 10)
    X, y = regression(TRAINING_ROWS, random_state=0, firsts=firsts)
    return _unfitted(name).fit(X, y)


def _unfitted(name: str) -> Any:
    settings = {"n_estimators": 100, "random_state": 0, "n_jobs": N_JOBS}
    if name == "xgboost":
        from xgboost import XGBRegressor

        return XGBRegressor(max_depth=6, **settings)
    if name == "lightgbm":
        from lightgbm import LGBMRegressor

        return LGBMRegressor(num_leaves=31, verbose=-1, **settings)
    if name in ("forest", *FEW_FEATURES):
        from sklearn.ensemble import RandomForestRegressor

        return RandomForestRegressor(max_depth=8, **settings)
    from catboost import CatBoostRegressor

    return CatBoostRegressor(
        iterations=100,
        depth=6,
        random_seed=0,
        thread_count=N_JOBS,
        verbose=False,
        allow_writing_files=False,
    )


@cache
def forest_of_full_depth(n_training_rows: int) -> Any:
    """20 trees, grown until every leaf is pure: about 0.63 leaves per training row."""
    from sklearn.ensemble import RandomForestRegressor

    X, y = regression(n_training_rows, random_state=0)
    return RandomForestRegressor(20, random_state=0, n_jobs=N_JOBS).fit(X, y)
