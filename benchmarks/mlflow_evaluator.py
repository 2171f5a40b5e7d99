"""CPU seconds of the SHAP part of MLflow's evaluator, without and with `fs.patch_shap`: 1,000 rows, two classes.

Needs `pip install mlflow shap xgboost`.
"""

from __future__ import annotations

import logging
import tempfile
import time
import warnings
from contextlib import nullcontext
from typing import Any

import matplotlib as mpl
import mlflow
import pandas as pd
import shap
import xgboost
from mlflow.models.evaluation.evaluators.shap import ShapEvaluator
from sklearn.datasets import make_classification

import fouriershap as fs

ROWS, COLUMNS = 1_000, [f"c{j}" for j in range(20)]


MODELS = {
    f"XGBoost, {n} trees": xgboost.XGBClassifier(n_estimators=n, max_depth=6, n_jobs=1) for n in (100, 300)
}


def evaluate(uri: str, data: pd.DataFrame, seen: dict[str, Any], n_rows: int = ROWS) -> list[str]:
    """Run MLflow's evaluator; return the SHAP artifacts that it logged."""
    part = ShapEvaluator._evaluate

    def timed(self: Any, *args: Any, **options: Any) -> Any:
        begin = time.process_time()
        try:
            return part(self, *args, **options)
        finally:
            seen["seconds"] = time.process_time() - begin

    ShapEvaluator._evaluate = timed
    try:
        with mlflow.start_run():
            found = mlflow.models.evaluate(
                uri,
                data,
                targets="target",
                model_type="classifier",
                evaluator_config={"explainability_nsamples": n_rows, "ignore_exceptions": False},
            )
    finally:
        ShapEvaluator._evaluate = part
    return sorted(name for name in found.artifacts if name.startswith("shap"))


def main() -> None:
    mpl.use("Agg")
    warnings.simplefilter("ignore")
    logging.getLogger("mlflow").setLevel(logging.ERROR)
    mlflow.set_tracking_uri(f"sqlite:///{tempfile.mkdtemp()}/mlflow.db")
    print(f"MLflow {mlflow.__version__}, shap {shap.__version__}\n")
    print("| model | shap | patched | artifacts |\n|---|---|---|---|")
    X, y = make_classification(6_000, 20, n_informative=12, random_state=0)
    table = pd.DataFrame(X, columns=COLUMNS)
    for name, model in MODELS.items():
        model.fit(table, y)
        with mlflow.start_run():
            uri = mlflow.xgboost.log_model(model, name="model").model_uri
        evaluate(uri, table.assign(target=y)[:ROWS], {}, 10)  # imports
        told, artifacts = [], []
        for patch in (nullcontext, fs.patched_shap):
            seen: dict[str, Any] = {}
            with patch():
                artifacts.append(evaluate(uri, table.assign(target=y)[:ROWS], seen))
            told.append(f"{seen['seconds']:.2g} s")
        assert artifacts[0] == artifacts[1], artifacts
        print(f"| {name} | {' | '.join(told)} | {len(artifacts[0])} |", flush=True)


if __name__ == "__main__":
    main()
