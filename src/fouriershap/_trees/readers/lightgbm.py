"""LightGBM: its text model, whose numbers read back to the same float64.

Read directly and not through treelite, which knows neither the mean over a random forest nor zeros that count
as missing, and drops the labels of categories.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import InputError, UnsupportedModelError
from fouriershap._trees.ensemble import ZERO_BAND, TreeEnsemble
from fouriershap._trees.readers.assemble import Tree, bits_of, class_names, join, leaf, right_above

# A sigmoid with another slope is not the log odds.
_OBJECTIVES = {"binary sigmoid:1": "binary", "cross_entropy": "binary", "multiclass": "multiclass"}
_OBJECTIVES |= {"regression": "squared_error"}
_OBJECTIVES |= dict.fromkeys(("regression_l1", "huber", "fair", "quantile", "mape"), "regression")
_OBJECTIVES |= dict.fromkeys(("poisson", "gamma", "tweedie"), "log")
_NONE, _ZERO, _NAN = 0, 1, 2  # kinds of missing values


def read_estimator(model: Any) -> TreeEnsemble:
    """LGBMRegressor and its kin: the trees that ``predict`` uses, up to the best iteration."""
    if not hasattr(model, "_Booster") or model._Booster is None:
        raise InputError(f"model is a {type(model).__name__} that is not fitted. Call its fit(X, y) first.")
    ensemble = read_booster(model.booster_)
    names = class_names(model, ensemble.n_outputs)
    return ensemble.replace(output_names=names, casting="lightgbm")


def read_booster(model: Any) -> TreeEnsemble:
    """Booster: as ``Booster.predict`` does, the trees up to the best iteration where there is one."""
    return read_text(model.model_to_string())


def read_text(text: str) -> TreeEnsemble:
    """The text model of LightGBM."""
    head, *blocks = text.split("\nTree=")
    header = _fields(head)
    n_features = int(header["max_feature_idx"]) + 1
    n_outputs = int(header["num_tree_per_iteration"])
    documents = [_fields(block.split("\nend of trees")[0]) for block in blocks]
    # A forest predicts the mean over its trees, and then applies the link function. LightGBM's own raw scores
    # and contributions are the sums.
    scale = n_outputs / len(documents) if "average_output" in header else 1.0
    zeros = _zero_as_missing(documents, n_features)
    trees = [_tree(document, scale) for document in documents]
    labels = _frame_labels(text)
    vocabularies, lost = _vocabularies(labels, header["feature_infos"].split())
    return TreeEnsemble(
        n_features=n_features,
        n_outputs=n_outputs,
        dtype=np.dtype(np.float64),
        tree_output=(np.arange(max(len(trees), 1)) % n_outputs).astype(np.int32),
        base=np.zeros(n_outputs),
        zero_as_missing=zeros,
        feature_names=given_names(header["feature_names"].split()),
        vocabularies=vocabularies,
        lost_labels=lost,
        frame_labels=labels,
        objective=_OBJECTIVES.get(header.get("objective", "").partition(" num_class")[0], ""),
        casting="lightgbm booster",
        kind="lightgbm rf" if "average_output" in header else "lightgbm gbdt",
        **join(trees),
    )


def given_names(names: list[str]) -> tuple[str, ...] | None:
    """Names of features, unless LightGBM made them up."""
    made_up = [f"Column_{f}" for f in range(len(names))]
    return None if names == made_up else tuple(names)


def _fields(block: str) -> dict[str, str]:
    """``key=value`` lines; a line without a value is a flag."""
    return {key: value for key, _, value in (line.partition("=") for line in block.splitlines())}


def _numbers(text: str, dtype: Any) -> NDArray[Any]:
    return np.array(text.split(), dtype=dtype)


def _missing_kind(decision: NDArray[np.int64]) -> NDArray[np.int64]:
    return decision >> 2 & 3


def _zero_as_missing(documents: list[dict[str, str]], n_features: int) -> NDArray[np.bool_]:
    kinds = np.zeros((3, n_features), dtype=bool)
    for document in documents:
        decision = _numbers(document.get("decision_type", ""), np.int64)
        feature = _numbers(document.get("split_feature", ""), np.int64)
        numerical = decision & 1 == 0
        kinds[_missing_kind(decision[numerical]), feature[numerical]] = True
    mixed = np.flatnonzero(kinds[_ZERO] & kinds[_NAN])
    if len(mixed):
        raise UnsupportedModelError(
            f"feature {mixed[0]}: zero counts as missing in some trees of this LightGBM model and as a "
            "number in others (training was continued with another zero_as_missing). Use one setting."
        )
    zeros: NDArray[np.bool_] = kinds[_ZERO]
    return zeros


def _tree(document: dict[str, str], scale: float) -> Tree:
    if document.get("is_linear", "0") != "0":
        raise UnsupportedModelError(
            "model is a LightGBM model with linear_tree=True: its leaves hold linear functions, which no "
            "table of leaf values can represent. Train with linear_tree=False."
        )
    n_leaves = int(document["num_leaves"])
    values = _numbers(document["leaf_value"], np.float64) * scale
    leaf_cover = _numbers(document.get("leaf_count", ""), np.float64)
    if n_leaves == 1:
        return leaf(values, float(leaf_cover.sum()))
    decision = _numbers(document["decision_type"], np.int64)
    threshold = _numbers(document["threshold"], np.float64)
    n_inner = n_leaves - 1
    ends = np.full(n_leaves, -1)

    def nodes(key: str) -> NDArray[Any]:
        # Inner nodes come first; a negative child c is the leaf -c - 1.
        child = _numbers(document[key], np.int64)
        return np.concatenate([np.where(child < 0, n_inner - child - 1, child), ends])

    return Tree(
        feature=np.concatenate([_numbers(document["split_feature"], np.int64), ends]),
        threshold=np.concatenate([_canonical(threshold), np.zeros(n_leaves)]),
        left=nodes("left_child"),
        right=nodes("right_child"),
        missing_left=np.concatenate([_missing_left(decision, threshold), np.zeros(n_leaves, dtype=bool)]),
        cover=np.concatenate([_numbers(document["internal_count"], np.float64), leaf_cover]),
        values=np.concatenate([np.zeros(n_inner), values]),
        categories=_categories(document, decision, threshold),
    )


def _canonical(threshold: NDArray[np.float64]) -> NDArray[np.float64]:
    """The least number that goes right. LightGBM reads all ``|x| <= ZERO_BAND`` as 0.0 before it compares."""
    above = right_above(threshold, np.float64)
    inside = (threshold >= -ZERO_BAND) & (threshold <= ZERO_BAND)
    zero_side = np.where(threshold < 0, -ZERO_BAND, np.nextafter(ZERO_BAND, np.inf))
    return np.where(inside, zero_side, above)


def _missing_left(decision: NDArray[np.int64], threshold: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Where NaN goes: as 0.0 unless missing values were seen in training; right at categorical nodes."""
    left = np.where(_missing_kind(decision) == _NONE, threshold >= 0, decision & 2 != 0)
    left[decision & 1 != 0] = False
    return left


