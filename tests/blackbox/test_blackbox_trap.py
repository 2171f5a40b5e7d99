"""The trap of the uniform cube: faithful there, useless for SHAP values of one-hot rows; `auto` stays out of it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

import fouriershap as fs
from fitted_models import explain_fitted

N_TERMS = 20


def r_squared(truth, values):
    return 1 - ((values - truth) ** 2).sum() / ((truth - truth.mean()) ** 2).sum()


@pytest.fixture(scope="module")
def trap():
    """A forest on three one-hot groups; few combinations of levels have most of its variance on the cube."""
    rng = np.random.default_rng(0)
    level = rng.integers(0, 12, size=(3000, 3))
    effects = [0.6 * rng.normal(size=12) for _ in range(3)]
    X = np.concatenate([np.eye(12)[level[:, g]] for g in range(3)], axis=1)
    y = np.exp(sum(effects[g][level[:, g]] for g in range(3)))
    forest = RandomForestRegressor(20, max_depth=5, random_state=0).fit(X, y)
    truth = fs.TreeExplainer(forest, X[:30], precision="double").shap_values(X[30:90])
    reading = fs.read_model(forest)
    return X, lambda rows: reading.predict(rows)[:, 0], fs.tree_spectrum(forest), truth


def test_the_largest_terms_are_right_on_the_cube_and_wrong_on_the_data(trap):
    X, predict, exact, truth = trap
    bits = X.astype(np.uint8)
    by_size = exact.prune(max_terms=N_TERMS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fs.FidelityWarning)
        by_queries = fs.sparse_walsh_hadamard(
            lambda rows: predict(rows.astype(float)), 36, N_TERMS, budget=3000, random_state=0
        )
    for spectrum in (by_size, by_queries):
        assert 1 - (exact - spectrum).energy / exact.variance > 0.85
        assert r_squared(truth, fs.spectra.shap_values(spectrum, bits[30:90], bits[:30])) < 0.5


def test_hybrids_make_the_same_terms_useful(trap):
    X, predict, _, truth = trap
    explainer = explain_fitted(
        predict,
        X[:30],
        data=X[30:],
        method="swht",
        n_terms=N_TERMS,
        budget=4000,
        random_state=0,
    )
    assert len(explainer.representation) <= N_TERMS + 1
    assert r_squared(truth, explainer.shap_values(X[30:90])) > 0.9


@pytest.mark.parametrize("budget", [1000, 14_000])
def test_auto_does_not_fall_into_it(trap, budget):
    """With few queries it does not look at the cube; with many it finds the whole spectrum, and does not warn."""
    X, predict, _, truth = trap
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if budget == 1000:  # of which none can be spared to judge values
            warnings.simplefilter("ignore", fs.FidelityWarning)
        explainer = explain_fitted(predict, X[:30], data=X[30:], budget=budget, random_state=0)
    assert explainer.fidelity.n_queries <= budget
    names = {line.name for line in explainer.fitted.candidates}
    assert names == {"swht"} if budget == 14_000 else "swht" not in names
    assert [explainer.fitted.method] == [line.name for line in explainer.fitted.candidates if line.chosen]
    assert r_squared(truth, explainer.shap_values(X[30:90])) > (0.99999 if budget == 14_000 else 0.95)
