"""Counts of queries, invariance, the whole cube, and the "robust" algorithm."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fouriershap import sparse_walsh_hadamard, walsh_hadamard
from fouriershap._fourier.bch import make_code
from fouriershap._fourier.sparse_transform import Search, recover
from sparse_models import Model, assert_equal, r_squared, random_spectrum, same_terms

pytestmark = pytest.mark.filterwarnings("error::fouriershap.FidelityWarning")


# Invariance, determinism, counts


@pytest.mark.parametrize(
    ("scale", "offset"), [(1e6, 0.0), (1e-6, 0.0), (1.0, 1e6), (1e-3, 50.0), (-1.0, 0.0)]
)
@pytest.mark.parametrize("algorithm", ["coded", "robust"])
def test_scale_and_offset(scale, offset, algorithm):
    spectrum = random_spectrum(3, 40, 50)
    plain = sparse_walsh_hadamard(Model(spectrum), 40, 50, algorithm=algorithm, random_state=0)
    moved = Model(spectrum)
    found = sparse_walsh_hadamard(
        lambda rows: scale * moved(rows) + offset, 40, 50, algorithm=algorithm, random_state=0
    )
    assert_equal(spectrum, plain)
    varying = found.degrees > 0
    np.testing.assert_array_equal(found.frequencies[varying], spectrum.frequencies)
    np.testing.assert_allclose(found.coefficients[varying] / scale, spectrum.coefficients, atol=1e-6)
    np.testing.assert_allclose(found.coefficients[~varying].sum(), offset, rtol=1e-9)


@pytest.mark.parametrize("algorithm", ["coded", "robust"])
def test_the_seed_decides_everything(algorithm):
    def once(seed):
        asked = []
        model = Model(random_spectrum(4, 40, 30))
        h = lambda rows: (asked.append(rows.copy()), model(rows))[1]  # noqa: E731
        return sparse_walsh_hadamard(h, 40, 30, algorithm=algorithm, random_state=seed), np.concatenate(asked)

    (first, rows), (second, again), (_, other) = once(5), once(np.random.default_rng(5)), once(6)
    assert first == second
    assert np.array_equal(rows, again)
    assert not np.array_equal(rows, other)


@pytest.mark.parametrize(("n_bits", "n_terms", "degree"), [(40, 100, None), (80, 20, 3), (236, 100, 5)])
def test_number_of_queries_is_the_documented_one(n_bits, n_terms, degree):
    r = len(make_code(n_bits, degree or 5).rows)
    b = max(2, int(np.ceil(np.log2(n_terms / 4))))
    model = Model(random_spectrum(0, n_bits, n_terms, degree=degree or 5))
    recovery = recover(Search(model, n_bits, n_terms, max_degree=degree, random_state=0))
    assert model.count == recovery.n_queries == 200 + 3 * 2**b * (5 + r - b)


@pytest.mark.parametrize("degree", [None, 5])
def test_number_of_queries_of_robust(degree):
    model = Model(random_spectrum(0, 40, 100), noise=0.05)
    recovery = recover(Search(model, 40, 100, max_degree=degree, algorithm="robust", random_state=0))
    r = 40 if degree is None else 27
    assert model.count == recovery.n_queries == 200 + 3 * (128 + 3 * 64) * (1 + r)


@settings(max_examples=20, deadline=None)
@given(
    budget=st.integers(800, 6_000), seed=st.integers(0, 1000), algorithm=st.sampled_from(["coded", "robust"])
)
def test_the_budget_is_kept(budget, seed, algorithm):
    model = Model(random_spectrum(seed, 30, 40), noise=0.1)
    recovery = recover(Search(model, 30, budget=budget, algorithm=algorithm, max_degree=3, random_state=seed))
    assert model.count == recovery.n_queries <= budget


# The whole cube


@settings(max_examples=25, deadline=None)
@given(n_bits=st.integers(0, 10), seed=st.integers(0, 1000), algorithm=st.sampled_from(["coded", "robust"]))
def test_small_cubes_are_exact_and_asked_once(n_bits, seed, algorithm):
    values = np.random.default_rng(seed).normal(size=2**n_bits)
    asked = []

    def h(rows):
        points = rows.astype(np.int64) @ (1 << np.arange(n_bits))
        asked.extend(points.tolist())
        return values[points]

    found = sparse_walsh_hadamard(h, n_bits, algorithm=algorithm, random_state=seed)
    expected = walsh_hadamard(values, n_bits)
    assert same_terms(expected, found)
    np.testing.assert_allclose(found.coefficients, expected.coefficients, atol=1e-12)
    assert len(asked) == len(set(asked))


@pytest.mark.parametrize("algorithm", ["coded", "robust"])
def test_constants(algorithm):
    found = sparse_walsh_hadamard(
        lambda rows: np.full(len(rows), 3.5), 40, algorithm=algorithm, random_state=0
    )
    assert found.coefficients.tolist() == [3.5]
    assert len(sparse_walsh_hadamard(lambda rows: np.zeros(len(rows)), 40, algorithm=algorithm)) == 0


def test_single_precision_answers_end_the_search():
    model = Model(random_spectrum(0, 40, 50) + 10.0)
    found = sparse_walsh_hadamard(lambda rows: model(rows).astype(np.float32), 40, random_state=0)
    assert_equal(model.spectrum, found, tolerance=1e-5)
    assert model.count < 3_000


# Robust


@pytest.mark.parametrize("degree", [None, 5])
@pytest.mark.parametrize("n_terms", [60, None])
def test_robust(degree, n_terms):
    for seed in range(3):
        model = Model(random_spectrum(seed, 40, 60))
        arguments = {"max_degree": degree, "algorithm": "robust", "random_state": seed}
        assert_equal(model.spectrum, sparse_walsh_hadamard(model, 40, n_terms, **arguments))


def test_robust_without_a_degree_finds_all_degrees():
    model = Model(random_spectrum(0, 40, 30, degree=30))
    assert_equal(model.spectrum, sparse_walsh_hadamard(model, 40, 30, algorithm="robust", random_state=0))


def test_robust_under_noise():
    model = Model(random_spectrum(0, 40, 60), noise=0.1)
    found = sparse_walsh_hadamard(model, 40, 60, algorithm="robust", random_state=0)
    assert r_squared(model.spectrum, found) > 0.999
