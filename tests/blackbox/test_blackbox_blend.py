"""Trees and waves together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingRegressor

import fouriershap as fs
import oracles
from fitted_models import explain_fitted
from fouriershap._blackbox.surrogates import SumSurrogate, TreeSurrogate
from fouriershap._trees.arithmetic import side_by_side


def grown(rng, n_trees):
    codes = rng.normal(size=(80, 3))
    y = codes[:, 0] * codes[:, 1] + rng.normal(size=80)
    model = HistGradientBoostingRegressor(max_iter=n_trees, max_leaf_nodes=4, min_samples_leaf=1)
    return fs.read_model(model.fit(codes, y)).trees


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), weights=st.tuples(st.floats(0, 2), st.floats(-1, 1)))
def test_a_weighted_sum_predicts_and_explains_the_weighted_sum(seed, weights):
    rng = np.random.default_rng(seed)
    parts = [side_by_side([grown(rng, n), grown(rng, 2)]) for n in (1, 3)]
    surrogates = [TreeSurrogate(part, np.arange(3, dtype=np.int32)) for part in parts]
    total = SumSurrogate(tuple(s.scaled(w) for s, w in zip(surrogates, weights, strict=True)))
    rows, background = rng.normal(size=(2, 7, 3))

    def mixed(of):
        return sum(weight * of(part) for part, weight in zip(parts, weights, strict=True))

    np.testing.assert_allclose(total.predict(rows), mixed(lambda e: e.predict(rows)), atol=1e-9)

    def values(ensemble):
        return fs.TreeExplainer(ensemble, background, precision="double").shap_values(rows)

    found = total.compile(background, None).shap_values(rows)
    np.testing.assert_allclose(
        found, mixed(values), atol=1e-5
    )  # tables of surrogates are in single precision


def predict(rows):
    return np.sin(rows @ np.linspace(0.1, 0.6, 7)) + (rows[:, 0] == 2) * (rows[:, 1] == 1)


@pytest.fixture(scope="module")
def levels():
    return np.random.default_rng(0).integers(0, 3, size=(400, 7)).astype(float)


@pytest.fixture(scope="module")
def blended(levels):
    return explain_fitted(predict, levels[:20], data=levels, method="blend", budget=700, random_state=0)


def test_the_blend_is_no_worse_than_its_parts(levels, blended):
    lines = {line.name: line for line in blended.fitted.candidates}
    assert blended.fitted.method == "blend" and lines["blend"].chosen
    assert lines["blend"].r2 >= max(lines["trees"].r2, lines["waves"].r2) > 0.9
    assert blended.fidelity.r2 > lines["blend"].r2 - 0.03
    again = explain_fitted(predict, levels[:20], data=levels, budget=700, random_state=0)
    assert again.fitted.method in lines and {line.name for line in again.fitted.candidates} <= set(lines)


def test_the_values_of_a_blend_are_those_of_its_sum(levels, blended):
    rows = levels[30:34]
    trees, waves = blended.representation
    values = blended.shap_values(rows)
    np.testing.assert_allclose(blended.predict(rows), trees.predict(rows)[:, 0] + waves(rows), atol=1e-6)
    truth = oracles.shap_values(blended.predict, rows, levels[:20])[..., 0]
    np.testing.assert_allclose(values, truth, atol=1e-5)
    matrices = blended.shap_interaction_values(rows)
    worth = oracles.coalition_values(blended.predict, rows[0], levels[:20], np.arange(7))
    np.testing.assert_allclose(matrices[0], oracles.interaction_matrix(worth, 7)[..., 0], atol=1e-5)


def test_files_keep_a_blend(levels, blended, tmp_path):
    blended.save(tmp_path / "blend.fshap", interactions=True)
    again = fs.load(tmp_path / "blend.fshap")
    np.testing.assert_array_equal(again.shap_values(levels[:9]), blended.shap_values(levels[:9]))
    np.testing.assert_allclose(again.predict(levels[:9]), blended.predict(levels[:9]))
    assert again.fidelity == blended.fidelity
    other, same = again.with_background(levels[50:60]), blended.with_background(levels[50:60])
    np.testing.assert_array_equal(other.shap_values(levels[:3]), same.shap_values(levels[:3]))
    assert again.info.kind == "sum"
