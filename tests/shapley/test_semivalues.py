"""Weighted Banzhaf and Beta-Shapley values: by their definitions over all coalitions."""

from __future__ import annotations

import pickle
from itertools import combinations
from math import gamma
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor

import fouriershap as fs
from fouriershap._shapley.indices import BANZHAF, SHAPLEY, find_index
from oracles import coalition_values

N = 5
RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, N))
Y = X[:, 0] * X[:, 1] + np.maximum(X[:, 2], 0) * X[:, 3] - X[:, 4]
MODEL = GradientBoostingRegressor(n_estimators=15, max_depth=4, random_state=0).fit(X, Y)
BACKGROUND, ROWS = X[:12], X[20:24]
PLAYERS = np.arange(N)
INDICES = ["weighted-banzhaf(0.3)", "weighted-banzhaf(4/5)", "beta-shapley(16, 1)", "beta-shapley(0.5, 0.5)"]
INDICES += ["beta-shapley(2,3)"]


def weight(index: str, size: int, others: int) -> float:
    """The weight of a coalition of ``size`` of the ``others``."""
    kind, _, numbers = index.rstrip(")").partition("(")
    if kind == "weighted-banzhaf":
        p = float(numbers) if "/" not in numbers else 4 / 5
        return p**size * (1 - p) ** (others - size)
    a, b = map(float, numbers.split(","))

    def beta(x: float, y: float) -> float:
        return gamma(x) * gamma(y) / gamma(x + y)

    return beta(size + b, others - size + a) / beta(a, b)


def defined(v: NDArray[Any], index: str, players: tuple[int, ...] = (), n: int = N) -> Any:
    """What a set of players adds jointly to the coalitions of the others, on average."""
    others = [k for k in range(n) if k not in players]
    total = 0.0
    for size in range(len(others) + 1):
        for members in combinations(others, size):
            for taken in range(len(players) + 1):
                for inside in combinations(players, taken):
                    coalition = sum(1 << k for k in (*members, *inside))
                    sign = (-1) ** (len(players) - taken)
                    total += sign * weight(index, size, len(others)) * v[coalition, 0]
    return total


def values(v: NDArray[Any], index: str, n: int = N) -> list[float]:
    return [defined(v, index, (player,), n) for player in range(n)]


@pytest.mark.parametrize("index", INDICES)
def test_trees_by_the_definition(index: str, tmp_path: Any) -> None:
    games = [coalition_values(MODEL.predict, row, BACKGROUND, PLAYERS) for row in ROWS]
    want = np.array([values(v, index) for v in games])
    for strategy in ("tables", "walk", "stream"):
        explainer = fs.TreeExplainer(MODEL, BACKGROUND, index=index, strategy=strategy, precision="double")
        np.testing.assert_allclose(explainer.shap_values(ROWS), want, atol=1e-7)
        pairs = explainer.shap_interaction_values(ROWS[:1])[0]
        np.testing.assert_allclose(2 * pairs[0, 1], defined(games[0], index, (0, 1)), atol=1e-7)
        explainer.save(tmp_path / "file.fshap")
        np.testing.assert_array_equal(
            fs.load(tmp_path / "file.fshap").shap_values(ROWS), explainer.shap_values(ROWS)
        )
    copy = pickle.loads(pickle.dumps(explainer))
    assert copy.engine.index is explainer.engine.index
    found = fs.TreeExplainer(MODEL, BACKGROUND).interactions(ROWS[:1], order=3, index=index)
    for names, value in zip(found.sets, found.values[0], strict=True):
        players = tuple(int(name.split()[-1]) for name in names)
        np.testing.assert_allclose(value, defined(games[0], index, players), atol=1e-7)
    groups = fs.TreeExplainer(MODEL, BACKGROUND, index=index, groups={"g": [0, 1], "h": [2, 3, 4]})
    v = coalition_values(MODEL.predict, ROWS[0], BACKGROUND, np.array([0, 0, 1, 1, 1]))
    np.testing.assert_allclose(groups.shap_values(ROWS[0]), values(v, index, 2), atol=1e-7)


@pytest.mark.parametrize("index", INDICES)
def test_path_dependent_trees(index: str) -> None:
    tree = GradientBoostingRegressor(n_estimators=1, max_depth=4, random_state=1).fit(X, Y).estimators_[0, 0]
    t = tree.tree_

    def game(row: NDArray[Any], coalition: int, node: int = 0) -> float:
        if t.children_left[node] < 0:
            return float(t.value[node, 0, 0])
        children = (t.children_left[node], t.children_right[node])
        if coalition >> t.feature[node] & 1:
            return game(row, coalition, children[int(np.float32(row[t.feature[node]]) > t.threshold[node])])
        parts = [t.weighted_n_node_samples[child] * game(row, coalition, child) for child in children]
        return sum(parts) / t.weighted_n_node_samples[node]

    explainer = fs.TreeExplainer(tree, index=index, precision="double")
    v = np.array([[game(ROWS[0], coalition)] for coalition in range(1 << N)])
    np.testing.assert_allclose(explainer.shap_values(ROWS[0]), values(v, index), atol=1e-7)


@pytest.mark.parametrize("index", INDICES)
def test_spectra_and_products(index: str) -> None:
    frequencies, coefficients = RNG.integers(0, 2, size=(9, N)), RNG.normal(size=9)
    spectrum = fs.Spectrum(frequencies, coefficients)
    bits, others = RNG.integers(0, 2, size=(2, N)), RNG.integers(0, 2, size=(7, N))
    explainer = fs.SpectrumExplainer(spectrum, others, index=index)
    for row, found in zip(bits, explainer.shap_values(bits), strict=True):
        v = coalition_values(spectrum, row, others, PLAYERS)
        np.testing.assert_allclose(found, values(v, index), atol=1e-7)
    process = GaussianProcessRegressor(alpha=1e-3).fit(X[:15], Y[:15])
    explainer = fs.ProductExplainer(process, BACKGROUND, index=index, compress_background=False)
    v = coalition_values(process.predict, ROWS[0], BACKGROUND, PLAYERS)
    np.testing.assert_allclose(explainer.shap_values(ROWS[:1])[0], values(v, index), atol=1e-6)


def test_names() -> None:
    assert find_index("beta-shapley(1, 1.0)") is SHAPLEY and find_index("weighted-banzhaf(0.5)") is BANZHAF
    assert find_index("beta-shapley(2,3)") is find_index(" beta-shapley (2.0, 3)")
    assert repr(find_index("weighted-banzhaf(0.30)")) == "weighted-banzhaf(0.3)"
    for wrong in ("weighted-banzhaf(p)", "weighted-banzhaf(1)", "beta-shapley(0, 1)", "beta-shapley(2)"):
        with pytest.raises(fs.InputError, match=r"between 0 and 1, or 'beta-shapley\(a, b\)'"):
            fs.TreeExplainer(MODEL, BACKGROUND, index=wrong)
    with pytest.raises(fs.InputError, match=r"choose one of.*weighted-banzhaf\(p\)"):
        fs.TreeExplainer(MODEL, BACKGROUND, index="weighted")
    with pytest.raises(fs.InputError, match="not estimated for black boxes"):
        fs.BlackBoxExplainer(MODEL.predict, BACKGROUND, index="beta-shapley(16, 1)")
    with pytest.raises(fs.InputError, match="over orders"):
        fs.TreeExplainer(
            MODEL,
            BACKGROUND,
            index="beta-shapley(2, 1)",
            coalitions="owen",
            groups={"g": [0, 1], "h": [2, 3]},
        )
