"""Hybrids: rows that take some players from one data row and the rest from another.

SHAP values only ever see a model on such rows, so this is where it is asked.

Two rare levels (mutations, letters at a site) seldom meet in a hybrid of two data rows, so what they do together
would hardly ever be asked, though the rows that are explained later may well bring them together. A first fit shows
which players matter. A part of the budget then goes to hybrids in which some of these change to levels drawn evenly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

PURE_SHARE = 0.05
BACKGROUND_SHARE = 0.5
KNOWN_SHARE = 0.8  # of the hybrids, where the rows to be explained are known
RARE = 0.1  # share of the data rows under which a level is rare
ROWS_PER_LEVEL = 4  # on average; fewer make a scale of numbers, whose neighbours behave the same
SHARE = 0.5  # of the hybrids that are changed where rare levels are all that matters
N_CHANGED = 2  # players of a hybrid: more lead too far from the data
FLATTENED = 0.25  # power of the importance: those that seem to matter little are asked, too


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


@dataclass(frozen=True, eq=False)
class RareLevels:
    """The players that have a rare level."""

    players: NDArray[np.int64]  # (n,)
    levels: tuple[NDArray[np.int64], ...]  # for each of them, one data row of each of its levels
    n_players: int  # of all

    def importance(
        self,
        predict: Callable[[NDArray[np.int32]], Floats],
        index: NDArray[np.int32],
        rng: np.random.Generator,
    ) -> Floats:
        """Return the mean square change (n_players,) of a prediction when a player changes.

        To a level drawn evenly where it has rare ones, else to that of another hybrid.
        """
        levels = dict(zip(self.players.tolist(), self.levels, strict=True))
        before, found = predict(index), np.empty(self.n_players)
        for player in range(self.n_players):
            changed = index.copy()
            changed[:, player] = rng.choice(levels.get(player, index[:, player]), len(index))
            found[player] = ((predict(changed) - before) ** 2).mean()
        return found

    def share(self, importance: Floats) -> float:
        """Return the share of hybrids to change: that of the rare players in all importance, at most `SHARE`."""
        flat = importance**FLATTENED
        return SHARE * float(flat[self.players].sum() / max(flat.sum(), np.finfo(float).tiny))

    def change(
        self, index: NDArray[np.int32], importance: Floats, rng: np.random.Generator
    ) -> NDArray[np.int32]:
        """Return hybrids (n, n_players) with some players, drawn by importance, at levels drawn evenly."""
        out = index.copy()
        with np.errstate(divide="ignore"):
            weight = FLATTENED * np.log(importance[self.players])
        drawn = weight + rng.gumbel(size=(len(index), len(self.players)))
        # The largest are a draw without return.
        for place in np.argsort(-drawn, axis=1)[:, :N_CHANGED].T:
            for k in np.unique(place):
                rows = np.flatnonzero(place == k)
                out[rows, self.players[k]] = rng.choice(self.levels[k], len(rows))
        return out


def find_rare(pool_codes: Floats, player: NDArray[np.int32], n_players: int) -> RareLevels:
    """Find players of whom some level is in few data rows; ``player`` owns each feature."""
    players, levels = [], []
    codes = np.where(np.isnan(pool_codes), np.inf, pool_codes)  # missing is a level like any other
    for p in range(n_players):
        _, first, count = np.unique(codes[:, player == p], axis=0, return_index=True, return_counts=True)
        if 1 < len(first) <= len(codes) / ROWS_PER_LEVEL and count.min() < RARE * len(codes):
            players.append(p)
            levels.append(first)
    return RareLevels(np.array(players, dtype=np.int64), tuple(levels), n_players)
