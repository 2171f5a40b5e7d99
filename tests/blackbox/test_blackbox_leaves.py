"""Leaf values fitted together, against dense least squares, and what boosting makes of rare levels."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingRegressor

import fouriershap as fs
from fouriershap._blackbox.candidates import trees as _boosting
from fouriershap._blackbox.task import Task, make_folds
from fouriershap._rows.levels import Encoding, Feature


def grown(codes, y, n_trees=4):
    model = HistGradientBoostingRegressor(
        max_iter=n_trees, max_leaf_nodes=4, min_samples_leaf=1, early_stopping=False, random_state=0
    )
    return fs.read_model(model.fit(codes, y)).trees


def sample(seed, n=60):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 4, size=(n, 3)).astype(float)
    codes[rng.random((n, 3)) < 0.1] = np.nan
    return codes, np.nan_to_num(codes[:, 0]) * (codes[:, 1] == 1) + rng.normal(size=n)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_design_adds_up_to_the_prediction(seed):
    codes, y = sample(seed)
    ensemble = grown(codes, y)
    rows = _boosting.design(ensemble, codes)
    np.testing.assert_array_equal(np.asarray(rows.sum(axis=1)).ravel(), ensemble.n_trees)
    np.testing.assert_allclose(
        rows @ ensemble.values[:, 0] + ensemble.base[0], ensemble.predict(codes)[:, 0], atol=1e-9
    )


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_refitted_leaves_are_those_of_dense_least_squares(seed):
    codes, y = sample(seed)
    ensemble = grown(codes, y)
    again = _boosting.refit_leaves(ensemble, codes, y)
    rows = _boosting.design(ensemble, codes).toarray().astype(float)
    missed = y - ensemble.predict(codes)[:, 0]
    damped = rows.T @ rows + _boosting.DAMPING * np.eye(rows.shape[1])
    truth = ensemble.values[:, 0] + np.linalg.solve(damped, rows.T @ missed)
    np.testing.assert_allclose(again.values[:, 0], truth, atol=1e-4 * np.abs(truth).max())
    np.testing.assert_array_equal(again.threshold, ensemble.threshold)


def make_task(codes, y):
    features = tuple(Feature("number", f"x{j}", (j,), j) for j in range(codes.shape[1]))
    players = np.arange(codes.shape[1], dtype=np.int32)
    encoding = Encoding(features, players, tuple(feature.name for feature in features))
    fold = make_folds(len(y), np.random.default_rng(0))
    return Task(encoding, codes, codes, y[:, None], fold, 0)


def test_what_is_rare_is_learnt():
    """Four rows of 1,000 hold the bit that matters most: a leaf must be allowed to hold them alone."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, size=(1000, 4)).astype(float)
    codes[:, 3] = np.arange(1000) % 250 == 0
    y = codes[:, 0] - codes[:, 1] * codes[:, 2] + 10 * codes[:, 3]
    surrogate = _boosting.fit_trees(make_task(codes, y)).make()
    np.testing.assert_allclose(surrogate.predict(codes)[:, 0], y, atol=0.1)


def test_noise_is_not_learnt():
    """Answers that are half noise: no fold may prefer trees that repeat it."""
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 3, size=(600, 4)).astype(float)
    signal = codes[:, 0] - codes[:, 1]
    y = signal + signal.std() * rng.normal(size=600)
    surrogate = _boosting.fit_trees(make_task(codes, y)).make()
    missed = surrogate.predict(codes)[:, 0] - signal
    assert (missed**2).mean() < 0.35 * signal.var()
