"""The nodes of YDF's models: sequences of messages to trees."""

from __future__ import annotations

import gzip
import struct
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import InputError, UnsupportedModelError
from fouriershap._base.messages import truncated_text
from fouriershap._libraries.protobuf import Message
from fouriershap._trees.assemble import Tree
from fouriershap._trees.ensemble import LEAF

CATEGORICAL = 4  # the number of the type of columns
_NA, _HIGHER, _TRUE, _CONTAINS, _BITMAP, _DISCRETE_HIGHER = range(1, 7)
_OTHERS = {7: "oblique splits", 8: "splits on sequences of vectors"}


class Feature(NamedTuple):
    """A column: its type, what a discretized number is compared with, and of each label its index in YDF."""

    position: int
    kind: int
    boundaries: NDArray[np.float32]
    labels: tuple[Any, ...]
    indices: NDArray[np.int64]


def read_nodes(folder: Path, prefix: str, n_shards: int, form: str) -> list[memoryview]:
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


def read_tree(
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
    if feature.kind == CATEGORICAL:
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
