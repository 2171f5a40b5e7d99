"""Sums of tree ensembles are tree ensembles: weights, means, outputs side by side, subsets of the columns.

A sum reads a row once, so its parts must agree on how rows are read. Where they read numbers in different precision,
thresholds are moved to the same side of every number; where they differ in what is missing, or in what a label is,
there is no such sum, and an error says why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fouriershap._base.errors import InputError, UnsupportedModelError
from fouriershap._base.short import short, short_text
from fouriershap._trees.ensemble import BEHIND_STEPS, LEAF, MIXED, STEPS, STEPS_MIXED, TreeEnsemble

_ONE_BY_ONE = ("probability", "binary", "squared_error", "regression", "log", "log1p")
# What the kinds of models say of which any number of rounds is a model, too.
_BOOSTED = ("xgboost", "lightgbm gbdt", "catboost", "GradientBoosting", "GRADIENT_BOOSTED", "spark GBT")
# Castings that round an integer up to 2^53 once or not at all, as after a cast to float64.
_ROUND_ONCE = {"scikit-learn", "xgboost", "catboost", STEPS}
_PER_NODE = ("feature", "threshold", "missing_left", "cover", "values")


def map_outputs(e: TreeEnsemble, matrix: ArrayLike, shift: ArrayLike = 0.0) -> TreeEnsemble:
    """The ensemble whose outputs are ``matrix @ outputs + shift``; matrix (n_new, n_outputs)."""
    weights = np.asarray(matrix, dtype=np.float64)
    base = weights @ e.base + np.asarray(shift, dtype=np.float64)
    if e.values.shape[1] > 1:
        values, output = e.values @ weights.T, np.full(e.n_trees, -1)
    elif (np.count_nonzero(weights, axis=0) <= 1).all():  # each output goes to one, and stays a number
        place = np.abs(weights).argmax(axis=0)
        factor = weights[place, np.arange(e.n_outputs)][e.tree_output]
        values, output = e.values * factor[e.tree_of_node, None], place[e.tree_output]
    else:
        values = e.values * weights.T[e.tree_output][e.tree_of_node]
        output = np.full(e.n_trees, -1)
    return e.replace(n_outputs=len(base), base=base, values=values, tree_output=output, output_names=None)


def one_output(e: TreeEnsemble, output: int) -> TreeEnsemble:
    """One of the outputs, by the trees that add to it; its meaning is kept where it depends on no other output."""
    if not 0 <= output < e.n_outputs:
        raise InputError(
            f"output is {short(output)}; the model has {e.n_outputs} outputs: give a number from 0 to "
            f"{e.n_outputs - 1}, or the name of what is explained."
        )
    matrix = np.zeros((1, e.n_outputs))
    matrix[0, output] = 1.0
    adding = (e.tree_output == output) | (e.tree_output < 0)
    kept = adding if adding.any() else np.arange(e.n_trees) == 0
    names = None if e.output_names is None else (e.output_names[output],)
    alone = e.objective if e.n_outputs == 1 or e.objective in _ONE_BY_ONE else ""
    return map_outputs(e, matrix).select(kept).replace(output_names=names, objective=alone)


def first_trees(e: TreeEnsemble, limit: int) -> TreeEnsemble:
    """A boosted model as it was after its first trees."""
    if not any(word in e.kind for word in _BOOSTED):
        raise InputError(
            f"tree_limit is {short(limit)}, but the model ({short_text(e.kind)}) is not boosted, so that some of its "
            "trees are no model of their own. Leave it out, or train a model with fewer trees."
        )
    per_round = len(np.unique(e.tree_output))
    if not 0 < limit <= e.n_trees or limit % per_round:
        step = f", a multiple of its {per_round} outputs" if per_round > 1 else ""
        raise InputError(f"tree_limit is {short(limit)}; give a number of trees from 1 to {e.n_trees}{step}.")
    return e.select(np.arange(e.n_trees) < limit)


def scaled(e: TreeEnsemble, factor: float) -> TreeEnsemble:
    """Every output times a number."""
    return e.replace(values=e.values * factor, base=e.base * factor)


def map_leaves(
    e: TreeEnsemble, function: Callable[[NDArray[np.float64]], NDArray[np.float64]]
) -> TreeEnsemble:
    """Other values (n_leaves, n_new) for the leaves of trees that hold vectors (n_leaves, n_outputs); base 0."""
    leaves = e.feature == LEAF
    found = np.asarray(function(e.values[leaves]), dtype=np.float64)
    values = np.zeros((e.n_nodes, found.shape[1]))
    values[leaves] = found
    output = np.full(e.n_trees, -1)
    return e.replace(
        n_outputs=found.shape[1],
        base=np.zeros(found.shape[1]),
        values=values,
        tree_output=output,
        output_names=None,
    )


def on_columns(e: TreeEnsemble, columns: ArrayLike, n_features: int) -> TreeEnsemble:
    """The same trees in a wider row: their feature f is its column ``columns[f]``; columns may repeat."""
    place = np.asarray(columns, dtype=np.int64)
    zeros = np.zeros(n_features, dtype=bool)
    zeros[place[e.zero_as_missing]] = True
    same = n_features == e.n_features and np.array_equal(place, np.arange(n_features))
    return e.replace(
        n_features=n_features,
        feature=np.where(e.feature == LEAF, LEAF, np.append(place, LEAF)[e.feature]),
        zero_as_missing=zeros,
        vocabularies={int(place[f]): labels for f, labels in e.vocabularies.items()},
        lost_labels=tuple(int(place[f]) for f in e.lost_labels),
        feature_names=e.feature_names if same else None,
        frame_labels=e.frame_labels if same else (),
    )


def side_by_side(parts: Sequence[TreeEnsemble]) -> TreeEnsemble:
    """All outputs of all parts, in their order."""
    ends = np.cumsum([part.n_outputs for part in parts])
    placed = []
    for part, end in zip(parts, ends, strict=True):
        matrix = np.zeros((ends[-1], part.n_outputs))
        matrix[np.arange(end - part.n_outputs, end), np.arange(part.n_outputs)] = 1.0
        placed.append(map_outputs(part, matrix))
    return add(placed)


def average(parts: Sequence[TreeEnsemble], weights: ArrayLike | None = None) -> TreeEnsemble:
    """The weighted mean of ensembles of the same outputs."""
    share = np.ones(len(parts)) if weights is None else np.asarray(weights, dtype=np.float64)
    return add([scaled(part, w) for part, w in zip(parts, share / share.sum(), strict=True)])


def add(parts: Sequence[TreeEnsemble]) -> TreeEnsemble:
    """The sum of ensembles of the same features and outputs; its kind and names are those of the first."""
    reading = [part for part in parts if (part.feature != LEAF).any()] or list(
        parts
    )  # constants read nothing
    _check_shapes(parts)
    _check_missing(reading)
    _check_labels(reading)
    if len({part.dtype for part in reading}) > 1:
        parts = [in_double(part) for part in parts]
        reading = [part for part in parts if (part.feature != LEAF).any()]
    vocabularies, parts = _one_vocabulary(parts, reading)
    labelled = next((part for part in reading if _has_labels(part)), reading[0])
    names = [part.feature_names for part in reading if part.feature_names is not None]
    return parts[0].replace(
        **_joined(parts),
        dtype=reading[0].dtype,
        zero_as_missing=np.any([part.zero_as_missing for part in reading], axis=0),
        missing_value=reading[0].missing_value,
        accepts_missing=all(part.accepts_missing for part in reading),
        vocabularies=vocabularies,
        lost_labels=labelled.lost_labels,
        frame_labels=labelled.frame_labels,
        numbers_are_labels=labelled.numbers_are_labels,
        negative_is_unknown=labelled.negative_is_unknown,
        hashed=labelled.hashed,
        casting=_casting(reading),
        absent_is_missing=reading[0].absent_is_missing,
        computes_in=min((part.computes_in for part in parts), key=lambda dtype: dtype.itemsize),
        feature_names=names[0] if names and all(other == names[0] for other in names) else None,
    )


def behind_steps(castings: set[str]) -> str:
    """How rows of members are cast, some of which are behind steps; ``castings`` are those of all."""
    return STEPS if castings <= _ROUND_ONCE else STEPS_MIXED


def _casting(parts: Sequence[TreeEnsemble]) -> str:
    castings = {(part.casting, part.absent_is_missing) for part in parts}
    if any(casting in BEHIND_STEPS for casting, _ in castings):
        return behind_steps({casting for casting, _ in castings})
    return parts[0].casting if len(castings) == 1 else MIXED


def _joined(parts: Sequence[TreeEnsemble]) -> dict[str, Any]:
    """Nodes of all parts one after the other; numbers at leaves become vectors where some part has these."""
    width = max(part.values.shape[1] for part in parts)
    parts = [part if part.values.shape[1] == width else _with_vectors(part) for part in parts]
    first_node = np.cumsum([0, *(part.n_nodes for part in parts)])
    first_set = np.cumsum([0, *(len(part.set_start) - 1 for part in parts)])
    first_category = np.cumsum([0, *(len(part.set_categories) for part in parts)])

    def moved(name: str, offsets: NDArray[Any]) -> NDArray[Any]:
        arrays = [getattr(part, name) for part in parts]
        return np.concatenate(
            [np.where(a < 0, a, a + start) for a, start in zip(arrays, offsets[:-1], strict=True)]
        )

    joined: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in _PER_NODE
    }
    joined |= {name: moved(name, first_node) for name in ("left", "right", "roots")}
    joined |= {"category_set": moved("category_set", first_set)}
    starts = [part.set_start[:-1] + first for part, first in zip(parts, first_category[:-1], strict=True)]
    return joined | {
        "set_start": np.append(np.concatenate(starts), first_category[-1]),
        "set_categories": np.concatenate([part.set_categories for part in parts]),
        "tree_output": np.concatenate([part.tree_output for part in parts]),
        "base": np.sum([part.base for part in parts], axis=0),
    }


def _with_vectors(e: TreeEnsemble) -> TreeEnsemble:
    values = e.values * np.eye(e.n_outputs)[e.tree_output][e.tree_of_node]
    return e.replace(values=values, tree_output=np.full(e.n_trees, -1))


# Whether one reading of a row serves all parts.


def _refuse(parts: Sequence[TreeEnsemble], why: str) -> None:
    kinds = short_text(", ".join(dict.fromkeys(part.kind for part in parts)))
    raise UnsupportedModelError(f"the members of this model ({kinds}) make no one sum of trees: {why}")


def _check_shapes(parts: Sequence[TreeEnsemble]) -> None:
    for what in ("n_features", "n_outputs"):
        found = sorted({getattr(part, what) for part in parts})
        if len(found) > 1:
            _refuse(parts, f"they differ in their numbers of {what.removeprefix('n_')}, {short(found)}.")


def _tested(e: TreeEnsemble) -> NDArray[np.bool_]:
    """(n_features,) features that some node tests."""
    mask = np.zeros(e.n_features, dtype=bool)
    mask[e.feature[e.feature != LEAF]] = True
    return mask


def _check_missing(parts: Sequence[TreeEnsemble]) -> None:
    stated = {None if np.isnan(part.missing_value) else part.missing_value for part in parts}
    if len(stated) > 1 or (stated != {None} and len({part.dtype for part in parts}) > 1):
        _refuse(parts, f"the number {short(stated - {None})} counts as missing in some of them.")
    zeros = np.any([part.zero_as_missing for part in parts], axis=0)
    for part in parts:
        differs = np.flatnonzero(_tested(part) & zeros & ~part.zero_as_missing)
        if len(differs):
            _refuse(parts, f"zero counts as missing in some of them, for feature {differs[0]}.")


def _has_labels(e: TreeEnsemble) -> bool:
    return bool(e.vocabularies) or bool(e.lost_labels) or bool(e.frame_labels) or bool(e.is_categorical.any())


def _check_labels(parts: Sequence[TreeEnsemble]) -> None:
    labelled = [part for part in parts if _has_labels(part)]
    if not labelled:
        return
    rules = ("numbers_are_labels", "negative_is_unknown", "hashed", "frame_labels", "lost_labels")
    for rule in rules:
        if any(getattr(part, rule) != getattr(labelled[0], rule) for part in labelled[1:]):
            _refuse(labelled, "they take labels of categories in different ways.")
    if len({part.dtype for part in parts}) > 1 and not labelled[0].numbers_are_labels:
        _refuse(parts, "they read the codes of categories in different precision.")
    categorical = np.any([part.is_categorical for part in labelled], axis=0)
    for part in labelled:
        categorical[list(part.vocabularies)] = True
    for part in parts:
        as_number = _tested(part) & ~part.is_categorical & categorical
        if not _has_labels(part) and as_number.any():
            feature = np.flatnonzero(as_number)[0]
            _refuse(parts, f"feature {feature} is a number to some of them, and a category to others.")


def _one_vocabulary(
    parts: Sequence[TreeEnsemble], reading: Sequence[TreeEnsemble]
) -> tuple[dict[int, tuple[Any, ...]], Sequence[TreeEnsemble]]:
    """One vocabulary per feature, and the parts in its codes."""
    found: dict[int, dict[Any, int]] = {}
    for part in reading:
        for feature, labels in part.vocabularies.items():
            codes = found.setdefault(feature, {})
            for label in labels:
                codes.setdefault(label, len(codes))
    merged = {feature: tuple(codes) for feature, codes in found.items()}
    recoded = []
    for part in parts:
        changed = [f for f, labels in part.vocabularies.items() if labels != merged[f]]
        if changed and not part.numbers_are_labels:
            _refuse(
                reading, f"they know feature {changed[0]} by different labels, whose codes are rows, too."
            )
        recoded.append(_recoded(part, found, changed) if changed else part)
    return merged, recoded


def _recoded(e: TreeEnsemble, codes: dict[int, dict[Any, int]], features: list[int]) -> TreeEnsemble:
    """The ensemble in the codes of a larger vocabulary; what it does not know goes right, as before."""
    categories = e.set_categories.copy()
    for node in np.flatnonzero((e.category_set >= 0) & np.isin(e.feature, features)):
        feature, s = int(e.feature[node]), e.category_set[node]
        members = slice(e.set_start[s], e.set_start[s + 1])
        labels = e.vocabularies[feature]
        categories[members] = np.sort([codes[feature][labels[c]] for c in e.set_categories[members]])
    return e.replace(set_categories=categories)


def in_double(e: TreeEnsemble) -> TreeEnsemble:
    """The same decisions on rows in float64: thresholds at the least double that float32 rounds to the threshold."""
    if e.dtype == np.float64:
        return e
    with np.errstate(over="ignore", invalid="ignore"):
        narrow = e.threshold.astype(np.float32)
        neighbour = np.nextafter(narrow, np.float32("-inf"))
        below = np.where(np.isneginf(neighbour), -(2.0**128), neighbour.astype(np.float64))
        top = np.where(np.isposinf(narrow), 2.0**128, narrow.astype(np.float64))
        middle = below / 2 + top / 2  # exact: neighbours in float32 have room between them in float64
        tie_counts = middle.astype(np.float32) >= narrow
    threshold = np.where(tie_counts, middle, np.nextafter(middle, np.inf))
    threshold = np.where(np.isneginf(narrow), -np.inf, threshold)
    return e.replace(dtype=np.dtype(np.float64), threshold=np.where(np.isnan(narrow), np.nan, threshold))
