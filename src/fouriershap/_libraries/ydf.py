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
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import InputError, UnsupportedModelError
from fouriershap._base.links import LOGISTIC, MEAN, PROBABILITY, SOFTMAX, UNKNOWN, Link
from fouriershap._base.messages import truncated_text
from fouriershap._libraries.protobuf import Message
from fouriershap._libraries.reading import Answer, Format, Library, Question, Reading, tree_reading
from fouriershap._rows.rules import Casting
from fouriershap._trees.assemble import Tree, join
from fouriershap._trees.ensemble import LEAF

_NUMERICAL, _CATEGORICAL, _BOOLEAN, _DISCRETIZED = 1, 4, 7, 9  # types of columns
_NA, _HIGHER, _TRUE, _CONTAINS, _BITMAP, _DISCRETE_HIGHER = range(1, 7)
_OTHERS = {7: "oblique splits", 8: "splits on sequences of vectors"}
_CLASSIFICATION = 1
_LOSSES = {1: LOGISTIC, 2: MEAN, 3: SOFTMAX, 6: LOGISTIC}
_SATURATED = 5.0  # log odds beyond which a float32 probability does not determine them well enough
_CASTING = Casting("ydf", empty_is_missing=True)
_KINDS = {
    "random_forest_header.pb": "RANDOM_FOREST",
    "gradient_boosted_trees_header.pb": "GRADIENT_BOOSTED_TREES",
}


def find_folder(path: Path) -> tuple[Path, str] | None:
    """Return the folder that holds a model ("assets" for TensorFlow's), and the prefix of its files' names."""
    for folder in (path, path / "assets"):
        for file in sorted(folder.glob("*data_spec.pb")):
            return folder, file.name.removesuffix("data_spec.pb")
    return None


