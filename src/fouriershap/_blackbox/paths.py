"""Permutations of players between two rows: what a function adds along them, and back.

A permutation and its reverse together give pair interactions their exact value, so no variance is left on games of
degree 2. Only players that differ between the two rows take part; the others have nothing to add.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Paths:
    """Hybrids between some rows of a pool and others, along permutations and their reverses.

    Attributes
    ----------
    index : (n_hybrids, n_players) int32
        The row that each player comes from.
    path : (n_hybrids,) int64
        The permutation that a hybrid belongs to; it begins at the other row and ends at the first.
    joined : (n_hybrids,) int64
        The player that joined last; -1 where a path begins.
    shape : (n_others, pairs)
        Each pair is a permutation and its reverse: two paths, one after the other.
    """

    index: NDArray[np.int32]
    path: NDArray[np.int64]
    joined: NDArray[np.int64]
    shape: tuple[int, int]

    def estimates(self, answers: Floats) -> Floats:
        """Return what each player adds, from answers (n_hybrids, n_outputs).

        The shape is (n_others, pairs, 2, n_players, n_outputs): permutation and reverse apart.
        """
        n_others, pairs, shape = *self.shape, (self.index.shape[1], answers.shape[1])
        out = np.zeros((n_others * pairs * 2, *shape))
        later = np.flatnonzero(self.joined >= 0)
        out[self.path[later], self.joined[later]] = answers[later] - answers[later - 1]
        return out.reshape(n_others, pairs, 2, *shape)


def draw_paths(
    differs: NDArray[np.bool_],
    firsts: NDArray[np.int64],
    others: NDArray[np.int64],
    pairs: int,
    rng: np.random.Generator,
) -> Paths:
    """Draw permutations, with their reverses, between each of the first rows and its other row.

    Parameters
    ----------
    differs : (n, n_players) bool
        Whether a player differs between the two.
    firsts, others : (n,) int64
        Their positions in the pool.
    """
    n_players = differs.shape[1]
    index, path, joined = [], [], []
    n_paths = 0
    for mine, first, other in zip(differs, firsts, others, strict=True):
        players = np.flatnonzero(mine)
        for _ in range(pairs):
            order = rng.permutation(players)
            for each in (order, order[::-1]):
                place = np.full(n_players, len(players))
                place[each] = np.arange(len(players))
                inside = (np.arange(len(players) + 1)[:, None] > place) | ~mine
                index.append(np.where(inside, np.int32(first), np.int32(other)))
                joined.append(np.concatenate([[-1], each]))
                path.append(np.full(len(players) + 1, n_paths))
                n_paths += 1
    return Paths(
        np.concatenate(index).astype(np.int32),
        np.concatenate(path),
        np.concatenate(joined).astype(np.int64),
        (len(differs), pairs),
    )


def differing(
    codes: Floats, other_codes: Floats, player: NDArray[np.int32], n_players: int
) -> NDArray[np.bool_]:
    """Return (n_others, n_players): which players of a row (n_features,), or of one for each, differ."""
    unlike = ~((codes == other_codes) | (np.isnan(codes) & np.isnan(other_codes)))
    out = np.zeros((len(other_codes), n_players), dtype=bool)
    for f, p in enumerate(player):
        out[:, p] |= unlike[:, f]
    return out
