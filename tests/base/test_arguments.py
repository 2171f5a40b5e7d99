"""Arguments that are no such thing: an error of ours that names them, and before anything is paid for."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingRegressor, RandomForestClassifier
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPRegressor

import fouriershap as fs
from fitted_models import explain_fitted

X = np.random.default_rng(0).normal(size=(60, 3))
MODEL = GradientBoostingClassifier(n_estimators=3, random_state=0).fit(X, X[:, 0] > 0)
ARRAY = np.array(["auto", "walk"])
HUGE = 10**400
WRONG_FOR_TREES = {
    "method": ARRAY,
    "precision": ARRAY,
    "feature_perturbation": ARRAY,
    "check": ARRAY,
    "device": ARRAY,
    "index": np.array([1, 2]),
    "output": ARRAY,
    "exact": np.array([True, False]),
    "n_jobs": np.array([1, 2]),
    "memory": HUGE,
    "weights": [HUGE] * 60,
}
WRONG_FOR_BLACK_BOXES = {
    "method": ARRAY,
    "index": ARRAY,
    "tolerance": HUGE,
    "max_queries": HUGE,
    "budget": HUGE,
    "batch_size": HUGE,
    "n_jobs": np.array([1, 2]),
    "weights": [HUGE] * 60,
}


@pytest.mark.parametrize("name", WRONG_FOR_TREES)
def test_arrays_and_huge_numbers_are_named(name):
    with pytest.raises(fs.InputError, match=f"^{name} ") as caught:
        fs.TreeExplainer(MODEL, X, **{name: WRONG_FOR_TREES[name]})
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("name", WRONG_FOR_BLACK_BOXES)
def test_black_boxes_name_them_and_ask_nothing(name):
    refused(name, WRONG_FOR_BLACK_BOXES[name])


@pytest.mark.parametrize("wrong", ["x", -1, np.nan, object()])
def test_random_state_is_checked_before_the_model_is_asked(wrong):
    refused("random_state", wrong)


def refused(name, wrong):
    asked = []

    def predict(rows):
        asked.append(len(rows))
        return rows[:, 0]

    with pytest.raises(fs.InputError, match=f"^{name} "):
        explain_fitted(predict, X, **({"budget": 300, "method": "trees"} | {name: wrong}))
    assert not asked


@pytest.mark.parametrize("wrong", [pytest.param(HUGE, id="huge"), np.array([0.1, 0.2]), "x", -1, np.nan])
def test_tolerance(wrong):
    with pytest.raises(fs.InputError, match=r"^tolerance "):
        fs.TreeExplainer(MODEL, X).shap_values(X, check_additivity=True, tolerance=wrong)


def test_weights_whose_sum_overflows_are_an_error():
    """They would all become zero."""
    with pytest.raises(fs.InputError, match="sum"):
        fs.TreeExplainer(MODEL, X, weights=np.full(60, 1e308))


def test_a_budget_of_memory_that_no_machine_has_is_no_error():
    explainer = fs.TreeExplainer(MODEL, X, memory=2**62, strategy="tables")
    np.testing.assert_allclose(explainer.shap_values(X), fs.TreeExplainer(MODEL, X).shap_values(X), atol=1e-6)


def test_a_loss_needs_labels_and_batches_have_none():
    explainer = fs.TreeExplainer(MODEL, X, output="log_loss")
    for batches in ([X], [pd.DataFrame(X[:0])]):
        with pytest.raises(fs.InputError, match=r"shap_values\(X, y\)"):
            list(explainer.explain_batches(batches))
    with pytest.raises(fs.InputError, match=r"shap_values\(X, y\)"):
        explainer.output_schema()
    for wrong in ("x", HUGE, None):
        with pytest.raises(fs.InputError, match=r"^y "):
            explainer.expected_loss(wrong)
    with pytest.raises(fs.InputError, match=r"^y "):
        explainer.shap_values(X, [HUGE] * 60)


@pytest.mark.parametrize("wrong", [np.array(["columns", "array"]), None, "x"])
def test_what_batches_are_answered_with(wrong):
    with pytest.raises(fs.InputError, match=r"^layout is"):
        fs.TreeExplainer(MODEL, X).explain_batches([X], layout=wrong)


WRONG_CALLS = {
    "misspelt, of a method": (
        lambda e: e.frame(X, top_n=2),
        "argument 'top_n'. Did you mean top_k?",
    ),
    "an output's number": (
        lambda e: fs.Explainer(LinearRegression().fit(X, X), X, output=1),
        "take it from the values, explainer.shap_values(X)[..., 1]",
    ),
    "shap's, of a method": (lambda e: e.shap_values(X, nsamples=100), "here, tolerance=, max_queries= and"),
    "of a method without any": (lambda e: e.importance(X).frame(output=0), "It takes no arguments."),
    "unknown, of a method": (lambda e: e.shap_values(X, fast=True), "'fast'. Known: X, y, check_additivity"),
    "misspelt, of a function": (lambda e: fs.load(pth="a.fshap"), "Did you mean path?"),
    "misspelt, of an analysis": (lambda e: e.importance(X).plot(topk=3), "Did you mean top_k?"),
    "misspelt, of a constructor": (lambda e: fs.TreeExplainer(MODEL, X, chekc=True), "Did you mean check?"),
    "missing": (lambda e: e.shap_values(), "missing 1 required positional argument: 'X'"),
    "too many": (lambda e: e.predict(X, X), "takes 2 positional arguments but 3 were given"),
    "swapped": (lambda e: fs.Explainer(X, MODEL), "model and background are swapped"),
    "swapped, of trees": (
        lambda e: fs.TreeExplainer(pd.DataFrame(X), MODEL),
        "model and background are swapped",
    ),
    "swapped, with a function": (lambda e: explain_fitted(X, MODEL.predict), "are swapped"),
    "a model for rows": (lambda e: e.shap_values(MODEL), "X is GradientBoostingClassifier"),
    "a path of another type": (lambda e: e.save(3), "path is 3; give the path of a file"),
    "no Boolean": (lambda e: e.drift(X, interactions=X), "interactions is <ndarray"),
    "ragged groups": (lambda e: e.cohorts(X, by=[[1, 2], [3]]), "by is not an array"),
    "ids": (lambda e: e.output_schema(ids=1), "ids is 1; give a list of column names"),
}


@pytest.mark.parametrize("case", WRONG_CALLS)
def test_wrong_calls(case: str) -> None:
    call, message = WRONG_CALLS[case]
    with pytest.raises(fs.InputError) as caught:
        call(fs.TreeExplainer(MODEL, X))
    assert message in str(caught.value)


def test_an_error_of_type_inside_a_call_is_not_taken_for_a_wrong_argument() -> None:
    def batches():
        yield X
        raise TypeError("from inside")

    with pytest.raises(TypeError, match="from inside") as caught:
        list(fs.TreeExplainer(MODEL, X).explain_batches(batches()))
    assert not isinstance(caught.value, fs.FourierShapError)


LABELS = {
    "intervals": pd.cut(X[:, 0], [-9, 0, 1, 9]),
    "timestamps": pd.Categorical(pd.to_datetime(["2020-01-01", "2021-01-01", "2022-01-01"] * 20)),
    "dates": pd.Categorical([date(2020 + i % 3, 1, 1) for i in range(60)]),
    "bytes": pd.Categorical([b"a", b"b", b"\xff"] * 20),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_that_files_cannot_keep(kind: str, tmp_path: Path) -> None:
    rows = pd.DataFrame({"a": X[:, 0], "c": LABELS[kind]})
    model = HistGradientBoostingRegressor(max_iter=3, categorical_features=["c"], min_samples_leaf=2)
    explainer = fs.TreeExplainer(model.fit(rows, X[:, 0] + rows["c"].cat.codes), rows)
    assert explainer.shap_values(rows).shape == (60, 2)
    with pytest.raises(fs.InputError, match=r"the label .* a file cannot keep.*astype\(str\)"):
        explainer.save(tmp_path / "e.fshap")
    assert not any(tmp_path.iterdir())


def test_labels_of_classes_for_a_squared_error() -> None:
    model = RandomForestClassifier(3, max_depth=2, random_state=0).fit(X, X[:, 0] > 0)
    explainer = fs.TreeExplainer(model, X)
    with pytest.raises(fs.InputError, match=r"loss='squared_error' compares .* 2 outputs.*loss='log_loss'"):
        explainer.importance(X, X[:, 0] > 0, loss="squared_error")


def test_interaction_matrices_beyond_memory() -> None:
    rows = np.broadcast_to(np.zeros(5000), (10**5, 5000))
    model = LinearRegression().fit(np.eye(5000)[:20], np.arange(20.0))
    with pytest.raises(fs.CapacityError, match=r"GB, more than this machine has.*pairs="):
        fs.ProductExplainer(model, np.zeros((1, 5000))).shap_interaction_values(rows[:20_000])


def test_catboost_with_infinite_borders() -> None:
    catboost = pytest.importorskip("catboost")
    rows = X.copy()
    rows[:20, 0], rows[20:40, 0] = np.inf, -np.inf
    model = catboost.CatBoostRegressor(iterations=3, verbose=0, allow_writing_files=False).fit(rows, X[:, 1])
    with pytest.raises(fs.UnsupportedModelError, match="infinite values in training"):
        fs.TreeExplainer(model, rows)


def test_rows_like_the_background_are_not_called_far_from_it() -> None:
    """A network on columns that are not scaled needs too many sines, for any row."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 2)) * [1.0, 2500.0]
    network = MLPRegressor(hidden_layer_sizes=(4,), activation="tanh", max_iter=5, random_state=0)
    network.fit(rows / [1.0, 2500.0], rows[:, 0])
    said = set()
    for scale in np.geomspace(1.0, 1e5, 40):
        try:
            explainer = fs.ProductExplainer(network, rows[:100] * [1.0, scale / 2500.0])
            explainer.shap_values(rows[100:] * [1.0, scale / 2500.0])
        except fs.InputError as error:
            said.add(str(error).partition(":")[0])
    assert any("cannot be explained" in text for text in said)
    assert not any("far outside" in text for text in said)
