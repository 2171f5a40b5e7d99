"""The serving example: right answers, also at the same time; bad rows are answered with the reason."""

import importlib.util
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fastapi.testclient import TestClient

import fouriershap as fs
from models import CASES, classes, numbers

SOURCE = Path(__file__).parent.parent / "examples" / "serving" / "app.py"


@pytest.fixture(scope="module")
def serving():
    spec = importlib.util.spec_from_file_location("serving_app", SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def served(serving, tmp_path_factory):
    """A model with numbers and categories: client, explainer, rows as a frame and as JSON."""
    model, X, _ = CASES["lightgbm"]["frame"]()
    path = tmp_path_factory.mktemp("serving") / "model.fshap"
    fs.Explainer(model, X).save(path)
    rows = X.astype({"colour": object, "size": object})
    rows = rows.astype(object).where(rows.notna(), None)
    return TestClient(serving.create_app(path)), fs.load(path), X, rows.to_dict("records")


def contributions(answer, names):
    found = {reason["feature"]: reason["contribution"] for reason in answer["reasons"]}
    return np.array([found[name] for name in names])


def test_answers_are_the_values(served):
    client, explainer, X, rows = served
    shown = client.get("/model").json()
    assert shown["columns"] == list(explainer.feature_names) and shown["explainer"] == "TreeExplainer"
    response = client.post("/explain", json={"rows": rows[:20]})
    assert response.status_code == 200
    body = response.json()
    want = explainer.shap_values(X[:20])
    got = np.array([contributions(answer, explainer.player_names) for answer in body["answers"]])
    np.testing.assert_array_equal(got, want)
    totals = np.array([answer["outputs"][0] for answer in body["answers"]])
    np.testing.assert_allclose(totals, want.sum(axis=1) + explainer.expected_value)
    top = client.post("/explain", json={"rows": rows[:1], "top_k": 2}).json()["answers"][0]["reasons"]
    assert [abs(r["contribution"]) for r in top] == sorted(np.abs(want[0]))[::-1][:2]


def test_requests_at_the_same_time(served):
    client, explainer, X, rows = served
    want = explainer.shap_values(X)

    def ask(i):
        answer = client.post("/explain", json={"rows": [rows[i]]}).json()["answers"][0]
        return np.array_equal(contributions(answer, explainer.player_names), want[i])

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(120)))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"a": "much"}, "column 0 holds what is not a number"),
        ({"a": [1]}, "rows"),
        ({"z": 1}, r"unknown columns ['z']"),
        ({"a": ...}, r"row 0 lacks the columns ['a']"),
    ],
)
def test_bad_rows_are_answered_with_the_reason(served, change, reason):
    client, _, _, rows = served
    row = {name: value for name, value in (rows[0] | change).items() if value is not ...}
    response = client.post("/explain", json={"rows": [row]})
    assert response.status_code == 422 and reason in str(response.json()["detail"])


@pytest.mark.parametrize(
    "body", [{}, {"rows": []}, {"rows": [1]}, {"rows": [{}], "top_k": 0}, {"rows": "all"}]
)
def test_bad_questions(served, body):
    assert served[0].post("/explain", json=body).status_code == 422


def test_missing_values_that_a_model_does_not_take(serving, tmp_path):
    from sklearn.ensemble import GradientBoostingClassifier

    X = pd.DataFrame(numbers(), columns=list("abcd"))
    model = GradientBoostingClassifier(n_estimators=3).fit(X, classes(X.to_numpy(), 3))
    explainer = fs.Explainer(model, X)
    explainer.save(tmp_path / "m.fshap")
    client = TestClient(serving.create_app(tmp_path / "m.fshap"))
    row = X.iloc[0].to_dict()
    answer = client.post("/explain", json={"rows": [row]}).json()["answers"][0]
    assert len(answer["outputs"]) == 3 and {r["output"] for r in answer["reasons"]} == {"0", "1", "2"}
    response = client.post("/explain", json={"rows": [row | {"b": None}]})
    assert response.status_code == 422 and "missing value in row 0, column 1" in response.json()["detail"]


def test_spectra_and_files_of_other_things(serving, tmp_path, monkeypatch):
    h = fs.Spectrum([[1, 0], [1, 1]], [1.0, 0.5])
    fs.Explainer(h, [[0, 0]]).save(tmp_path / "h.fshap")
    monkeypatch.setenv("FOURIERSHAP_MODEL", str(tmp_path / "h.fshap"))
    client = TestClient(serving.app)
    row = {"Feature 0": 1, "Feature 1": 1}
    assert client.post("/explain", json={"rows": [row]}).json()["answers"][0]["outputs"] == [-0.5]
    bad = client.post("/explain", json={"rows": [row | {"Feature 0": 2}]})
    assert bad.status_code == 422 and "only 0 and 1" in bad.json()["detail"]
    h.save(tmp_path / "plain.fshap")
    with pytest.raises(TypeError, match="save an explainer"):
        serving.create_app(tmp_path / "plain.fshap")
