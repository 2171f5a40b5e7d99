"""LightGBM: its text model, whose numbers read back to the same float64.

Read directly and not through treelite, which knows neither the mean over a random forest nor zeros that count
as missing, and drops the labels of categories.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import InputError, UnsupportedModelError
from fouriershap._base.links import EXP, IDENTITY, LOGISTIC, MEAN, SOFTMAX, UNKNOWN
from fouriershap._base.messages import truncated_repr
from fouriershap._libraries.lightgbm_text import END, TextTrees, missing_kind, read_fields
from fouriershap._libraries.reading import (
    Answer,
    Format,
    Library,
    Question,
    Reading,
    class_names,
    tree_reading,
)
from fouriershap._rows.labels import REFUSED, LabelRule
from fouriershap._rows.rules import Casting
from fouriershap._trees.assemble import join, join_in_line
from fouriershap._trees.linear import LinearTrees

# A sigmoid with another slope is not the log odds.
_LINKS = {"binary sigmoid:1": LOGISTIC, "cross_entropy": LOGISTIC, "multiclass": SOFTMAX, "regression": MEAN}
_LINKS |= dict.fromkeys(("regression_l1", "huber", "fair", "quantile", "mape"), IDENTITY)
_LINKS |= dict.fromkeys(("poisson", "gamma", "tweedie"), EXP)
_ESTIMATOR_CASTING = Casting("lightgbm", integers_to_single=True)
_BOOSTER_CASTING = Casting("lightgbm booster", integers_to_single=True, objects_to_single=True)
_LABELS = LabelRule("LightGBM", in_frames=REFUSED, needs_categories=True, is_typed=True, alike=("integer",))
_MANY_TREES = 50  # whose text takes longer than making a file
_ZERO, _NAN = 1, 2  # kinds of missing values, beside none


def read_estimator(model: Any) -> Reading:
    """LGBMRegressor and its kin: the trees that ``predict`` uses, up to the best iteration."""
    if not hasattr(model, "_Booster") or model._Booster is None:
        raise InputError(f"model is a {type(model).__name__} that is not fitted. Call its fit(X, y) first.")
    reading = read_booster(model.booster_)
    names = class_names(model, reading.n_outputs)
    return reading.replace(output_names=names, casting=_ESTIMATOR_CASTING)


def read_booster(model: Any) -> Reading:
    """Booster: as ``Booster.predict`` does, the trees up to the best iteration where there is one."""
    return read_bytes(_text_of(model))


def _text_of(model: Any) -> bytes:
    """Return the text model, through a file if it is large: ``model_to_string`` then prints it twice."""
    if model.num_trees() < _MANY_TREES:
        return str(model.model_to_string()).encode()
    try:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "model.txt"
            model.save_model(path)
            text = path.read_bytes()
    except OSError:  # nowhere to write
        return str(model.model_to_string()).encode()
    return text if text.rfind(END) >= 0 else str(model.model_to_string()).encode()


def read_bytes(text: bytes) -> Reading:
    """Read the text model of LightGBM."""
    head, fields, end = read_fields(text)
    header = {key.decode(): text[slice(*at)].decode() for key, at in head.items()}
    n_features = int(header["max_feature_idx"]) + 1
    n_outputs = int(header["num_tree_per_iteration"])
    trees = TextTrees(text, fields)
    # A forest predicts the mean over its trees, and then applies the link function. LightGBM's own raw scores
    # and contributions are the sums.
    scale = n_outputs / len(trees.sizes) if "average_output" in header else 1.0
    labels = _frame_labels(text[end:], bool((trees.decision & 1).any()))
    infos = header["feature_infos"].split()
    vocabularies, lost = _vocabularies(labels, infos)
    nodes = join_in_line(trees.in_line(scale), trees.sizes) if len(trees.sizes) else join([])
    linear = _take_linear(trees, nodes, scale) if trees.is_linear else None
    reading = tree_reading(
        "lightgbm rf" if "average_output" in header else "lightgbm gbdt",
        nodes,
        n_features,
        np.float64,
        (np.arange(max(len(trees.sizes), 1)) % n_outputs).astype(np.int32),
        np.zeros(n_outputs),
        link=_LINKS.get(header.get("objective", "").partition(" num_class")[0], UNKNOWN),
        is_boosted="average_output" not in header,
        casting=_BOOSTER_CASTING,
        feature_names=given_names(header["feature_names"].split()),
        zero_as_missing=_zero_as_missing(trees.decision, trees.feature, n_features),
        numeric=tuple(
            f for f, info in enumerate(infos) if info.startswith("[") or (info, labels) == ("none", ())
        ),
        vocabularies=vocabularies,
        lost_labels=lost,
        frame_labels=labels,
        labels=_LABELS if labels else LabelRule(),
    )
    if linear is None:
        return reading
    if reading.rules.zero_as_missing:
        raise UnsupportedModelError(
            "model has zero_as_missing in some trees and linear_tree in others, which LightGBM does not train at once."
        )
    unused = np.setdiff1d(reading.rules.unused, linear["column"])
    reading = reading.replace(unused=tuple(unused.tolist()), kind=reading.kind + " of linear trees")
    return reading.replace(representation=LinearTrees(reading.trees, **linear))


def _take_linear(trees: TextTrees, nodes: dict[str, Any], scale: float) -> dict[str, NDArray[Any]]:
    """Take the numbers of leaves out of the nodes, and return the linear functions of these leaves."""
    number, nodes["values"] = nodes["values"][:, 1].astype(np.int64), nodes["values"][:, :1]
    leaves = np.flatnonzero(nodes["feature"] < 0)
    constants, leaf, column, slope = trees.linear_leaves()
    constant, node_of = np.zeros(len(number)), np.full(len(constants), -1)
    constant[leaves], node_of[number[leaves]] = constants[number[leaves]] * scale, leaves
    leaf = node_of[leaf]
    order = np.argsort(leaf, kind="stable")
    order = order[leaf[order] >= 0]
    terms: dict[str, NDArray[Any]] = {
        "leaf": leaf[order].astype(np.int32),
        "column": column[order],
        "slope": slope[order] * scale,
    }
    return terms | {"constant": constant}


def given_names(names: list[str]) -> tuple[str, ...] | None:
    """Names of features, unless LightGBM made them up."""
    made_up = [f"Column_{f}" for f in range(len(names))]
    return None if names == made_up else tuple(names)


def _zero_as_missing(
    decision: NDArray[np.int64], feature: NDArray[np.int64], n_features: int
) -> tuple[int, ...]:
    kinds = np.zeros((3, n_features), dtype=bool)
    numerical = decision & 1 == 0
    kinds[missing_kind(decision[numerical]), feature[numerical]] = True
    mixed = np.flatnonzero(kinds[_ZERO] & kinds[_NAN])
    if len(mixed):
        raise UnsupportedModelError(
            f"feature {mixed[0]}: zero counts as missing in some trees of this LightGBM model and as a "
            "number in others (training was continued with another zero_as_missing). Use one setting."
        )
    return tuple(np.flatnonzero(kinds[_ZERO]).tolist())


def _frame_labels(text: bytes, has_categories: bool) -> tuple[tuple[Any, ...], ...]:
    """Return the labels of the columns that were categorical in the training frame, in their order."""
    mark, last_line = b"\npandas_categorical:", b"\n" + text.rstrip(b"\n").rpartition(b"\n")[2]
    if has_categories and (b"\nend of parameters" not in text or mark.startswith(last_line)):
        raise ValueError("it ends before the labels of its categories; the file is truncated")
    found = json.loads(text.rsplit(mark, 1)[1].splitlines()[0]) if mark in text else None
    return tuple(tuple(labels) for labels in found or ())


def _vocabularies(
    labels: tuple[tuple[Any, ...], ...], infos: list[str]
) -> tuple[dict[int, tuple[Any, ...]], tuple[int, ...]]:
    """Labels by feature, for rows that are not frames, and the features whose labels are not known.

    LightGBM does not say which columns the labels belong to. Categorical features are the ones described as
    ``0:3:1`` and not as ``[0:3]``; where their number differs (ordered categories, constant columns), nothing is
    guessed: such columns have to be given as codes, or in a frame.
    """
    columns = [f for f, info in enumerate(infos) if info != "none" and not info.startswith("[")]
    if len(columns) != len(labels):
        return {}, tuple(columns) if labels else ()
    return {f: tuple(names) for f, names in zip(columns, labels, strict=True)}, ()


def _read_file(path: Path) -> Reading:
    text = path.read_bytes()
    if not text.startswith(b"tree"):
        raise InputError(
            f"model is the path {truncated_repr(str(path))}: a text file, but not one that LightGBM saved."
        )
    return read_bytes(text)


def _ask(reading: Reading, question: Question) -> Iterator[Answer]:
    rows, booster = question.asked, reading.model
    if hasattr(booster, "booster_") and not type(rows).__module__.startswith("pyarrow"):
        # As estimators do, which would warn about arrays where they were trained on frames. Before 4.6 they cast
        # tables of Arrow in a way of their own, which only they tell.
        booster = booster.booster_
        rows = rows.astype(np.float64) if getattr(rows, "dtype", None) == np.dtype(object) else rows
    raw = booster.predict(rows, raw_score=True, num_threads=1)
    # A forest predicts a mean, but its raw scores are sums.
    n_trees = reading.representation.n_trees  # type: ignore[union-attr]
    yield Answer(raw if reading.is_boosted else raw / (n_trees // reading.n_outputs))


LIBRARY = Library(
    name="LightGBM",
    package="lightgbm",
    supported_trees=("models of LightGBM, linear trees too; files .txt",),
    tested="4.5 to 4.7",
    trees={"LGBMModel": read_estimator, "Booster": read_booster},
    ask=_ask,
    formats=(Format(".txt", _read_file),),
    frames=("polars", "pyarrow"),
    load=lambda path: import_module("lightgbm").Booster(model_file=str(path)),
)
