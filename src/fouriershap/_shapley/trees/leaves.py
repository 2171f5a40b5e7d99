"""`LeafLookup`: the leaves of trees with counts of background rows, from which a report explains one row.

A leaf depends on a background row only through the set of players whose conditions on its path the row fails. SHAP
values need no more than the counts of these sets (see `fouriershap._shapley`), which take about a hundredth of the
memory of the tables built from them. A report sums over the counts for each row, which is fast enough for one row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._kernels.walk_numpy import Trees
from fouriershap._shapley.indices import SHAPLEY, points
from fouriershap._shapley.lookups import WholeLookup, book_arrays, book_header
from fouriershap._shapley.trees.model import Background, TreeModel
from fouriershap._trees.codes import Codebook

Floats = NDArray[np.float64]
MOST_PLAYERS = 31  # on a path: JavaScript has bitwise operations on 32 bits
_MOST_LEAVES = 200_000  # more take too long to count
_MOST_SETS = 5_000_000  # more make moving a slider too slow


@dataclass(frozen=True, eq=False)
class LeafLookup(WholeLookup):
    """Everything that is needed to explain one row. Nodes are in depth-first order: a node, its left side, its right.

    Attributes
    ----------
    book : Codebook
        Codes of the values of each feature.
    head, test : (n_nodes,) int32
        ``2 * feature + missing_left``, or -1 at a leaf; the cut, or ``-1 - set`` at a categorical node.
    tree_output : (n_trees,) int32
        Output that a tree adds to; -1 for all.
    values : (n_leaves, width) float64
    players : (n_features,) int32
    set_bits : (n_category_sets, n_bytes) uint8
        Codes that go left, one bit each.
    n_players, n_outputs : int
    most_players : int
        Most players on a path.
    set_count : (n_leaves,)
        Number of sets of each leaf.
    sets : (n_sets,)
        Sets of players that background rows fail: bit i is the i-th distinct player on the path of the leaf.
    shares : (n_sets,)
        Number of background rows that fail exactly these players, or their total weight where weights differ.
    total : float
        Sum of the shares of a leaf.
    ratio : (n_nodes,) float64 or None
        Training rows of a node divided by those of its parent, for path-dependent values; else None.
    """

    book: Codebook
    head: NDArray[np.int32]
    test: NDArray[np.int32]
    tree_output: NDArray[np.int32]
    values: Floats
    players: NDArray[np.int32]
    set_bits: NDArray[np.uint8]
    n_players: int
    n_outputs: int
    most_players: int
    set_count: NDArray[Any]
    sets: NDArray[Any]
    shares: NDArray[Any]
    total: float
    ratio: Floats | None
    missing_value: float
    zero_as_missing: NDArray[np.bool_]

    def header(self) -> dict[str, Any]:
        """Return the numbers and settings that are not arrays."""
        at, weights = points(SHAPLEY, max((self.most_players + 1) // 2, 1))
        return {
            "kind": "leaves",
            "n_players": self.n_players,
            "n_outputs": self.n_outputs,
            "most_players": self.most_players,
            "width": self.values.shape[1],
            "set_bytes": self.set_bits.shape[1],
            "by_path": self.ratio is not None,
            "total": self.total,
            "points": at.tolist(),
            "point_weights": weights.tolist(),
            **book_header(self.book, self.missing_value),
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name."""
        names = (
            "head",
            "test",
            "tree_output",
            "values",
            "players",
            "set_bits",
            "set_count",
            "sets",
            "shares",
        )
        named = {name: getattr(self, name) for name in names} | book_arrays(self.book, self.zero_as_missing)
        return named if self.ratio is None else named | {"ratio": self.ratio}


