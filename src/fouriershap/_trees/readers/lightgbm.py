"""LightGBM: its text model, whose numbers read back to the same float64.

Read directly and not through treelite, which knows neither the mean over a random forest nor zeros that count
as missing, and drops the labels of categories.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap import _kernels as kernels
from fouriershap._base.errors import InputError, UnsupportedModelError
from fouriershap._trees.ensemble import ZERO_BAND, TreeEnsemble
from fouriershap._trees.readers.assemble import Tree, bits_of, class_names, join, leaf, right_above

# A sigmoid with another slope is not the log odds.
_OBJECTIVES = {"binary sigmoid:1": "binary", "cross_entropy": "binary", "multiclass": "multiclass"}
_OBJECTIVES |= {"regression": "squared_error"}
_OBJECTIVES |= dict.fromkeys(("regression_l1", "huber", "fair", "quantile", "mape"), "regression")
_OBJECTIVES |= dict.fromkeys(("poisson", "gamma", "tweedie"), "log")
_MANY_TREES = 50  # whose text takes longer than making a file
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
    return read_text(_text_of(model))


def _text_of(model: Any) -> str:
    """What ``model_to_string`` returns, which prints a model of more than a megabyte twice: through a file."""
    if model.num_trees() < _MANY_TREES:
        return str(model.model_to_string())
    try:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "model.txt"
            model.save_model(path)
            text = path.read_text(encoding="utf-8")
    except OSError:  # nowhere to write
        return str(model.model_to_string())
    return text if "\nend of trees" in text else str(model.model_to_string())


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
    columns = _Columns(documents)
    zeros = _zero_as_missing(columns.inner["decision_type"], columns.inner["split_feature"], n_features)
    trees = [
        _tree(document, numbers, scale) for document, numbers in zip(documents, columns.split(), strict=True)
    ]
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


class _Columns:
    """The numbers of the inner nodes and of the leaves of all trees, by key: parsed at once."""

    def __init__(self, documents: list[dict[str, str]]) -> None:
        self.n_leaves = [int(document["num_leaves"]) for document in documents]
        self.n_inner = [n - 1 for n in self.n_leaves]
        whole = ("decision_type", "split_feature", "left_child", "right_child")
        self.inner: dict[str, NDArray[Any]] = {
            key: _column(documents, key, self.n_inner).astype(np.int64) for key in whole
        }
        self.inner |= {key: _column(documents, key, self.n_inner) for key in ("threshold", "internal_count")}
        decision, threshold = self.inner["decision_type"], self.inner["threshold"]
        self.inner |= {"canonical": _canonical(threshold), "missing_left": _missing_left(decision, threshold)}
        self.leaves = {"leaf_value": _column(documents, "leaf_value", self.n_leaves)}
        # A tree that is one leaf may leave out how many rows reached it.
        self.counted = [
            n if document.get("leaf_count") else 0
            for n, document in zip(self.n_leaves, documents, strict=True)
        ]
        self.leaf_count = _column(documents, "leaf_count", self.counted)

    def split(self) -> Iterator[dict[str, NDArray[Any]]]:
        """Tree by tree."""
        inner, leaf, counted = 0, 0, 0
        for n_leaves, n_counted in zip(self.n_leaves, self.counted, strict=True):
            of_inner, of_leaves = slice(inner, inner + n_leaves - 1), slice(leaf, leaf + n_leaves)
            found = {key: numbers[of_inner] for key, numbers in self.inner.items()}
            found |= {key: numbers[of_leaves] for key, numbers in self.leaves.items()}
            yield found | {"leaf_count": self.leaf_count[counted : counted + n_counted]}
            inner, leaf, counted = of_inner.stop, of_leaves.stop, counted + n_counted


def _column(documents: list[dict[str, str]], key: str, sizes: list[int]) -> NDArray[np.float64]:
    texts = [document[key].strip() if size else "" for document, size in zip(documents, sizes, strict=True)]
    for size, text in zip(sizes, texts, strict=True):
        if size and text.count(" ") + 1 != size:
            raise ValueError(f"{key} of a tree has {len(text.split())} numbers, and not {size}")
    numbers = np.empty(sum(sizes))
    joined = np.frombuffer(" ".join(texts).encode("ascii"), dtype=np.uint8)
    if kernels.numbers.parse(joined, numbers) < len(numbers):
        raise ValueError(f"{key} of some tree holds what is no number")
    return numbers


def _zero_as_missing(
    decision: NDArray[np.int64], feature: NDArray[np.int64], n_features: int
) -> NDArray[np.bool_]:
    kinds = np.zeros((3, n_features), dtype=bool)
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


def _tree(document: dict[str, str], numbers: dict[str, NDArray[Any]], scale: float) -> Tree:
    if document.get("is_linear", "0") != "0":
        raise UnsupportedModelError(
            "model is a LightGBM model with linear_tree=True: its leaves hold linear functions, which no "
            "table of leaf values can represent. Train with linear_tree=False."
        )
    values = numbers["leaf_value"] * scale
    n_leaves, n_inner = len(values), len(values) - 1
    if n_leaves == 1:
        return leaf(values, float(numbers["leaf_count"].sum()))
    ends = np.full(n_leaves, -1)

    def nodes(child: NDArray[np.int64]) -> NDArray[np.int64]:
        # Inner nodes come first; a negative child c is the leaf -c - 1.
        return np.concatenate([np.where(child < 0, n_inner - child - 1, child), ends])

    return Tree(
        feature=np.concatenate([numbers["split_feature"], ends]),
        threshold=np.concatenate([numbers["canonical"], np.zeros(n_leaves)]),
        left=nodes(numbers["left_child"]),
        right=nodes(numbers["right_child"]),
        missing_left=np.concatenate([numbers["missing_left"], np.zeros(n_leaves, dtype=bool)]),
        cover=np.concatenate([numbers["internal_count"], numbers["leaf_count"]]),
        values=np.concatenate([np.zeros(n_inner), values]),
        categories=_categories(document, numbers["decision_type"], numbers["threshold"]),
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
