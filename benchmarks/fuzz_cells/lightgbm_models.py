"""Random models of LightGBM."""

from __future__ import annotations

from typing import Any

import lightgbm
import numpy as np

from fuzz_cells.rows import Admits, Rows, Table, classes, draw_table, sample, target
from fuzz_cells.trial import DOUBLE, Trial, pick, settings

_FORMS = ("float64", "float64", "float32", "int64", "int32", "uint8", "object", "frame", "frame", "frame")
_ADMITS = Admits(_FORMS, infinite=True, categories=True, nullable=True)
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
    y = target(rng, table, positions)
    options = _options(rng, boosting)
    if n_classes:
        y = classes(y, n_classes)
        options |= {"objective": pick(rng, "multiclass", "multiclassova")} if n_classes > 2 else {}
    else:
        options |= {"objective": pick(rng, *_REGRESSION)}
        y = np.abs(y) + 0.01 if options["objective"] in ("poisson", "gamma", "tweedie") else y
    few = [i for i, c in enumerate(table.columns) if c.is_integer and 0 <= c.pool[0] < 1000]
    fit = {"categorical_feature": few[:1]} if few and table.form != "frame" and rng.random() < 0.4 else {}
    model = getattr(lightgbm, "LGBMClassifier" if n_classes else "LGBMRegressor")(**options).fit(X, y, **fit)
    labels = any(column.is_categorical for column in table.columns)
    kind = (
        boosting + (f" {n_classes} classes" if n_classes else "") + (" categories" if fit or labels else "")
    )
    kind += " zero_as_missing" if options.get("zero_as_missing") else ""
    return _trial(rng, kind, model, table, X)


def _trial(rng: np.random.Generator, kind: str, model: Any, table: Table, X: Rows) -> Trial:
    # A forest predicts a mean, but its raw scores are sums.
    averaged = model.booster_.current_iteration() if model.boosting_type == "rf" else 1
    given = model.booster_ if rng.random() < 0.2 else model

    def margin(rows: Rows) -> np.ndarray:
        return np.asarray(given.predict(rows, raw_score=True, num_threads=1)) / averaged

    suffix = "" if table.form == "frame" else ".txt"
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
