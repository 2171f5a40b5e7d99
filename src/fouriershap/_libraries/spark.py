"""Spark MLlib: folders of saved trees, forests and boosted trees, read by pyarrow, without Spark or Java.

A folder has ``metadata`` (a line of JSON), ``data`` (Parquet, a row per node) and, of ensembles, ``treesMetadata``
(Parquet, a row per tree, with its weight). Rows are doubles; a number goes left at ``x <= threshold``, NaN never does.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.checks import import_optional
from fouriershap._base.errors import InputError, UnsupportedModelError
from fouriershap._base.links import LOGISTIC, MEAN, PROBABILITY, UNKNOWN
from fouriershap._base.messages import truncated_repr, truncated_text
from fouriershap._libraries.reading import Format, Library, Reading, tree_reading
from fouriershap._trees.assemble import Tree, join, right_above
from fouriershap._trees.ensemble import LEAF

_PACKAGE = "org.apache.spark.ml."
_MODELS = tuple(
    f"{kind}{task}Model"
    for kind in ("DecisionTree", "RandomForest", "GBT")
    for task in ("Classification", "Regression")
)


def is_folder(path: Path) -> bool:
    """Whether this is a folder as Spark writes it."""
    return any((path / "metadata").glob("part-*"))


def read_live(model: Any) -> Reading:
    """Refuse a live model: its trees are in Java, and come out by saving."""
    raise UnsupportedModelError(
        f"model is a {type(model).__name__} inside Spark. Save it, `model.save(path)`, and give the path of the "
        "folder, as this machine sees it: it is read without Spark."
    )


def read(path: Path) -> Reading:
    """Read a saved model: class probabilities of trees and forests, log odds of boosted classifiers, or means."""
    about = _metadata(path)
    name = about["class"].removeprefix(_PACKAGE).rpartition(".")[2]
    if name == "PipelineModel":
        return _read_pipeline(path, about)
    if name not in _MODELS:
        raise UnsupportedModelError(
            f"model is the path {truncated_repr(str(path))} of a {truncated_text(name)} of Spark, which is no "
            "model of trees that "
            f"can be read; readable: {', '.join(_MODELS)}, and a PipelineModel of a VectorAssembler and one of these."
        )
    n_classes = 0
    if "Classification" in name:
        n_classes = 2 if name.startswith("GBT") else int(about["numClasses"])
    width = n_classes if n_classes and not name.startswith("GBT") else 1
    tables = _tables(path, "data")
    by_tree = _by_tree(tables)
    weights = _weights(path, name, len(by_tree))
    vocabularies = _vocabularies(by_tree)
    trees = [
        _tree(nodes, weight, width, n_classes, vocabularies)
        for nodes, weight in zip(by_tree, weights, strict=True)
    ]
    n_features = int(about["numFeatures"])
    impurity = (about["defaultParamMap"] | about["paramMap"]).get("impurity")
    of_regression = MEAN if impurity == "variance" else UNKNOWN
    return tree_reading(
        f"spark {name}",
        join(trees, width),
        n_features,
        np.float64,
        np.full(len(trees), -1 if width > 1 else 0),
        np.zeros(width),
        link=PROBABILITY if width > 1 else LOGISTIC if n_classes else of_regression,
        output_names=tuple(str(float(c)) for c in range(width)) if width > 1 else None,
        is_boosted=name.startswith("GBT"),
        vocabularies=vocabularies,
        numbers_are_labels=bool(vocabularies),
    )


def _metadata(path: Path) -> dict[str, Any]:
    for part in sorted((path / "metadata").glob("part-*")):
        line = part.read_text(encoding="utf-8").partition("\n")[0]
        if line:
            found: dict[str, Any] = json.loads(line)
            return found
    raise InputError(f"model is the path {truncated_repr(str(path))}, a folder without metadata of Spark.")


def _read_pipeline(path: Path, about: dict[str, Any]) -> Reading:
    """Read a VectorAssembler, which gives the names of the columns, and a model."""
    uids = about["paramMap"]["stageUids"]
    digits = len(str(len(uids)))
    stages = [path / "stages" / f"{i:0{digits}d}_{uid}" for i, uid in enumerate(uids)]
    described = [_metadata(stage) for stage in stages]
    names = [found["class"].rpartition(".")[2] for found in described]
    if len(names) != 2 or names[0] != "VectorAssembler":
        raise UnsupportedModelError(
            f"model is the path {truncated_repr(str(path))} of a Pipeline of "
            f"{', '.join(map(truncated_text, names))}; read are "
            "those of a VectorAssembler and a model of trees. Give the folder of the model inside (under stages), "
            "and rows as they come to it."
        )
    reading = read(stages[1])
    columns = tuple(described[0]["paramMap"]["inputCols"])
    # A column of vectors stands for several features, and does not say for how many.
    return reading.replace(feature_names=columns) if len(columns) == reading.n_features else reading


def _tables(path: Path, folder: str) -> list[dict[str, Any]]:
    """Return the rows of all Parquet files of a folder; none if there is no folder."""
    parquet = import_optional("pyarrow.parquet", "a model of Spark", "pyarrow")
    files = sorted((path / folder).glob("*.parquet"))
    return [row for file in files for row in parquet.read_table(file).to_pylist()]


def _by_tree(rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return the nodes of each tree in the order of their ids; rows of a single tree have no tree number."""
    if rows and "nodeData" not in rows[0]:
        return [sorted(rows, key=lambda node: int(node["id"]))]
    trees: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        trees.setdefault(int(row["treeID"]), []).append(row["nodeData"])
    return [sorted(trees[tree], key=lambda node: int(node["id"])) for tree in sorted(trees)]


