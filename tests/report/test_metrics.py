"""Metrics of a page, against scikit-learn's; labels in whatever words they come."""

from __future__ import annotations

from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.svm import LinearSVC

import fouriershap as fs
from fitted_models import explain_fitted
from fouriershap.report._metrics import auc, calibration, measure

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3))
NUMBERS = X[:, 0] * X[:, 1] + RNG.normal(size=200) / 3


def told(explainer: Any, y: Any) -> tuple[dict[str, float], Any]:
    outputs = explainer.predict(X).reshape(len(X), -1)
    actual = measure(explainer, y, outputs)
    return {name: value for name, value, _ in actual.metrics}, actual


def test_numbers() -> None:
    model = LinearRegression().fit(X, NUMBERS)
    found, actual = told(fs.Explainer(model, X), NUMBERS)
    predicted = model.predict(X)
    assert found["R²"] == pytest.approx(metrics.r2_score(NUMBERS, predicted))
    assert found["MAE"] == pytest.approx(metrics.mean_absolute_error(NUMBERS, predicted))
    assert found["RMSE"] == pytest.approx(metrics.mean_squared_error(NUMBERS, predicted) ** 0.5)
    assert found["Mean error"] == pytest.approx(0, abs=1e-12)
    assert actual.labels is None
    constant, _ = told(fs.Explainer(model, X), np.zeros(200))
    assert "R²" not in constant


def test_a_log_link_is_judged_by_what_the_model_predicts() -> None:
    y = RNG.poisson(np.exp(X[:, 0] / 2))
    model = xgboost.XGBRegressor(n_estimators=10, objective="count:poisson", n_jobs=1).fit(X, y)
    found, _ = told(fs.Explainer(model, X[:20]), y)
    assert found["MAE"] == pytest.approx(metrics.mean_absolute_error(y, model.predict(X)), rel=1e-4)


TWO = {
    "texts": lambda good: np.where(good, "good", "bad"),
    "booleans": lambda good: good,
    "whole numbers": lambda good: good.astype(int),
    "floats": lambda good: good.astype(float),
    "a series": lambda good: pd.Series(np.where(good, "good", "bad")),
    "a column": lambda good: good[:, None].astype(int),
    "other numbers": lambda good: np.where(good, 7, 3),
}


@pytest.mark.parametrize("kind", TWO)
@pytest.mark.parametrize("output", ["raw", "probability"])
def test_two_classes_however_they_are_written(kind: str, output: str) -> None:
    good = NUMBERS > 0
    y = TWO[kind](good)
    model = lightgbm.LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1).fit(X, np.ravel(y))
    found, actual = told(fs.Explainer(model, X[:20], output=output), y)
    p = model.predict_proba(X)[:, 1]
    assert found["AUC"] == pytest.approx(metrics.roc_auc_score(good, p))
    assert found["Log loss"] == pytest.approx(metrics.log_loss(good, p), rel=1e-5)
    assert found["Accuracy"] == pytest.approx(metrics.accuracy_score(good, p >= 0.5))
    assert found["Brier score"] == pytest.approx(metrics.brier_score_loss(good, p), rel=1e-5)
    np.testing.assert_array_equal(actual.values, good)
    assert actual.calibration.shape == (1, 10, 5)


def test_numbers_stand_for_named_classes_and_one_class_alone_is_fine() -> None:
    good = NUMBERS > 0
    model = lightgbm.LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1).fit(
        X, np.where(good, "good", "bad")
    )
    explainer = fs.Explainer(model, X[:20])
    _, actual = told(explainer, good.astype(int))
    np.testing.assert_array_equal(actual.values, good)
    assert actual.labels == ("0", "good")
    for only, positive in (("good", 1.0), ("bad", 0.0), (1, 1.0), (0, 0.0)):
        found, actual = told(explainer, np.full(200, only))
        assert (actual.values == positive).all()
        assert "AUC" not in found


def test_three_classes() -> None:
    y = np.array(["x", "y", "z"])[np.digitize(NUMBERS, [-0.3, 0.3])]
    for model in (
        RandomForestClassifier(5, max_depth=3, random_state=0).fit(X, y),
        lightgbm.LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1).fit(X, y),
        LogisticRegression().fit(X, y),
    ):
        found, actual = told(fs.Explainer(model, X[:20]), y)
        p = model.predict_proba(X)
        assert found["AUC"] == pytest.approx(metrics.roc_auc_score(y, p, multi_class="ovr"))
        assert found["Log loss"] == pytest.approx(metrics.log_loss(y, p), rel=1e-5)
        assert found["Accuracy"] == pytest.approx(metrics.accuracy_score(y, model.predict(X)))
        assert actual.labels == ("x", "y", "z")
        by_number, _ = told(fs.Explainer(model, X[:20]), np.searchsorted(["x", "y", "z"], y))
        assert by_number == found


def test_functions() -> None:
    good = NUMBERS > 0
    model = LogisticRegression().fit(X, good)
    explainer = explain_fitted(lambda rows: model.predict_proba(rows)[:, 1], X, budget=300, random_state=0)
    found, _ = told(explainer, good.astype(int))
    assert found["AUC"] == pytest.approx(metrics.roc_auc_score(good, model.predict_proba(X)[:, 1]), abs=0.05)
    assert "R²" in told(explainer, NUMBERS)[0]


def test_labels_that_do_not_fit() -> None:
    good = NUMBERS > 0
    explainer = fs.Explainer(
        lightgbm.LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1).fit(X, np.where(good, "good", "bad")),
        X[:20],
    )
    for y, message in (
        (np.full(200, "ugly"), None),
        (np.where(good, "good", np.where(X[:, 2] > 0, "bad", "ugly")), "y holds 'bad', 'good', 'ugly'"),
        (NUMBERS, "y holds"),
        (good[:5], "y has shape"),
        (np.where(good, "good", None), "y has missing entries"),
    ):
        if message is None:
            continue
        with pytest.raises(fs.InputError, match=message):
            told(explainer, y)
    machine = fs.Explainer(LinearSVC().fit(X, good), X[:20])
    with pytest.raises(fs.InputError, match="unknown how the outputs"):
        told(machine, good)
    with pytest.raises(fs.InputError, match="infinite"):
        told(fs.Explainer(LinearRegression().fit(X, NUMBERS), X), np.full(200, np.inf))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=2, max_size=30))
def test_auc_and_calibration_with_ties(rows: list[tuple[int, bool]]) -> None:
    score = np.array([s for s, _ in rows]) / 4
    positive = np.array([p for _, p in rows])
    bins = calibration(score, positive)
    there = bins[~np.isnan(bins[:, 0])]
    assert there[:, 4].sum() == len(rows)
    assert (there[:, 4] @ there[:, 1]) == pytest.approx(positive.sum())
    assert ((there[:, 2] <= there[:, 1] + 1e-12) & (there[:, 1] <= there[:, 3] + 1e-12)).all()
    if 0 < positive.sum() < len(rows):
        assert auc(score, positive) == pytest.approx(metrics.roc_auc_score(positive, score))
