"""Partial dependence in engines: the worth of one player and of pairs, by each strategy, is the definition's."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_interactions import game_values

import fouriershap as fs
import oracles
from fouriershap._base.checks import check_memory
from fouriershap._shapley.engine import Engine
from fouriershap._shapley.indices import MAIN_EFFECT, SHAPLEY
from fouriershap._shapley.products.engine import ProductSettings, compile_products
from fouriershap._shapley.spectrum.engine import make_engine
from fouriershap._shapley.sum import SumEngine
from fouriershap._shapley.trees.engine import TreeEngine
from fouriershap._shapley.trees.model import make_background, make_model
from strategies import generators, random_frequencies, random_players
from tree_kernel_cases import ensembles
from tree_oracles import interventional_game, path_dependent_game
from wave_models import WaveProblem, definition, wave_problems


def check(engine: Engine, rows: np.ndarray, games: list[np.ndarray], tolerance: float = 1e-9) -> None:
    """Compare the means of all players and pairs with the worth of coalitions of each row."""
    n = engine.n_players
    sets = [*((i,) for i in range(n)), *((i, j) for j in range(n) for i in range(j))]
    found = engine.partial_means(rows, sets, 1)
    assert found.shape == (len(rows), len(sets), engine.n_outputs)
    for mine, game in zip(found, games, strict=True):
        want = np.array([game[sum(1 << i for i in players)] for players in sets])
        np.testing.assert_allclose(mine, want, atol=tolerance * max(1.0, np.abs(want).max()), rtol=0)


@given(
    ensembles(most_features=6),
    st.sampled_from(["tables", "stream", "walk", "auto"]),
    st.booleans(),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_trees_match_the_definition(
    model: Any, strategy: str, weighted: bool, is_path_dependent: bool
) -> None:
    coded, players, rng = model
    players = np.unique(players, return_inverse=True)[1].astype(np.int32)
    e = coded.ensemble
    choices = [*np.arange(-1.0, 9.0), np.nan]
    background, rows = (rng.choice(choices, size=(n, e.n_features)) for n in (6, 2))
    weights = rng.dirichlet(np.ones(6)) if weighted else None
    strategy = "auto" if is_path_dependent and strategy == "stream" else strategy
    trees = make_model(e, players, check_memory(None), np.dtype("f4"), strategy)
    engine = TreeEngine(trees, make_background(trees, None if is_path_dependent else background, weights))
    games = []
    for row in coded.book.encode(rows).T:
        if is_path_dependent:
            game = path_dependent_game(coded, row, players)
        else:
            game = interventional_game(coded, row, coded.book.encode(background), weights, players)
        games.append(game_values(game, trees.n_players))
    check(engine, rows, games)


@pytest.mark.parametrize("strategy", ["tables", "stream", "walk"])
def test_long_paths_keep_their_digits(strategy: str) -> None:
    """As many points as players, of which the first are close to 0 and divided by."""
    from tree_oracles import RandomTrees

    rng = np.random.default_rng(3)
    grown = RandomTrees(rng, 16, n_thresholds=5)
    for _ in range(3):
        grown.chain(20)
    coded = grown.coded(1, vector=False)
    trees = make_model(
        coded.ensemble, np.arange(16, dtype=np.int32), check_memory(None), np.dtype("f4"), strategy
    )
    assert trees.walk_trees.tree_players.max() >= 11
    background, rows = (rng.integers(0, 5, (n, 16)).astype(float) for n in (50, 8))
    engine = TreeEngine(trees, make_background(trees, background))
    found = engine.partial_means(rows, [(0,), (3, 7)], 1)
    for k, players in enumerate([[0], [3, 7]]):
        for row, mine in zip(rows, found[:, k], strict=True):
            hybrids = background.copy()
            hybrids[:, players] = row[players]
            np.testing.assert_allclose(mine, engine.predict(hybrids).mean(axis=0), atol=1e-9)


@given(generators(), st.integers(1, 7), st.integers(1, 3))
@settings(max_examples=25, deadline=None)
def test_spectra_match_the_definition(rng: np.random.Generator, n_bits: int, n_outputs: int) -> None:
    n_players = int(rng.integers(1, n_bits + 1))
    players = random_players(rng, n_bits, n_players)
    spectrum = fs.Spectrum(random_frequencies(rng, 12, n_bits, 5), rng.normal(size=(12, n_outputs)))
    X, background = (rng.integers(0, 2, size=(n, n_bits)).astype(np.uint8) for n in (3, 9))
    weights = rng.dirichlet(np.ones(9)) if rng.random() < 0.5 else None
    engine = make_engine(spectrum, background, players=players, weights=weights)
    check(engine, X, [oracles.coalition_values(spectrum, row, background, players, weights) for row in X])


@given(wave_problems())
@settings(max_examples=25, deadline=None)
def test_waves_match_the_definition_whatever_stands_for_the_background(problem: WaveProblem) -> None:
    rows = problem.rows[:2]
    given_ = (problem.waves, problem.background, problem.weights, SHAPLEY, ProductSettings())
    engine = compile_products(*given_)
    games = [definition(problem, row) for row in rows]
    check(engine, rows, games)
    check(SumEngine((engine, engine)), rows, [2 * game for game in games])


def test_the_index_of_main_effects_survives_pickling_and_is_no_option() -> None:
    assert pickle.loads(pickle.dumps(MAIN_EFFECT)) is MAIN_EFFECT
    X = np.zeros((3, 2))
    with pytest.raises(fs.InputError, match="main effect"):
        fs.SpectrumExplainer(fs.Spectrum([[1, 0]], [1.0]), X.astype(np.uint8), index="main effect")


def test_files_without_the_background_say_so() -> None:
    spectrum = fs.Spectrum([[1, 0], [1, 1]], [1.0, 2.0])
    engine = make_engine(spectrum, np.eye(2, dtype=np.uint8))
    with pytest.raises(fs.InputError, match="with_background"):
        replace(engine, kept_rows=engine.kept_rows[:0]).partial_means(np.eye(2, dtype=np.uint8), [(0,)])
