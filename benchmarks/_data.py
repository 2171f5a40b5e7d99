"""Data of the benchmarks: a synthetic regression, and the paper's four data sets where a folder holds them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

N_FEATURES = 30
REGRESSION = (
    "30 uniform features, y = the sum of three Friedman #1 functions on the first 15 + unit noise; 15 features "
    "are noise"
)
AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"


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
    """At most ``n_rows`` rows of the paper's data set with so many bits, or of synthetic bits without it.

    The folder is the one that the environment variable FOURIERSHAP_DATA names.
    """
    file, read = _DATA_SETS[n_bits]
    folder = os.environ.get("FOURIERSHAP_DATA")
    rng = np.random.default_rng(random_state)
    if folder is None or not (Path(folder) / file).exists():
        return _synthetic_bits(n_bits, n_rows, rng)
    import pandas as pd

    X, y = read(pd.read_csv(Path(folder) / file))
    chosen = rng.permutation(len(X))[:n_rows]
    return BinaryData(file.split(".")[0], X[chosen].astype(np.float32), y[chosen])


def _synthetic_bits(n_bits: int, n_rows: int, rng: np.random.Generator) -> BinaryData:
    """A hundred products of up to four bits, with random signs and sizes, and a little noise."""
    X = rng.integers(0, 2, size=(n_rows, n_bits)).astype(np.float32)
    y = 0.1 * rng.standard_normal(n_rows)
    for _ in range(100):
        bits = rng.choice(n_bits, size=int(rng.integers(1, 5)), replace=False)
        y += rng.standard_normal() * X[:, bits].prod(axis=1)
    return BinaryData("synthetic bits", X, y)


def _one_hot(columns: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([column[:, None] == np.unique(column) for column in columns], axis=1)


def _entacmaea(frame: Any) -> tuple[np.ndarray, np.ndarray]:
    return frame.iloc[:, :13].to_numpy(), frame["brightness"].to_numpy()


def _sgemm(frame: Any) -> tuple[np.ndarray, np.ndarray]:
    settings, runs = frame.iloc[:, :14], frame.iloc[:, 14:18]
    return _one_hot([settings[name].to_numpy() for name in settings]), runs.mean(axis=1).to_numpy()


def _gb1(frame: Any) -> tuple[np.ndarray, np.ndarray]:
    measured = frame[frame["imputed"] == 0]
    letters = np.array([list(variant) for variant in measured["variant"]])
    bits = letters[:, :, None] == np.array(list(AMINO_ACIDS))
    return bits.reshape(len(bits), -1), measured["fitness"].to_numpy()


def _avgfp(frame: Any) -> tuple[np.ndarray, np.ndarray]:
    """Which sites are mutated; genotypes with the same sites are one row, with their mean brightness."""
    X = np.zeros((len(frame), 236), dtype=np.uint8)
    for row, mutations in zip(X, frame["aaMutations"].fillna(""), strict=True):
        row[[int(mutation[2:-1]) for mutation in mutations.split(":") if mutation]] = 1
    rows, which = np.unique(X, axis=0, return_inverse=True)
    total = np.bincount(which.reshape(-1), frame["medianBrightness"].to_numpy())
    return rows, total / np.bincount(which.reshape(-1))


_Reader = Callable[[Any], tuple[np.ndarray, np.ndarray]]
_DATA_SETS: dict[int, tuple[str, _Reader]] = {
    13: ("entacmaea.csv.gz", _entacmaea),
    40: ("sgemm_product.csv.gz", _sgemm),
    80: ("gb1.csv.gz", _gb1),
    236: ("avgfp.csv.gz", _avgfp),
}
