"""`ChannelTrees`: trees against a background with several weights per row, mixed for each explained row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.parallel import enter, for_each_block
from fouriershap._shapley.engine import Floats
from fouriershap._shapley.trees import stream, walk
from fouriershap._shapley.trees.compiled import CompiledTrees
from fouriershap._shapley.trees.engine import TreeEngine
from fouriershap._shapley.trees.model import TreeModel
from fouriershap._shapley.trees.plan import TreePlan
from fouriershap._trees import arithmetic
from fouriershap._trees.codes import code_trees

_WALK_SECONDS = 0.25  # of work that cannot be interrupted
_WALK_WEIGHTS = 1 << 20  # that a block of rows holds


def one_output(model: TreeModel, output: int, n_channels: int) -> TreeModel:
    """Return a model of one output, for a background with several weights per row."""
    if model.ensemble.n_outputs == 1:
        return replace(model, n_channels=n_channels)
    coded = code_trees(arithmetic.one_output(model.ensemble, output))
    return replace(model, coded=coded, n_channels=n_channels)


class MixedTrees(Protocol):
    """Trees against a background with several weights per row."""

    def mixed_values(self, rows: NDArray[Any], mix: Floats, n_jobs: int = -1) -> Floats:
        """Return the values (n_rows, n_players), summed over the background by each row's own weights.

        ``mix`` (n_rows, n_channels): the weights of a row are the sum of the channels, each times its entry.
        """

    def plan(self, n_rows: int | None) -> TreePlan: ...

    def build(self, n_jobs: int = -1) -> None: ...

    def to(self, device: str) -> Self: ...


def channel_trees(engine: TreeEngine, output: int, shares: Floats) -> ChannelTrees:
    """Return the trees of one output, and weights ``shares`` (n_background, n_channels) of any sign and sum."""
    model = one_output(engine.model, output, shares.shape[1])
    background = replace(engine.tree_background, model=model, weights=shares)
    return ChannelTrees(model, background, device=engine.device)


class ChannelTrees(TreeEngine):
    """Trees whose background has weights (n_background, n_channels) of any sign: each channel is an output.

    A table has a column for each channel, so that all are filled in one pass and looked up together.
    """

    @property
    def is_whole(self) -> bool:
        """Whether all trees have tables, which are built."""
        return self.compiled is not None and self.compiled.rest is None

    def mixed_values(self, rows: NDArray[Any], mix: Floats, n_jobs: int = -1) -> Floats:
        """Return values as `MixedTrees` says."""
        out = np.zeros((len(rows), self.n_players))
        if not len(rows):
            return out
        compiled = self._tables_to_read(len(rows), n_jobs)
        if compiled is not None:
            self._look_up_mixed(compiled, rows, mix, out, n_jobs)
        if compiled is None or compiled.rest is not None:
            codes = self.model.coded.book.encode(rows)
            self._mix_without_tables(compiled, codes, mix, out[:, :, None], n_jobs)
        return out

    def _look_up_mixed(
        self, compiled: CompiledTrees, rows: NDArray[Any], mix: Floats, out: Floats, n_jobs: int
    ) -> None:
        book, tables = self.model.coded.book, compiled.tables
        assert tables is not None
        reader = tables if self.device == "cpu" else compiled.under_xla

        def look_up(first: int, last: int) -> None:
            sums = np.zeros((last - first, self.n_players, tables.n_outputs))
            reader.add(book.encode_columns(rows[first:last], *compiled.columns), sums)
            out[first:last] += np.matmul(sums, mix[first:last, :, None])[:, :, 0]

        enter("looking up")
        for_each_block(look_up, len(rows), tables.rows_per_block, n_jobs)

    def _mix_without_tables(
        self,
        compiled: CompiledTrees | None,
        codes: NDArray[np.int32],
        mix: Floats,
        out: Floats,
        n_jobs: int,
    ) -> None:
        background, n_rows = self.tree_background, len(out)
        others, weights = background.codes, background.weights
        assert others is not None and weights is not None
        ready, left, seconds = self._untabled(compiled, n_rows, n_jobs)
        if ready is not None:
            stream.interventional(
                ready,
                codes,
                others,
                weights,
                index=self.index,
                single=self.model.dtype.itemsize == 4,
                seconds=seconds,
                out=out,
                n_jobs=n_jobs,
                mix=mix,
            )
        rows_each = max(
            min(int(_WALK_SECONDS * n_rows / max(seconds, 1e-9)), _WALK_WEIGHTS // len(weights)), 1
        )
        for walked in left:

            def walk_rows(first: int, last: int, walked: walk.WalkTrees = walked) -> None:
                shares = mix[first:last] @ weights.T
                rows = slice(first, last)
                walk.interventional_sums(walked, codes, others, shares, self.index, rows, out)

            enter("walking")
            for_each_block(walk_rows, n_rows, rows_each, n_jobs)
