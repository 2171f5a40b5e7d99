"""The kernel that teaches waves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fitted_models import explain_fitted
from fouriershap._blackbox.candidates import kernel as module
from fouriershap._blackbox.candidates.kernel import fit_kernel
from fouriershap._waves.training import Fitted


def random_net(rng: np.random.Generator, n_columns: int, n_outputs: int) -> Fitted:
    frequencies = rng.normal(size=(8, n_columns)).astype(np.float32)
    weights = rng.normal(size=(8 + n_columns + 1, n_outputs))
    return Fitted(frequencies, rng.uniform(0, 6, 8).astype(np.float32), weights)


def bells(a: np.ndarray, b: np.ndarray, root: np.ndarray, width: float) -> np.ndarray:
    """The kernel by its definition, pair by pair."""
    metric = root @ root.T
    out = np.empty((len(a), len(b)))
    for i, x in enumerate(a.astype(np.float64)):
        for j, z in enumerate(b.astype(np.float64)):
            out[i, j] = np.exp(-width * (x - z) @ metric @ (x - z)) + 0.02 * x @ metric @ z + 1
    return out


@settings(max_examples=15, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 4),
    st.integers(1, 2),
    st.sampled_from(module.SHAPES),
    st.booleans(),
)
def test_folds_are_refits_without_them(seed, n_columns, n_outputs, shape, single):
    """Against kernel ridge regression by its definition: (K + ridge)^-1 y of the rows outside of the fold."""
    rng = np.random.default_rng(seed)
    inputs = rng.normal(size=(60, n_columns)).astype(np.float32)
    inputs[:, 0] = np.round(inputs[:, 0])  # ties
    targets = rng.normal(size=(60, n_outputs))
    fold = rng.permutation(np.arange(60) % 6 - 1)
    ridge = 0.1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "SHAPES", (shape,))
        patch.setattr(module, "RIDGES", (ridge,))
        patch.setattr(module, "_SINGLE", 0.0 if single else np.inf)
        kernel, said = fit_kernel(inputs, targets, fold, [random_net(rng, n_columns, n_outputs)], rng)
    assert (kernel.centres.dtype == np.float32) == single
    between, atol = bells(inputs, inputs, kernel.root, kernel.width), 2e-3 if single else 1e-5
    for k in range(5):
        outside, inside = fold == k, fold != k
        weights = np.linalg.solve(
            between[np.ix_(inside, inside)] + ridge * np.eye(inside.sum()), targets[inside]
        )
        np.testing.assert_allclose(said[outside], between[np.ix_(outside, inside)] @ weights, atol=atol)
    assert np.isnan(said[fold == -1]).all()
    weights = np.linalg.solve(between + ridge * np.eye(60), targets)
    fresh = rng.normal(size=(5, n_columns)).astype(np.float32)
    expected = bells(fresh, inputs, kernel.root, kernel.width) @ weights
    np.testing.assert_allclose(kernel.predict(fresh), expected, atol=2e-2 if single else 1e-3)  # the jitter


def test_fewer_centres_than_answers(monkeypatch):
    """In single precision, around some of the rows: near to what all of them give where the model is smooth."""
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(900, 3)).astype(np.float32)
    targets = np.sin(inputs @ [[1.0], [0.7], [0.1]])
    fold = np.arange(900) % 5
    found = {}
    for most in (900, 200):
        monkeypatch.setattr(module, "CENTRES", most)
        kernel, said = fit_kernel(inputs, targets, fold, [random_net(rng, 3, 1)], np.random.default_rng(1))
        assert kernel.centres.dtype == (np.float64 if most == 900 else np.float32)
        assert len(kernel.centres) == most
        found[most] = kernel.predict(inputs)
        assert ((said - targets) ** 2).mean() < 1e-3
    np.testing.assert_allclose(found[200], found[900], atol=0.05)


def test_slopes_that_are_nothing():
    """Waves that are flat, and columns that do not vary: no direction counts, and nothing is divided by zero."""
    rng = np.random.default_rng(0)
    flat = Fitted(np.zeros((4, 2), np.float32), np.zeros(4, np.float32), np.zeros((7, 1)))
    targets = rng.normal(size=(50, 1))
    for inputs in (np.zeros((50, 2)), rng.normal(size=(50, 2))):
        kernel, said = fit_kernel(inputs.astype(np.float32), targets, np.arange(50) % 5, [flat], rng)
        assert np.isfinite(said).all() and np.isfinite(kernel.predict(inputs.astype(np.float32))).all()


def narrow(rows: np.ndarray) -> np.ndarray:
    """Narrow bells around forty points: hard for few waves, made for a kernel."""
    rng = np.random.default_rng(3)
    centres, weights = rng.normal(size=(40, 5)), rng.normal(size=40)
    square = ((rows[:, None] - centres) ** 2).sum(axis=2)
    return np.exp(-0.3 * square) @ weights


def test_it_helps_where_the_model_is_narrow(monkeypatch):
    X = np.random.default_rng(4).normal(size=(400, 5))
    options = {"data": X, "method": "waves", "budget": 1000, "random_state": 0}
    taught = explain_fitted(narrow, X[:50], **options)
    monkeypatch.setattr(module, "MOST_COLUMNS", 4)  # one fewer than there are
    alone = explain_fitted(narrow, X[:50], **options)
    assert "kernel" in taught.fitted.candidates[0].note and "kernel" not in alone.fitted.candidates[0].note
    fresh = np.random.default_rng(5).normal(size=(300, 5))
    missed = [((e.predict(fresh) - narrow(fresh)) ** 2).mean() for e in (taught, alone)]
    assert missed[0] < 0.7 * missed[1]
