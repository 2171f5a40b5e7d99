"""MLflow with a store of its own in a folder: what is logged comes back, and says what the explainer said."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import fouriershap as fs
from fitted_models import explain_fitted
from fouriershap.integrations import mlflow as integration

mlflow = pytest.importorskip("mlflow", reason="MLflow is not installed: pip install mlflow-skinny")
pytest.importorskip("sqlalchemy", reason="a local store of MLflow needs sqlalchemy and alembic")
pytest.importorskip("alembic", reason="a local store of MLflow needs sqlalchemy and alembic")

pytestmark = [
    pytest.mark.xdist_group("mlflow"),  # one store
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),  # of MLflow itself
]


@pytest.fixture(scope="module", autouse=True)
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("mlflow")
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    mlflow.create_experiment("explainers", artifact_location=(folder / "artifacts").as_uri())
    mlflow.set_experiment("explainers")
    yield folder
    mlflow.set_tracking_uri(before)


def costs(n: int = 300) -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.integers(20, 80, n), "bmi": rng.normal(27, 4, n).round(1)})
    X["smoker"] = pd.Categorical(rng.choice(["no", "yes"], n))
    y = 100 * X.age + 50 * X.bmi + 9000 * (X.smoker == "yes")
    return X, HistGradientBoostingRegressor(max_iter=10, categorical_features="from_dtype").fit(X, y)


@pytest.fixture(scope="module")
def logged(store: Path) -> tuple[pd.DataFrame, fs.Explainer, Any]:
    X, model = costs()
    explainer = fs.TreeExplainer(model, X)
    with mlflow.start_run():
        given = {"model_uri": "models:/cost/1", "registered_model_name": "cost-explainer"}
        info = integration.log_explainer(explainer, X=X, metadata={"team": "risk"}, **given)
        assert mlflow.active_run() is not None  # the caller's run goes on
    return X, explainer, info


def test_it_comes_back_as_an_explainer(logged: Any) -> None:
    X, explainer, info = logged
    for uri in (info.model_uri, f"runs:/{info.run_id}/explainer", "models:/cost-explainer/1"):
        loaded = integration.load_explainer(uri)
        assert isinstance(loaded, fs.Explainer) and loaded.kind == "trees"
        np.testing.assert_array_equal(loaded.shap_values(X), explainer.shap_values(X))


def test_it_comes_back_as_a_pyfunc(logged: Any) -> None:
    X, explainer, info = logged
    model = mlflow.pyfunc.load_model(info.model_uri)
    rows = X.sample(7, random_state=0)
    values = model.predict(rows)
    assert list(values.columns) == ["age", "bmi", "smoker", "base_value"]
    np.testing.assert_allclose(values.to_numpy()[:, :3], explainer.shap_values(rows))
    reasons = model.predict(rows, params={"layout": "top_k", "top_k": 2})
    expected = next(explainer.explain_batches([rows], layout="top_k", top_k=2))
    pd.testing.assert_frame_equal(reasons, expected)
    shown = model.predict(rows.astype({"smoker": str}), params={"layout": "prediction"})
    np.testing.assert_allclose(shown, explainer.predict(rows))
    with pytest.raises(fs.InputError, match="layout is 'everything'"):
        model.predict(rows, params={"layout": "everything"})
    with pytest.raises(mlflow.MlflowException, match="missing inputs"):
        model.predict(rows.drop(columns="bmi"))


def test_the_model_says_what_it_takes_and_needs(logged: Any) -> None:
    _, _, info = logged
    inputs, outputs = info.signature.inputs, info.signature.outputs
    assert inputs.input_names() == ["age", "bmi", "smoker"]
    assert [str(kind) for kind in inputs.input_types()[:2]] == ["DataType.long", "DataType.double"]
    assert outputs.input_names() == ["age", "bmi", "smoker", "base_value"]
    assert {param.name: param.default for param in info.signature.params} == {"layout": "columns", "top_k": 3}
    folder = Path(mlflow.artifacts.download_artifacts(info.model_uri))
    assert f"fouriershap=={fs.__version__}" in (folder / "requirements.txt").read_text().split()
    assert info.metadata["team"] == "risk"
    assert info.metadata["fouriershap"]["explains"] == "models:/cost/1"
    assert not list(folder.rglob("*.pkl"))  # nothing that has to be trusted


def test_report_and_importance_are_artifacts_of_the_run(logged: Any) -> None:
    X, explainer, info = logged
    listed = {file.path for file in mlflow.artifacts.list_artifacts(run_id=info.run_id)}
    assert {"explainer.report.html", "explainer.importance.json"} <= listed
    answer = json.loads(mlflow.artifacts.load_text(f"runs:/{info.run_id}/explainer.importance.json"))
    assert answer == json.loads(explainer.importance(X).to_json())
    assert "<html" in mlflow.artifacts.load_text(f"runs:/{info.run_id}/explainer.report.html")[:500]


def test_columns_without_names_several_outputs_and_no_run(store: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    model = RandomForestClassifier(3, max_depth=3, random_state=0).fit(X, rng.integers(3, size=60))
    explainer = fs.TreeExplainer(model, X)
    info = integration.log_explainer(explainer, "unnamed", X=X, report=False, importance=False)
    assert mlflow.active_run() is None
    assert not mlflow.artifacts.list_artifacts(run_id=info.run_id)
    found = mlflow.pyfunc.load_model(info.model_uri).predict(X[:4])
    want = explainer.shap_values(X[:4])
    for output in range(3):
        columns = [f"Feature {player}__{output}" for player in range(3)]
        np.testing.assert_allclose(found[columns], want[:, :, output])


def test_a_black_box_is_logged_without_its_function(store: Path) -> None:
    X = pd.DataFrame(np.random.default_rng(0).integers(0, 2, size=(40, 3)), columns=["a", "b", "c"])
    explainer = explain_fitted(lambda rows: rows["a"] * rows["b"] + rows["c"], X, method="enumerate")
    info = integration.log_explainer(explainer, "black-box")
    loaded = integration.load_explainer(info.model_uri)
    np.testing.assert_allclose(loaded.shap_values(X), explainer.shap_values(X))
    values = mlflow.pyfunc.load_model(info.model_uri).predict(X.astype(float))
    np.testing.assert_allclose(values[["a", "b", "c"]], explainer.shap_values(X))


def people(n: int = 200) -> tuple[pd.DataFrame, Any]:
    """Raw columns, among them labels, missing numbers and a name that the Pipeline drops; and the Pipeline."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"name": [f"row {i}" for i in range(n)], "age": rng.integers(20, 70, n)})
    X["city"] = rng.choice(["Bern", "Basel", "Zug"], n)
    X["income"] = np.where(rng.random(n) < 0.2, np.nan, rng.normal(70, 9, n).round(1))
    prepare = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["city"]),
        (make_pipeline(SimpleImputer(), StandardScaler()), ["age", "income"]),
    )
    y = X["age"] * (X["city"] == "Zug") + X["income"].fillna(50)
    return X, make_pipeline(prepare, RandomForestRegressor(5, max_depth=4, random_state=0)).fit(X, y)


