"""SHAP values of the model itself: rows known beforehand, refining, and the certificate of the values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import fouriershap as fs
import oracles
from fouriershap._blackbox import refine
from fouriershap._blackbox.paths import differing, draw_paths
from fouriershap._blackbox.shap_certificate import reserved_queries, row_cost
from strategies import generators

N = 8


def rough(rows):
    """Too sharp for few answers."""
    return (
        np.tanh(3 * rows[:, 0] * rows[:, 1])
        + np.sign(rows[:, 2]) * rows[:, 3]
        + 0.2 * rows[:, 4:].sum(axis=1)
    )


@pytest.fixture(scope="module")
def numbers():
    return np.random.default_rng(0).normal(size=(500, N))


def fitted(X, **options):
    options = {
        "data": X[40:],
        "method": "waves",
        "budget": 500,
        "random_state": 0,
        "min_fidelity": -9,
    } | options
    return fs.BlackBoxExplainer(rough, X[:40], **options)


@pytest.fixture(scope="module")
def explainer(numbers):
    return fitted(numbers)


@pytest.fixture(scope="module")
def truth(numbers):
    return oracles.shap_values(rough, numbers[100:125], numbers[:40])[..., 0]


def missed(values, truth):
    return ((values - truth) ** 2).sum() / ((truth - truth.mean()) ** 2).sum()


@given(generators())
@settings(max_examples=20, deadline=None)
def test_a_permutation_and_its_reverse_are_exact_on_pairs(rng):
    matrix = rng.normal(size=(5, 5))
    codes = rng.integers(0, 3, size=(4, 5)).astype(float)
    differs = differing(codes[0], codes[1:], np.arange(5, dtype=np.int32), 5)
    paths = draw_paths(differs, np.zeros(3, dtype=int), np.arange(1, 4), 2, rng)
    points = codes[paths.index, np.arange(5)]

    def game(rows):
        return np.einsum("ri,ij,rj->r", rows, matrix, rows)

    found = paths.estimates(game(points)[:, None]).mean(axis=2)
    for other, pairs in zip(codes[1:], found, strict=True):
        exact = oracles.shap_values(game, codes[:1], other[None])[0]
        for each in pairs:
            np.testing.assert_allclose(each, exact, atol=1e-10)
    assert len(points) <= 3 * 2 * 2 * (differs.sum(axis=1).max() + 1)


def test_refining_helps_and_adds_up_to_the_model(numbers, explainer, truth):
    rows = numbers[100:125]
    plain = missed(explainer.shap_values(rows), truth)
    refined = [explainer.fit.refine(rows, pairs=pairs) for pairs in (1, 2)]
    assert missed(refined[1], truth) < missed(refined[0], truth) < 0.5 * plain
    outputs = rough(rows) - rough(numbers[:40]).mean()
    for values in refined:
        np.testing.assert_allclose(values.sum(axis=1), outputs, atol=1e-9)


def test_refining_by_very_few_queries_does_no_harm(numbers, truth):
    """One background row: a single pair of permutations per row, most of it chance."""
    X = np.concatenate([numbers[:1], numbers[40:]])
    explainer = fs.BlackBoxExplainer(
        rough, X[:1], data=X[1:], method="waves", budget=3000, random_state=0, min_fidelity=-9
    )
    rows = numbers[100:125]
    exact = oracles.shap_values(rough, rows, X[:1])[..., 0]
    assert missed(explainer.fit.refine(rows, pairs=1), exact) < missed(explainer.shap_values(rows), exact)


@given(generators())
@settings(max_examples=30, deadline=None)
def test_what_may_all_be_chance_moves_no_row_away_from_the_truth(rng):
    """Whatever the truth is, as long as its sum is the model's."""
    values, truth, beyond = rng.normal(size=(3, 6, 2))
    differs = rng.random(6) < 0.7
    differs[0] = True
    truth[~differs] = values[~differs]  # known there
    beyond[~differs] = 0
    beyond[0] += (truth - values).sum(axis=0) - beyond.sum(axis=0)
    moved = values + refine._drawn_in(beyond, np.full(2, np.inf), differs)
    np.testing.assert_allclose(moved.sum(axis=0), truth.sum(axis=0), atol=1e-9)
    assert (((moved - truth) ** 2).sum(axis=0) <= ((values - truth) ** 2).sum(axis=0) + 1e-12).all()