def read_live(model: Any) -> Reading:
    """Read a live model."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.save(str(path))
        return read(path)


def read(path: Path) -> Reading:
    """Read means of forests (class probabilities of classifiers), logits and other raw outputs of boosted trees."""
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
    features = {column: _feature(columns[column], i, folder) for i, column in enumerate(inputs)}
    classes: tuple[str, ...] = ()
    if about.whole(2) == _CLASSIFICATION:
        classes = tuple(_items(columns[about.whole(3)], folder)[1:])
    nodes = _read_nodes(folder, prefix, header.whole(1, 1), header.text(7))
    boosted = kind == "GRADIENT_BOOSTED_TREES"
    width = len(classes) if classes and not boosted else 1
    leaf = Leaf(width, bool(header.whole(3, 1)))
    trees = []
    for _ in range(header.whole(2)):
        tree, nodes = _read_tree(nodes, features, leaf)
        trees.append(tree)
    base = header.floats(4).astype(np.float64) if boosted else np.zeros(width)
    n_features = len(inputs)
    values_scale = 1.0 if boosted else 1 / max(len(trees), 1)
    arrays = join(trees, width)
    arrays["values"] *= values_scale
    per_round = header.whole(5, 1) if boosted else 1
    many = boosted and len(base) > 1
    outputs = np.arange(len(trees)) % per_round if many else np.full(max(len(trees), 1), -int(width > 1))
    return tree_reading(
        f"ydf {kind}",
        arrays,
        n_features,
        np.float32,
        outputs.astype(np.int32),
        base,
        link=_link(boosted, bool(classes), header, about),
        output_names=tuple(map(str, classes)) if len(classes) == len(base) else None,
        computes_in=np.float32,
        is_boosted=boosted,
        casting=_CASTING,
        feature_names=tuple(columns[column].text(2) for column in inputs),
        vocabularies={f.position: f.labels for f in features.values() if f.kind == _CATEGORICAL},
        numbers_are_labels=True,
    )


def _link(boosted: bool, is_classifier: bool, header: Message, about: Message) -> Link:
    if boosted:
        return _LOSSES.get(header.whole(3), UNKNOWN)
    return PROBABILITY if is_classifier else MEAN if about.whole(2) == 2 else UNKNOWN


def _items(column: Message, folder: Path) -> list[str]:
    """Return the labels of a categorical column by index; the first stands for all that are in no dictionary.

    TensorFlow Decision Forests takes integers from 0 as they are, and adds one to make room for that first.
    """
    spec = column.message(6)
    if spec.whole(5) and (spec.whole(8) or folder.name == "assets"):
        return ["<OOD>", *map(str, range(spec.whole(2) - 1))]
    if spec.whole(5):
        raise UnsupportedModelError(
            f"column {truncated_text(column.text(2))} of the YDF model holds categories as integers that it took as "
            "they are: not read. Train on texts."
        )
    entries = {item.message(2).whole(1): item.text(1) for item in spec.messages(7)}
    if max(entries, default=0) > len(entries):
        raise InputError(
            f"the labels of column {truncated_text(column.text(2))} are not numbered one after the other."
        )
    return [entries.get(i, "<OOD>") for i in range(max(entries, default=0) + 1)]


def _feature(column: Message, position: int, folder: Path) -> Feature:
    kind, name = column.whole(1), column.text(2)
    if kind not in (_NUMERICAL, _CATEGORICAL, _BOOLEAN, _DISCRETIZED):
        raise UnsupportedModelError(
            f"column {truncated_text(name)} of the YDF model is neither a number, a Boolean nor a category "
            "(sets, texts "
            "and vectors are not read). fs.BlackBoxExplainer(model.predict, background) explains it without reading it."
        )
    labels: list[Any] = _items(column, folder)[1:] if kind == _CATEGORICAL else []
    index = list(range(1, len(labels) + 1))
    for i, text in enumerate(tuple(labels)):  # YDF makes texts of whole numbers and of truth values
        if text.removeprefix("-").isdecimal() and str(int(text)) == text:
            labels.append(int(text))
            index.append(i + 1)
    if set(labels) == {"false", "true"}:
        index += [labels.index("false") + 1, labels.index("true") + 1]
        labels += [False, True]
    return Feature(
        position, kind, column.message(8).floats(1), tuple(labels), np.array(index, dtype=np.int64)
    )


class Feature(NamedTuple):
    """A column: its type, what a discretized number is compared with, and of each label its index in YDF."""

    position: int
    kind: int
    boundaries: NDArray[np.float32]
    labels: tuple[Any, ...]
    indices: NDArray[np.int64]


def _read_nodes(folder: Path, prefix: str, n_shards: int, form: str) -> list[memoryview]:
    """Return the messages of all nodes, the last one first."""
    if not form.startswith("BLOB_SEQUENCE"):
        raise UnsupportedModelError(
            f"the nodes of the YDF model are stored as {truncated_text(form or 'TFE_RECORDIO')}, which is not "
            "read. Load "
            "the model with the package ydf and save it again."
        )
    found: list[memoryview] = []
    for shard in range(n_shards):
        data = (folder / f"{prefix}nodes-{shard:05d}-of-{n_shards:05d}").read_bytes()
        if data[:2] != b"BS" or len(data) < 8:
            raise InputError("the file of its nodes is not a sequence of blobs.")
        version, compression = struct.unpack_from("<HB", data, 2)
        body = data[8:]
        if version >= 1 and compression:
            try:
                body = gzip.decompress(body)
            except (OSError, EOFError, zlib.error) as error:
                raise InputError("the file of its nodes cannot be unpacked.") from error
        view, at = memoryview(body), 0
        while at < len(view):
            length = int.from_bytes(view[at : at + 4], "little")
            found.append(view[at + 4 : at + 4 + length])
            at += 4 + length
        if at > len(view):
            raise InputError("the file of its nodes is cut off.")
    return found[::-1]


class Leaf(NamedTuple):
    """How leaves become values."""

    width: int
    winner_takes_all: bool

    def value(self, node: Message) -> NDArray[np.float64]:
        if self.width == 1:
            return np.array([np.float64(np.float32(node.message(2).number(1)))])
        output = node.message(1)
        if self.winner_takes_all:
            won: NDArray[np.bool_] = np.arange(1, self.width + 1) == output.whole(1)
            return won.astype(np.float64)
        counts = output.message(2).doubles(1)[1:]
        return np.asarray(counts / output.message(2).doubles(2)[-1])


def _read_tree(
    nodes: list[memoryview], features: dict[int, Feature], leaf: Leaf
) -> tuple[Tree, list[memoryview]]:
    """Return the next tree, and the nodes that are left."""
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
        rows.append(
            [
                feature,
                threshold,
                LEAF,
                LEAF,
                missing_left,
                total if parent < 0 else cover,
                np.zeros(leaf.width),
            ]
        )
        if members is not None:
            categories[number] = members
        places = (2, 3) if positive_left else (3, 2)
        # The negative child comes first, so it is the last to be put aside.
        waiting += [(number, places[0], positive), (number, places[1], max(total - positive, 0.0))]
    feature_, threshold_, left, right, missing, covers, values = map(np.array, zip(*rows, strict=True))
    return Tree(feature_, threshold_, left, right, missing, covers, values, categories), nodes


def _condition(
    condition: Message, features: dict[int, Feature]
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
        listed = np.isin(feature.indices, elements)
        # Labels that are in no dictionary have index 0. In our form they go right: the sides swap if they are listed.
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


def _ask(reading: Reading, question: Question) -> Iterator[Answer]:
    model, rows, link = reading.model, question.asked, reading.link
    if link.response is None or not link.is_elementwise:
        raise TypeError("probabilities do not determine the raw output, or the link of the loss is unknown")
    spec = {column.name: column for column in model.data_spec().columns}
    given: dict[str, NDArray[Any]] = {}
    for feature, name in enumerate(reading.feature_names or ()):
        column = rows[name].to_numpy() if hasattr(rows, "columns") else np.asarray(rows)[:, feature]
        if feature in reading.rules.vocabularies:
            given[name] = np.array(
                ["" if value is None or value != value else value for value in column], object
            )
        elif spec[name].type == _BOOLEAN:  # never missing
            if not np.isin(column.astype(np.float64), (0, 1)).all():
                raise TypeError("a Boolean column has other numbers than 0 and 1")
            given[name] = column.astype(bool)
        else:
            given[name] = column.astype(np.float32)
    predicted = np.asarray(model.predict(given), dtype=np.float64).reshape(len(rows), -1)
    if link.raw_is_probability and predicted.shape[1] == 1:
        predicted = np.column_stack([1 - predicted, predicted])
    elif link.raw_is_margin:
        with np.errstate(divide="ignore"):
            margin = np.log(predicted) - np.log1p(-predicted)
        predicted = np.where(np.abs(margin) > _SATURATED, np.inf, margin)  # infinite outputs are not compared
    yield Answer(predicted)


LIBRARY = Library(
    name="YDF",
    package="ydf",
    supported_trees=("forests and boosted trees of YDF and TensorFlow Decision Forests; their folders",),
    tested="0.10",
    trees={"DecisionForestModel": read_live},
    ask=_ask,
    load=lambda path: import_module("ydf").load_model(str(path)),
    formats=(Format("", lambda path: read(path) if find_folder(path) is not None else None),),
)
