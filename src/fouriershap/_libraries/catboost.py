"""CatBoost: its JSON export, of oblivious and of non-symmetric trees."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.checks import import_optional
from fouriershap._base.errors import InputError, UnsupportedModelError
from fouriershap._base.links import EXP, IDENTITY, LOGISTIC, MEAN, SOFTMAX, UNKNOWN, Link
from fouriershap._base.messages import error_text, truncated_repr
from fouriershap._libraries import catboost_ctr
from fouriershap._libraries.reading import (
    Answer,
    Format,
    Library,
    Question,
    Reading,
    tree_reading,
    with_names,
)
from fouriershap._rows.labels import LABELS, LabelRule
from fouriershap._rows.rules import Casting
from fouriershap._trees.assemble import Tree, join, right_above

_LINKS = {"Logloss": LOGISTIC, "CrossEntropy": LOGISTIC, "MultiClass": SOFTMAX, "RMSE": MEAN}
_LINKS |= dict.fromkeys(("MAE", "Quantile", "MAPE", "Huber", "Expectile", "Lq", "LogCosh"), IDENTITY)
_LINKS |= dict.fromkeys(("MultiRMSE", "MultiQuantile"), IDENTITY)
_LINKS |= dict.fromkeys(("Poisson", "Tweedie", "Cox", "SurvivalAft"), EXP)
_CASTING = Casting(
    "catboost",
    rounds_once=True,
    by_column=True,
    lists_to_double=True,
    longdouble_to_double=True,
    missing_to_double=("pandas",),
)
_LABELS = LabelRule("CatBoost", LABELS, LABELS, refuses_missing=True, hashed=True, in_splits_only=True)


def read_estimator(model: Any) -> Reading:
    """CatBoost, CatBoostRegressor and its kin: what ``predict(prediction_type="RawFormulaVal")`` returns."""
    if not model.is_fitted():
        raise InputError(f"model is a {type(model).__name__} that is not fitted. Call its fit(X, y) first.")
    # Such models have no JSON form, so they are recognised before they are exported.
    _refuse("text", model.get_text_feature_indices())
    _refuse("embedding", model.get_embedding_feature_indices())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        try:
            model.save_model(str(path), format="json")
        except import_module("catboost").CatBoostError as error:
            raise UnsupportedModelError(
                f"model is a {type(model).__name__} that CatBoost cannot export ({error_text(error)}). Where "
                "that is an infinite number: a column had infinite values in training. Replace them by finite ones."
            ) from error
        return read_document(json.loads(path.read_text(encoding="utf-8")))


def read_document(document: dict[str, Any]) -> Reading:
    """Read the JSON export of CatBoost."""
    info = document["features_info"]
    splits = _Splits(info)
    scale, bias = document["scale_and_bias"]
    base = np.atleast_1d(np.asarray(bias, dtype=np.float64))
    width = len(base)
    if info.get("ctrs"):
        nodes = catboost_ctr.read_nodes(document, splits.features, scale, width)
    elif "oblivious_trees" in document:
        nodes = join(
            [_oblivious(tree, splits, scale, width) for tree in document["oblivious_trees"] or []], width
        )
    else:
        nodes = join([_nested(tree, splits, scale, width) for tree in document["trees"] or []], width)
    names = document.get("model_info", {}).get("class_params", {}).get("class_names", [])
    names = names[1:] if (len(names), width) == (2, 1) else names  # one output is that of the positive class
    return tree_reading(
        "catboost",
        nodes,
        len(splits.names),
        np.float32,
        np.full(len(nodes["roots"]), -1 if width > 1 else 0),
        base,
        link=_link(document),
        output_names=tuple(str(n) for n in names) if len(names) == width else None,
        is_boosted=True,
        casting=_CASTING,
        feature_names=splits.feature_names,
        numeric=tuple(splits.features.float_column.values()),
        vocabularies={f: tuple(codes) for f, codes in splits.codes.items()},
        labels=_LABELS if splits.codes else LabelRule(),
    )


def _link(document: dict[str, Any]) -> Link:
    parameters = document.get("model_info", {}).get("params", {})
    return _LINKS.get(parameters.get("loss_function", {}).get("type", ""), UNKNOWN)


def _refuse(kind: str, features: list[int]) -> None:
    if features:
        raise UnsupportedModelError(
            f"model is a CatBoost model with {kind} features ({truncated_repr(features)}), which it turns into numbers "
            "inside. Turn them into numbers first, and train on these."
        )


class _Splits:
    """The features of a model, and its splits in our form.

    Attributes
    ----------
    names : list of str
    codes : dict
        Categorical feature -> {hash of a label: code}, codes in the order in which splits come up.
    """

    def __init__(self, info: dict[str, Any]) -> None:
        numerical = info.get("float_features", [])
        categorical = info.get("categorical_features", [])
        self._float = {f["feature_index"]: f["flat_feature_index"] for f in numerical}
        self._category = {f["feature_index"]: f["flat_feature_index"] for f in categorical}
        # NaN is false in every comparison, so only "AsTrue" sends it right.
        self._nan_right = {f["feature_index"]: f["nan_value_treatment"] == "AsTrue" for f in numerical}
        both = {f["flat_feature_index"]: f["feature_id"] for f in (*numerical, *categorical)}
        self.names = [both.get(f, "") for f in range(max(both, default=-1) + 1)]
        self.codes: dict[int, dict[int, int]] = {f: {} for f in self._category.values()}

    @property
    def features(self) -> catboost_ctr.Features:
        return catboost_ctr.Features(self._float, self._category, self._nan_right, self.codes)

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        made_up = [str(f) for f in range(len(self.names))]
        return None if self.names == made_up or not any(self.names) else tuple(self.names)

    def read(self, splits: list[dict[str, Any]]) -> _Tests:
        """One test per split."""
        rows = [self._read(split) for split in splits]
        feature, border, missing_left, category = zip(*rows, strict=True) if rows else ((), (), (), ())
        return _Tests(
            np.array(feature, dtype=np.int64),
            # True is x > border.
            right_above(np.array(border, dtype=np.float64), np.float32),
            np.array(missing_left, dtype=bool),
            np.array(category, dtype=np.int64),
        )

    def _read(self, split: dict[str, Any]) -> tuple[int, float, bool, int]:
        if split["split_type"] == "FloatFeature":
            f = split["float_feature_index"]
            return self._float[f], split["border"], not self._nan_right[f], -1
        if split["split_type"] == "OneHotFeature":
            feature = self._category[split["cat_feature_index"]]
            codes = self.codes[feature]
            return feature, 0.0, False, codes.setdefault(split["value"] & 0xFFFFFFFF, len(codes))
        raise UnsupportedModelError(
            f"model is a CatBoost model with splits of the type {truncated_repr(split['split_type'])}; only splits on "
            "numbers and one-hot splits can be read."
        )


class _Tests(NamedTuple):
    """Splits in our form: category is -1 at numerical ones."""

    feature: NDArray[np.int64]
    threshold: NDArray[np.float64]
    missing_left: NDArray[np.bool_]
    category: NDArray[np.int64]

    def take(self, index: NDArray[np.int64]) -> _Tests:
        return _Tests(
            self.feature[index], self.threshold[index], self.missing_left[index], self.category[index]
        )


def _tree(
    tests: _Tests,
    inner: NDArray[np.int64],
    false: NDArray[np.int64],
    true: NDArray[np.int64],
    cover: NDArray[np.float64],
    values: NDArray[np.float64],
) -> Tree:
    """Return a tree of ``len(cover)`` nodes from the tests and children of its inner nodes."""

    def spread(part: NDArray[Any], fill: Any) -> NDArray[Any]:
        whole = np.full(len(cover), fill, dtype=part.dtype)
        whole[inner] = part
        return whole

    # A one-hot split is true for its category, and listed categories go left: the sides swap.
    one_hot = tests.category >= 0
    categories = zip(inner[one_hot].tolist(), tests.category[one_hot, None], strict=True)
    return Tree(
        feature=spread(tests.feature, -1),
        threshold=spread(tests.threshold, 0.0),
        left=spread(np.where(one_hot, true, false), -1),
        right=spread(np.where(one_hot, false, true), -1),
        missing_left=spread(tests.missing_left, False),
        cover=cover,
        values=values,
        categories=dict(categories),
    )


def _oblivious(document: dict[str, Any], splits: _Splits, scale: float, width: int) -> Tree:
    """One split per level; the first is the lowest bit of a leaf's number.

    The last split is the root, as in CatBoost's own SHAP values: path-dependent values depend on the order.
    """
    tests = splits.read(document["splits"] or [])
    depth = len(tests.feature)
    # Heap order: the children of node v are 2v + 1 and 2v + 2, the leaves stand in the order of their numbers.
    inner = np.arange(2**depth - 1)
    values = np.zeros((2 ** (depth + 1) - 1, width))
    values[len(inner) :] = np.reshape(document["leaf_values"], (2**depth, width)) * scale
    covers = [np.asarray(document.get("leaf_weights", np.zeros(2**depth)), dtype=np.float64)]
    for _ in range(depth):
        covers.append(covers[-1].reshape(-1, 2).sum(axis=1))
    split = np.repeat(np.arange(depth)[::-1], 2 ** np.arange(depth))
    return _tree(tests.take(split), inner, 2 * inner + 1, 2 * inner + 2, np.concatenate(covers[::-1]), values)


def _nested(document: dict[str, Any], splits: _Splits, scale: float, width: int) -> Tree:
    """Nodes inside nodes: left is false, right is true."""
    nodes = [document]
    inner, false = [], []
    for v, node in enumerate(nodes):  # grows while it is walked
        if "split" in node:
            inner.append(v)
            false.append(len(nodes))
            nodes += [node["left"], node["right"]]
    values = np.zeros((len(nodes), width))
    cover = np.zeros(len(nodes))
    for v, node in enumerate(nodes):
        if "split" not in node:
            values[v] = np.asarray(node["value"], dtype=np.float64) * scale
            cover[v] = node["weight"]
    for v, child in zip(inner[::-1], false[::-1], strict=True):
        cover[v] = cover[child] + cover[child + 1]
    tests = splits.read([nodes[v]["split"] for v in inner])
    first = np.array(false, dtype=np.int64)
    return _tree(tests, np.array(inner, dtype=np.int64), first, first + 1, cover, values)


def _read_cbm(path: Path) -> Reading:
    library = import_optional("catboost", f"reading {truncated_repr(str(path))}", "catboost")
    try:
        return read_estimator(library.CatBoost().load_model(str(path)))
    except library.CatBoostError as error:
        raise InputError(
            f"model is the path {truncated_repr(str(path))}, which CatBoost cannot load: {error_text(error)}"
        ) from error


def _load(path: Path) -> Any:
    form = "json" if path.suffix.lower() == ".json" else "cbm"
    return import_module("catboost").CatBoost().load_model(str(path), format=form)


def _ask(reading: Reading, question: Question) -> Iterator[Answer]:
    yield Answer(reading.model.predict(question.asked, prediction_type="RawFormulaVal", thread_count=1))


def _rows_of_pool(X: Any, name: str) -> Any:
    names = X.get_feature_names()
    made_up = not any(names) or names == [str(i) for i in range(len(names))]
    return with_names(X.get_features(), None if made_up else names)


LIBRARY = Library(
    name="CatBoost",
    package="catboost",
    supported_trees=("models of CatBoost, also with target statistics of labels; files .cbm and .json",),
    tested="1.2.8 to 1.2.10",
    trees={"CatBoost": read_estimator},
    ask=_ask,
    formats=(
        Format(".json", lambda document: read_document(document) if "features_info" in document else None),
        Format(".cbm", _read_cbm),
    ),
    frames=("polars",),
    load=_load,
    rows={"Pool": _rows_of_pool},
)
