"""The exponential definition: values and interactions from all coalitions. For few players."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._shapley.indices import Index, InteractionIndex, class_moments, moments, unanimity_share
from fouriershap._shapley.sets import Keys, QuickInteractions, key_sets

Floats = NDArray[np.float64]


def coalitions_of(n_players: int) -> NDArray[np.bool_]:
    """Return who belongs to each coalition, (2^n_players, n_players): bit j of its number is player j."""
    return np.asarray(np.arange(1 << n_players)[:, None] >> np.arange(n_players) & 1 == 1)


def coalition_weights(coalitions: NDArray[np.bool_], index: Index) -> Floats:
    """Return what v of each of these coalitions (n_coalitions, n_players) adds to the values of players.

    The weights are (n_players, n_coalitions).
    """
    n_players = coalitions.shape[1]
    if not index.subgames:
        return _weights(coalitions, moments(index, n_players))
    out = np.zeros(coalitions.T.shape)
    for game in index.subgames:
        members = np.eye(game.n_merged, dtype=np.int64)[game.merged]  # (n_players, n_merged)
        count = coalitions @ members
        joined = count == members.sum(axis=0)
        chance = (joined | (count == 0)).all(axis=1).astype(np.float64)  # of the other classes
        for number, law in enumerate(game.laws[1:], start=1):
            mine = joined[:, game.kind == number]
            n = mine.sum(axis=1)
            chance *= class_moments(law, mine.shape[1])[n, mine.shape[1] - n]
        mine = joined[:, game.kind == 0]
        out[game.own] = _weights(mine, class_moments(game.laws[0], mine.shape[1]))[: len(game.own)] * chance
    return out


def _weights(coalitions: NDArray[np.bool_], by_size: Floats) -> Floats:
    """Return the weights (n_players, n_coalitions) of players who join with one t, whose moments are ``by_size``."""
    size, n_players = coalitions.sum(axis=1), coalitions.shape[1]
    joining = by_size[np.maximum(size - 1, 0), n_players - np.maximum(size, 1)]
    leaving = by_size[size, np.maximum(n_players - 1 - size, 0)]
    return np.asarray(np.where(coalitions.T, joining, -leaving))


def values_of_game(v: Floats, n_players: int, index: Index) -> Floats:
    """Return the values (n_players, n_outputs) of a game (2^n_players, n_outputs)."""
    return np.asarray(coalition_weights(coalitions_of(n_players), index) @ v)


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
