"""The `tree_blocks` kernels in NumPy: what `tree_blocks.cpp` must compute. Arrays are documented here."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

WIDTH = 8
_MOST_PATTERNS = 65_536
_MOST_SPLITS = 64  # of a block on one feature: the native kernel keeps their sides in one word
_DTYPES = {"cut_at": np.uint16, "fail": np.uint32, "leaf_ratio": np.float64, "feasible": np.uint8}


@dataclass
class _Feature:
    """A feature of a block: conditions above it, nodes inside it, and the states of its codes."""

    feature: int
    path: list[tuple[int, bool]] = field(default_factory=list)
    inner: list[int] = field(default_factory=list)
    cuts: list[int] = field(default_factory=list)
    states: list[int] = field(default_factory=list)
    missing_state: int = 0
    meanings: list[tuple[bool, tuple[bool, ...]]] = field(default_factory=list)


class Trees(NamedTuple):
    """An ensemble on codes; see `fouriershap._trees.codes.CodedTrees`."""

    roots: NDArray[np.int32]
    feature: NDArray[np.int32]
    cut: NDArray[np.int32]
    missing_left: NDArray[np.bool_]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    category_set: NDArray[np.int32]
    set_bits: NDArray[np.uint64]
    n_codes: NDArray[np.int32]
    player: NDArray[np.int32]
    cover: NDArray[np.float64]


class _Builder:
    def __init__(self, trees: Trees) -> None:
        self.feature, self.cut, self.missing_left = trees.feature, trees.cut, trees.missing_left
        self.left, self.right, self.cover = trees.left, trees.right, trees.cover
        self.category_set, self.set_bits = trees.category_set, trees.set_bits
        self.n_codes, self.player = trees.n_codes, trees.player
        self.parent = np.full(len(self.feature), -1)
        inner = np.flatnonzero(self.feature >= 0)
        self.parent[self.left[inner]] = self.parent[self.right[inner]] = inner

    def goes_left(self, node: int, code: int) -> bool:
        if self.category_set[node] >= 0:
            return bool(int(self.set_bits[self.category_set[node], code // 64]) >> (code % 64) & 1)
        if code == self.n_codes[self.feature[node]] - 1:
            return bool(self.missing_left[node])
        return bool(code < self.cut[node])

    def path(self, node: int, top: int = -1) -> list[tuple[int, int]]:
        """(parent, child) edges from a node up to ``top``, or to the root."""
        edges = []
        while node != top and self.parent[node] >= 0:
            edges.append((int(self.parent[node]), node))
            node = int(self.parent[node])
        return edges

    def subtree(self, node: int) -> tuple[list[int], list[int]]:
        """Inner nodes and leaves below a node, depth first, left first."""
        stack, inner, leaves = [node], [], []
        while stack:
            v = stack.pop()
            if self.feature[v] < 0:
                leaves.append(v)
            else:
                inner.append(v)
                stack += [int(self.right[v]), int(self.left[v])]
        return inner, leaves

    def describe(self, node: int) -> list[_Feature]:
        """Return the features of the block at a node, with the states of their codes."""
        found: dict[int, _Feature] = {}
        for above, below in self.path(node):
            f = int(self.feature[above])
            found.setdefault(f, _Feature(f)).path.append((above, bool(self.left[above] == below)))
        for v in self.subtree(node)[0]:
            f = int(self.feature[v])
            found.setdefault(f, _Feature(f)).inner.append(v)
        features = [found[f] for f in sorted(found)]
        for item in features:
            last = int(self.n_codes[item.feature]) - 1
            nodes = [v for v, _ in item.path] + item.inner
            changes = {
                c for v in nodes for c in range(1, last) if self.goes_left(v, c) != self.goes_left(v, c - 1)
            }
            item.cuts = [0, *sorted(changes)]
            item.states = [self.state(item, c) for c in item.cuts]
            item.missing_state = self.state(item, last)
        return features

    def state(self, f: _Feature, code: int) -> int:
        """One common state where the path fails, else what the inner nodes say of the code."""
        fails = any(self.goes_left(v, code) != side for v, side in f.path)
        meaning = (fails, () if fails else tuple(self.goes_left(v, code) for v in f.inner))
        if meaning not in f.meanings:
            f.meanings.append(meaning)
        return f.meanings.index(meaning)

    def players(self, features: list[_Feature]) -> list[int]:
        return sorted({int(self.player[f.feature]) for f in features})


def cut_trees(
    trees: Trees,
    wanted: NDArray[np.bool_],
    max_patterns: int,
    max_players: int,
    cost_table: float,
    cost_cut: float,
    cost_pattern: float,
) -> dict[str, NDArray[Any]]:
    """Cut trees into blocks: subtrees whose leaves share one table.

    The pattern of a row in a block is a mixed-radix number with a digit per feature, the state of the
    feature's code: "the path to the block fails", or what the block's own splits say of the code. Subtrees
    are merged from the leaves upwards where one block costs no more than two, within the limits.

    Parameters
    ----------
    wanted : (n_trees,) bool
        The trees to cut.
    max_patterns, max_players : int
        Limits of a merged block. A block of one leaf may have up to 65,536 patterns.
    cost_table, cost_cut, cost_pattern : float
        Cost of a block: ``tables * (cost_table + patterns * cost_pattern) + cuts * cost_cut``.

    Returns
    -------
    dict of arrays
        The blocks (``cut_*``, ``base``, ``n_patterns``, as in `tables_numpy`, with features as columns), the
        ``tree`` of each; its ``players`` (``player_start``) and the number of states of its features
        (``feature_states``, ``feature_start``); its leaves (``leaf_start``, ``leaf_node``), the players on the
        path of each (``leaf_players``, positions in the block's list; ``leaf_ratio``, the share of training rows
        that pass their literal; ``leaf_player_start``), and which of those players, as bits, fail in each
        state of each feature (``fail``, ``fail_start``). ``feasible`` (n_trees,): whether the tree is in there;
        it is not where a leaf has too many patterns.
    """
    roots, feature, left, right = trees.roots, trees.feature, trees.left, trees.right
    b = _Builder(trees)
    out: dict[str, list[Any]] = defaultdict(list)
    for start in (
        "cut_start",
        "player_start",
        "feature_start",
        "leaf_start",
        "leaf_player_start",
        "fail_start",
    ):
        out[start].append(0)
    cost: dict[int, float] = {}
    for k, first in enumerate(roots):
        last = int(roots[k + 1]) if k + 1 < len(roots) else len(feature)
        out["feasible"].append(0)
        if not wanted[k]:
            continue
        feasible = True
        for v in range(last - 1, int(first) - 1, -1):
            leaf = feature[v] < 0
            if not leaf and (int(left[v]) not in cost or int(right[v]) not in cost):
                continue
            features = b.describe(v)
            n = int(np.prod([len(f.meanings) for f in features], dtype=float))
            if leaf and n > _MOST_PATTERNS:
                feasible = False
                break
            if not leaf and (n > max_patterns or len(b.players(features)) > max_players):
                continue
            if max((len(f.inner) for f in features), default=0) > _MOST_SPLITS:
                continue
            tables = float(-(-len(b.players(features)) // WIDTH))
            n_cuts = sum(int(np.count_nonzero(np.diff(f.states))) for f in features)
            together = tables * cost_table + n_cuts * cost_cut + tables * n * cost_pattern
            if leaf or together <= cost[int(left[v])] + cost[int(right[v])]:
                cost[v] = together
        if not feasible:
            continue
        out["feasible"][-1] = 1
        for v in range(int(first), last):
            if v in cost and int(b.parent[v]) not in cost:
                _emit(b, v, k, out)
    starts = {name for name in out if name.endswith("_start")} - {"cut_start"}
    types = dict.fromkeys(starts, np.int64) | _DTYPES
    names = ["cut_missing", "cut_column", "cut_at", "cut_weight", "base", "n_patterns", "tree", "players"]
    names += ["feature_states", "leaf_node", "leaf_players", "leaf_ratio", "fail"]
    return {name: np.array(out[name], dtype=types.get(name, np.int32)) for name in (*out, *names)}


def _emit(b: _Builder, node: int, tree: int, out: dict[str, list[Any]]) -> None:
    features = b.describe(node)
    players = b.players(features)
    base, stride = 0, 1
    missing: list[tuple[int, int, int]] = []
    for f in features:
        base += stride * f.states[0]
        for i in range(1, len(f.states)):
            if f.states[i] != f.states[i - 1]:
                out["cut_column"].append(f.feature)
                out["cut_at"].append(f.cuts[i])
                out["cut_weight"].append(stride * (f.states[i] - f.states[i - 1]))
        if f.missing_state != f.states[-1]:
            change = stride * (f.missing_state - f.states[-1])
            missing.append((f.feature, int(b.n_codes[f.feature]) - 1, change))
        stride *= len(f.meanings)
        out["feature_states"].append(len(f.meanings))
    out["cut_missing"].append(len(out["cut_column"]))
    for column, at, weight in missing:
        out["cut_column"].append(column)
        out["cut_at"].append(at)
        out["cut_weight"].append(weight)
    out["cut_start"].append(len(out["cut_column"]))
    out["base"].append(base)
    out["n_patterns"].append(stride)
    out["tree"].append(tree)
    out["players"] += players
    out["player_start"].append(len(out["players"]))
    out["feature_start"].append(len(out["feature_states"]))
    for leaf in b.subtree(node)[1]:
        _emit_leaf(b, leaf, node, features, players, out)
    out["leaf_start"].append(len(out["leaf_node"]))


def _emit_leaf(
    b: _Builder, leaf: int, node: int, features: list[_Feature], players: list[int], out: dict[str, list[Any]]
) -> None:
    ratio: dict[int, float] = {}
    for above, below in b.path(leaf):
        share = b.cover[below] / b.cover[above] if b.cover[above] > 0 else 0.5
        owner = int(b.player[b.feature[above]])
        ratio[owner] = ratio.get(owner, 1.0) * share
    bit = {owner: 1 << i for i, owner in enumerate(ratio)}
    own = b.path(leaf, top=node)
    for f in features:
        for path_fails, lefts in f.meanings:
            fails = path_fails or any(
                lefts[f.inner.index(above)] != (b.left[above] == below)
                for above, below in own
                if b.feature[above] == f.feature
            )
            out["fail"].append(bit.get(int(b.player[f.feature]), 0) if fails else 0)
    out["fail_start"].append(len(out["fail"]))
    out["leaf_players"] += [players.index(owner) for owner in ratio]
    out["leaf_ratio"] += ratio.values()
    out["leaf_player_start"].append(len(out["leaf_players"]))
    out["leaf_node"].append(leaf)


def profile_trees(
    roots: NDArray[np.int32],
    feature: NDArray[np.int32],
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    player: NDArray[np.int32],
    out: NDArray[np.float64],
) -> None:
    """Write, per tree: leaves, depth, most distinct players on a path, sum over leaves of 2^players."""
    for k, root in enumerate(roots):
        out[k] = 0.0
        stack: list[tuple[int, int, frozenset[int]]] = [(int(root), 0, frozenset())]
        while stack:
            v, depth, seen = stack.pop()
            if feature[v] < 0:
                out[k] += [1, 0, 0, 2.0 ** len(seen) if len(seen) < 1000 else np.inf]
                out[k, 1:3] = max(out[k, 1], depth), max(out[k, 2], len(seen))
            else:
                below = seen | {int(player[feature[v]])}
                stack += [(int(child), depth + 1, below) for child in (left[v], right[v])]
