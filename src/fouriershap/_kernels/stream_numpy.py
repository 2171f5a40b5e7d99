"""Trees against a background, one bottom subtree at a time: the specification of the native ``stream`` family.

Values are those of `walk_numpy.interventional`; how they are found is described in the native files. A *bottom subtree*
is a node with one or two leaves below it. Its own player is that of the node's feature; the slots are the other players
on the way to it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriershap._kernels import walk_numpy
from fouriershap._kernels.walk_numpy import Codes, Floats, Trees


class Index(NamedTuple):
    """An index: ``nodes`` and ``start`` as `indices.quadrature` gives them, ``moments`` as `indices.moments`.

    ``efficient``: values of all players add up to the change of the output.
    """

    nodes: Floats
    start: NDArray[np.int64]
    moments: Floats
    efficient: bool


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
    others = background[:, : len(weights)]
    walk_numpy.interventional(trees, codes, first_row, last_row, others, weights, index.moments, False, out)


def mixed(
    trees: Trees,
    codes: Codes,
    first_row: int,
    last_row: int,
    background: Codes,
    weights: Floats,
    mix: Floats,
    index: Index,
    dense_bits: int,
    class_bits: int,
    single: bool,
    out: Floats,
) -> None:
    """Add the interventional values of many rows, each summed over the background by weights of its own.

    Parameters as in `interventional`, but

    weights : (n_background, n_channels) float64
        Of any sign.
    mix : (rows, n_channels) float64
        The weights of a row are the sum of the channels, each times its entry.
    index : Index
        An efficient one. ``trees`` have one output.
    """
    others, rows = background[:, : len(weights)], slice(first_row, last_row)
    for factor, share in zip(mix.T, weights.T, strict=True):
        values = np.zeros(out.shape)
        walk_numpy.interventional(
            trees, codes, first_row, last_row, others, share, index.moments, False, values
        )
        out[rows] += factor[rows, None, None] * values[rows]


def count_bottom_subtrees(trees: Trees, counts: NDArray[np.int64]) -> None:
    """Count the bottom subtrees of each tree by their number of slots.

    ``counts`` (n_trees, side) int64 is added to; its last column counts all with at least so many.
    """
    for tree, root in enumerate(trees.roots.tolist()):
        stack: list[tuple[int, frozenset[int]]] = [(root, frozenset())]
        while stack:
            node, above = stack.pop()
            if trees.nodes[node, 0] < 0:
                continue
            player, children = trees.player(node), trees.nodes[node, 2:]
            if (trees.nodes[children, 0] < 0).any():
                counts[tree, min(len(above - {player}), counts.shape[1] - 1)] += 1
            stack += [(int(child), above | {player}) for child in children]
