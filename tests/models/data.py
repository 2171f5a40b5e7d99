"""Rows and targets: numbers, codes of categories, frames; some of them missing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from fouriershap._libraries import Reading

N_ROWS = 300
LABELS = ["red", "green", "blue", "yellow", "black", "white", "a label of more than sixteen bytes"]


def numbers(missing: bool = False, n_features: int = 4, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_ROWS, n_features)).round(1)
    if missing:
        X[rng.random(X.shape) < 0.15] = np.nan
    return X


def target(X: np.ndarray) -> np.ndarray:
    Z = np.nan_to_num(X, nan=0.7)
    noise = np.random.default_rng(1).normal(size=len(Z)) * 0.1
    return Z[:, 0] * Z[:, 1] + np.sin(3 * Z[:, 2]) + (Z[:, -1] > 0.3) + noise


def classes(X: np.ndarray, n: int) -> np.ndarray:
    y = target(X)
    return np.searchsorted(np.quantile(y, np.arange(1, n) / n), y)


def counts(X: np.ndarray) -> np.ndarray:
    return np.floor(np.exp(target(X) / 2))


def coded(missing: bool = False) -> np.ndarray:
    """Rows whose last column holds the categories 0 to 8."""
    rng = np.random.default_rng(3)
    X = numbers(missing)
    X[:, -1] = rng.integers(0, 9, N_ROWS)
    if missing:
        X[rng.random(N_ROWS) < 0.1, -1] = np.nan
    return X


def coded_target(X: np.ndarray) -> np.ndarray:
    effect = np.array([3, -1, 0.5, 2, -2, 1, 0, 4, -3.0, 0.7])
    code = np.where(np.isnan(X[:, -1]), 9, X[:, -1]).astype(int)
    return target(X) + effect[code]


def frame(missing: bool = False) -> pd.DataFrame:
    """A frame with numbers, a categorical column of strings and one of integers."""
    rng = np.random.default_rng(4)
    X = numbers(missing)
    colour = rng.choice(LABELS, N_ROWS).astype(object)
    if missing:
        colour[rng.random(N_ROWS) < 0.1] = None
    return pd.DataFrame(
        {
            "a": X[:, 0],
            "colour": pd.Categorical(colour, categories=LABELS),
            "b": X[:, 1],
            "size": pd.Categorical(rng.choice([10, 20, 30, 40], N_ROWS)),
        }
    )


def frame_target(X: pd.DataFrame) -> np.ndarray:
    colour = X["colour"].cat.codes.to_numpy() % 3
    return np.nan_to_num(X["a"].to_numpy(), nan=1.0) * colour + (X["size"].cat.codes.to_numpy() % 2) * 2


def rows_of(reading: Reading, X: Any) -> np.ndarray:
    """Rows of numbers and codes (n_rows, n_features) float64 from an array or a frame."""
    columns = []
    for f in range(reading.n_features):
        column = X.iloc[:, f].to_numpy() if isinstance(X, pd.DataFrame) else np.asarray(X)[:, f]
        if (
            f not in reading.rules.vocabularies
            and isinstance(X, pd.DataFrame)
            and X.dtypes.iloc[f] == "category"
        ):
            codes = X.iloc[:, f].cat.codes.to_numpy()
            columns.append(np.where(codes < 0, np.nan, codes))
        elif f in reading.rules.vocabularies:
            if isinstance(X, pd.DataFrame):
                column = X.iloc[:, f].astype(object).to_numpy()  # integers beside missing values
            columns.append(reading.rules.category_codes(f, column))
        else:
            columns.append(column.astype(np.float64))
    return np.stack(columns, axis=1)
