"""Models of models that are no sums of trees, and rows that the members of a sum read differently."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.feature_selection import VarianceThreshold
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import fouriershap as fs
from fouriershap._rows.rules import MIXED
from sum_models import TWO, X, Y, boosted, fitted, forest, forest_classifier, light

# What is no sum is said to be none by TreeExplainer, and fitted by Explainer.

REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "median": (lambda: AdaBoostRegressor(n_estimators=3, random_state=0).fit(X, Y), "weighted median"),
    "mean of sigmoids": (
        lambda: VotingClassifier(
            [("a", forest_classifier()), ("b", boosted("XGBClassifier"))], voting="soft"
        ).fit(X, TWO),
        "XGBClassifier predicts a sigmoid of a sum of trees",
    ),
    "mean of exponentials": (
        lambda: VotingRegressor([("a", forest()), ("b", light(objective="poisson"))]).fit(X, np.exp(Y / 3)),
        "LGBMRegressor predicts an exponential",
    ),
    "stacked trees": (
        lambda: StackingRegressor([("a", forest())], final_estimator=forest(), cv=2).fit(X, Y),
        "last step is a RandomForestRegressor",
    ),
    "columns beside a stack": (
        lambda: StackingRegressor([("a", forest())], passthrough=True, cv=2).fit(X, Y),
        "passthrough=True",
    ),
    "stacked names": (
        lambda: StackingClassifier([("a", forest_classifier())], stack_method="predict", cv=2).fit(X, TWO),
        "the classes that its members name",
    ),
    "several calibrations": (
        lambda: CalibratedClassifierCV(forest_classifier(), cv=2).fit(X, TWO),
        "the mean of 2 models",
    ),
    "a pipeline inside": (
        lambda: VotingRegressor([("a", make_pipeline(PCA(2), forest())), ("b", forest())]).fit(X, Y),
        "trees behind steps through which they cannot be read",
    ),
    "another model inside": (
        lambda: VotingRegressor([("a", LinearRegression()), ("b", forest())]).fit(X, Y),
        "has a LinearRegression for a member, which is not a tree model",
    ),
    "different readings of missing": (
        lambda: VotingRegressor([("a", boosted(missing=0.5)), ("b", forest())]).fit(X, Y),
        r"0.5.*counts as missing",
    ),
    "a forest that votes": (
        lambda: AdaBoostClassifier(forest_classifier(), n_estimators=2).fit(X, TWO),
        "members vote",
    ),
}


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_sum_is_fitted_with_one_warning(name: str) -> None:
    make, why = REFUSED[name]
    model = make()
    with pytest.raises(fs.UnsupportedModelError, match=rf"(?s){why}.*fs\.Explainer\(model, background\)"):
        fs.TreeExplainer(model, X[:20])
    bits = (X[:30] > 0).astype(float)  # few levels: asked about all of them, which is quick
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", fs.FourierShapWarning)
        explainer = fs.Explainer(model, bits)
    ours = [w for w in caught if issubclass(w.category, fs.FourierShapWarning)]
    assert [w.category for w in ours] == [fs.ModelWarning] and ours[0].filename == __file__
    assert explainer.kind == "black box" and "explained as a black box" in str(ours[0].message)
    total = explainer.shap_values(bits[:5]).sum(axis=1) + explainer.expected_value
    np.testing.assert_allclose(total, explainer.predict(bits[:5]), atol=1e-6)


def test_what_cannot_be_fitted_either_is_refused() -> None:
    hard = VotingClassifier([("a", forest_classifier())]).fit(X, TWO)
    with pytest.raises(fs.UnsupportedModelError, match="voting='hard'"):
        fs.Explainer(hard, X)
    median = REFUSED["median"][0]()
    with pytest.raises(fs.UnsupportedModelError, match=r"median.*background"):
        fs.Explainer(median)
    with pytest.raises(fs.UnsupportedModelError, match=r"median.*precision"):
        fs.Explainer(median, X, precision="double")


def test_sums_of_no_trees_are_plain_black_boxes() -> None:
    model = VotingRegressor([("a", LinearRegression()), ("b", LinearRegression())]).fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", fs.ModelWarning)
        assert fs.Explainer(model, (X[:30] > 0).astype(float)).fit is not None
    with pytest.raises(fs.InputError, match="VotingRegressor that is not fitted"):
        fs.Explainer(VotingRegressor([("a", forest())]), X)


def test_rows_that_members_would_read_differently() -> None:
    explainer = fs.Explainer(fitted("voting over four libraries"), X[:20])
    assert fs.read_model(fitted("voting over four libraries")).rules.casting == MIXED
    with pytest.raises(fs.InputError, match=r"sparse.*0 or missing"):
        explainer.shap_values(scipy.sparse.csr_matrix(X))
    whole = np.full((2, 4), 2**24 + 1)
    for given_rows in (whole, pd.DataFrame(whole)):
        with pytest.raises(fs.InputError, match=r"16777217.*different ways"):
            explainer.shap_values(given_rows)
    assert explainer.shap_values(whole.astype(float)).shape == (2, 4)


UNTESTED: dict[str, Callable[[int], Any]] = {
    "text": lambda n: ["x", "y"] * (n // 2),
    "dates": lambda n: pd.date_range("2020", periods=n),
    "None": lambda n: [None] * n,
    "missing": lambda n: np.full(n, np.nan),
    "float32": lambda n: np.zeros(n, np.float32),
    "large integers": lambda n: np.full(n, 10**17),
}


@pytest.mark.parametrize("kind", UNTESTED)
def test_columns_that_steps_drop_may_hold_anything(kind: str) -> None:
    data = pd.DataFrame({"a": X[:, 0], "z": UNTESTED[kind](len(X)), "b": X[:, 1]})
    steps = make_column_transformer((StandardScaler(), ["a", "b"]))
    model = VotingRegressor([("v", make_pipeline(steps, forest()))]).fit(data, Y)
    explainer = fs.TreeExplainer(model, data[:20])
    values = explainer.shap_values(data)
    np.testing.assert_allclose(values.sum(axis=1) + explainer.expected_value, model.predict(data), atol=1e-5)
    assert not values[:, 1].any()
    assert np.array_equal(explainer.shap_values(data.to_numpy(dtype=object)), values)
    renamed = data.rename(columns={"z": "other"})
    with pytest.raises(fs.InputError, match="other"):
        explainer.shap_values(renamed)


def test_small_integers_beside_single_precision_become_single() -> None:
    data = pd.DataFrame({"a": (10 * X[:, 0]).astype(np.int16), "z": np.zeros(len(X), np.float32)})
    model = VotingRegressor([("v", make_pipeline(StandardScaler(), forest()))]).fit(data, Y)
    with pytest.raises(fs.InputError, match="float32"):
        fs.TreeExplainer(model, data)
    assert fs.TreeExplainer(model, data.astype({"a": np.int32})).checked


@pytest.mark.parametrize("outer", [lambda m: m, lambda m: make_pipeline(MinMaxScaler(), m)])
def test_single_precision_before_steps_is_fitted(outer: Callable[[Any], Any]) -> None:
    bits = (X > 0).astype(np.float32)  # few levels: asked about all of them, which is quick
    model = outer(VotingRegressor([("v", make_pipeline(StandardScaler(), forest()))])).fit(bits, Y)
    with pytest.raises(fs.InputError, match=r"float32.*Give float64"):
        fs.TreeExplainer(model, bits[:30])
    with pytest.warns(fs.ModelWarning, match=r"background has float32.*explained as a black box") as caught:
        explainer = fs.Explainer(model, bits[:30])
    assert len(caught) == 1 and explainer.kind == "black box"
    np.testing.assert_allclose(explainer.predict(bits[:5]), model.predict(bits[:5]), atol=1e-5)
    assert fs.Explainer(model, bits[:30].astype(float)).kind == "trees"


def test_integers_before_steps() -> None:
    whole = np.random.default_rng(0).integers(1_600_000_000, 1_600_000_300, (200, 2))
    times = pd.DataFrame(whole, columns=["t", "u"])
    late = (whole[:, 0] > 1_600_000_151) + 0.5 * (whole[:, 1] > 1_600_000_077)
    model = VotingRegressor([("v", make_pipeline(StandardScaler(), forest()))]).fit(times, late)
    for given_rows in (whole, times):
        explainer = fs.TreeExplainer(model, given_rows[:20])
        total = explainer.shap_values(given_rows).sum(axis=1) + explainer.expected_value
        np.testing.assert_allclose(total, model.predict(times), atol=1e-5)
        with pytest.raises(fs.InputError, match="different ways"):
            explainer.shap_values(given_rows * 0 + 2**53 + 1)
    light_too = VotingRegressor([("v", make_pipeline(StandardScaler(), forest())), ("l", light())])
    for model in (light_too, VotingRegressor([("v", make_pipeline(VarianceThreshold(), light()))])):
        with pytest.raises(fs.InputError, match=r"integer 1600.*may round in different ways"):
            fs.TreeExplainer(model.fit(times, late), times)
