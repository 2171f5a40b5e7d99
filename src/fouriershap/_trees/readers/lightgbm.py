"""LightGBM: its text model, whose numbers read back to the same float64.

Read directly and not through treelite, which knows neither the mean over a random forest nor zeros that count
as missing, and drops the labels of categories.
"""

from __future__ import annotations

import json
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap import _kernels as kernels
from fouriershap._base.errors import InputError, UnsupportedModelError
from fouriershap._trees.ensemble import ZERO_BAND, TreeEnsemble
from fouriershap._trees.readers.assemble import Tree, bits_of, class_names, join, join_in_line, right_above

# A sigmoid with another slope is not the log odds.
_OBJECTIVES = {"binary sigmoid:1": "binary", "cross_entropy": "binary", "multiclass": "multiclass"}
_OBJECTIVES |= {"regression": "squared_error"}
_OBJECTIVES |= dict.fromkeys(("regression_l1", "huber", "fair", "quantile", "mape"), "regression")
_OBJECTIVES |= dict.fromkeys(("poisson", "gamma", "tweedie"), "log")
_MANY_TREES = 50  # whose text takes longer than making a file
_TREE, _END = b"\nTree=", b"\nend of trees"
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
    return read_bytes(_text_of(model))


def _text_of(model: Any) -> bytes:
    """What ``model_to_string`` returns, which prints a model of more than a megabyte twice: through a file."""
    if model.num_trees() < _MANY_TREES:
        return str(model.model_to_string()).encode()
    try:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "model.txt"
            model.save_model(path)
            text = path.read_bytes()
    except OSError:  # nowhere to write
        return str(model.model_to_string()).encode()
    return text if text.rfind(_END) >= 0 else str(model.model_to_string()).encode()


def read_text(text: str) -> TreeEnsemble:
    """The text model of LightGBM."""
    return read_bytes(text.encode())


def read_bytes(text: bytes) -> TreeEnsemble:
    """The same, as it lies in a file."""
    head_end, tree_ends = _bounds(text)
    header = {key.decode(): text[slice(*at)].decode() for key, at in _fields(text, 0, head_end).items()}
    n_features = int(header["max_feature_idx"]) + 1
    n_outputs = int(header["num_tree_per_iteration"])
    trees = _Trees(text, [_fields(text, *bounds) for bounds in pairwise([head_end, *tree_ends])])
    # A forest predicts the mean over its trees, and then applies the link function. LightGBM's own raw scores
    # and contributions are the sums.
    scale = n_outputs / len(trees.sizes) if "average_output" in header else 1.0
    labels = _frame_labels(text[(tree_ends or [head_end])[-1] :])
    vocabularies, lost = _vocabularies(labels, header["feature_infos"].split())
    return TreeEnsemble(
        n_features=n_features,
        n_outputs=n_outputs,
        dtype=np.dtype(np.float64),
        tree_output=(np.arange(max(len(trees.sizes), 1)) % n_outputs).astype(np.int32),
        base=np.zeros(n_outputs),
        zero_as_missing=_zero_as_missing(trees.decision, trees.feature, n_features),
        feature_names=given_names(header["feature_names"].split()),
        vocabularies=vocabularies,
        lost_labels=lost,
        frame_labels=labels,
        objective=_OBJECTIVES.get(header.get("objective", "").partition(" num_class")[0], ""),
        casting="lightgbm booster",
        kind="lightgbm rf" if "average_output" in header else "lightgbm gbdt",
        **(join_in_line(trees.in_line(scale), trees.sizes) if len(trees.sizes) else join([])),
    )


def given_names(names: list[str]) -> tuple[str, ...] | None:
    """Names of features, unless LightGBM made them up."""
    made_up = [f"Column_{f}" for f in range(len(names))]
    return None if names == made_up else tuple(names)


def _bounds(text: bytes) -> tuple[int, list[int]]:
    """Where the header ends, and each tree."""
    starts = []
    at = text.find(_TREE)
    while at >= 0:
        starts.append(at)
        at = text.find(_TREE, at + 1)
    end = text.rfind(_END)
    end = len(text) if end < 0 else end
    return (starts or [end])[0], [*starts[1:], end] if starts else []


def _fields(text: bytes, at: int, end: int) -> dict[bytes, tuple[int, int]]:
    """Where the value of each ``key=value`` line begins and ends; a line without a value is a flag."""
    found = {}
    while at < end:
        stop = text.find(b"\n", at, end)
        stop = end if stop < 0 else stop
        equals = text.find(b"=", at, stop)
        key_end = stop if equals < 0 else equals
        found[text[at:key_end].rstrip()] = (min(key_end + 1, stop), stop)
        at = stop + 1
    return found


def _missing_kind(decision: NDArray[np.int64]) -> NDArray[np.int64]:
    return decision >> 2 & 3


