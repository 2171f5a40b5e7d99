"""scikit-learn's models of models that are sums of trees, and what they themselves say of rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import catboost
import lightgbm
import numpy as np
import xgboost
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    BaggingRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from models import classes, numbers, target

X, MISSING = numbers(), numbers(missing=True)
Y, WORDS = target(X), np.array(["low", "mid", "high"])[classes(X, 3)]
TWO = classes(X, 2)


def forest(**options: Any) -> RandomForestRegressor:
    return RandomForestRegressor(3, max_depth=3, random_state=0, **options)


def forest_classifier() -> RandomForestClassifier:
    return RandomForestClassifier(3, max_depth=3, random_state=0)


def boosted(name: str = "XGBRegressor", **options: Any) -> Any:
    return getattr(xgboost, name)(n_estimators=3, max_depth=3, n_jobs=1, **options)


def light(name: str = "LGBMRegressor", **options: Any) -> Any:
    return getattr(lightgbm, name)(
        n_estimators=3, num_leaves=6, verbose=-1, n_jobs=1, min_child_samples=5, **options
    )


def cat() -> Any:
    return catboost.CatBoostRegressor(
        iterations=3, depth=2, verbose=0, thread_count=1, allow_writing_files=False
    )


def logit(probability: np.ndarray) -> np.ndarray:
    return np.log(probability) - np.log1p(-probability)


# Each: a fitted model, whether it takes missing values, and the raw output (n_rows, n_outputs) by the model itself.
Models = dict[str, tuple[Callable[[], Any], bool, Callable[[Any, Any], Any]]]


def predict(model: Any, rows: Any) -> Any:
    return model.predict(rows)


def proba(model: Any, rows: Any) -> Any:
    return model.predict_proba(rows)


def decision(model: Any, rows: Any) -> Any:
    return model.decision_function(rows)


def every_target(model: Any, rows: Any) -> Any:
    return np.hstack(model.predict_proba(rows))


def scores(model: Any, rows: Any) -> Any:
    """One against the rest, before the division by the sum."""
    return np.stack([member.predict_proba(rows)[:, 1] for member in model.estimators_], axis=1)


def columns() -> Any:
    return np.stack([Y, X[:, 0] - X[:, 1]], axis=1)


MODELS: Models = {
    "bagging, some columns": (
        lambda: BaggingRegressor(
            DecisionTreeRegressor(max_depth=3), 4, max_features=0.5, random_state=0, bootstrap_features=True
        ).fit(X, Y),
        False,
        predict,
    ),
    "bagging, missing": (
        lambda: BaggingRegressor(boosted(), 3, random_state=0, max_features=3).fit(MISSING, Y),
        True,
        predict,
    ),
    "bagging, two targets": (
        lambda: BaggingRegressor(forest(), 2, random_state=0).fit(X, columns()),
        False,
        predict,
    ),
    "bagging, samples without some classes": (
        lambda: BaggingClassifier(DecisionTreeClassifier(max_depth=3), 5, max_samples=5, random_state=0).fit(
            X, WORDS
        ),
        False,
        proba,
    ),
    "voting, Pipelines inside": (
        lambda: VotingRegressor(
            [
                ("a", make_pipeline(StandardScaler(), forest())),
                ("b", make_pipeline(MinMaxScaler(), boosted())),
            ]
        ).fit(X, Y),
        False,
        predict,
    ),
    "voting, imputers inside": (
        lambda: VotingRegressor(
            [
                ("a", make_pipeline(SimpleImputer(add_indicator=True), StandardScaler(), forest())),
                ("b", boosted()),
            ]
        ).fit(MISSING, Y),
        True,
        predict,
    ),
    "voting over four libraries": (
        lambda: VotingRegressor(
            [("a", forest()), ("b", boosted()), ("c", light()), ("d", cat()), ("e", "drop")],
            weights=[1, 2, 0.5, 3, 1],
        ).fit(X, Y),
        False,
        predict,
    ),
    "voting, missing": (
        lambda: VotingRegressor(
            [("a", forest()), ("b", boosted()), ("c", HistGradientBoostingRegressor(max_iter=3))]
        ).fit(MISSING, Y),
        True,
        predict,
    ),
    "soft voting": (
        lambda: VotingClassifier(
            [("a", forest_classifier()), ("b", DecisionTreeClassifier(max_depth=3))],
            voting="soft",
            weights=[1, 3],
        ).fit(X, WORDS),
        False,
        proba,
    ),
    "voting over a search": (
        lambda: VotingRegressor(
            [("a", GridSearchCV(forest(), {"max_depth": [2, 3]}, cv=2)), ("b", BaggingRegressor(forest(), 2))]
        ).fit(X, Y),
        False,
        predict,
    ),
    "several targets": (lambda: MultiOutputRegressor(boosted()).fit(X, columns()), True, predict),
    "several classes of several targets": (
        lambda: MultiOutputClassifier(forest_classifier()).fit(X, np.stack([WORDS, TWO.astype(str)], axis=1)),
        False,
        every_target,
    ),
    "a forest of several targets": (
        lambda: forest_classifier().fit(X, np.stack([classes(X, 3), TWO], axis=1)),
        False,
        every_target,
    ),
    "one against the rest": (lambda: OneVsRestClassifier(forest_classifier()).fit(X, WORDS), False, scores),
    "one against the other": (lambda: OneVsRestClassifier(forest_classifier()).fit(X, TWO), False, proba),
    "one against the rest, several labels": (
        lambda: OneVsRestClassifier(forest_classifier()).fit(
            X, np.stack([TWO, X[:, 0] > 1, X[:, 1] > 0], axis=1)
        ),
        False,
        proba,
    ),
    "one against the rest, margins": (
        lambda: OneVsRestClassifier(GradientBoostingClassifier(n_estimators=3)).fit(X, WORDS),
        False,
        decision,
    ),
    "one against the rest, a class that is never there": (
        lambda: OneVsRestClassifier(GradientBoostingClassifier(n_estimators=3)).fit(
            X, np.stack([TWO, np.zeros(len(X)), X[:, 0] > 1], axis=1)
        ),
        False,
        decision,
    ),
    "AdaBoost": (lambda: AdaBoostClassifier(n_estimators=5, random_state=0).fit(X, TWO), False, decision),
    "AdaBoost, 3 classes": (
        lambda: AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=5, random_state=0).fit(
            X, WORDS
        ),
        False,
        decision,
    ),
    "stacking": (
        lambda: StackingRegressor([("a", forest()), ("b", light()), ("c", boosted())], cv=2).fit(MISSING, Y),
        True,
        predict,
    ),
    "stacking classes": (
        lambda: StackingClassifier(
            [("a", forest_classifier()), ("b", DecisionTreeClassifier(max_depth=2))], cv=2
        ).fit(X, WORDS),
        False,
        decision,
    ),
    "stacking decision functions": (
        lambda: StackingClassifier(
            [("a", GradientBoostingClassifier(n_estimators=3)), ("b", AdaBoostClassifier(n_estimators=3))],
            cv=2,
            stack_method="decision_function",
        ).fit(X, TWO),
        False,
        decision,
    ),
    "calibrated forest": (
        lambda: CalibratedClassifierCV(forest_classifier(), ensemble=False, cv=2).fit(X, TWO),
        False,
        lambda model, rows: logit(model.predict_proba(rows)[:, 1]),
    ),
    "calibrated margins": (
        lambda: CalibratedClassifierCV(GradientBoostingClassifier(n_estimators=3), ensemble=False, cv=2).fit(
            X, TWO
        ),
        False,
        lambda model, rows: logit(model.predict_proba(rows)[:, 1]),
    ),
    "one column": (
        lambda: VotingRegressor([("a", forest()), ("b", light())]).fit(X[:, :1], Y),
        False,
        predict,
    ),
}


@cache
def fitted(name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn on names of columns, and on AdaBoost's old algorithm
        return MODELS[name][0]()


def raw(name: str, rows: Any) -> np.ndarray:
    return np.asarray(MODELS[name][2](fitted(name), rows), dtype=np.float64).reshape(len(rows), -1)
