"""scikit-learn's estimators that add up what their members say: sums of trees, where the members are such sums.

A mean of predictions is a sum of trees where each member predicts its raw output. A member that predicts a sigmoid, a
softmax or an exponential of its trees makes no such sum, and is refused by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fouriershap._base.errors import UnsupportedModelError
from fouriershap._base.links import (
    EXP,
    EXPM1,
    IDENTITY,
    LOGISTIC,
    ONE_VS_REST_LOGISTIC,
    ONE_VS_REST_PROBABILITY,
    PROBABILITY,
    SOFTMAX,
    UNKNOWN,
    Link,
)
from fouriershap._base.messages import truncated_repr, truncated_text
from fouriershap._libraries.arithmetic import (
    add,
    average,
    map_columns,
    map_leaves,
    map_outputs,
    scaled,
    side_by_side,
)
from fouriershap._libraries.reading import (
    Floats,
    Reading,
    class_names,
    fitted_names,
    require_fitted,
)
from fouriershap._libraries.registry import read_member
from fouriershap._libraries.sklearn.trees import CASTING, HIST_CASTING
from fouriershap._rows.rules import MIXED
from fouriershap._trees.assemble import join, leaf

_LINEAR = ("LinearModel", "LinearClassifierMixin", "BaseSGDRegressor")
_FUNCTIONS = {LOGISTIC: "a sigmoid", SOFTMAX: "a softmax", EXP: "an exponential", EXPM1: "an exponential"}


def read_bagging(model: Any) -> Reading:
    """BaggingRegressor, BaggingClassifier: the mean over members, each of which sees some of the columns."""
    require_fitted(model, "estimators_")
    n_classes = len(model.classes_) if hasattr(model, "classes_") else 0
    parts = []
    for member, columns in zip(model.estimators_, model.estimators_features_, strict=True):
        part = predicted(read_member(member), member, model)
        part = map_columns(part, columns, model.n_features_in_)
        if n_classes and n_classes != part.n_outputs:  # classes that are not in a member's sample
            part = map_outputs(part, np.eye(n_classes)[:, np.asarray(member.classes_, dtype=np.int64)])
        # Members get arrays, whatever the caller's rows are: only scikit-learn's own cast these alike.
        alike = part.rules.casting in (CASTING, HIST_CASTING) or part.rules.casting.behind_steps
        parts.append(part if alike else part.replace(casting=MIXED))
    return finished(average(parts), model)


def read_voting(model: Any) -> Reading:
    """VotingRegressor, VotingClassifier(voting="soft"): the weighted mean over members."""
    require_fitted(model, "estimators_")
    if getattr(model, "voting", "soft") != "soft":
        raise UnsupportedModelError(
            f"model is a {type(model).__name__} with voting={truncated_repr(model.voting)}: it names the class "
            "that most of its "
            "members name, which is not a sum of trees. voting='soft' is one; it takes the mean of probabilities."
        )
    parts = [predicted(read_member(member), member, model) for member in model.estimators_]
    return finished(average(parts, model._weights_not_none), model)


def read_multi_output(model: Any) -> Reading:
    """MultiOutputRegressor, MultiOutputClassifier: the raw outputs of all members, one target after the other."""
    require_fitted(model, "estimators_")
    parts = [read_member(member) for member in model.estimators_]
    links = {IDENTITY if _predicts_raw(part.link) else part.link for part in parts}
    if len(links) > 1 and links != {LOGISTIC, SOFTMAX}:
        raise UnsupportedModelError(
            f"model is a {type(model).__name__} whose members predict in different ways ({_listed(links)}): "
            "explain them one by one, model.estimators_[k]."
        )
    link = UNKNOWN if SOFTMAX in links else links.pop()
    names = [
        f"target {k}" if label is None else f"target {k}: {label}"
        for k, part in enumerate(parts)
        for label in part.output_names or (None,) * part.n_outputs
    ]
    joined = finished(side_by_side(parts), model, link)
    return joined.replace(output_names=tuple(names))


def read_one_vs_rest(model: Any) -> Reading:
    """OneVsRestClassifier: the score of each class against the rest, before these are divided by their sum.

    Scores are the members' margins (boosting), or their probabilities (forests). Of two classes both probabilities.
    """
    require_fitted(model, "estimators_")
    parts: list[Reading | None] = [
        None if type(member).__name__ == "_ConstantPredictor" else read_member(member)
        for member in model.estimators_
    ]
    known = [part for part in parts if part is not None]
    links = {part.link for part in known}
    if len(links) != 1 or not links <= {LOGISTIC, PROBABILITY}:
        raise UnsupportedModelError(
            f"model is a {type(model).__name__} whose members do not have scores of one kind ({_listed(links)})."
        )
    link = links.pop()
    has_constant = len(known) < len(parts)
    if link is LOGISTIC and has_constant and not hasattr(model, "decision_function"):
        raise UnsupportedModelError(
            f"model is a {type(model).__name__} with a class that is always or never there: it has no log odds."
        )
    scores = []
    for part, member in zip(parts, model.estimators_, strict=True):
        if part is None:
            scores.append(_constant(known[0], float(np.ravel(member.y_)[0])))
        else:
            scores.append(map_outputs(part, [[0.0, 1.0]]) if link is PROBABILITY else part)
    joined = side_by_side(scores)
    if link is LOGISTIC and has_constant:  # the score of such a class is not a log odds
        return finished(joined, model, UNKNOWN)
    if len(scores) == 1:
        both = map_outputs(joined, [[-1.0], [1.0]], [1.0, 0.0]) if link is PROBABILITY else joined
        return finished(both, model, link)
    one_vs_rest = ONE_VS_REST_LOGISTIC if link is LOGISTIC else ONE_VS_REST_PROBABILITY
    return finished(joined, model, link if model.multilabel_ else one_vs_rest)


def _constant(like: Reading, value: float) -> Reading:
    """Return one output that is always the same, of rows like those of another reading."""
    return like.replace(
        output_names=None, n_outputs=1, base=[value], tree_output=[0], **join([leaf([0.0], 1.0)])
    )


def read_ada_boost(model: Any) -> Reading:
    """AdaBoostClassifier: its decision function, to which each member adds its weight for the class that it names."""
    require_fitted(model, "estimators_")
    n_classes = len(model.classes_)
    real = getattr(model, "algorithm", None) == "SAMME.R"  # gone since scikit-learn 1.6
    parts = []
    for member, weight in zip(model.estimators_, model.estimator_weights_, strict=False):
        part = read_member(member)
        one_tree = part.trees.n_trees == 1 and part.link is PROBABILITY
        if not one_tree or part.n_outputs != n_classes or n_classes < 2:
            raise UnsupportedModelError(
                f"model is an {type(model).__name__} of {truncated_text(part.kind)}: members vote for the "
                "class that they "
                "name, which is a sum of trees where each member is one tree classifier."
            )
        votes = map_leaves(part, _log_votes if real else _votes)
        votes = votes if n_classes > 2 else map_outputs(votes, [[-1.0, 1.0]])
        parts.append(votes if real else scaled(votes, float(weight)))
    total = scaled(add(parts), 1 / float(np.sum(model.estimator_weights_)))
    done = finished(total, model, LOGISTIC if n_classes == 2 else UNKNOWN)
    return done.replace(accepts_missing=False)  # it checks rows itself


def _votes(share: Floats) -> Floats:
    """1 for the class that a leaf names, what makes the sum zero for all others."""
    named = np.eye(share.shape[1])[share.argmax(axis=1)]
    return np.asarray(np.where(named > 0, 1.0, -1.0 / (share.shape[1] - 1)))


def _log_votes(share: Floats) -> Floats:
    """Logarithms of the shares of the classes less their mean, as SAMME.R has them."""
    log = np.log(np.clip(share, np.finfo(share.dtype).eps, None))
    return np.asarray((share.shape[1] - 1) * (log - log.mean(axis=1, keepdims=True)))


def refuse_ada_boost_regressor(model: Any) -> Reading:
    """AdaBoostRegressor: by its own rule no sum."""
    raise UnsupportedModelError(
        f"model is an {type(model).__name__}, which predicts the weighted median of its members: not a sum of trees."
    )


def read_stacking(model: Any) -> Reading:
    """StackingRegressor, StackingClassifier with a linear last step: what it predicts, or its decision function."""
    require_fitted(model, "final_estimator_")
    last = model.final_estimator_
    if model.passthrough:
        raise UnsupportedModelError(
            f"model is a {type(model).__name__} with passthrough=True: its last step sees the columns of the rows "
            "beside its members, and is not a sum of trees."
        )
    if not _is_linear(last):
        raise UnsupportedModelError(
            f"model is a {type(model).__name__} whose last step is a {type(last).__name__}: only behind a linear one "
            "is it a sum of trees."
        )
    parts = [
        _column(member, method, model)
        for member, method in zip(model.estimators_, model.stack_method_, strict=True)
    ]
    stacked = map_outputs(side_by_side(parts), np.atleast_2d(last.coef_), np.ravel(last.intercept_))
    return finished(stacked, model, _last_link(last, stacked.n_outputs))


def _column(member: Any, method: str, model: Any) -> Reading:
    """Return what the last step sees of a member."""
    if hasattr(model, "classes_") and (method == "predict" or isinstance(model.classes_, list)):
        raise UnsupportedModelError(
            f"model is a {type(model).__name__} whose last step sees the classes that its members name, or several "
            "targets: not a sum of trees."
        )
    part = read_member(member)
    if method == "decision_function" and part.link is not PROBABILITY:
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


def _last_link(last: Any, n_outputs: int) -> Link:
    if not hasattr(last, "classes_"):
        return IDENTITY
    if not any(base.__name__ == "LogisticRegression" for base in type(last).__mro__):
        return UNKNOWN
    if n_outputs == 1:
        return LOGISTIC
    apart = last.solver == "liblinear" or getattr(last, "multi_class", "") == "ovr"
    return UNKNOWN if apart else SOFTMAX


def read_calibrated(model: Any) -> Reading:
    """CalibratedClassifierCV of two classes by one sigmoid: the log odds of the probability, linear in the score."""
    require_fitted(model, "calibrated_classifiers_")
    found = model.calibrated_classifiers_
    one_sigmoid = len(found) == 1 and model.method == "sigmoid" and len(model.classes_) == 2
    if not one_sigmoid:
        many = f"the mean of {len(found)} models, each behind " if len(found) > 1 else ""
        raise UnsupportedModelError(
            f"model is a {type(model).__name__}(method={truncated_repr(model.method)}) of "
            f"{len(model.classes_)} classes, {many}"
            "a calibration of its own: no function of one sum of trees. One sigmoid is (two classes, ensemble=False or "
            "a fitted model given)."
        )
    member, calibrator = found[0].estimator, found[0].calibrators[0]
    part = read_member(member)
    if not (hasattr(member, "decision_function") and part.link is LOGISTIC):
        part = map_outputs(predicted(part, member, model), [[0.0, 1.0]])
    log_odds = map_outputs(part, [[-float(calibrator.a_)]], [-float(calibrator.b_)])
    return finished(log_odds, model, LOGISTIC)


def predicted(part: Reading, member: Any, model: Any) -> Reading:
    """Return a member's reading where it is what the member predicts; otherwise raise, and say why not."""
    wanted = part.link.raw_is_probability if hasattr(model, "classes_") else _predicts_raw(part.link)
    if wanted:
        return part
    function = _FUNCTIONS.get(part.link, "some function")
    raise UnsupportedModelError(
        f"model is a {type(model).__name__}, which uses what its members predict, and {type(member).__name__} predicts "
        f"{function} of a sum of trees. The result is not a sum of trees."
    )


