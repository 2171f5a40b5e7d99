"""Ways in which a sparse transform can fail, and what keeps it from failing silently."""

from __future__ import annotations

import numpy as np
import pytest

from fouriershap import FidelityWarning, Spectrum, sparse_walsh_hadamard, walsh_hadamard
from fouriershap._fourier.bch import make_code
from fouriershap._fourier.sparse_transform import Search, recover
from sparse_models import Model, assert_equal, r_squared, random_spectrum, same_terms

pytestmark = pytest.mark.filterwarnings("error::fouriershap.FidelityWarning")


@pytest.mark.parametrize(("n_terms", "n_seeds", "most"), [(100, 5, 4_500), (None, 10, 4_200)])
def test_ties(n_terms, n_seeds, most):
    """Two equal terms in a bin cancel exactly: half of its signs say nothing."""
    for seed in range(n_seeds):
        model = Model(random_spectrum(seed, 40, 100, amplitudes="equal"))
        assert_equal(model.spectrum, sparse_walsh_hadamard(model, 40, n_terms, random_state=seed))
        assert model.count <= most


def test_overloaded_bins_are_not_taken_for_noise():
    """The first bins hold 60 terms each, which looks like white noise; larger ones must follow."""
    model = Model(random_spectrum(0, 40, 1000))
    assert_equal(model.spectrum, sparse_walsh_hadamard(model, 40, random_state=0))
    assert model.count <= 1.6 * 22_000


def test_correlated_terms_pass_the_gate():
    """Pairs that share bins in several hashes look inconsistent; every one of them must be found."""
    for seed in range(1000, 1040):
        model = Model(random_spectrum(seed, 40, 100))
        # For up to 200 terms there are 64 bins.
        assert_equal(model.spectrum, sparse_walsh_hadamard(model, 40, 200, random_state=seed))


@pytest.mark.parametrize("n_terms", [100, None])
def test_noise_adds_no_terms_and_reaches_the_least_squares_limit(n_terms):
    gaps = []
    for seed in range(3):
        model = Model(random_spectrum(seed, 40, 100), noise=0.1)
        found = sparse_walsh_hadamard(model, 40, n_terms, budget=6_000, random_state=seed)
        assert model.count <= 6_000
        assert r_squared(model.spectrum, found) >= 0.9995
        true = {f.tobytes() for f in model.spectrum.frequencies}
        assert sum(f.tobytes() not in true for f in found.frequencies) <= 1
        gaps.append(1 - 100 * 0.01 / model.count - r_squared(model.spectrum, found))
    assert np.median(gaps) <= 2e-4


def test_too_few_queries_fail_loudly():
    """Below what the number of terms needs, next to nothing is found: the certificate says so."""
    spectrum = random_spectrum(0, 40, 400)
    with pytest.warns(FidelityWarning):
        found = sparse_walsh_hadamard(Model(spectrum), 40, budget=2_500, random_state=0)
    assert r_squared(spectrum, found) < 0.9
    recovery = recover(Search(Model(spectrum), 40, budget=2_500, random_state=0))
    assert recovery.fidelity == pytest.approx(r_squared(spectrum, found), abs=0.15)


# Beyond the degree


def alias(code, n_bits, degree, rng):
    """Bits of a term of this degree that has all parities of another, of degree <= the code's, and of that one."""
    while True:
        starts = np.argsort(rng.random((4000, n_bits)), axis=1)[:, :degree]
        keys = np.bitwise_xor.reduce(code.bit_words[starts], axis=1)
        positions, valid = code.decode(keys)
        for start, low in zip(starts[valid], positions, strict=True):
            low = low[low < n_bits]
            if not np.isin(low, start).any():
                return start, low


@pytest.mark.parametrize("n_terms", [150, None])
@pytest.mark.parametrize("degree", [6, 7, 8, 9])
def test_planted_alias_is_never_silent(n_terms, degree):
    """A term f' = f + codeword: to the code alone it is f, in every bin of every hash."""
    rng = np.random.default_rng(degree)
    for seed in range(3):
        high, low = alias(make_code(40, 5), 40, degree, rng)
        line = np.zeros((1, 40), dtype=bool)
        line[0, high] = True
        spectrum = random_spectrum(seed, 40, 60) + Spectrum(line, [2.0])
        recovery = recover(Search(Model(spectrum), 40, n_terms, budget=6_000, random_state=seed))
        assert len(low) <= 5
        assert recovery.fidelity < 0.95
        assert recovery.fidelity == pytest.approx(r_squared(spectrum, recovery.spectrum), abs=0.1)


def test_degree_above_the_limit_warns_and_leaves_the_rest_right():
    low, high = random_spectrum(0, 40, 60), random_spectrum(1, 40, 12, degree=8, least_degree=6)
    with pytest.warns(FidelityWarning, match="max_degree"):
        found = sparse_walsh_hadamard(Model(low + high), 40, 60, random_state=0, budget=8_000)
    assert {f.tobytes() for f in low.frequencies} <= {f.tobytes() for f in found.frequencies}
    assert_equal(low + high, sparse_walsh_hadamard(Model(low + high), 40, 80, max_degree=8, random_state=0))


# Codes that are too long, cubes that are too small


def test_more_than_63_syndrome_bits():
    assert make_code(1000, 7).bit_words.shape[1] == 2
    model = Model(random_spectrum(1, 1000, 30, degree=7))
    assert_equal(model.spectrum, sparse_walsh_hadamard(model, 1000, 30, max_degree=7, random_state=0))


def test_thirteen_bits_cost_less_than_the_cube_where_the_function_is_sparse():
    model = Model(random_spectrum(0, 13, 20))
    assert_equal(model.spectrum, sparse_walsh_hadamard(model, 13, random_state=0))
    assert model.count < 2**13


def test_thirteen_dense_bits_are_asked_once_each_and_keep_the_largest_terms():
    values = np.random.default_rng(0).normal(size=2**13)
    asked = []

    def h(rows):
        asked.extend((rows.astype(np.int64) @ (1 << np.arange(13))).tolist())
        return values[asked[-len(rows) :]]

    with pytest.warns(FidelityWarning):
        found = sparse_walsh_hadamard(h, 13, 50, budget=10_000, random_state=0)
    assert len(asked) == len(set(asked)) == 2**13
    assert same_terms(walsh_hadamard(values, 13).prune(max_terms=50), found)
