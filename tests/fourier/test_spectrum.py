"""`Spectrum`: evaluation, arithmetic, profiles, pruning with its certificate."""

from __future__ import annotations

import copy
import pickle
from math import comb
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fouriershap as fs
import oracles
from strategies import generators, problems, random_frequencies, random_players, spectra

FEW = settings(max_examples=60, deadline=None)


def rows_for(h: fs.Spectrum, n_rows: int = 70, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2, size=(n_rows, h.n_bits))


def assert_same_function(one: fs.Spectrum, values: Any, X: np.ndarray, scale: float) -> None:
    np.testing.assert_allclose(one(X), values, rtol=0, atol=1e-12 * scale + 1e-300)


def size_of(h: fs.Spectrum) -> float:
    return float(np.abs(h.coefficients).sum())


@FEW
@given(spectra(max_bits=90), st.integers(0, 200))
def test_evaluation(h: fs.Spectrum, n_rows: int) -> None:
    X = rows_for(h, n_rows)
    expected = oracles.evaluate(h.frequencies, h.coefficients, X)
    assert h(X).shape == (n_rows, *h.coefficients.shape[1:])
    assert_same_function(h, expected, X, size_of(h))
    for dtype in (np.bool_, np.int8, np.float32, np.uint64):
        np.testing.assert_array_equal(h(X.astype(dtype)), h(X))
    np.testing.assert_array_equal(h(np.asfortranarray(X)), h(X))


def test_three_hundred_bits() -> None:
    rng = np.random.default_rng(3)
    frequencies = random_frequencies(rng, 500, 300, 300)
    h = fs.Spectrum(frequencies, rng.standard_normal(500))
    assert h.n_bits == 300
    assert h.degree > 290
    X = rows_for(h, 1000)
    np.testing.assert_allclose(h(X), oracles.evaluate(h.frequencies, h.coefficients, X), atol=1e-11)
    assert {tuple(f) for f in h.frequencies} == {tuple(f) for f in frequencies}
    product = h.prune(max_terms=20) * h.prune(max_terms=30)
    expected = h.prune(max_terms=20)(X) * h.prune(max_terms=30)(X)
    np.testing.assert_allclose(product(X), expected, atol=1e-11)


def test_more_rows_than_a_block() -> None:
    h = fs.Spectrum(np.eye(5), np.arange(5.0))
    X = rows_for(h, 20_001)
    np.testing.assert_allclose(h(X), oracles.evaluate(h.frequencies, h.coefficients, X), atol=1e-12)


def test_duplicate_frequencies_are_summed() -> None:
    h = fs.Spectrum([[1, 0], [0, 1], [1, 0]], [1.0, 5.0, 2.5])
    assert len(h) == 2
    assert h == fs.Spectrum([[1, 0], [0, 1]], [3.5, 5.0])


def test_terms_are_in_canonical_order() -> None:
    rng = np.random.default_rng(0)
    frequencies = np.unique(random_frequencies(rng, 50, 70, 5), axis=0)
    values = rng.standard_normal(len(frequencies))
    order = rng.permutation(len(frequencies))
    one, other = fs.Spectrum(frequencies, values), fs.Spectrum(frequencies[order], values[order])
    assert one == other
    assert (np.diff(one.degrees) >= 0).all()
    np.testing.assert_array_equal(one.degrees, one.frequencies.sum(axis=1))


def test_immutable() -> None:
    frequencies, values = np.eye(3), np.ones(3)
    h = fs.Spectrum(frequencies, values)
    values[0] = frequencies[0, 0] = 9.0
    np.testing.assert_array_equal(h.coefficients, np.ones(3))
    with pytest.raises(AttributeError, match="immutable"):
        h.energy = 3.0  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        h.coefficients[0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        h.degrees[0] = 1
    with pytest.raises(TypeError):
        hash(h)


@FEW
@given(spectra(max_bits=80))
def test_copies_and_equality(h: fs.Spectrum) -> None:
    for other in (pickle.loads(pickle.dumps(h)), copy.copy(h), copy.deepcopy(h)):
        assert other == h
        assert other.coefficients.shape == h.coefficients.shape
    assert h != "something else"
    if len(h):
        assert h != h * 2.0
        assert h != h + 1.0
    pruned = h.prune(max_terms=3)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(pruned)).prune_bound(), pruned.prune_bound())


def test_one_output_as_a_vector_and_as_a_column_differ() -> None:
    vector, column = fs.Spectrum([[1]], [1.0]), fs.Spectrum([[1]], [[1.0]])
    assert vector != column
    assert vector([[1]]).shape == (1,)
    assert column([[1]]).shape == (1, 1)
    assert "1 outputs" in repr(column)


