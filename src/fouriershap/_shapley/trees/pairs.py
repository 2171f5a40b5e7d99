"""Interactions of trees: the blocks of the value tables once more, with pairs of players as players."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._shapley.layout import Members, lay_out
from fouriershap._shapley.pairs import key_pairs, n_places, pair_keys, pairs_within, place_of
from fouriershap._shapley.tables import TableSet
from fouriershap._shapley.trees import walk
from fouriershap._shapley.trees.blocks import TreeBlocks, build_blocks, fill_tables
from fouriershap._trees.codes import CodedTrees, Columns

_WALK_ROWS = 8  # rows per job where trees are walked: each costs milliseconds


@dataclass(frozen=True, eq=False)
class PairTrees:
    """An ensemble and a background, as a tree engine holds them.

    Attributes
    ----------
    coded : CodedTrees
    player : (n_features,) int32
    background : cleaned rows, or None for path-dependent interactions
    weights : (n_background,) float64 or None
    memory : int
    dtype : numpy.dtype
    index : str
    """

    coded: CodedTrees
    player: NDArray[np.int32]
    background: NDArray[Any] | None
    weights: NDArray[np.float64] | None
    memory: int
    dtype: np.dtype[Any]
    index: str

    @property
    def n_players(self) -> int:
        return int(self.player.max(initial=-1)) + 1


@dataclass(frozen=True, eq=False)
class TreePairs:
    """Interactions of trees, ready to be looked up (see `PairEngine`)."""

    trees: PairTrees
    pairs: NDArray[np.int32]
    tables: TableSet | None
    columns: Columns
    in_tables: NDArray[np.bool_]  # (n_trees,)
    deep: walk.WalkTrees | None  # trees without tables
    background: NDArray[np.int32] | None  # codes, for them

    @property
    def n_outputs(self) -> int:
        return self.trees.coded.ensemble.n_outputs

    @property
    def rows_per_block(self) -> int:
        return _WALK_ROWS if self.deep is not None or self.tables is None else self.tables.rows_per_block

    def add(self, rows: NDArray[Any], out: NDArray[np.float64]) -> None:
        book, t = self.trees.coded.book, self.trees
        if self.tables is not None:
            self.tables.add(book.encode_columns(rows, *self.columns), out)
        if self.deep is not None:
            numbers = walk.pair_columns(self.pairs, t.n_players)
            codes = book.encode(rows)
            walk.interactions(self.deep, codes, self.background, t.weights, numbers, out, index=t.index)


def make_pairs(
    trees: PairTrees,
    feasible: NDArray[np.bool_],
    blocks: TreeBlocks | None,
    wanted: NDArray[np.int64] | None,
    n_jobs: int | None,
) -> TreePairs:
    """Build the pair tables of the trees that fit, and prepare the others to be walked.

    Parameters
    ----------
    feasible : (n_trees,) bool
        Trees whose tables fit.
    blocks : TreeBlocks
        Those of all feasible trees; None where no tree is.
    wanted : (n,) int64
        Keys of the pairs that are asked for (`pair_keys`); None for all that occur.
    """
    coded, n = trees.coded, trees.n_players
    deep = _deep_keys(coded, trees.player, ~feasible, n)
    keys, laid_out = _lay_out_pairs(blocks, deep, wanted, n)
    while laid_out is not None and laid_out.n_values * trees.dtype.itemsize > trees.memory:
        feasible = _fitting(laid_out, feasible, trees.memory // trees.dtype.itemsize)
        if not feasible.any():
            laid_out = None
        else:
            smaller = build_blocks(coded.select(feasible), trees.player, n)
            deep = _deep_keys(coded, trees.player, ~feasible, n)
            keys, laid_out = _lay_out_pairs(smaller, deep, wanted, n)
    if laid_out is None:
        keys = _deep_keys(coded, trees.player, np.ones_like(feasible), n)
        keys = keys if wanted is None else np.intersect1d(keys, wanted)
    tables, columns = None, Columns(np.empty(0, dtype=np.int32), None)
    if laid_out is not None:
        codes = None
        if trees.background is not None:
            codes = coded.book.encode_columns(trees.background, *laid_out.columns)
        some = coded.select(feasible)
        filled = fill_tables(laid_out, some, codes, trees.weights, trees.dtype, n_jobs, trees.index)
        tables, columns = filled[0], laid_out.columns
    in_tables = np.zeros_like(feasible) if laid_out is None else feasible
    return restore_pairs(trees, key_pairs(keys, n), tables, columns, in_tables)


def restore_pairs(
    trees: PairTrees,
    pairs: NDArray[np.int32],
    tables: TableSet | None,
    columns: Columns,
    in_tables: NDArray[np.bool_],
) -> TreePairs:
    """Tables, however they were come by, and the other trees prepared to be walked."""
    coded, rest, background = trees.coded, None, None
    if not in_tables.all():
        rest = walk.prepare(coded.select(~in_tables), trees.player, trees.n_players)
        background = None if trees.background is None else coded.book.encode(trees.background)
    return TreePairs(trees, pairs, tables, columns, in_tables, rest, background)


def _fitting(blocks: TreeBlocks, feasible: NDArray[np.bool_], most_values: int) -> NDArray[np.bool_]:
    """The trees whose pair tables fit, the smallest first."""
    sizes = blocks.tree_values
    order = np.argsort(sizes, kind="stable")
    fits = order[np.cumsum(sizes[order]) <= most_values]
    out = np.zeros_like(feasible)
    out[np.flatnonzero(feasible)[fits]] = True
    return out


def _deep_keys(
    coded: CodedTrees, player: NDArray[np.int32], which: NDArray[np.bool_], n_players: int
) -> NDArray[np.int64]:
    """Pairs of players that meet in one of these trees: more than meet on a path, but quickly found."""
    e = coded.ensemble
    inner = (e.feature >= 0) & which[e.tree_of_node]
    met = np.unique(e.tree_of_node[inner] * n_players + player[e.feature[inner]])
    tree, owner = np.divmod(met, max(n_players, 1))
    start = np.searchsorted(tree, np.arange(e.n_trees + 1)).astype(np.int64)
    _, first, second = pairs_within(start)
    return np.unique(pair_keys(owner[first], owner[second], n_players))


def _lay_out_pairs(
    blocks: TreeBlocks | None, deep: NDArray[np.int64], wanted: NDArray[np.int64] | None, n_players: int
) -> tuple[NDArray[np.int64], TreeBlocks | None]:
    """The keys of all pairs that get a column, and the tables of the blocks with pairs as members."""
    if blocks is None:
        return deep, None
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
