"""YDF and TensorFlow Decision Forests: the folder that both save a model in.

``header.pb``, ``data_spec.pb`` and a header of the kind of model are messages of Protocol Buffers, ``nodes-...`` is a
sequence of them, a message per node, depth first, the negative child before the positive one. A live model is saved
and read: one way in, and it needs no library for a folder.
"""

from __future__ import annotations

import gzip
import struct
import tempfile
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import InputError, UnsupportedModelError
from fouriershap._base.short import short_text
from fouriershap._trees.ensemble import LEAF, TreeEnsemble
from fouriershap._trees.readers.assemble import Tree, join
from fouriershap._trees.readers.protobuf import Message

_NUMERICAL, _CATEGORICAL, _BOOLEAN, _DISCRETIZED = 1, 4, 7, 9
_CLASSIFICATION = 1
_LOSSES = {1: "binary", 2: "squared_error", 3: "multiclass", 6: "binary"}
_NA, _HIGHER, _TRUE, _CONTAINS, _BITMAP, _DISCRETE_HIGHER = range(1, 7)
_OTHERS = {7: "oblique splits", 8: "splits on sequences of vectors"}
_KINDS = {"random_forest_header.pb": "RANDOM_FOREST", "gradient_boosted_trees_header.pb": "GRADIENT_BOOSTED_TREES"}


class _Feature(NamedTuple):
    """A column: its type, what a discretized number is compared with, and of each label its index in YDF."""

    position: int
    kind: int
    boundaries: NDArray[np.float32]
    labels: tuple[Any, ...]
    index: NDArray[np.int64]


def find_folder(path: Path) -> tuple[Path, str] | None:
    """The folder that holds a model, that of assets for TensorFlow's, and what its files' names begin with."""
    for folder in (path, path / "assets"):
        for file in sorted(folder.glob("*data_spec.pb")):
            return folder, file.name.removesuffix("data_spec.pb")
    return None


