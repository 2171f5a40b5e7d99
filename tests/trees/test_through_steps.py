"""Sums whose members sit in Pipelines: their trees are read on the columns that enter the steps, to the last bit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    BaggingRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, OneHotEncoder, RobustScaler, StandardScaler
from xgboost import XGBRegressor

import fouriershap as fs
from shap_oracle import assert_within, brute_force, with_outputs

RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(200, 4)), 1)
Y = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2])
GAPS = np.where(RNG.random(X.shape) < 0.1, np.nan, X)


def forest():
    return RandomForestRegressor(6, max_depth=5, random_state=0)


def mean(*members):
    return VotingRegressor([(str(k), member) for k, member in enumerate(members)])


def behind(*steps):
    return make_pipeline(*steps, forest())


MODELS = {
    "scaled": (mean(behind(StandardScaler()), GradientBoostingRegressor(n_estimators=5)), X),
    "clipped": (mean(behind(MinMaxScaler((-2, 3), clip=True)), behind(RobustScaler())), X),
    "selected": (mean(behind(SelectKBest(f_regression, k=2)), forest()), X),
    "filled": (
        mean(
            behind(SimpleImputer(add_indicator=True), StandardScaler()),
            HistGradientBoostingRegressor(max_iter=5),
        ),
        GAPS,
    ),
    "in parts": (
        mean(behind(make_column_transformer((MaxAbsScaler(), [2, 0]), (StandardScaler(), [1, 2])))),
        X,
    ),
    "another library": (mean(make_pipeline(StandardScaler(), XGBRegressor(n_estimators=4)), forest()), X),
    "bags": (BaggingRegressor(behind(StandardScaler()), 3, max_features=0.6, random_state=0), X),
    "stacked": (StackingRegressor([("a", behind(MaxAbsScaler())), ("b", forest())], Ridge(), cv=2), X),
}


def at_thresholds(ensemble, rows, n=2000):
    """Rows with a value at a threshold, just below or just above it."""
    nodes = RNG.choice(np.flatnonzero((ensemble.feature >= 0) & np.isfinite(ensemble.threshold)), n)
    beside = RNG.choice([-np.inf, np.inf], n)
    value = np.where(
        RNG.random(n) < 0.3,
        ensemble.threshold[nodes],
        np.nextafter(ensemble.threshold[nodes], beside),
    )
    made = rows[RNG.integers(0, len(rows), n)]
    made[np.arange(n), ensemble.feature[nodes]] = value
    return made


@pytest.mark.parametrize("name", MODELS)
def test_values_of_the_whole(name):
    model, rows = MODELS[name]
    model = model.fit(rows, Y)
    explainer = fs.Explainer(model, rows[:15], precision="double")
    assert (
        isinstance(explainer.representation, fs.TreeEnsemble)
        and explainer.checked
        and not explainer.has_pipeline
    )
    want, _ = brute_force(model, rows[30:34], rows[:15], output=lambda m, Z: m.predict(Z)[:, None])
    assert_within(with_outputs(explainer.shap_values(rows[30:34])), want, 1e-6)
    tied = at_thresholds(explainer.representation, rows)
    np.testing.assert_allclose(
        fs.read_model(model).predict(tied)[:, 0], model.predict(tied), rtol=1e-6, atol=1e-6
    )


def test_class_probabilities_and_frames():
    frame = pd.DataFrame(X, columns=list("abcd"))
    inside = make_pipeline(StandardScaler(), RandomForestClassifier(5, max_depth=4, random_state=0))
    plain = RandomForestClassifier(5, max_depth=4, random_state=1)
    model = VotingClassifier([("a", inside), ("b", plain)], voting="soft").fit(
        frame, np.digitize(Y, [-0.5, 0.5])
    )
    explainer = fs.Explainer(model, frame[:20])
    assert explainer.checked and explainer.feature_names == ("a", "b", "c", "d")
    total = explainer.shap_values(frame).sum(axis=1) + explainer.expected_value
    np.testing.assert_allclose(total, model.predict_proba(frame), atol=1e-6)
    with pytest.raises(fs.InputError, match="'b'"):
        explainer.shap_values(frame.rename(columns={"b": "wrong"}))


def test_one_column():
    model = mean(behind(StandardScaler()), forest()).fit(X[:, :1], Y)
    values = fs.Explainer(model, X[:20, :1]).shap_values(X[:, :1])
    np.testing.assert_allclose(
        values[:, 0], model.predict(X[:, :1]) - model.predict(X[:20, :1]).mean(), atol=1e-6
    )


def test_rows_that_steps_would_round_otherwise():
    explainer = fs.Explainer(mean(behind(StandardScaler()), forest()).fit(X, Y), X[:20])
    frame = pd.DataFrame(X).astype({1: "float32"})
    for rows in (X.astype(np.float32), frame):
        with pytest.raises(fs.InputError, match="Give float64"):
            explainer.shap_values(rows)
    with pytest.raises(fs.InputError, match="missing value in row 3"):
        broken = X[:5].copy()
        broken[3, 1] = np.nan
        # scikit-learn's forests take missing values since 1.4, gradient boosting never does
        boosted = GradientBoostingRegressor(n_estimators=3)
        fs.Explainer(mean(make_pipeline(StandardScaler(), boosted), boosted).fit(X, Y), X).shap_values(broken)


def test_encoders_of_numbers_are_refused():
    coded = np.round(X[:, :2])
    model = mean(behind(OneHotEncoder(handle_unknown="ignore")), forest()).fit(coded, Y)
    with pytest.raises(fs.UnsupportedModelError, match="an encoder gives numbers to labels"):
        fs.TreeExplainer(model, coded)


@pytest.mark.parametrize("options", [{}, {"add_indicator": True}])
def test_numbers_that_stand_for_missing_values_are_refused(options):
    """They do not keep the order of numbers, and a background without them would not show it."""
    rows = np.where(np.isnan(GAPS), -999.0, GAPS)
    imputer = SimpleImputer(missing_values=-999.0, strategy="constant", fill_value=5.0, **options)
    model = mean(behind(imputer, StandardScaler())).fit(rows, Y)
    with pytest.raises(fs.UnsupportedModelError, match="an imputer takes a number for a missing value"):
        fs.TreeExplainer(model, rows[(rows != -999.0).all(axis=1)])