def finished(total: Reading, model: Any, link: Link | None = None) -> Reading:
    """Return a sum as the reading of ``model``: with its names, its kind and its link."""
    if link is None:
        link = PROBABILITY if hasattr(model, "classes_") else IDENTITY
    # A sum takes the names of the first member that has some, also those that LightGBM makes up.
    names = fitted_names(model)
    if names == tuple(f"Column_{f}" for f in range(len(names or ()))):
        names = None
    return total.replace(
        feature_names=names or total.feature_names,
        output_names=class_names(model, total.n_outputs),
        kind=f"scikit-learn {type(model).__name__}",
        link=link,
        is_boosted=False,
    )


def members(model: Any) -> Sequence[tuple[Any, Any]] | None:
    """Return the fitted members of a model of models with the columns that each sees; None for other models."""
    if not any(base.__name__ in SUMS for base in type(model).__mro__):
        return None
    calibrated = getattr(model, "calibrated_classifiers_", None)
    if calibrated is not None:
        return [(part.estimator, None) for part in calibrated]
    found = list(getattr(model, "estimators_", ()))
    columns = getattr(model, "estimators_features_", [None] * len(found))
    return list(zip(found, columns, strict=True))


def _predicts_raw(link: Link) -> bool:
    return link.is_identity and not link.gives_probability


def _listed(links: set[Link]) -> str:
    return truncated_repr(sorted(link.name for link in links))


SUMS = {
    "BaggingClassifier": read_bagging,
    "BaggingRegressor": read_bagging,
    "VotingClassifier": read_voting,
    "VotingRegressor": read_voting,
    "MultiOutputClassifier": read_multi_output,
    "MultiOutputRegressor": read_multi_output,
    "OneVsRestClassifier": read_one_vs_rest,
    "AdaBoostClassifier": read_ada_boost,
    "AdaBoostRegressor": refuse_ada_boost_regressor,
    "StackingClassifier": read_stacking,
    "StackingRegressor": read_stacking,
    "CalibratedClassifierCV": read_calibrated,
}
