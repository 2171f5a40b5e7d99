"""Random models of XGBoost."""

from __future__ import annotations

from typing import Any

import numpy as np
import xgboost

from fuzz_cells.rows import Admits, Rows, Table, classes, draw_table, sample, take, target
from fuzz_cells.trial import SINGLE, Trial, pick, settings

_FORMS = ("float64", "float64", "float32", "int64", "int32", "uint8", "object", "frame", "frame", "frame")
_ADMITS = Admits(_FORMS, categories=True, nullable=True, sparse=True)
_REGRESSION = (
    "reg:squarederror",
    "reg:squarederror",
    "reg:absoluteerror",
    "reg:pseudohubererror",
    "reg:logistic",
    "count:poisson",
    "reg:gamma",
    "reg:tweedie",
    "reg:quantileerror",
)


def draw(rng: np.random.Generator) -> Trial:
    booster = pick(rng, "gbtree", "gbtree", "dart", "rf")
    n_classes = int(pick(rng, 0, 0, 2, 3))
    table = draw_table(rng, _ADMITS)
    positions, X = sample(rng, table, int(rng.integers(20, 120)))
    options = _options(rng, booster) | _missing(rng, table)
    labels, more, kind = _labels(rng, target(rng, table, positions), n_classes)
    options |= more
    categories = _categories(rng, table)
    if categories and "one tree" in kind and xgboost.__version__.startswith("2."):
        raise ValueError("XGBoost 2 takes the codes of categories for numbers in such trees")
    if categories:
        options |= categories | settings(rng, max_cat_to_onehot=(1, 4, 20))
        options |= {"tree_method": "hist"} if options.get("tree_method") == "exact" else {}
        kind += " categories"
    stops = booster != "rf" and rng.random() < 0.1
    options |= {"early_stopping_rounds": 1, "n_estimators": 8, "learning_rate": 1.0} if stops else {}
    family = "XGBRF" if booster == "rf" else "XGB"
    model = getattr(xgboost, family + ("Classifier" if n_classes else "Regressor"))(**options)
    half = np.arange(len(X) // 2, len(X))
    judges = {"eval_set": [(take(X, half), labels[half])], "verbose": False} if stops else {}
    model.fit(X, labels, sample_weight=rng.random(len(X)) + 0.5 if rng.random() < 0.2 else None, **judges)
    return _trial(rng, f"{booster}{kind}" + (" stopped" if stops else ""), model, table, X)


def _categories(rng: np.random.Generator, table: Table) -> dict[str, Any]:
    """By the types of a frame, or by position where a column of an array holds few whole numbers."""
    if table.form == "frame":
        any_labels = any(column.is_categorical for column in table.columns)
        return {"enable_categorical": True} if any_labels else {}
    codes = [column.is_integer and 0 <= column.pool[0] < 100 for column in table.columns]
    if not any(codes) or rng.random() < 0.6:
        return {}
    return {"enable_categorical": True, "feature_types": ["c" if code else "q" for code in codes]}


def _trial(rng: np.random.Generator, kind: str, model: Any, table: Table, X: Rows) -> Trial:
    """The estimator, or sometimes its booster, which takes NaN alone for missing, and never stops early."""
    plain = np.isnan(model.missing)
    if plain and rng.random() < 0.2:
        booster = model.get_booster()
        return Trial(kind, booster, table, _ADMITS, X, lambda rows: _booster_margin(booster, rows), SINGLE)
    suffix = pick(rng, ".json", ".ubj") if plain and not kind.endswith("stopped") else ""
    return Trial(
        kind,
        model,
        table,
        _ADMITS,
        X,
        lambda rows: model.predict(rows, output_margin=True),
        SINGLE,
        suffix,
        model.save_model,
    )


def _booster_margin(booster: Any, rows: Rows) -> np.ndarray:
    framed = hasattr(rows, "columns")
    types = {"enable_categorical": True} if framed else {"feature_types": booster.feature_types}
    rows = xgboost.DMatrix(rows, nthread=1, **types)
    return booster.predict(rows, output_margin=True, validate_features=framed)


def _options(rng: np.random.Generator, booster: str) -> dict[str, Any]:
    options = settings(
        rng,
        n_estimators=(1, 3, 6),
        max_depth=(1, 2, 3, 5),
        learning_rate=(..., 0.1, 1.0),
        min_child_weight=(..., 0.0, 3.0),
        subsample=(..., 0.7),
        colsample_bynode=(..., 0.7),
        gamma=(..., 0.1),
        reg_lambda=(..., 0.0),
        tree_method=(..., "hist", "approx", "exact"),
        max_bin=(..., 7),
        base_score=(..., ..., 0.3),
    )
    if options.get("tree_method") != "exact" and rng.random() < 0.3:
        options |= {"grow_policy": "lossguide", "max_leaves": 6}
    if booster == "dart":
        options |= {"booster": "dart"} | settings(
            rng,
            rate_drop=(0.3, 0.8),
            one_drop=(..., 1),
            skip_drop=(..., 0.5),
            normalize_type=(..., "forest"),
            sample_type=(..., "weighted"),
        )
    if booster == "gbtree":
        options |= settings(rng, num_parallel_tree=(..., ..., 2))
    if booster == "rf":
        options.pop("learning_rate", None)
    return options | {"n_jobs": 1, "random_state": int(rng.integers(1000)), "verbosity": 0}


def _missing(rng: np.random.Generator, table: Table) -> dict[str, Any]:
    """A number of the first column that counts as missing everywhere."""
    column = table.columns[0]
    numbers = (
        [] if column.is_categorical else [v for v in column.pool if v == v and isinstance(v, int | float)]
    )
    return {"missing": float(pick(rng, *numbers))} if numbers and rng.random() < 0.1 else {}


def _labels(
    rng: np.random.Generator, y: np.ndarray, n_classes: int
) -> tuple[np.ndarray, dict[str, Any], str]:
    """Labels, the settings that they need, and what to call them."""
    if n_classes:
        strategy = settings(rng, multi_strategy=(..., ..., "multi_output_tree")) if n_classes > 2 else {}
        more = {"tree_method": "hist"} if strategy else {}
        few = n_classes == 2 and rng.random() < 0.2
        labels = (y >= np.sort(y)[-2]).astype(int) if few else classes(y, n_classes)
        if n_classes == 2:
            more |= settings(rng, objective=(..., ..., "binary:logitraw", "binary:hinge"))
        return labels, strategy | more, f" {n_classes} classes" + (" in one tree" if strategy else "")
    if rng.random() < 0.2:
        strategy = settings(rng, multi_strategy=(..., "multi_output_tree"))
        more = {"tree_method": "hist"} if strategy else {}
        return (
            np.stack([y, y**2], axis=1),
            strategy | more,
            " 2 targets" + (" in one tree" if strategy else ""),
        )
    objective = pick(rng, *_REGRESSION)
    if objective == "reg:logistic":
        y = 1 / (1 + np.exp(-y))
    elif objective in ("count:poisson", "reg:gamma", "reg:tweedie"):
        y = np.abs(y).round(2) + 0.01
    else:
        y = y * float(pick(rng, 1.0, 1.0, 1e4)) + float(pick(rng, 0, 0, 1e3))
    if objective == "reg:quantileerror":
        return y, {"objective": objective, "quantile_alpha": [0.2, 0.7]}, " 2 quantiles"
    return y, {"objective": objective}, ""
