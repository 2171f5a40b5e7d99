"""Data of the benchmarks: a synthetic regression, and the paper's data sets where they can be had."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import paper_data

N_FEATURES = 30
REGRESSION = (
    "30 uniform features, y = the sum of three Friedman #1 functions on the first 15 + unit noise; 15 features "
    "are noise"
)
NAMES = {13: "entacmaea", 40: "sgemm", 80: "gb1", 236: "avgfp"}


def regression(
    n_rows: int, random_state: int, firsts: tuple[int, ...] = (0, 5, 10)
) -> tuple[np.ndarray, np.ndarray]:
    """Rows (n_rows, 30) float32, targets (n_rows,): Friedman #1 (1991) on five features from each of ``firsts``."""
    rng = np.random.default_rng(random_state)
    X = rng.random((n_rows, N_FEATURES)).astype(np.float32)
    y = rng.standard_normal(n_rows)
    for first in firsts:
        a, b, c, d, e = X[:, first : first + 5].T.astype(np.float64)
        y += 10 * np.sin(np.pi * a * b) + 20 * (c - 0.5) ** 2 + 10 * d + 5 * e
    return X, y


@dataclass(frozen=True)
class BinaryData:
    """Rows of bits (n_rows, n_bits) float32 and what to learn from them."""

    label: str
    X: np.ndarray
    y: np.ndarray


def binary_data(n_bits: int, n_rows: int = 20_000, random_state: int = 0) -> BinaryData:
    """At most ``n_rows`` rows of the paper's data set with so many bits, or of synthetic bits without it."""
    rng = np.random.default_rng(random_state)
    try:
        data = paper_data.load(NAMES[n_bits])
    except paper_data.DatasetError:
        return _synthetic_bits(n_bits, n_rows, rng)
    chosen = rng.permutation(len(data.X))[:n_rows]
    return BinaryData(data.name, data.X[chosen].astype(np.float32), data.y[chosen])


def _synthetic_bits(n_bits: int, n_rows: int, rng: np.random.Generator) -> BinaryData:
    """A hundred products of up to four bits, with random signs and sizes, and a little noise."""
    X = rng.integers(0, 2, size=(n_rows, n_bits)).astype(np.float32)
    y = 0.1 * rng.standard_normal(n_rows)
    for _ in range(100):
        bits = rng.choice(n_bits, size=int(rng.integers(1, 5)), replace=False)
        y += rng.standard_normal() * X[:, bits].prod(axis=1)
    return BinaryData("synthetic bits", X, y)
