"""The exponential definition: values and interactions from all coalitions. For few players."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._shapley.indices import moments

Floats = NDArray[np.float64]


def coalition_values(
    function: Callable[[NDArray[Any]], Floats],
    row: NDArray[Any],
    background: NDArray[Any],
    player: NDArray[np.int32],
    weights: Floats | None,
) -> Floats:
    """v(S), (2^n_players, n_outputs): the mean over the background, with the players of S from the row.

    Coalition S is a number whose bit j tells whether player j belongs to it. ``function`` takes rows (n, n_features)
    and returns (n, n_outputs).
    """
    n_players = int(player.max(initial=-1)) + 1
    share = np.full(len(background), 1 / len(background)) if weights is None else weights
    means = []
    for S in range(1 << n_players):
        member = (S >> player & 1).astype(bool)
        means.append(share @ function(np.where(member, row, background)))
    return np.stack(means)


def values_of_game(v: Floats, n_players: int, index: str) -> Floats:
    """Values (n_players, n_outputs) of a game (2^n_players, n_outputs)."""
    coalitions = np.arange(1 << n_players)
    size = np.bitwise_count(coalitions)
    weight = moments(index, n_players)
    out = np.empty((n_players, v.shape[1]))
    for i in range(n_players):
        without = coalitions[coalitions >> i & 1 == 0]
        change = v[without | 1 << i] - v[without]
        out[i] = weight[size[without], n_players - 1 - size[without]] @ change
    return out


@dataclass(frozen=True, eq=False)
class CoalitionPairs:
    """Interactions by the definition (see `PairEngine`); ``game`` makes v (2^n_players, n_outputs) of a row."""

    game: Callable[[NDArray[Any]], Floats]
    n_players: int
    n_outputs: int
    index: str
    rows_per_block: int = 1

    @property
    def pairs(self) -> NDArray[np.int32]:
        return np.stack(np.triu_indices(self.n_players, 1), axis=1).astype(np.int32)

    def add(self, rows: NDArray[Any], out: Floats) -> None:
        n = self.n_players
        coalitions = np.arange(1 << n)
        size = np.bitwise_count(coalitions)
        weight = moments(self.index, n)
        for r, row in enumerate(rows):
            v = self.game(row)
            for k, (i, j) in enumerate(self.pairs.tolist()):
                a, b = 1 << i, 1 << j
                S = coalitions[coalitions & (a | b) == 0]
                out[r, k] += weight[size[S], n - 2 - size[S]] @ (v[S | a | b] - v[S | a] - v[S | b] + v[S])