def _categories(
    document: dict[str, str], decision: NDArray[np.int64], threshold: NDArray[np.float64]
) -> dict[int, NDArray[np.int64]]:
    nodes = np.flatnonzero(decision & 1)
    if len(nodes) == 0:
        return {}
    words = _numbers(document["cat_threshold"], np.uint32)
    bounds = _numbers(document["cat_boundaries"], np.int64)
    index = threshold[nodes].astype(np.int64)
    return {int(v): bits_of(words[bounds[i] : bounds[i + 1]]) for v, i in zip(nodes, index, strict=True)}


def _frame_labels(text: str) -> tuple[tuple[Any, ...], ...]:
    """The labels of the columns that were categorical in the frame of the training data, in their order."""
    mark = "\npandas_categorical:"
    found = json.loads(text.rsplit(mark, 1)[1].splitlines()[0]) if mark in text else None
    return tuple(tuple(labels) for labels in found or ())


def _vocabularies(
    labels: tuple[tuple[Any, ...], ...], infos: list[str]
) -> tuple[dict[int, tuple[Any, ...]], tuple[int, ...]]:
    """Labels by feature, for rows that are no frames, and the features whose labels are not known.

    LightGBM does not say which columns the labels belong to. Categorical features are the ones described as
    ``0:3:1`` and not as ``[0:3]``; where their number differs (ordered categories, constant columns), nothing is
    guessed: such columns have to be given as codes, or in a frame.
    """
    columns = [f for f, info in enumerate(infos) if info != "none" and not info.startswith("[")]
    if len(columns) != len(labels):
        return {}, tuple(columns) if labels else ()
    return {f: tuple(names) for f, names in zip(columns, labels, strict=True)}, ()
