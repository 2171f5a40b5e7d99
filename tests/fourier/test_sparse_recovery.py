"""The sparse transform finds what is there: any size, any degree, noise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fouriershap import FidelityWarning, sparse_walsh_hadamard
from fouriershap._fourier.sparse_transform import Search, recover
from sparse_models import Model, assert_equal, r_squared, random_spectrum

pytestmark = pytest.mark.filterwarnings("error::fouriershap.FidelityWarning")


# Recovery without noise


@pytest.mark.parametrize(
    ("n_bits", "n_terms", "n_seeds", "most"),
    [(40, 100, 10, 3_200), (236, 100, 5, 4_500), (40, 1000, 2, 22_000)],
)
def test_known_number_of_terms(n_bits, n_terms, n_seeds, most):
    for seed in range(n_seeds):
        model = Model(random_spectrum(seed, n_bits, n_terms))
        found = sparse_walsh_hadamard(model, n_bits, n_terms, random_state=seed)
        assert_equal(model.spectrum, found)
        assert model.count <= most


@pytest.mark.parametrize(
    ("n_bits", "n_terms", "n_seeds", "most"), [(40, 100, 5, 5_120), (236, 100, 3, 7_200)]
)
def test_unknown_number_of_terms(n_bits, n_terms, n_seeds, most):
    for seed in range(n_seeds):
        model = Model(random_spectrum(seed, n_bits, n_terms))
        assert_equal(model.spectrum, sparse_walsh_hadamard(model, n_bits, random_state=seed))
        assert model.count <= most


@pytest.mark.parametrize("degree", [1, 2, 8])
def test_degrees(degree):
    model = Model(random_spectrum(2, 60, 40, degree=degree))
    assert_equal(model.spectrum, sparse_walsh_hadamard(model, 60, 40, max_degree=degree, random_state=0))


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), n_bits=st.integers(20, 120), n_terms=st.integers(1, 60))
def test_any_size(seed, n_bits, n_terms):
    model = Model(random_spectrum(seed, n_bits, min(n_terms, n_bits), degree=4))
    assert_equal(model.spectrum, sparse_walsh_hadamard(model, n_bits, random_state=seed))


def test_tree_like_functions_from_subsets():
    """All subsets of a support occur, with equal amplitudes: an AND of bits."""
    rng = np.random.default_rng(0)
    supports = [rng.choice(100, 5, replace=False) for _ in range(12)]

    def ands(rows):
        return sum((i + 1) * rows[:, s].all(axis=1) for i, s in enumerate(supports))

    recovery = recover(Search(ands, 100, random_state=0))
    rows = (rng.random((2000, 100)) < 0.9).astype(np.uint8)
    np.testing.assert_allclose(recovery.spectrum(rows), ands(rows), atol=1e-9)
    assert recovery.n_queries < 12_000


# Noise


@pytest.mark.parametrize("n_terms", [100, None])
def test_noise_of_one_percent_keeps_the_support(n_terms):
    for seed in range(3):
        model = Model(random_spectrum(seed, 40, 100), noise=0.01)
        found = sparse_walsh_hadamard(model, 40, n_terms, random_state=seed)
        known = {f.tobytes() for f in found.frequencies}
        assert {f.tobytes() for f in model.spectrum.frequencies} <= known
        assert len(found) <= 101  # where the number is unknown, at most a tiny constant more


def test_pure_noise_gives_no_terms():
    rng = np.random.default_rng(0)
    with pytest.warns(FidelityWarning):
        found = sparse_walsh_hadamard(
            lambda rows: rng.normal(size=len(rows)), 40, budget=5_000, random_state=0
        )
    assert len(found) == 0


def test_a_spectrum_that_is_not_sparse_is_pruned_not_overfitted():
    """100 large terms over a sea of 2,000 small ones with 5 % of the energy."""
    large, small = random_spectrum(0, 40, 100), random_spectrum(1, 40, 2000)
    small = small * float(np.sqrt(0.05 / 0.95 * large.variance / small.variance))
    model = Model(large + small)
    recovery = recover(Search(model, 40, budget=9_000, random_state=0))
    assert r_squared(model.spectrum, recovery.spectrum) > 0.93
    assert recovery.fidelity == pytest.approx(r_squared(model.spectrum, recovery.spectrum), abs=0.03)
