"""Interactions of pairs in trees: the blocks of the value tables again, with pairs of players as players."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._shapley.sets import Keys, key_pairs, n_places, pair_keys, pairs_within, place_of
from fouriershap._shapley.tables import Members, TableSet, lay_out
from fouriershap._shapley.trees import walk
from fouriershap._shapley.trees.blocks import TreeBlocks, build_blocks, fill_tables
from fouriershap._shapley.trees.compiled import NO_COLUMNS
from fouriershap._shapley.trees.model import Background, TreeModel, smallest
from fouriershap._shapley.trees.plan import MOST_FEATURES_OF_PAIRS
from fouriershap._shapley.trees.sets import PathSets, TreeSets, check_paths
from fouriershap._trees.codes import Columns

_WALK_ROWS = 8  # rows per job where trees are walked: each costs milliseconds


@dataclass(frozen=True, eq=False)
class TreePairs:
    """Interactions of pairs in trees, ready to be looked up (see `InteractionEngine`)."""

    model: TreeModel
    background: Background
    keys: Keys
    tables: TableSet | None
    columns: Columns
    in_tables: NDArray[np.bool_]  # (n_trees,)
    rest: walk.WalkTrees | None  # trees without tables

    @cached_property
    def pairs(self) -> NDArray[np.int32]:
        """(n_pairs, 2) int32, i < j."""
        return key_pairs(self.keys, self.model.n_players)

    @property
    def n_outputs(self) -> int:
        return self.model.ensemble.n_outputs

    @cached_property
    def _deep(self) -> TreeSets | PathSets:
        """Interactions in the trees without tables."""
        assert self.rest is not None
        check_paths(self.rest, 2)
        index = self.model.index
        if self.background.codes is None:
            return PathSets(self.model, index, 2, self.keys, self.rest)
        return TreeSets(self.model, self.background, index.interaction, 2, self.keys, self.rest)

    @property
    def rows_per_block(self) -> int:
        if self.rest is not None:
            return self._deep.rows_per_block
        return _WALK_ROWS if self.tables is None else self.tables.rows_per_block

    def add(self, rows: NDArray[Any], out: NDArray[np.float64]) -> None:
        if self.tables is not None:
            self.tables.add(self.model.coded.book.encode_columns(rows, *self.columns), out)
        if self.rest is not None:
            self._deep.add(rows, out)

    def seconds(self, rows: NDArray[Any]) -> tuple[float, str]:
        """Estimate the time of trees without tables by that of a few rows."""
        if self.rest is None or not len(rows):
            return 0.0, ""
        return self._deep.seconds(rows)


def make_pairs(model: TreeModel, background: Background, wanted: Keys | None) -> TreePairs:
    """Build the pair tables of the trees that fit, and prepare the others to be walked.

    Parameters
    ----------
    wanted : (n,) int64
        Keys of the pairs that are asked for; None for all that occur.
    """
    n, itemsize = model.n_players, model.dtype.itemsize
    in_tables, blocks = _pair_blocks(model)
    while blocks is not None:
        deep = _deep_keys(model, ~in_tables)
        keys, laid_out = _lay_out_pairs(blocks, deep, wanted, n)
        if laid_out.n_values * itemsize <= model.memory:
            some, codes = model.coded.select(in_tables), None
            if background.rows is not None:
                codes = model.coded.book.encode_columns(background.known_rows, *laid_out.columns)
            filled = fill_tables(laid_out, some, codes, background.weights, model.dtype, -1, model.index)
            rest = model.walk_without(in_tables)
            return TreePairs(model, background, keys, filled[0], laid_out.columns, in_tables, rest)
        in_tables = smallest(laid_out.tree_values, in_tables, model.memory // itemsize)
        blocks = _blocks_of(model, in_tables)
    none = np.zeros(model.ensemble.n_trees, dtype=bool)
    keys = _deep_keys(model, ~none)
    keys = keys if wanted is None else np.intersect1d(keys, wanted)
    return TreePairs(model, background, keys, None, NO_COLUMNS, none, model.walk_without(none))


def _pair_blocks(model: TreeModel) -> tuple[NDArray[np.bool_], TreeBlocks | None]:
    """Return the trees whose pairs go into tables, and their blocks: those of the values, where all these trees do."""
    shallow = model.feasible & (model.profile[:, 2] <= MOST_FEATURES_OF_PAIRS)
    if (shallow == model.feasible).all() and shallow.any():
        return model.layout.in_tables, model.layout.blocks
    return shallow, _blocks_of(model, shallow)


def _blocks_of(model: TreeModel, some: NDArray[np.bool_]) -> TreeBlocks | None:
    return build_blocks(model.coded.select(some), model.player, model.n_players) if some.any() else None


def _deep_keys(model: TreeModel, which: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the keys of pairs that meet in one of these trees: more than meet on a path, but quickly found."""
    e, n_players = model.ensemble, model.n_players
    inner = (e.feature >= 0) & which[e.tree_of_node]
    met = np.unique(e.tree_of_node[inner] * n_players + model.player[e.feature[inner]])
    tree, owner = np.divmod(met, max(n_players, 1))
    start = np.searchsorted(tree, np.arange(e.n_trees + 1)).astype(np.int64)
    _, first, second = pairs_within(start)
    return np.unique(pair_keys(owner[first], owner[second], n_players))


def _lay_out_pairs(
    blocks: TreeBlocks, deep: NDArray[np.int64], wanted: Keys | None, n_players: int
) -> tuple[NDArray[np.int64], TreeBlocks]:
    """Return the keys of all pairs that get a column, and the tables of the blocks with pairs as members."""
    arrays = blocks.arrays
    leaf, first, second = pairs_within(arrays["leaf_player_start"])
    block = np.repeat(np.arange(len(arrays["tree"])), np.diff(arrays["leaf_start"]))[leaf]
    i, j = arrays["leaf_players"][first], arrays["leaf_players"][second]
    begin = arrays["player_start"][block]
    key = pair_keys(arrays["players"][begin + i], arrays["players"][begin + j], n_players)
    if wanted is not None:
        kept = np.isin(key, wanted)
        block, i, j, key = block[kept], i[kept], j[kept], key[kept]
        deep = np.intersect1d(deep, wanted)
    keys = np.union1d(key, deep)
    members = Members(block, np.searchsorted(keys, key), place_of(i, j), n_places(arrays["player_start"]))
    skeleton = blocks.skeleton
    widths = skeleton.group_width
    width = int(widths[0]) if len(widths) else 1
    laid_out = lay_out(skeleton.blocks, members, len(keys), blocks.output, width, skeleton.n_outputs)
    return keys, replace(blocks, order=2, skeleton=laid_out[0], slots=laid_out[1], n_values=laid_out[2])
