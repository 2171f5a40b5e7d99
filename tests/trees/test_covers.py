"""Path-dependent values of a background: its shares in the trees, as in shap. The first trees of a boosted model."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)

import fouriershap as fs
from models import classes, numbers, target
from oracles import shapley_values
from shap_oracle import assert_within

BY_PATH = {"feature_perturbation": "tree_path_dependent"}


def expected_along(trees, node, row, coalition, background, weights):
    """The recursion that defines path-dependent values: a known feature leads on, an unknown one is shared out."""
    feature, sides = trees.feature[node], (trees.left[node], trees.right[node])
    if feature < 0:
        return trees.values[node, 0]

    def goes_left(rows):
        x = rows[:, feature]
        return np.where(np.isnan(x), trees.missing_left[node], ~(x >= trees.threshold[node]))

    left = goes_left(background)
    parts = [(background[left], weights[left]), (background[~left], weights[~left])]
    if feature in coalition:
        way = int(not goes_left(row[None])[0])
        return expected_along(trees, sides[way], row, coalition, *parts[way])
    share = np.array([weight.sum() for _, weight in parts])
    if not share.sum():
        share = trees.cover[list(sides)]
    means = [
        expected_along(trees, side, row, coalition, *part) for side, part in zip(sides, parts, strict=True)
    ]
    return float(np.average(means, weights=share))


def by_definition(trees, row, background, weights):
    n = trees.n_features
    game = np.zeros(1 << n)
    for coalition in range(1 << n):
        known = [j for j in range(n) if coalition >> j & 1]
        game[coalition] = sum(
            expected_along(trees, root, row, known, background, weights) for root in trees.roots
        )
    return shapley_values(game[:, None], n)[:, 0], game[0] + trees.base[0]


@given(seed=st.integers(0, 10**6), n_background=st.sampled_from([1, 2, 5, 60]), missing=st.booleans())
@settings(max_examples=25, deadline=None)
def test_the_shares_of_a_background_by_definition(seed, n_background, missing):
    rng = np.random.default_rng(seed)
    X = numbers(missing).astype(np.float32)
    forest = RandomForestRegressor(3, max_depth=4, random_state=seed % 7).fit(X, target(np.nan_to_num(X)))
    background, rows = X[rng.permutation(len(X))[:n_background]], X[rng.permutation(len(X))[:3]]
    weights = None if seed % 2 else rng.integers(1, 4, n_background).astype(float)
    trees = fs.read_model(forest).trees
    for method in ("tables", "walk"):
        explainer = fs.TreeExplainer(
            forest, background, weights=weights, strategy=method, precision="double", **BY_PATH
        )
        assert explainer.engine.info.is_path_dependent and explainer.checked
        got = explainer.shap_values(rows, check_additivity=True)
        share = np.ones(n_background) if weights is None else weights
        for row, values in zip(rows, got, strict=True):
            want, expected = by_definition(trees, row, background, share)
            assert_within(values, want, 1e-9, 1.0)
            assert explainer.expected_value == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("model", [RandomForestClassifier, GradientBoostingRegressor])
def test_the_same_as_shap(model):
    shap = pytest.importorskip("shap")
    X = np.random.default_rng(0).normal(size=(500, 5)).astype(np.float32)
    y = X[:, 0] * X[:, 1] + X[:, 2]
    y = y if model is GradientBoostingRegressor else (y > 0).astype(int)
    # Leaves that the background reaches, all of them: elsewhere shap counts both branches whole.
    fitted = model(n_estimators=5, max_depth=3, min_samples_leaf=60, random_state=0).fit(X, y)
    background = X[::2]
    every_row = shap.maskers.Independent(background, max_samples=len(background))
    theirs = shap.TreeExplainer(fitted, every_row, **BY_PATH)
    ours = fs.TreeExplainer(fitted, background, **BY_PATH)
    assert_within(ours.shap_values(X[:30]), theirs.shap_values(X[:30]), 1e-6)
    np.testing.assert_allclose(ours.expected_value, theirs.expected_value, atol=1e-6)
    assert np.abs(ours.shap_values(X[:30]) - fs.TreeExplainer(fitted).shap_values(X[:30])).max() > 1e-3


def test_covers_are_kept_in_files(tmp_path):
    X = numbers().astype(np.float32)
    forest = RandomForestRegressor(3, max_depth=4, random_state=0).fit(X, target(X))
    explainer = fs.TreeExplainer(forest, X[:20], **BY_PATH)
    explainer.save(tmp_path / "m.fshap")
    loaded = fs.load(tmp_path / "m.fshap")
    assert_within(loaded.shap_values(X), explainer.shap_values(X), 1e-6)


def boosted():
    """Models with what they say after k rounds."""
    X = numbers().astype(np.float32)
    two, three = classes(X, 2), classes(X, 3)
    import catboost
    import lightgbm
    import xgboost

    gb = GradientBoostingClassifier(n_estimators=6, random_state=0).fit(X, three)
    yield X, gb, 3, lambda k: list(gb.staged_decision_function(X))[k - 1]
    hist = HistGradientBoostingClassifier(max_iter=6, min_samples_leaf=5).fit(X, two)
    yield X, hist, 1, lambda k: list(hist.staged_decision_function(X))[k - 1]
    xgb = xgboost.XGBClassifier(n_estimators=6, max_depth=3).fit(X, three)
    yield X, xgb, 3, lambda k: xgb.predict(X, output_margin=True, iteration_range=(0, k))
    lgbm = lightgbm.LGBMClassifier(n_estimators=6, verbose=-1, min_child_samples=5).fit(X, three)
    yield X, lgbm, 3, lambda k: lgbm.predict(X, raw_score=True, num_iteration=k)
    cat = catboost.CatBoostRegressor(iterations=6, depth=3, verbose=0, allow_writing_files=False)
    cat.fit(X, target(X))
    yield X, cat, 1, lambda k: cat.predict(X, ntree_end=k)


def test_the_first_trees():
    for X, model, per_round, output in boosted():
        for k in (1, 4):
            explainer = fs.TreeExplainer(model, X, tree_limit=k * per_round)
            assert explainer.checked
            values = explainer.shap_values(X, check_additivity=True)
            np.testing.assert_allclose(values.sum(axis=1) + explainer.expected_value, output(k), atol=1e-4)
        if per_round > 1:
            one = fs.TreeExplainer(model, X, tree_limit=4 * per_round, output=1).shap_values(X)
            assert_within(one, values[..., 1], 1e-5)
            with pytest.raises(fs.InputError, match="multiple of its 3 outputs"):
                fs.TreeExplainer(model, X, tree_limit=4)
    for limit in (None, -1, 6):
        assert fs.TreeExplainer(model, X, tree_limit=limit).representation.n_trees == 6


@pytest.mark.parametrize("limit", [0, 1.5, "all", 7, -2, True])
def test_wrong_limits(limit):
    X = numbers()
    model = GradientBoostingRegressor(n_estimators=6).fit(X, target(X))
    with pytest.raises(fs.InputError, match="tree_limit is"):
        fs.TreeExplainer(model, X, tree_limit=limit)


def test_forests_have_no_first_trees():
    X = numbers()
    with pytest.raises(fs.InputError, match="not boosted"):
        fs.TreeExplainer(RandomForestRegressor(3).fit(X, target(X)), X, tree_limit=2)
