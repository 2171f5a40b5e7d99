"""Write ``spark-<release>.zip``: small models as one release of Spark saves them, and what it predicts.

Run by hand, under the release in question: ``python tests/data/write_spark.py``. Spark 3.0 runs on Java 11 and
Python 3.8, so that this script keeps to what these know; Spark 3.5 and 4.3 run on Java 17.
"""

import json
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pyspark
from pyspark.ml import Pipeline
from pyspark.ml.classification import DecisionTreeClassifier, GBTClassifier, RandomForestClassifier
from pyspark.ml.feature import VectorAssembler, VectorIndexer
from pyspark.ml.regression import DecisionTreeRegressor, GBTRegressor, RandomForestRegressor
from pyspark.sql import SparkSession

COLUMNS = list("abcd")
N_ROWS, N_ASKED = 160, 40


def table():
    """Rows of three numbers and a category, and targets: a number, two classes, three classes."""
    rng = np.random.RandomState(7)
    X = np.round(rng.normal(size=(N_ROWS, 4)), 2)
    X[:, 3] = rng.randint(0, 5, N_ROWS)
    score = X[:, 0] * X[:, 1] + X[:, 3] % 2 + 0.3 * X[:, 2]
    two, three = (np.searchsorted(np.quantile(score, np.arange(1, n) / n), score) for n in (2, 3))
    return X, np.column_stack([X, score, two, three]).astype(float)


def estimators():
    """Of each name the estimator, and the column of what it predicts."""
    small = {"maxDepth": 3, "seed": 1}
    return {
        "tree": (DecisionTreeRegressor(labelCol="score", **small), "prediction"),
        "tree classifier": (DecisionTreeClassifier(labelCol="three", **small), "probability"),
        "forest": (RandomForestRegressor(labelCol="score", numTrees=3, **small), "prediction"),
        "forest classifier": (RandomForestClassifier(labelCol="three", numTrees=3, **small), "probability"),
        "boosted": (GBTRegressor(labelCol="score", maxIter=3, **small), "prediction"),
        "boosted classifier": (GBTClassifier(labelCol="two", maxIter=3, **small), "rawPrediction"),
    }


def asked(model, column, rows):
    found = [row[0] for row in model.transform(rows).select(column).collect()[:N_ASKED]]
    return [answer.toArray().tolist() if hasattr(answer, "toArray") else [answer] for answer in found]


def write(session, folder):
    X, values = table()
    frame = session.createDataFrame(values.tolist(), [*COLUMNS, "score", "two", "three"]).coalesce(1)
    raw = VectorAssembler(inputCols=COLUMNS, outputCol="raw").transform(frame)
    indexer = VectorIndexer(inputCol="raw", outputCol="features", maxCategories=5).fit(raw)
    rows = indexer.transform(raw).cache()
    answers = {}
    for name, (estimator, column) in estimators().items():
        model = estimator.fit(rows)
        model.save((folder / name).as_uri().replace("%20", " "))
        answers[name] = asked(model, column, rows)
    assembler = VectorAssembler(inputCols=COLUMNS, outputCol="features")
    pipeline = Pipeline(stages=[assembler, GBTRegressor(labelCol="score", maxIter=2, maxDepth=2, seed=1)])
    model = pipeline.fit(frame)
    model.save((folder / "pipeline").as_uri())
    answers["pipeline"] = asked(model, "prediction", frame)
    said = {"spark": pyspark.__version__, "rows": X[:N_ASKED].tolist(), "answers": answers}
    (folder / "said.json").write_text(json.dumps(said))


def main():
    session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write(session, root)
        target = Path(__file__).parent / "spark-{}.zip".format(pyspark.__version__.rpartition(".")[0])
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(root.rglob("*")):
                if path.is_file() and not path.name.startswith(
                    (".", "_")
                ):  # no checksums, no marks of success
                    archive.write(path, path.relative_to(root).as_posix())
    session.stop()


if __name__ == "__main__":
    sys.exit(main())
