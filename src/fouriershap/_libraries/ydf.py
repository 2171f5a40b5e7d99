"""YDF and TensorFlow Decision Forests: the folder that both save a model in.

``header.pb``, ``data_spec.pb`` and a header of the kind of model are messages of Protocol Buffers, ``nodes-...`` is a
sequence of them, a message per node, depth first, the negative child before the positive one. A live model is saved
and read: one way in, and it needs no library for a folder.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import InputError, UnsupportedModelError
from fouriershap._base.links import LOGISTIC, MEAN, PROBABILITY, SOFTMAX, UNKNOWN, Link
from fouriershap._base.messages import truncated_text
from fouriershap._libraries.protobuf import Message
from fouriershap._libraries.reading import (
    Answer,
    CannotAskError,
    Format,
    Library,
    Question,
    Reading,
    tree_reading,
)
from fouriershap._libraries.ydf_nodes import CATEGORICAL, Feature, Leaf, read_nodes, read_tree
from fouriershap._rows.labels import LABELS, LabelRule
from fouriershap._rows.rules import Casting
from fouriershap._trees.assemble import join

_NUMERICAL, _BOOLEAN, _DISCRETIZED = 1, 7, 9
_CLASSIFICATION = 1
_LOSSES = {1: LOGISTIC, 2: MEAN, 3: SOFTMAX, 6: LOGISTIC}
_SATURATED = 5.0  # log odds beyond which a float32 probability does not determine them well enough
_CASTING = Casting("ydf")
_LABELS = LabelRule("YDF", LABELS, LABELS, empty_is_missing=True)
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
    nodes = read_nodes(folder, prefix, header.whole(1, 1), header.text(7))
    boosted = kind == "GRADIENT_BOOSTED_TREES"
    width = len(classes) if classes and not boosted else 1
    leaf = Leaf(width, bool(header.whole(3, 1)))
    trees = []
    for _ in range(header.whole(2)):
        tree, nodes = read_tree(nodes, features, leaf)
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
        vocabularies={f.position: f.labels for f in features.values() if f.kind == CATEGORICAL},
        labels=_LABELS,
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
    if kind not in (_NUMERICAL, CATEGORICAL, _BOOLEAN, _DISCRETIZED):
        raise UnsupportedModelError(
            f"column {truncated_text(name)} of the YDF model is neither a number, a Boolean nor a category "
            "(sets, texts "
            "and vectors are not read). fs.BlackBoxExplainer(model.predict, background) explains it without reading it."
        )
    labels: list[Any] = _items(column, folder)[1:] if kind == CATEGORICAL else []
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


def _ask(reading: Reading, question: Question) -> Iterator[Answer]:
    model, rows, link = reading.model, question.asked, reading.link
    if link.response is None or not link.is_elementwise:
        raise CannotAskError(
            "probabilities do not determine the raw output, or the link of the loss is unknown"
        )
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
