"""Spark's saved models: those that old and new releases wrote, folders that are written here, and a live Spark's.

What three releases saved lies in ``tests/data`` (`write_spark.py` there). The last needs Java and pyspark.
"""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

import fouriershap as fs
from fouriershap._base.errors import InputError, UnsupportedModelError
from fouriershap._base.links import LOGISTIC, PROBABILITY
from models import coded, coded_target
from shap_oracle import assert_within, brute_force, with_outputs
from spark_session import java_version, spark_session

RELEASES = sorted((Path(__file__).parents[1] / "data").glob("spark-*.zip"))
LEAF = {"featureIndex": -1, "leftCategoriesOrThreshold": [], "numCategories": -1}


def node(number, prediction, stats, left=-1, right=-1, feature=-1, values=(), n_categories=-1):
    """A node as Spark writes it."""
    split = {
        "featureIndex": feature,
        "leftCategoriesOrThreshold": list(values),
        "numCategories": n_categories,
    }
    facts = {"id": number, "prediction": prediction, "impurity": 0.5, "impurityStats": stats, "gain": -1.0}
    return facts | {"leftChild": left, "rightChild": right, "split": split if left >= 0 else LEAF}


# Left at x0 <= 0.5. There the categories 0, 1 and 2 of four go left: Spark keeps {3}, so that what is none of the
# four, 3.5 or NaN, goes left, too.
FIRST = [
    node(0, 1.0, [10.0, 6.0], 1, 4, 0, [0.5]),
    node(1, 0.0, [8.0, 2.0], 2, 3, 1, [0.0, 1.0, 2.0], 4),
    node(2, -1.0, [6.0, 0.0]),
    node(3, 2.0, [2.0, 2.0]),
    node(4, 4.0, [2.0, 4.0]),
]
# Right, with anything unknown, but for category 2.
SECOND = [node(0, 0.0, [8.0, 8.0], 1, 2, 1, [2.0], 4), node(1, 10.0, [1.0, 3.0]), node(2, 20.0, [5.0, 5.0])]
ROWS = np.array(
    [[0.5, 0], [0.5, 3], [0.5, 3.5], [np.nextafter(0.5, 1), 2], [np.nan, 3], [0, np.nan], [0, 2], [0, -1]]
)
FIRST_LEAF = [2, 3, 2, 4, 4, 2, 2, 2]
SECOND_LEAF = [2, 2, 2, 1, 2, 2, 1, 2]


def save(
    path: Path, name: str, trees, weights=None, names=("treeID", "metadata", "weights"), **about
) -> Path:
    """A folder as Spark writes it; a single tree has no numbers of trees."""
    package = "classification" if "Classification" in name else "regression"
    metadata = {"class": f"org.apache.spark.ml.{package}.{name}", "paramMap": {}, "defaultParamMap": {}}
    _write_metadata(path, metadata | {"numFeatures": 2} | about)
    rows = trees[0]
    if not name.startswith("DecisionTree"):
        rows = [{"treeID": t, "nodeData": n} for t, nodes in enumerate(trees) for n in nodes]
        listed = [
            dict(zip(names, (t, "{}", w), strict=True)) for t, w in enumerate(weights or [1.0] * len(trees))
        ]
        (path / "treesMetadata").mkdir()
        pa.parquet.write_table(pa.Table.from_pylist(listed[::-1]), path / "treesMetadata" / "part-0.parquet")
    (path / "data").mkdir()
    half = len(rows) // 2  # in two files, the later nodes first
    for i, part in enumerate((rows[half:], rows[:half])):
        pa.parquet.write_table(pa.Table.from_pylist(part), path / "data" / f"part-{i}.snappy.parquet")
    return path


def _write_metadata(path: Path, metadata) -> None:
    (path / "metadata").mkdir(parents=True)
    (path / "metadata" / "part-00000").write_text(json.dumps(metadata) + "\n")


