"""Interactions of sets of players in trees, leaf by leaf: the specification of the native ``orders`` family."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from fouriershap._kernels.walk_numpy import Codes, Floats, Trees, key_of, meetings


def interventional(
    trees: Trees,
    codes: Codes,
    first_row: int,
    last_row: int,
    background: Codes,
    weights: Floats,
    shares: Floats,
    keys: NDArray[np.int64],
    radix: int,
    out: Floats,
) -> None:
    """Add interventional interactions of sets of players, of any index.

    Trees, codes, background and weights are as in `walk_numpy.interventional`.

    Parameters
    ----------
    shares : (m + 1, m + 1, order + 1) float64, 64 >= m >= most players on a path
        See `fouriershap._shapley.indices.leaf_shares`.
    keys : (n_sets,) int64, ascending
        The wanted sets: ``key_of(players, radix)``.
    out : (rows, n_sets, n_outputs) float64
        Added to: at a set of s players, i of which only the row brings to a leaf and j only the background row, the
        leaf's value times ``(-1)^j shares[c + j, z - j, s]``, where c and z are the numbers of all such players.
    """
    order, most = shares.shape[2] - 1, len(shares) - 1
    column = {key: k for k, key in enumerate(keys.tolist())}
    for leaf in meetings(trees, codes[:, first_row:last_row], background, weights):
        for size in range(1, min(order, len(leaf.players)) + 1):
            for chosen in combinations(range(len(leaf.players)), size):
                key = key_of([leaf.players[i] for i in chosen], radix)
                if key not in column:
                    continue
                mine, theirs = leaf.row_fails[:, None, chosen], leaf.other_fails[None, :, chosen]
                reached = leaf.alive * (mine ^ theirs).all(axis=2)
                j = mine.sum(axis=2)
                share = shares[np.minimum(leaf.c + j, most), np.maximum(leaf.z - j, 0), size]
                total = (reached * share * (-1.0) ** j).sum(axis=1)
                out[first_row:last_row, column[key], leaf.columns] += total[:, None] * leaf.values