def _weights(path: Path, name: str, n_trees: int) -> NDArray[np.float64]:
    """Return the weight of each tree; twice that for boosted classifiers, whose log odds are 2 ``rawPrediction``."""
    if not n_trees:
        raise InputError(f"model is the path {truncated_repr(str(path))}, where there are no nodes of trees.")
    if not name.startswith("GBT"):
        return np.full(n_trees, 1 / n_trees)
    # Number, metadata and weight of a tree; Spark 4.3 calls them _1, _2 and _3.
    found = sorted(
        (tuple(row.values()) for row in _tables(path, "treesMetadata")), key=lambda row: int(row[0])
    )
    weights = np.array([float(row[2]) for row in found])
    return weights * (2 if "Classification" in name else 1)


def _vocabularies(by_tree: list[list[dict[str, Any]]]) -> dict[int, tuple[float, ...]]:
    """Return the categories of each categorical feature: the integers from 0 on."""
    counts: dict[int, int] = {}
    for nodes in by_tree:
        for node in nodes:
            split = node["split"]
            if split["numCategories"] >= 0 and node["leftChild"] >= 0:
                counts[split["featureIndex"]] = max(
                    counts.get(split["featureIndex"], 0), split["numCategories"]
                )
    return {feature: tuple(map(float, range(count))) for feature, count in sorted(counts.items())}


def _tree(
    nodes: list[dict[str, Any]],
    weight: float,
    width: int,
    n_classes: int,
    vocabularies: dict[int, tuple[float, ...]],
) -> Tree:
    ids = [int(node["id"]) for node in nodes]
    children = [int(node[side]) for node in nodes for side in ("leftChild", "rightChild")]
    if ids != list(range(len(nodes))) or max(children) >= len(nodes):
        raise InputError("a tree of the saved model of Spark lacks nodes: its folder is not whole.")
    left = np.array([node["leftChild"] for node in nodes], dtype=np.int64)
    right = np.array([node["rightChild"] for node in nodes], dtype=np.int64)
    threshold, missing_left = np.zeros(len(nodes)), np.zeros(len(nodes), dtype=bool)
    categories: dict[int, NDArray[np.int64]] = {}
    for number, node in enumerate(nodes):
        if left[number] < 0:
            continue
        split = node["split"]
        values = split["leftCategoriesOrThreshold"]
        if split["numCategories"] < 0:
            threshold[number] = values[0]
            continue
        listed = np.array(values, dtype=np.int64)
        # Spark keeps the smaller side, and sends everything else, unknown or missing, to the other.
        if len(listed) > split["numCategories"] / 2:
            listed = np.setdiff1d(np.arange(split["numCategories"]), listed)
            left[number], right[number] = right[number], left[number]
        categories[number] = listed
    stats = [np.array(node["impurityStats"], dtype=np.float64) for node in nodes]
    is_classes = n_classes and len(stats[0]) == n_classes and width > 1
    cover = np.array([s.sum() if is_classes else s[0] if len(s) else 0.0 for s in stats])
    if width > 1:
        table = np.stack(stats)
        values_ = table / np.maximum(table.sum(axis=1, keepdims=True), 1e-300)
    else:
        values_ = np.array([[float(node["prediction"])] for node in nodes])
    return Tree(
        feature=np.array([node["split"]["featureIndex"] for node in nodes]),
        threshold=right_above(threshold, np.float64),
        left=np.where(left < 0, LEAF, left),
        right=np.where(left < 0, LEAF, right),
        missing_left=missing_left,
        cover=cover,
        values=values_ * weight,
        categories=categories,
    )


LIBRARY = Library(
    name="Spark",
    package="pyspark",
    supported_trees=("saved folders of Spark MLlib's trees, forests and boosted trees",),
    tested="3.0, 3.5 and 4.3",
    trees={"JavaPredictionModel": read_live},
    formats=(Format("", lambda path: read(path) if is_folder(path) else None),),
)