def leaves(nodes, reached, what):
    return np.array([what(nodes[leaf]) for leaf in reached])


def predicted(path):
    ensemble = fs.read_model(path)
    return ensemble.predict(ROWS)


def shares(nodes, reached):
    return leaves(nodes, reached, lambda n: np.array(n["impurityStats"]) / sum(n["impurityStats"]))


def test_hand_written_folders(tmp_path):
    first, second = (
        leaves(nodes, reached, lambda n: n["prediction"])
        for nodes, reached in ((FIRST, FIRST_LEAF), (SECOND, SECOND_LEAF))
    )
    tree = save(tmp_path / "tree", "DecisionTreeRegressionModel", [FIRST])
    np.testing.assert_allclose(predicted(tree)[:, 0], first)
    forest = save(tmp_path / "forest", "RandomForestRegressionModel", [FIRST, SECOND])
    np.testing.assert_allclose(predicted(forest)[:, 0], (first + second) / 2)
    for names in (("treeID", "metadata", "weights"), ("_1", "_2", "_3")):
        boosted = save(tmp_path / names[0], "GBTRegressionModel", [FIRST, SECOND], [1.0, 0.1], names)
        np.testing.assert_allclose(predicted(boosted)[:, 0], first + 0.1 * second)


def test_hand_written_classifiers(tmp_path):
    first, second = shares(FIRST, FIRST_LEAF), shares(SECOND, SECOND_LEAF)
    forest = save(tmp_path / "forest", "RandomForestClassificationModel", [FIRST, SECOND], numClasses=2)
    np.testing.assert_allclose(predicted(forest), (first + second) / 2)
    assert fs.read_model(forest).link is PROBABILITY
    np.testing.assert_array_equal(fs.read_model(forest).trees.cover[:3], [16, 10, 6])
    boosted = save(tmp_path / "boosted", "GBTClassificationModel", [FIRST, SECOND], [1.0, 0.1])
    margin = leaves(FIRST, FIRST_LEAF, lambda n: n["prediction"]) + 0.1 * leaves(
        SECOND, SECOND_LEAF, lambda n: n["prediction"]
    )
    np.testing.assert_allclose(
        predicted(boosted)[:, 0], 2 * margin
    )  # log odds, by Spark's 1 / (1 + exp(-2 margin))
    assert fs.read_model(boosted).link is LOGISTIC


def test_pipelines_and_what_is_refused(tmp_path):
    stages = tmp_path / "pipe" / "stages"
    save(stages / "1_forest", "RandomForestRegressionModel", [FIRST, SECOND])
    assembler = {
        "class": "org.apache.spark.ml.feature.VectorAssembler",
        "paramMap": {"inputCols": ["a", "b"]},
    }
    _write_metadata(stages / "0_assembler", assembler)
    pipe = {"class": "org.apache.spark.ml.PipelineModel", "paramMap": {"stageUids": ["assembler", "forest"]}}
    _write_metadata(tmp_path / "pipe", pipe)
    assert fs.read_model(tmp_path / "pipe").feature_names == ("a", "b")
    explainer = fs.Explainer(str(tmp_path / "pipe"), pd.DataFrame(ROWS, columns=["a", "b"]))
    assert isinstance(explainer.representation, fs.TreeEnsemble) and not explainer.checked

    _write_metadata(tmp_path / "longer", pipe | {"paramMap": {"stageUids": ["forest"]}})
    shutil.copytree(stages / "1_forest", tmp_path / "longer" / "stages" / "0_forest")
    with pytest.raises(UnsupportedModelError, match="Pipeline of RandomForestRegressionModel"):
        fs.read_model(tmp_path / "longer")
    linear = {"class": "org.apache.spark.ml.regression.LinearRegressionModel", "paramMap": {}}
    _write_metadata(tmp_path / "linear", linear)
    with pytest.raises(UnsupportedModelError, match="LinearRegressionModel"):
        fs.read_model(tmp_path / "linear")
    broken = save(tmp_path / "broken", "RandomForestRegressionModel", [FIRST[:-1], SECOND])
    next(iter((broken / "data").glob("part-0*"))).unlink()
    with pytest.raises(InputError, match="not whole"):
        fs.read_model(broken)
    with pytest.raises(InputError, match="not a model that"):
        fs.read_model(stages)


