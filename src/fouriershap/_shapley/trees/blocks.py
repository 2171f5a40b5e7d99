"""Tables of trees: subtrees as blocks, one table per block and 8 players.

A leaf is a product of conditions, one per player on its path. A block depends on the background only through the
histogram of its patterns. Path-dependent values use the same blocks: a player outside the coalition passes a condition
with the share of the training rows that passed it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap import _kernels as kernels
from fouriershap._base.parallel import enter, for_each_block
from fouriershap._shapley.indices import SHAPLEY, Index, quadrature
from fouriershap._shapley.tables import BYTE_PATTERNS, WIDTH, Blocks, Members, TableSet, histograms, lay_out
from fouriershap._trees.codes import CodedTrees, Codes, Columns, turn_pages

# Most patterns of a block. With 256, a pattern is a byte and a table takes 8 KB, which stay in the first-level cache.
# With so many leaves that tables are read from memory anyway, fewer and larger tables are faster.
_FEW_LEAVES, _MOST_PATTERNS = 10_000, 512
# Nanoseconds per row on one core of a 2021 server processor: a table, a cut, a pattern (memory traffic).
_COSTS = (0.7, 0.03, 1.0e-3)
_BLOCKS_PER_JOB = 64
_LEAVES = (
    *("n_patterns", "feature_start", "feature_states", "leaf_start", "leaf_node", "leaf_player_start"),
    *("leaf_players", "leaf_ratio", "fail_start", "fail"),
)


@dataclass(frozen=True, eq=False)
class TreeBlocks:
    """Trees cut into blocks: everything about the tables that does not depend on the background.

    Attributes
    ----------
    columns : Columns
        Row of each feature in the matrix of codes.
    arrays : dict
        Arguments of the kernel `tree_tables.fill` (see `kernels.tree_blocks_numpy`).
    output : (n_blocks,) int32
        First output of each block.
    order : int
        1 where the tables hold values of players, 2 for pairs of players.
    skeleton : TableSet
        Blocks, tables and groups, without values.
    slots : (n_tables, n) int32
        Column of each player (or pair) of a block in each of its tables; -1 where it has none.
    n_values : int
        Number of values in all tables.
    """

    columns: Columns
    arrays: dict[str, NDArray[Any]]
    output: NDArray[np.int32]
    order: int
    skeleton: TableSet
    slots: NDArray[np.int32]
    n_values: int

    @property
    def tree_values(self) -> NDArray[np.int64]:
        """Number of values in the tables of each tree, (n_trees,)."""
        tree = self.arrays["tree"][self.skeleton.table_block]
        sizes = np.diff(np.append(self.skeleton.table_offset, self.n_values))
        return np.bincount(tree, sizes, minlength=len(self.arrays["feasible"])).astype(np.int64)


def bind_trees(coded: CodedTrees, player: NDArray[np.int32]) -> kernels.tree_blocks.Trees:
    """Return the bound trees that kernels expect."""
    e = coded.ensemble
    shape = (e.roots, e.feature, coded.cut, e.missing_left, e.left, e.right, e.category_set)
    return kernels.tree_blocks.Trees(*shape, coded.set_bits, coded.book.n_codes, player, e.cover)


def code_columns(coded: CodedTrees) -> NDArray[np.int32]:
    """Return the row of each tested feature in the matrix of codes (see `Codebook.encode_columns`)."""
    e = coded.ensemble
    return coded.book.columns(np.bincount(e.feature[e.feature >= 0], minlength=e.n_features) > 0)


def build_blocks(
    coded: CodedTrees, player: NDArray[np.int32], n_players: int, n_channels: int = 1
) -> TreeBlocks:
    """Cut trees into blocks and lay out their tables. Every leaf must have at most 65,536 patterns."""
    e = coded.ensemble
    wanted = np.ones(e.n_trees, dtype=bool)
    limit = BYTE_PATTERNS if e.n_leaves <= _FEW_LEAVES else _MOST_PATTERNS
    arrays = kernels.tree_blocks.cut_trees(bind_trees(coded, player), wanted, limit, WIDTH, *_COSTS)
    column = code_columns(coded)
    cut_tree = np.repeat(arrays["tree"], np.diff(arrays["cut_start"]))
    turned = turn_pages(arrays["cut_column"], arrays["cut_at"], cut_tree, column, coded.book.n_codes)
    pages, cut_column, cut_at = turned or (None, column[arrays["cut_column"]], arrays["cut_at"])
    blocks = Blocks(
        **{f.name: arrays[f.name] for f in fields(Blocks)} | {"cut_column": cut_column, "cut_at": cut_at}
    )
    width = e.values.shape[1]
    output = e.tree_output[arrays["tree"]] if width == 1 else np.zeros(len(blocks), dtype=np.int32)
    start, players = arrays["player_start"], arrays["players"]
    owner = np.repeat(np.arange(len(blocks)), np.diff(start))
    most = int(np.diff(start).max(initial=0))
    members = Members(owner, players, np.arange(len(players)) - start[owner], most)
    sizes = (width * n_channels, e.n_outputs * n_channels)
    laid_out = lay_out(blocks, members, n_players, output, *sizes)
    return TreeBlocks(Columns(column, pages), arrays, output, 1, *laid_out)


def fill_tables(
    trees: TreeBlocks,
    coded: CodedTrees,
    background: Codes | None,
    weights: NDArray[np.float64] | None,
    dtype: np.dtype[Any],
    n_jobs: int = -1,
    index: Index = SHAPLEY,
) -> tuple[TableSet, NDArray[np.float64]]:
    """Fill the tables from background codes; None for path-dependent values.

    Return the tables, and the expected output of these trees without the base value, (n_outputs,) or (n_channels,).
    """
    skeleton, arrays = trees.skeleton, trees.arrays
    values = np.empty(trees.n_values, dtype=dtype)
    # A tree of one leaf has no players, and so no table to fill; all rows reach the leaf.
    total = np.ones(1) if weights is None or weights.ndim == 1 else weights.sum(axis=0)
    reached = np.isin(arrays["leaf_node"], coded.ensemble.roots)[:, None] * total
    by_block = np.argsort(skeleton.table_block, kind="stable").astype(np.int32)
    blocks_sorted = skeleton.table_block[by_block]
    leaves: tuple[Any, ...] = (
        *(arrays[name] for name in _LEAVES),
        _centre(coded),
        *quadrature(SHAPLEY if index.subgames else index, 16),
    )
    blocks = kernels.tree_tables.Blocks(*leaves)
    games = None if not index.subgames else _bind_games(index, arrays)
    slots = np.ascontiguousarray(trees.slots[by_block])
    layout = kernels.tree_tables.Layout(blocks_sorted, skeleton.table_offset[by_block], slots, trees.order)

    def work(first: int, last: int) -> None:
        shares, offset = np.empty((0, 1)), skeleton.blocks.offset
        if background is not None:
            shares = histograms(skeleton.blocks, background, weights, first, last)
            offset = offset - offset[first]
        begin, end = np.searchsorted(blocks_sorted, [first, last]).tolist()
        kernels.tree_tables.fill(blocks, layout, shares, offset, begin, end, values, reached, games)

    enter("building tables")
    for_each_block(work, len(skeleton.blocks), _BLOCKS_PER_JOB, n_jobs)
    expected = [coded.ensemble.sum_by_output(arrays["leaf_node"], share) for share in reached.T]
    return replace(skeleton, values=values), np.concatenate(expected)


def _bind_games(index: Index, arrays: dict[str, NDArray[Any]]) -> kernels.tree_tables.Games:
    """Return the games of a structured index as the kernel takes them."""
    block = np.repeat(np.arange(len(arrays["n_patterns"])), np.diff(arrays["leaf_start"]))
    first = np.repeat(arrays["player_start"][block], np.diff(arrays["leaf_player_start"]))
    owner = arrays["players"][first + arrays["leaf_players"]]
    merged = np.stack([game.merged for game in index.subgames])
    kind = np.stack([game.kind[game.merged] for game in index.subgames])
    laws = np.zeros((len(merged), max(len(game.laws) for game in index.subgames)), dtype=np.int32)
    game_of = np.empty(merged.shape[1], dtype=np.int32)
    for number, game in enumerate(index.subgames):
        laws[number, : len(game.laws)] = game.laws
        game_of[game.own] = number
    return kernels.tree_tables.Games(owner.astype(np.int32), game_of, merged, kind, laws)


def _centre(coded: CodedTrees) -> NDArray[np.float64]:
    """Subtract their mean from the leaf values of each tree: it has no SHAP value, but would cost digits of float32."""
    e = coded.ensemble
    leaf = e.feature < 0
    tree = e.tree_of_node
    weight = np.where(leaf, np.maximum(e.cover, 0.0), 0.0)
    total = np.bincount(tree, weight, minlength=e.n_trees)
    usable = np.isfinite(total) & (total > 0)
    weight = np.where(usable[tree], weight, leaf.astype(np.float64))
    total = np.bincount(tree, weight, minlength=e.n_trees)
    mean = np.stack([np.bincount(tree, weight * v, minlength=e.n_trees) for v in e.values.T], axis=1)
    return np.where(leaf[:, None], e.values - (mean / total[:, None])[tree], 0.0)
