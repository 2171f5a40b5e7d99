"""SHAP values by their definition: every coalition, every hybrid row, the library's own answers."""

from __future__ import annotations

from collections.abc import Callable
from math import factorial
from typing import NamedTuple

import numpy as np

from fuzz_cells.rows import Rows, hybrids


class Truth(NamedTuple):
    values: np.ndarray  # (n_rows, n_players, n_outputs)
    expected: np.ndarray  # (n_outputs,)


def by_definition(
    margin: Callable[[Rows], np.ndarray],
    rows: Rows,
    background: Rows,
    player: np.ndarray,
    weights: np.ndarray | None = None,
) -> Truth:
    """``player`` (n_columns,) owns each column; ``weights`` are those of the background rows."""
    n = int(player.max()) + 1
    members = (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(bool)
    answers = np.asarray(margin(hybrids(rows, background, members[:, player])), dtype=np.float64)
    answers = answers.reshape(2**n, len(rows), len(background), -1)
    worth = np.average(answers, axis=2, weights=weights)
    values = np.zeros((len(rows), n, worth.shape[-1]))
    for code, present in enumerate(members):
        size = int(present.sum())
        for i in np.flatnonzero(~present):
            share = factorial(size) * factorial(n - size - 1) / factorial(n)
            values[:, i] += share * (worth[code | 1 << i] - worth[code])
    return Truth(values, worth[0, 0])
