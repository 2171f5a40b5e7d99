"""Trees without tables, one leaf at a time: the specification of the native ``walk`` family.

Functions add to ``out``, at the rows ``first_row <= row < last_row`` alone. Code matrices are (all features, rows)
int32.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int32]
Floats = NDArray[np.float64]


class _Leaf(NamedTuple):
    node: int
    depth: int
    players: list[int]  # on its path
    holds: NDArray[np.bool_]  # (players, columns): whether a column satisfies all conditions on the player
    ratio: Floats  # (players,): product of the cover ratios of the player's edges


class Trees(NamedTuple):
    """An ensemble on codes.

    Attributes
    ----------
    nodes : (n_nodes, 4) int32
        ``2 * feature + missing_left``, or -1 at a leaf; the cut, or ``-1 - set`` at a categorical node; the left
        child; the right child, both after their parent. A "feature" is a position in ``features``.
    values : (n_nodes, width) float64
    roots, tree_output : (n_trees,) int32
        The root of each tree, and the output that it adds to (-1: all).
    features, n_codes, players : (n_features,) int32
        Row of the code matrix, number of codes (the last one is the missing value), owner.
    categorical : (n_features,) bool
    set_bits : (n_sets, words) uint64
    n_players : int
    """

    nodes: NDArray[np.int32]
    values: Floats
    roots: NDArray[np.int32]
    tree_output: NDArray[np.int32]
    features: NDArray[np.int32]
    n_codes: NDArray[np.int32]
    players: NDArray[np.int32]
    categorical: NDArray[np.bool_]
    set_bits: NDArray[np.uint64]
    n_players: int

    def part(self, roots: NDArray[np.int32], tree_output: NDArray[np.int32]) -> Trees:
        """Return some of the trees; nodes are shared."""
        return self._replace(roots=roots, tree_output=tree_output)

    def path_shape(self, out: NDArray[np.int32]) -> None:
        """Write the most distinct players, and the most edges, on a path of each tree: (2, n_trees)."""
        nothing = np.zeros((int(self.features.max(initial=-1)) + 1, 1), np.int32)
        for tree in range(len(self.roots)):
            leaves = list(self.leaves(tree, nothing))
            out[:, tree] = max(len(leaf.players) for leaf in leaves), max(leaf.depth for leaf in leaves)

    def goes_left(self, node: int, codes: Codes) -> NDArray[np.bool_]:
        """Return which columns of a code matrix go left at a node."""
        head, test = self.nodes[node, :2]
        column = codes[self.features[head >> 1]]
        if test < 0:
            words = self.set_bits[-1 - test][column // 64]
            return np.asarray(words >> (column % 64).astype(np.uint64) & np.uint64(1), dtype=bool)
        missing = column == self.n_codes[head >> 1] - 1
        return np.asarray((column < test) | (missing & bool(head & 1)))

    def player(self, node: int) -> int:
        return int(self.players[self.nodes[node, 0] >> 1])

    def leaves(self, tree: int, codes: Codes, ratio: Floats | None = None) -> Iterator[_Leaf]:
        """Yield the leaves of a tree with the literals of their paths."""
        ratio = np.ones(len(self.nodes)) if ratio is None else ratio
        stack: list[tuple[int, int, dict[int, tuple[NDArray[np.bool_], float]]]]
        stack = [(int(self.roots[tree]), 0, {})]
        everywhere = np.ones(codes.shape[1], dtype=bool)
        while stack:
            node, depth, literals = stack.pop()
            if self.nodes[node, 0] < 0:
                holds = np.array([holds for holds, _ in literals.values()], dtype=bool)
                holds = holds.reshape(len(literals), codes.shape[1])  # either may be empty
                yield _Leaf(node, depth, list(literals), holds, np.array([r for _, r in literals.values()]))
                continue
            left, player = self.goes_left(node, codes), self.player(node)
            before, cover = literals.get(player, (everywhere, 1.0))
            for child, side in zip(self.nodes[node, 2:].tolist(), (left, ~left), strict=True):
                literal = (before & side, cover * float(ratio[child]))
                stack.append((child, depth + 1, {**literals, player: literal}))

    def leaf_values(self, tree: int, leaf: int) -> tuple[slice, Floats]:
        """Return the columns of the output that a leaf adds to, and what it adds."""
        output = int(self.tree_output[tree])
        if output < 0:
            return slice(0, self.values.shape[1]), self.values[leaf]
        column = output if self.values.shape[1] > 1 else 0
        return slice(output, output + 1), self.values[leaf, column : column + 1]


class Paths(NamedTuple):
    """Cover ratios and quadrature for path-dependent values.

    Attributes
    ----------
    ratio : (n_nodes,) float64
        Cover of a node over its parent's.
    n_points, point_start : (n_trees,) int32, int64
        Tree t integrates over ``n_points[t]`` points, a multiple of 4, from ``point_start[t]`` on.
    points, weights : float64
    """

    ratio: Floats
    n_points: NDArray[np.int32]
    point_start: NDArray[np.int64]
    points: Floats
    weights: Floats

    def of(self, tree: int) -> tuple[Floats, Floats]:
        here = slice(self.point_start[tree], self.point_start[tree] + self.n_points[tree])
        return self.points[here], self.weights[here]


def interventional(
    trees: Trees,
    codes: Codes,
    first_row: int,
    last_row: int,
    background: Codes,
    weights: Floats,
    moments: Floats,
    by_row: bool,
    out: Floats,
) -> None:
    """Add interventional values.

    Parameters
    ----------
    weights : (n_background,) float64
        With weights that add up to 1, values are the mean over the background.
    moments : (m + 1, m + 1) float64, m >= most players on a path
        The integral of t^p (1 - t)^q by p and q (see `fouriershap._shapley.indices`).
    by_row : bool
        Whether the native family walks each row by itself, which is faster for a few rows.
    out : (rows, n_players, n_outputs) float64
        Added to: the sum over the background of its weight times the value.
    """
    for leaf in meetings(trees, codes[:, first_row:last_row], background, weights):
        gain = (leaf.alive * moment_at(moments, leaf.c - 1, leaf.z)) @ leaf.other_fails
        loss = (leaf.alive * moment_at(moments, leaf.c, leaf.z - 1)).sum(axis=1)
        share = gain - loss[:, None] * leaf.row_fails
        out[first_row:last_row, leaf.players, leaf.columns] += share[:, :, None] * leaf.values


def interventional_classes(
    trees: Trees,
    codes: Codes,
    first_row: int,
    last_row: int,
    background: Codes,
    weights: Floats,
    steps: NDArray[np.int32],
    pairs: Floats,
    out: Floats,
) -> None:
    """Add interventional values whose weights depend on how many players of each of several classes take part.

    Parameters
    ----------
    steps : (n_players,) int32
        What each player adds to the counts of those that a row, or a background row, fails.
    pairs : (n_counts, n_counts, 2) float64
        By the counts of the row and of the background row: the share of a player that the background row fails, and
        minus that of one that the row fails. Sums of steps on a path, and of all that could be there, are below
        ``n_counts``.
    """
    for leaf in meetings(trees, codes[:, first_row:last_row], background, weights):
        step = steps[leaf.players]
        gain, loss = np.moveaxis(pairs[(leaf.row_fails @ step)[:, None], leaf.other_fails @ step], 2, 0)
        share = (leaf.alive * gain) @ leaf.other_fails
        share -= (leaf.alive * loss).sum(axis=1)[:, None] * leaf.row_fails
        out[first_row:last_row, leaf.players, leaf.columns] += share[:, :, None] * leaf.values


class Meeting(NamedTuple):
    """A leaf, and the rows and background rows with hybrids that reach it."""

    players: list[int]  # on its path
    columns: slice  # of the output
    values: Floats
    row_fails: NDArray[np.bool_]  # (rows, players)
    other_fails: NDArray[np.bool_]  # (background rows, players)
    z: NDArray[np.int64]  # (rows, 1) how many players a row fails
    c: NDArray[np.int64]  # (background rows,)
    alive: Floats  # (rows, background rows) the weight where no player fails in both, else 0


def meetings(trees: Trees, codes: Codes, background: Codes, weights: Floats) -> Iterator[Meeting]:
    """Yield the leaves of all trees with what the rows and background rows fail on their paths."""
    n_rows = codes.shape[1]
    both = np.concatenate([codes, background], axis=1)
    for tree in range(len(trees.roots)):
        for leaf in trees.leaves(tree, both):
            row_fails, other_fails = np.split(~leaf.holds.T, [n_rows])
            z, c = row_fails.sum(axis=1)[:, None], other_fails.sum(axis=1)
            alive = (row_fails.astype(float) @ other_fails.T.astype(float) == 0) * weights
            of_leaf = trees.leaf_values(tree, leaf.node)
            yield Meeting(leaf.players, *of_leaf, row_fails, other_fails, z, c, alive)


def moment_at(moments: Floats, p: NDArray[Any], q: NDArray[Any]) -> Floats:
    """Return the moments at (p, q), 0 where one of the two is negative."""
    return np.where((p >= 0) & (q >= 0), moments[np.maximum(p, 0), np.maximum(q, 0)], 0.0)


def path_dependent(
    trees: Trees, paths: Paths, codes: Codes, first_row: int, last_row: int, out: Floats
) -> None:
    """Add path-dependent SHAP values to ``out`` (rows, n_players, n_outputs)."""
    for tree in range(len(trees.roots)):
        t, weights = paths.of(tree)
        for leaf in trees.leaves(tree, codes[:, first_row:last_row], paths.ratio):
            a, b = leaf.holds.astype(float), leaf.ratio[:, None]
            factor = a[..., None] * t + b[..., None] * (1 - t)
            others = np.ones_like(factor)  # product of all factors but the player's own
            others[1:] *= np.cumprod(factor, axis=0)[:-1]
            others[:-1] *= np.cumprod(factor[::-1], axis=0)[::-1][1:]
            share = (a - b) * (others @ weights)
            columns, values = trees.leaf_values(tree, leaf.node)
            out[first_row:last_row, leaf.players, columns] += share.T[:, :, None] * values


def path_dependent_sets(
    trees: Trees,
    paths: Paths,
    codes: Codes,
    first_row: int,
    last_row: int,
    size: int,
    keys: NDArray[np.int64],
    radix: int,
    out: Floats,
) -> None:
    """Add path-dependent interactions of sets of ``size`` players to ``out`` (rows, n_sets, n_outputs).

    ``keys`` (n_sets,) int64, ascending: ``key_of(players, radix)`` of the wanted sets. Paths have up to 64 players.
    """
    column = {key: k for k, key in enumerate(keys.tolist())}
    for tree in range(len(trees.roots)):
        t, weights = paths.of(tree)
        for leaf in trees.leaves(tree, codes[:, first_row:last_row], paths.ratio):
            a, b = leaf.holds.astype(float), leaf.ratio[:, None]
            factor = a[..., None] * t + b[..., None] * (1 - t)
            columns, values = trees.leaf_values(tree, leaf.node)
            for chosen in combinations(range(len(leaf.players)), size):
                key = key_of([leaf.players[i] for i in chosen], radix)
                if key in column:
                    others = np.delete(factor, chosen, axis=0).prod(axis=0) @ weights
                    share = (a - b)[list(chosen)].prod(axis=0) * others
                    out[first_row:last_row, column[key], columns] += share[:, None] * values


def key_of(players: Any, radix: int) -> int:
    """Return a number for a set of players: digits p + 1, ascending, so that keys sort by size, then by players."""
    key = 0
    for player in sorted(players):
        key = key * radix + player + 1
    return key


def predict(trees: Trees, codes: Codes, first_row: int, last_row: int, out: Floats) -> None:
    """Add the values of the leaves reached to ``out`` (rows, n_outputs)."""
    codes = codes[:, first_row:last_row]
    for tree in range(len(trees.roots)):
        pending = [(int(trees.roots[tree]), np.arange(codes.shape[1]))]
        while pending:
            node, rows = pending.pop()
            if trees.nodes[node, 0] < 0:
                columns, values = trees.leaf_values(tree, node)
                out[first_row + rows, columns] += values
            elif len(rows):
                left = trees.goes_left(node, codes[:, rows])
                pending += [(int(trees.nodes[node, 2]), rows[left]), (int(trees.nodes[node, 3]), rows[~left])]


class LeafBits(NamedTuple):
    """An ensemble prepared for very many hybrid rows: the native one keeps sets of leaves by code, as bits."""

    trees: Trees

    def add(self, row: Codes, other: Codes, inside: NDArray[np.bool_], out: Floats) -> None:
        """Add outputs of hybrids of two columns of codes to ``out``; ``inside`` (n, n_players): who is from the row."""
        hybrids = np.tile(other[:, None], len(inside))
        members = inside[:, self.trees.players].T
        hybrids[self.trees.features] = np.where(
            members, row[self.trees.features, None], other[self.trees.features, None]
        )
        predict(self.trees, hybrids, 0, len(inside), out)


def chains(
    bits: LeafBits, codes: Codes, row: int, others: Codes, places: NDArray[np.int64], out: Floats
) -> None:
    """Add outputs of hybrids along orders of the players.

    Parameters
    ----------
    row : int
        A column of ``codes``.
    others : (all features, n_others) int32
        Background rows.
    places : (n_others, 2, n_players) int64
        The place of each player in two orders.
    out : (n_others, 2, n_players - 1, n_outputs) float64
        Added to: where the first k + 1 players of an order come from the row.
    """
    inside = np.arange(1, places.shape[2])[:, None] > places[:, :, None, :]
    for i, way in np.ndindex(*out.shape[:2]):
        bits.add(codes[:, row], others[:, i], inside[i, way], out[i, way])


def coalitions(bits: LeafBits, codes: Codes, row: int, others: Codes, out: Floats) -> None:
    """Add outputs of all hybrids of a row and each background row to ``out`` (n_others, 2^n_players, n_outputs).

    Bit j of a coalition tells whether player j comes from the row.
    """
    n_players = bits.trees.n_players
    inside = np.arange(1 << n_players)[:, None] >> np.arange(n_players) & 1 == 1
    for i in range(len(out)):
        bits.add(codes[:, row], others[:, i], inside, out[i])


def leaf_visits(trees: Trees, codes: Codes, background: Codes, out: Floats) -> None:
    """Write the leaves that the hybrids of a row and a background row reach, mean over pairs: (n_trees,).

    Column i of ``codes`` is paired with column i of ``background``.
    """
    n_pairs = codes.shape[1]
    both = np.concatenate([codes, background], axis=1)
    for tree in range(len(trees.roots)):
        reached = [
            (leaf.holds[:, :n_pairs] | leaf.holds[:, n_pairs:]).all(axis=0)
            for leaf in trees.leaves(tree, both)
        ]
        out[tree] = np.sum(reached) / max(n_pairs, 1)
