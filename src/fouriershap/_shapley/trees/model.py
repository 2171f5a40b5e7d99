"""What a tree engine stands on, frozen: the trees on codes with their players, and the background."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.frozen import Frozen
from fouriershap._base.links import UNKNOWN, Link
from fouriershap._shapley.indices import SHAPLEY, Index
from fouriershap._shapley.trees import stream, walk
from fouriershap._shapley.trees.plan import BottomSubtrees, count_bottom_subtrees, feasible_trees, profile
from fouriershap._trees.codes import CodedTrees, code_trees
from fouriershap._trees.ensemble import TreeEnsemble

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TreeModel(Frozen):
    """Trees on codes, their players, and how they are to be explained: all but the background.

    Attributes
    ----------
    coded : CodedTrees
    player : (n_features,) int32
        Player that owns each feature, numbered from 0 without gaps.
    memory : int
        Budget of the tables in bytes.
    dtype : float32 or float64
        Precision of the tables; totals are float64 either way.
    strategy : {"auto", "tables", "stream", "walk"}
    index : Index
    link : Link
        What turns the raw output into the model's prediction.
    kind : str
        Library and class of the model.
    """

    coded: CodedTrees
    player: NDArray[np.int32]
    memory: int
    dtype: np.dtype[Any]
    strategy: str = "auto"
    index: Index = SHAPLEY
    link: Link = UNKNOWN
    kind: str = ""

    @property
    def ensemble(self) -> TreeEnsemble:
        return self.coded.ensemble

    @cached_property
    def n_players(self) -> int:
        return int(self.player.max(initial=-1)) + 1

    @cached_property
    def profile(self) -> Floats:
        """(n_trees, 4), see `plan.profile`."""
        return profile(self.coded)

    @cached_property
    def feasible(self) -> NDArray[np.bool_]:
        """(n_trees,) bool: the trees whose tables should fit, by estimate; building them tells."""
        if self.strategy in ("stream", "walk"):
            return np.zeros(self.ensemble.n_trees, dtype=bool)
        return feasible_trees(self.coded, self.profile, self.memory, self.dtype.itemsize)

    @cached_property
    def walk_trees(self) -> walk.WalkTrees:
        """All trees, ready to be walked."""
        return walk.prepare(self.coded, self.player, self.n_players)

    @cached_property
    def stream_trees(self) -> stream.StreamTrees:
        """All trees, ready to be streamed."""
        return stream.prepare(self.walk_trees, self.bottom_subtrees)

    @cached_property
    def bottom_subtrees(self) -> BottomSubtrees:
        """Bottom subtrees of all trees."""
        return count_bottom_subtrees(self.walk_trees)

    def walk_without(self, in_tables: NDArray[np.bool_]) -> walk.WalkTrees | None:
        """The other trees, ready to be walked; None where there are none."""
        if in_tables.all():
            return None
        if not in_tables.any():
            return self.walk_trees
        return walk.prepare(self.coded.select(~in_tables), self.player, self.n_players)


def make_model(
    ensemble: TreeEnsemble,
    player: NDArray[np.int32],
    memory: int,
    dtype: np.dtype[Any],
    strategy: str = "auto",
    index: Index = SHAPLEY,
    link: Link = UNKNOWN,
    kind: str = "",
) -> TreeModel:
    """Put an ensemble on codes."""
    return TreeModel(code_trees(ensemble), player, memory, np.dtype(dtype), strategy, index, link, kind)


@dataclass(frozen=True, eq=False)
class Background(Frozen):
    """Cleaned rows that stand for "feature unknown".

    Attributes
    ----------
    model : TreeModel
    rows : (n_rows, n_features), or None for path-dependent values
        Empty where a file kept tables in their place.
    weights : (n_rows,) float64 that sum to 1, or None for equal ones
    n_rows : int or None
        Also where the rows themselves are not there; None for path-dependent values and where nobody knows.
    """

    model: TreeModel
    rows: NDArray[Any] | None
    weights: Floats | None
    n_rows: int | None

    @property
    def is_lost(self) -> bool:
        """Whether there was one, which a file did not keep."""
        return self.rows is not None and not len(self.rows)

    @cached_property
    def codes(self) -> NDArray[np.int32] | None:
        """(n_features, n_rows)."""
        return None if self.rows is None else self.model.coded.book.encode(self.rows)

    @property
    def bottom_subtrees(self) -> BottomSubtrees:
        """Bottom subtrees of all trees."""
        return self.model.bottom_subtrees

    @cached_property
    def visits(self) -> Floats | None:
        """(n_trees,) leaves that a pair of rows visits; None without a background."""
        return None if self.codes is None else walk.leaf_visits(self.model.walk_trees, self.codes)


def make_background(model: TreeModel, rows: NDArray[Any] | None, weights: Floats | None = None) -> Background:
    """Rows as `TreeEnsemble.clean_rows` gives them, None for path-dependent values."""
    return Background(model, rows, weights, None if rows is None else len(rows))