@pytest.mark.parametrize("with_rows", [True, False])
@pytest.mark.parametrize("groups", [None, "input"])
def test_a_pipeline_is_logged_with_its_steps(store: Path, with_rows: bool, groups: str | None) -> None:
    X, pipeline = people()
    explainer = fs.Explainer(pipeline, X, groups=groups).compile()
    info = integration.log_explainer(explainer, "pipeline", X=X if with_rows else None)
    assert info.signature.inputs.input_names() == list(X.columns)
    kinds = [str(kind) for kind in info.signature.inputs.input_types()]
    assert kinds == (["Any", "DataType.long", "Any", "DataType.double"] if with_rows else ["Any"] * 4)
    assert info.signature.outputs.input_names() == [*explainer.player_names, "base_value"]
    expected = explainer.shap_values(X)
    loaded = integration.load_explainer(info.model_uri)
    assert loaded.has_pipeline
    np.testing.assert_array_equal(loaded.shap_values(X), expected)
    model, rows = mlflow.pyfunc.load_model(info.model_uri), X[::-1][["income", "city", "age", "name"]]
    values = model.predict(rows)
    np.testing.assert_allclose(values[list(explainer.player_names)], expected[::-1], rtol=1e-12)
    shown = model.predict(rows, params={"layout": "prediction"})
    np.testing.assert_allclose(shown, pipeline.predict(X)[::-1], rtol=1e-6)
    with pytest.raises(mlflow.MlflowException, match=r"missing inputs.*city"):
        model.predict(rows.drop(columns="city"))
    listed = {file.path for file in mlflow.artifacts.list_artifacts(run_id=info.run_id)}
    assert listed == ({"pipeline.report.html", "pipeline.importance.json"} if with_rows else set())


