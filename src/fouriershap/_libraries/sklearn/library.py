"""scikit-learn: trees, sums of trees, linear models, kernel machines, networks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fouriershap._base.links import (
    EXP,
    LOGISTIC,
    ONE_VS_REST_LOGISTIC,
    normalized,
    normalized_sigmoids,
    sigmoid,
    softmax,
)
from fouriershap._libraries.reading import Answer, Floats, Library, Question, Reading
from fouriershap._libraries.sklearn import kernels, linear, networks, trees
from fouriershap._libraries.sklearn.harmless import HARMLESS
from fouriershap._libraries.sklearn.names import match_names
from fouriershap._libraries.sklearn.sums import SUMS, members

_FEWEST_TREES, _NODES_PER_TREE = 4, 200


def _ask(reading: Reading, question: Question) -> Iterator[Answer]:
    model = reading.model
    if not reading.is_trees:
        yield from _ask_products(reading, match_names(question.asked, model))
        return
    bases = [base.__name__ for base in type(model).__mro__ if base.__module__.startswith("sklearn.")]
    several_targets = getattr(model, "n_outputs_", 1) > 1
    transform = _transform(reading, bases, several_targets)
    if transform is not None:
        outputs = model.predict_proba(match_names(question.asked, model))
        yield Answer(np.hstack(outputs) if isinstance(outputs, list) else outputs, transform)
    elif not question.whole and ("ForestRegressor" in bases or "ForestClassifier" in bases):
        yield _ask_forest(reading, question)
    else:
        yield Answer(_raw_output(reading, match_names(question.asked, model), bases))


def _ask_products(reading: Reading, rows: Any) -> Iterator[Answer]:
    model, response = reading.model, (reading.model_link or reading.link).response
    if hasattr(model, "decision_function"):
        yield Answer(model.decision_function(rows))
    if response is None:
        return
    if hasattr(model, "predict_proba"):
        probability = np.asarray(model.predict_proba(rows))
        binary = reading.n_outputs == 1 and probability.shape[1] == 2
        yield Answer(probability[:, 1] if binary else probability, response)
    elif not hasattr(model, "decision_function"):
        yield Answer(model.predict(rows), response)


def _raw_output(reading: Reading, rows: Any, bases: list[str]) -> Any:
    model = reading.model
    if "IsolationForest" in bases:
        # score = -2 ** (-mean path length / c): solved for the mean path length.
        length = trees.average_path_length(np.array([model._max_samples]))
        return -np.log2(-model.score_samples(rows)) * length
    if hasattr(model, "decision_function"):
        return model.decision_function(rows)
    if hasattr(model, "predict_proba"):
        return model.predict_proba(rows)
    predicted = model.predict(rows)
    raw_is_log = (reading.model_link or reading.link) is EXP
    return np.log(predicted) if raw_is_log else predicted


def _ask_forest(reading: Reading, question: Question) -> Answer:
    """Ask some trees of a forest, of which ``predict`` takes longer than explaining a hundred rows.

    Trees are all read alike, so that a few of them show an error as well: all, unless they are so small that
    explaining costs little more than asking.
    """
    e, model = reading.trees, reading.model
    n_asked = min(e.n_trees, max(_FEWEST_TREES, e.n_nodes // _NODES_PER_TREE))
    step = e.n_trees // n_asked
    chosen = slice(0, step * n_asked, step)
    asked = model.estimators_[chosen]
    rows = model._validate_X_predict(
        match_names(question.asked, model)
    )  # which is where a forest refuses rows
    total: Floats = sum([tree.tree_.predict(rows) for tree in asked]).reshape(rows.shape[0], -1)
    if hasattr(model, "classes_") and abs(total[0].sum() / len(asked) - 1) > 1e-6:
        # What the inner trees say is no longer what the forest takes the mean of.
        total = sum([tree.predict_proba(rows) for tree in asked])
    return Answer(total / len(model.estimators_), None, chosen)


def _transform(
    reading: Reading, bases: list[str], several_targets: bool
) -> Callable[[Floats], Floats] | None:
    """Return what makes probabilities of raw outputs, for classifiers that do not tell their raw output."""
    model, link = reading.model, reading.link
    if hasattr(model, "decision_function") or not hasattr(model, "classes_"):
        return None
    if "CalibratedClassifierCV" in bases:
        return _both_classes
    if "OneVsRestClassifier" in bases:
        if link is LOGISTIC:
            return _both_classes if reading.n_outputs == 1 else sigmoid
        if link.raw_is_probability:
            return _same
        return normalized_sigmoids if link is ONE_VS_REST_LOGISTIC else normalized
    if "MultiOutputClassifier" in bases and not link.raw_is_probability:
        return lambda raw: _classes_of_targets(model, raw)
    is_tree = "ForestClassifier" in bases or "DecisionTreeClassifier" in bases
    return _same if "MultiOutputClassifier" in bases or (is_tree and several_targets) else None


def _same(raw: Floats) -> Floats:
    return raw


def _both_classes(raw: Floats) -> Floats:
    second = sigmoid(raw)
    return np.hstack([1 - second, second])


def _classes_of_targets(model: Any, raw: Floats) -> Floats:
    parts, first = [], 0
    for member in model.estimators_:
        n_classes = len(member.classes_)
        width = 1 if n_classes == 2 else n_classes
        margin = raw[:, first : first + width]
        parts.append(_both_classes(margin) if width == 1 else softmax(margin))
        first += width
    return np.hstack(parts)


LIBRARY = Library(
    name="scikit-learn",
    package="sklearn",
    supported_trees=(
        "trees of scikit-learn: DecisionTree, ExtraTree, RandomForest, ExtraTrees, GradientBoosting, "
        "HistGradientBoosting, IsolationForest",
        "sums of tree models: Bagging, soft Voting, MultiOutput, OneVsRest, AdaBoost, linear Stacking, one sigmoid of "
        "CalibratedClassifierCV",
    ),
    supported_products=(
        "linear models, support vector machines, Gaussian processes, KernelRidge and small networks of scikit-learn, "
        "where they are sums of products",
    ),
    tested="1.5 to 1.9",
    trees={
        "BaseDecisionTree": trees.read_tree,
        "ForestClassifier": trees.read_forest,
        "ForestRegressor": trees.read_forest,
        "BaseGradientBoosting": trees.read_gradient_boosting,
        "BaseHistGradientBoosting": trees.read_hist_gradient_boosting,
        "IsolationForest": trees.read_isolation_forest,
        **SUMS,
    },
    products={
        "SGDOneClassSVM": linear.read_one_class,
        "LinearClassifierMixin": linear.read_classifier,
        "BaseSGDRegressor": linear.read_linear,
        "_GeneralizedLinearRegressor": linear.read_generalised,
        "LinearModel": linear.read_linear,
        "_PLS": linear.read_partial_least_squares,
        "BaseLibSVM": kernels.read_vectors,
        "KernelRidge": kernels.read_ridge,
        "GaussianProcessRegressor": kernels.read_process,
        "BaseMultilayerPerceptron": networks.read_network,
    },
    ask=_ask,
    frames=("polars",),
    members=members,
    harmless=HARMLESS,
)
