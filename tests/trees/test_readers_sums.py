"""scikit-learn's models of models that are sums of trees: by brute force against what they themselves predict."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.ensemble import (
    VotingRegressor,
)

import fouriershap as fs
from fouriershap import read_model
from fouriershap._libraries import registry
from reader_checks import assert_well_formed, rows, values_beside_thresholds
from shap_oracle import assert_within, brute_force, with_outputs
from sum_models import MISSING, MODELS, X, Y, boosted, fitted, forest, raw


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_rows_beside_thresholds(name: str, data: st.DataObject) -> None:
    ensemble = read_model(fitted(name))
    more = [np.nan] if MODELS[name][1] else []
    pools = [
        [v for v in values_beside_thresholds(ensemble, f) if abs(v) < 1e30] + more
        for f in range(ensemble.n_features)
    ]
    drawn = data.draw(rows(pools, X))
    want = raw(name, drawn)
    scale = max(1.0, np.abs(want).max())
    rtol = 1e-6 if ensemble.computes_in == np.float32 else 1e-9
    np.testing.assert_allclose(ensemble.predict(drawn), want, rtol=rtol, atol=rtol * scale)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("name", MODELS)
def test_values_by_brute_force(name: str) -> None:
    model = fitted(name)
    given_rows = (MISSING if MODELS[name][1] else X)[:, : model.n_features_in_]
    explainer = fs.Explainer(model, given_rows[:15], precision="double")
    assert explainer.checked
    want, expected = brute_force(model, given_rows[40:44], given_rows[:15], output=lambda m, Z: raw(name, Z))
    assert_within(with_outputs(explainer.shap_values(given_rows[40:44])), want, 3e-6)
    np.testing.assert_allclose(np.atleast_1d(explainer.expected_value), expected, rtol=1e-5, atol=1e-6)
    assert_well_formed(read_model(model))


@pytest.mark.parametrize("name", MODELS)
def test_the_model_check_sees_a_wrong_copy(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read = registry._read_opened

    def misread(opened: Any) -> Any:
        reading = read(opened)
        return reading.replace(base=reading.trees.base + 0.01 * np.arange(1, reading.n_outputs + 1))

    monkeypatch.setattr(registry, "_read_opened", misread)
    model = fitted(name)
    for background in (X[:20, : model.n_features_in_], None):
        with pytest.raises(fs.UnsupportedModelError, match="disagrees with scikit-learn"):
            fs.Explainer(model, background)


def test_names_of_outputs_and_columns() -> None:
    assert read_model(fitted("soft voting")).output_names == ("high", "low", "mid")
    names = read_model(fitted("several classes of several targets")).output_names
    assert names == ("target 0: high", "target 0: low", "target 0: mid", "target 1: 0", "target 1: 1")
    assert read_model(fitted("several targets")).output_names == ("target 0", "target 1")
    frame = pd.DataFrame(X, columns=list("abcd"))
    explainer = fs.Explainer(VotingRegressor([("a", forest()), ("b", boosted())]).fit(frame, Y), frame)
    assert explainer.feature_names == tuple("abcd") and explainer.checked
    mixed = explainer.shap_values(frame[["b", "a", "c", "d"]])
    np.testing.assert_array_equal(mixed, explainer.shap_values(frame))


def test_missing_values_are_refused_where_the_model_refuses_them() -> None:
    for name in ("AdaBoost", "one against the rest, margins"):
        with pytest.raises(fs.InputError, match="does not accept missing"):
            fs.Explainer(fitted(name), X[:20]).shap_values(MISSING)


def test_probabilities_of_sums() -> None:
    """Links on top of sums: AdaBoost's and Platt's sigmoid, logistic regression on a stack, shares of scores."""
    for name in ("AdaBoost", "calibrated forest", "stacking classes", "one against the rest"):
        model = fitted(name)
        exact = fs.Explainer(model, X[:10], output="probability", exact=True)
        values = with_outputs(exact.shap_values(X[30:33]))
        want, _ = brute_force(model, X[30:33], X[:10], output=lambda m, Z: np.asarray(m.predict_proba(Z)))
        assert_within(values, want[:, :, -values.shape[2] :], 1e-6)
