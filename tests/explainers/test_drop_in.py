"""What users of shap.TreeExplainer write, as they write it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import catboost
import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn.linear_model import LinearRegression

import fouriershap as fs
from models import CASES, XGBOOST_KEEPS_LABELS, classes, numbers, target
from shap_oracle import assert_within

shap = pytest.importorskip("shap")

X = numbers()
NAMES = list("abcd")
FRAME = pd.DataFrame(X, columns=NAMES)


def booster(**parameters: Any) -> Any:
    matrix = xgboost.DMatrix(FRAME, label=target(X))
    return xgboost.train({"max_depth": 3, "nthread": 1} | parameters, matrix, 6)


def three_classes() -> Any:
    return CASES["xgboost"]["3 classes"]().model


@pytest.mark.parametrize("name", ["regressor", "3 classes", *(["frame"] if XGBOOST_KEEPS_LABELS else [])])
def test_one_row(name: str) -> None:
    model, rows, _ = CASES["xgboost"][name]()
    explainer = fs.TreeExplainer(model, rows[:20])
    all_values, all_pairs = explainer.shap_values(rows[:2]), explainer.shap_interaction_values(rows[:2])
    one = rows.iloc[1] if isinstance(rows, pd.DataFrame) else rows[1]
    np.testing.assert_array_equal(explainer.shap_values(one), all_values[1])
    np.testing.assert_array_equal(explainer.shap_interaction_values(one), all_pairs[1])
    explanation = explainer(one)
    np.testing.assert_array_equal(explanation.values, all_values[1])
    assert np.shape(explanation.base_values) == all_values.shape[2:] and len(explanation.data) == 4
    if name == "regressor":
        np.testing.assert_array_equal(explainer.shap_values(one.tolist()), all_values[1])
        assert fs.TreeExplainer(model).shap_values(one).shape == (4,)
        with pytest.raises(fs.InputError, match="3 columns"):
            explainer.shap_values(one[:3])


def test_one_row_of_one_column_and_as_a_series() -> None:
    from sklearn.tree import DecisionTreeRegressor

    model = DecisionTreeRegressor(max_depth=2).fit(X[:, :1], target(X))
    assert fs.TreeExplainer(model, X[:9, :1]).shap_values(X[0, :1]).shape == (1,)
    named = fs.TreeExplainer(DecisionTreeRegressor(max_depth=2).fit(FRAME, target(X)), FRAME)
    np.testing.assert_array_equal(named.shap_values(FRAME.iloc[4]), named.shap_values(FRAME[4:5])[0])
    np.testing.assert_array_equal(named.shap_values(FRAME.iloc[4][::-1]), named.shap_values(FRAME[4:5])[0])


def test_matrices_of_xgboost() -> None:
    model = booster()
    missing = FRAME.mask(FRAME > 1.5).astype(np.float32)
    missing.iloc[:3, :2] = 0.0  # stored, and no missing value
    matrix = xgboost.DMatrix(missing)
    explainer = fs.TreeExplainer(model, matrix)
    assert explainer.checked and explainer.feature_names == tuple(NAMES)
    want = fs.TreeExplainer(model, missing)
    np.testing.assert_array_equal(explainer.shap_values(matrix), want.shap_values(missing))
    by_path = fs.TreeExplainer(model)
    theirs = model.predict(matrix, pred_contribs=True)
    assert_within(by_path.shap_values(matrix), theirs[:, :-1].astype(float), 1e-5)
    with pytest.raises(fs.InputError, match="column 'e' where"):
        explainer.shap_values(xgboost.DMatrix(missing.rename(columns={"d": "e"})))
    without = xgboost.DMatrix(missing.to_numpy())
    np.testing.assert_array_equal(explainer.shap_values(without), want.shap_values(missing))
    labels = pd.DataFrame({"a": X[:, 0], "c": pd.Categorical(classes(X, 3))})
    with pytest.raises(fs.InputError, match="X is a DMatrix with categories"):
        explainer.shap_values(xgboost.DMatrix(labels, enable_categorical=True))


def test_pools_of_catboost() -> None:
    model, rows, _ = CASES["catboost"]["SymmetricTree"]()
    explainer = fs.TreeExplainer(model, catboost.Pool(rows[:40]))
    want = fs.TreeExplainer(model, rows[:40]).shap_values(rows)
    np.testing.assert_array_equal(explainer.shap_values(catboost.Pool(rows)), want)
    named, frame, _ = CASES["catboost"]["frame"]()
    with pytest.raises(fs.InputError, match="Pool that does not give its rows back"):
        fs.TreeExplainer(named).shap_values(catboost.Pool(frame, cat_features=["colour", "size"]))


def test_interactions_in_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    for model in (booster(), three_classes()):
        rows = FRAME if isinstance(model, xgboost.Booster) else X
        explainer = fs.TreeExplainer(model, rows[:20])
        explanation = explainer(rows[:5], interactions=True)
        np.testing.assert_array_equal(explanation.values, explainer.shap_interaction_values(rows[:5]))
        total = explanation.values.sum(axis=(1, 2)) + explanation.base_values
        np.testing.assert_allclose(total, explainer.predict(rows[:5]), atol=1e-5)
        assert (
            explainer(rows[:5], check_additivity=False).values.shape == explainer.shap_values(rows[:5]).shape
        )
    changed = replace(explainer.engine.model.coded.ensemble, base=np.full(3, 5.0))
    monkeypatch.setattr(type(explainer.engine), "predict", lambda self, rows, n_jobs: changed.predict(rows))
    with pytest.raises(fs.AdditivityError):
        explainer(X[:5], interactions=True, check_additivity=True)
    assert explainer(X[:5], interactions=True).shape == (5, 4, 4, 3)


def test_names_that_shap_uses() -> None:
    model = CASES["xgboost"]["classifier"]().model
    ours = fs.TreeExplainer(model, data=X[:20], model_output="probability").shap_values(X[:5])
    same = fs.TreeExplainer(model, X[:20], output="probability").shap_values(X[:5])
    np.testing.assert_array_equal(ours, same)
    theirs = shap.TreeExplainer(model, data=X[:20], model_output="probability").shap_values(X[:5])
    assert_within(ours, theirs, 1e-5)
    assert fs.TreeExplainer(model, data=X).feature_perturbation == "interventional"
    assert fs.TreeExplainer(model).feature_perturbation == "tree_path_dependent"
    with pytest.raises(fs.InputError, match="background and data are the same"):
        fs.TreeExplainer(model, X, data=X)
    with pytest.raises(fs.InputError, match="output and model_output are the same"):
        fs.TreeExplainer(model, X, output="probability", model_output="raw")
    with pytest.raises(fs.InputError, match="output is 'odds'"):
        fs.TreeExplainer(model, X, model_output="odds")


@pytest.mark.parametrize(
    ("library", "name"),
    [("xgboost", "3 classes"), ("xgboost", "3 classes in one tree"), ("sklearn", "ExtraTreesClassifier")],
)
def test_one_output(library: str, name: str, tmp_path: Any) -> None:
    model, rows, _ = CASES[library][name]()
    all_of_them = fs.TreeExplainer(model, rows[:20], precision="double")
    for k in range(3):
        explainer = fs.TreeExplainer(model, rows[:20], output=k, precision="double")
        assert explainer.checked and explainer.representation.n_outputs == 1
        assert_within(explainer.shap_values(rows[:9]), all_of_them.shap_values(rows[:9])[..., k], 1e-12)
        assert np.isclose(explainer.expected_value, all_of_them.expected_value[k])
        if all_of_them.representation.has_cover:  # XGBoost 2.1 counts no rows in trees of several outputs
            by_path = fs.TreeExplainer(model, output=k).shap_values(rows[:4])
            np.testing.assert_allclose(
                by_path, fs.TreeExplainer(model).shap_values(rows[:4])[..., k], atol=1e-6
            )
    explainer.save(tmp_path / "one.fshap")
    assert np.array_equal(
        fs.load(tmp_path / "one.fshap").shap_values(rows[:9]), explainer.shap_values(rows[:9])
    )
    for wrong in (3, -1):
        with pytest.raises(fs.InputError, match=r"3 outputs: give an integer from 0 to 2"):
            fs.TreeExplainer(model, rows, output=wrong)


def test_the_first_trees() -> None:
    model = booster()
    some = fs.TreeExplainer(model[:2], FRAME[:20])
    assert some.representation.n_trees == 2 and some.checked
    total = some.shap_values(FRAME[:9]).sum(axis=1) + some.expected_value
    margin = model.predict(xgboost.DMatrix(FRAME[:9]), iteration_range=(0, 2))
    np.testing.assert_allclose(total, margin, rtol=1e-5)


@pytest.mark.parametrize("kind", ["products", "black box", "spectrum"])
def test_every_explainer_takes_one_row(kind: str) -> None:
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 2, (40, 4)).astype(float)
    explainer: Any
    if kind == "products":
        explainer = fs.Explainer(LinearRegression().fit(rows, rows[:, 0] - rows[:, 2]), rows)
    elif kind == "black box":
        explainer = fs.Explainer(lambda x: x[:, 0] * x[:, 1], rows, random_state=0)
    else:
        explainer = fs.Explainer(fs.Spectrum([[1, 0, 0, 0], [0, 1, 1, 0]], [1.0, 0.5]), rows)
    alone = explainer.shap_values(rows[3])
    np.testing.assert_array_equal(alone, explainer.shap_values(rows[3:4])[0])
    np.testing.assert_array_equal(explainer(rows[3]).values, alone)
    pairs = explainer.shap_interaction_values(rows[3])
    np.testing.assert_array_equal(pairs, explainer.shap_interaction_values(rows[3:4])[0])
