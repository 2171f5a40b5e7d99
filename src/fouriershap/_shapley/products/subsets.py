"""Strategy "subsets": the worth of every coalition, where players are few. Exact for any background.

The mean over the background of the product of the players outside a coalition is a table; the row brings the product
of those inside. Values and interactions are sums over coalitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fouriershap import _kernels as kernels
from fouriershap._base.headers import require
from fouriershap._shapley.coalitions import coalition_weights
from fouriershap._shapley.engine import Contents, Floats
from fouriershap._shapley.indices import Index, moments
from fouriershap._shapley.products.model import ProductSum, WeightedRows, as_complex, blocks

MOST_NUMBERS = 1 << 15  # coalitions times terms: from there a mixture is quicker
MOST_PLAYERS = 12


@dataclass(frozen=True, eq=False)
class Subsets:
    """The worth of coalitions (see `Strategy`).

    Attributes
    ----------
    table : (n_outputs, 2^n_players, 2, n_terms) float64
        By the players of the row: coefficients times the mean product of the others in the background.
    index : Index
    """

    name: ClassVar[str] = "subsets"
    error: ClassVar[float] = 0.0
    n_components: ClassVar[int] = 0
    table: Floats
    index: Index

    def values(self, model: ProductSum, rows: NDArray[Any], kernel: Any) -> Floats:
        share = _value_shares(self.index, model.n_players)
        return _weighted(self._games(model, rows, kernel), share)

    def interactions(
        self, model: ProductSum, rows: NDArray[Any], index: Index, sets: NDArray[np.int64], kernel: Any
    ) -> Floats:
        share = _shares(index, model.n_players, sets)
        return _weighted(self._games(model, rows, kernel), share)

    def _games(self, model: ProductSum, rows: NDArray[Any], kernel: Any) -> Floats:
        out = np.empty((len(rows), self.table.shape[1], len(self.table)))
        kernel.games(model.factors(rows), self.table, out)
        return out

    def to_contents(self) -> Contents:
        return {"table": self.table}, {}

    @classmethod
    def from_contents(
        cls, arrays: dict[str, NDArray[Any]], header: dict[str, Any], model: ProductSum, index: Index
    ) -> Subsets:
        """Return what `to_contents` wrote."""
        del header
        table = arrays["table"]
        require(model.n_players <= MOST_PLAYERS, "it has tables of too many players")
        shape = (model.n_outputs, 1 << model.n_players, *model.coefficients.shape[1:])
        fits = table.dtype == np.float64 and table.shape == shape
        require(fits and np.isfinite(table).all(), "its coalitions are those of another model")
        return cls(table, index)


def compile_subsets(model: ProductSum, background: WeightedRows, index: Index) -> Subsets:
    n_outputs, _, n_terms = model.coefficients.shape
    sums = np.zeros((1 << model.n_players, 2, n_terms))
    for part in blocks(model, background.rows):
        kernels.products.subset_sums(model.factors(background.rows[part]), background.weights[part], sums)
    outside = as_complex(sums)[::-1]  # the complement of a set has all its bits turned
    table = np.conj(as_complex(model.coefficients))[:, None] * outside
    stacked = np.stack([table.real, -table.imag], axis=2).reshape(n_outputs, -1, 2, n_terms)
    return Subsets(np.ascontiguousarray(stacked), index)


def _weighted(games: Floats, share: Floats) -> Floats:
    """Return the worth (n_rows, 2^n_players, n_outputs) times shares (2^n_players, n): (n_rows, n, n_outputs)."""
    n_rows, n_sets, n_outputs = games.shape
    found = games.transpose(0, 2, 1).reshape(-1, n_sets) @ share
    return np.asarray(found.reshape(n_rows, n_outputs, share.shape[1]).transpose(0, 2, 1))


@lru_cache(maxsize=32)
def _inside(n_players: int) -> NDArray[np.bool_]:
    """Return who is in each coalition, (2^n_players, n_players)."""
    sets = np.arange(1 << n_players)
    return np.asarray(sets[:, None] >> np.arange(n_players) & 1, dtype=bool)


def _shares(index: Index, n_players: int, sets: NDArray[np.int64]) -> Floats:
    """Return the share of each set (n_sets, size) in the worth of each coalition, (2^n_players, n_sets)."""
    inside = _inside(n_players)
    size = sets.shape[1]
    mine = inside[:, sets].sum(axis=2)
    others = inside.sum(axis=1)[:, None] - mine
    weight = moments(index, n_players)[others, n_players - size - others]
    return np.asarray(np.where((size - mine) % 2, -weight, weight))


@lru_cache(maxsize=32)
def _value_shares(index: Index, n_players: int) -> Floats:
    """Return the share of each player in the worth of each coalition, (2^n_players, n_players)."""
    return coalition_weights(_inside(n_players), index).T
