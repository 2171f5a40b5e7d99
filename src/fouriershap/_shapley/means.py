"""Partial dependence: the mean output over the background where one or two players come from a row."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.parallel import warn_if_long
from fouriershap._shapley.engine import BackgroundRows, Engine, Floats
from fouriershap._shapley.interactions import pair_interactions

PlayerSets = Sequence[tuple[int, ...]]

_HYBRIDS = 1 << 17  # rows that are predicted at a time


def means_by_effects(engine: Engine, rows: NDArray[Any], sets: PlayerSets, n_jobs: int) -> Floats:
    """Return means (n_rows, n_sets, n_outputs) from main effects and what pairs add to them.

    ``engine`` has the index `MAIN_EFFECT`.
    """
    values = engine.shap_values(rows, n_jobs)
    out = np.stack([values[:, players].sum(axis=1) for players in map(list, sets)], axis=1) + engine.expected
    is_pair = np.array([len(players) == 2 for players in sets])
    if is_pair.any():
        pairs = np.array([players for players in sets if len(players) == 2], dtype=np.int32)
        out[:, is_pair] += 2 * pair_interactions(engine, rows, pairs, n_jobs)
    return np.asarray(out)


def means_by_definition(
    predict: Callable[[NDArray[Any], int], Floats],
    rows: NDArray[Any],
    background: BackgroundRows,
    player: NDArray[np.int32],
    sets: PlayerSets,
    n_jobs: int,
) -> Floats:
    """Return means (n_rows, n_sets, n_outputs) of what ``predict`` returns; ``player`` owns each column."""
    others, weights = background.rows, background.weights
    step = max(_HYBRIDS // len(others), 1)
    blocks = [
        (k, slice(first, first + step)) for k in range(len(sets)) for first in range(0, len(rows), step)
    ]
    out: Floats | None = None
    for number, (k, part) in enumerate(blocks):
        begin = time.process_time()
        some = rows[part]
        hybrids = np.tile(others, (len(some), 1))
        mine = np.flatnonzero(np.isin(player, sets[k]))
        hybrids[:, mine] = np.repeat(some[:, mine], len(others), axis=0)
        found = predict(hybrids, n_jobs).reshape(len(some), len(others), -1)
        out = np.empty((len(rows), len(sets), found.shape[2])) if out is None else out
        out[part, k] = np.average(found, axis=1, weights=weights)
        if number == 0:
            seconds = (time.process_time() - begin) * len(blocks)
            why = f"{len(rows):,} rows and {len(others):,} background rows, each pair of them predicted"
            warn_if_long("partial dependence", seconds, f"{why}. Fewer of them take less", n_jobs)
    return np.zeros((len(rows), len(sets), 0)) if out is None else out
