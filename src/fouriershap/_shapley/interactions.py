"""Interactions of many rows as users see them: whole matrices, chosen pairs, all sets or the strongest ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.checks import check_memory, find_position
from fouriershap._base.errors import CapacityError, InputError
from fouriershap._base.messages import truncated_repr
from fouriershap._base.parallel import count_jobs, enter, for_each_block, for_each_in_turn, warn_if_long
from fouriershap._shapley.engine import Engine
from fouriershap._shapley.indices import InteractionIndex
from fouriershap._shapley.sets import Floats, InteractionEngine, Keys, check_keys, key_pairs, pair_keys

_BLOCK_NUMBERS = 1 << 22  # most numbers of a block of rows: what a thread holds beside the result
_HELD_NUMBERS = 1 << 25  # most numbers to keep, rather than to compute twice
_HALF = 0.5  # shap's convention: a matrix has the pair twice, so each entry is half of the interaction


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
        The sum over all sets, including those that were left out.
    n_met : int
        How many sets have some interaction in some row.
    """

    keys: Keys
    values: Floats
    strength: Floats
    total: Floats
    n_met: int


def find_pairs(pairs: Any, names: Sequence[str]) -> NDArray[np.int32]:
    """Return the positions (n_pairs, 2) of pairs of players that are given by name or position."""
    if isinstance(pairs, str) or not isinstance(pairs, Iterable):
        raise InputError(
            f"pairs is {truncated_repr(pairs)}; give a list of pairs of players, by name or position."
        )
    found = []
    for pair in pairs:
        if isinstance(pair, str) or not isinstance(pair, Sequence | np.ndarray) or len(pair) != 2:
            raise InputError(
                f"pairs holds {truncated_repr(pair)}; give pairs of players, by name or position."
            )
        i, j = (find_position(player, names, "pairs") for player in pair)
        if i == j:
            raise InputError(
                f"pairs holds {truncated_repr(pair)}, a player with itself. Main effects are what the pairs "
                "leave of a value, "
                "so they need all pairs: see the diagonal of shap_interaction_values(X)."
            )
        found.append((i, j))
    return np.array(found, dtype=np.int32).reshape(-1, 2)


def met_pairs(engine: Engine) -> NDArray[np.int32]:
    """Return the pairs (n_pairs, 2) of players that interact at all."""
    return key_pairs(_pairs(engine, None).keys, engine.n_players)


def interaction_matrices(engine: Engine, rows: NDArray[Any], n_jobs: int) -> Floats:
    """Return matrices (n_rows, n_players, n_players, n_outputs) whose lines sum to the SHAP values.

    Off the diagonal each entry is half of the interaction, as in shap.
    """
    size = 8 * len(rows) * engine.n_players**2 * engine.n_outputs
    if size > 4 * check_memory(None):
        raise CapacityError(
            f"the interaction matrices of {len(rows):,} rows and {engine.n_players:,} players take "
            f"{size / 1e9:,.0f} GB, more than this machine has. Give fewer rows at a time or pairs=, or "
            "use interactions(X), which keeps the largest ones."
        )
    pairs = _pairs(engine, None)
    _warn_of_cost(pairs, rows, 1, n_jobs)
    values = engine.shap_values(rows, n_jobs)
    n_rows, n_players, n_outputs = values.shape
    out = np.zeros((n_rows, n_players, n_players, n_outputs))
    i, j = key_pairs(pairs.keys, n_players).T
    every = np.arange(n_players)

    def work(first: int, last: int) -> None:
        part = out[first:last]
        part[:, i, j] = part[:, j, i] = _halves(pairs, rows[first:last])
        part[:, every, every] = values[first:last] - part.sum(axis=2)

    enter("interactions")
    for_each_block(work, n_rows, _rows_per_block(pairs), n_jobs)
    return out


def pair_interactions(engine: Engine, rows: NDArray[Any], pairs: NDArray[np.int32], n_jobs: int) -> Floats:
    """Return the entries (n_rows, n_pairs, n_outputs) of the matrices for chosen pairs; 0 where they never meet."""
    wanted = pair_keys(pairs[:, 0], pairs[:, 1], engine.n_players)
    found = _pairs(engine, np.unique(wanted))
    _warn_of_cost(found, rows, 1, n_jobs)
    column, there = _columns(found.keys, wanted)
    out = np.zeros((len(rows), len(pairs), engine.n_outputs))

    def work(first: int, last: int) -> None:
        out[first:last, there] = _halves(found, rows[first:last])[:, column]

    enter("interactions")
    if there.any():
        for_each_block(work, len(rows), _rows_per_block(found), n_jobs)
    return out


