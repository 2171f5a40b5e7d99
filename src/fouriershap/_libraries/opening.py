"""From what users hold to the model inside: searches, frozen estimators, pipelines, transformed targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fouriershap._base.checks import descends_from
from fouriershap._base.errors import InputError
from fouriershap._base.short import short
from fouriershap._rows.pipelines import Preprocessing

# Wrappers of scikit-learn that predict what the model inside predicts, and the attribute that holds it.
_HOLDERS = {
    "BaseSearchCV": "best_estimator_",
    "FrozenEstimator": "estimator",
    "TunedThresholdClassifierCV": "estimator_",
    "FixedThresholdClassifier": "estimator_",
    "RANSACRegressor": "estimator_",
    "SelfTrainingClassifier": "estimator_",
    "TransformedTargetRegressor": "regressor_",
}


@dataclass(frozen=True, eq=False)
class Opened:
    """What is inside a model that may be wrapped."""

    final: Any  # the model that predicts
    before: Preprocessing | None = None  # what happens to rows before they get there
    target: Any = None  # the TransformedTargetRegressor that has the last word on what is predicted
    # What its inverse transformation makes of predictions: "same", "log" (exp), "log1p" (expm1), or "other".
    response: str = "same"
    names: tuple[str, ...] | None = (
        None  # of the columns, where a wrapper knows them and the model inside does not
    )


def _response(target: Any) -> str:
    if target is None:
        return "same"
    transformer = target.transformer_
    if type(transformer).__name__ != "FunctionTransformer":
        return "other"
    inverse = transformer.inverse_func
    if inverse is None:
        return "same"
    if not type(inverse).__module__.startswith("numpy"):  # anybody may call a function "exp"
        return "other"
    return {"exp": "log", "expm1": "log1p"}.get(str(getattr(inverse, "__name__", None)), "other")


def open_model(model: Any) -> Opened:
    """The model inside all wrappers; a model that is none is its own inside."""
    pipelines: list[Any] = []
    target: Any = None
    names: tuple[str, ...] | None = None
    while True:
        if descends_from(model, "sklearn", "Pipeline"):
            if _transforms(model):
                pipelines.append(model[:-1])
            model = model.steps[-1][1]
            continue
        if descends_from(model, "sklearn", "RFE") and hasattr(model, "estimator_"):
            pipelines.append(model)  # it selects columns as a step of a Pipeline does
            model = model.estimator_
            continue
        attribute = _holder(model)
        if attribute is None:
            before = Preprocessing(tuple(pipelines)) if pipelines else None
            lost = names if before is None and not hasattr(model, "feature_names_in_") else None
            return Opened(model, before, target, _response(target), lost)
        if not hasattr(model, attribute):
            raise InputError(_empty(model))
        if attribute == "regressor_":
            target = model if target is None else _both(target, model)
        if names is None and hasattr(model, "feature_names_in_"):
            names = tuple(str(name) for name in model.feature_names_in_)
        model = getattr(model, attribute)


def _transforms(pipeline: Any) -> bool:
    """Whether any step before the last does something to rows; imbalanced-learn's samplers act in training alone."""
    return any(hasattr(step, "transform") for _, step in pipeline.steps[:-1])


def _holder(model: Any) -> str | None:
    """Where a wrapper keeps its model; None for anything else, and for wrappers that predict in their own way."""
    for base in type(model).__mro__:
        library = base.__module__.partition(".")[0]
        if library == "sklearn" and base.__name__ in _HOLDERS:
            older = "base_estimator_"  # of SelfTrainingClassifier before scikit-learn 1.6
            return older if hasattr(model, older) else _HOLDERS[base.__name__]
        if library != "sklearn" and {"predict", "predict_proba", "decision_function"} & vars(base).keys():
            return None
    return None


def _both(outer: Any, inner: Any) -> Any:
    raise InputError(
        f"model is a {type(outer).__name__} inside which is another: what it predicts goes through two functions. "
        "Explain model.regressor_."
    )


def _empty(model: Any) -> str:
    if getattr(model, "refit", True) is False:
        return (
            f"model is a {type(model).__name__} with refit={short(model.refit)}, which keeps no model. Fit one with "
            "its best_params_, and give that."
        )
    return f"model is a {type(model).__name__} that is not fitted. Call its fit(X, y) first."
