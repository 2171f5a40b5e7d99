"""Random sparse spectra as black boxes, and how far what was found is from them."""

from __future__ import annotations

import numpy as np

from fouriershap import Spectrum


def random_spectrum(seed, n_bits, n_terms, *, degree=5, least_degree=1, amplitudes="uniform"):
    rng = np.random.default_rng(seed)
    lines = set()
    while len(lines) < n_terms:
        chosen = rng.choice(n_bits, rng.integers(least_degree, degree + 1), replace=False)
        lines.add(tuple(sorted(chosen.tolist())))
    frequencies = np.zeros((n_terms, n_bits), dtype=bool)
    for line, bits in zip(frequencies, sorted(lines), strict=True):
        line[list(bits)] = True
    signs = rng.choice([-1.0, 1.0], n_terms)
    return Spectrum(frequencies, signs * (rng.uniform(0.1, 1, n_terms) if amplitudes == "uniform" else 1.0))


class Model:
    """A spectrum as a black box: counts its rows, adds noise."""

    def __init__(self, spectrum, noise=0.0, seed=0):
        self.spectrum, self.count = spectrum, 0
        self.deviation = noise * np.sqrt(spectrum.variance)
        self.rng = np.random.default_rng(seed)

    def __call__(self, rows):
        self.count += len(rows)
        return self.spectrum(rows, n_jobs=1) + self.deviation * self.rng.normal(size=len(rows))


def r_squared(truth, found):
    return 1 - (truth - found).energy / truth.variance


def same_terms(truth, found):
    return np.array_equal(truth.frequencies, found.frequencies)


def assert_equal(truth, found, tolerance=1e-10):
    assert same_terms(truth, found)
    np.testing.assert_allclose(found.coefficients, truth.coefficients, atol=tolerance)
