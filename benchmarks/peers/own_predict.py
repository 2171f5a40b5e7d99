"""A library's own predict at its quickest, on one thread: without the checks of its scikit-learn wrapper."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def own_predict(model: Any) -> Callable[[np.ndarray], Any]:
    """What answers rows soonest; class probabilities, where a forest has classes."""
    library = type(model).__module__.partition(".")[0]
    if library == "xgboost":
        booster = model.get_booster().copy()
        booster.set_param({"nthread": 1})
        return booster.inplace_predict
    if library == "lightgbm":
        return lambda rows: model.booster_.predict(rows, num_threads=1)
    if library == "catboost":
        return lambda rows: model.predict(rows, thread_count=1)
    model.set_params(n_jobs=1)
    return model.predict_proba if hasattr(model, "predict_proba") else model.predict
