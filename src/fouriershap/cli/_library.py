"""What a model says by the library that made it: the referee of `fouriershap check`.

Our own reading of a model file cannot tell that it is mistaken; the library can.
"""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap import InputError, MissingDependencyError
from fouriershap._base.short import reason
from fouriershap.cli._models import ModelFile


def ask_library(model: ModelFile, rows: Any) -> NDArray[np.float64]:
    """Raw outputs (n_rows, n_outputs), before any link, of an Arrow table in the model's order of columns."""
    library = model.ensemble.kind.split()[0]
    ask = {"xgboost": _xgboost, "lightgbm": _lightgbm, "catboost": _catboost, "scikit-learn": _sklearn}[
        library
    ]
    try:
        raw = ask(model, _as_trained(model, rows))
    except ImportError as error:
        raise MissingDependencyError(
            f"check asks {library} itself, which is not installed: pip install {library}"
        ) from error
    except Exception as error:
        raise InputError(
            f"{library} itself cannot answer these rows ({type(error).__name__}: {reason(error)})."
        ) from error
    return np.asarray(raw, dtype=np.float64).reshape(rows.num_rows, -1)


def _as_trained(model: ModelFile, rows: Any) -> Any:
    """A pandas frame whose columns of labels are categories again: CSV has none, Arrow has them at will."""
    pandas = import_module("pandas")
    ensemble, frame = model.ensemble, rows.to_pandas()
    for feature, name in enumerate(frame.columns):
        column, labels = frame[name], ensemble.vocabularies.get(feature)
        if labels is None:
            frame[name] = column.astype(np.float64)  # null and True, too, are numbers to every library
        elif ensemble.hashed:
            frame[name] = column.astype(object).where(column.notna(), "nan").astype(str)
        else:
            unknown = [label for label in column.dropna().unique() if label not in labels]
            frame[name] = pandas.Categorical(column.astype(object), categories=[*labels, *unknown])
    return frame


def _xgboost(model: ModelFile, frame: Any) -> Any:
    xgboost = import_module("xgboost")
    estimator = model.estimator
    if estimator is None:
        estimator = xgboost.Booster(model_file=str(model.path))
    is_booster = isinstance(estimator, xgboost.Booster)
    booster = estimator if is_booster else estimator.get_booster()
    if booster.feature_names is None:
        frame = frame.to_numpy(dtype=np.float64)
    if is_booster:
        frame = xgboost.DMatrix(frame, feature_types=booster.feature_types, enable_categorical=True)
    return estimator.predict(frame, output_margin=True)


def _lightgbm(model: ModelFile, frame: Any) -> Any:
    lightgbm = import_module("lightgbm")
    booster = model.estimator
    if booster is None:
        booster = lightgbm.Booster(model_file=str(model.path))
    raw = booster.predict(frame, raw_score=True)
    # A forest predicts a mean, but its raw scores are sums.
    n_trees = model.ensemble.n_trees // model.ensemble.n_outputs
    return raw / n_trees if model.ensemble.kind == "lightgbm rf" else raw


def _catboost(model: ModelFile, frame: Any) -> Any:
    catboost = import_module("catboost")
    estimator = model.estimator
    if estimator is None:
        form = "json" if model.path.suffix.lower() == ".json" else "cbm"
        estimator = catboost.CatBoost().load_model(str(model.path), format=form)
    return estimator.predict(frame, prediction_type="RawFormulaVal")


def _sklearn(model: ModelFile, frame: Any) -> Any:
    estimator = model.estimator
    rows = frame if hasattr(estimator, "feature_names_in_") else frame.to_numpy(dtype=np.float64)
    if type(estimator).__name__ == "IsolationForest":
        # score = -2 ** (-mean path length / c): solved for the mean path length.
        return -np.log2(-estimator.score_samples(rows)) * _usual_path(estimator._max_samples)
    if hasattr(estimator, "decision_function"):
        return estimator.decision_function(rows)
    if hasattr(estimator, "predict_proba"):
        return estimator.predict_proba(rows)
    predicted = estimator.predict(rows)
    return np.log(predicted) if getattr(estimator, "loss", "") in ("poisson", "gamma") else predicted


def _usual_path(n: int) -> float:
    """Mean path length to a leaf of a random tree on n rows."""
    return 2 * (math.log(n - 1) + np.euler_gamma) - 2 * (n - 1) / n if n > 2 else float(n == 2)
