"""Partial dependence against scikit-learn's brute force and the definition: numbers, labels, groups, Pipelines."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.inspection import PartialDependenceDisplay
from sklearn.inspection import partial_dependence as by_sklearn
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVR

import fouriershap as fs
from fouriershap.integrations.sklearn import partial_dependence_display

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 4)).round(2)
X[:, 3] = RNG.integers(0, 4, 150)
Y = X[:, 0] * X[:, 1] + np.sin(X[:, 2]) + X[:, 3]


@pytest.mark.parametrize(
    "model",
    [
        HistGradientBoostingRegressor(max_iter=20, min_samples_leaf=5),
        RandomForestRegressor(8, random_state=0),
        LinearRegression(),
        SVR(),
        MLPRegressor(hidden_layer_sizes=(5,), activation="logistic", max_iter=20, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_curves_are_those_of_scikit_learn(model: Any) -> None:
    model.fit(X, Y)
    explainer = fs.Explainer(model, X)
    found = explainer.partial_dependence([0, 3, (1, 2), (3, 0)], X, individual=True, grid_resolution=15)
    for curve, features in zip(found.curves, ([0], [3], [1, 2], [3, 0]), strict=True):
        want = by_sklearn(model, X, features, method="brute", kind="both", grid_resolution=15)
        for mine, theirs in zip(curve.grid, want["grid_values"], strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-12)
        np.testing.assert_allclose(curve.values[..., 0], want["average"][0], atol=1e-6)
        if len(features) == 1:
            assert curve.individual is not None
            np.testing.assert_allclose(curve.individual[..., 0], want["individual"][0], atol=1e-6)
    assert found.base[0] == pytest.approx(model.predict(X).mean(), abs=1e-6)


def test_without_a_background_the_curve_is_that_of_recursion() -> None:
    model = RandomForestRegressor(8, random_state=0).fit(X, Y)
    explainer = fs.TreeExplainer(model)
    with pytest.raises(fs.InputError, match="give X="):
        explainer.partial_dependence(0)
    for features in ([1], [0, 2]):
        want = by_sklearn(model, X, features, method="recursion", grid_resolution=7)["average"][0]
        wanted = features[0] if len(features) == 1 else tuple(features)
        found = explainer.partial_dependence(wanted, X, grid_resolution=7).curves[0].values[..., 0]
        np.testing.assert_allclose(found, want, atol=1e-9)


@pytest.mark.parametrize("exact", [False, True])
def test_probabilities_are_averaged_themselves(exact: bool) -> None:
    model = GradientBoostingClassifier(n_estimators=10, random_state=0).fit(X, Y > 0)
    explainer = fs.TreeExplainer(model, X[:40], output="probability", exact=exact)
    found = explainer.partial_dependence([0, (0, 3)], X, grid_resolution=6)
    for curve in found.curves:
        flat = [grid.ravel() for grid in np.meshgrid(*curve.grid, indexing="ij")]
        for point, mine in zip(np.stack(flat, axis=1), curve.values.reshape(-1), strict=True):
            hybrids = X[:40].copy()
            hybrids[:, list(curve.columns)] = point
            assert mine == pytest.approx(model.predict_proba(hybrids)[:, 1].mean(), abs=1e-9)


def test_several_outputs_and_the_frame() -> None:
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(X, np.digitize(Y, [0, 2]))
    explainer = fs.TreeExplainer(model, X)
    found = explainer.partial_dependence([0, (1, 3)], grid={0: [-1.0, 0.5], 1: [0.0], 3: [1, 2]})
    want = by_sklearn(model, X, [0], method="brute", custom_values={0: np.array([-1.0, 0.5])})
    np.testing.assert_allclose(found.curves[0].values.T, want["average"], atol=1e-9)
    frame = found.frame()
    assert len(frame) == 3 * (2 + 2)
    assert list(frame.columns) == ["feature", "value", "feature_2", "value_2", "output", "dependence"]
    last = frame.iloc[-1]
    assert (last.value, last.value_2, last.dependence) == (0.0, 2.0, found.curves[1].values[0, 1, 2])
    assert "1 x 2 points" in repr(found)
    assert '"dependence"' in found.to_json()


def table(n: int = 120) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"age": rng.integers(20, 60, n), "city": rng.choice(["Rome", "Oslo", "Bonn"], n)})
    frame["income"] = rng.normal(size=n).round(1)
    frame.loc[::7, "income"] = np.nan
    return frame


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_input_columns_of_a_pipeline_with_labels_and_missing_values(library: str) -> None:
    frame = table()
    y = frame.age / 10 + (frame.city == "Oslo") * frame.income.fillna(2)
    steps = make_column_transformer(
        (OneHotEncoder(), ["city"]), (StandardScaler(), ["age"]), remainder="passthrough"
    )
    model = make_pipeline(steps, HistGradientBoostingRegressor(max_iter=20, min_samples_leaf=5)).fit(frame, y)
    explainer = fs.Explainer(model, frame, groups="input")
    rows: Any = frame if library == "pandas" else pl.from_pandas(frame)
    given = {"income": [-1.0, 0.0, np.nan], "age": [25.5, 40]}
    if library == "polars":
        given["income"] = [-1.0, 0.0]
    found = explainer.partial_dependence(["city", "income", ("age", "city")], rows, grid=given)
    cities = ["Bonn", "Oslo", "Rome"]
    assert found.curves[0].grid[0].tolist() == cities

    def mean(**values: Any) -> float:
        return float(model.predict(frame.assign(**values)).mean())

    np.testing.assert_allclose(found.curves[0].values[:, 0], [mean(city=c) for c in cities], atol=1e-6)
    want = [mean(income=value) for value in given["income"]]
    np.testing.assert_allclose(found.curves[1].values[:, 0], want, atol=1e-6)
    both = [[mean(age=age, city=c) for c in cities] for age in given["age"]]
    np.testing.assert_allclose(found.curves[2].values[..., 0], both, atol=1e-6)
    assert "Oslo" in list(found.frame()["value"])


def test_groups_move_together_and_their_columns_not_alone() -> None:
    hot = np.eye(3)[RNG.integers(0, 3, 150)]
    rows = np.column_stack([X[:, 0], hot])
    model = RandomForestRegressor(5, random_state=0).fit(rows, X[:, 0] * hot[:, 1] + hot[:, 2])
    names = ["size", "red", "green", "blue"]
    explainer = fs.TreeExplainer(
        model, rows, feature_names=names, groups={"colour": ["red", "green", "blue"], "size": ["size"]}
    )
    curve = explainer.partial_dependence("colour").curves[0]
    assert len(curve.values) == 3
    want = [model.predict(np.column_stack([X[:, 0], np.tile(each, (150, 1))])).mean() for each in np.eye(3)]
    assert sorted(curve.values[:, 0].tolist()) == pytest.approx(sorted(want))
    with pytest.raises(fs.InputError, match="belongs to the group 'colour'"):
        explainer.partial_dependence("red")
    assert len(explainer.partial_dependence()) == 1  # the columns that are alone
    single = fs.TreeExplainer(
        model, rows, feature_names=names, groups={"area": ["size"], "colour": names[1:]}
    )
    with pytest.raises(fs.InputError, match="pair of different ones"):
        single.partial_dependence(("size", "area"))
    whole = fs.TreeExplainer(model, rows, groups=["all"] * 4)
    assert [curve.name for curve in whole.partial_dependence().curves] == ["all"]


def test_features_may_be_the_columns_of_a_frame() -> None:
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"])
    explainer = fs.Explainer(LinearRegression().fit(frame, X[:, 0]), frame)
    for features in (frame.columns, pd.Series(["a", "b"]), np.array(["a", "b"])):
        assert [curve.name for curve in explainer.partial_dependence(features).curves] == ["a", "b"]
    assert explainer.partial_dependence(np.array([["a", "b"]])).curves[0].name == "a x b"


def test_black_boxes_are_fitted_first() -> None:
    explainer = fs.BlackBoxExplainer(lambda rows: rows[:, 0] + 2 * rows[:, 1] * rows[:, 3], X)
    curve = explainer.partial_dependence(1, grid=[-1.0, 1.0]).curves[0]
    assert curve.values[:, 0] == pytest.approx(
        [X[:, 0].mean() - 2 * X[:, 3].mean(), X[:, 0].mean() + 2 * X[:, 3].mean()], abs=0.5
    )


def test_plots() -> None:
    frame = table()
    model = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["city"]), remainder="passthrough"),
        HistGradientBoostingRegressor(max_iter=5),
    ).fit(frame, frame.age)
    explainer = fs.Explainer(model, frame, groups="input")
    wanted = ["age", "city", ("age", "income"), ("city", "age")]
    found = explainer.partial_dependence(wanted, frame, grid_resolution=8, individual=True)
    for k, (x, y) in enumerate([("age", "mean output"), ("city", "mean output"), wanted[2], wanted[3]]):
        ax = found.plot(k)
        assert (ax.get_xlabel(), ax.get_ylabel()) == (x, y)
    single = explainer.partial_dependence(
        ["age", ("age", "income")], frame, grid_resolution=8, individual=True
    )
    display = partial_dependence_display(single, subsample=10, random_state=0)
    assert isinstance(display, PartialDependenceDisplay)
    display.plot()
    assert len(display.lines_[0, 0]) == 11  # 10 rows and the mean
    np.testing.assert_allclose(
        display.lines_[0, 0][-1].get_ydata(), single.curves[0].values[:, 0], atol=1e-12
    )
    partial_dependence_display(explainer.partial_dependence(["city"], frame)).plot()
    plt.close("all")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"features": "height"}, "features"),
        ({"features": (0, 1, 2)}, "one feature, or a pair"),
        ({"features": (0, 0)}, "pair of different ones"),
        ({"features": []}, "features is empty"),
        ({"features": 0, "grid": {1: [0.0]}}, "not among features"),
        ({"features": [0, 1], "grid": [0.0]}, "give a dict"),
        ({"features": 0, "grid": []}, "give a list of values"),
        ({"features": 0, "grid": ["high"]}, "give numbers"),
        ({"features": 0, "grid": 3.0}, "give a list of values"),
        ({"features": 0, "grid": np.array(3.0)}, "give a list of values"),
        ({"features": 0, "grid_resolution": 1}, "grid_resolution"),
        ({"features": 0, "percentiles": (0.9, 0.1)}, "percentiles"),
    ],
)
def test_errors_name_the_argument(arguments: dict[str, Any], message: str) -> None:
    explainer = fs.Explainer(LinearRegression().fit(X, Y), X)
    with pytest.raises(fs.InputError, match=message):
        explainer.partial_dependence(**arguments)


def test_labels_must_occur_and_losses_are_refused() -> None:
    frame = table()
    model = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["city"]), remainder="passthrough"),
        HistGradientBoostingRegressor(max_iter=5),
    ).fit(frame, frame.age)
    with pytest.raises(fs.InputError, match="which no row of X has"):
        fs.Explainer(model, frame, groups="input").partial_dependence("city", frame, grid=["Lima"])
    classifier = GradientBoostingClassifier(n_estimators=3).fit(X, Y > 0)
    explainer = fs.TreeExplainer(classifier, X, output="log_loss")
    with pytest.raises(fs.InputError, match="log_loss"):
        explainer.partial_dependence(0)
