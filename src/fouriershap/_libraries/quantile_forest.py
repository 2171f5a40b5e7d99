"""quantile-forest: the mean of its forests, where it is a sum over the trees.

These forests keep training targets in their leaves. With one a leaf (``max_samples_leaf=1``, their default) the mean
that they predict is the mean over the trees. With more, targets of all trees are thrown together before the mean is
taken, so that a large leaf counts more: a ratio of two sums. Quantiles are not sums either.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fouriershap._base.errors import UnsupportedModelError
from fouriershap._base.messages import truncated_repr
from fouriershap._libraries.reading import Answer, Library, Question, Reading, require_fitted
from fouriershap._libraries.sklearn.names import match_names
from fouriershap._libraries.sklearn.trees import make_reading, tree_of
from fouriershap._trees.assemble import Tree

_WAY_OUT = (
    "fs.BlackBoxExplainer(lambda X: model.predict(X, quantiles=0.5), background) fits any of its predictions; with "
    "default_quantiles='mean' and max_samples_leaf=1 the mean is explained exactly."
)


def read(model: Any) -> Reading:
    """RandomForestQuantileRegressor and ExtraTreesQuantileRegressor that predict means."""
    require_fitted(model, "forest_")
    name, quantiles = type(model).__name__, model.default_quantiles
    if quantiles not in (None, "mean", ["mean"]):
        raise UnsupportedModelError(
            f"model is a {name}(default_quantiles={truncated_repr(quantiles)}): quantiles over trees are not "
            "a sum of trees. " + _WAY_OUT
        )
    if model.max_samples_leaf != 1:
        raise UnsupportedModelError(
            f"model is a {name}(max_samples_leaf={truncated_repr(model.max_samples_leaf)}), whose mean is over "
            "the targets of all trees together, in which large leaves count more: it is not a sum of trees. "
            + _WAY_OUT
        )
    targets = np.asarray(model.forest_.y_train).T  # (n_train, n_outputs)
    kept = np.asarray(model.forest_.y_train_leaves)[
        ..., 0
    ]  # (n_trees, n_nodes, n_outputs), from 1; 0 for none
    bounds = None if model.monotonic_cst is None else np.asarray(model.forest_.y_bound_leaves)
    trees: list[Tree] = []
    for number, estimator in enumerate(model.estimators_):
        tree = tree_of(estimator.tree_)
        position = kept[number, : len(tree.left)].astype(np.intp) - 1
        tree.values = np.take_along_axis(targets, position, axis=0)
        if bounds is not None:
            low, high = bounds[number, : len(tree.left), 0], bounds[number, : len(tree.left), 1]
            tree.values = np.clip(tree.values, low[:, None], high[:, None])
        trees.append(tree)
    width = targets.shape[1]
    outputs = np.full(len(trees), -1 if width > 1 else 0)
    reading = make_reading(model, trees, outputs, np.zeros(width), np.float32, width, 1 / len(trees))
    return reading.replace(kind=f"quantile-forest {name}")


def _ask(reading: Reading, question: Question) -> Iterator[Answer]:
    yield Answer(reading.model.predict(match_names(question.asked, reading.model)))


LIBRARY = Library(
    name="quantile-forest",
    package="quantile_forest",
    supported_trees=("forests of quantile-forest that predict means, with one sample per leaf",),
    tested="1.4.0 to 1.4.2",
    trees={"BaseForestQuantileRegressor": read},
    ask=_ask,
)