class _Trees:
    """The numbers of all trees by key, parsed at once: those of inner nodes, and those of leaves."""

    def __init__(self, text: bytes, fields: list[dict[bytes, tuple[int, int]]]) -> None:
        self.text, self.fields = text, fields
        if any(self._value(found, b"is_linear", b"0") != b"0" for found in fields):
            raise UnsupportedModelError(
                "model is a LightGBM model with linear_tree=True: its leaves hold linear functions, which no "
                "table of leaf values can represent. Train with linear_tree=False."
            )
        self.n_leaves = np.array([int(text[slice(*found[b"num_leaves"])]) for found in fields], dtype=np.int64)
        if self.n_leaves.min(initial=1) < 1:
            raise ValueError(f"num_leaves of a tree is {self.n_leaves.min()}")
        self.n_inner = self.n_leaves - 1
        self.sizes = self.n_leaves + self.n_inner
        whole = (b"decision_type", b"split_feature", b"left_child", b"right_child")
        decision, feature, left, right = (self._column(key, self.n_inner).astype(np.int64) for key in whole)
        self.decision, self.feature, self.left, self.right = decision, feature, left, right
        self.threshold = self._column(b"threshold", self.n_inner)
        self.inner_count = self._column(b"internal_count", self.n_inner)
        self.leaf_value = self._column(b"leaf_value", self.n_leaves)
        # A tree that is one leaf may leave out how many rows reached it.
        counted = [bool(self._value(found, b"leaf_count", b"")) for found in fields]
        self.leaf_count = np.zeros(self.n_leaves.sum())
        self.leaf_count[np.repeat(counted, self.n_leaves)] = self._column(
            b"leaf_count", self.n_leaves * counted
        )

    def _value(self, found: dict[bytes, tuple[int, int]], key: bytes, default: bytes) -> bytes:
        return self.text[slice(*found[key])].strip() if key in found else default

    def _column(self, key: bytes, sizes: NDArray[np.int64]) -> NDArray[np.float64]:
        """The numbers of one key, as many of each tree as ``sizes`` says."""
        some = np.flatnonzero(sizes)
        bounds = np.array([self.fields[t][key] for t in some.tolist()], dtype=np.int64).reshape(-1, 2)
        start, count = np.ascontiguousarray(bounds[:, 0]), sizes[some]
        if (2 * count - 1 > bounds[:, 1] - start).any():  # before there is memory for them
            raise ValueError(f"{key.decode()} of some tree has fewer numbers than its num_leaves says")
        numbers = np.empty(count.sum())
        if kernels.numbers.parse_lines(self._bytes, start, count, numbers) < len(start):
            raise ValueError(f"{key.decode()} of some tree is not as many numbers as its num_leaves says")
        return numbers

    @cached_property
    def _bytes(self) -> NDArray[np.uint8]:
        return np.frombuffer(self.text, dtype=np.uint8)

    def in_line(self, scale: float) -> Tree:
        """All trees end to end: of each the inner nodes, then the leaves; a negative child c is the leaf -c - 1."""
        n_nodes, first = int(self.sizes.sum()), np.cumsum(self.sizes) - self.sizes
        of_inner = _places(first, self.n_inner)
        of_leaves = _places(first + self.n_inner, self.n_leaves)
        n_inner = np.repeat(self.n_inner, self.n_inner)

        def spread(of: NDArray[np.int64], numbers: NDArray[Any], elsewhere: Any) -> NDArray[Any]:
            out = np.full(n_nodes, elsewhere, dtype=numbers.dtype)
            out[of] = numbers
            return out

        cover = spread(of_leaves, self.leaf_count, 0.0)
        cover[of_inner] = self.inner_count
        return Tree(
            feature=spread(of_inner, self.feature, -1),
            threshold=spread(of_inner, _canonical(self.threshold), 0.0),
            left=spread(of_inner, np.where(self.left < 0, n_inner - self.left - 1, self.left), -1),
            right=spread(of_inner, np.where(self.right < 0, n_inner - self.right - 1, self.right), -1),
            missing_left=spread(of_inner, _missing_left(self.decision, self.threshold), False),
            cover=cover,
            values=spread(of_leaves, self.leaf_value * scale, 0.0)[:, None],
            categories=self._categories(of_inner),
        )

    def _categories(self, of_inner: NDArray[np.int64]) -> dict[int, NDArray[np.int64]]:
        """The categories that go left, by node."""
        found: dict[int, NDArray[np.int64]] = {}
        nodes = np.flatnonzero(self.decision & 1)
        trees = np.searchsorted(np.cumsum(self.n_inner), nodes, side="right")
        for tree in np.unique(trees).tolist():
            words, bounds = (
                np.array(self.text[slice(*self.fields[tree][key])].split(), dtype=dtype)
                for key, dtype in ((b"cat_threshold", np.uint32), (b"cat_boundaries", np.int64))
            )
            mine = nodes[trees == tree]
            for node, index in zip(of_inner[mine].tolist(), self.threshold[mine].astype(np.int64), strict=True):
                found[node] = bits_of(words[bounds[index] : bounds[index + 1]])
        return found


def _places(first: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """first[0], first[0] + 1, ... so many as sizes[0], then from first[1] on, and so forth."""
    return np.arange(sizes.sum()) + np.repeat(first - np.cumsum(sizes) + sizes, sizes)


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


def _frame_labels(text: bytes) -> tuple[tuple[Any, ...], ...]:
    """The labels of the columns that were categorical in the frame of the training data, in their order."""
    mark = b"\npandas_categorical:"
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
