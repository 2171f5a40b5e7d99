"""Raw outputs of hybrids: rows some of whose players come from a background row. Games of other outputs need very many.

Trees of usual size tell them from sets of leaves, kept as bits, ten times as fast as a prediction; any other model
predicts them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fouriershap import _kernels as kernels
from fouriershap._shapley.coalitions import coalitions_of
from fouriershap._shapley.engine import Engine, Floats
from fouriershap._shapley.trees.engine import TreeEngine

Ints = NDArray[np.int64]
_MOST_WORDS = 32  # of a tree: larger ones are walked in less time than their words are read
_MOST_BYTES = 256 << 20
_ASKED = 1 << 14  # hybrids that are predicted at a time


class Hybrids(Protocol):
    """Rows to explain, and a background."""

    def chains(self, row: int, others: Ints, places: Ints) -> Floats:
        """Return raw outputs (n, 2, n_players - 1, n_raw) along two orders of the players for each background row.

        ``others`` (n,): background rows. ``places`` (n, 2, n_players): the place of each player. Entry k: the first
        k + 1 players come from the row.
        """

    def coalitions(self, row: int, others: slice) -> Floats:
        """Return raw outputs (n, 2^n_players, n_raw) of coalitions: bit j tells whether player j is inside."""


@dataclass(frozen=True, eq=False)
class _Trees:
    """Hybrids of trees, whose leaves fit into bits."""

    bits: kernels.walk.LeafBits
    base: Floats
    n_players: int
    codes: NDArray[np.int32]
    others: NDArray[np.int32]

    def chains(self, row: int, others: Ints, places: Ints) -> Floats:
        out = np.empty((len(others), 2, self.n_players - 1, len(self.base)))
        out[:] = self.base
        kernels.walk.chains(self.bits, self.codes, row, self.others.take(others, axis=1), places, out)
        return out

    def coalitions(self, row: int, others: slice) -> Floats:
        codes = np.ascontiguousarray(self.others[:, others])
        out = np.empty((codes.shape[1], 1 << self.n_players, len(self.base)))
        out[:] = self.base
        kernels.walk.coalitions(self.bits, self.codes, row, codes, out)
        return out


@dataclass(frozen=True, eq=False)
class _Predicted:
    """Hybrids of any engine, which predicts them."""

    engine: Engine
    player: NDArray[np.int32]
    rows: NDArray[Any]
    others: NDArray[Any]

    def chains(self, row: int, others: Ints, places: Ints) -> Floats:
        inside = np.arange(1, places.shape[2])[:, None] > places[:, :, None, :]
        return self._predict(row, self.others[others][:, None, None], inside)

    def coalitions(self, row: int, others: slice) -> Floats:
        return self._predict(row, self.others[others][:, None], coalitions_of(self.engine.n_players)[None])

    def _predict(self, row: int, others: NDArray[Any], inside: NDArray[np.bool_]) -> Floats:
        parts, shape = [], np.broadcast_shapes(others.shape[:-1], inside.shape[:-1])
        size = max(_ASKED * shape[0] // max(int(np.prod(shape)), 1), 1)
        inside = np.broadcast_to(inside, (*shape, inside.shape[-1]))
        for first in range(0, shape[0], size):
            part = slice(first, first + size)
            hybrids = np.where(inside[part][..., self.player], self.rows[row], others[part])
            found = self.engine.predict(hybrids.reshape(-1, hybrids.shape[-1]), n_jobs=1)
            parts.append(found.reshape(*hybrids.shape[:-1], found.shape[1]))
        return np.concatenate(parts)


def hybrids_of(engine: Engine, player: NDArray[np.int32], rows: NDArray[Any]) -> Hybrids:
    """Return the hybrids of these rows with the background of an engine; ``player`` (n_features,) owns columns."""
    assert engine.background is not None
    if isinstance(engine, TreeEngine) and _fit_into_bits(engine):
        model, others = engine.model, engine.tree_background.codes
        assert others is not None
        codes = model.coded.book.encode(rows)
        return _Trees(model.walk_trees.leaf_bits, model.ensemble.base, engine.n_players, codes, others)
    return _Predicted(engine, player, rows, engine.background.rows)


def _fit_into_bits(engine: TreeEngine) -> bool:
    trees = engine.model.walk_trees
    n_words = float(np.ceil(engine.model.profile[:, 0] / 32).sum())
    fits = 4 * n_words * int(trees.n_codes.sum()) <= _MOST_BYTES
    return fits and trees.n_trees > 0 and n_words <= _MOST_WORDS * trees.n_trees
