"""Bins, least squares and evidence against their definitions."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fouriershap import Spectrum
from fouriershap._fourier.bch import list_positions, make_code
from fouriershap._fourier.fit import refit, term_scores, weigh
from fouriershap._fourier.hashing import characters, coded_hash, locate, mean_square, measure, random_hash
from fouriershap._fourier.peeling import Stage, read_keys, related
from fouriershap._fourier.queries import Queries

seeds = st.integers(0, 2**32 - 1)


class Recorder:
    def __init__(self, h):
        self.h, self.rows, self.answers = h, [], []

    def __call__(self, rows):
        self.rows.append(rows.copy())
        self.answers.append(self.h(rows))
        return self.answers[-1]


def random_spectrum(rng, n_bits, n_terms, degree):
    bits = np.zeros((n_terms, n_bits), dtype=bool)
    for line in bits:
        line[rng.choice(n_bits, rng.integers(0, degree + 1), replace=False)] = True
    return Spectrum(bits, rng.normal(size=n_terms))


def measured_hashes(rng, spectrum, n_hashes, coded=True, noise=0.0):
    code = make_code(spectrum.n_bits, 3)
    asked = Recorder(lambda rows: spectrum(rows, n_jobs=1) + noise * rng.normal(size=len(rows)))
    queries = Queries(asked, spectrum.n_bits, 10**6 if spectrum.n_bits > 20 else 1)
    make = (lambda: coded_hash(code, 3, 2, rng)) if coded else (lambda: random_hash(code, 3, 2, rng))
    measured = [measure(queries, make(), 0.0)[0] for _ in range(n_hashes)]
    asked.unit = queries.unit  # what answers are counted in
    return code, measured, asked


@settings(max_examples=30, deadline=None)
@given(seed=seeds, coded=st.booleans())
def test_bins_hold_their_terms(seed, coded):
    rng = np.random.default_rng(seed)
    spectrum = random_spectrum(rng, 30, 12, 3)
    _, (bins,), asked = measured_hashes(rng, spectrum, 1, coded)
    plan, expected = bins.hash, np.zeros_like(bins.values)
    for frequency, coefficient in zip(spectrum.frequencies, spectrum.coefficients, strict=True):
        index = sum(int(row @ frequency) % 2 << i for i, row in enumerate(plan.matrix))
        expected[index] += coefficient * (-1.0) ** (plan.points @ frequency)
    np.testing.assert_allclose(bins.values, expected / asked.unit, atol=1e-12)
    index, signs = locate(bins, list_positions(spectrum.frequencies, 3))
    np.testing.assert_array_equal(
        characters(signs, bins.n_shifts), (-1.0) ** (spectrum.frequencies @ plan.points.T)
    )
    assert np.isclose(mean_square([bins]), bins.n_bins * (bins.values**2).sum() / bins.values.size)


@settings(max_examples=30, deadline=None)
@given(seed=seeds)
def test_a_single_term_is_read_from_its_signs(seed):
    rng = np.random.default_rng(seed)
    spectrum = random_spectrum(rng, 30, 1, 3)
    code, (bins,), _ = measured_hashes(rng, spectrum, 1)
    positions = list_positions(spectrum.frequencies, 3)
    index, _ = locate(bins, positions)
    key = read_keys(bins, bins.values, index, Stage.SIGNS)[:, 0]
    assert np.array_equal(code.decode(key)[0], positions)


@settings(max_examples=60, deadline=None)
@given(seed=seeds)
def test_the_largest_of_three_terms_in_a_bin_is_among_the_ordered_flips(seed):
    rng = np.random.default_rng(seed)
    code, (bins,), _ = measured_hashes(rng, random_spectrum(rng, 30, 1, 3), 1)
    bits = np.zeros((400, 30), dtype=bool)
    for line in bits:
        line[rng.choice(30, 3, replace=False)] = True
    positions = list_positions(np.unique(bits, axis=0), 3)
    index, signs = locate(bins, positions)
    together = np.flatnonzero(index == np.bincount(index).argmax())[:3]
    amplitudes = np.sort(rng.uniform(0.1, 1, 3))[::-1]
    left = np.zeros_like(bins.values)
    left[index[together[0]]] = amplitudes @ characters(signs[together], bins.n_shifts)
    keys = [read_keys(bins, left, index[together[:1]], s)[0] for s in (Stage.SIGNS, Stage.ORDERED_FLIPS)]
    wrong = (left[index[together[0]], : len(bins.hash.shift_keys) + 1] < 0) != (
        characters(signs[together[:1]], bins.n_shifts)[0, : len(bins.hash.shift_keys) + 1] < 0
    )
    target = np.bitwise_xor.reduce(code.bit_words[positions[together[0]]], axis=0)
    # At most 55 % of the signs are flipped.
    assert wrong.mean() > 0.55 or (np.concatenate(keys) == target).all(axis=1).any()


@settings(max_examples=20, deadline=None)
@given(seed=seeds, coded=st.booleans())
def test_refit_is_least_squares_on_the_answers(seed, coded):
    rng = np.random.default_rng(seed)
    spectrum = random_spectrum(rng, 30, 15, 3)
    _, measured, asked = measured_hashes(rng, spectrum, 3, coded, noise=0.5)
    start = rng.normal(size=len(spectrum))
    fit = refit(measured, list_positions(spectrum.frequencies, 3), start)
    rows, answers = np.concatenate(asked.rows), np.concatenate(asked.answers) / asked.unit
    design = (-1.0) ** (rows @ spectrum.frequencies.T)
    expected, *_ = np.linalg.lstsq(design, answers, rcond=None)
    np.testing.assert_allclose(fit.coefficients, expected, atol=1e-9)
    assert np.isclose(fit.rss, ((answers - design @ expected) ** 2).sum())


def test_evidence_separates_terms_from_noise():
    rng = np.random.default_rng(0)
    spectrum = Spectrum(np.eye(30, dtype=bool)[:5], np.ones(5))
    _, measured, _ = measured_hashes(rng, spectrum, 4, noise=0.3)
    positions = list_positions(np.eye(30, dtype=bool), 3)
    evidence = weigh(measured, tuple(b.values for b in measured), positions, 1e-15)
    fit = refit(measured, positions, np.zeros(30))
    assert (term_scores(measured, fit, 1e-15)[:5] > 10).all()
    assert (term_scores(measured, fit, 1e-15)[5:] < 6).all()
    assert evidence.z[:5].min() > evidence.z[5:].max()
    assert evidence.bins.shape == (4, 30)


def test_related_terms_are_subsets_and_one_bit_supersets():
    code = make_code(30, 3)
    bits = np.zeros((2, 30), dtype=bool)
    bits[0, [1, 2, 3]] = bits[1, [2, 7]] = True
    found = {tuple(p[p < 30]) for p in related(code, list_positions(bits, 3))}
    subsets = {(), (1,), (2,), (3,), (7,), (1, 2), (1, 3), (2, 3)}
    assert found == subsets | {(1, 2, 7), (2, 3, 7)}
