"""Models of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np

from models.cases import case
from models.data import classes, coded, coded_target, frame, frame_target, numbers, target


def _sklearn_case(
    module: str, name: str, label: str = "", n_classes: int = 0, missing: bool = False, **options: Any
) -> None:
    @case("sklearn", name + label)
    def build() -> tuple[Any, Any]:
        from importlib import import_module

        X = numbers(missing)
        y = classes(X, n_classes) if n_classes else target(X)
        return getattr(import_module(f"sklearn.{module}"), name)(random_state=0, **options).fit(X, y), X


for _missing in (False, True):
    _label = " missing" if _missing else ""
    _sklearn_case("tree", "DecisionTreeRegressor", _label, missing=_missing)
    _sklearn_case("tree", "DecisionTreeClassifier", _label, n_classes=3, missing=_missing, max_depth=5)
    _sklearn_case("ensemble", "RandomForestRegressor", _label, missing=_missing, n_estimators=9)
    _sklearn_case("ensemble", "RandomForestClassifier", _label, n_classes=2, missing=_missing, n_estimators=9)
    _sklearn_case(
        "ensemble", "HistGradientBoostingRegressor", _label, missing=_missing, max_iter=9, min_samples_leaf=5
    )
_sklearn_case("tree", "ExtraTreeRegressor", max_depth=6)
_sklearn_case("tree", "ExtraTreeClassifier", n_classes=2, max_depth=6)
_sklearn_case("ensemble", "ExtraTreesRegressor", n_estimators=9, max_depth=6)
_sklearn_case("ensemble", "ExtraTreesClassifier", n_classes=3, n_estimators=9, max_depth=6)
_sklearn_case(
    "ensemble", "RandomForestClassifier", " weighted", n_classes=3, n_estimators=9, class_weight="balanced"
)
_sklearn_case("ensemble", "GradientBoostingRegressor", n_estimators=9)
_sklearn_case("ensemble", "GradientBoostingRegressor", " zero init", n_estimators=9, init="zero")
_sklearn_case("ensemble", "GradientBoostingRegressor", " huber", n_estimators=9, loss="huber")
_sklearn_case("ensemble", "GradientBoostingClassifier", n_classes=2, n_estimators=9)
_sklearn_case("ensemble", "GradientBoostingClassifier", " 3 classes", n_classes=3, n_estimators=9)
_sklearn_case("ensemble", "HistGradientBoostingClassifier", n_classes=2, max_iter=9)
_sklearn_case(
    "ensemble", "HistGradientBoostingClassifier", " 3 classes", n_classes=3, max_iter=9, missing=True
)
_sklearn_case("ensemble", "IsolationForest", n_estimators=20)
_sklearn_case(
    "ensemble", "IsolationForest", " half the columns", n_estimators=20, max_features=0.5, max_samples=50
)


@case("sklearn", "RandomForestRegressor 2 targets")
def _forest_of_two_targets() -> tuple[Any, Any]:
    from sklearn.ensemble import RandomForestRegressor

    X = numbers()
    y = np.stack([target(X), X[:, 0]], axis=1)
    return RandomForestRegressor(n_estimators=5, max_depth=5, random_state=0).fit(X, y), X


def _hist_categories(label: str, shift: float, missing: bool) -> None:
    @case("sklearn", f"HistGradientBoostingRegressor {label}")
    def build() -> tuple[Any, Any]:
        from sklearn.ensemble import HistGradientBoostingRegressor

        X = coded(missing)
        y = coded_target(X)
        X[:, -1] = 2 * X[:, -1] + shift
        X = X[:, [0, 3, 1, 2]]
        model = HistGradientBoostingRegressor(max_iter=9, categorical_features=[1], min_samples_leaf=5)
        return model.fit(X, y), X


_hist_categories("categories", 1.0, False)
_hist_categories("categories missing", -3.5, True)


@case("sklearn", "HistGradientBoostingRegressor constraints")
def _hist_with_constraints() -> tuple[Any, Any]:
    """Monotone leaves are clipped, and features of a tree limited: thresholds and values are what they are."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    X = numbers(True)
    options: dict[str, Any] = {"monotonic_cst": [1, -1, 0, 0], "interaction_cst": [{0, 1}, {2, 3}, {1, 2}]}
    return HistGradientBoostingRegressor(max_iter=9, min_samples_leaf=5, **options).fit(X, target(X)), X


@case("sklearn", "HistGradientBoostingRegressor frame")
def _hist_frame() -> tuple[Any, Any]:
    from sklearn.ensemble import HistGradientBoostingRegressor

    X = frame(missing=True)
    model = HistGradientBoostingRegressor(max_iter=9, categorical_features="from_dtype", min_samples_leaf=5)
    return model.fit(X, frame_target(X)), X
