"""scikit-learn: single trees, forests, gradient boosting, isolation forests.

The arrays of `sklearn.tree` are a documented interface and hold all that is needed, and scikit-learn's own
rounding (rows to float32, thresholds in float64) can be kept exactly; so they are read as they are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import UnsupportedModelError
from fouriershap._base.links import EXP, IDENTITY, LOGISTIC, MEAN, PROBABILITY, SOFTMAX, UNKNOWN, Link
from fouriershap._base.messages import truncated_repr
from fouriershap._libraries.reading import Reading, class_names, fitted_names, require_fitted, tree_reading
from fouriershap._rows.labels import LABELS, LabelRule
from fouriershap._rows.rules import Casting
from fouriershap._trees.assemble import Tree, join, right_above

# Rows are cast as a whole, frames by way of the type that their columns share.
CASTING = Casting(
    "scikit-learn", rounds_once=True, lists_to_double=True, missing_to_double=("polars", "pyarrow")
)
HIST_CASTING = replace(CASTING, name="scikit-learn histograms", reads_sparse=False)
_LABELS = LabelRule("scikit-learn", LABELS, LABELS, is_typed=True, takes_bools=False)


def read_tree(model: Any) -> Reading:
    """DecisionTree and ExtraTree: predicted values, or class probabilities."""
    require_fitted(model, "tree_")
    return _read_averaged(model, [model])


def read_forest(model: Any) -> Reading:
    """RandomForest and ExtraTrees: the mean over the trees of values, or of class probabilities."""
    require_fitted(model, "estimators_")
    return _read_averaged(model, model.estimators_)


def read_gradient_boosting(model: Any) -> Reading:
    """GradientBoosting: what ``decision_function`` (classifier) or ``predict`` (regressor) returns."""
    require_fitted(model, "estimators_")
    init = model.init_
    if not isinstance(init, str) and type(init).__name__ not in ("DummyClassifier", "DummyRegressor"):
        raise UnsupportedModelError(
            f"{type(model).__name__}(init={truncated_repr(init)}): the initial estimator is a model of its "
            "own, and cannot "
            "be represented as trees. Fit with init=None or init='zero'."
        )
    # The prior goes through the loss's link function; scikit-learn has no public name for the result.
    base = model._raw_predict_init(np.zeros((1, model.n_features_in_)))[0]
    trees = [tree_of(e.tree_) for e in model.estimators_.ravel()]
    outputs = np.tile(np.arange(len(base)), len(model.estimators_))
    return make_reading(model, trees, outputs, base, np.float32, scale=model.learning_rate)


def read_isolation_forest(model: Any) -> Reading:
    """IsolationForest: the mean path length, as `shap.TreeExplainer` explains it (long: ordinary row).

    ``score_samples`` is ``-2 ** (-mean path length / c)`` with a constant c: monotone in what is explained.
    """
    require_fitted(model, "estimators_")
    trees = []
    for estimator, columns in zip(model.estimators_, model.estimators_features_, strict=True):
        tree = tree_of(estimator.tree_)
        # A tree may see only some of the columns (max_features), and numbers them anew.
        tree.feature = np.where(tree.left < 0, -1, np.asarray(columns)[np.maximum(tree.feature, 0)])
        length = _depths(tree) + average_path_length(estimator.tree_.n_node_samples)
        tree.values = length[:, None] / len(model.estimators_)
        trees.append(tree)
    return make_reading(model, trees, np.zeros(len(trees)), np.zeros(1), np.float32, accepts_infinite=True)


def _read_averaged(model: Any, estimators: list[Any]) -> Reading:
    is_classifier, n_targets = hasattr(model, "classes_"), model.n_outputs_
    trees = [tree_of(e.tree_) for e in estimators]
    width, names = n_targets, None
    if is_classifier:
        # The classes of all targets, one target after the other; leaves have room for the most that any has.
        classes = list(model.classes_) if n_targets > 1 else [model.classes_]
        kept = np.arange(max(map(len, classes))) < np.array([[len(known)] for known in classes])
        width = int(kept.sum())
        for tree in trees:
            tree.values = tree.values[:, kept]
        if n_targets > 1:
            names = tuple(f"target {k}: {label}" for k, known in enumerate(classes) for label in known)
    outputs = np.full(len(trees), -1 if width > 1 else 0)
    reading = make_reading(model, trees, outputs, np.zeros(width), np.float32, width, 1 / len(estimators))
    return reading if names is None else reading.replace(output_names=names)


def tree_of(tree: Any) -> Tree:
    """Return a tree of ``sklearn.tree``."""
    return Tree(
        feature=tree.feature,
        threshold=tree.threshold,
        left=tree.children_left,
        right=tree.children_right,
        missing_left=tree.missing_go_to_left,
        cover=tree.weighted_n_node_samples,
        values=tree.value,
    )


def make_reading(
    model: Any,
    trees: list[Tree],
    outputs: NDArray[Any],
    base: NDArray[Any],
    dtype: type[np.floating[Any]],
    width: int = 1,
    scale: float = 1.0,
    **rules: Any,
) -> Reading:
    """Return the reading of trees whose values are times ``scale``."""
    arrays = join(trees, width)
    arrays["values"] *= scale
    # Rows are cast to `dtype` and go left where they are <= a threshold in float64. For all trees at once.
    arrays["threshold"] = np.where(arrays["feature"] < 0, 0.0, right_above(arrays["threshold"], dtype))
    return tree_reading(
        f"scikit-learn {type(model).__name__}",
        arrays,
        model.n_features_in_,
        dtype,
        outputs,
        base,
        link=_link(model, len(base)),
        output_names=class_names(model, len(base)),
        is_boosted=_is_boosted(model),
        accepts_missing=_accepts_missing(model),
        feature_names=fitted_names(model),
        **({"casting": CASTING, "accepts_infinite": dtype is not np.float32} | rules),
    )


def _is_boosted(model: Any) -> bool:
    return any("GradientBoosting" in base.__name__ for base in type(model).__mro__)  # subclasses, too


def _link(model: Any, n_outputs: int) -> Link:
    boosted, loss = _is_boosted(model), getattr(model, "loss", None)
    if hasattr(model, "classes_"):
        if not boosted:
            return PROBABILITY
        return (LOGISTIC if n_outputs == 1 else SOFTMAX) if loss == "log_loss" else UNKNOWN
    if boosted and loss in ("poisson", "gamma"):
        return EXP
    loss = loss if boosted else getattr(model, "criterion", None)
    if any(base.__name__ == "OutlierMixin" for base in type(model).__mro__):
        return UNKNOWN
    return MEAN if loss in ("squared_error", "friedman_mse") else IDENTITY


def _accepts_missing(model: Any) -> bool:
    if hasattr(model, "__sklearn_tags__"):  # since scikit-learn 1.6
        return bool(model.__sklearn_tags__().input_tags.allow_nan)
    return not type(model).__name__.startswith("GradientBoosting")


def _depths(tree: Tree) -> NDArray[np.float64]:
    depth = np.zeros(len(tree.left))
    for node in np.flatnonzero(tree.left >= 0):  # scikit-learn numbers a parent before its children
        depth[[tree.left[node], tree.right[node]]] = depth[node] + 1
    return depth


def average_path_length(n_samples: NDArray[Any]) -> NDArray[np.float64]:
    """Mean length of an unsuccessful search in a binary search tree (Liu et al. 2008, Eq. 1)."""
    n = np.asarray(n_samples, dtype=np.float64)
    many = np.maximum(n, 3)
    length = 2 * (np.log(many - 1) + np.euler_gamma) - 2 * (many - 1) / many
    return np.select([n <= 1, n == 2], [0.0, 1.0], length)


def read_hist_gradient_boosting(model: Any) -> Reading:
    """HistGradientBoosting: the raw output before the link function (binary: one output)."""
    require_fitted(model, "_predictors")
    base = np.ravel(model._baseline_prediction)
    columns, vocabularies = _hist_columns(model)
    known = {f: np.arange(len(labels)) for f, labels in vocabularies.items()}
    trees = [_from_predictor(p, columns, known) for iteration in model._predictors for p in iteration]
    outputs = np.tile(np.arange(len(base)), len(model._predictors))
    return make_reading(
        model,
        trees,
        outputs if trees else np.zeros(1),
        base,
        np.float64,
        vocabularies=vocabularies,
        labels=_LABELS if vocabularies else LabelRule(),
        casting=HIST_CASTING,
    )


def _hist_columns(model: Any) -> tuple[NDArray[np.intp], dict[int, tuple[Any, ...]]]:
    """Where the columns that the trees number came from, and the labels of categorical columns.

    scikit-learn encodes categorical columns and puts them before the numerical ones.
    """
    if model._preprocessor is None:
        return np.arange(model.n_features_in_), {}
    categorical = np.flatnonzero(model.is_categorical_)
    columns = np.concatenate([categorical, np.flatnonzero(~model.is_categorical_)])
    encoder = model._preprocessor.named_transformers_["encoder"]
    vocabularies = {}
    for feature, labels in zip(categorical, encoder.categories_, strict=True):
        # NaN, always the last label, stays NaN under this encoder: it is not a category.
        known = [label for label in labels.tolist() if label is None or label == label]
        vocabularies[int(feature)] = tuple(known)
    return columns, vocabularies


def _from_predictor(predictor: Any, columns: NDArray[np.intp], known: dict[int, NDArray[np.int64]]) -> Tree:
    nodes = predictor.nodes
    is_leaf = nodes["is_leaf"].astype(bool)
    left = np.where(is_leaf, -1, nodes["left"].astype(np.int64))
    right = np.where(is_leaf, -1, nodes["right"].astype(np.int64))
    missing_left = nodes["missing_go_to_left"].astype(bool)
    feature = np.where(is_leaf, -1, columns[np.where(is_leaf, 0, nodes["feature_idx"])])
    bits = np.unpackbits(
        np.ascontiguousarray(predictor.raw_left_cat_bitsets, dtype="<u4").view(np.uint8),
        axis=-1,
        bitorder="little",
    )
    categories = {}
    for node in np.flatnonzero(~is_leaf & (nodes["is_categorical"] != 0)):
        listed = np.flatnonzero(bits[nodes["bitset_idx"][node]])
        if missing_left[node]:
            # Unknown categories go where missing ones go. In our form they go right, so the sides swap.
            listed = np.setdiff1d(known[int(feature[node])], listed)
            left[node], right[node] = right[node], left[node]
            missing_left[node] = False
        categories[int(node)] = listed
    return Tree(
        feature=feature,
        threshold=nodes["num_threshold"],
        left=left,
        right=right,
        missing_left=missing_left,
        cover=nodes["count"],
        values=nodes["value"],
        categories=categories,
    )
