"""scikit-survival: forests of survival trees, and boosted regression trees.

Its forests are scikit-learn's, with a curve in every leaf: the cumulative hazard and the survival function at the
times of the training data. A risk score, and either curve at any time, are means over the trees.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.arguments import check_arguments
from fouriershap._base.checks import check_choice
from fouriershap._base.errors import InputError, UnsupportedModelError
from fouriershap._base.links import UNKNOWN
from fouriershap._base.messages import truncated_repr
from fouriershap._libraries.reading import Answer, Library, Question, Reading, require_fitted
from fouriershap._libraries.sklearn.names import match_names
from fouriershap._libraries.sklearn.trees import make_reading, read_gradient_boosting, tree_of
from fouriershap._trees.assemble import Tree

_CURVES = ("cumulative_hazard", "survival")  # in this order in the leaves


def read_tree(model: Any) -> Reading:
    """SurvivalTree: its risk score, the sum of the cumulative hazard over the times of events."""
    require_fitted(model, "tree_")
    return _read_risk(model, [model])


def read_forest(model: Any) -> Reading:
    """RandomSurvivalForest and ExtraSurvivalTrees: the mean risk score over the trees."""
    require_fitted(model, "estimators_")
    return _read_risk(model, model.estimators_)


def read_boosting(model: Any) -> Reading:
    """GradientBoostingSurvivalAnalysis: the linear predictor; log times where the loss is "squared" or "ipcwls"."""
    require_fitted(model, "estimators_")
    reading = read_gradient_boosting(model)
    trees = reading.trees
    # Trees that dropout kept have scales of their own.
    scales = np.asarray(getattr(model, "_scale", np.ones(trees.n_trees)), dtype=np.float64)
    values = trees.values * scales[trees.tree_of_node][:, None]
    return reading.replace(values=values, kind=f"scikit-survival {type(model).__name__}", link=UNKNOWN)


@check_arguments
def survival_trees(model: Any, times: ArrayLike, *, curve: str = "survival") -> Reading:
    """Read a survival forest as trees whose outputs are its curve at chosen times.

    Parameters
    ----------
    model : SurvivalTree, RandomSurvivalForest or ExtraSurvivalTrees
        A fitted model of scikit-survival, not one with ``low_memory=True``: that keeps no curves.
    times : array_like, shape (n_times,)
        From 0 to the last time of the training data. A curve is constant between the times of the training data.
    curve : {"survival", "cumulative_hazard"}

    Returns
    -------
    Reading
        With an output per time; give it to `TreeExplainer` in place of the model.

    Examples
    --------
    >>> import fouriershap as fs
    >>> from sksurv.datasets import load_whas500  # doctest: +SKIP
    >>> from sksurv.ensemble import RandomSurvivalForest  # doctest: +SKIP
    >>> X, y = load_whas500()  # doctest: +SKIP
    >>> forest = RandomSurvivalForest(random_state=0).fit(X, y)  # doctest: +SKIP
    >>> explainer = fs.TreeExplainer(fs.survival_trees(forest, [365, 730]), X)  # doctest: +SKIP
    """
    check_choice("curve", curve, _CURVES)
    estimators = _estimators(model)
    if model.low_memory:
        raise UnsupportedModelError(
            f"model is a {type(model).__name__}(low_memory=True), which keeps risk scores alone, no curves. Fit it "
            "with low_memory=False."
        )
    positions, chosen = _positions(times, model.unique_times_)
    column = _CURVES.index(curve)
    values = [estimator.tree_.value[:, positions, column] for estimator in estimators]
    letter = "S" if curve == "survival" else "H"
    names = tuple(f"{letter}({time:g})" for time in chosen)
    return _read(model, estimators, values).replace(output_names=names)


def _estimators(model: Any) -> list[Any]:
    package = type(model).__module__.partition(".")[0]
    if package != "sksurv" or not (hasattr(model, "low_memory") and hasattr(model, "predict")):
        raise UnsupportedModelError(
            f"model is a {type(model).__module__}.{type(model).__qualname__}; curves are read from scikit-survival's "
            "SurvivalTree, RandomSurvivalForest and ExtraSurvivalTrees."
        )
    is_forest = hasattr(model, "n_estimators")
    require_fitted(model, "estimators_" if is_forest else "tree_")
    return list(model.estimators_) if is_forest else [model]


def _positions(times: ArrayLike, known: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return the column of the curves that holds at each time; the first one before the first time."""
    try:
        chosen = np.asarray(times, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"times is {truncated_repr(times)}; give numbers.") from None
    if chosen.ndim != 1 or not len(chosen):
        raise InputError(f"times has the shape {chosen.shape}; give a list of times, for one time [t].")
    if not (np.isfinite(chosen).all() and (chosen >= 0).all() and (chosen <= known[-1]).all()):
        raise InputError(
            f"times is {truncated_repr(times)}; the curves of this model go from 0 to {known[-1]:g}, and say "
            "nothing beyond."
        )
    return np.maximum(np.searchsorted(known, chosen, side="right") - 1, 0), chosen


def _read_risk(model: Any, estimators: list[Any]) -> Reading:
    if model.low_memory:
        values = [estimator.tree_.value[:, 0, :1] for estimator in estimators]
    else:
        values = [e.tree_.value[:, e.is_event_time_, 0].sum(axis=1)[:, None] for e in estimators]
    return _read(model, estimators, values)


def _read(model: Any, estimators: list[Any], values: list[NDArray[np.float64]]) -> Reading:
    trees: list[Tree] = []
    for estimator, value in zip(estimators, values, strict=True):
        tree = tree_of(estimator.tree_)
        tree.values = value
        trees.append(tree)
    width = values[0].shape[1]
    outputs = np.full(len(trees), -1 if width > 1 else 0)
    reading = make_reading(model, trees, outputs, np.zeros(width), np.float32, width, 1 / len(estimators))
    return reading.replace(kind=f"scikit-survival {type(model).__name__}", link=UNKNOWN)


def _ask(reading: Reading, question: Question) -> Iterator[Answer]:
    model = reading.model
    predicted = model.predict(match_names(question.asked, model))
    yield Answer(np.log(predicted) if getattr(model, "loss", "coxph") != "coxph" else predicted)


LIBRARY = Library(
    name="scikit-survival",
    package="sksurv",
    supported_trees=(
        "forests, trees and boosted trees of scikit-survival: risk scores; curves by fs.survival_trees",
    ),
    tested="0.23",
    trees={
        "SurvivalTree": read_tree,
        "RandomSurvivalForest": read_forest,
        "ExtraSurvivalTrees": read_forest,
        "GradientBoostingSurvivalAnalysis": read_boosting,
    },
    ask=_ask,
)
