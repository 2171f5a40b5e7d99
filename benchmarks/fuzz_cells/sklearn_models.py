"""Random trees, forests and boosted trees of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import ensemble, tree

from fuzz_cells.rows import Admits, Rows, Table, classes, draw_table, sample, target
from fuzz_cells.trial import DOUBLE, Trial, pick, settings

_FORMS = ("float64", "float64", "float32", "int64", "int32", "uint8", "object", "frame", "frame")
_KINDS = (
    "DecisionTree",
    "ExtraTree",
    "RandomForest",
    "ExtraTrees",
    "GradientBoosting",
    "HistGradientBoosting",
    "HistGradientBoosting",
    "IsolationForest",
)


def draw(rng: np.random.Generator) -> Trial:
    kind = pick(rng, *_KINDS)
    n_classes = 0 if kind == "IsolationForest" else int(pick(rng, 0, 0, 2, 3))
    if kind == "HistGradientBoosting":
        return _hist(rng, n_classes)
    name = kind if kind == "IsolationForest" else kind + ("Classifier" if n_classes else "Regressor")
    module = tree if kind in ("DecisionTree", "ExtraTree") else ensemble
    model = getattr(module, name)(**_options(rng, kind, n_classes), random_state=int(rng.integers(1000)))
    missing = _takes_missing(model)
    admits = Admits(
        _FORMS, missing=missing, nullable=True, sparse=not missing
    )  # sparse rows have none missing
    table = draw_table(rng, admits)
    positions, X = sample(rng, table, int(rng.integers(20, 120)))
    y: Any = target(rng, table, positions)
    y = classes(y, n_classes) if n_classes else y * float(pick(rng, 1.0, 1.0, 1e6)) + float(pick(rng, 0, 1e3))
    if kind in ("DecisionTree", "RandomForest", "ExtraTrees") and not n_classes and rng.random() < 0.2:
        name, y = f"{name} 2 targets", np.stack([y, -(y**2)], axis=1)
    weights = rng.integers(1, 4, len(X)) if rng.random() < 0.3 else None
    model.fit(X, y, sample_weight=weights)
    return Trial(name, model, table, admits, X, lambda rows: margin(model, rows), DOUBLE)


def _options(rng: np.random.Generator, kind: str, n_classes: int) -> dict[str, Any]:
    if kind == "IsolationForest":
        return settings(rng, n_estimators=(1, 3, 6), max_samples=(..., 0.5, 10), max_features=(1.0, 0.5))
    options = settings(
        rng,
        max_depth=(1, 2, 3, 5, None),
        min_samples_leaf=(1, 1, 2, 5),
        max_features=(None, None, "sqrt"),
        max_leaf_nodes=(None, None, 6),
        ccp_alpha=(0.0, 0.0, 0.01),
    )
    if kind == "GradientBoosting":
        losses = ("log_loss",) if n_classes else ("squared_error", "huber", "absolute_error", "quantile")
        losses += ("exponential",) if n_classes == 2 else ()
        return options | settings(
            rng,
            n_estimators=(1, 4),
            loss=losses,
            init=(None, "zero"),
            subsample=(1.0, 0.7),
            learning_rate=(0.1, 1.0),
        )
    if n_classes:
        options |= settings(rng, criterion=("gini", "entropy"), class_weight=(None, "balanced"))
    else:
        options |= settings(rng, criterion=("squared_error", "squared_error", "friedman_mse"))
    if kind in ("RandomForest", "ExtraTrees"):
        options |= settings(rng, n_estimators=(1, 3, 6), bootstrap=(True, False))
    return options


def _hist(rng: np.random.Generator, n_classes: int) -> Trial:
    admits = Admits(_FORMS, infinite=True, categories=True, nullable=True)
    table = draw_table(rng, admits)
    positions, X = sample(rng, table, int(rng.integers(20, 120)))
    y = target(rng, table, positions)
    options = settings(
        rng,
        max_iter=(1, 3, 5),
        max_leaf_nodes=(31, 4),
        min_samples_leaf=(1, 5),
        max_depth=(None, 3),
        l2_regularization=(0.0, 1.0),
        learning_rate=(0.1, 1.0),
        max_bins=(255, 10),
    )
    options |= _categories(rng, table)
    name = "HistGradientBoosting" + ("Classifier" if n_classes else "Regressor")
    if not n_classes:
        options |= settings(rng, loss=("squared_error", "absolute_error", "poisson"))
        y = np.abs(y) if options["loss"] == "poisson" else y
    labels = classes(y, n_classes) if n_classes else y
    model = getattr(ensemble, name)(**options, random_state=0, early_stopping=False).fit(X, labels)
    kind = name + (" categories" if model.is_categorical_ is not None else "")
    return Trial(kind, model, table, admits, X, lambda rows: margin(model, rows), DOUBLE)


def _categories(rng: np.random.Generator, table: Table) -> dict[str, Any]:
    """By the types of a frame, or by position where a column holds few whole numbers."""
    if table.form == "frame":
        return {"categorical_features": "from_dtype"}
    few = [i for i, c in enumerate(table.columns) if c.is_integer and abs(c.pool[0]) < 2**53]
    return {"categorical_features": few[:1]} if few and rng.random() < 0.5 else {"categorical_features": None}


def _takes_missing(model: Any) -> bool:
    if hasattr(model, "__sklearn_tags__"):
        return bool(model.__sklearn_tags__().input_tags.allow_nan)
    return type(model).__name__.startswith(("DecisionTree", "RandomForest"))  # before scikit-learn 1.6


def margin(model: Any, rows: Rows) -> np.ndarray:
    name = type(model).__name__
    if name == "IsolationForest":
        from sklearn.ensemble._iforest import _average_path_length

        # score = -2 ** (-mean path length / c): solved for the mean path length.
        return -np.log2(-model.score_samples(rows)) * _average_path_length([model._max_samples])
    if name.endswith("Regressor"):
        raw = model.predict(rows)
        return np.log(raw) if getattr(model, "loss", "") == "poisson" else raw
    return model.decision_function(rows) if "GradientBoosting" in name else model.predict_proba(rows)
