"""scikit-learn's estimators with a last step behind their members: stacking, calibration.

Where the last step is linear, or a link function of something linear, what comes before the link is a sum of trees.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fouriershap._base.errors import UnsupportedModelError
from fouriershap._base.short import short
from fouriershap._trees.arithmetic import map_outputs, side_by_side
from fouriershap._trees.ensemble import TreeEnsemble
from fouriershap._trees.readers.assemble import require_fitted
from fouriershap._trees.readers.sklearn_sums import Read, finished, predicted

_LINEAR = ("LinearModel", "LinearClassifierMixin", "BaseSGDRegressor")


def read_stacking(model: Any, read: Read) -> TreeEnsemble:
    """StackingRegressor, StackingClassifier with a linear last step: what it predicts, or its decision function."""
    require_fitted(model, "final_estimator_")
    last = model.final_estimator_
    if model.passthrough:
        raise UnsupportedModelError(
            f"model is a {type(model).__name__} with passthrough=True: its last step sees the columns of the rows "
            "beside its members, and is no sum of trees."
        )
    if not _is_linear(last):
        raise UnsupportedModelError(
            f"model is a {type(model).__name__} whose last step is a {type(last).__name__}: only behind a linear one "
            "is it a sum of trees."
        )
    parts = [
        _column(member, method, model, read)
        for member, method in zip(model.estimators_, model.stack_method_, strict=True)
    ]
    stacked = map_outputs(side_by_side(parts), np.atleast_2d(last.coef_), np.ravel(last.intercept_))
    return finished(stacked, model, _objective(last, stacked.n_outputs))


def _column(member: Any, method: str, model: Any, read: Read) -> TreeEnsemble:
    """What the last step sees of a member."""
    if hasattr(model, "classes_") and (method == "predict" or isinstance(model.classes_, list)):
        raise UnsupportedModelError(
            f"model is a {type(model).__name__} whose last step sees the classes that its members name, or several "
            "targets: no sum of trees."
        )
    part = read(member)
    if method == "decision_function" and part.objective != "probability":
        return part
    part = predicted(part, member, model)
    # Of two probabilities the last step sees the second.
    return map_outputs(part, [[0.0, 1.0]]) if method == "predict_proba" and part.n_outputs == 2 else part


def _is_linear(last: Any) -> bool:
    """Whether a fitted estimator of scikit-learn predicts, or decides by, its coefficients and nothing else."""
    bases = type(last).__mro__
    predicting = next(
        (base for base in bases if {"predict", "decision_function"} & vars(base).keys()), object
    )
    linear = any(base.__name__ in _LINEAR and base.__module__.startswith("sklearn.") for base in bases)
    return linear and predicting.__module__.startswith("sklearn.") and hasattr(last, "coef_")


def _objective(last: Any, n_outputs: int) -> str:
    if not hasattr(last, "classes_"):
        return "regression"
    if not any(base.__name__ == "LogisticRegression" for base in type(last).__mro__):
        return ""
    if n_outputs == 1:
        return "binary"
    apart = last.solver == "liblinear" or getattr(last, "multi_class", "") == "ovr"
    return "" if apart else "multiclass"


def read_calibrated(model: Any, read: Read) -> TreeEnsemble:
    """CalibratedClassifierCV of two classes by one sigmoid: the log odds of the probability, linear in the score."""
    require_fitted(model, "calibrated_classifiers_")
    found = model.calibrated_classifiers_
    one_sigmoid = len(found) == 1 and model.method == "sigmoid" and len(model.classes_) == 2
    if not one_sigmoid:
        many = f"the mean of {len(found)} models, each behind " if len(found) > 1 else ""
        raise UnsupportedModelError(
            f"model is a {type(model).__name__}(method={short(model.method)}) of {len(model.classes_)} classes, {many}"
            "a calibration of its own: no function of one sum of trees. One sigmoid is (two classes, ensemble=False or "
            "a fitted model given)."
        )
    member, calibrator = found[0].estimator, found[0].calibrators[0]
    part = read(member)
    if not (hasattr(member, "decision_function") and part.objective == "binary"):
        part = map_outputs(predicted(part, member, model), [[0.0, 1.0]])
    log_odds = map_outputs(part, [[-float(calibrator.a_)]], [-float(calibrator.b_)])
    return finished(log_odds, model, "binary")
