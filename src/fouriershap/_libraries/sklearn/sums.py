"""scikit-learn's estimators that add up what their members say: sums of trees, where the members are such sums.

A mean of predictions is a sum of trees where each member predicts its raw output. A member that predicts a sigmoid, a
softmax or an exponential of its trees makes no such sum, and is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fouriershap._base.errors import UnsupportedModelError
from fouriershap._base.short import short, short_text
from fouriershap._trees.arithmetic import (
    add,
    average,
    map_leaves,
    map_outputs,
    on_columns,
    scaled,
    side_by_side,
)
from fouriershap._trees.ensemble import BEHIND_STEPS, MIXED, TreeEnsemble
from fouriershap._trees.readers.assemble import class_names, join, leaf, require_fitted
from fouriershap._trees.readers.lightgbm import given_names

Read = Callable[[Any], TreeEnsemble]  # reads a member, whatever its library

_IDENTITY = ("squared_error", "regression")
_LINKS = {
    "binary": "a sigmoid",
    "multiclass": "a softmax",
    "log": "an exponential",
    "log1p": "an exponential",
}


def read_bagging(model: Any, read: Read) -> TreeEnsemble:
    """BaggingRegressor, BaggingClassifier: the mean over members, each of which sees some of the columns."""
    require_fitted(model, "estimators_")
    n_classes = len(model.classes_) if hasattr(model, "classes_") else 0
    parts = []
    for member, columns in zip(model.estimators_, model.estimators_features_, strict=True):
        part = predicted(read(member), member, model)
        part = on_columns(part, columns, model.n_features_in_)
        if n_classes and n_classes != part.n_outputs:  # classes that are not in a member's sample
            part = map_outputs(part, np.eye(n_classes)[:, np.asarray(member.classes_, dtype=np.int64)])
        # Members get arrays, whatever the caller's rows are: only scikit-learn's own cast these alike.
        alike = part.casting in ("scikit-learn", *BEHIND_STEPS)
        parts.append(part if alike else part.replace(casting=MIXED))
    return finished(average(parts), model)


def read_voting(model: Any, read: Read) -> TreeEnsemble:
    """VotingRegressor, VotingClassifier(voting="soft"): the weighted mean over members."""
    require_fitted(model, "estimators_")
    if getattr(model, "voting", "soft") != "soft":
        raise UnsupportedModelError(
            f"model is a {type(model).__name__} with voting={short(model.voting)}: it names the class that most of its "
            "members name, which is no sum of trees. voting='soft' is one; it takes the mean of probabilities."
        )
    parts = [predicted(read(member), member, model) for member in model.estimators_]
    return finished(average(parts, model._weights_not_none), model)


def read_multi_output(model: Any, read: Read) -> TreeEnsemble:
    """MultiOutputRegressor, MultiOutputClassifier: the raw outputs of all members, one target after the other."""
    require_fitted(model, "estimators_")
    parts = [read(member) for member in model.estimators_]
    kinds = {_IDENTITY[1] if part.objective in _IDENTITY else part.objective for part in parts}
    if len(kinds) > 1 and kinds != {"binary", "multiclass"}:
        raise UnsupportedModelError(
            f"model is a {type(model).__name__} whose members predict in different ways ({short(sorted(kinds))}): "
            "explain them one by one, model.estimators_[k]."
        )
    kind = "" if "multiclass" in kinds else kinds.pop()
    names = [
        f"target {k}" if label is None else f"target {k}: {label}"
        for k, part in enumerate(parts)
        for label in part.output_names or (None,) * part.n_outputs
    ]
    joined = finished(side_by_side(parts), model, kind)
    return joined.replace(output_names=tuple(names))


def read_one_vs_rest(model: Any, read: Read) -> TreeEnsemble:
    """OneVsRestClassifier: the score of each class against the rest, before these are divided by their sum.

    Scores are the members' margins (boosting), or their probabilities (forests). Of two classes both probabilities.
    """
    require_fitted(model, "estimators_")
    parts: list[TreeEnsemble | None] = [
        None if type(member).__name__ == "_ConstantPredictor" else read(member)
        for member in model.estimators_
    ]
    known = [part for part in parts if part is not None]
    kinds = {part.objective for part in known}
    if len(kinds) != 1 or not kinds <= {"binary", "probability"}:
        raise UnsupportedModelError(
            f"model is a {type(model).__name__} whose members have no score of one kind ({short(sorted(kinds))})."
        )
    kind = kinds.pop()
    if kind == "binary" and len(known) < len(parts) and not hasattr(model, "decision_function"):
        raise UnsupportedModelError(
            f"model is a {type(model).__name__} with a class that is always or never there: it has no log odds."
        )
    scores = []
    for part, member in zip(parts, model.estimators_, strict=True):
        if part is None:
            scores.append(_constant(known[0], float(np.ravel(member.y_)[0])))
        else:
            scores.append(map_outputs(part, [[0.0, 1.0]]) if kind == "probability" else part)
    joined = side_by_side(scores)
    if kind == "binary" and len(known) < len(parts):  # the score of such a class is no log odds
        return finished(joined, model, "")
    if len(scores) == 1:
        both = map_outputs(joined, [[-1.0], [1.0]], [1.0, 0.0]) if kind == "probability" else joined
        return finished(both, model, kind)
    return finished(joined, model, kind if model.multilabel_ else f"one against the rest: {kind}")


def _constant(like: TreeEnsemble, value: float) -> TreeEnsemble:
    """One output that is always the same, of rows like those of another ensemble."""
    return like.replace(
        n_outputs=1, base=[value], tree_output=[0], output_names=None, **join([leaf([0.0], 1.0)])
    )


def read_ada_boost(model: Any, read: Read) -> TreeEnsemble:
    """AdaBoostClassifier: its decision function, to which each member adds its weight for the class that it names."""
    require_fitted(model, "estimators_")
    n_classes = len(model.classes_)
    real = getattr(model, "algorithm", None) == "SAMME.R"  # gone since scikit-learn 1.6
    parts = []
    for member, weight in zip(model.estimators_, model.estimator_weights_, strict=False):
        part = read(member)
        if (
            part.n_trees != 1
            or part.objective != "probability"
            or part.n_outputs != n_classes
            or n_classes < 2
        ):
            raise UnsupportedModelError(
                f"model is an {type(model).__name__} of {short_text(part.kind)}: members vote for the class that they "
                "name, which is a sum of trees where each member is one tree classifier."
            )
        votes = map_leaves(part, _log_votes if real else _votes)
        votes = votes if n_classes > 2 else map_outputs(votes, [[-1.0, 1.0]])
        parts.append(votes if real else scaled(votes, float(weight)))
    total = scaled(add(parts), 1 / float(np.sum(model.estimator_weights_)))
    done = finished(total, model, "binary" if n_classes == 2 else "")
    return done.replace(accepts_missing=False)  # it checks rows itself


def _votes(share: np.ndarray) -> np.ndarray:
    """1 for the class that a leaf names, what makes the sum zero for all others."""
    named = np.eye(share.shape[1])[share.argmax(axis=1)]
    return np.asarray(np.where(named > 0, 1.0, -1.0 / (share.shape[1] - 1)))


def _log_votes(share: np.ndarray) -> np.ndarray:
    """Logarithms of the shares of the classes less their mean, as SAMME.R has them."""
    log = np.log(np.clip(share, np.finfo(share.dtype).eps, None))
    return np.asarray((share.shape[1] - 1) * (log - log.mean(axis=1, keepdims=True)))


def refuse_ada_boost_regressor(model: Any, read: Read) -> TreeEnsemble:
    """AdaBoostRegressor: by its own rule no sum."""
    raise UnsupportedModelError(
        f"model is an {type(model).__name__}, which predicts the weighted median of its members: no sum of trees."
    )


def predicted(part: TreeEnsemble, member: Any, model: Any) -> TreeEnsemble:
    """A member's reading, where it is what the member predicts; else the error that says why not."""
    wanted = ("probability",) if hasattr(model, "classes_") else _IDENTITY
    if part.objective in wanted:
        return part
    link = _LINKS.get(part.objective, "some function")
    raise UnsupportedModelError(
        f"model is a {type(model).__name__}, which uses what its members predict, and {type(member).__name__} predicts "
        f"{link} of a sum of trees. What comes of these is no sum of trees."
    )


def finished(total: TreeEnsemble, model: Any, objective: str | None = None) -> TreeEnsemble:
    """A sum as the reading of ``model``: its names, its kind, and what its raw output means."""
    if objective is None:
        objective = "probability" if hasattr(model, "classes_") else "regression"
    # A sum takes the names of the first member that has some, also those that LightGBM makes up.
    names = given_names([str(name) for name in getattr(model, "feature_names_in_", ())])
    return total.replace(
        feature_names=names or total.feature_names,
        output_names=class_names(model, total.n_outputs),
        kind=f"scikit-learn {type(model).__name__}",
        objective=objective,
    )


def members_of(model: Any) -> Sequence[Any]:
    """The fitted members of such an estimator, or what is there of them."""
    calibrated = getattr(model, "calibrated_classifiers_", None)
    if calibrated is not None:
        return [part.estimator for part in calibrated]
    return list(getattr(model, "estimators_", ()))