@FEW
@given(spectra(n_bits=7), generators(), st.floats(-5, 5))
def test_arithmetic(h: fs.Spectrum, rng: np.random.Generator, number: float) -> None:
    frequencies = random_frequencies(rng, 12, 7, 7)
    g = fs.Spectrum(frequencies, rng.standard_normal((12, *h.coefficients.shape[1:])))
    X = oracles.all_rows(7)
    scale = size_of(h) + size_of(g) + 5.0
    assert_same_function(h + g, h(X) + g(X), X, scale)
    assert_same_function(h - g, h(X) - g(X), X, scale)
    assert_same_function(h * g, h(X) * g(X), X, scale**2)
    assert_same_function(-h, -h(X), X, scale)
    assert_same_function(h + number, h(X) + number, X, scale)
    assert_same_function(number - h, number - h(X), X, scale)
    assert_same_function(number * h, number * h(X), X, 5 * scale)
    assert_same_function(np.float64(number) * h, number * h(X), X, 5 * scale)
    assert_same_function(h / 4, h(X) / 4, X, scale)
    assert_same_function(h - 2, h(X) - 2, X, scale)


@FEW
@given(spectra(n_bits=6))
def test_profiles(h: fs.Spectrum) -> None:
    """Parseval: energy is the mean square over the cube, variance the variance."""
    values = h(oracles.all_rows(6)).reshape(64, -1)
    scale = max(h.energy, 1e-300)
    np.testing.assert_allclose(h.energy, (values**2).mean(axis=0).sum(), atol=1e-10 * scale)
    np.testing.assert_allclose(h.variance, values.var(axis=0).sum(), atol=1e-10 * scale)
    assert len(h.degree_profile()) == h.degree + 1
    np.testing.assert_allclose(h.degree_profile().sum(), h.energy, atol=1e-10 * scale)
    np.testing.assert_allclose(h.degree_profile()[1:].sum(), h.variance, atol=1e-10 * scale)
    curve = h.energy_curve()
    assert (np.diff(curve) >= 0).all()
    assert len(curve) == (h.degrees > 0).sum()
    if len(curve):
        np.testing.assert_allclose(curve[-1], 1.0)


def test_nothing_is_a_spectrum_too(tmp_path: Any) -> None:
    h = fs.Spectrum(np.zeros((0, 4)), [])
    assert (len(h), h.degree, h.energy) == (0, 0, 0.0)
    np.testing.assert_array_equal(h(np.ones((2, 4))), [0.0, 0.0])
    assert h + 1.0 == fs.Spectrum([[0] * 4], [1.0])
    h.save(tmp_path / "nothing.fshap")
    assert fs.load(tmp_path / "nothing.fshap") == h
    assert h.degree_profile().tolist() == [0.0]
    assert fs.Spectrum(np.zeros((0, 4)), np.zeros((0, 2)))(np.ones((2, 4))).shape == (2, 2)


# The paper's propositions


@settings(max_examples=25, deadline=None)
@given(generators(), st.integers(1, 4))
def test_proposition_1_sums_of_small_functions_are_sparse(rng: np.random.Generator, n_parts: int) -> None:
    """h = sum of functions of S_i: at most sum 2^|S_i| terms, of degree <= max |S_i|, each inside an S_i."""
    n_bits = 9
    X = oracles.all_rows(n_bits)
    sets = [rng.permutation(n_bits)[: rng.integers(1, 4)] for _ in range(n_parts)]
    values = np.zeros(len(X))
    for inside in sets:
        table = rng.standard_normal(1 << len(inside))
        values += table[(X[:, inside].astype(int) << np.arange(len(inside))).sum(axis=1)]
    h = fs.walsh_hadamard(values, n_bits)
    h = fs.Spectrum(
        h.frequencies[np.abs(h.coefficients) > 1e-12], h.coefficients[abs(h.coefficients) > 1e-12]
    )
    assert len(h) <= sum(1 << len(inside) for inside in sets)
    assert h.degree <= max(map(len, sets))
    for frequency in h.frequencies:
        assert any(set(np.flatnonzero(frequency)) <= set(inside.tolist()) for inside in sets)
    np.testing.assert_allclose(h(X), values, atol=1e-10)


@settings(max_examples=25, deadline=None)
@given(generators(), st.integers(0, 4), st.integers(4, 9))
def test_proposition_2_low_degree_is_sparse(rng: np.random.Generator, degree: int, n_bits: int) -> None:
    """A function of degree d, a polynomial of the bits, has at most sum_{i <= d} C(n, i) terms."""
    X = oracles.all_rows(n_bits).astype(float)
    values = np.zeros(len(X))
    for _ in range(300):
        monomial = rng.permutation(n_bits)[: rng.integers(0, degree + 1)]
        values += rng.standard_normal() * X[:, monomial].prod(axis=1)
    h = fs.walsh_hadamard(values, n_bits)
    kept = np.abs(h.coefficients) > 1e-10
    assert h.degrees[kept].max(initial=0) <= degree
    assert kept.sum() <= sum(comb(n_bits, i) for i in range(degree + 1))


