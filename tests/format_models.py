"""Small models of the libraries that are tested where they are installed; `models` registers what is here.

scikit-survival, quantile-forest, NGBoost, interpret, YDF, and ONNX with onnxruntime as its referee.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd

from models import CASES, case, classes, coded, coded_target, frame, frame_target, numbers, target
from onnx_models import random_ensemble, run_onnx

INSTALLED = {
    "sksurv": ("sksurv",),
    "quantile_forest": ("quantile_forest",),
    "ngboost": ("ngboost",),
    "interpret": ("interpret",),
    "ydf": ("ydf",),
    "onnx": ("onnx", "onnxruntime"),
}
INSTALLED = {name: all(map(find_spec, needed)) for name, needed in INSTALLED.items()}


def register(library: str, name: str) -> Callable[[Callable[[], tuple[Any, Any]]], None]:
    def add(build: Callable[[], tuple[Any, Any]]) -> None:
        if INSTALLED[library]:
            CASES.setdefault(library, {})
            case(library, name)(build)

    return add


# scikit-survival


def survival_target(X: np.ndarray) -> np.ndarray:
    rng = np.random.default_rng(7)
    time = np.round(rng.exponential(np.exp(-np.clip(target(X), -2, 2) / 2)), 2) + 0.01
    return np.array(
        list(zip(rng.random(len(X)) < 0.7, time, strict=True)), dtype=[("event", "?"), ("time", "f8")]
    )


def _survival_case(name: str, label: str = "", missing: bool = False, **options: Any) -> None:
    @register("sksurv", name + label)
    def build() -> tuple[Any, Any]:
        from sksurv import ensemble, tree

        X = numbers(missing)
        model = getattr(tree if name == "SurvivalTree" else ensemble, name)(random_state=0, **options)
        return model.fit(X, survival_target(X)), X


_survival_case("SurvivalTree", max_depth=4)
_survival_case("SurvivalTree", " missing", True, max_depth=4)
_survival_case("RandomSurvivalForest", " missing", True, n_estimators=7)
_survival_case("RandomSurvivalForest", " low memory", n_estimators=7, low_memory=True)
_survival_case("ExtraSurvivalTrees", n_estimators=7)
_survival_case("GradientBoostingSurvivalAnalysis", n_estimators=8)
_survival_case("GradientBoostingSurvivalAnalysis", " dropout", n_estimators=8, dropout_rate=0.3)
_survival_case("GradientBoostingSurvivalAnalysis", " squared", n_estimators=8, loss="squared")


def survival_raw(model: Any, X: Any) -> Any:
    predicted = model.predict(X)
    return np.log(predicted) if getattr(model, "loss", "") == "squared" else predicted


# quantile-forest


def _quantile_case(name: str, label: str = "", n_targets: int = 1, **options: Any) -> None:
    @register("quantile_forest", name + label)
    def build() -> tuple[Any, Any]:
        import quantile_forest

        X = numbers()
        y = target(X) if n_targets == 1 else np.stack([target(X), X[:, 0]], axis=1)
        settings = {"n_estimators": 7, "random_state": 0, "default_quantiles": "mean", "min_samples_leaf": 3}
        return getattr(quantile_forest, name)(**settings | options).fit(X, y), X


_quantile_case("RandomForestQuantileRegressor")
_quantile_case("RandomForestQuantileRegressor", " monotonic", monotonic_cst=[1, 0, 0, -1])
_quantile_case("RandomForestQuantileRegressor", " 2 targets", 2)
_quantile_case("ExtraTreesQuantileRegressor", default_quantiles=None)


# NGBoost


def _ngboost_case(label: str = "", missing: bool = False, n_classes: int = 0, **options: Any) -> None:
    name = "NGBClassifier" if n_classes else "NGBRegressor"

    @register("ngboost", name + label)
    def build() -> tuple[Any, Any]:
        import ngboost
        from ngboost import distns

        X = numbers(missing)
        settings: dict[str, Any] = {"n_estimators": 6, "random_state": 0, "verbose": False} | options
        if n_classes:
            settings["Dist"] = distns.k_categorical(n_classes)
        elif "Dist" in settings:
            settings["Dist"] = getattr(distns, settings["Dist"])
        y = classes(X, n_classes) if n_classes else np.abs(target(X)).round() + 1
        return getattr(ngboost, name)(**settings).fit(X, y), X


_ngboost_case()
_ngboost_case(" missing, some columns", True, col_sample=0.5, minibatch_frac=0.8)
_ngboost_case(" Poisson", Dist="Poisson")
_ngboost_case(" LogNormal", Dist="LogNormal")
_ngboost_case(" 2 classes", n_classes=2)
_ngboost_case(" 3 classes", n_classes=3)


# interpret


def _ebm_case(
    label: str,
    name: str = "Regressor",
    rows: Callable[[], Any] = lambda: numbers(missing=True),
    y: Callable[[Any], Any] = target,
    **options: Any,
) -> None:
    @register("interpret", label)
    def build() -> tuple[Any, Any]:
        from interpret import glassbox

        X = rows()
        settings = {"outer_bags": 1, "max_rounds": 25, "n_jobs": 1, "random_state": 0, "max_bins": 40}
        settings |= {"interactions": 2, "max_interaction_bins": 8} | options
        return getattr(glassbox, f"ExplainableBoosting{name}")(**settings).fit(X, y(X)), X


_ebm_case("regressor")
_ebm_case("classifier", "Classifier", y=lambda X: classes(X, 2))
_ebm_case("3 classes", "Classifier", y=lambda X: classes(X, 3), interactions=0)
_ebm_case("poisson", y=lambda X: np.floor(np.exp(target(X) / 2)), objective="poisson_deviance")
_ebm_case("3 features in a term", interactions=[(0, 1, 2)], max_interaction_bins=4)
_ebm_case(
    "categories",
    rows=lambda: coded(missing=True),
    y=coded_target,
    feature_types=["continuous", "continuous", "continuous", "nominal"],
)
_ebm_case("frame", rows=lambda: frame(missing=True), y=frame_target)


def ebm_raw(model: Any, X: Any) -> Any:
    return model.eval_terms(X).sum(axis=1) + model.intercept_


# YDF


def _ydf_case(
    label: str,
    learner: str,
    n_classes: int = 0,
    rows: Callable[[], Any] = lambda: pd.DataFrame(numbers(missing=True), columns=list("abcd")),
    **options: Any,
) -> None:
    @register("ydf", label)
    def build() -> tuple[Any, Any]:
        import ydf

        ydf.verbose(0)
        X = rows()
        labelled = "colour" in X
        y = frame_target(frame(missing=True)) if labelled else target(X.to_numpy())
        if labelled:
            options["features"] = ["a", "colour", "b", ydf.Feature("size", ydf.Semantic.CATEGORICAL)]
        if n_classes:
            words = np.array(["low", "high", "middle"])[:n_classes]
            y = words[np.searchsorted(np.quantile(y, np.arange(1, n_classes) / n_classes), y)]
        task = ydf.Task.CLASSIFICATION if n_classes else ydf.Task.REGRESSION
        settings = {"label": "y", "task": task, "num_trees": 5, "min_vocab_frequency": 1} | options
        if learner == "Cart":
            del settings["num_trees"]
        return getattr(ydf, f"{learner}Learner")(**settings).train(X.assign(y=y)), X


def ydf_frame() -> pd.DataFrame:
    """As `models.frame`, with labels of texts and whole numbers as they come."""
    X = frame(missing=True)
    return X.assign(colour=X["colour"].astype(object), size=X["size"].astype(int))


_ydf_case("random forest", "RandomForest")
_ydf_case("random forest 2 classes", "RandomForest", 2)
_ydf_case("random forest 3 classes", "RandomForest", 3, winner_take_all=False)
_ydf_case("tree", "Cart", 3)
_ydf_case("boosted trees", "GradientBoostedTrees")
_ydf_case("boosted trees discretized", "GradientBoostedTrees", discretize_numerical_columns=True)
_ydf_case("frame", "RandomForest", rows=ydf_frame)
_ydf_case("frame boosted", "GradientBoostedTrees", rows=ydf_frame, categorical_algorithm="RANDOM")


def ydf_rows(X: Any) -> Any:
    return {
        name: np.where(X[name].isna(), "", X[name]).astype(object) if name in ("colour", "size") else column
        for name, column in (
            (name, X[name].to_numpy(np.float32)) for name in X if name not in ("colour", "size")
        )
    } | {
        name: np.array(["" if v is None or v != v else str(v) for v in X[name]], dtype=object)
        for name in ("colour", "size")
        if name in X
    }


def ydf_raw(model: Any, X: Any) -> Any:
    predicted = np.asarray(model.predict(ydf_rows(X)), dtype=np.float64)
    if model.task().name == "CLASSIFICATION" and predicted.ndim == 1:
        return np.stack([1 - predicted, predicted], axis=1)
    return predicted


# ONNX


def _onnx_case(label: str, **options: Any) -> None:
    @register("onnx", label)
    def build() -> tuple[Any, Any]:
        return random_ensemble(**options), numbers(missing=True).astype(np.float32)


_onnx_case("regressor")
_onnx_case("2 targets", n_targets=2)
_onnx_case("average", aggregate_function="AVERAGE", base_values=[0.5])
_onnx_case("modes", modes=("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"), tracks=True)
_onnx_case("classifier", n_classes=3)
_onnx_case("new operator", operator="TreeEnsemble", tracks=True, n_targets=2)
_onnx_case("new operator double", operator="TreeEnsemble", double=True)
_onnx_case("scaled", before="scaler")
_onnx_case("falling", before="falling")
_onnx_case("imputed", before="imputer", tracks=True)
_onnx_case("by arithmetic", before="arithmetic")

RAW = {
    "sksurv": survival_raw,
    "quantile_forest": lambda model, X: model.predict(X),
    "ngboost": lambda model, X: np.asarray(model.pred_dist(X)._params).T,
    "interpret": ebm_raw,
    "ydf": ydf_raw,
    "onnx": run_onnx,
}
