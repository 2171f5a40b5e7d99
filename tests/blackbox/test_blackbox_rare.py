"""Queries with rare levels: which are changed, and what they are good for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fouriershap as fs
from fitted_models import explain_fitted
from fouriershap._blackbox import fit as _fit
from fouriershap._blackbox import hybrids as _rare


def pool(seed, n=400):
    """A rare flag, a fair one, a number, a label with a rare level, one that is seldom missing, a constant."""
    rng = np.random.default_rng(seed)
    seldom = np.where(rng.random(n) < 0.03, np.nan, rng.integers(0, 2, n))
    columns = [
        rng.random(n) < 0.05,
        rng.random(n) < 0.5,
        rng.normal(size=n),
        rng.choice(4, n, p=[0.4, 0.3, 0.25, 0.05]),
    ]
    return np.column_stack([*columns, seldom, np.ones(n)]).astype(float)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_players_with_a_rare_level_are_found(seed):
    codes = pool(seed)
    rare = _rare.find_rare(codes, np.arange(6, dtype=np.int32), 6)
    assert rare.players.tolist() == [0, 3, 4]
    for player, rows in zip(rare.players, rare.levels, strict=True):
        levels = np.unique(codes[:, player])  # NaN once
        np.testing.assert_array_equal(np.sort(codes[rows, player]), levels)


def test_a_group_of_columns_is_one_player():
    codes = pool(0)[:, :2]
    rare = _rare.find_rare(codes, np.zeros(2, dtype=np.int32), 1)
    assert rare.players.tolist() == [0] and len(rare.levels[0]) == 4


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_changes_are_few_and_go_to_what_matters(seed):
    rng = np.random.default_rng(seed)
    codes = (rng.random((500, 8)) < 0.04).astype(float)
    codes[:2, :] = [[0.0], [1.0]]
    rare = _rare.find_rare(codes, np.arange(8, dtype=np.int32), 8)
    importance = np.array([1.0, 1.0, 1e-8, 1e-8, 0, 0, 0, 0])
    index = np.repeat(rng.integers(0, 500, size=(3000, 1)), 8, axis=1).astype(np.int32)
    changed = rare.change(index, importance, rng)
    moved = changed != index
    assert moved.sum(axis=1).max() <= _rare.N_CHANGED
    assert moved[:, :2].mean() > 0.5 > 10 * moved[:, 2:4].mean()
    assert not moved[:, 4:].any()
    assert abs(codes[changed[:, 0], 0][moved[:, 0]].mean() - 0.5) < 0.1  # levels are drawn evenly
    assert 0 < rare.share(importance) <= _rare.SHARE
    none = np.zeros(8)
    assert rare.share(none) == 0.0


def rare_pairs(rows):
    """Flags that are rare alone, and a product of each with its neighbour."""
    return rows @ np.linspace(1, 2, rows.shape[1]) + 3 * (rows[:, ::2] * rows[:, 1::2]).sum(axis=1)


def exact_pairs(rows, background):
    """SHAP values of `rare_pairs` by its own spectrum."""
    n = rows.shape[1]
    masks = [1 << j for j in range(n)] + [3 << j for j in range(0, n, 2)]
    frequencies = [[mask >> j & 1 for j in range(n)] for mask in [0, *masks]]
    points = np.random.default_rng(0).integers(0, 2, size=(500, n))
    signs = 1 - 2 * ((points @ np.array(frequencies).T) % 2)
    h = fs.Spectrum(frequencies, np.linalg.lstsq(signs, rare_pairs(points), rcond=None)[0])
    return fs.spectra.shap_values(h, rows, background)


def test_rare_levels_that_seldom_meet_are_asked_together(monkeypatch):
    rng = np.random.default_rng(1)
    data = (rng.random((2000, 60)) < 0.03).astype(float)
    rows = np.zeros((20, 60))
    for row, pair in zip(rows, rng.permutation(30)[:20], strict=True):
        row[2 * pair : 2 * pair + 2] = 1
    truth = exact_pairs(rows, data[:10])

    def missed():
        explainer = explain_fitted(
            rare_pairs, data[:10], data=data, method="trees", budget=2000, random_state=0
        )
        assert explainer.fidelity.n_queries <= 2000
        return ((explainer.shap_values(rows) - truth) ** 2).sum() / ((truth - truth.mean()) ** 2).sum()

    with_rare = missed()
    monkeypatch.setattr(_fit, "find_rare", lambda codes, player, n: _rare.RareLevels(np.zeros(0, int), (), n))
    without = missed()
    assert with_rare < 0.07
    assert with_rare < 0.5 * without


@pytest.mark.parametrize("method", ["trees", "waves", "blend", "auto"])
def test_rare_rows_take_no_part_in_judging(monkeypatch, method):
    """Folds and certificate are hybrids; the other rows are in every fold's fit."""
    seen = {}
    choose = _fit.choose

    def watch(task, name, fits):
        seen["task"] = task
        return choose(task, name, fits)

    monkeypatch.setattr(_fit, "choose", watch)
    data = (np.random.default_rng(2).random((500, 20)) < 0.04).astype(float)
    explainer = explain_fitted(rare_pairs, data[:10], data=data, method=method, budget=600, random_state=0)
    task = seen["task"]
    assert 0 < (task.fold < 0).sum() <= 300
    assert task.codes[task.fold < 0].sum(axis=1).mean() > task.codes[task.fold >= 0].sum(axis=1).mean() + 0.5
    assert all(np.isfinite(line.r2) for line in explainer.fitted.candidates)
