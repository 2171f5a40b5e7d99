"""The `tree_tables` kernel in NumPy: what `tree_tables.cpp` must compute. Arrays are documented here."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

WIDTH = 8


class Blocks(NamedTuple):
    """Blocks of trees and their leaves.

    Attributes
    ----------
    n_patterns ... fail
        As `tree_blocks_numpy.cut_trees` returns them.
    leaf_values : (n_nodes, width) float64
    nodes, nodes_start : float64, int64
        Quadrature for u players: from ``nodes_start[u]``, first the nodes, then the weights.
    """

    n_patterns: NDArray[np.int32]
    feature_start: NDArray[np.int64]
    feature_states: NDArray[np.int32]
    leaf_start: NDArray[np.int64]
    leaf_node: NDArray[np.int32]
    leaf_player_start: NDArray[np.int64]
    leaf_players: NDArray[np.int32]
    leaf_ratio: NDArray[np.float64]
    fail_start: NDArray[np.int64]
    fail: NDArray[np.uint32]
    leaf_values: NDArray[np.float64]
    nodes: NDArray[np.float64]
    nodes_start: NDArray[np.int64]


class Layout(NamedTuple):
    """Positions of tables, and the players of their columns.

    Attributes
    ----------
    table_block, table_offset : (n_tables,) int32, int64
        Block of a table, and its place in ``values``.
    table_slots : (n_tables, n) int32
        The column of each player of a table's block, or of each pair i < j of them, number ``j (j - 1) / 2 + i``
        (-1: another table).
    order : int
        1 for players, 2 for pairs.
    """

    table_block: NDArray[np.int32]
    table_offset: NDArray[np.int64]
    table_slots: NDArray[np.int32]
    order: int


class Games(NamedTuple):
    """Games of a structured index (see `fouriershap._shapley.structure.Subgame`).

    Attributes
    ----------
    leaf_owner : int32
        As ``leaf_players``, among all players.
    game_of : (n_players,) int32
        Game that gives a player its value.
    merged, kind : (n_games, n_players) int32
        Player of the merged game that a player belongs to, and the class of that.
    laws : (n_games, n_classes) int32
        Law of the t of each class: 0 for uniform, 1 for t = 1, 2 for t = 0.
    """

    leaf_owner: NDArray[np.int32]
    game_of: NDArray[np.int32]
    merged: NDArray[np.int32]
    kind: NDArray[np.int32]
    laws: NDArray[np.int32]


def fill(
    blocks: Blocks,
    layout: Layout,
    histograms: NDArray[np.float64],
    histogram_offset: NDArray[np.int64],
    first_table: int,
    last_table: int,
    values: NDArray[Any],
    reached: NDArray[np.float64],
    games: Games | None,
) -> None:
    """Fill the tables of tree blocks.

    With c[X] the share of the background that fails exactly the players X of a leaf, a row that fails F
    (z of them) gives, per unit of leaf value, by an integral over t in [0, 1] of
    ``Z(t) = sum over X disjoint from F of c[X] t^|X|``: to a failing player ``-(1 - t)^(z - 1) Z(t)``, to a
    passing player j ``(1 - t)^z (the part of Z(t) with j in X) / t``. A pair of players gets the product of both:
    a failing one takes a factor -1 and one power of 1 - t, a passing one its part of Z(t) and a factor 1 / t.

    Parameters
    ----------
    histograms, histogram_offset : float64, (n_blocks + 1,) int64
        Share of the background on each pattern of each block, (n_patterns, n_channels): each channel weights the
        background on its own, and its outputs follow those of the one before. Empty for path-dependent values. Pairs
        have one channel.
    values : float32 or float64, written
    reached : (n_leaves, n_channels) float64, written
        Share of the background that reaches each leaf.
    games : Games, optional
        Of a structured index: in each of them, players of the merged game take the places of players, those of a
        class have a t of their own, and the integral is over all t. ``nodes`` are those for uniform t.
    """
    table_block, table_offset, table_slots, order = layout
    block_patterns, feature_start, feature_states, leaf_start, leaf_node = blocks[:5]
    leaf_player_start, leaf_players, leaf_ratio, fail_start, fail, leaf_values, nodes, nodes_start = blocks[
        5:
    ]
    width, n_channels = leaf_values.shape[1], reached.shape[1]
    for t in range(first_table, last_table):
        b = int(table_block[t])
        table = np.zeros((n_channels, width, block_patterns[b], WIDTH))
        states = feature_states[feature_start[b] : feature_start[b + 1]]
        for leaf in range(leaf_start[b], leaf_start[b + 1]):
            mine = slice(leaf_player_start[leaf], leaf_player_start[leaf + 1])
            u = mine.stop - mine.start
            masks = np.zeros(1, dtype=np.uint32)
            at = fail_start[leaf]
            for n in states:  # mixed radix, first feature fastest
                masks = (masks[None, :] | fail[at : at + n, None]).reshape(-1)
                at += n
            t_nodes, weights = nodes[nodes_start[u] : nodes_start[u + 1]].reshape(2, -1)
            positions = leaf_players[mine].tolist()
            chosen = [(j,) for j in range(u)] if order == 1 else list(combinations(range(u), 2))
            if len(histograms):
                c = np.zeros((1 << u, n_channels))
                np.add.at(c, masks, histograms[histogram_offset[b] : histogram_offset[b] + block_patterns[b]])
                reached[leaf] = c[0]
                if games is None:
                    phi = np.stack([_interventional(each, u, chosen, t_nodes, weights) for each in c.T])
                else:
                    owner, rules = games.leaf_owner[mine], (nodes, nodes_start)
                    phi = np.stack([_by_games(each, owner, games, *rules) for each in c.T])
            else:
                reached[leaf] = leaf_ratio[mine].prod()
                phi = _path_dependent(leaf_ratio[mine], chosen, t_nodes, weights)[None]
            for k, members in enumerate(chosen):
                slot = table_slots[t, _number(*(positions[j] for j in members))]
                if slot >= 0:
                    table[..., slot] += leaf_values[leaf_node[leaf]][:, None] * phi[:, None, masks, k]
        values[table_offset[t] : table_offset[t] + table.size] = table.reshape(-1)


def _number(*positions: int) -> int:
    """Return the number of a player, or of a pair i < j: j (j - 1) / 2 + i."""
    if len(positions) == 1:
        return positions[0]
    i, j = sorted(positions)
    return j * (j - 1) // 2 + i


def _interventional(
    c: NDArray[np.float64],
    u: int,
    chosen: Sequence[tuple[int, ...]],
    t: NDArray[np.float64],
    weights: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return phi (2^u, chosen): by the players that the row fails, for each player or pair."""
    subsets = np.arange(1 << u)
    z = c[:, None] * t ** np.bitwise_count(subsets)[:, None]
    for bit in range(u):  # z[P] becomes the sum over the subsets of P
        has = subsets >> bit & 1 == 1
        z[has] += z[subsets[has] ^ 1 << bit]
    phi = np.zeros((1 << u, len(chosen)))
    for failed in subsets.tolist():
        n_failed = failed.bit_count()
        for k, members in enumerate(chosen):
            fails = [j for j in members if failed >> j & 1]
            passes = [j for j in members if not failed >> j & 1]
            part = np.zeros_like(t)  # of Z, the sets that hold all of `passes`
            for r in range(len(passes) + 1):
                for left_out in combinations(passes, r):
                    held = (1 << u) - 1 ^ failed ^ sum(1 << j for j in left_out)
                    part += (-1) ** r * z[held]
            power = (1 - t) ** (n_failed - len(fails)) / t ** len(passes)
            phi[failed, k] = (-1) ** len(fails) * (weights * power * part).sum()
    return phi


