"""Where levels are rare: queries in which a few players that matter take a level at random.

Two rare levels (mutations, letters at a site) seldom meet in a hybrid of two data rows, so what they do together is
hardly ever asked, though the rows that are explained later may well bring them together. A first fit tells which
players matter. A part of the budget then goes to hybrids in which some of these change to levels drawn evenly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

RARE = 0.1  # share of the data rows under which a level is rare
ROWS_PER_LEVEL = 4  # on average; fewer make a scale of numbers, whose neighbours say the same
SHARE = 0.5  # of the hybrids that are changed where rare levels are all that matters
N_CHANGED = 2  # players of a hybrid: more lead too far from the data
FLATTENED = 0.25  # power of the importance: those that seem to matter little are asked, too


@dataclass(frozen=True, eq=False)
class RareLevels:
    """The players that have a rare level.

    Attributes
    ----------
    players : (n,) int64
    levels : tuple of int arrays
        For each of them, one data row of each of its levels.
    n_players : int
        Of all.
    """

    players: NDArray[np.int64]
    levels: tuple[NDArray[np.int64], ...]
    n_players: int

    def importance(
        self,
        predict: Callable[[NDArray[np.int32]], Floats],
        index: NDArray[np.int32],
        rng: np.random.Generator,
    ) -> Floats:
        """Mean square change (n_players,) of a prediction when a player changes.

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
        """Of the hybrids to change: what the rare players have of all importance, at most `SHARE`."""
        flat = importance**FLATTENED
        return SHARE * float(flat[self.players].sum() / max(flat.sum(), np.finfo(float).tiny))

    def change(
        self, index: NDArray[np.int32], importance: Floats, rng: np.random.Generator
    ) -> NDArray[np.int32]:
        """Hybrids (n, n_players) with some players, drawn by importance, at levels drawn evenly."""
        out = index.copy()
        with np.errstate(divide="ignore"):
            weight = FLATTENED * np.log(importance[self.players])
        drawn = weight + rng.gumbel(
            size=(len(index), len(self.players))
        )  # the largest: a draw without return
        for place in np.argsort(-drawn, axis=1)[:, :N_CHANGED].T:
            for k in np.unique(place):
                rows = np.flatnonzero(place == k)
                out[rows, self.players[k]] = rng.choice(self.levels[k], len(rows))
        return out


def find_rare(pool_codes: Floats, player: NDArray[np.int32], n_players: int) -> RareLevels:
    """Players of whom some level is in few data rows.

    Parameters
    ----------
    pool_codes : (n_pool, n_features) float64
    player : (n_features,) int32
        The owner of each feature.
    """
    players, levels = [], []
    codes = np.where(np.isnan(pool_codes), np.inf, pool_codes)  # missing is a level like any other
    for p in range(n_players):
        _, first, count = np.unique(codes[:, player == p], axis=0, return_index=True, return_counts=True)
        if 1 < len(first) <= len(codes) / ROWS_PER_LEVEL and count.min() < RARE * len(codes):
            players.append(p)
            levels.append(first)
    return RareLevels(np.array(players, dtype=np.int64), tuple(levels), n_players)
