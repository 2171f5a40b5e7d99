"""SHAP values of a model by their definition: all coalitions, the model's own predictions of hybrid rows."""

from __future__ import annotations

from collections.abc import Callable
from math import factorial
from typing import Any

import numpy as np
import pandas as pd

from models import raw_output


def take(X: Any, rows: np.ndarray) -> Any:
    return X.iloc[rows].reset_index(drop=True) if isinstance(X, pd.DataFrame) else X[rows]


def hybrids(X: Any, background: Any, present: np.ndarray) -> Any:
    """For each coalition of columns, row and background row (in this order), one hybrid.

    ``present`` (n_coalitions, n_columns) bool.
    """
    shape = (len(present), len(X), len(background))
    coalition, row, other = (index.ravel() for index in np.indices(shape))
    if not isinstance(X, pd.DataFrame):
        return np.where(present[coalition], X[row], background[other])
    both = pd.concat([X, background], ignore_index=True)
    columns = {}
    for c, name in enumerate(X.columns):
        source = np.where(present[coalition, c], row, len(X) + other)
        columns[name] = both[name].take(source).reset_index(drop=True)
    return pd.DataFrame(columns)


def brute_force(
    model: Any,
    X: Any,
    background: Any,
    player: np.ndarray | None = None,
    weights: np.ndarray | None = None,
    output: Callable[[Any, Any], np.ndarray] = raw_output,
) -> tuple[np.ndarray, np.ndarray]:
    """SHAP values (n_rows, n_players, n_outputs), and the expected output (n_outputs,).

    ``player`` (n_columns,) is the owner of each column.
    """
    player = np.arange(X.shape[1]) if player is None else np.asarray(player)
    n = int(player.max()) + 1
    members = (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(bool)
    outputs = output(model, hybrids(X, background, members[:, player]))
    outputs = outputs.reshape(2**n, len(X), len(background), -1)
    worth = np.average(outputs, axis=2, weights=weights)
    phi = np.zeros((len(X), n, worth.shape[-1]))
    for code, present in enumerate(members):
        for i in np.flatnonzero(~present):
            size = int(present.sum())
            share = factorial(size) * factorial(n - size - 1) / factorial(n)
            phi[:, i] += share * (worth[code | 1 << i] - worth[code])
    return phi, worth[0, 0]


def with_outputs(values: np.ndarray) -> np.ndarray:
    """Values as (n_rows, n_players, n_outputs), also of one output."""
    return values if values.ndim == 3 else values[:, :, None]


def assert_within(got: np.ndarray, want: np.ndarray, tolerance: float, scale: float | None = None) -> None:
    """Compare to a share of the largest value."""
    assert got.shape == want.shape
    scale = max(np.abs(want).max(initial=0), 1e-12) if scale is None else scale
    assert np.abs(got - want).max(initial=0) <= tolerance * scale
