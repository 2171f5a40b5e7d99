"""Trees against a background, one bottom subtree at a time: the specification of the native ``stream`` family.

A *bottom subtree* is a node with one or two leaves below it. Its own player is that of the node's feature; the slots
are the other players on the way to it. A row (of either side) is in a state: it goes left at the node (0), right (1),
or it failed the own player further up (2). Each bottom subtree has a table by state and set of slots that a row
passes; it is built from the background, read by all rows, and dropped.

With probability t each player is the row's own, else the background's. Let X be the slots that a background row
fails, b its state, and c_b[X] the share of such rows. For an explained row in state a that passes the slots P and
fails the z others, both leaves go into one sum over the X within P:

    y(t)[P] = sum over X of t^|X| sum over b of c_b[X] (value of a at t, of b at 1 - t)

and integrals of y over t are all that its values need (see `_integrals`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriershap._kernels.walk_numpy import Codes, Floats, Trees, alive_pairs, moment_at

LEFT, RIGHT, NOWHERE = 0, 1, 2


class _BottomSubtree(NamedTuple):
    node: int
    own: int  # the node's player
    slots: list[int]  # the other players on the way
    fails: NDArray[np.bool_]  # (slots, columns): who fails them on the way
    state: NDArray[np.int64]  # (columns,)


class Index(NamedTuple):
    """An index: ``nodes`` and ``start`` as `indices.quadrature` gives them, ``moments`` as `indices.moments`.

    ``efficient``: values of all players add up to the change of the output.
    """

    nodes: Floats
    start: NDArray[np.int64]
    moments: Floats
    efficient: bool

    def points(self, n_players: int) -> tuple[Floats, Floats]:
        """Return points and weights that integrate over so many players."""
        return tuple(np.split(self.nodes[self.start[n_players] : self.start[n_players + 1]], 2))  # type: ignore[return-value]


def interventional(
    trees: Trees,
    codes: Codes,
    first_row: int,
    last_row: int,
    background: Codes,
    weights: Floats,
    index: Index,
    dense_bits: int,
    class_bits: int,
    merged_nodes: int,
    single: bool,
    out: Floats,
) -> None:
    """Add the interventional values of many rows.

    Parameters
    ----------
    first_row : int
        A multiple of 8. Both code matrices have columns up to the next multiple of 8, and ``len(weights)`` of the
        background's count. No path has more than 30 players.
    dense_bits, class_bits, merged_nodes : int
        Where the native family works otherwise, with the same values: with more than ``dense_bits`` slots there are
        tables for ``class_bits`` of them, and rows that are equal below a subtree of at most ``merged_nodes`` nodes
        are explained once.
    single : bool
        Whether tables are float32.
    out : (rows, n_players, n_outputs) float64
        Added to.
    """
    n_rows = last_row - first_row
    both = np.concatenate([codes[:, first_row:last_row], background[:, : len(weights)]], axis=1)
    for tree in range(len(trees.roots)):
        for subtree in _bottom_subtrees(trees, tree, both):
            leaves = trees.nodes[subtree.node, 2:]
            read = _by_table if len(subtree.slots) <= dense_bits else _by_pairs
            for side, leaf in enumerate(leaves.tolist()):
                if trees.nodes[leaf, 0] < 0:
                    shares = read(subtree, side, n_rows, weights, index)
                    columns, values = trees.leaf_values(tree, leaf)
                    players = [*subtree.slots, subtree.own]
                    out[first_row:last_row, players, columns] += shares[:, :, None] * values


def _bottom_subtrees(trees: Trees, tree: int, codes: Codes) -> Iterator[_BottomSubtree]:
    nobody = np.zeros(codes.shape[1], dtype=bool)
    stack: list[tuple[int, dict[int, NDArray[np.bool_]]]] = [(int(trees.roots[tree]), {})]
    while stack:
        node, fails = stack.pop()
        if trees.nodes[node, 0] < 0:
            continue
        left, player = trees.goes_left(node, codes), trees.player(node)
        failed = fails.get(player, nobody)
        children = trees.nodes[node, 2:].tolist()
        if any(trees.nodes[child, 0] < 0 for child in children):
            others = [other for other in fails if other != player]
            matrix = np.array([fails[other] for other in others], dtype=bool)
            state = np.where(failed, NOWHERE, np.where(left, LEFT, RIGHT))
            yield _BottomSubtree(node, player, others, matrix.reshape(len(others), codes.shape[1]), state)
        for child, away in zip(children, (~left, left), strict=True):
            stack.append((child, {**fails, player: failed | away}))


def _by_table(subtree: _BottomSubtree, leaf: int, n_rows: int, weights: Floats, index: Index) -> Floats:
    """Return values (n_rows, slots + 1) of a leaf that is worth 1, the own player's last."""
    n_slots = len(subtree.slots)
    bits = 1 << np.arange(n_slots)
    failed = bits @ subtree.fails
    shares = np.zeros((3, 1 << n_slots))
    np.add.at(shares, (subtree.state[n_rows:], failed[n_rows:]), weights)
    tables = [_integrals(state, leaf, shares, index) for state in (LEFT, RIGHT, NOWHERE)]
    out = np.zeros((n_rows, n_slots + 1))
    everything = (1 << n_slots) - 1
    for row in range(n_rows):
        state, passed = int(subtree.state[row]), int(everything & ~failed[row])
        gain, without, lost, own = tables[state]
        for slot, bit in enumerate(bits.tolist()):
            out[row, slot] = gain[passed] - without[passed ^ bit] if passed & bit else lost[passed]
        if index.efficient:
            total = float(passed == everything and state == leaf) - shares[leaf, 0]
            out[row, -1] = total - out[row, :-1].sum()
        else:
            out[row, -1] = own[passed]
    return out


