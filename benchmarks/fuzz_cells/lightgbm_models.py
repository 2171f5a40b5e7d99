"""Random models of LightGBM."""

from __future__ import annotations

from typing import Any

import lightgbm
import numpy as np

from fuzz_cells.rows import Admits, Rows, Table, classes, draw_table, sample, take, target
from fuzz_cells.trial import DOUBLE, Trial, pick, settings

_FORMS = ("float64", "float64", "float32", "int64", "int32", "uint8", "object", "frame", "frame", "frame")
_ADMITS = Admits(_FORMS, infinite=True, categories=True, nullable=True, sparse=True)
_REGRESSION = (
    "regression",
    "regression",
    "regression_l1",
    "huber",
    "quantile",
    "poisson",
    "gamma",
    "tweedie",
)


def draw(rng: np.random.Generator) -> Trial:
    boosting = pick(rng, "gbdt", "gbdt", "dart", "rf", "goss")
    n_classes = int(pick(rng, 0, 0, 2, 3))
    table = draw_table(rng, _ADMITS)
    positions, X = sample(rng, table, int(rng.integers(20, 150)))
    y, objective = _labels(rng, target(rng, table, positions), n_classes)
    options = _options(rng, boosting) | objective
    few = [i for i, c in enumerate(table.columns) if c.is_integer and 0 <= c.pool[0] < 1000]
    fit = {"categorical_feature": few[:1]} if few and table.form != "frame" and rng.random() < 0.4 else {}
    stops = boosting in ("gbdt", "goss") and rng.random() < 0.1
    if stops:
        half = np.arange(len(X) // 2, len(X))
        options |= {"n_estimators": 8, "learning_rate": 1.0}
        fit |= {
            "eval_set": [(take(X, half), y[half])],
            "callbacks": [lightgbm.early_stopping(1, verbose=False)],
        }
    model = getattr(lightgbm, "LGBMClassifier" if n_classes else "LGBMRegressor")(**options).fit(X, y, **fit)
    labelled = "categorical_feature" in fit or any(column.is_categorical for column in table.columns)
    words = [boosting, f"{n_classes} classes" * bool(n_classes), "categories" * labelled, "stopped" * stops]
    words += ["zero_as_missing" * ("zero_as_missing" in options)]
    return _trial(rng, " ".join(filter(None, words)), model, table, X)


def _labels(rng: np.random.Generator, y: np.ndarray, n_classes: int) -> tuple[np.ndarray, dict[str, Any]]:
    if n_classes:
        objective = {"objective": pick(rng, "multiclass", "multiclassova")} if n_classes > 2 else {}
        return classes(y, n_classes), objective
    name = pick(rng, *_REGRESSION)
    return np.abs(y) + 0.01 if name in ("poisson", "gamma", "tweedie") else y, {"objective": name}


def _trial(rng: np.random.Generator, kind: str, model: Any, table: Table, X: Rows) -> Trial:
    # A forest predicts a mean, but its raw scores are sums.
    averaged = model.booster_.current_iteration() if model.boosting_type == "rf" else 1
    given = model.booster_ if rng.random() < 0.2 else model

    def margin(rows: Rows) -> np.ndarray:
        return np.asarray(given.predict(rows, raw_score=True, num_threads=1)) / averaged

    # A file is asked as a booster is, which casts arrays of objects otherwise than the estimator.
    suffix = "" if table.form in ("frame", "object") else ".txt"
    return Trial(kind, given, table, _ADMITS, X, margin, DOUBLE, suffix, model.booster_.save_model)


def _options(rng: np.random.Generator, boosting: str) -> dict[str, Any]:
    options = settings(
        rng,
        n_estimators=(1, 3, 6),
        num_leaves=(2, 4, 8, 15),
        min_child_samples=(1, 3, 10),
        min_child_weight=(..., 0.0),
        min_data_in_bin=(..., 1),
        max_bin=(..., 7),
        learning_rate=(..., 1.0),
        reg_lambda=(..., 1.0),
        extra_trees=(..., ..., True),
        zero_as_missing=(..., ..., True),
        use_missing=(..., ..., ..., False),
        max_cat_to_onehot=(..., 1),
        min_data_per_group=(..., 1),
        cat_smooth=(..., 0.0),
        cat_l2=(..., 0.0),
    )
    if boosting == "goss":
        options |= {"data_sample_strategy": "goss"}
    else:
        options |= {"boosting_type": boosting}
    if boosting == "rf" or (boosting != "goss" and rng.random() < 0.2):
        options |= {"bagging_fraction": 0.6, "bagging_freq": 1}
    if boosting == "dart":
        options |= settings(
            rng, drop_rate=(0.3, 0.8), uniform_drop=(..., True), xgboost_dart_mode=(..., True)
        )
    return options | {"n_jobs": 1, "random_state": int(rng.integers(1000)), "verbose": -1}
