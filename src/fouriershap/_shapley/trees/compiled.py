"""Compiled trees: tables of the trees that fit, for one background, and the other trees ready to be walked."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.frozen import Frozen
from fouriershap._shapley.tables import TableSet
from fouriershap._shapley.trees import stream, walk
from fouriershap._shapley.trees.blocks import fill_tables
from fouriershap._shapley.trees.model import Background, TreeModel
from fouriershap._shapley.trees.plan import count_bottom_subtrees
from fouriershap._trees.codes import Columns

NO_COLUMNS = Columns(np.empty(0, dtype=np.int32), None)


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
    """

    in_tables: NDArray[np.bool_]
    tables: TableSet | None
    columns: Columns
    expected: NDArray[np.float64]
    rest: walk.WalkTrees | None

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


def without_tables(model: TreeModel) -> CompiledTrees:
    """Return what `compile_trees` does where no tree fits."""
    nothing = np.zeros(model.ensemble.n_outputs * model.n_channels)
    in_tables = np.zeros(model.ensemble.n_trees, dtype=bool)
    return CompiledTrees(in_tables, None, NO_COLUMNS, nothing, model.walk_without(in_tables))


def compile_trees(model: TreeModel, background: Background, n_jobs: int) -> CompiledTrees:
    """Build the tables of all trees that fit."""
    layout = model.layout
    blocks = layout.blocks
    if blocks is None:
        return without_tables(model)
    rest = model.walk_without(layout.in_tables)
    coded, codes = model.coded.select(layout.in_tables), None
    if background.rows is not None:
        codes = coded.book.encode_columns(background.known_rows, *blocks.columns)
    filled = fill_tables(blocks, coded, codes, background.weights, model.dtype, n_jobs, model.index)
    return CompiledTrees(layout.in_tables, filled[0], blocks.columns, filled[1], rest)
