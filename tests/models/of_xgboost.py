"""Models of XGBoost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from models.cases import case
from models.data import N_ROWS, classes, coded, coded_target, counts, frame, frame_target, numbers, target


def _xgboost_case(
    label: str, name: str = "XGBRegressor", y: Callable[[np.ndarray], Any] = target, **options: Any
) -> None:
    @case("xgboost", label)
    def build() -> tuple[Any, Any]:
        import xgboost

        X = numbers(missing=True)
        settings = {"n_estimators": 8, "max_depth": 4, "n_jobs": 1, "random_state": 0} | options
        return getattr(xgboost, name)(**settings).fit(X, y(X)), X


_xgboost_case("regressor")
_xgboost_case("base_score", base_score=3.25)
_xgboost_case("lossguide", grow_policy="lossguide", max_leaves=9, max_depth=0, gamma=0.5)
_xgboost_case("exact", tree_method="exact", gamma=1.0)
_xgboost_case("poisson", objective="count:poisson", y=counts)
_xgboost_case("tweedie", objective="reg:tweedie", y=lambda X: counts(X) + 0.5, base_score=2.0)
_xgboost_case("gamma", objective="reg:gamma", y=lambda X: counts(X) + 0.5)
_xgboost_case("squaredlogerror", objective="reg:squaredlogerror", y=counts)
_xgboost_case("absoluteerror", objective="reg:absoluteerror")
_xgboost_case("quantile", objective="reg:quantileerror", quantile_alpha=[0.2, 0.8])
_xgboost_case("logistic regression", objective="reg:logistic", y=lambda X: 1 / (1 + np.exp(-target(X))))
_xgboost_case("cox", objective="survival:cox", y=lambda X: np.where(X[:, 0] > 0, 1, -1) * (counts(X) + 1))
_xgboost_case("classifier", "XGBClassifier", lambda X: classes(X, 2))
_xgboost_case("hinge", "XGBClassifier", lambda X: classes(X, 2), objective="binary:hinge")
_xgboost_case("classifier base_score", "XGBClassifier", lambda X: classes(X, 2), base_score=0.2)
_xgboost_case("logitraw", "XGBClassifier", lambda X: classes(X, 2), objective="binary:logitraw")
_xgboost_case("3 classes", "XGBClassifier", lambda X: classes(X, 3))
_xgboost_case("dart", booster="dart", rate_drop=0.5)
_xgboost_case("dart 3 classes", "XGBClassifier", lambda X: classes(X, 3), booster="dart", rate_drop=0.5)
_xgboost_case("random forest", "XGBRFRegressor")
_xgboost_case("random forest 3 classes", "XGBRFClassifier", lambda X: classes(X, 3))
_xgboost_case("parallel trees", num_parallel_tree=3, subsample=0.5)
_xgboost_case("2 targets", y=lambda X: np.stack([target(X), -np.nan_to_num(X[:, 0])], axis=1))
_xgboost_case(
    "2 targets in one tree",
    y=lambda X: np.stack([target(X), -np.nan_to_num(X[:, 0])], axis=1),
    multi_strategy="multi_output_tree",
)
_xgboost_case(
    "3 classes in one tree", "XGBClassifier", lambda X: classes(X, 3), multi_strategy="multi_output_tree"
)
_xgboost_case("no trees", n_estimators=0)


@case("xgboost", "missing=0.5")
def _xgboost_missing() -> tuple[Any, Any]:
    import xgboost

    X = np.round(numbers(missing=True) * 2) / 2
    return xgboost.XGBRegressor(n_estimators=8, max_depth=4, n_jobs=1, missing=0.5).fit(X, target(X)), X


@case("xgboost", "ranker")
def _xgboost_ranker() -> tuple[Any, Any]:
    import xgboost

    X = numbers()
    model = xgboost.XGBRanker(n_estimators=8, max_depth=4, n_jobs=1)
    return model.fit(X, classes(X, 3), qid=np.arange(N_ROWS) // 30), X


def _stopped(n_classes: int) -> tuple[Any, Any]:
    import xgboost

    X = numbers(missing=True)
    options = {
        "n_estimators": 60,
        "max_depth": 4,
        "n_jobs": 1,
        "early_stopping_rounds": 5,
        "learning_rate": 0.8,
    }
    if n_classes:
        model, y = xgboost.XGBClassifier(**options, num_parallel_tree=2), classes(X, n_classes)
    else:
        model, y = xgboost.XGBRegressor(**options), target(X)
    model.fit(X[:200], y[:200], eval_set=[(X[200:], y[200:])], verbose=False)
    assert model.best_iteration + 1 < model.get_booster().num_boosted_rounds()
    return model, X


case("xgboost", "early stopping")(lambda: _stopped(0))
case("xgboost", "early stopping 3 classes")(lambda: _stopped(3))
case("xgboost", "booster after early stopping")(lambda: (_stopped(0)[0].get_booster(), numbers(missing=True)))


def _xgboost_coded(label: str, **options: Any) -> None:
    @case("xgboost", label)
    def build() -> tuple[Any, Any]:
        import xgboost

        X = coded(missing=True)
        model = xgboost.XGBRegressor(
            n_estimators=8,
            max_depth=4,
            n_jobs=1,
            enable_categorical=True,
            feature_types=["q", "q", "q", "c"],
            **options,
        )
        return model.fit(X, coded_target(X)), X


_xgboost_coded("categories", max_cat_to_onehot=1)
_xgboost_coded("categories one-hot", max_cat_to_onehot=20)


@case("xgboost", "frame")
def _xgboost_frame() -> tuple[Any, Any]:
    import xgboost

    X = frame(missing=True)
    model = xgboost.XGBRegressor(
        n_estimators=8, max_depth=4, n_jobs=1, enable_categorical=True, max_cat_to_onehot=2
    )
    return model.fit(X, frame_target(X)), X