@pytest.mark.parametrize(("n_background", "pairs"), [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2)])
def test_pairs_that_agree_by_accident_do_no_harm(n_background, pairs):
    """A parity of signs: few permutations often say the same, and the wrong thing."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 4))

    def parity(rows):
        return np.sign(rows[:, :3]).prod(axis=1) + 0.3 * rows[:, 3]

    explainer = fs.BlackBoxExplainer(
        parity, X[:n_background], data=X, method="waves", budget=300, random_state=0, min_fidelity=-9
    )
    rows = X[100:140]
    exact = oracles.shap_values(parity, rows, X[:n_background])[..., 0]
    plain, refined = explainer.shap_values(rows), explainer.fit.refine(rows, pairs=pairs)
    by_row = [((values - exact) ** 2).sum(axis=1) for values in (plain, refined)]
    assert (by_row[1] <= by_row[0] + 1e-9).all()


def test_refining_does_not_end_at_a_compressed_background():
    rng = np.random.default_rng(1)
    n = 11
    X = rng.normal(size=(40, n)) @ (np.eye(n) + 0.4 * rng.normal(size=(n, n)))
    weights, outer = rng.normal(size=(n, 12)) / 3, rng.normal(size=12)

    def network(rows):
        return np.tanh(rows @ weights) @ outer

    share = rng.random(40)
    share[:4] = 0
    options = {"weights": share, "method": "waves", "budget": 1000, "random_state": 0, "min_fidelity": -9}
    compressed, exact = (
        fs.BlackBoxExplainer(network, X, compress_background=not every, **options) for every in (False, True)
    )
    assert compressed.fidelity.background > 0 and exact.fidelity.background == 0
    values = [each.fit.refine(X[:2], pairs=2) for each in (compressed, exact)]
    np.testing.assert_allclose(*values, atol=1e-9)
    assert np.abs(compressed.shap_values(X[:2]) - exact.shap_values(X[:2])).max() > 1e-4


def test_values_against_all_rows_do_not_depend_on_the_blocks(explainer, numbers, monkeypatch):
    _, codes = explainer.fit.encode(numbers[100:103])
    share = np.random.default_rng(0).random(40)
    share[8:16] = 0  # a block of nothing
    background = explainer.fit.background[0], share / share.sum()
    whole = refine.values_against_all(explainer.fit._result, codes, background)
    monkeypatch.setattr(refine, "_CELLS", 8 * N)
    np.testing.assert_allclose(
        refine.values_against_all(explainer.fit._result, codes, background), whole, atol=1e-9
    )
    other = explainer.with_background(numbers[:40], weights=share)
    np.testing.assert_allclose(whole[..., 0], other.shap_values(numbers[100:103]), atol=1e-6)


@pytest.mark.parametrize("outputs", [[0.1], [0.0], [1 / 3, 2 / 3], [1e8 / 3]])
def test_of_a_constant_nothing_is_missed(numbers, outputs):
    def constant(rows):
        return np.tile(outputs, (len(rows), 1))

    explainer = fs.BlackBoxExplainer(constant, numbers[:40], budget=3000, random_state=0)  # no warning
    assert explainer.fidelity.shap == explainer.fit.certify(numbers[:20], queries=2000) == (1, 1, 1)


@pytest.mark.parametrize("method", ["waves", "trees"])
def test_an_output_that_is_constant_is_not_missed(numbers, method):
    """A class that the model never names."""

    def two(rows):
        return np.stack([np.full(len(rows), 0.3), 0.3 + np.tanh(rows[:, 0] * rows[:, 1])], axis=1)

    explainer = fs.BlackBoxExplainer(
        two, numbers[:40], method=method, budget=500, random_state=0, min_fidelity=-9
    )
    assert explainer.fidelity.by_output[0] == 1
    assert np.abs(explainer.shap_values(numbers[:5])[..., 0]).max() < 1e-12


def test_rows_known_beforehand_are_explained_better(numbers, explainer, truth):
    known = fitted(numbers, rows=numbers[100:125])
    assert known.fidelity.n_queries <= 500
    rows = numbers[100:125]
    assert missed(known.shap_values(rows), truth) < missed(explainer.shap_values(rows), truth)
    with pytest.raises(fs.InputError, match="rows"):
        fitted(numbers, rows=numbers[:5, :3])


def test_few_rows_known_beforehand_do_not_save_queries():
    """Their hybrids are soon all asked; what is left of the budget goes to others."""
    X = np.random.default_rng(0).normal(size=(300, 6))
    options = {"data": X, "method": "trees", "budget": 4000, "random_state": 0, "min_fidelity": -9}
    explainer = fs.BlackBoxExplainer(lambda rows: rows.sum(axis=1), X[:10], rows=X[:1], **options)
    assert explainer.fidelity.n_queries == 4000


def test_the_certificate_is_unbiased_and_holds(numbers, explainer, truth):
    rows = numbers[100:125]
    true = 1 - missed(explainer.shap_values(rows), truth)
    pool, _ = explainer.fit.encode(rows)
    found = np.array([explainer.fit._certify(pool, 25 * row_cost(N), [seed]) for seed in range(60)])
    error = found[:, 0].std() / np.sqrt(len(found))
    assert abs(found[:, 0].mean() - true) < 4 * error + 0.002
    holds = (found[:, 1] <= true) & (true <= found[:, 2])
    assert holds.mean() >= 0.9
    one = explainer.fit.certify(rows, queries=25 * row_cost(N))
    assert one.low <= one.r2 <= one.high <= 1
    assert explainer.fit.certify(rows, queries=25 * row_cost(N)) == one


def test_certify_says_what_is_too_little(numbers, explainer, tmp_path):
    with pytest.raises(fs.InputError, match="queries is 10"):
        explainer.fit.certify(numbers[:5], queries=10)
    explainer.save(tmp_path / "box.fshap")
    with pytest.raises(fs.InputError, match="asks the model"):
        fs.load(tmp_path / "box.fshap").fit.certify(numbers[:5], queries=1000)


def test_fitting_certifies_within_its_budget(numbers):
    assert reserved_queries(500, N) == 0  # too few rows to say anything
    asked = []

    def counted(rows):
        asked.append(len(rows))
        return rough(rows)

    explainer = fs.BlackBoxExplainer(
        counted, numbers[:40], data=numbers[40:], method="waves", budget=4000, random_state=0, min_fidelity=-9
    )
    assert sum(asked) <= 4000 and explainer.fidelity.n_queries == sum(asked)
    found = explainer.fidelity.shap
    assert found is not None and found.low < found.r2 <= found.high
    assert "SHAP R^2" in repr(explainer)


def test_a_single_row_known_beforehand_has_no_certificate():
    """There is no spread among values of one row; the whole budget is for the fit."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    asked = []

    def counted(rows):
        asked.append(len(rows))
        return rows[:, 0] * rows[:, 1]

    options = {"method": "trees", "budget": 600, "random_state": 0, "min_fidelity": -9}
    for known in ({"rows": X[:1]}, {"data": X[:1]}):
        asked.clear()
        explainer = fs.BlackBoxExplainer(counted, X, **options, **known)
        assert explainer.fidelity.shap is None and explainer.fidelity.n_queries == sum(asked) <= 600
    two = fs.BlackBoxExplainer(counted, X, **options, rows=X[:2])
    assert two.fidelity.shap is not None


def test_another_background_has_no_certificate_of_the_first():
    X = np.random.default_rng(0).normal(size=(60, 2))
    explainer = fs.BlackBoxExplainer(
        lambda rows: rows[:, 0] * rows[:, 1], X, method="trees", budget=600, random_state=0, min_fidelity=-9
    )
    other = explainer.with_background(X[:1] + 3)
    assert explainer.fidelity.shap is not None and other.fidelity.shap is None
    assert "SHAP" not in repr(other)
    assert other.fit.certify(X[:20], queries=300) != explainer.fit.certify(X[:20], queries=300)