def test_a_pipeline_takes_what_it_took_before_it_was_logged(store: Path) -> None:
    """Labels that nobody knows, whole numbers in place of fractions, and an explainer that was loaded."""
    X, pipeline = people()
    info = integration.log_explainer(fs.Explainer(pipeline, X), "first")
    again = integration.log_explainer(integration.load_explainer(info.model_uri), "again")
    rows = X.assign(city="Chur", income=X["age"], age=X["age"] + 0.5)[:9]
    for uri in (info.model_uri, again.model_uri):
        shown = mlflow.pyfunc.load_model(uri).predict(rows, params={"layout": "prediction"})
        np.testing.assert_allclose(shown, pipeline.predict(rows), rtol=1e-6)


def test_a_pipeline_without_names(store: Path) -> None:
    """Columns that enter it are more than those that enter the model."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 9, size=(80, 4))
    select = SelectKBest(f_regression, k=2)
    pipeline = make_pipeline(select, StandardScaler(), RandomForestRegressor(3, random_state=0))
    pipeline.fit(X, X[:, 1] * X[:, 2])
    explainer = fs.Explainer(pipeline, X)
    given = {"report": False, "importance": False}
    for name, rows, n_columns in [("with", X, 4), ("without", None, 0)]:
        info = integration.log_explainer(explainer, name, X=rows, **given)
        assert len(info.signature.inputs or ()) == n_columns
        model = mlflow.pyfunc.load_model(info.model_uri)
        shown = model.predict(X[:5], params={"layout": "prediction"})
        np.testing.assert_allclose(shown, pipeline.predict(X[:5]), rtol=1e-6)
        values = model.predict(pd.DataFrame(X[:5] + 0.0))[list(explainer.player_names)]
        np.testing.assert_allclose(values, explainer.shap_values(X[:5]), rtol=1e-6, atol=1e-9)


def test_what_is_refused(store: Path, tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(40, 2))
    pipeline = make_pipeline(PCA(2), HistGradientBoostingRegressor(max_iter=2)).fit(X, X[:, 0])
    n_runs = len(mlflow.search_runs())
    with (
        pytest.warns(fs.ModelWarning, match="PCA"),
        pytest.raises(fs.InputError, match=r"explains a Pipeline.*give one of the last step"),
    ):
        integration.log_explainer(fs.Explainer(pipeline, X), X=X)
    assert len(mlflow.search_runs()) == n_runs  # nothing was logged
    with pytest.raises(fs.InputError, match="explainer is a str"):
        integration.log_explainer("explainer.fshap")  # type: ignore[arg-type]
    with pytest.raises(fs.InputError, match="not an MLflow model"):
        integration.load_explainer(tmp_path)
    mlflow.pyfunc.save_model(str(tmp_path / "other"), loader_module="os", pip_requirements=[])
    with pytest.raises(fs.InputError, match="a model of os instead of an explainer"):
        integration.load_explainer(tmp_path / "other")
