"""Models of models that do not tell their raw output: what they predict, and the same from our reading."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fouriershap._explainers.links import Floats, shares, shares_of_sigmoids, sigmoid, softmax
from fouriershap._trees.ensemble import TreeEnsemble


class Response(NamedTuple):
    """How a model is asked for what it predicts of rows, and how that comes out of raw outputs (n_rows, n_outputs)."""

    asked: Callable[[Any, Any], Floats]
    computed: Callable[[Any, Floats, TreeEnsemble], Floats]


def response_of(model: Any) -> Response | None:
    """The response by which a model is compared; None where it tells its raw output."""
    names = [base.__name__ for base in type(model).__mro__ if base.__module__.startswith("sklearn.")]
    found = next((_RESPONSES[name] for name in names if name in _RESPONSES), None)
    if found is not None and "MultiOutputClassifier" not in names and getattr(model, "n_outputs_", 2) == 1:
        return None  # a tree or forest of one target
    return None if hasattr(model, "decision_function") else found


def _probabilities(model: Any, rows: Any) -> Floats:
    return np.asarray(model.predict_proba(rows), dtype=np.float64)


def _probabilities_of_targets(model: Any, rows: Any) -> Floats:
    return np.hstack([np.asarray(p, dtype=np.float64) for p in model.predict_proba(rows)])


def _of_one_sigmoid(model: Any, raw: Floats, e: TreeEnsemble) -> Floats:
    second = sigmoid(raw)
    return np.hstack([1 - second, second])


def _of_scores(model: Any, raw: Floats, e: TreeEnsemble) -> Floats:
    if e.objective == "binary":
        return _of_one_sigmoid(model, raw, e) if raw.shape[1] == 1 else sigmoid(raw)
    if e.objective == "probability":
        return raw
    return shares_of_sigmoids(raw) if e.objective.endswith("binary") else shares(raw)


def _of_targets(model: Any, raw: Floats, e: TreeEnsemble) -> Floats:
    if e.objective == "probability":
        return raw
    parts, first = [], 0
    for member in model.estimators_:
        n_classes = len(member.classes_)
        if n_classes == 2:
            parts.append(_of_one_sigmoid(model, raw[:, first : first + 1], e))
        else:
            parts.append(softmax(raw[:, first : first + n_classes]))
        first += 1 if n_classes == 2 else n_classes
    return np.hstack(parts)


_RESPONSES = {
    "CalibratedClassifierCV": Response(_probabilities, _of_one_sigmoid),
    "OneVsRestClassifier": Response(_probabilities, _of_scores),
    "MultiOutputClassifier": Response(_probabilities_of_targets, _of_targets),
    "ForestClassifier": Response(_probabilities_of_targets, _of_targets),
    "DecisionTreeClassifier": Response(_probabilities_of_targets, _of_targets),
}
