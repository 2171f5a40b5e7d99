"""SHAP values of trees by walking them, without tables.

The strategy for small calls, for trees too deep for tables, and for path-dependent values. Cost grows with
rows times background rows (times the leaves that a pair visits, see `leaf_visits`). All functions work on a
range of rows and share only read-only arrays, so that ranges can run on different threads.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from fouriershap import _kernels as kernels
from fouriershap._base.frozen import Frozen
from fouriershap._shapley.indices import SHAPLEY, Index, count_shares, moments, points
from fouriershap._shapley.structure import Subgame
from fouriershap._trees.codes import CodedTrees

Codes = NDArray[np.int32]
Ints = NDArray[np.int32]
Floats = NDArray[np.float64]

# Under this many rows it is faster to walk the trees once per row: more, the deeper the trees and the larger the
# background, since walking rows together groups those that fail the same players. Measured on stumps to full forests.
_FEW_ROWS, _MOST_FEW_ROWS = 3, 32
_LEAVES_PER_ROW = 60_000  # leaves of a tree times background rows, for each further row


def few_rows(mean_leaves: float, n_background: int) -> int:
    """Return the number of rows from which on they are walked together."""
    return min(_FEW_ROWS + int(mean_leaves * n_background / _LEAVES_PER_ROW), _MOST_FEW_ROWS)


@dataclass(frozen=True, eq=False)
class WalkTrees(Frozen):
    """An ensemble ready to be walked; make one with `prepare`.

    Attributes
    ----------
    nodes, values, roots, tree_output, features, n_codes, players, categorical, set_bits, n_players
        See `fouriershap._kernels.walk_numpy.Trees`.
    n_outputs : int
    cover : (n_nodes,) float64
        Training rows of each node.
    mean_leaves : float
        Leaves of a tree, on average.
    """

    nodes: Ints
    values: Floats
    roots: Ints
    tree_output: Ints
    features: Ints
    n_codes: Ints
    players: Ints
    categorical: NDArray[np.bool_]
    set_bits: NDArray[np.uint64]
    n_players: int
    n_outputs: int
    cover: Floats
    mean_leaves: float

    @cached_property
    def bound(self) -> kernels.walk.Trees:
        """The trees as kernels take them."""
        return kernels.walk.Trees(
            self.nodes,
            self.values,
            self.roots,
            self.tree_output,
            self.features,
            self.n_codes,
            self.players,
            self.categorical,
            self.set_bits,
            self.n_players,
        )

    @cached_property
    def leaf_bits(self) -> kernels.walk.LeafBits:
        """The leaves as bits, for very many hybrid rows."""
        return kernels.walk.LeafBits(self.bound)

    @cached_property
    def _path_shape(self) -> tuple[Ints, Ints]:
        shape = np.zeros((2, self.n_trees), dtype=np.int32)
        self.bound.path_shape(shape)
        return shape[0], shape[1]

    @property
    def tree_players(self) -> Ints:
        """(n_trees,) int32: most distinct players on a path."""
        return self._path_shape[0]

    @property
    def tree_depth(self) -> Ints:
        """(n_trees,) int32: most edges on a path."""
        return self._path_shape[1]

    @property
    def n_trees(self) -> int:
        return len(self.roots)

    @cached_property
    def ratio(self) -> Floats:
        """(n_nodes,) cover of a node over its parent's: 1 at roots, 1/2 below a node without cover."""
        nodes, cover = self.nodes, self.cover
        ratio = np.ones(len(nodes))
        inner = np.flatnonzero(nodes[:, 0] >= 0)
        total = cover[inner]
        for child in (nodes[inner, 2], nodes[inner, 3]):
            # Without training rows any ratio would do; halves keep the sum of both at 1.
            ratio[child] = np.divide(cover[child], total, out=np.full(len(inner), 0.5), where=total > 0)
        return ratio

    @cached_property
    def outputs_sum_to_constant(self) -> bool:
        """Whether the outputs of every leaf add up to the same number, as probabilities do.

        The SHAP values of the last one are then minus the sum of the others'.
        """
        width = int(self.values.shape[1])
        if width == 1 or (self.tree_output >= 0).any():
            return False
        leaves = self.values[self.nodes[:, 0] < 0]
        return float(np.ptp(leaves.sum(axis=1))) <= 1e-12 * width * float(np.abs(leaves).max())

    @cached_property
    def drop_last_output(self) -> WalkTrees:
        """The same trees without the last output, where the others determine it; see `add_dropped`."""
        if not self.outputs_sum_to_constant:
            return self
        values = np.ascontiguousarray(self.values[:, :-1])
        return replace(self, values=values, n_outputs=self.n_outputs - 1)

    def part(self, trees: slice | NDArray[np.bool_]) -> WalkTrees:
        """Return some trees alone; nodes are shared."""
        roots, tree_output = (np.ascontiguousarray(array[trees]) for array in (self.roots, self.tree_output))
        part = replace(self, roots=roots, tree_output=tree_output)
        object.__setattr__(part, "bound", self.bound.part(roots, tree_output))  # nodes are checked once
        return part

    @cached_property
    def _games(self) -> dict[Subgame, tuple[WalkTrees, NDArray[np.int32], Floats]]:
        return {}

    def of_game(self, game: Subgame) -> tuple[WalkTrees, NDArray[np.int32], Floats]:
        """Return the trees that test a player of the game, with the players of the merged game, and their shares."""
        if game not in self._games:
            tests = np.flatnonzero(self.nodes[:, 0] >= 0)
            tests = tests[np.isin(self.players, game.own)[self.nodes[tests, 0] >> 1]]
            tree = np.searchsorted(self.roots, tests, side="right") - 1  # or one that is not among these
            kept = np.isin(np.arange(self.n_trees), tree)
            some = replace(
                self,
                roots=self.roots[kept],
                tree_output=self.tree_output[kept],
                players=game.merged[self.players],
                n_players=game.n_merged,
            )
            self._games[game] = some, *count_shares(game, int(some.tree_players.max(initial=0)))
        return self._games[game]

    def moments(self, index: Index) -> Floats:
        """Return what the interventional kernels need of an index."""
        return moments(index, int(self.tree_players.max(initial=0)))

    def paths(self, index: Index) -> kernels.walk.Paths:
        """Return what the path-dependent kernels need of an index."""
        needed = [index.n_points(n) for n in self.tree_players.tolist()]
        n_points = np.array([4 * -(-n // 4) for n in needed], dtype=np.int32)
        sizes, which = np.unique(n_points, return_inverse=True)
        start = np.concatenate([[0], np.cumsum(sizes)])[which].astype(np.int64)
        t, weights = zip(*(points(index, n) for n in sizes.tolist()), strict=True)
        return kernels.walk.Paths(self.ratio, n_points, start, np.concatenate(t), np.concatenate(weights))


def prepare(
    coded: CodedTrees, player_of_feature: NDArray[np.int32] | None = None, n_players: int | None = None
) -> WalkTrees:
    """Pack an ensemble on codes for the walks.

    Parameters
    ----------
    coded : CodedTrees
    player_of_feature : (n_features,) int32, optional
        Owner of each feature; by default every feature is a player of its own.
    n_players : int, optional
        By default as many as ``player_of_feature`` names.
    """
    e = coded.ensemble
    if player_of_feature is None:
        player_of_feature = np.arange(e.n_features, dtype=np.int32)
    owner = np.ascontiguousarray(player_of_feature, dtype=np.int32)
    n_players = int(owner.max(initial=-1)) + 1 if n_players is None else n_players
    place, nodes = np.empty(e.n_features, dtype=np.int32), np.empty((e.n_nodes, 4), dtype=np.int32)
    kernels.nodes.pack(e.feature, coded.cut, e.missing_left, e.category_set, e.left, e.right, place, nodes)
    features = np.flatnonzero(place >= 0).astype(np.int32)
    return WalkTrees(
        nodes,
        e.values,
        e.roots,
        e.tree_output,
        features,
        coded.book.n_codes[features],
        owner[features],
        e.is_categorical[features],
        coded.set_bits,
        n_players,
        e.n_outputs,
        e.cover,
        e.n_leaves / max(e.n_trees, 1),
    )


def add_dropped(values: Floats, out: Floats) -> None:
    """Add values (n_rows, n_players, outputs) to ``out``, which may have one output more: a dropped one."""
    if values.shape == out.shape:
        np.add(out, values, out=out)
        return
    out[..., :-1] += values
    out[..., -1] -= values.sum(axis=-1)


def _row_range(codes: Codes, rows: slice | None) -> tuple[int, int]:
    first, last, _ = (rows or slice(None)).indices(codes.shape[1])
    return first, max(first, last)


def interventional(
    trees: WalkTrees,
    codes: Codes,
    background: Codes,
    weights: Floats | None = None,
    *,
    index: Index = SHAPLEY,
    rows: slice | None = None,
    out: Floats | None = None,
) -> Floats:
    """Return interventional values, the mean over the background.

    Parameters
    ----------
    trees : WalkTrees
    codes, background : (n_features, n_rows) and (n_features, n_background) int32
    weights : (n_background,) float64, optional
        Positive; only their proportions matter. Equal by default.
    index : Index
    rows : slice, optional
        The rows to explain (without step); all by default.
    out : (n_rows, n_players, n_outputs) float64, optional
        Added to, at ``rows`` alone. A new array of zeros by default.
    """
    share = _shares(background, weights)
    if out is None:
        out = np.zeros((codes.shape[1], trees.n_players, trees.n_outputs))
    first, last = _row_range(codes, rows)
    if index.subgames:
        _add_games(trees, codes, slice(first, last), background, share, index, out)
        return out
    few = last - first < few_rows(trees.mean_leaves, background.shape[1])
    kernels.walk.interventional(
        trees.bound, codes, first, last, background, share, trees.moments(index), few, out
    )
    return out


def interventional_sums(
    trees: WalkTrees, codes: Codes, background: Codes, weights: Floats, index: Index, rows: slice, out: Floats
) -> None:
    """Add sums over the background to ``out``; each row has weights of its own (n_rows, n_background), of any sign."""
    first, last = _row_range(codes, rows)
    for row, share in zip(range(first, last), weights, strict=True):
        if index.subgames:
            _add_games(trees, codes, slice(row, row + 1), background, share, index, out)
            continue
        given = (background, share, trees.moments(index), True, out)
        kernels.walk.interventional(trees.bound, codes, row, row + 1, *given)


def _add_games(
    trees: WalkTrees, codes: Codes, rows: slice, background: Codes, share: Floats, index: Index, out: Floats
) -> None:
    """Add the values of a structured index: each of its games gives some players theirs."""
    for game in index.subgames:
        some, steps, pairs = trees.of_game(game)
        if some.n_trees:
            values = np.zeros((rows.stop - rows.start, game.n_merged, out.shape[2]))
            mine = np.ascontiguousarray(codes[:, rows])
            given = (mine, 0, len(values), background, share, steps, pairs, values)
            kernels.walk.interventional_classes(some.bound, *given)
            out[rows, game.own] += values[:, : len(game.own)]


def _shares(background: Codes, weights: Floats | None) -> Floats:
    share = np.ones(background.shape[1]) if weights is None else weights
    return np.asarray(share / share.sum())


def path_dependent(
    trees: WalkTrees,
    codes: Codes,
    *,
    index: Index = SHAPLEY,
    rows: slice | None = None,
    out: Floats | None = None,
) -> Floats:
    """Return path-dependent values (without a background: absent players follow the training cover).

    Parameters as in `interventional`. Exact: a path of m players needs ceil(m / 2) quadrature points.
    """
    if out is None:
        out = np.zeros((codes.shape[1], trees.n_players, trees.n_outputs))
    first, last = _row_range(codes, rows)
    kernels.walk.path_dependent(trees.bound, trees.paths(index), codes, first, last, out)
    return out


def predict(
    trees: WalkTrees, codes: Codes, *, rows: slice | None = None, out: Floats | None = None
) -> Floats:
    """Return raw predictions (n_rows, n_outputs) without the ensemble's base; `rows`, `out` as elsewhere."""
    if out is None:
        out = np.zeros((codes.shape[1], trees.n_outputs))
    kernels.walk.predict(trees.bound, codes, *_row_range(codes, rows), out)
    return out


def leaf_visits(trees: WalkTrees, codes: Codes, *, n_pairs: int = 20, random_state: int = 0) -> Floats:
    """Return (n_trees,) float64: leaves that a pair of different rows visits, from random pairs; of a single row, 1.

    The time of `interventional` grows with this, times rows, times background rows.
    """
    pairs = _random_pairs(codes.shape[1], n_pairs, random_state)
    rows, others = (np.ascontiguousarray(codes[:, picked]) for picked in pairs)
    out = np.zeros(trees.n_trees)
    kernels.walk.leaf_visits(trees.bound, rows, others, out)
    return out


@lru_cache(maxsize=16)
def _random_pairs(n: int, n_pairs: int, random_state: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return two rows of ``n`` for each pair, different ones where there are several."""
    rng = np.random.default_rng(random_state)
    first = rng.integers(n, size=n_pairs)
    return first, (first + rng.integers(1, max(n, 2), size=n_pairs)) % n
