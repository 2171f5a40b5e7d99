"""From what users hold to the model inside: searches, frozen estimators, Pipelines, transformed targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fouriershap._base.checks import descends_from
from fouriershap._base.errors import InputError
from fouriershap._base.links import EXP, EXPM1, UNKNOWN, Link
from fouriershap._base.messages import truncated_repr
from fouriershap._libraries.sklearn.preprocessing import PipelineSteps

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
    """What is inside a model that may be wrapped.

    Attributes
    ----------
    final : object
        The model that predicts.
    preprocessing : PipelineSteps, optional
        What happens to rows before they get there.
    target_link : Link, optional
        What a TransformedTargetRegressor does to predictions; None where that is nothing.
    feature_names : tuple of str, optional
        Names of the columns, where a wrapper knows them and the model inside does not.
    """

    final: Any
    preprocessing: PipelineSteps | None = None
    target_link: Link | None = None
    feature_names: tuple[str, ...] | None = None


def open_model(model: Any) -> Opened:
    """Return the model inside all wrappers; a model that is not wrapped is its own inside."""
    pipelines: list[Any] = []
    target: Any = None
    names: tuple[str, ...] | None = None
    while True:
        if descends_from(model, "sklearn", "Pipeline"):
            # Samplers of imbalanced-learn act in training alone.
            if any(hasattr(step, "transform") for _, step in model.steps[:-1]):
                pipelines.append(model[:-1])
            model = model.steps[-1][1]
            continue
        if descends_from(model, "sklearn", "RFE") and hasattr(model, "estimator_"):
            pipelines.append(model)  # it selects columns as a step of a Pipeline does
            model = model.estimator_
            continue
        attribute = _holder(model)
        if attribute is None:
            before = PipelineSteps(tuple(pipelines)) if pipelines else None
            lost = names if before is None and not hasattr(model, "feature_names_in_") else None
            return Opened(model, before, _target_link(target), lost)
        if not hasattr(model, attribute):
            raise InputError(_not_fitted(model))
        if attribute == "regressor_":
            if target is not None:
                raise InputError(
                    f"model is a {type(target).__name__} inside which is another: what it predicts goes through two "
                    "functions. Explain model.regressor_."
                )
            target = model
        if names is None and hasattr(model, "feature_names_in_"):
            names = tuple(str(name) for name in model.feature_names_in_)
        model = getattr(model, attribute)


def _target_link(target: Any) -> Link | None:
    if target is None:
        return None
    transformer = target.transformer_
    if type(transformer).__name__ != "FunctionTransformer":
        return UNKNOWN
    inverse = transformer.inverse_func
    if inverse is None:
        return None
    if not type(inverse).__module__.startswith("numpy"):  # anybody may call a function "exp"
        return UNKNOWN
    return {"exp": EXP, "expm1": EXPM1}.get(str(getattr(inverse, "__name__", None)), UNKNOWN)


def _holder(model: Any) -> str | None:
    """Return where a wrapper keeps its model; None for other models, and for wrappers that predict in their own way."""
    for base in type(model).__mro__:
        library = base.__module__.partition(".")[0]
        if library == "sklearn" and base.__name__ in _HOLDERS:
            older = "base_estimator_"  # of SelfTrainingClassifier before scikit-learn 1.6
            return older if hasattr(model, older) else _HOLDERS[base.__name__]
        if library != "sklearn" and {"predict", "predict_proba", "decision_function"} & vars(base).keys():
            return None
    return None


def _not_fitted(model: Any) -> str:
    if getattr(model, "refit", True) is False:
        return (
            f"model is a {type(model).__name__} with refit={truncated_repr(model.refit)}, which keeps no "
            "model. Fit one with "
            "its best_params_, and give that."
        )
    return f"model is a {type(model).__name__} that is not fitted. Call its fit(X, y) first."
