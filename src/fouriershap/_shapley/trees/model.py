"""Frozen inputs of a tree engine: the trees on codes with their players, and the background."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import CapacityError
from fouriershap._base.frozen import Frozen
from fouriershap._base.links import UNKNOWN, Link
from fouriershap._shapley.indices import SHAPLEY, Index
from fouriershap._shapley.trees import stream, walk
from fouriershap._shapley.trees.blocks import TreeBlocks, build_blocks
from fouriershap._shapley.trees.plan import (
    MOST_DEPTH,
    MOST_FEATURES,
    BottomSubtrees,
    count_bottom_subtrees,
    feasible_trees,
    profile,
)
from fouriershap._trees.codes import CodedTrees, code_trees
from fouriershap._trees.ensemble import TreeEnsemble

Floats = NDArray[np.float64]
_SINGLE = (1e-25, 1e25)  # sizes of the largest leaf that float32 tables hold with all their digits
_FEW_TREES = 8  # the errors of more average out
_LONG_TAIL = 32.0  # times the usual size of leaves: float32 would round away the values of usual rows


@dataclass(frozen=True, eq=False)
class Layout:
    """Trees that go into tables, and their blocks: the part of tables that no background changes.

    Attributes
    ----------
    in_tables : (n_trees,) bool
    blocks : TreeBlocks or None
        None where no tree goes into tables.
    """

    in_tables: NDArray[np.bool_]
    blocks: TreeBlocks | None


@dataclass(frozen=True, eq=False)
class TreeModel(Frozen):
    """Trees on codes, their players, and how to explain them, without the background.

    Attributes
    ----------
    coded : CodedTrees
    player : (n_features,) int32
        Player that owns each feature, numbered from 0 without gaps.
    memory : int
        Budget of the tables in bytes.
    dtype : float32 or float64
        Precision of the tables; totals are float64 in any case.
    strategy : {"auto", "tables", "stream", "walk"}
    index : Index
    link : Link
        Turns the raw output into the model's prediction.
    kind : str
        Library and class of the model.
    n_channels : int
        Weights of each background row, where the model has one output: each makes an output of its own.
    """

    coded: CodedTrees
    player: NDArray[np.int32]
    memory: int
    dtype: np.dtype[Any]
    strategy: str = "auto"
    index: Index = SHAPLEY
    link: Link = UNKNOWN
    kind: str = ""
    n_channels: int = 1

    @property
    def ensemble(self) -> TreeEnsemble:
        return self.coded.ensemble

    @cached_property
    def n_players(self) -> int:
        return int(self.player.max(initial=-1)) + 1

    @cached_property
    def profile(self) -> Floats:
        """Leaves, depth, features, patterns and cuts of each tree, (n_trees, 5); see `plan.profile`."""
        return profile(self.coded)

    @cached_property
    def feasible(self) -> NDArray[np.bool_]:
        """Trees whose tables are estimated to fit, (n_trees,) bool; building them may show that fewer do."""
        if self.strategy in ("stream", "walk"):
            return np.zeros(self.ensemble.n_trees, dtype=bool)
        return feasible_trees(self.coded, self.profile, self.memory, self.dtype.itemsize * self.n_channels)

    @cached_property
    def layout(self) -> Layout:
        """The feasible trees cut into blocks; where they exceed the budget, those that fit, smallest first."""
        in_tables = self.feasible
        while in_tables.any():
            check_capacity(self, in_tables)
            blocks = build_blocks(self.coded.select(in_tables), self.player, self.n_players, self.n_channels)
            sizes = blocks.tree_values * self.dtype.itemsize
            if sizes.sum() <= self.memory:
                return Layout(in_tables, blocks)
            in_tables = smallest(sizes, in_tables, self.memory)
        check_capacity(self, in_tables)
        return Layout(in_tables, None)

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
        """Return the trees without tables, ready to be walked; None where all have tables."""
        if in_tables.all():
            return None
        if not in_tables.any():
            return self.walk_trees
        return walk.prepare(self.coded.select(~in_tables), self.player, self.n_players)


def check_capacity(model: TreeModel, in_tables: NDArray[np.bool_]) -> None:
    """Raise `CapacityError` where ``strategy="tables"`` and some tree has no table."""
    if model.strategy == "tables" and not in_tables.all():
        raise CapacityError(
            f"{int((~in_tables).sum())} of {len(in_tables)} trees do not fit into tables (at most {MOST_FEATURES} "
            f"features and {MOST_DEPTH} splits on a path, and {model.memory:,} bytes in all). Raise `memory`, or use "
            "strategy='auto', which explains these trees without tables."
        )


def smallest(sizes: NDArray[np.int64], among: NDArray[np.bool_], most: int) -> NDArray[np.bool_]:
    """Return the trees ``among`` all, smallest first, whose ``sizes`` sum to at most ``most``, (n_trees,) bool."""
    order = np.argsort(sizes, kind="stable")
    fits = order[np.cumsum(sizes[order]) <= most]
    out = np.zeros_like(among)
    out[np.flatnonzero(among)[fits]] = True
    return out


def tables_type(e: TreeEnsemble) -> np.dtype[Any]:
    """Return float32 for tables, or float64 where the sizes of the leaves need it."""
    leaves = np.flatnonzero(e.feature < 0)
    largest = float(np.abs(e.values).max(initial=0.0))
    if largest and not _SINGLE[0] < largest < _SINGLE[1]:
        return np.dtype(np.float64)
    if e.n_trees > _FEW_TREES or not len(leaves):
        return np.dtype(np.float32)
    tails, usual = [0.0], 0.0
    for tree in np.split(leaves, np.searchsorted(leaves, e.roots[1:])):
        cover = e.cover[tree] + 1e-9  # equal weights where covers are 0
        size = np.abs(e.values[tree] - np.average(e.values[tree], axis=0, weights=cover)).max(axis=1)
        order = np.argsort(size)
        below = np.cumsum(cover[order])
        usual += size[order][np.searchsorted(below, below[-1] / 2)]
        tails.append(size.max())
    return np.dtype(np.float64 if max(tails) > _LONG_TAIL * usual else np.float32)


def make_model(
    ensemble: TreeEnsemble,
    player: NDArray[np.int32],
    memory: int,
    dtype: np.dtype[Any],
    strategy: str = "auto",
    index: Index = SHAPLEY,
    link: Link = UNKNOWN,
    kind: str = "",
    n_channels: int = 1,
) -> TreeModel:
    """Encode the thresholds of an ensemble as codes, and add how to explain it."""
    coded = code_trees(ensemble)
    return TreeModel(coded, player, memory, np.dtype(dtype), strategy, index, link, kind, n_channels)


@dataclass(frozen=True, eq=False)
class Background(Frozen):
    """Background rows, as `InputRules.encode` returns them.

    Attributes
    ----------
    model : TreeModel
    rows : (n_rows, n_features), or None for path-dependent values
        Empty where they were loaded from a file that has tables instead.
    weights : (n_rows,) float64 that sum to 1, or None for equal ones
        (n_rows, n_channels), of any sum, for a model of several channels.
    n_rows : int or None
        Known even where ``rows`` is empty; None for path-dependent values, or where it is unknown.
    lacks : int, optional
        A column whose numbers count as missing.
    """

    model: TreeModel
    rows: NDArray[Any] | None
    weights: Floats | None
    n_rows: int | None
    lacks: int | None = None

    @property
    def known_rows(self) -> Any:
        """The rows, without numbers in the column that they lack."""
        if self.rows is None or self.lacks is None:
            return self.rows
        known = self.rows.copy()
        known[:, self.lacks] = np.nan
        return known

    @property
    def has_channels(self) -> bool:
        """Whether each row has several weights."""
        return self.weights is not None and self.weights.ndim > 1

    @property
    def is_lost(self) -> bool:
        """Whether there were background rows that the file does not contain."""
        return self.rows is not None and not len(self.rows)

    @cached_property
    def codes(self) -> NDArray[np.int32] | None:
        """Codes of the rows, (n_features, n_rows); None for path-dependent values."""
        return None if self.rows is None else self.model.coded.book.encode(self.known_rows)

    @property
    def bottom_subtrees(self) -> BottomSubtrees:
        """Bottom subtrees of all trees."""
        return self.model.bottom_subtrees

    @cached_property
    def visits(self) -> Floats | None:
        """Mean number of leaves that a pair of rows visits, (n_trees,); None for path-dependent values."""
        return None if self.codes is None else walk.leaf_visits(self.model.walk_trees, self.codes)


def make_background(model: TreeModel, rows: NDArray[Any] | None, weights: Floats | None = None) -> Background:
    """Return the background of rows from `InputRules.encode`; None for path-dependent values."""
    return Background(model, rows, weights, None if rows is None else len(rows))
