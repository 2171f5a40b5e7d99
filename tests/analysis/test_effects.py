"""Shares of variance: against Sobol' indices and Shapley effects of independent features, and the definition."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

import fouriershap as fs
from oracles import coalition_values, shapley_values


def test_independent_features_have_sobol_indices_and_shapley_effects() -> None:
    """On a full factorial design all features are independent: variances of conditional means, by brute force."""
    X = np.array(list(product([0.0, 1.0, 2.0], [0.0, 1.0], [0.0, 1.0, 5.0], [0.0, 1.0])))
    rng = np.random.default_rng(0)
    model = DecisionTreeRegressor().fit(X, rng.normal(size=len(X)))
    f = model.predict(X)
    explained = np.zeros(16)  # Var(E[f | features of S]) by S
    for S in range(16):
        chosen = [j for j in range(4) if S >> j & 1]
        group = np.unique(X[:, chosen], axis=0, return_inverse=True)[1].reshape(-1)
        explained[S] = np.var((np.bincount(group, f) / np.bincount(group))[group])
    explained /= f.var()
    found = fs.TreeExplainer(model, X).effects(X, pairs=True)
    np.testing.assert_allclose(found.main[:, 0], explained[[1, 2, 4, 8]], atol=1e-6)
    np.testing.assert_allclose(found.shares[:, 0], shapley_values(explained[:, None], 4)[:, 0], atol=1e-6)
    for (i, j), share in zip(found.pairs, found.pair_shares[:, 0], strict=True):
        want = explained[1 << i | 1 << j] - explained[1 << i] - explained[1 << j]
        assert share == pytest.approx(want, abs=1e-6)
    assert len(found.pairs) == 6


@pytest.mark.parametrize("weighted", [False, True])
def test_dependent_features_match_the_definition(weighted: bool) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 3))
    X[:, 1] += X[:, 0]
    y = np.stack([X[:, 0] * X[:, 1] + X[:, 2], X[:, 2] ** 2], axis=1)
    model = RandomForestRegressor(6, max_depth=4, random_state=0).fit(X, y)
    rows, background = X[:25], X[25:]
    weights = rng.random(25) if weighted else None
    found = fs.TreeExplainer(model, background).effects(rows, pairs=True, weights=weights)
    games = np.array([coalition_values(model.predict, row, background, np.arange(3)) for row in rows])
    f = model.predict(rows)
    centred = f - np.average(f, axis=0, weights=weights)

    def share(part: np.ndarray) -> Any:
        both = np.average(part * centred, axis=0, weights=weights)
        return both / np.average(centred**2, axis=0, weights=weights)

    for i in range(3):
        np.testing.assert_allclose(found.main[i], share(games[:, 1 << i]), atol=1e-6)
        values = np.array([shapley_values(game, 3)[i] for game in games])
        np.testing.assert_allclose(found.shares[i], share(values), atol=1e-6)
    for (i, j), mine in zip(found.pairs, found.pair_shares, strict=True):
        beyond = games[:, 1 << i | 1 << j] - games[:, 1 << i] - games[:, 1 << j]
        np.testing.assert_allclose(mine, share(beyond), atol=1e-6)
    np.testing.assert_allclose(found.shares.sum(axis=0), 1, atol=1e-6)


def test_table_plot_and_linear_models() -> None:
    X = np.random.default_rng(2).normal(size=(200, 3))
    found = fs.Explainer(LinearRegression().fit(X, X[:, 0] - X[:, 2]), X).effects(X, pairs=True)
    assert found.pairs == ()
    np.testing.assert_allclose(found.interaction, 0, atol=1e-9)
    assert list(found.frame().columns) == ["feature", "share", "main", "interaction"]
    assert list(found.pair_frame().columns) == ["pair", "share"]
    assert "0.0% through interactions" in repr(found)
    assert found.plot().get_xlabel() == "share of the predictions' variance"
    assert '"variance"' in found.to_json()


def test_constant_predictions_have_no_shares() -> None:
    X = np.zeros((5, 2))
    found = fs.Explainer(LinearRegression().fit(X, np.ones(5)), X).effects(X)
    assert np.isnan(found.shares).all()
    rows = np.random.default_rng(0).normal(size=(200, 4))
    found = fs.Explainer(LinearRegression().fit(rows, np.full(200, 0.1)), rows).effects(rows)
    assert found.variance == 0
    assert np.isnan(found.shares).all()


def test_outputs_may_be_far_from_zero() -> None:
    X = np.random.default_rng(4).normal(size=(200, 3))
    y = X[:, 0] + 0.5 * X[:, 1]
    near = fs.Explainer(LinearRegression().fit(X, y), X).effects(X, weights=np.arange(200.0))
    far = fs.Explainer(LinearRegression().fit(X, y + 1e9), X).effects(X, weights=np.arange(200.0))
    for part in ("shares", "main", "variance"):
        np.testing.assert_allclose(getattr(far, part), getattr(near, part), rtol=1e-4, atol=1e-6)


def test_values_of_something_else_are_refused() -> None:
    X = np.random.default_rng(3).normal(size=(50, 2))
    model = GradientBoostingClassifier(n_estimators=3).fit(X, X[:, 0] > 0)
    with pytest.raises(fs.InputError, match="rescaled"):
        fs.TreeExplainer(model, X, output="probability").effects(X)
    with pytest.raises(fs.InputError, match="banzhaf"):
        fs.TreeExplainer(model, X, index="banzhaf").effects(X)
    exact = fs.TreeExplainer(model, X, output="probability", exact=True).effects(X[:10])
    np.testing.assert_allclose(exact.shares.sum(axis=0), 1)