def read_live(model: Any) -> TreeEnsemble:
    """A model of the package ydf."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.save(str(path))
        return read(path)


def read(path: Path) -> TreeEnsemble:
    """Means of forests (class probabilities of classifiers), logits and other raw outputs of boosted trees."""
    found = find_folder(path)
    if found is None:
        raise InputError("there is no data_spec.pb of YDF in it.")
    folder, prefix = found
    name = next((name for name in _KINDS if (folder / f"{prefix}{name}").is_file()), None)
    if name is None:
        raise UnsupportedModelError(
            "the model of YDF is neither a random forest (or a single tree) nor gradient boosted trees: not read."
        )
    kind, header = _KINDS[name], Message((folder / f"{prefix}{name}").read_bytes())
    about = Message((folder / f"{prefix}header.pb").read_bytes())
    columns = Message((folder / f"{prefix}data_spec.pb").read_bytes()).messages(1)
    inputs = about.wholes(5).tolist()
    features = {column: _feature(columns[column], i) for i, column in enumerate(inputs)}
    classes = ()
    if about.whole(2) == _CLASSIFICATION:
        classes = tuple(_items(columns[about.whole(3)])[1:])
    nodes = _nodes(folder, prefix, header.whole(1, 1), header.text(7))
    boosted = kind == "GRADIENT_BOOSTED_TREES"
    width = len(classes) if classes and not boosted else 1
    leaf = _Leaf(width, bool(header.whole(3, 1)))
    trees = []
    for _ in range(header.whole(2)):
        tree, nodes = _tree(nodes, features, leaf)
        trees.append(tree)
    base = header.floats(4).astype(np.float64) if boosted else np.zeros(width)
    n_features = len(inputs)
    values_scale = 1.0 if boosted else 1 / max(len(trees), 1)
    arrays = join(trees, width)
    arrays["values"] *= values_scale
    per_round = header.whole(5, 1) if boosted else 1
    many = boosted and len(base) > 1
    return TreeEnsemble(
        n_features=n_features,
        n_outputs=len(base),
        dtype=np.dtype(np.float32),
        tree_output=np.arange(len(trees)) % per_round if many else np.full(max(len(trees), 1), -(width > 1)),
        base=base,
        zero_as_missing=np.zeros(n_features, dtype=bool),
        feature_names=tuple(columns[column].text(2) for column in inputs),
        output_names=tuple(map(str, classes)) if len(classes) == len(base) else None,
        vocabularies={f.position: f.labels for f in features.values() if f.kind == _CATEGORICAL},
        numbers_are_labels=True,
        kind=f"ydf {kind}",
        objective=_objective(boosted, bool(classes), header, about),
        computes_in=np.dtype(np.float32),
        casting="ydf",
        **arrays,
    )


def _objective(boosted: bool, is_classifier: bool, header: Message, about: Message) -> str:
    if boosted:
        return _LOSSES.get(header.whole(3), "")
    return "probability" if is_classifier else "squared_error" if about.whole(2) == 2 else ""


def _items(column: Message) -> list[str]:
    """The labels of a categorical column, in the order of their indices; the first is what is in no dictionary."""
    spec = column.message(6)
    if spec.whole(5):
        raise UnsupportedModelError(
            f"column {short_text(column.text(2))} of the YDF model holds categories as whole numbers that it took as "
            "they are: not read. Train on texts."
        )
    entries = {item.message(2).whole(1): item.text(1) for item in spec.messages(7)}
    return [entries.get(i, "<OOD>") for i in range(spec.whole(2))]


def _feature(column: Message, position: int) -> _Feature:
    kind, name = column.whole(1), column.text(2)
    if kind not in (_NUMERICAL, _CATEGORICAL, _BOOLEAN, _DISCRETIZED):
        raise UnsupportedModelError(
            f"column {short_text(name)} of the YDF model is neither a number, a Boolean nor a category (sets, texts and "
            "vectors are not read). fs.BlackBoxExplainer(model.predict, background) explains the model without reading."
        )
    labels: list[Any] = _items(column)[1:] if kind == _CATEGORICAL else []
    index = list(range(1, len(labels) + 1))
    for i, text in enumerate(tuple(labels)):  # YDF makes texts of whole numbers and of truth values
        if text.removeprefix("-").isdecimal() and str(int(text)) == text:
            labels.append(int(text))
            index.append(i + 1)
    if set(labels) == {"false", "true"}:
        index += [labels.index("false") + 1, labels.index("true") + 1]
        labels += [False, True]
    return _Feature(position, kind, column.message(8).floats(1), tuple(labels), np.array(index, dtype=np.int64))


def _nodes(folder: Path, prefix: str, n_shards: int, form: str) -> list[memoryview]:
    """The messages of all nodes, the last one first."""
    if not form.startswith("BLOB_SEQUENCE"):
        raise UnsupportedModelError(
            f"the nodes of the YDF model are stored as {short_text(form or 'TFE_RECORDIO')}, which is not read. Load the "
            "model with the package ydf and save it again."
        )
    found: list[memoryview] = []
    for shard in range(n_shards):
        data = (folder / f"{prefix}nodes-{shard:05d}-of-{n_shards:05d}").read_bytes()
        if data[:2] != b"BS":
            raise InputError("the file of its nodes is no sequence of blobs.")
        version, compression = struct.unpack_from("<HB", data, 2)
        body = data[8:]
        if version >= 1 and compression:
            try:
                body = gzip.decompress(body)
            except (OSError, EOFError, zlib.error) as error:
                raise InputError("the file of its nodes cannot be unpacked.") from error
        view, at = memoryview(body), 0
        while at < len(view):
            (length,) = struct.unpack_from("<I", view, at)
            found.append(view[at + 4 : at + 4 + length])
            at += 4 + length
    return found[::-1]


class _Leaf(NamedTuple):
    """How leaves become values."""

    width: int
    winner_takes_all: bool

    def value(self, node: Message) -> NDArray[np.float64]:
        if self.width == 1:
            return np.array([np.float64(np.float32(node.message(2).number(1)))])
        output = node.message(1)
        if self.winner_takes_all:
            return (np.arange(1, self.width + 1) == output.whole(1)).astype(np.float64)
        counts = output.message(2).doubles(1)[1:]
        return np.asarray(counts / output.message(2).doubles(2)[-1])


def _tree(
    nodes: list[memoryview], features: dict[int, _Feature], leaf: _Leaf
) -> tuple[Tree, list[memoryview]]:
    """The next tree, and the nodes without its own."""
    rows: list[list[Any]] = []  # feature, threshold, left, right, missing_left, cover, values
    categories: dict[int, NDArray[np.int64]] = {}
    waiting: list[tuple[int, int, float]] = [(-1, 0, 0.0)]  # parent, place of the child in its row, cover
    while waiting:
        parent, place, cover = waiting.pop()
        if not nodes:
            raise InputError("its last tree lacks nodes: the folder is not whole.")
        node, number = Message(nodes.pop()), len(rows)
        if parent >= 0:
            rows[parent][place] = number
        if 3 not in node:
            rows.append([LEAF, 0.0, LEAF, LEAF, False, cover, leaf.value(node)])
            continue
        condition = node.message(3)
        feature, threshold, members, positive_left, missing_left = _condition(condition, features)
        total, positive = (float(sum(condition.doubles(field)[-1:])) for field in (5, 8))
        rows.append([feature, threshold, LEAF, LEAF, missing_left, total if parent < 0 else cover, np.zeros(leaf.width)])
        if members is not None:
            categories[number] = members
        places = (2, 3) if positive_left else (3, 2)
        # The negative child comes first, so it is the last to be put aside.
        waiting += [(number, places[0], positive), (number, places[1], max(total - positive, 0.0))]
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    return Tree(*columns, categories), nodes


def _condition(
    condition: Message, features: dict[int, _Feature]
) -> tuple[int, float, NDArray[np.int64] | None, bool, bool]:
    """Feature, threshold, categories that go left, whether the positive child is left, where missing values go."""
    feature, test, missing = features[condition.whole(2)], condition.message(3), bool(condition.whole(1))
    if (other := next((_OTHERS[field] for field in _OTHERS if field in test), None)) is not None:
        raise UnsupportedModelError(
            f"the YDF model has {other}, which ask for several numbers at once: no plain trees. "
            "fs.BlackBoxExplainer(model.predict, background) explains it without reading it."
        )
    if feature.kind == _CATEGORICAL:
        if _NA in test:
            return feature.position, 0.0, np.empty(0, dtype=np.int64), True, True
        if _BITMAP in test:
            bits = np.frombuffer(test.message(_BITMAP).blob(1), dtype=np.uint8)
            elements = np.flatnonzero(np.unpackbits(bits, bitorder="little"))
        else:
            elements = test.message(_CONTAINS).wholes(1)
        listed = np.isin(feature.index, elements)
        # Labels that are in no dictionary have index 0. In our form they go right, so the sides swap if they are listed.
        unknown = bool((elements == 0).any())
        return feature.position, 0.0, np.flatnonzero(listed != unknown), not unknown, missing != unknown
    if _NA in test:
        return feature.position, np.nan, None, False, False
    if _HIGHER in test:
        threshold = test.message(_HIGHER).number(1)
    elif _DISCRETE_HIGHER in test:
        threshold = float(feature.boundaries[test.message(_DISCRETE_HIGHER).whole(1) - 1])
    elif _TRUE in test:
        threshold = 0.5
    else:
        raise UnsupportedModelError("the YDF model has splits of a kind that is not known, and not read.")
    return feature.position, threshold, None, False, not missing
