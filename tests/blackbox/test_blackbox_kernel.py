"""The kernel regression against its definition and against refits."""

from __future__ import annotations

import numpy as np
import pytest

import fouriershap as fs
from fouriershap._blackbox.candidates import conjugate as _conjugate
from fouriershap._blackbox.candidates import kernel as _distil
from fouriershap._blackbox.candidates import kernel_ridge as _kernel


def data(n=40):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, size=(n, 4)).astype(float)
    codes[rng.random((n, 4)) < 0.1] = np.nan
    y = np.nan_to_num(codes)[:, :1] * (codes[:, 1:2] == 1) + 0.01 * rng.normal(size=(n, 1))
    return codes, (y - y.mean()) / y.std()


def test_the_kernel_counts_differences():
    codes, _ = data()
    one_hot = _kernel.make_one_hot(codes)
    theta = np.array([0.1, 0.5, 1.0, 2.0])
    points = one_hot(codes)
    filled = np.where(np.isnan(codes), -1.0, codes)  # missing is a level of its own
    different = filled[:, None, :] != filled[None]
    truth = np.exp(-(different * theta).sum(axis=2))
    np.testing.assert_allclose(_kernel.gram(points, points, theta[one_hot.feature]), truth, atol=1e-6)


def test_held_out_residuals_are_those_of_refits():
    codes, y = data()
    one_hot = _kernel.make_one_hot(codes)
    points, theta = one_hot(codes), np.full(4, 0.4)
    fold = np.arange(40) % 5
    k = _kernel.gram(points, points, theta[one_hot.feature]).astype(np.float64) + 0.1 * np.eye(40)
    ridge, factor = _kernel.fit_ridge(one_hot, points, y, theta, 0.1)
    missed = _kernel.held_out_residuals(factor, ridge.alpha, fold)
    for part in range(5):
        inside, outside = fold == part, fold != part
        prediction = k[np.ix_(inside, outside)] @ np.linalg.solve(k[np.ix_(outside, outside)], y[outside])
        np.testing.assert_allclose(y[inside] - prediction, missed[inside], atol=1e-6)


def test_the_likelihood_finds_what_matters():
    codes, y = data(300)
    one_hot = _kernel.make_one_hot(codes)
    theta, noise = _kernel.learn_theta(one_hot(codes), one_hot.feature, y)
    assert theta[:2].min() > 20 * theta[2:].max()
    assert noise < 0.1


def test_a_function_without_noise_is_no_trouble():
    """Answers that the kernel fits exactly leave a matrix that is almost singular."""
    rng = np.random.default_rng(1)
    codes = (rng.random((600, 30)) < 0.1).astype(float)
    y = codes[:, :1] - 2 * codes[:, 1:2] * codes[:, 2:3]
    y = (y - y.mean()) / y.std()
    one_hot = _kernel.make_one_hot(codes)
    points = one_hot(codes)
    theta, noise = _kernel.learn_theta(points[:200], one_hot.feature, y[:200])
    ridge, _ = _kernel.fit_ridge(one_hot, points[:400], y[:400], theta, noise)
    assert ((ridge.predict(codes[400:]) - y[400:]) ** 2).mean() < 0.01


@pytest.mark.parametrize("n_pivots", [60, 1000])
@pytest.mark.parametrize("noise", [1e-2, 1e-4])
def test_conjugate_gradients_agree_with_the_factor(monkeypatch, n_pivots, noise):
    codes, y = data(300)
    y = np.column_stack([y, y**2 - (y**2).mean()])
    y -= y.mean(axis=0)
    monkeypatch.setattr(_conjugate, "N_PIVOTS", n_pivots)
    monkeypatch.setattr(_conjugate, "TOLERANCE", 1e-5)
    monkeypatch.setattr(_conjugate, "MOST_STEPS", 300)
    one_hot = _kernel.make_one_hot(codes)
    points, theta = one_hot(codes), np.array([0.3, 0.5, 0.1, 0.2])
    fold = np.random.default_rng(2).permutation(np.arange(300) % 5)
    ridge, factor = _kernel.fit_ridge(one_hot, points, y, theta, noise)
    weights = theta[one_hot.feature]
    alpha, missed = _conjugate.solve_with_folds(points, y, weights, noise, fold)
    k = _kernel.gram(points, points, weights)
    np.testing.assert_allclose(k @ alpha, k @ ridge.alpha, atol=2e-3)
    np.testing.assert_allclose(missed, _kernel.held_out_residuals(factor, ridge.alpha, fold), atol=2e-3)


def test_many_points_go_by_conjugate_gradients(monkeypatch):
    monkeypatch.setattr(_distil, "MOST_FACTORED", 100)
    X = np.random.default_rng(3).integers(0, 2, size=(300, 12)).astype(float)
    explainer = fs.BlackBoxExplainer(
        lambda rows: rows[:, 0] * rows[:, 1] - 0.5 * rows[:, 2],
        X[:20],
        data=X,
        method="kernel",
        budget=1000,
        random_state=0,
    )
    assert f"noise {_conjugate.LEAST_NOISE:.1e}" in explainer.candidates[0].note
    assert explainer.fidelity.r2 > 0.99
    assert explainer.candidates[0].r2 > 0.99