def strongest_sets(
    engine: Engine,
    rows: NDArray[Any],
    index: InteractionIndex,
    order: int,
    min_order: int,
    top_k: int | None,
    memory: int,
    n_jobs: int,
) -> SetValues:
    """Return interactions of sets of ``min_order`` to ``order`` players, the ``top_k`` strongest or all.

    ``memory``: most bytes of the result.
    """
    check_keys(order, engine.n_players)
    _refuse_structured(engine)
    sets = engine.interactions(index, order, None, min_order)
    numbers = len(rows) * len(sets.keys) * sets.n_outputs
    in_one = top_k is None or numbers <= _HELD_NUMBERS
    if top_k is None and 8 * numbers > memory:
        raise CapacityError(
            f"{len(rows):,} rows of {len(sets.keys):,} sets each need {8 * numbers / 1e9:.1f} GB. Use top_k=100, which "
            "takes rows in blocks and keeps the strongest sets, or fewer rows at a time."
        )
    _warn_of_cost(sets, rows, 1 if in_one else 2, n_jobs)
    if in_one:
        values = _values(sets, rows, sets.keys, n_jobs, "interactions")
        strength, total = np.abs(values).mean(axis=(0, 2)), values.sum(axis=1)
        best = _strongest(strength, top_k)
        values = values[:, best]
    else:
        strength, total = _strengths(sets, rows, n_jobs)
        best = _strongest(strength, top_k)
        chosen = sets.keys[best]
        some = engine.interactions(index, order, np.sort(chosen), min_order)
        values = _values(some, rows, chosen, n_jobs, "the strongest interactions")
    return SetValues(sets.keys[best], values, strength[best], total, int((strength > 0).sum()))


def _pairs(engine: Engine, wanted: Keys | None) -> InteractionEngine:
    _refuse_structured(engine)
    return engine.interactions(engine.index.interaction, 2, wanted, min_order=2)


def _refuse_structured(engine: Engine) -> None:
    """Raise `InputError` where the values are those of groups or chains of players, which have no interactions."""
    if engine.index.subgames:
        engine.index.interaction.share(2, 2, 2)


def _warn_of_cost(sets: InteractionEngine, rows: NDArray[Any], passes: int, n_jobs: int) -> None:
    seconds, why = sets.seconds(rows)
    jobs = min(count_jobs(n_jobs), max(-(-len(rows) // _rows_per_block(sets)), 1))
    less = "A lower order, fewer rows, a smaller background or shallower trees take less"
    warn_if_long("these interactions", seconds * passes, f"{why}. {less}", jobs)


def _rows_per_block(sets: InteractionEngine) -> int:
    width = max(len(sets.keys) * sets.n_outputs, 1)
    return max(1, min(sets.rows_per_block, _BLOCK_NUMBERS // width))


def _halves(pairs: InteractionEngine, rows: NDArray[Any]) -> Floats:
    out = np.zeros((len(rows), len(pairs.keys), pairs.n_outputs))
    pairs.add(rows, out)
    out *= _HALF
    return out


def _columns(keys: Keys, wanted: Keys) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the columns of those wanted keys that are among ``keys``, and which of them are."""
    column = np.searchsorted(keys, wanted).clip(max=max(len(keys) - 1, 0))
    there = keys[column] == wanted if len(keys) else np.zeros(len(wanted), dtype=bool)
    return column[there], there


def _strongest(strength: Floats, top_k: int | None) -> NDArray[np.int64]:
    """Return positions, the strongest first; sets that never interact are left out."""
    order = np.argsort(-strength, kind="stable")[:top_k]
    return order[strength[order] > 0]


def _values(sets: InteractionEngine, rows: NDArray[Any], keys: Keys, n_jobs: int, stage: str) -> Floats:
    """Return the interactions of these sets, (n_rows, n_sets, n_outputs), computed block by block."""
    out = np.zeros((len(rows), len(keys), sets.n_outputs))
    column, there = _columns(sets.keys, keys)
    are_all = len(keys) == len(sets.keys) and bool((keys == sets.keys).all())

    def work(first: int, last: int) -> None:
        if are_all:
            sets.add(rows[first:last], out[first:last])
            return
        some = np.zeros((last - first, len(sets.keys), sets.n_outputs))
        sets.add(rows[first:last], some)
        out[first:last, there] = some[:, column]

    enter(stage)
    for_each_block(work, len(rows), _rows_per_block(sets), n_jobs)
    return out


def _strengths(sets: InteractionEngine, rows: NDArray[Any], n_jobs: int) -> tuple[Floats, Floats]:
    """Return the mean size of each set, and the sum over sets of each row and output; only blocks are held."""
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
