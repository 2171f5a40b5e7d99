"""What each library itself says is the raw output."""

from __future__ import annotations

from typing import Any

import numpy as np


def raw_output(model: Any, X: Any) -> np.ndarray:
    """Raw output (n_rows, n_outputs) float64 by the library itself."""
    library = type(model).__module__.partition(".")[0]
    raw = {
        "sklearn": _sklearn_raw,
        "xgboost": _xgboost_raw,
        "lightgbm": _lightgbm_raw,
        "catboost": _catboost_raw,
    }
    from format_models import RAW

    output = np.asarray((raw | RAW)[library](model, X), dtype=np.float64)
    return output.reshape(len(X), -1)


def _sklearn_raw(model: Any, X: Any) -> Any:
    name = type(model).__name__
    if name == "IsolationForest":
        # score = -2 ** (-mean path length / c): solved for the mean path length.
        from sklearn.ensemble._iforest import _average_path_length

        return -np.log2(-model.score_samples(X)) * _average_path_length([model._max_samples])
    if name.endswith("Regressor"):
        return model.predict(X)
    return model.decision_function(X) if "GradientBoosting" in name else model.predict_proba(X)


def _xgboost_raw(model: Any, X: Any) -> Any:
    if type(model).__name__ == "Booster":
        import xgboost

        return model.predict(xgboost.DMatrix(X, feature_types=model.feature_types), output_margin=True)
    return model.predict(X, output_margin=True)


def _lightgbm_raw(model: Any, X: Any) -> Any:
    raw = model.predict(X, raw_score=True)
    # A forest predicts a mean, but its raw scores are sums.
    return raw / model.n_estimators if getattr(model, "boosting_type", "") == "rf" else raw


def _catboost_raw(model: Any, X: Any) -> Any:
    return model.predict(X, prediction_type="RawFormulaVal")
