"""Sums of tree ensembles, by themselves: thresholds, categories, outputs side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    BaggingRegressor,
    ExtraTreesRegressor,
    HistGradientBoostingRegressor,
    StackingClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputRegressor

import fouriershap as fs
from fouriershap import read_model
from fouriershap._base.links import LOGISTIC
from fouriershap._libraries.arithmetic import add, average, map_columns, side_by_side
from models import CASES, coded, coded_target
from sum_models import TWO, X, Y, columns, fitted, forest, forest_classifier, light

FLOAT32_EDGES = [
    0.0,
    1e-45,
    -1e-45,
    1.1754944e-38,
    3.4028235e38,
    -3.4028235e38,
    np.inf,
    -np.inf,
    1.0,
    16777216.0,
]


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.floats(width=32, allow_nan=False) | st.sampled_from(FLOAT32_EDGES), min_size=1, max_size=5)
)
def test_thresholds_of_float32_decide_the_same_in_float64(thresholds: list[float]) -> None:
    narrow = CASES["sklearn"]["DecisionTreeRegressor"]().model
    e = read_model(narrow)
    inner = np.flatnonzero(e.trees.feature >= 0)
    changed = e.trees.threshold.copy()
    changed[inner] = np.resize(np.array(thresholds, dtype=np.float32).astype(float), len(inner))
    e = e.replace(threshold=changed)
    wide = read_model(CASES["sklearn"]["HistGradientBoostingRegressor"]().model)
    total = add([e, wide])
    assert total.rules.dtype == total.trees.dtype == np.float64
    near = [np.float32(t) for t in thresholds]
    with np.errstate(over="ignore"):
        near += [np.nextafter(t, np.float32(end)) for t in near for end in ("inf", "-inf")]
    middles = [float(a) / 2 + float(b) / 2 for a in near for b in near if np.isfinite(a) and np.isfinite(b)]
    values = np.array(
        [*map(float, near), *middles, *np.nextafter(middles, np.inf), *np.nextafter(middles, -np.inf)]
    )
    with np.errstate(over="ignore"):
        taken = values[np.isfinite(values.astype(np.float32))]  # scikit-learn refuses others
    drawn = np.random.default_rng(0).choice(taken, (200, 4))
    np.testing.assert_allclose(total.predict(drawn), e.predict(drawn) + wide.predict(drawn), rtol=1e-12)
    with pytest.raises(fs.InputError, match="inf in row 0, column 1"):
        total.predict([[0.0, np.inf, 0.0, 0.0]])


def test_categories_of_different_members() -> None:
    """CatBoost numbers labels as they come up in splits, scikit-learn as they come in a sample: one vocabulary."""
    _, frame, _ = CASES["catboost"]["frame"]()
    parts = [read_model(CASES["catboost"][name]().model) for name in ("frame", "frame Lossguide")]
    assert parts[0].rules.vocabularies != parts[1].rules.vocabularies
    total = add(parts)
    want = sum(part.predict(frame) for part in parts)
    np.testing.assert_allclose(total.predict(frame), want, rtol=1e-12)

    Z = coded(True)
    hist = HistGradientBoostingRegressor(max_iter=3, categorical_features=[3], min_samples_leaf=3)
    model = BaggingRegressor(hist, 4, max_samples=25, random_state=0).fit(Z, coded_target(Z))
    ensemble = read_model(model)
    np.testing.assert_allclose(ensemble.predict(Z)[:, 0], model.predict(Z), rtol=1e-9)
    assert fs.Explainer(model, Z[:30]).checked


def test_sums_that_there_are_none_of() -> None:
    numbers_only = read_model(fitted("several targets"))
    labels = read_model(CASES["lightgbm"]["categories"]().model)
    one = read_model(forest().fit(X, Y))
    with pytest.raises(fs.UnsupportedModelError, match="numbers of outputs"):
        add([numbers_only, one])
    with pytest.raises(fs.UnsupportedModelError, match="numbers of features"):
        add([one, read_model(forest().fit(X[:, :2], Y))])
    with pytest.raises(fs.UnsupportedModelError, match=r"precision|a category to others"):
        add([labels, one])
    zeros = read_model(CASES["lightgbm"]["zero_as_missing"]().model)
    plain = read_model(CASES["lightgbm"]["regressor"]().model)
    with pytest.raises(fs.UnsupportedModelError, match="zero counts as missing"):
        add([zeros, plain])
    same = average([zeros, zeros])
    np.testing.assert_allclose(same.predict(X), zeros.predict(X))
    wider = map_columns(one, [3, 1, 0, 2], 6)
    np.testing.assert_array_equal(wider.predict(np.c_[X[:, [2, 1, 3, 0]], X[:, :2]]), one.predict(X))
    both = side_by_side([one, numbers_only, one])
    np.testing.assert_allclose(
        both.predict(X), np.hstack([one.predict(X), numbers_only.predict(X), one.predict(X)]), rtol=1e-6
    )


def test_files_keep_sums(tmp_path: Any) -> None:
    explainer = fs.Explainer(fitted("voting over four libraries"), X[:20])
    explainer.save(tmp_path / "sum.fshap")
    loaded = fs.load(tmp_path / "sum.fshap")
    assert np.array_equal(loaded.shap_values(X[:5]), explainer.compile().shap_values(X[:5]))


def test_extra_trees_inside() -> None:
    model = BaggingRegressor(ExtraTreesRegressor(3, max_depth=3), 2, random_state=0).fit(X, Y)
    np.testing.assert_allclose(read_model(model).predict(X)[:, 0], model.predict(X))
    logistic = StackingClassifier(
        [("a", forest_classifier())], final_estimator=LogisticRegression(), cv=2
    ).fit(X, TWO)
    assert read_model(logistic).link is LOGISTIC


def test_log_links_side_by_side() -> None:
    """Margins of several targets; the model itself predicts their exponentials."""
    counts = np.exp(columns() / 3).round() + 1
    model = MultiOutputRegressor(light(objective="poisson")).fit(X, counts)
    explainer = fs.Explainer(model, X[:20], output="response")
    assert explainer.checked
    total = explainer.shap_values(X[:5]).sum(axis=1) + explainer.expected_value
    np.testing.assert_allclose(total, model.predict(X[:5]), rtol=1e-9)
    wrapped = TransformedTargetRegressor(
        MultiOutputRegressor(light()), func=np.log, inverse_func=np.exp, check_inverse=False
    ).fit(X, counts)
    explainer = fs.Explainer(wrapped, X[:20], output="response")
    assert explainer.checked
    total = explainer.shap_values(X[:5]).sum(axis=1) + explainer.expected_value
    np.testing.assert_allclose(total, wrapped.predict(X[:5]), rtol=1e-9)