def test_oldest_and_newest_releases_are_there():
    assert [path.stem for path in RELEASES] == ["spark-3.0", "spark-3.5", "spark-4.3"]


@pytest.mark.parametrize("archive", RELEASES, ids=lambda path: path.stem)
def test_models_that_releases_of_spark_saved(archive, tmp_path):
    with zipfile.ZipFile(archive) as files:
        files.extractall(tmp_path)
    said = json.loads((tmp_path / "said.json").read_text())
    rows, background = np.array(said["rows"])[:4], np.array(said["rows"])[4:14]
    assert archive.stem == "spark-" + said["spark"].rpartition(".")[0]
    for name, answers in said["answers"].items():
        ensemble = fs.read_model(tmp_path / name)
        want = np.array(answers) if name != "boosted classifier" else 2 * np.array(answers)[:, 1:]
        got = ensemble.predict(said["rows"])
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12, err_msg=name)
        if name != "pipeline":
            assert set(ensemble.rules.vocabularies) == {3}
        explainer = fs.TreeExplainer(tmp_path / name, background, precision="double")
        values, _ = brute_force(None, rows, background, output=lambda _, X, e=ensemble: e.predict(X))
        assert_within(with_outputs(explainer.shap_values(rows)), values, 1e-9)


@pytest.mark.xdist_group("spark")
@pytest.mark.skipif(java_version() < 17, reason="Spark needs Java >= 17")
def test_models_that_spark_itself_saved(tmp_path):
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'fouriershap[spark]'")
    from pyspark.ml.classification import GBTClassifier, RandomForestClassifier
    from pyspark.ml.feature import VectorAssembler, VectorIndexer

    X = coded()
    columns = list("abcd")
    y = coded_target(X)
    two, three = (np.searchsorted(np.quantile(y, np.arange(1, n) / n), y).astype(float) for n in (2, 3))
    frame = pd.DataFrame(X, columns=columns).assign(two=two, three=three)
    with spark_session() as session:
        rows = VectorAssembler(inputCols=columns, outputCol="raw").transform(
            session.createDataFrame(frame.to_dict("records"))
        )
        indexer = VectorIndexer(inputCol="raw", outputCol="features", maxCategories=9).fit(rows)
        rows = indexer.transform(rows).cache()
        forest = RandomForestClassifier(labelCol="three", numTrees=2, maxDepth=2, seed=1).fit(rows)
        boosted = GBTClassifier(labelCol="two", maxIter=1, maxDepth=2, seed=1).fit(rows)
        with pytest.raises(UnsupportedModelError, match=r"model\.save\(path\)"):
            fs.read_model(forest)

        def said(model, column):
            return np.array([row[0].toArray() for row in model.transform(rows).select(column).collect()])

        for model, name, want in (
            (forest, "forest", said(forest, "probability")),
            (boosted, "boosted", 2 * said(boosted, "rawPrediction")[:, 1:]),
        ):
            model.save(str(tmp_path / name))
            ensemble = fs.read_model(tmp_path / name)
            assert set(ensemble.rules.vocabularies) == {3}
            np.testing.assert_allclose(ensemble.predict(X), want, rtol=1e-12, atol=1e-12)
    ensemble = fs.read_model(tmp_path / "forest")
    explainer = fs.TreeExplainer(tmp_path / "forest", X[50:60], precision="double")
    want, _ = brute_force(None, X[:4], X[50:60], output=lambda _, rows: ensemble.predict(rows))
    assert_within(with_outputs(explainer.shap_values(X[:4])), want, 1e-9)
