"""Interactions of pairs of players as users see them: whole matrices, chosen pairs, or the strongest ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.checks import check_whole, find_position
from fouriershap._base.errors import CostWarning, InputError
from fouriershap._base.parallel import count_jobs, enter, for_each_block
from fouriershap._base.short import in_words, short
from fouriershap._base.warn import warn
from fouriershap._shapley.engine import Engine
from fouriershap._shapley.pairs import PairEngine, SlowPairs, pair_keys

Floats = NDArray[np.float64]
_BLOCK_NUMBERS = 1 << 22  # most numbers of a block of rows: what a thread holds beside the result
_BLOCKS_AT_ONCE = 64  # whose sums are held at a time
_LONG = 20.0  # seconds that nobody should wait for unwarned
_STAGE = "interactions"
_HALF = 0.5  # shap's convention: a matrix has the pair twice, so each entry is half of the interaction


@dataclass(frozen=True, eq=False)
class TopInteractions:
    """The strongest pairs over some rows, strongest first.

    Attributes
    ----------
    pairs : tuple of (str, str)
        Names of the players.
    positions : (k, 2) int32
        Their positions, i < j.
    strength : (k,) float64
        Mean absolute value over rows and outputs.
    values : (n_rows, k) or (n_rows, k, n_outputs) float64
        The entries [i, j] of the rows' interaction matrices.
    """

    pairs: tuple[tuple[str, str], ...]
    positions: NDArray[np.int32]
    strength: Floats
    values: Floats

    def __len__(self) -> int:
        return len(self.pairs)

    def __repr__(self) -> str:
        lines = [f"  {a} x {b}: {s:.4g}" for (a, b), s in zip(self.pairs, self.strength, strict=True)]
        return "\n".join([f"TopInteractions({len(self)} pairs, mean |value|)", *lines[:20]])


def check_pairs(pairs: Any, names: Sequence[str]) -> NDArray[np.int32]:
    """Positions (n_pairs, 2) of pairs of players, given by name or position."""
    if isinstance(pairs, str) or not isinstance(pairs, Iterable):
        raise InputError(f"pairs is {short(pairs)}; give a list of pairs of players, by name or position.")
    found = []
    for pair in pairs:
        if isinstance(pair, str) or not isinstance(pair, Sequence | np.ndarray) or len(pair) != 2:
            raise InputError(f"pairs holds {short(pair)}; give pairs of players, by name or position.")
        i, j = (find_position(player, names, "pairs") for player in pair)
        if i == j:
            raise InputError(
                f"pairs holds {short(pair)}, a player with itself. Its main effect is what no pair takes, so "
                "it needs all of them: it is on the diagonal of shap_interaction_values(X)."
            )
        found.append((i, j))
    return np.array(found, dtype=np.int32).reshape(-1, 2)


def interaction_values(
    engine: Engine,
    rows: NDArray[Any],
    names: Sequence[str],
    pairs: Any,
    top: int | None,
    n_jobs: int | None,
    single: bool,
) -> Floats | TopInteractions:
    """What `Explainer.shap_interaction_values` documents, of rows as the engine takes them.

    ``single``: whether the axis of the one output is left out.
    """
    if pairs is not None and top is not None:
        raise InputError("pairs and top were both given; top chooses among all pairs.")
    if top is not None:
        check_whole("top", top)
    if pairs is not None:
        positions = check_pairs(pairs, names)
        keys = np.unique(pair_keys(positions[:, 0], positions[:, 1], len(names)))
        found = engine.pairs(keys)
    else:
        found = engine.pairs(None)
    _tell_cost(found, rows, 1 if top is None else 2, n_jobs)
    if top is not None:
        return top_pairs(found, rows, top, names, n_jobs, single)
    if pairs is not None:
        out = chosen_pairs(found, rows, positions, len(names), n_jobs)
    else:
        out = full_matrices(found, rows, engine.shap_values(rows, n_jobs), n_jobs)
    return out[..., 0] if single else out


def _tell_cost(engine: PairEngine, rows: NDArray[Any], passes: int, n_jobs: int | None) -> None:
    """Warn before minutes pass."""
    if not isinstance(engine, SlowPairs):
        return
    seconds, why = engine.slow_part(rows)
    seconds *= passes / count_jobs(n_jobs)
    if seconds > _LONG:
        warn(
            f"these interactions will take about {in_words(seconds)}: {why}. Fewer rows, a smaller background or "
            "shallower trees take less, in proportion; Ctrl-C ends it.",
            CostWarning,
        )


def full_matrices(engine: PairEngine, rows: NDArray[Any], values: Floats, n_jobs: int | None) -> Floats:
    """Interaction matrices (n_rows, n_players, n_players, n_outputs), whose rows sum to the values."""
    n_rows, n_players, n_outputs = values.shape
    out = np.zeros((n_rows, n_players, n_players, n_outputs))
    i, j = engine.pairs.T
    every = np.arange(n_players)

    def work(first: int, last: int) -> None:
        part, found = out[first:last], _block(engine, rows[first:last])
        part[:, i, j] = part[:, j, i] = found
        part[:, every, every] = values[first:last] - part.sum(axis=2)

    enter(_STAGE)
    for_each_block(work, n_rows, _rows_per_block(engine), n_jobs)
    return out


def chosen_pairs(
    engine: PairEngine, rows: NDArray[Any], pairs: NDArray[np.int32], n_players: int, n_jobs: int | None
) -> Floats:
    """Entries (n_rows, n_pairs, n_outputs) of the interaction matrices; 0 for pairs that never meet."""
    keys, wanted = (pair_keys(p[:, 0], p[:, 1], n_players) for p in (engine.pairs, pairs))
    column = np.searchsorted(keys, wanted).clip(max=max(len(keys) - 1, 0))
    there = keys[column] == wanted if len(keys) else np.zeros(len(wanted), dtype=bool)
    out = np.zeros((len(rows), len(pairs), engine.n_outputs))

    def work(first: int, last: int) -> None:
        out[first:last, there] = _block(engine, rows[first:last])[:, column[there]]

    enter(_STAGE)
    if there.any():
        for_each_block(work, len(rows), _rows_per_block(engine), n_jobs)
    return out


def top_pairs(
    engine: PairEngine, rows: NDArray[Any], top: int, names: Sequence[str], n_jobs: int | None, single: bool
) -> TopInteractions:
    """The strongest pairs and their values, from two passes over blocks of rows."""
    step = _rows_per_block(engine)
    strength = np.zeros(len(engine.pairs))
    enter("strongest pairs", -(-len(rows) // (_BLOCKS_AT_ONCE * step)))
    for begin in range(0, len(rows), _BLOCKS_AT_ONCE * step):
        some = rows[begin : begin + _BLOCKS_AT_ONCE * step]
        sums = np.zeros((-(-len(some) // step), len(engine.pairs)))

        def work(first: int, last: int, some: NDArray[Any] = some, sums: Floats = sums) -> None:
            sums[first // step] = np.abs(_block(engine, some[first:last])).sum(axis=(0, 2))

        for_each_block(work, len(some), step, n_jobs)
        strength += sums.sum(axis=0)  # in the order of the rows, whatever the threads
    strength /= max(len(rows) * engine.n_outputs, 1)
    best = np.argsort(-strength, kind="stable")[:top]
    pairs = engine.pairs[best]
    values = chosen_pairs(engine, rows, pairs, len(names), n_jobs)
    labels = tuple((names[i], names[j]) for i, j in pairs)
    shown = values[..., 0] if single else values
    return TopInteractions(labels, pairs, strength[best], shown)


def _rows_per_block(engine: PairEngine) -> int:
    width = max(len(engine.pairs) * engine.n_outputs, 1)
    return max(1, min(engine.rows_per_block, _BLOCK_NUMBERS // width))


def _block(engine: PairEngine, rows: NDArray[Any]) -> Floats:
    out = np.zeros((len(rows), len(engine.pairs), engine.n_outputs))
    engine.add(rows, out)
    out *= _HALF
    return out
