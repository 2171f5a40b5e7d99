"""Hybrids: rows that take some players from one data row and the rest from another.

SHAP values only ever see a model on such rows, so this is where it is asked.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

PURE_SHARE = 0.05
BACKGROUND_SHARE = 0.5
KNOWN_SHARE = 0.8  # of the hybrids, where the rows to be explained are known


def second_rows(n_background: int, n_pool: int) -> NDArray[np.int64]:
    """Return rows for the second row of a pair, each as often as it is to be drawn; background rows come first.

    About half are background rows: the values that are asked for first mix rows with these and no others. The
    rest keep the representation faithful for other backgrounds.
    """
    others = n_pool - n_background
    times = round(BACKGROUND_SHARE / (1 - BACKGROUND_SHARE) * others / n_background)
    return np.concatenate([np.tile(np.arange(n_background), max(times, 1)), np.arange(n_background, n_pool)])


def draw_hybrids(
    n: int,
    n_players: int,
    rows: NDArray[np.int64],
    others: NDArray[np.int64],
    rng: np.random.Generator,
) -> NDArray[np.int32]:
    """Draw random hybrids as the data row of each player, (n, n_players) int32.

    ``rows`` and ``others`` are those from which the first and the second row of a pair are drawn. The number of
    players taken from the first follows the Shapley kernel, 1 / (s (n_players - s)); a share of the rows is pure.
    """
    first = rng.choice(rows, n).astype(np.int32)
    second = rng.choice(others, n).astype(np.int32)
    size = np.full(n, n_players)
    if n_players > 1:
        s = np.arange(1, n_players)
        kernel = 1.0 / (s * (n_players - s))
        size = rng.choice(s, n, p=kernel / kernel.sum())
        size[rng.random(n) < PURE_SHARE] = n_players
    rank = rng.random((n, n_players)).argsort(axis=1).argsort(axis=1)
    return np.where(rank < size[:, None], first[:, None], second[:, None])


def hybrid_codes(
    pool_codes: NDArray[np.float64], player: NDArray[np.int32], index: NDArray[np.int32]
) -> NDArray[np.float64]:
    """Return codes (n, n_features) of hybrids ``index`` (n, n_players)."""
    return pool_codes[index[:, player], np.arange(len(player))]
