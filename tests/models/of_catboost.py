"""Models of CatBoost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from models.cases import case
from models.data import classes, frame, frame_target, numbers, target


def _catboost_case(
    label: str,
    name: str = "CatBoostRegressor",
    y: Callable[[np.ndarray], Any] = target,
    missing: bool = True,
    **options: Any,
) -> None:
    @case("catboost", label)
    def build() -> tuple[Any, Any]:
        import catboost

        X = numbers(missing)
        settings = {
            "iterations": 8,
            "depth": 4,
            "verbose": 0,
            "thread_count": 1,
            "allow_writing_files": False,
        } | options
        return getattr(catboost, name)(**settings).fit(X, y(X)), X


for _policy in ("SymmetricTree", "Depthwise", "Lossguide"):
    _catboost_case(_policy, grow_policy=_policy)
    _catboost_case(f"{_policy} nan_mode=Max", grow_policy=_policy, nan_mode="Max")
    _catboost_case(f"{_policy} 3 classes", "CatBoostClassifier", lambda X: classes(X, 3), grow_policy=_policy)
_catboost_case("nothing missing", missing=False)
_catboost_case("classifier", "CatBoostClassifier", lambda X: classes(X, 2))
_catboost_case(
    "2 targets", y=lambda X: np.stack([target(X), X.sum(1)], 1), missing=False, loss_function="MultiRMSE"
)


def catboost_frame() -> pd.DataFrame:
    return frame(missing=False).astype({"colour": str, "size": int})


def _catboost_frame(label: str, **options: Any) -> None:
    @case("catboost", label)
    def build() -> tuple[Any, Any]:
        import catboost

        X = catboost_frame()
        model = catboost.CatBoostRegressor(
            iterations=12,
            depth=4,
            verbose=0,
            thread_count=1,
            allow_writing_files=False,
            **({"one_hot_max_size": 20} | options),
        )
        return model.fit(X, frame_target(frame()), cat_features=["colour", "size"]), X


_catboost_frame("frame")
_catboost_frame("frame Lossguide", grow_policy="Lossguide")
_catboost_frame("frame target statistics", one_hot_max_size=1, max_ctr_complexity=1)
_catboost_frame("frame combinations", one_hot_max_size=1, max_ctr_complexity=3, model_size_reg=0)