def _integrals(state: int, leaf: int, shares: Floats, index: Index) -> tuple[Floats, Floats, Floats, Floats]:
    """Return, by passed slots P: gain, without, lost, own.

    A slot i that the row passes gets what the background rows bring that fail it, gain[P] - without[P minus i]; one
    that it fails loses lost[P].
    """
    size = shares.shape[1]
    n_slots = size.bit_length() - 1
    z = n_slots - np.array([p.bit_count() for p in range(size)])
    some = shares.copy()
    some[:, 0] = 0.0  # rows that fail nothing bring no slot a gain
    gain, without, lost, own = np.zeros((4, size))
    states = np.arange(3)
    for t, weight in zip(*index.points(n_slots + 1), strict=True):
        # The leaf is reached where the own player is the row's (t) or the background's (1 - t).
        factor = t * (state == leaf) + (1 - t) * (states == leaf)
        y, alone = _zeta(factor @ some, t), float(factor @ shares[:, 0])
        fails = z > 0
        less = np.where(fails, (1 - t) ** np.maximum(z - 1, 0), 0.0)
        gain += weight / t * (1 - t) ** z * y
        without += weight / t * less * y
        lost -= weight * less * (y + alone)
        mine = float(state == leaf) - (states == leaf)
        own += weight * (1 - t) ** z * (_zeta(mine @ some, t) + mine @ shares[:, 0])
    return gain, without, lost, own


def _zeta(values: Floats, t: float) -> Floats:
    """Return the sum over the subsets X of each P of t^|X| values[X]."""
    y = values.copy()
    step = 1
    while step < len(y):
        pairs = y.reshape(-1, 2, step)
        pairs[:, 1] = t * pairs[:, 1] + pairs[:, 0]
        step *= 2
    return y


def _by_pairs(subtree: _BottomSubtree, leaf: int, n_rows: int, weights: Floats, index: Index) -> Floats:
    """Return the same as `_by_table`, from every pair of a row and a background row."""
    fails = np.concatenate([subtree.fails, (subtree.state != leaf)[None]]).T
    row_fails, other_fails = fails[:n_rows], fails[n_rows:]
    z, c = row_fails.sum(axis=1)[:, None], other_fails.sum(axis=1)
    alive = alive_pairs(row_fails, other_fails) * weights
    gain = (alive * moment_at(index.moments, c - 1, z)) @ other_fails
    loss = (alive * moment_at(index.moments, c, z - 1)).sum(axis=1)
    return np.asarray(gain - loss[:, None] * row_fails)


def count_bottom_subtrees(trees: Trees, counts: NDArray[np.int64]) -> None:
    """Count the bottom subtrees of each tree by their number of slots.

    ``counts`` (n_trees, side) int64 is added to; its last column counts all with at least so many.
    """
    nothing = np.zeros((int(trees.features.max(initial=-1)) + 1, 1), np.int32)
    for tree in range(len(trees.roots)):
        for subtree in _bottom_subtrees(trees, tree, nothing):
            counts[tree, min(len(subtree.slots), counts.shape[1] - 1)] += 1
