"""XGBoost: its JSON model or the same in binary; both hold every number as the same float32.

Read directly and not through treelite, which refuses models with a stored category encoder (all that were
trained on frames with categories since XGBoost 3) and does not know which trees early stopping keeps.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import InputError, UnsupportedModelError
from fouriershap._base.links import EXP, IDENTITY, LOGISTIC, MEAN, SOFTMAX, UNKNOWN
from fouriershap._base.messages import truncated_repr
from fouriershap._libraries.reading import (
    Answer,
    Format,
    Library,
    Question,
    Reading,
    class_names,
    linear_products,
    product_reading,
    tree_reading,
    with_names,
)
from fouriershap._libraries.ubjson import decode
from fouriershap._rows.frames import densified
from fouriershap._rows.labels import REFUSED, LabelRule
from fouriershap._rows.rules import Casting
from fouriershap._trees.assemble import Tree, join

_LOGIT = ("binary:logistic", "reg:logistic")
_LOG = ("count:poisson", "reg:gamma", "reg:tweedie", "survival:cox", "survival:aft")
_LINKS = dict.fromkeys(_LOGIT, LOGISTIC) | dict.fromkeys(("multi:softprob", "multi:softmax"), SOFTMAX)
_LINKS |= dict.fromkeys(("reg:squarederror", "reg:linear"), MEAN) | dict.fromkeys(_LOG, EXP)
_LINKS |= dict.fromkeys(
    ("reg:absoluteerror", "reg:pseudohubererror", "reg:quantileerror", "reg:squaredlogerror"), IDENTITY
)
_CASTING = Casting("xgboost", rounds_once=True, by_column=True)
_LABELS = LabelRule("XGBoost", REFUSED, needs_categories=True, is_typed=True, alike=(), refuses_unknown=True)
_MOST_COLUMNS = 1 << 28  # features or outputs: arrays of that many are made
_MOST_NODES = 1 << 31  # which XGBoost counts in int32


def read(model: Any) -> Reading:
    """Read an estimator or a Booster: the trees that its ``predict`` uses, or a linear booster.

    Estimators predict with the trees up to the best iteration, a Booster with all.
    """
    is_estimator = hasattr(model, "get_booster")
    try:
        booster = model.get_booster() if is_estimator else model
    except (ValueError, AttributeError) as error:  # scikit-learn's NotFittedError is both
        raise InputError(
            f"model is a {type(model).__name__} that is not fitted. Call its fit(X, y) first."
        ) from error
    # UBJSON holds the arrays as they are: ten times faster to write and to read than JSON.
    document: dict[str, Any] = decode(bytes(booster.save_raw("ubj")))
    if document["learner"]["gradient_booster"]["name"] == "gblinear":
        return _read_linear(booster, document["learner"], getattr(model, "classes_", None))
    if not is_estimator:
        return read_document(document)
    best = booster.attr("best_iteration")
    reading = read_document(document, None if best is None else int(best) + 1)
    missing = float("nan") if model.missing is None else _as_parsed(float(model.missing))
    names = class_names(model, reading.n_outputs)
    return reading.replace(missing_value=missing, output_names=names, accepts_infinite=True)


def _as_parsed(number: float) -> float:
    """Return the float32 that XGBoost reads from the digits of a number, rounded once.

    Cast by way of float64, digits just beside the middle of two float32 may become that middle, and then either.
    """
    cast = np.float32(number)
    nearest = (cast, np.nextafter(cast, np.float32(-np.inf)), np.nextafter(cast, np.float32(np.inf)))
    if not np.isfinite(nearest).all():
        return float(cast)
    digits = Decimal(repr(number))
    return min(map(float, nearest), key=lambda other: abs(Decimal(other) - digits))


def read_document(document: dict[str, Any], n_iterations: int | None = None) -> Reading:
    """Read the JSON model of XGBoost, up to ``n_iterations`` boosting rounds."""
    learner = document["learner"]
    inner, weights = _trees_and_weights(learner["gradient_booster"])
    parameters = learner["learner_model_param"]
    n_features = int(parameters["num_feature"])
    n_outputs = max(int(parameters["num_class"]), int(parameters.get("num_target", 1)), 1)
    if n_features >= _MOST_COLUMNS or n_outputs >= _MOST_COLUMNS:
        raise InputError(
            f"the model says that it has {n_features:,} features and {n_outputs:,} outputs: it is damaged."
        )
    n_trees = _n_trees(inner, n_outputs, n_iterations)
    # Trees of the rounds that were trained without dropout have no weight.
    scales = [*weights[:n_trees].tolist(), *[1.0] * (n_trees - len(weights))]
    documents = inner["trees"][:n_trees]
    width = max([int(tree["tree_param"]["size_leaf_vector"]) for tree in documents], default=1)
    width = n_outputs if width > 1 else 1
    trees = [_tree(tree, scale, width) for tree, scale in zip(documents, scales, strict=True)]
    outputs = [-1] * n_trees if width > 1 else inner["tree_info"][:n_trees]
    vocabularies, lost = _vocabularies(inner.get("cats", {}).get("enc", []), _version(document))
    objective = learner["objective"]["name"]
    types = learner.get("feature_types", [])  # none of arrays
    return tree_reading(
        "xgboost dart" if len(weights) else "xgboost gbtree",
        join(trees, width),
        n_features,
        np.float32,
        np.array(outputs or [0], dtype=np.int32),
        _base(parameters["base_score"], objective, n_outputs, _version(document)),
        link=_LINKS.get(objective, UNKNOWN),
        computes_in=np.float32,
        is_boosted=True,
        casting=_CASTING,
        feature_names=tuple(learner.get("feature_names") or ()) or None,
        absent_is_missing=True,
        negative_is_unknown=True,
        numeric=tuple(f for f in range(n_features) if types[f : f + 1] != ["c"]),
        vocabularies=vocabularies,
        lost_labels=lost,
        labels=_LABELS if vocabularies or _version(document) >= (3, 1) else LabelRule(),
        accepts_infinite=False,
    )


def _n_trees(model: dict[str, Any], n_outputs: int, n_iterations: int | None) -> int:
    total = len(model["trees"])
    if n_iterations is None:
        return total
    if "iteration_indptr" in model:
        return int(model["iteration_indptr"][n_iterations])
    per_iteration = int(model["gbtree_model_param"]["num_parallel_tree"]) * n_outputs
    return min(total, n_iterations * per_iteration)


def _trees_and_weights(booster: dict[str, Any]) -> tuple[dict[str, Any], NDArray[np.float32]]:
    """Return the part of a model that holds its trees, and their weights (dart); no weights if all are 1.

    Before XGBoost 3.3 a dart model says so by its name, and holds a gbtree. Since then it is called a gbtree
    and has weights, beside the trees' part in 3.3, inside it in 3.4.
    """
    name = booster["name"]
    if name == "gblinear":
        raise UnsupportedModelError(
            "the file holds an XGBoost model with booster='gblinear', a linear model without trees. Load it with "
            "XGBoost and give fs.Explainer the model: it is explained exactly."
        )
    if name not in ("gbtree", "dart"):
        raise UnsupportedModelError(
            f"model is an XGBoost model with booster={truncated_repr(name)}; only 'gbtree' and 'dart' can be read."
        )
    holder = booster.get("gbtree", booster)
    inner: dict[str, Any] = holder["model"]
    weights = next((part["weight_drop"] for part in (booster, holder, inner) if "weight_drop" in part), ())
    return inner, np.asarray(weights, dtype=np.float32)


def _version(document: dict[str, Any]) -> tuple[int, ...]:
    """Return the version of XGBoost that wrote a model."""
    return tuple(int(part) for part in document.get("version", ()))


def _base(stored: str, objective: str, n_outputs: int, version: tuple[int, ...]) -> NDArray[np.float64]:
    """``base_score`` as a margin; a list since XGBoost 3.1, a number before.

    In float32, as XGBoost computes it: near 1 a logit of float64 would be off by up to 5e-3.
    """
    score = np.atleast_1d(np.array(json.loads(stored), dtype=np.float32))
    one, least = np.float32(1), np.float32(1e-6)
    if objective in _LOGIT:
        if version >= (3, 2):  # before, a score of 0 or 1 was an error
            score = np.clip(score, least, one - least)
        score = -np.log(one / score - one)
    elif objective in _LOG:
        score = np.log(score)
    elif objective == "reg:expectileerror":
        # The margins of all expectiles but the first are gaps, before the softplus that keeps them positive.
        gaps = np.maximum(np.diff(score) - least, least)
        score = np.append(score[:1], gaps + np.log(-np.expm1(-gaps)))
    return np.broadcast_to(score.astype(np.float64), (n_outputs,))


def _vocabularies(
    encoders: list[dict[str, Any]], version: tuple[int, ...]
) -> tuple[dict[int, tuple[Any, ...]], tuple[int, ...]]:
    """Labels of the features that were categorical in a frame, and the features whose labels are lost.

    Before 3.3 XGBoost cuts the bytes of all labels by lengths counted in characters: where a label is not ASCII, labels
    are wrong and the last is cut off, which does not always show. Such a feature gets no vocabulary and takes codes.
    """
    vocabularies: dict[int, tuple[Any, ...]] = {}
    lost: list[int] = []
    for feature, encoder in enumerate(encoders):
        values = np.asarray(encoder["values"]).tolist()
        if "offsets" in encoder:  # strings: the bytes of all labels, one after the other
            text, offsets = bytes(value & 0xFF for value in values), np.asarray(encoder["offsets"]).tolist()
            try:
                if offsets[-1:] not in ([], [len(text)]) or not (text.isascii() or version >= (3, 3)):
                    raise ValueError
                values = [text[a:b].decode() for a, b in pairwise(offsets)]
            except ValueError:  # also of bytes that are not text
                lost.append(feature)
                continue
        if values:
            vocabularies[feature] = tuple(values)
    return vocabularies, tuple(lost)


def _tree(document: dict[str, Any], scale: float, width: int) -> Tree:
    if isinstance(document["left_children"], list):
        _check_json(document)
    if width == 1 and scale == 1.0 and not len(document["categories_nodes"]):
        return _plain_tree(document)
    left, right = np.array(document["left_children"], "i4"), np.array(document["right_children"], "i4")
    condition = np.array(document["split_conditions"], dtype=np.float32).astype(np.float64)
    missing_left = np.array(document["default_left"], dtype=bool)
    values = _leaf_values(document, left, right, condition, width)
    categories = {}
    for node, start, size in zip(
        document["categories_nodes"],
        document["categories_segments"],
        document["categories_sizes"],
        strict=True,
    ):
        # XGBoost lists the categories that go right, and sends all others left: the sides swap.
        categories[node] = np.array(document["categories"][start : start + size], dtype=np.int64)
        left[node], right[node] = right[node], left[node]
        missing_left[node] = not missing_left[node]
    return Tree(
        feature=np.array(document["split_indices"]),
        threshold=condition,
        left=left,
        right=right,
        missing_left=missing_left,
        cover=np.array(document.get("sum_hessian", np.zeros(len(left))), dtype=np.float32),
        # The product is rounded to float32, as XGBoost rounds it.
        values=(values * np.float32(scale)).astype(np.float32),
        categories=categories,
    )


def _check_json(document: dict[str, Any]) -> None:
    """Raise where JSON, which has no types, says what no array of XGBoost can hold."""
    for name in ("split_indices", "left_children", "right_children"):
        found = np.asarray(document[name])
        if found.size and (found.dtype.kind not in "iu" or found.min() < -1 or found.max() >= _MOST_NODES):
            raise InputError(f"the model has numbers in {name} that are not node numbers: it is damaged.")
    compares = np.asarray(document["left_children"]) >= 0
    compares[np.asarray(document["categories_nodes"], dtype=np.intp)] = False
    if np.isnan(np.asarray(document["split_conditions"], dtype=np.float64)[compares]).any():
        raise InputError("the model has a threshold that is not a number: it is damaged.")


def _plain_tree(document: dict[str, Any]) -> Tree:
    """Return a tree of numerical splits as it stands: `join` converts all trees at once, which is much quicker."""
    left = np.asarray(document["left_children"])
    condition = np.asarray(document["split_conditions"])
    if condition.dtype == np.float64:  # from JSON
        condition = condition.astype(np.float32)
    return Tree(
        feature=np.asarray(document["split_indices"]),
        threshold=condition,
        left=left,
        right=np.asarray(document["right_children"]),
        missing_left=np.asarray(document["default_left"]),
        cover=np.asarray(document.get("sum_hessian", np.zeros(len(left), np.float32)), dtype=">f4"),
        values=condition,
    )


def _leaf_values(
    document: dict[str, Any],
    left: NDArray[Any],
    right: NDArray[Any],
    condition: NDArray[np.float64],
    width: int,
) -> NDArray[Any]:
    if width == 1:
        return condition[:, None].astype(np.float32)
    if "leaf_weights" not in document:  # before XGBoost 3.1, vectors of all nodes
        return np.array(document["base_weights"], dtype=np.float32).reshape(-1, width)
    weights = np.array(document["leaf_weights"], dtype=np.float32).reshape(-1, width)
    is_leaf = left < 0
    # The right child of a leaf is the number of its vector.
    return np.where(is_leaf[:, None], weights[np.where(is_leaf, right, 0)], np.float32(0))


def _read_linear(booster: Any, learner: dict[str, Any], labels: Any) -> Reading:
    """Read ``gblinear``."""
    flat = np.array(learner["gradient_booster"]["model"]["weights"], dtype=np.float64)
    n_features = int(booster.num_features())
    weights = flat.reshape(n_features + 1, -1)[:-1].T  # the last line is the bias, which is in the constant
    zeros = np.zeros((1, n_features), np.float32)
    names, types = booster.feature_names, booster.feature_types
    matrix = import_module("xgboost").DMatrix(zeros, feature_names=names, feature_types=types)
    constant = booster.predict(matrix, output_margin=True).reshape(-1)
    several = len(weights) > 1 and labels is not None and len(labels) == len(weights)
    return product_reading(
        "xgboost gblinear",
        linear_products(weights, constant),
        None if names is None else tuple(names),
        tuple(str(label) for label in labels) if several else None,
        (_LINKS | {"binary:logitraw": IDENTITY}).get(learner["objective"]["name"], UNKNOWN),
        missing_is_zero=True,
        computes_in=np.float32,
    )


def _ask(reading: Reading, question: Question) -> Iterator[Answer]:
    model, rows = reading.model, question.asked
    xgboost = import_module("xgboost")
    if type(rows).__module__.startswith("polars") and xgboost.__version__.startswith("2."):
        rows = (
            rows.to_pandas()
        )  # XGBoost 2 makes sparse matrices of such frames, in which zeros are missing values
    named = hasattr(rows, "columns")
    if hasattr(model, "get_booster"):
        yield Answer(model.predict(rows, output_margin=True, validate_features=named))
        return
    types = None if named else model.feature_types
    matrix = xgboost.DMatrix(rows, feature_types=types, enable_categorical=True, nthread=1)
    yield Answer(model.predict(matrix, output_margin=True, validate_features=named))


def _rows_of_matrix(X: Any, name: str) -> Any:
    if "c" in (X.feature_types or ()):
        raise InputError(
            f"{name} is a DMatrix with categories, of which it keeps codes and not labels. Give the rows that it was "
            "made from."
        )
    return with_names(densified(X.get_data(), absent_is_missing=True), X.feature_names)


def _function_of_booster(booster: Any) -> Callable[[Any], Any]:
    """Return a function of rows: a Booster takes them in its own type only."""

    def predict(rows: Any) -> Any:
        named = hasattr(rows, "columns")
        types = None if named else booster.feature_types
        matrix = import_module("xgboost").DMatrix(rows, feature_types=types, enable_categorical=True)
        return booster.predict(matrix, validate_features=named)

    return predict


LIBRARY = Library(
    name="XGBoost",
    package="xgboost",
    supported_trees=("models of XGBoost: boosters gbtree and dart; files .json and .ubj",),
    supported_products=("models of XGBoost: booster gblinear",),
    tested="2.1 to 3.2",
    trees={"XGBModel": read, "Booster": read},
    ask=_ask,
    functions={"Booster": _function_of_booster},
    formats=(
        Format(".json", lambda document: read_document(document) if "learner" in document else None),
        Format(".ubj", lambda path: read_document(decode(path.read_bytes()))),
    ),
    frames=("polars", "pyarrow"),
    load=lambda path: import_module("xgboost").Booster(model_file=str(path)),
    rows={"DMatrix": _rows_of_matrix},
)
