"""Compiled trees: tables of the trees that fit, for one background, and the other trees ready to be walked."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import CapacityError
from fouriershap._base.frozen import Frozen
from fouriershap._shapley.tables import TableSet
from fouriershap._shapley.trees import stream, walk
from fouriershap._shapley.trees.blocks import TreeBlocks, build_blocks, fill_tables
from fouriershap._shapley.trees.model import Background, TreeModel
from fouriershap._shapley.trees.plan import MOST_DEPTH, MOST_FEATURES, count_bottom_subtrees
from fouriershap._trees.codes import Columns

NO_COLUMNS = Columns(np.empty(0, dtype=np.int32), None)


@dataclass(frozen=True, eq=False)
class Layout:
    """Trees that go into tables, and their blocks: the part of `CompiledTrees` that no background changes.

    Attributes
    ----------
    in_tables : (n_trees,) bool
    blocks : TreeBlocks or None
        None where no tree goes into tables.
    """

    in_tables: NDArray[np.bool_]
    blocks: TreeBlocks | None


@dataclass(frozen=True, eq=False)
class CompiledTrees(Frozen):
    """Tables of the trees that fit.

    Attributes
    ----------
    in_tables : (n_trees,) bool
    tables : TableSet or None
        None where no tree fits.
    columns : Columns
        Row of each feature of the tables in the matrix of codes.
    expected : (n_outputs,) float64
        Mean output of the trees in the tables, without the base value.
    rest : WalkTrees or None
        The other trees.
    layout : Layout or None
        Reused for another background; not saved in files.
    """

    in_tables: NDArray[np.bool_]
    tables: TableSet | None
    columns: Columns
    expected: NDArray[np.float64]
    rest: walk.WalkTrees | None
    layout: Layout | None = field(default=None, repr=False)

    @cached_property
    def rest_streamed(self) -> stream.StreamTrees:
        """Trees without tables, ready to be streamed."""
        assert self.rest is not None
        return stream.prepare(self.rest, count_bottom_subtrees(self.rest))

    @cached_property
    def under_xla(self) -> Any:
        """Tables read by XLA; totals are at least as precise as the tables."""
        from fouriershap._shapley.jax import put_tables

        assert self.tables is not None
        return put_tables(self.tables, "double" if self.tables.values.itemsize == 8 else None)


def check_capacity(model: TreeModel, in_tables: NDArray[np.bool_]) -> None:
    """Raise `CapacityError` where ``strategy="tables"`` and some tree has no table."""
    if model.strategy == "tables" and not in_tables.all():
        raise CapacityError(
            f"{int((~in_tables).sum())} of {len(in_tables)} trees do not fit into tables (at most {MOST_FEATURES} "
            f"features and {MOST_DEPTH} splits on a path, and {model.memory:,} bytes in all). Raise `memory`, or use "
            "strategy='auto', which explains these trees without tables."
        )


def lay_out_trees(model: TreeModel) -> Layout:
    """Cut the feasible trees into blocks; where they exceed the budget, those that fit, smallest first."""
    in_tables = model.feasible
    while in_tables.any():
        check_capacity(model, in_tables)
        blocks = build_blocks(model.coded.select(in_tables), model.player, model.n_players, model.n_channels)
        sizes = blocks.tree_values * model.dtype.itemsize
        if sizes.sum() <= model.memory:
            return Layout(in_tables, blocks)
        in_tables = smallest(sizes, in_tables, model.memory)
    check_capacity(model, in_tables)
    return Layout(in_tables, None)


def smallest(sizes: NDArray[np.int64], among: NDArray[np.bool_], most: int) -> NDArray[np.bool_]:
    """Return the trees ``among`` all, smallest first, whose ``sizes`` sum to at most ``most``, (n_trees,) bool."""
    order = np.argsort(sizes, kind="stable")
    fits = order[np.cumsum(sizes[order]) <= most]
    out = np.zeros_like(among)
    out[np.flatnonzero(among)[fits]] = True
    return out


def without_tables(model: TreeModel) -> CompiledTrees:
    """Return what `compile_trees` does where no tree fits."""
    nothing = np.zeros(model.ensemble.n_outputs * model.n_channels)
    in_tables = np.zeros(model.ensemble.n_trees, dtype=bool)
    return CompiledTrees(in_tables, None, NO_COLUMNS, nothing, model.walk_without(in_tables))


def compile_trees(
    model: TreeModel, background: Background, layout: Layout | None, n_jobs: int
) -> CompiledTrees:
    """Build the tables of all trees that fit; ``layout`` is that of another background, None to make it."""
    layout = lay_out_trees(model) if layout is None else layout
    blocks = layout.blocks
    if blocks is None:
        return replace(without_tables(model), layout=layout)
    rest = model.walk_without(layout.in_tables)
    coded, codes = model.coded.select(layout.in_tables), None
    if background.rows is not None:
        codes = coded.book.encode_columns(background.rows, *blocks.columns)
    filled = fill_tables(blocks, coded, codes, background.weights, model.dtype, n_jobs, model.index)
    return CompiledTrees(layout.in_tables, filled[0], blocks.columns, filled[1], rest, layout)
