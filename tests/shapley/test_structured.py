"""Owen, Winter and asymmetric values against the mean over all orders that respect the groups or the chain."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fouriershap as fs
import oracles
from fouriershap._base.errors import CapacityError
from fouriershap._shapley.coalitions import values_of_game
from fouriershap._shapley.indices import ASYMMETRIC, OWEN, structured_index
from fouriershap._shapley.products.components import compile_pairs
from fouriershap._shapley.products.engine import ProductSettings, compile_products
from fouriershap._shapley.products.mixture import compile_mixture
from fouriershap._shapley.products.model import weighted_rows
from fouriershap._shapley.spectrum.engine import compile_spectrum
from fouriershap._shapley.spectrum.terms import make_terms
from fouriershap._shapley.trees.engine import TreeEngine
from fouriershap._shapley.trees.model import TreeModel, make_background
from strategies import spectra
from structured_oracles import by_orders
from tree_kernel_cases import ensembles
from tree_oracles import RandomTrees

MOST = 6  # players, whose orders are counted


def random_tree(rng, players, depth=3):
    """Random groups of groups of the players."""
    if len(players) < 2 or depth == 0:
        return list(players)
    cut = np.sort(rng.choice(np.arange(1, len(players)), rng.integers(0, len(players)), replace=False))
    parts = np.split(rng.permutation(players), cut)
    return [
        part.tolist()[0]
        if len(part) == 1 and rng.random() < 0.7
        else random_tree(rng, part.tolist(), depth - 1)
        for part in parts
    ]


def random_structure(rng, n_players):
    if rng.random() < 0.5:
        return OWEN, random_tree(rng, list(range(n_players)))
    cut = np.sort(rng.choice(np.arange(1, max(n_players, 2)), rng.integers(0, n_players), replace=False))
    groups = np.split(rng.permutation(n_players), cut[cut < n_players])
    return ASYMMETRIC, [group.tolist() for group in groups]


seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)


@given(seeds, st.integers(1, MOST))
@settings(max_examples=60, deadline=None)
def test_shares_of_coalitions(rng, n_players):
    kind, tree = random_structure(rng, n_players)
    v = rng.normal(size=(1 << n_players, 2))
    got = values_of_game(v, n_players, structured_index(kind, tree))
    np.testing.assert_allclose(got, by_orders(v, kind, tree), atol=1e-12)
    np.testing.assert_allclose(got.sum(axis=0), v[-1] - v[0], atol=1e-12)


@given(ensembles(most_features=6, most_thresholds=5), st.booleans())
@settings(max_examples=60, deadline=None)
def test_trees(model, weighted):
    """Missing values, labels, several outputs, and columns that share a player."""
    coded, players, rng = model
    players = np.unique(players % MOST, return_inverse=True)[1].astype(np.int32)
    n, e = int(players.max()) + 1, coded.ensemble
    kind, tree = random_structure(rng, n)
    rows = rng.choice([*np.arange(-1.0, 7.0), np.nan], size=(8, e.n_features))
    weights = rng.dirichlet(np.ones(5)) if weighted else None
    games = [oracles.coalition_values(e.predict, row, rows[3:], players, weights) for row in rows[:3]]
    want = np.stack([by_orders(game, kind, tree) for game in games])
    for strategy in ("walk", "tables"):
        index = structured_index(kind, tree)
        described = TreeModel(coded, players, 1 << 30, np.dtype(np.float64), strategy, index)
        if strategy == "tables" and not described.feasible.all():
            continue
        engine = TreeEngine(described, make_background(described, rows[3:], weights))
        values = engine.shap_values(rows[:3], 1)
        np.testing.assert_allclose(values, want, atol=1e-9 * max(1.0, np.abs(want).max()))
        total = engine.predict(rows[:3]) - engine.expected
        np.testing.assert_allclose(values.sum(axis=1), total, atol=1e-9 * max(1.0, np.abs(total).max()))


@given(spectra(max_bits=8), seeds, st.booleans())
@settings(max_examples=60, deadline=None)
def test_spectra(spectrum, rng, weighted):
    n = int(rng.integers(1, min(MOST, spectrum.n_bits) + 1))
    players = np.concatenate([np.arange(n), rng.integers(0, n, spectrum.n_bits - n)])
    kind, tree = random_structure(rng, n)
    bits = rng.integers(0, 2, (9, spectrum.n_bits)).astype(np.uint8)
    weights = rng.dirichlet(np.ones(6)) if weighted else None

    def evaluate(rows):
        return np.asarray(spectrum(rows)).reshape(len(rows), -1)

    games = [oracles.coalition_values(evaluate, row, bits[3:], players, weights) for row in bits[:3]]
    want = np.stack([by_orders(game, kind, tree) for game in games])
    for strategy in ("tables", "direct"):
        index = structured_index(kind, tree)
        terms = make_terms(spectrum, players)
        engine = compile_spectrum(terms, bits[3:], weights, 1 << 30, None, strategy, index)
        values = engine.shap_values(bits[:3], 1)
        scale = np.abs(terms.coefficients).sum(axis=0).max(initial=1e-300)
        np.testing.assert_allclose(values, want, atol=1e-10 * scale)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("strategy", ["subsets", "pairs", "mixture"])
def test_products(seed, strategy):
    from sklearn.gaussian_process.kernels import RBF
    from sklearn.kernel_ridge import KernelRidge

    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, MOST + 1))
    kind, tree = random_structure(rng, n)
    X = rng.normal(size=(40, n))
    model = KernelRidge(kernel=RBF(1.3)).fit(X, np.sin(X.sum(axis=1)) * X[:, 0])
    read = fs.ProductExplainer(model, X).engine.model
    background = X[:1] if strategy == "mixture" else X[:7]  # which one product represents exactly
    index = structured_index(kind, tree)
    made = compile_products(read, background, None, index, ProductSettings())
    if strategy == "pairs":
        made = replace(made, strategy=compile_pairs(read, weighted_rows(background, None), index))
    if strategy == "mixture":
        made = replace(made, strategy=compile_mixture(read, weighted_rows(background, None), index, 1e-3))
    games = [oracles.coalition_values(model.predict, row, background, np.arange(n), None) for row in X[20:23]]
    want = np.stack([by_orders(game, kind, tree) for game in games])
    values = made.shap_values(X[20:23], 1)
    np.testing.assert_allclose(values, want, atol=1e-5 if strategy == "mixture" else 1e-9)


def test_deep_trees_of_many_levels():
    """Paths of many columns in many levels of groups have too many counts; walking fewer levels is exact."""
    rng = np.random.default_rng(0)
    grown = RandomTrees(rng, 60, n_thresholds=9)
    grown.chain(200, target=rng.integers(9, size=60))
    coded = grown.coded()
    players = np.arange(60, dtype=np.int32)
    rows = rng.integers(9, size=(4, 60)).astype(float)
    deep = [[[[[*range(12)], *range(12, 24)], *range(24, 36)], *range(36, 48)], *range(48, 60)]
    wide = [list(range(30)), list(range(30, 60))]
    for tree in (deep, wide):
        described = TreeModel(
            coded, players, 1 << 30, np.dtype(np.float64), "walk", structured_index(OWEN, tree)
        )
        engine = TreeEngine(described, make_background(described, rows[1:]))
        if tree is deep:
            with pytest.raises(CapacityError, match="too many to count"):
                engine.shap_values(rows[:1], 1)
        else:
            values = engine.shap_values(rows[:1], 1)
            np.testing.assert_allclose(
                values.sum(axis=1), engine.predict(rows[:1]) - engine.expected, atol=1e-12
            )
