"""Interactions of any order: each index by its definition, on trees and spectra; sums; which sets there are."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPRegressor
from test_interactions import game_values

import fouriershap as fs
import oracles
from fouriershap._base.checks import check_memory
from fouriershap._shapley import interactions as values_module
from fouriershap._shapley import sets as set_module
from fouriershap._shapley.indices import (
    FSII,
    INTERACTION_INDICES,
    KSII,
    SHAPLEY,
    STII,
    InteractionIndex,
    leaf_shares,
    unanimity_share,
)
from fouriershap._shapley.interactions import strongest_sets
from fouriershap._shapley.products.components import compile_pairs
from fouriershap._shapley.products.engine import ProductSettings, compile_products
from fouriershap._shapley.products.model import weighted_rows
from fouriershap._shapley.products.subsets import compile_subsets
from fouriershap._shapley.sets import (
    InteractionEngine,
    all_keys,
    check_keys,
    count_sets,
    first_key,
    key_sets,
    keys_within,
    set_keys,
)
from fouriershap._shapley.spectrum.engine import make_engine
from fouriershap._shapley.trees import sets as tree_sets
from fouriershap._shapley.trees.engine import TreeEngine
from fouriershap._shapley.trees.model import make_background, make_model
from fouriershap._shapley.trees.sets import make_sets
from strategies import generators, random_frequencies, random_players
from tree_kernel_cases import ensembles
from tree_oracles import RandomTrees, interventional_game, path_dependent_game
from wave_models import WaveProblem, definition, wave_problems

EVERY = tuple(INTERACTION_INDICES.values())


def values_of(
    sets: InteractionEngine, rows: np.ndarray, n_players: int
) -> list[dict[tuple[int, ...], np.ndarray]]:
    out = np.zeros((len(rows), len(sets.keys), sets.n_outputs))
    sets.add(rows, out)
    return [dict(zip(key_sets(sets.keys, n_players), mine, strict=True)) for mine in out]


def agree(found: dict[tuple[int, ...], np.ndarray], truth: dict[tuple[int, ...], np.ndarray]) -> None:
    scale = max([1.0, *(float(np.abs(each).max()) for each in truth.values())])
    assert found.keys() <= truth.keys()
    for players, want in truth.items():
        np.testing.assert_allclose(found.get(players, 0.0 * want), want, atol=1e-9 * scale, rtol=0)


@pytest.mark.parametrize("index", EVERY)
@pytest.mark.parametrize(("n", "order"), [(1, 1), (3, 1), (4, 2), (5, 3), (6, 4), (7, 3), (3, 5), (8, 2)])
def test_shares_are_the_definition_on_games_of_all_or_nothing(
    index: InteractionIndex, n: int, order: int
) -> None:
    coalitions = np.arange(1 << n)
    for a in range(n + 1):
        for b in range(n + 1 - a) if n < 7 else [n - a]:
            inside, outside = (1 << a) - 1, ((1 << b) - 1) << a
            v = ((coalitions & inside == inside) & (coalitions & outside == 0)).astype(float)[:, None]
            truth = oracles.set_interactions(v, n, index.name, order)
            for players, want in truth.items():
                i, j = sum(p < a for p in players), sum(a <= p < a + b for p in players)
                share = leaf_shares(index, order, n)[a + j, b - j, i + j] if i + j == len(players) else 0.0
                assert (-1) ** j * share == pytest.approx(want[0], abs=1e-9)


@given(
    ensembles(most_features=6),
    st.booleans(),
    st.sampled_from(EVERY),
    st.integers(1, 4),
)
@settings(max_examples=40, deadline=None)
def test_trees_match_the_definitions(model: Any, weighted: bool, index: InteractionIndex, order: int) -> None:
    """Missing values, categories, several outputs, groups of features as players, weights, ties."""
    coded, players, rng = model
    players = np.unique(players, return_inverse=True)[1].astype(np.int32)
    e = coded.ensemble
    choices = [*np.arange(-1.0, 9.0), np.nan]
    background, rows = (rng.choice(choices, size=(n, e.n_features)) for n in (6, 2))
    weights = rng.dirichlet(np.ones(6)) if weighted else None
    trees = make_model(e, players, check_memory(None), np.dtype("f8"))
    sets = make_sets(trees, make_background(trees, background, weights), index, order, None, 1)
    found = values_of(sets, rows, trees.n_players)
    for row, mine in zip(coded.book.encode(rows).T, found, strict=True):
        game = interventional_game(coded, row, coded.book.encode(background), weights, players)
        truth = oracles.set_interactions(
            game_values(game, trees.n_players), trees.n_players, index.name, order
        )
        agree(mine, truth)


@given(ensembles(most_features=6), st.sampled_from(EVERY), st.integers(1, 4), st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_path_dependent_trees_match_the_definitions(
    model: Any, index: InteractionIndex, order: int, min_order: int
) -> None:
    coded, players, rng = model
    players = np.unique(players, return_inverse=True)[1].astype(np.int32)
    e = coded.ensemble
    rows = rng.choice([*np.arange(-1.0, 9.0), np.nan], size=(3, e.n_features))
    trees = make_model(e, players, check_memory(None), np.dtype("f8"))
    sets = make_sets(trees, make_background(trees, None), index, order, None, min(min_order, order))
    for row, mine in zip(coded.book.encode(rows).T, values_of(sets, rows, trees.n_players), strict=True):
        v = game_values(path_dependent_game(coded, row, players), trees.n_players)
        truth = oracles.set_interactions(v, trees.n_players, index.name, order)
        agree(mine, {S: want for S, want in truth.items() if len(S) >= min(min_order, order)})


@given(
    wave_problems(),
    st.sampled_from(EVERY),
    st.integers(1, 4),
    st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_waves_match_the_definitions(
    problem: WaveProblem, index: InteractionIndex, order: int, by_coalitions: bool
) -> None:
    """Where every background row counts, and where the worth of every coalition is tabled."""
    waves, rows = problem.waves, problem.rows[:2]
    engine = compile_products(
        waves, problem.background, problem.weights, SHAPLEY, ProductSettings(exact=True)
    )
    if waves.coefficients.shape[2]:
        make = compile_subsets if by_coalitions else compile_pairs
        weighted = weighted_rows(problem.background, problem.weights)
        engine = replace(engine, strategy=make(waves, weighted, SHAPLEY))
    n_players = engine.n_players
    found = values_of(engine.interactions(index, order), rows, n_players)
    for row, mine in zip(rows, found, strict=True):
        agree(mine, oracles.set_interactions(definition(problem, row), n_players, index.name, order))


@pytest.mark.parametrize("index", EVERY)
def test_networks_and_linear_models_match_the_definitions(index: InteractionIndex) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4))
    settings_ = {"hidden_layer_sizes": (4,), "activation": "tanh", "random_state": 0, "max_iter": 50}
    network = MLPRegressor(**settings_).fit(X, X[:, 0] * X[:, 1] + np.sin(X[:, 2]))
    linear = LinearRegression().fit(X, X @ [1.0, 2.0, 3.0, 4.0])
    for model in (network, linear):
        engine = fs.Explainer(model, X[:20]).engine
        found = values_of(engine.interactions(index, 3), X[30:33], 4)
        for row, mine in zip(X[30:33], found, strict=True):
            v = oracles.coalition_values(model.predict, row, X[:20], np.arange(4))
            truth = oracles.set_interactions(v, 4, index.name, 3)
            for players, want in truth.items():
                np.testing.assert_allclose(mine.get(players, 0.0), want, atol=1e-5)
    assert max(map(len, found[0])) == 1  # linear models have no pairs


@given(generators(), st.integers(1, 7), st.integers(1, 3), st.sampled_from(EVERY), st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_spectra_match_the_definitions(
    rng: np.random.Generator, n_bits: int, n_outputs: int, index: InteractionIndex, order: int
) -> None:
    n_players = int(rng.integers(1, n_bits + 1))
    players = random_players(rng, n_bits, n_players)
    spectrum = fs.Spectrum(random_frequencies(rng, 12, n_bits, 5), rng.normal(size=(12, n_outputs)))
    X, background = (rng.integers(0, 2, size=(n, n_bits)).astype(np.uint8) for n in (3, 9))
    weights = rng.dirichlet(np.ones(9)) if rng.random() < 0.5 else None
    engine = make_engine(spectrum, background, players=players, weights=weights)
    found = values_of(engine.interactions(index, order), X, n_players)
    for row, mine in zip(X, found, strict=True):
        v = oracles.coalition_values(spectrum, row, background, players, weights)
        agree(mine, oracles.set_interactions(v, n_players, index.name, order))


@pytest.mark.parametrize("index", [KSII, STII, FSII])
@pytest.mark.parametrize("order", [2, 3, 5])
def test_all_sets_add_up_to_the_prediction_on_long_paths(index: InteractionIndex, order: int) -> None:
    """More players on a path than lists are kept for, repeated features, and chains."""
    rng = np.random.default_rng(order)
    grown = RandomTrees(rng, 18, categorical=(3,), n_thresholds=4)
    for _ in range(2):
        grown.grow(9, p_leaf=0.35)
        grown.chain(30, target=np.zeros(18, dtype=int))
    coded = grown.coded(2, vector=True)
    trees = make_model(coded.ensemble, np.arange(18, dtype=np.int32), check_memory(None), np.dtype("f8"))
    assert trees.walk_trees.tree_players.max() > 12
    background, rows = (rng.choice([0.0, 0.0, 1.0, 3.0, np.nan], size=(n, 18)) for n in (12, 9))
    background[0], rows[0] = 0.0, 0.0
    engine = TreeEngine(trees, make_background(trees, background))
    found = strongest_sets(engine, rows, index, order, 1, None, 1 << 40, 1)
    total = found.values.sum(axis=1) + engine.expected
    np.testing.assert_allclose(total, engine.predict(rows), atol=1e-9)
    if index is KSII:  # order 1 is the Shapley value, and order 2 of shap's matrices is half the pair
        first = strongest_sets(engine, rows, index, 1, 1, None, 1 << 40, 1)
        values = np.zeros((9, 18, 2))
        values[:, [players[0] for players in key_sets(first.keys, 18)]] = first.values
        np.testing.assert_allclose(values, engine.shap_values(rows), atol=1e-6)


def test_blocks_of_rows_and_the_strongest_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    grown = RandomTrees(rng, 8)
    for _ in range(4):
        grown.grow(5)
    trees = make_model(grown.coded().ensemble, np.arange(8, dtype=np.int32), 1 << 30, np.dtype("f8"))
    rows, background = rng.choice(6, size=(2, 40, 8)).astype(float)
    engine = TreeEngine(trees, make_background(trees, background))
    whole = strongest_sets(engine, rows, KSII, 3, 1, None, 1 << 30, 1)
    assert (np.diff(whole.strength) <= 0).all()
    monkeypatch.setattr(values_module, "_BLOCK_NUMBERS", 7 * len(whole.keys))
    monkeypatch.setattr(values_module, "_HELD_NUMBERS", 10)
    few = strongest_sets(engine, rows, KSII, 3, 1, 5, 1 << 30, 2)
    np.testing.assert_array_equal(few.keys, whole.keys[:5])
    np.testing.assert_allclose(few.values, whole.values[:, :5], atol=1e-12)
    np.testing.assert_allclose(few.strength, whole.strength[:5], atol=1e-12)
    np.testing.assert_allclose(few.total, whole.total, atol=1e-12)
    assert few.n_met == whole.n_met
    triples = strongest_sets(engine, rows, KSII, 3, 3, None, 1 << 30, 1)
    assert {len(players) for players in key_sets(triples.keys, 8)} == {3}
    with pytest.raises(fs.CapacityError, match="top_k"):
        strongest_sets(engine, rows, KSII, 3, 1, None, 1000, 1)


def deep_trees(rng: np.random.Generator, n_features: int) -> Any:
    grown = RandomTrees(rng, n_features)
    for _ in range(3):
        grown.grow(9, p_leaf=0.1)
    players = np.arange(n_features, dtype=np.int32)
    return make_model(grown.coded().ensemble, players, 1 << 30, np.dtype("f8"))


@pytest.mark.parametrize(("order", "weighted"), [(1, False), (2, False), (2, True), (3, False), (4, True)])
def test_many_rows_and_background_rows_get_what_each_gets_alone(order: int, weighted: bool) -> None:
    """More groups than a word has bits, and more background rows than are walked at once."""
    rng = np.random.default_rng(order)
    trees = deep_trees(rng, 11)
    rows, background = (rng.choice(6, size=(n, 11)).astype(float) for n in (150, 2200))
    weights = rng.dirichlet(np.ones(2200)) if weighted else np.full(2200, 1 / 2200)
    whole = make_sets(trees, make_background(trees, background, weights), KSII, order, None, 1)
    together = np.zeros((150, len(whole.keys), 1))
    whole.add(rows, together)
    alone = np.zeros_like(together)
    for part in np.array_split(np.arange(2200), 4):
        share = weights[part].sum()
        few = make_background(trees, background[part], weights[part] / share)
        mine = np.zeros_like(together)
        for first in range(0, 150, 50):
            sets = make_sets(trees, few, KSII, order, whole.keys, 1)
            sets.add(rows[first : first + 50], mine[first : first + 50])
        alone += share * mine
    np.testing.assert_allclose(together, alone, atol=1e-11)


def test_all_sets_or_those_that_meet_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    trees = deep_trees(rng, 40)
    rows, background = rng.choice(6, size=(2, 20, 40)).astype(float)
    engine = TreeEngine(trees, make_background(trees, background))
    found = []
    for as_quick in (0, 10**9):
        monkeypatch.setattr(set_module, "_AS_QUICK", as_quick)
        found.append(strongest_sets(engine, rows, STII, 3, 1, None, 1 << 30, 1))
        listed = make_sets(trees, make_background(trees, background), STII, 3, None, 1).keys
        assert (len(listed) == count_sets(40, 3)) == (as_quick == 0)
    np.testing.assert_array_equal(found[0].keys, found[1].keys)
    np.testing.assert_array_equal(found[0].values, found[1].values)


def test_keys_sort_by_size_and_say_who_is_in() -> None:
    keys = all_keys(range(5), 3, 5)
    sets = key_sets(keys, 5)
    assert sets == [S for s in (1, 2, 3) for S in combinations(range(5), s)]
    assert (np.diff(keys) > 0).all() and len(keys) == count_sets(5, 3)
    for size in (1, 2, 3):
        mine = set_keys(np.array(list(combinations(range(5), size))), 5)
        assert mine.min() >= first_key(size, 5) > max([0, *keys[[len(S) < size for S in sets]]])
    with pytest.raises(fs.CapacityError, match="groups="):
        check_keys(5, 10_000)


def test_only_sets_that_meet_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    members = np.zeros((40, 60), dtype=bool)
    members[np.arange(40)[:, None], np.random.default_rng(0).integers(0, 60, size=(40, 6))] = True
    truth = {S for line in members for s in (1, 2, 3) for S in combinations(np.flatnonzero(line).tolist(), s)}
    monkeypatch.setattr(set_module, "_CHUNK", 50)
    assert set(key_sets(keys_within(members, 3), 60)) == truth
    monkeypatch.setattr(set_module, "MOST_LISTED", 100)
    with pytest.raises(fs.CapacityError, match="lower order"):
        keys_within(members, 3)


def test_what_cannot_be_paid_is_told_before_it_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    grown = RandomTrees(rng, 70)
    grown.chain(400)
    trees = make_model(grown.coded().ensemble, np.arange(70, dtype=np.int32), 1 << 30, np.dtype("f8"))
    rows = rng.choice(6, size=(5, 70)).astype(float)
    with pytest.raises(fs.CapacityError, match="players"):
        make_sets(trees, make_background(trees, rows), KSII, 3, None, 1)
    small = RandomTrees(rng, 8)
    small.grow(6, p_leaf=0.0)
    trees = make_model(small.coded().ensemble, np.arange(8, dtype=np.int32), 1 << 30, np.dtype("f8"))
    engine = TreeEngine(trees, make_background(trees, rows[:, :8]))
    seconds, why = engine.interactions(KSII, 3).seconds(rows[:, :8])
    assert 0 <= seconds < 10 and "1 trees" in why
    monkeypatch.setattr(tree_sets.TreeSets, "seconds", lambda self, rows: (1e4, "many trees"))
    with pytest.warns(fs.CostWarning, match="many trees"):
        strongest_sets(engine, rows[:, :8], KSII, 3, 1, None, 1 << 30, 1)


def test_the_share_of_a_set_larger_than_the_game_is_nothing() -> None:
    assert all(unanimity_share(index, 3, 3, 2) == 0 for index in EVERY)
