"""Players: which bits they own, and what a term looks like to them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import fouriershap as fs
import oracles
from fouriershap._rows.players import check_players
from fouriershap._shapley.spectrum.terms import make_terms
from strategies import Problem, problems


def test_one_player_per_bit_by_default() -> None:
    np.testing.assert_array_equal(check_players(None, 4), [0, 1, 2, 3])
    np.testing.assert_array_equal(check_players([1, 0, 1], 3), [1, 0, 1])
    assert check_players(np.array([0, 0], dtype=np.uint64), 2).dtype == np.int32
    assert check_players(None, 0).shape == (0,)


@pytest.mark.parametrize(
    ("players", "message"),
    [
        ([0, 1], "each of the 3 bits"),
        ([0, 1, 2, 3], "each of the 3 bits"),
        ([[0, 1, 2]], "each of the 3 bits"),
        ([0.0, 1.0, 2.0], "float64"),
        (["a", "b", "c"], "dtype"),
        ([0, -1, 1], "begin at 0"),
        ([0, 2, 2], r"skips \[1\]"),
        ([1, 1, 1], r"skips \[0\]"),
        ([0, 1, 10**15], r"skips \[2, 3\]"),
        ([[0], [1, 2], [3]], "players is not an array"),
    ],
)
def test_bad_players(players: Any, message: str) -> None:
    h = fs.Spectrum(np.eye(3), np.ones(3))
    X = np.zeros((1, 3))
    for call in (
        lambda: fs.spectra.shap_values(h, X, X, players=players),
        lambda: fs.spectra.plan(h, 1, 1, players=players),
        lambda: h.prune_bound(players),
    ):
        with pytest.raises(fs.InputError, match=message):
            call()


@settings(max_examples=60, deadline=None)
@given(problems(max_players=12))
def test_terms_are_products_of_atoms_of_distinct_players(problem: Problem) -> None:
    """The atoms of each term, multiplied, are its character; each belongs to another player."""
    h, X = problem.spectrum, problem.background
    terms = make_terms(h, problem.players)
    owner = np.arange(h.n_bits) if problem.players is None else problem.players
    values = terms.values(X)
    expected = oracles.characters(h.frequencies[h.degrees > 0], X)
    for k in range(terms.n_terms):
        mine = terms.atoms[terms.start[k] : terms.start[k + 1]]
        players = terms.atom_player[mine].tolist()
        assert len(set(players)) == len(players)
        assert set(players) == set(owner[h.frequencies[h.degrees > 0][k]].tolist())
        np.testing.assert_array_equal(1.0 - 2.0 * (values[mine].sum(axis=0) % 2), expected[:, k])