def leaf_lookup(model: TreeModel, background: Background) -> LeafLookup | None:
    """Return the leaves of trees; None without background rows, or where a report could not sum fast enough."""
    e, walk = model.ensemble, model.walk_trees
    most = int(walk.tree_players.max(initial=0))
    if background.is_lost or most > MOST_PLAYERS or e.n_leaves > _MOST_LEAVES:
        return None
    trees = Trees(*(getattr(walk, name) for name in Trees._fields))
    found = _Counted(trees, background.codes, background.weights)
    for root in trees.roots.tolist():
        if not found.add(root):
            return None
    order = np.array(found.order, dtype=np.int64)
    head = trees.nodes[order, 0]
    # Positions among the features that are tested become positions among all of them.
    feature = trees.features[np.maximum(head, 0) >> 1] if len(trees.features) else head
    owner = np.zeros(e.n_features, dtype=np.int32)
    owner[trees.features] = trees.players
    equal = background.weights is None
    shares = np.concatenate([*found.shares, np.empty(0)])
    return LeafLookup(
        book=model.coded.book,
        head=np.where(head < 0, -1, 2 * feature + (head & 1)).astype(np.int32),
        test=trees.nodes[order, 1],
        tree_output=trees.tree_output,
        values=trees.values[order[head < 0]],
        players=owner,
        set_bits=np.ascontiguousarray(trees.set_bits).view(np.uint8),
        n_players=walk.n_players,
        n_outputs=walk.n_outputs,
        most_players=most,
        set_count=_smallest(np.array([len(mine) for mine in found.sets], dtype=np.int64)),
        sets=_smallest(np.concatenate([*found.sets, np.empty(0, np.int64)])),
        shares=_smallest(shares) if equal else shares,
        total=float(background.n_rows or 1) if equal else 1.0,
        ratio=walk.ratio[order] if background.codes is None else None,
        missing_value=float("nan"),
        zero_as_missing=np.zeros(e.n_features, dtype=bool),
    )


class _Counted:
    """Nodes in depth-first order, and the sets of each leaf, of the trees added so far."""

    def __init__(self, trees: Trees, codes: NDArray[np.int32] | None, weights: Floats | None) -> None:
        self._trees, self._weights = trees, weights
        self._codes = np.zeros((len(trees.n_codes), 0), np.int32) if codes is None else codes
        self._counts = codes is not None
        self.order: list[int] = []
        self.sets: list[NDArray[np.int64]] = []
        self.shares: list[NDArray[Any]] = []
        self._n_sets = 0

    def add(self, root: int) -> bool:
        """Count the sets of a tree; return False once there are too many."""
        trees = self._trees
        everything = np.zeros(self._codes.shape[1], dtype=np.int64)
        stack: list[tuple[int, NDArray[np.int64], tuple[int, ...]]] = [(root, everything, ())]
        while stack:
            node, fails, path = stack.pop()
            self.order.append(node)
            if trees.nodes[node, 0] < 0:
                self._count(fails, len(path))
                continue
            player = trees.player(node)
            path = path if player in path else (*path, player)
            bit = 1 << path.index(player)
            left = trees.goes_left(node, self._codes)
            first, second = trees.nodes[node, 2:].tolist()
            stack.append((second, fails | np.where(left, bit, 0), path))
            stack.append((first, fails | np.where(left, 0, bit), path))
        return self._n_sets <= _MOST_SETS

    def _count(self, fails: NDArray[np.int64], n_path: int) -> None:
        if not self._counts:
            return
        if 1 << n_path <= 4 * len(fails):
            share = np.bincount(fails, self._weights)
            seen = np.flatnonzero(np.bincount(fails))
            share = share[seen]
        else:
            seen, which = np.unique(fails, return_inverse=True)
            share = np.bincount(which, self._weights)
        self.sets.append(seen)
        self.shares.append(share)
        self._n_sets += len(seen)


def _smallest(whole: NDArray[Any]) -> NDArray[Any]:
    """Cast integers >= 0 to the smallest integer type that reports support."""
    top = int(whole.max(initial=0))
    return whole.astype(np.uint8 if top < 256 else np.uint16 if top < 65_536 else np.int32)
