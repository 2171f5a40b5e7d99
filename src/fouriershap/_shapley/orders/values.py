"""Interactions of many rows: all sets, or the strongest, from passes over blocks of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import CapacityError, CostWarning
from fouriershap._base.parallel import count_jobs, enter, for_each_in_turn
from fouriershap._base.short import in_words
from fouriershap._base.warn import warn
from fouriershap._shapley.engine import Engine
from fouriershap._shapley.orders.sets import Floats, Keys, SetEngine, SlowSets, first_key, sets_of

_BLOCK_NUMBERS = 1 << 22  # most numbers of a block of rows: what a thread holds beside the result
_HELD_NUMBERS = 1 << 25  # so many are held, rather than computed twice
_LONG = 20.0  # seconds that nobody should wait for unwarned


@dataclass(frozen=True, eq=False)
class SetValues:
    """Interactions of rows, the strongest set first.

    Attributes
    ----------
    keys : (n_sets,) int64
    values : (n_rows, n_sets, n_outputs) float64
    strength : (n_sets,) float64
        Mean absolute value over rows and outputs.
    total : (n_rows, n_outputs) float64
        The sum over all sets, those that were left out as well.
    n_met : int
        How many sets have some interaction in some row.
    """

    keys: Keys
    values: Floats
    strength: Floats
    total: Floats
    n_met: int


def set_values(
    engine: Engine,
    rows: NDArray[Any],
    index: str,
    order: int,
    least: int,
    top: int | None,
    memory: int,
    n_jobs: int | None,
) -> SetValues:
    """Interactions of sets of ``least`` to ``order`` players, the ``top`` strongest or all; ``memory`` in bytes."""
    sets = sets_of(engine, index, order, None)
    if least > 1:
        kept = sets.keys[sets.keys >= first_key(least, engine.n_players)]
        sets = sets_of(engine, index, order, kept)
    numbers = len(rows) * len(sets.keys) * sets.n_outputs
    in_one = top is None or numbers <= _HELD_NUMBERS
    if top is None and 8 * numbers > memory:
        raise CapacityError(
            f"{len(rows):,} rows of {len(sets.keys):,} sets each need {8 * numbers / 1e9:.1f} GB. Ask for the "
            "strongest alone, top_k=100, which takes rows in blocks, or for fewer rows at a time."
        )
    _tell_cost(sets, rows, 1 if in_one else 2, n_jobs)
    if in_one:
        values = np.zeros((len(rows), len(sets.keys), sets.n_outputs))
        _fill(sets, rows, values, n_jobs, "interactions")
        strength, total = np.abs(values).mean(axis=(0, 2)), values.sum(axis=1)
        best = _strongest(strength, top)
        return SetValues(sets.keys[best], values[:, best], strength[best], total, int((strength > 0).sum()))
    strength, total = _strengths(sets, rows, n_jobs)
    best = _strongest(strength, top)
    chosen = np.sort(sets.keys[best])
    values = np.zeros((len(rows), len(chosen), sets.n_outputs))
    _fill(sets_of(engine, index, order, chosen), rows, values, n_jobs, "the strongest of them")
    in_order = np.searchsorted(chosen, sets.keys[best])
    return SetValues(sets.keys[best], values[:, in_order], strength[best], total, int((strength > 0).sum()))


def _strongest(strength: Floats, top: int | None) -> NDArray[np.int64]:
    """Positions, the strongest first; sets that never interact are left out."""
    order = np.argsort(-strength, kind="stable")[:top]
    return order[strength[order] > 0]


def _tell_cost(sets: SetEngine, rows: NDArray[Any], passes: int, n_jobs: int | None) -> None:
    """Warn before minutes pass."""
    if not isinstance(sets, SlowSets):
        return
    seconds, why = sets.seconds(rows)
    seconds *= passes / min(count_jobs(n_jobs), max(-(-len(rows) // _rows_per_block(sets)), 1))
    if seconds > _LONG:
        warn(
            f"these interactions may take up to about {in_words(seconds)}: {why}. A lower order, fewer rows, a smaller "
            "background or shallower trees take less; Ctrl-C ends it.",
            CostWarning,
        )


def _rows_per_block(sets: SetEngine) -> int:
    width = max(len(sets.keys) * sets.n_outputs, 1)
    return max(1, min(sets.rows_per_block, _BLOCK_NUMBERS // width))


def _fill(sets: SetEngine, rows: NDArray[Any], out: Floats, n_jobs: int | None, stage: str) -> None:
    """Add the interactions of rows to ``out``, block by block."""
    step = _rows_per_block(sets)

    def work(k: int) -> None:
        sets.add(rows[k * step : (k + 1) * step], out[k * step : (k + 1) * step])

    enter(stage)
    for_each_in_turn(work, lambda _: None, -(-len(rows) // step), n_jobs)


def _strengths(sets: SetEngine, rows: NDArray[Any], n_jobs: int | None) -> tuple[Floats, Floats]:
    """Mean size of each set, and the sum over sets of each row and output; no more than blocks are held."""
    step = _rows_per_block(sets)
    strength, total = np.zeros(len(sets.keys)), np.zeros((len(rows), sets.n_outputs))

    def work(k: int) -> Floats:
        part = slice(k * step, (k + 1) * step)
        values = np.zeros((len(rows[part]), len(sets.keys), sets.n_outputs))
        sets.add(rows[part], values)
        total[part] = values.sum(axis=1)
        return np.asarray(np.abs(values).sum(axis=(0, 2)))

    def add(sums: Floats) -> None:
        np.add(strength, sums, out=strength)

    enter("which sets are strongest")
    for_each_in_turn(work, add, -(-len(rows) // step), n_jobs)
    return strength / max(len(rows) * sets.n_outputs, 1), total