# Pruning


@FEW
@given(spectra(max_bits=9), st.integers(0, 12))
def test_max_terms(h: fs.Spectrum, max_terms: int) -> None:
    pruned = h.prune(max_terms=max_terms)
    varying = int((h.degrees > 0).sum())
    assert (pruned.degrees > 0).sum() == min(max_terms, varying)
    assert (pruned.degrees == 0).sum() == (h.degrees == 0).sum()
    amplitude = np.abs(h.coefficients.reshape(len(h), h.n_outputs)).max(axis=1, initial=0.0)
    kept = np.abs(pruned.coefficients.reshape(len(pruned), h.n_outputs)).max(axis=1, initial=0.0)
    largest = np.sort(amplitude[h.degrees > 0])[::-1][:max_terms]
    np.testing.assert_array_equal(np.sort(kept[pruned.degrees > 0])[::-1], largest)


@FEW
@given(spectra(max_bits=9, outputs=False), st.floats(0.01, 1.0))
def test_energy(h: fs.Spectrum, share: float) -> None:
    """The fewest terms that hold the share: enough, and one less would not be."""
    pruned = h.prune(energy=share)
    assert pruned.variance >= share * h.variance * (1 - 1e-12)
    kept = np.sort(pruned.coefficients[pruned.degrees > 0] ** 2)
    if share < 1 and len(kept):
        assert pruned.variance - kept[0] < share * h.variance * (1 + 1e-12)


def test_the_papers_rule() -> None:
    """Keep 99.95 % of the energy, and drop only amplitudes below 0.005."""
    values = np.array([1.0, 0.5, 0.02, 0.0049, 0.004, 0.001])
    h = fs.Spectrum(np.eye(6), values)
    by_energy = h.prune(energy=0.9995)
    assert sorted(by_energy.coefficients) == [0.5, 1.0]
    both = h.prune(energy=0.9995, min_amplitude=0.005)
    assert sorted(both.coefficients) == [0.02, 0.5, 1.0]  # 0.02 lies beyond the energy, but is too large
    flat = fs.Spectrum(np.eye(6), np.full(6, 0.001))
    assert len(flat.prune(energy=0.9995, min_amplitude=0.005)) == 6  # small, but needed for the energy
    assert h.prune(min_amplitude=0.005).coefficients.size == 3
    assert h.prune() == h
    with_constant = h + 0.0001
    assert with_constant.prune(min_amplitude=10.0).coefficients.tolist() == [0.0001]


@settings(max_examples=80, deadline=None)
@given(problems(max_players=9), st.floats(0, 1), st.integers(0, 10))
def test_the_bound_holds(problem: Any, threshold: float, max_terms: int) -> None:
    """No SHAP value moves by more than the bound, after pruning once, twice, and after arithmetic."""
    h = problem.spectrum
    amplitude = threshold * np.abs(h.coefficients).max(initial=0.0)
    once = h.prune(min_amplitude=amplitude)
    twice = once.prune(max_terms=max_terms)

    def phi(spectrum: fs.Spectrum) -> np.ndarray:
        return fs.spectra.shap_values(spectrum, problem.X, problem.background, **problem.stage_two)

    pairs = [(h, once), (h, twice), (h * -3.0, twice * -3.0), (h + h, once + twice)]
    pairs += [(h * h, once * twice), (h * h, h * twice), (1.0 - h / 2, 1.0 - twice / 2)]
    for whole, pruned in pairs:
        bound = pruned.prune_bound(problem.players)
        rounding = 1e-10 * (size_of(whole) + 1e-300)
        assert (np.abs(phi(whole) - phi(pruned)) <= bound + rounding).all()
    assert not h.prune_bound().any()


def test_the_bound_can_be_reached() -> None:
    h = fs.Spectrum([[1, 0], [1, 1]], [1.0, 0.25])
    pruned = h.prune(max_terms=1)
    np.testing.assert_array_equal(pruned.prune_bound(), [0.5, 0.5])
    moved = fs.spectra.shap_values(h, [[0, 1]], [[0, 0]]) - fs.spectra.shap_values(pruned, [[0, 1]], [[0, 0]])
    np.testing.assert_allclose(np.abs(moved), [[0.0, 0.5]])


def test_the_bound_counts_a_term_once_per_player() -> None:
    rng = np.random.default_rng(2)
    h = fs.Spectrum(random_frequencies(rng, 40, 10, 10), rng.standard_normal((40, 2)))
    pruned = h.prune(max_terms=0)
    players = random_players(rng, 10, 4)
    expected = np.zeros((4, 2))
    for frequency, coefficient in zip(h.frequencies, h.coefficients, strict=True):
        for player in set(players[frequency].tolist()):
            expected[player] += 2 * np.abs(coefficient)
    np.testing.assert_allclose(pruned.prune_bound(players), expected)
