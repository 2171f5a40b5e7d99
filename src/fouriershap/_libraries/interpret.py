"""interpret: explainable boosting machines, with their interactions.

Such a model is a sum of terms, each a table over the bins of one feature, of two, seldom of more. Here every term is
one tree: the bins of its first feature halved again and again, under each of them those of the second. The first
entry of every axis is for missing values, the last one for labels that training has not seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.links import LOGISTIC, MEAN, SOFTMAX, UNKNOWN, Link
from fouriershap._libraries.reading import (
    Answer,
    Library,
    Question,
    Reading,
    class_names,
    require_fitted,
    tree_reading,
)
from fouriershap._rows.labels import LABELS, LabelRule
from fouriershap._trees.assemble import Tree, join
from fouriershap._trees.ensemble import LEAF

_LABELS = LabelRule("interpret", LABELS, LABELS)
_MADE_UP = re.compile(r"feature_\d{4}")  # the names that columns of arrays get


def read(model: Any) -> Reading:
    """ExplainableBoostingClassifier and -Regressor: the intercept plus all terms, before any link."""
    require_fitted(model, "term_scores_")
    base = np.atleast_1d(np.asarray(model.intercept_, dtype=np.float64))
    width = len(base)
    vocabularies, bins_of_labels = _vocabularies(model)
    trees = []
    for features, scores, weights in zip(
        model.term_features_, model.term_scores_, model.bin_weights_, strict=True
    ):
        axes = [_axis(model, feature, len(features), bins_of_labels) for feature in features]
        trees.append(_term(axes, np.asarray(scores).reshape(*weights.shape, width), np.asarray(weights)))
    names = tuple(str(name) for name in model.feature_names_in_)
    made_up = all(_MADE_UP.fullmatch(name) for name in names)
    n_features = len(names)
    return tree_reading(
        f"interpret {type(model).__name__}",
        join(trees, width),
        n_features,
        np.float64,
        np.full(max(len(trees), 1), -1 if width > 1 else 0),
        base,
        link=_link(model),
        output_names=class_names(model, width),
        feature_names=None if made_up else names,
        vocabularies=vocabularies,
        labels=_LABELS,
    )


def _link(model: Any) -> Link:
    if getattr(model, "objective", None) == "rmse":
        return MEAN
    return {"logit": LOGISTIC, "mlogit": SOFTMAX}.get(str(getattr(model, "link_", "")), UNKNOWN)


class _Axis(NamedTuple):
    """The bins of one feature in a term: from ``cuts``, or by label; category c is in bin ``bins[c]``."""

    feature: int
    cuts: NDArray[np.float64] | None
    bins: NDArray[np.int64] | None


def _axis(model: Any, feature: int, n_features: int, labels: dict[int, list[dict[Any, int]]]) -> _Axis:
    levels = model.bins_[feature]
    level = min(len(levels), n_features) - 1  # terms of more features may have coarser bins
    if feature not in labels:
        return _Axis(feature, np.asarray(levels[level], dtype=np.float64), None)
    return _Axis(feature, None, np.array(list(labels[feature][level].values()), dtype=np.int64))


def _vocabularies(model: Any) -> tuple[dict[int, tuple[Any, ...]], dict[int, list[dict[Any, int]]]]:
    """Labels of each categorical feature, and the bin of each label at each level.

    interpret knows labels by their texts, and makes texts of numbers: of 3.0, too, "3". So both are labels here.
    """
    vocabularies: dict[int, tuple[Any, ...]] = {}
    bins: dict[int, list[dict[Any, int]]] = {}
    for feature, kind in enumerate(model.feature_types_in_):
        if kind == "continuous":
            continue
        bins[feature] = [_with_numbers(level) for level in model.bins_[feature]]
        vocabularies[feature] = tuple(bins[feature][0])
        bins[feature] = [{label: level[label] for label in bins[feature][0]} for level in bins[feature]]
    return vocabularies, bins


def _with_numbers(level: dict[str, int]) -> dict[Any, int]:
    numbers: dict[Any, int] = {}
    for text, bin_ in level.items():
        try:
            number = float(text)
        except ValueError:
            continue
        whole = number.is_integer() and abs(number) < 1e16
        if np.isfinite(number) and text == (str(int(number)) if whole else str(number)):
            numbers[number] = bin_
    return dict(level) | numbers


class _Nodes:
    """Nodes of a tree as they are made."""

    def __init__(self) -> None:
        self.rows: list[list[Any]] = []  # feature, threshold, left, right, missing_left, cover, values
        self.categories: dict[int, NDArray[np.int64]] = {}

    def add(self, feature: int, cover: float, threshold: float = np.nan, missing_left: bool = False) -> int:
        self.rows.append([feature, threshold, LEAF, LEAF, missing_left, cover, None])
        return len(self.rows) - 1

    def connect(self, node: int, left: int, right: int) -> int:
        self.rows[node][2:4] = left, right
        return node


def _term(axes: Sequence[_Axis], scores: NDArray[np.float64], weights: NDArray[np.float64]) -> Tree:
    nodes = _Nodes()
    _grow(nodes, axes, scores, weights)
    *shape, values = zip(*nodes.rows, strict=True)
    feature, threshold, left, right, missing_left, cover = map(np.array, shape)
    nothing = np.zeros(scores.shape[-1])
    leaves = np.array([nothing if value is None else value for value in values])
    return Tree(feature, threshold, left, right, missing_left, cover, leaves, nodes.categories)


def _grow(
    nodes: _Nodes, axes: Sequence[_Axis], scores: NDArray[np.float64], weights: NDArray[np.float64]
) -> int:
    """Add the nodes over the first axis, and under each of its bins those over the others; return the first."""
    if not axes:
        leaf = nodes.add(LEAF, float(weights))
        nodes.rows[leaf][-1] = scores
        return leaf
    axis, rest = axes[0], axes[1:]

    def beneath(bin_: int) -> int:
        return _grow(nodes, rest, scores[bin_], weights[bin_])

    last = len(weights) - 1
    if axis.bins is None:
        root = nodes.add(axis.feature, float(weights[:last].sum()))  # all numbers go left
        return nodes.connect(root, _halve(nodes, axis, weights, 1, last, beneath), beneath(0))
    root = nodes.add(axis.feature, float(weights.sum()), missing_left=True)
    known = nodes.add(axis.feature, float(weights[:last].sum()))
    nodes.categories |= dict.fromkeys((root, known), np.arange(len(axis.bins)))
    nodes.connect(known, _halve(nodes, axis, weights, 1, last, beneath), beneath(0))
    return nodes.connect(root, known, beneath(last))


def _halve(
    nodes: _Nodes, axis: _Axis, weights: NDArray[np.float64], begin: int, end: int, beneath: Any
) -> int:
    """Add the nodes that tell the bins from ``begin`` to before ``end`` apart; return the first."""
    if end - begin <= 1:
        return int(beneath(begin))
    middle, cover = (begin + end) // 2, float(weights[begin:end].sum())
    if axis.bins is None:
        assert axis.cuts is not None
        node = nodes.add(axis.feature, cover, float(axis.cuts[middle - 2]))
    else:
        node = nodes.add(axis.feature, cover)
        nodes.categories[node] = np.flatnonzero((axis.bins >= begin) & (axis.bins < middle))
    left = _halve(nodes, axis, weights, begin, middle, beneath)
    return nodes.connect(node, left, _halve(nodes, axis, weights, middle, end, beneath))


def _ask(reading: Reading, question: Question) -> Iterator[Answer]:
    model, rows, labelled = reading.model, question.asked, reading.rules.vocabularies
    if hasattr(rows, "columns"):
        names = list(rows.columns)
        # Labels as they are: categories of pandas that hold texts and numbers confuse it.
        rows = rows.astype({names[feature]: object for feature in labelled})
        if reading.feature_names is None:  # and it warns of names that it does not know
            rows = rows.to_numpy(dtype=object if labelled else np.float64)
    yield Answer(model.eval_terms(rows).sum(axis=1) + model.intercept_)


LIBRARY = Library(
    name="interpret",
    package="interpret",
    supported_trees=("explainable boosting machines of interpret",),
    tested="0.7.7 and 0.7.8",
    trees={"EBMModel": read},
    ask=_ask,
)
