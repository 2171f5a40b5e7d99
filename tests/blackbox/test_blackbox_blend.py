"""Trees and kernel together."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingRegressor

import fouriershap as fs
from fouriershap._blackbox import surrogates as _ensembles
from fouriershap._blackbox.candidates import conjugate as _conjugate
from fouriershap._blackbox.candidates import kernel_ridge as _kernel
from fouriershap._trees.readers import read_model


def grown(rng, n_trees):
    codes = rng.normal(size=(80, 3))
    y = codes[:, 0] * codes[:, 1] + rng.normal(size=80)
    model = HistGradientBoostingRegressor(max_iter=n_trees, max_leaf_nodes=4, min_samples_leaf=1)
    return read_model(model.fit(codes, y))


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), weights=st.tuples(st.floats(0, 2), st.floats(-1, 1)))
def test_a_weighted_sum_predicts_and_explains_the_weighted_sum(seed, weights):
    rng = np.random.default_rng(seed)
    parts = [_ensembles.stack_outputs([grown(rng, n), grown(rng, 2)]) for n in (1, 3)]
    total = _ensembles.weighted_sum(parts, weights)
    rows, background = rng.normal(size=(2, 7, 3))

    def mixed(of):
        return sum(weight * of(part) for part, weight in zip(parts, weights, strict=True))

    np.testing.assert_allclose(total.predict(rows), mixed(lambda e: e.predict(rows)), atol=1e-9)

    def values(ensemble):
        return fs.TreeExplainer(ensemble, background, precision="double").shap_values(rows)

    np.testing.assert_allclose(values(total), mixed(values), atol=1e-8)


def test_the_blend_is_no_worse_than_its_parts():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(400, 7)).astype(float)

    def predict(rows):
        return np.sin(rows @ np.linspace(0.1, 0.6, 7)) + (rows[:, 0] == 2) * (rows[:, 1] == 1)

    explainer = fs.BlackBoxExplainer(predict, X[:20], data=X, method="blend", budget=700, random_state=0)
    lines = {line.name: line for line in explainer.candidates}
    assert explainer.method == "blend" and lines["blend"].chosen
    assert lines["blend"].r2 >= max(lines["trees"].r2, lines["kernel"].r2) > 0.9
    assert explainer.fidelity.r2 > lines["blend"].r2 - 0.03
    phi = explainer.shap_values(X[:5])
    assert phi.shape == (5, 7)
    again = fs.BlackBoxExplainer(predict, X[:20], data=X, method="auto", budget=700, random_state=0)
    assert again.method in lines and {line.name for line in again.candidates} == set(lines)


def test_rows_in_every_fit_are_in_the_fit_of_each_fold():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, size=(60, 4)).astype(float)
    y = codes[:, :1] - codes[:, 1:2] * codes[:, 2:3]
    y -= y.mean()
    one_hot = _kernel.make_one_hot(codes)
    points, theta, fold = one_hot(codes), np.full(4, 0.4), np.arange(60) % 6 - 1
    k = _kernel.gram(points, points, theta[one_hot.feature]).astype(np.float64) + 0.1 * np.eye(60)
    ridge, factor = _kernel.fit_ridge(one_hot, points, y, theta, 0.1)
    by_factor = _kernel.held_out_residuals(factor, ridge.alpha, fold)
    _, by_steps = _conjugate.solve_with_folds(points, y, theta[one_hot.feature], 0.1, fold)
    for missed, tolerance in ((by_factor, 1e-6), (by_steps, 2e-2)):
        assert np.isnan(missed[fold < 0]).all()
        for part in range(5):
            inside, outside = fold == part, fold != part
            prediction = k[np.ix_(inside, outside)] @ np.linalg.solve(k[np.ix_(outside, outside)], y[outside])
            np.testing.assert_allclose(y[inside] - prediction, missed[inside], atol=tolerance)