def _by_games(
    c: NDArray[np.float64],
    owner: NDArray[np.int32],
    games: Games,
    nodes: NDArray[np.float64],
    nodes_start: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return phi (2^u, u): by the players that the row fails, for each player."""
    u = len(owner)
    failing = np.arange(1 << u)[:, None] >> np.arange(u) & 1 == 1
    phi = np.zeros((1 << u, u))
    for j in range(u):
        game = games.game_of[owner[j]]
        units, unit = np.unique(games.merged[game][owner], return_inverse=True)
        kind = np.zeros(len(units), dtype=np.int64)
        kind[unit] = games.kind[game][owner]
        fails = np.zeros((1 << u, len(units)), dtype=bool)
        for k in range(u):
            fails[:, unit[k]] |= failing[:, k]
        points: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = []
        for number in np.unique(kind):
            law, n = games.laws[game, number], int((kind == number).sum()) // 2 + 1
            rule = nodes[nodes_start[2 * n - 1] : nodes_start[2 * n]].reshape(2, -1)
            fixed = np.array([float(law == 1)]), np.ones(1)
            points.append((rule[0], rule[1]) if law == 0 else fixed)
        t = np.meshgrid(*(each[0] for each in points), indexing="ij")
        weight = np.prod(np.meshgrid(*(each[1] for each in points), indexing="ij"), axis=0).reshape(-1)
        t_unit = np.stack(t)[np.unique(kind, return_inverse=True)[1]].reshape(len(units), -1)
        others = np.arange(len(units)) != unit[j]
        for row in range(1 << u):
            alive = ~(fails & fails[row]).any(axis=1)
            factors = np.where(fails[:, :, None], t_unit, np.where(fails[row][:, None], 1 - t_unit, 1.0))
            worth = factors[:, others].prod(axis=1) @ weight * c * alive
            sign = fails[:, unit[j]] * 1.0 - fails[row, unit[j]]
            phi[row, j] = (worth * sign).sum()
    return phi


def _path_dependent(
    ratio: NDArray[np.float64],
    chosen: Sequence[tuple[int, ...]],
    t: NDArray[np.float64],
    weights: NDArray[np.float64],
) -> NDArray[np.float64]:
    u = len(ratio)
    phi = np.zeros((1 << u, len(chosen)))
    for failed in range(1 << u):
        passes = np.array([0.0 if failed >> j & 1 else 1.0 for j in range(u)])
        factors = t[:, None] * passes + (1 - t)[:, None] * ratio
        for k, members in enumerate(chosen):
            others = np.delete(factors, members, axis=1).prod(axis=1)
            change = (passes - ratio)[list(members)].prod()
            phi[failed, k] = (weights * change * others).sum()
    return phi
