"""The exponential definition: values and interactions from all coalitions. For few players."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._shapley.indices import Index, InteractionIndex, moments, unanimity_share
from fouriershap._shapley.sets import Keys, QuickInteractions, key_sets

Floats = NDArray[np.float64]


def coalition_values(
    function: Callable[[NDArray[Any]], Floats],
    row: NDArray[Any],
    background: NDArray[Any],
    player: NDArray[np.int32],
    weights: Floats | None,
) -> Floats:
    """Return v(S), (2^n_players, n_outputs): the mean over the background, with the players of S from the row.

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


def coalition_weights(coalitions: NDArray[np.bool_], index: Index) -> Floats:
    """Return what v of each of these coalitions (n_coalitions, n_players) adds to the values of players.

    The weights are (n_players, n_coalitions).
    """
    size, n_players = coalitions.sum(axis=1), coalitions.shape[1]
    if index.adds_up:
        chance = np.array([1 / (n_players * comb(n_players - 1, k)) for k in range(n_players)])
    else:
        chance = np.full(n_players, 0.5 ** (n_players - 1))
    joining, leaving = chance[np.maximum(size - 1, 0)], chance[np.minimum(size, n_players - 1)]
    return np.asarray(np.where(coalitions.T, joining, -leaving))


def values_of_game(v: Floats, n_players: int, index: Index) -> Floats:
    """Return the values (n_players, n_outputs) of a game (2^n_players, n_outputs)."""
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
class CoalitionInteractions(QuickInteractions):
    """Interactions by the definition (see `InteractionEngine`); ``game`` makes v (2^n_players, n_outputs) of a row."""

    game: Callable[[NDArray[Any]], Floats]
    n_players: int
    n_outputs: int
    index: InteractionIndex
    order: int
    keys: Keys
    rows_per_block: int = 1

    @cached_property
    def _shares(self) -> Floats:
        """(n_sets, 2^n_players): the share of each set in the games "all of these are in"."""
        coalitions = np.arange(1 << self.n_players)
        size = np.bitwise_count(coalitions)
        shares = np.zeros((len(self.keys), len(coalitions)))
        for k, players in enumerate(key_sets(self.keys, self.n_players)):
            mine = sum(1 << player for player in players)
            by_size = [
                float(unanimity_share(self.index, self.order, len(players), whole))
                for whole in range(self.n_players + 1)
            ]
            shares[k] = np.where(coalitions & mine == mine, np.array(by_size)[size], 0.0)
        return shares

    def add(self, rows: NDArray[Any], out: Floats) -> None:
        for r, row in enumerate(rows):
            out[r] += self._shares @ _dividends(self.game(row), self.n_players)


def _dividends(v: Floats, n_players: int) -> Floats:
    """Return the weights of the games "all of these are in" whose sum is v: its Moebius transform."""
    out = v.copy()
    for player in range(n_players):
        halves = out.reshape(-1, 2, 1 << player, v.shape[1])
        halves[:, 1] -= halves[:, 0]
    return out
