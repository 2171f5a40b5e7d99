"""Interactions of any order in trees: one walk for all rows and background rows; leaf by leaf without a background."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap import _kernels as kernels
from fouriershap._base.errors import CapacityError
from fouriershap._shapley.indices import Index, InteractionIndex, index_of_sets, leaf_shares
from fouriershap._shapley.sets import (
    Floats,
    InteractionEngine,
    Keys,
    all_keys,
    count_sets,
    first_key,
    keys_within,
    lost_background,
    radix_of,
    select_keys,
    sum_interactions,
    takes_longer,
)
from fouriershap._shapley.trees import walk
from fouriershap._shapley.trees.model import Background, TreeModel

MOST_PLAYERS = 64  # on a path: the kernel has a bit for each
_MOST_SLOTS = 1 << 20  # sets of players of a path, which the kernel has sums for
_ROWS_PER_BLOCK, _BLOCK_NUMBERS = (
    1024,
    1 << 22,
)  # that the kernel holds of a block of rows, by sets of short paths
_SHORT_PATH = 12  # players
_TIMED_TREES, _TIMED_SECONDS = 4, 0.2
_LONG = 10.0  # seconds from which on an estimate is worth more time


@dataclass(frozen=True, eq=False)
class TreeSets:
    """Interactions of sets of players in some trees of a model (see `InteractionEngine`); rows are cleaned."""

    model: TreeModel
    background: Background
    index: InteractionIndex
    order: int
    keys: Keys
    trees: walk.WalkTrees

    @property
    def n_outputs(self) -> int:
        return self.model.ensemble.n_outputs

    @property
    def rows_per_block(self) -> int:
        players = min(int(self.trees.tree_players.max(initial=0)), _SHORT_PATH)
        n_sets = sum(math.comb(players, size) for size in range(self.order + 1))
        return max(1, min(_ROWS_PER_BLOCK, _BLOCK_NUMBERS // (n_sets * self.trees.n_outputs)))

    @cached_property
    def _shares(self) -> Floats:
        return leaf_shares(self.index, self.order, int(self.trees.tree_players.max(initial=0)))

    def add(self, rows: NDArray[Any], out: Floats) -> None:
        codes = self.model.coded.book.encode(rows)
        assert self.background.codes is not None
        self._walk(self.trees, codes, self.background.codes, self.background.weights, out)

    def _walk(
        self,
        trees: walk.WalkTrees,
        codes: walk.Codes,
        others: walk.Codes,
        weights: Floats | None,
        out: Floats,
    ) -> None:
        share = np.full(others.shape[1], 1 / others.shape[1]) if weights is None else weights
        against = (codes, 0, codes.shape[1], others, share)
        radix = radix_of(self.model.n_players)
        kernels.orders.interventional(trees.bound, *against, self._shares, self.keys, radix, out)

    def seconds(self, rows: NDArray[Any]) -> tuple[float, str]:
        """Estimate the time by that of a few trees, rows and background rows; more of them where it seems long.

        Rows that fail the same players share their work, so that all of them take no longer than in proportion.
        """
        trees, codes, others = self.trees, self.model.coded.book.encode(rows), self.background.codes
        assert others is not None
        n_trees, n_rows, n_others = trees.n_trees, codes.shape[1], others.shape[1]
        some = np.zeros(n_trees, dtype=bool)
        some[np.linspace(0, n_trees - 1, min(n_trees, _TIMED_TREES)).astype(int)] = True
        few = trees.part(some)
        step, seconds = 8, 0.0
        while n_rows and n_trees:
            mine, theirs = (np.ascontiguousarray(each[:, :step]) for each in (codes, others))
            taken = [mine.shape[1], theirs.shape[1]]
            out = np.zeros((taken[0], len(self.keys), self.n_outputs))
            begin = time.process_time()
            self._walk(few, mine, theirs, None, out)
            spent = time.process_time() - begin
            seconds = spent * n_trees / some.sum() * n_rows / taken[0] * n_others / taken[1]
            whole = taken == [n_rows, n_others]
            if whole or seconds < _LONG or spent > _TIMED_SECONDS or step >= _ROWS_PER_BLOCK:
                break
            step *= 4
        players = int(trees.tree_players.max(initial=0))
        why = f"{n_trees:,} trees with up to {players} players on a path, {count_sets(players, self.order):,} sets each"
        return seconds, f"{why}, for {n_rows:,} rows and {n_others:,} background rows"


@dataclass(frozen=True, eq=False)
class PathSets:
    """Path-dependent interactions of sets of one size (see `InteractionEngine`); rows are cleaned."""

    model: TreeModel
    index: Index
    size: int
    keys: Keys
    trees: walk.WalkTrees

    @property
    def n_outputs(self) -> int:
        return self.model.ensemble.n_outputs

    @property
    def rows_per_block(self) -> int:
        return _ROWS_PER_BLOCK

    def add(self, rows: NDArray[Any], out: Floats) -> None:
        trees, codes = self.trees, self.model.coded.book.encode(rows)
        given = (trees.bound, trees.paths(self.index), codes, 0, codes.shape[1])
        kernels.walk.path_dependent_sets(*given, self.size, self.keys, radix_of(self.model.n_players), out)

    def seconds(self, rows: NDArray[Any]) -> tuple[float, str]:
        """Estimate the time by that of a row: rows that fail the same players share work, so it is an upper bound."""
        begin = time.process_time()
        self.add(rows[:1], np.zeros((len(rows[:1]), len(self.keys), self.n_outputs)))
        seconds = (time.process_time() - begin) * len(rows)
        return seconds, f"walking {self.trees.n_trees:,} trees for {len(rows):,} rows"


def make_sets(
    model: TreeModel,
    background: Background,
    index: InteractionIndex,
    order: int,
    wanted: Keys | None,
    min_order: int,
) -> InteractionEngine:
    """Find the sets of players that meet on a path, or take those that are wanted."""
    if background.is_lost:
        raise lost_background()
    check_paths(model.walk_trees, order)
    keys = _keys(model, order) if wanted is None else wanted
    keys = select_keys(keys, None, min_order, model.n_players)
    if background.rows is not None:
        return TreeSets(model, background, index, order, keys, model.walk_trees)
    parts: list[InteractionEngine] = []
    for size in range(min_order, order + 1):
        first, last = (np.searchsorted(keys, first_key(s, model.n_players)) for s in (size, size + 1))
        of_size = index_of_sets(index, order, size)
        parts.append(PathSets(model, of_size, size, np.ascontiguousarray(keys[first:last]), model.walk_trees))
    return sum_interactions(parts)


def check_paths(trees: walk.WalkTrees, order: int) -> None:
    """Raise `CapacityError` where paths have too many players, or sets of them, for the kernel."""
    most = int(trees.tree_players.max(initial=0))
    if most > MOST_PLAYERS or count_sets(most, order) > _MOST_SLOTS:
        raise CapacityError(
            f"order={order}: a path of these trees has {most} players, {count_sets(most, order):,} sets of them; "
            f"the most are {MOST_PLAYERS} players and {_MOST_SLOTS:,} sets. Use a lower order, shallower trees, or "
            "fewer players by groups=."
        )


def _keys(model: TreeModel, order: int) -> Keys:
    """Return the keys of sets that meet on a path, or, where that is sooner found, of all sets of the players."""
    inner = model.ensemble.feature[model.ensemble.feature >= 0]
    met = np.unique(model.player[np.flatnonzero(np.bincount(inner))])
    if takes_longer(len(inner) * order, len(met), order):  # but at the top, nodes have more sets on their way
        return all_keys(met.tolist(), order, model.n_players)
    return keys_within(_paths(model), order)


def _paths(model: TreeModel) -> NDArray[np.bool_]:
    """Return the players on the path to each leaf, each set of them once, (n_paths, n_players) bool."""
    e = model.ensemble
    width = -(-model.n_players // 8)
    met = np.zeros((e.n_nodes, width), dtype=np.uint8)
    level = e.roots[e.feature[e.roots] >= 0]
    lowest = []
    while len(level):
        player = model.player[e.feature[level]]
        met[level, player // 8] |= (1 << (player % 8)).astype(np.uint8)
        children = [side[level] for side in (e.left, e.right)]
        for child in children:
            met[child] = met[level]
        leafy = (e.feature[children[0]] < 0) | (e.feature[children[1]] < 0)
        lowest.append(met[level[leafy]])
        below = np.concatenate(children)
        level = below[e.feature[below] >= 0]
    found = np.concatenate([np.empty((0, width), dtype=np.uint8), *lowest])
    if width:
        as_one = np.ascontiguousarray(found).view(np.dtype((np.void, width))).reshape(-1)
        found = found[np.unique(as_one, return_index=True)[1]]
    bits = np.unpackbits(found, axis=1, bitorder="little", count=model.n_players)
    return bits.astype(bool)
