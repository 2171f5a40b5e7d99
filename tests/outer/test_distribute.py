"""Explainers on their way to workers: pickled or by path, opened once, never two versions in one job."""

from __future__ import annotations

import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

import fouriershap as fs
from engines import EXPLAINERS, make_explainer
from fouriershap.integrations import _distribute
from fouriershap.integrations._distribute import make_job
from models import CASES


@pytest.mark.parametrize("which", EXPLAINERS)
def test_what_is_sent_explains_as_its_source(which: str, tmp_path: Path) -> None:
    explainer, X = make_explainer(which)
    # Tables of single precision travel: before they are made, values near 0 differ in their fifth digit.
    expected = next(explainer.compile().explain_batches([X], layout="top_k"))
    path = tmp_path / "explainer.fshap"
    explainer.save(path)
    for source in (explainer, path, str(path)):
        job = pickle.loads(pickle.dumps(make_job(source, None, "top_k", 3, 1)))
        pd.testing.assert_frame_equal(next(job.explain([X])), expected)


def test_an_explainer_itself_can_be_pickled() -> None:
    """Before it is compiled and after."""
    case = CASES["xgboost"]["frame"]()
    explainer = fs.TreeExplainer(case.model, case.X)
    copies = [pickle.loads(pickle.dumps(explainer)), pickle.loads(pickle.dumps(explainer.compile()))]
    for again in copies:
        np.testing.assert_array_equal(again.compile().shap_values(case.X), explainer.shap_values(case.X))


def test_neither_model_nor_background_travel() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50_000, 3))
    model = DecisionTreeRegressor(max_depth=3).fit(X, X[:, 0])
    explainer = fs.TreeExplainer(model, X)
    sent = pickle.dumps(make_job(explainer, None, "columns", 3, 1))
    assert len(sent) < X.nbytes / 20


def test_threads_of_a_worker_open_a_file_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    explainer, X = make_explainer("xgboost")
    path = tmp_path / "explainer.fshap"
    explainer.save(path)
    opened = []
    load = _distribute.load
    monkeypatch.setattr(_distribute, "load", lambda path: opened.append(path) or load(path))
    job = make_job(path, None, "columns", 3, 1)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: next(job.explain([X])), range(8)))
    assert len(opened) == 1
    for answer in answers:
        pd.testing.assert_frame_equal(answer, answers[0])


def test_a_file_that_changes_during_a_job(tmp_path: Path) -> None:
    explainer, X = make_explainer("xgboost")
    other, _ = make_explainer("lightgbm groups")
    path = tmp_path / "explainer.fshap"
    explainer.save(path)
    expected = next(explainer.explain_batches([X]))
    job = make_job(path, None, "columns", 3, 1)
    other.save(path)
    pd.testing.assert_frame_equal(next(job.explain([X])), expected)  # this process has opened it
    _distribute._opened.clear()  # as a worker that starts only now
    with pytest.raises(fs.FileFormatError, match="has changed since the job was made"):
        job.explain([X])
    assert list(next(make_job(path, None, "columns", 3, 1).explain([X]))) == [
        "numbers",
        "labels",
        "base_value",
    ]


def test_files_of_something_else(tmp_path: Path) -> None:
    fs.Spectrum([[1, 0]], [2.0]).save(tmp_path / "h.fshap")
    with pytest.raises(fs.InputError, match="holds a Spectrum; give the file of an explainer"):
        make_job(tmp_path / "h.fshap", None, "columns", 3, 1)
    (tmp_path / "text.fshap").write_text("no explainer")
    with pytest.raises(fs.FileFormatError, match=r"not a \.fshap file"):
        make_job(tmp_path / "text.fshap", None, "columns", 3, 1)


def test_a_pipeline_travels_where_its_steps_are_known() -> None:
    X = np.random.default_rng(0).normal(size=(50, 2))
    pipeline = make_pipeline(StandardScaler(), DecisionTreeRegressor(max_depth=2)).fit(X, X[:, 0])
    explainer = fs.TreeExplainer(pipeline, X)
    job = pickle.loads(pickle.dumps(make_job(explainer, None, "columns", 3, 1)))
    rows = pd.DataFrame(X, columns=list(explainer.feature_names))
    found = next(job.explain([rows]))[list(explainer.player_names)]
    np.testing.assert_allclose(found, explainer.shap_values(X), atol=1e-6)
    turned = make_pipeline(PCA(2), DecisionTreeRegressor(max_depth=2)).fit(X, X[:, 0])
    with (
        pytest.warns(fs.ModelWarning, match="PCA"),
        pytest.raises(fs.InputError, match="step that cannot be saved"),
    ):
        make_job(fs.TreeExplainer(turned, X), None, "columns", 3, 1)


@pytest.mark.parametrize(
    ("engine", "module"), [("spark", "pyspark.sql.types"), ("dask", "dask"), ("ray", "ray")]
)
def test_an_engine_that_is_missing(engine: str, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib

    explain: Any = importlib.import_module(f"fouriershap.integrations.{engine}").explain
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(fs.MissingDependencyError, match=rf"pip install 'fouriershap\[{engine}\]'"):
        explain(None, None)
