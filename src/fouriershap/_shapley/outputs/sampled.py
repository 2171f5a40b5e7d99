"""Shapley values of an output that is a function of a raw output whose own values are known, by drawing permutations.

A draw is a permutation and its reverse against one background row: what each player adds to the output and, by the same
answers, to the raw output. The raw output's values are known exactly, so what it explains of the output is subtracted;
the known sum is shared out, so that values add up exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriershap._shapley.outputs.hybrids import Hybrids

Floats = NDArray[np.float64]

FIRST_DRAWS, _MOST = 128, 100_000  # of a row
_GROWTH = 4.0  # of the draws of a round
_MARGIN = 1.15  # draws beyond those that an error seems to need, which is an estimate itself
_HYBRIDS = 1 << 14  # asked about at a time


class Task(NamedTuple):
    """What all rows share.

    Attributes
    ----------
    hybrids : Hybrids
    function : callable
        Raw outputs to outputs (n, n_outputs).
    weights : (n_background,) float64 that sum to 1, or None for equal ones
    rows, margins : (n_rows, n_raw), (n_background, n_raw) float64
        Raw outputs of the rows and of the background.
    n_players : int
    places : callable
        Draws orders, see `Index.places`.
    tolerance : float
        Largest standard error, as a share of the row's largest value.
    least : float
        Size of values to which it refers in any case.
    """

    hybrids: Hybrids
    function: Callable[[Floats], Floats]
    weights: Floats | None
    rows: Floats
    margins: Floats
    n_players: int
    places: Callable[[int, int, np.random.Generator], NDArray[np.int64]]
    tolerance: float
    least: float

    def totals(self, row: int) -> Floats:
        """Return outputs and raw outputs of a row, less their means over the background."""
        both = np.concatenate([self.function(self.margins), self.margins], axis=1)
        mine = np.concatenate([self.function(self.rows[row][None])[0], self.rows[row]])
        return np.asarray(mine - np.average(both, axis=0, weights=self.weights))

    def draws_needed(self, values: Floats, errors: Floats, n_draws: int) -> float:
        """Return about how many draws of a row are needed in all; fewer than there are, where these are enough."""
        target = self.tolerance * max(float(np.abs(values).max()), self.least)
        worst = float(errors.max(initial=0.0))
        if worst <= target:
            return 0.0
        return min(_MARGIN * n_draws * (worst / max(target, 1e-300)) ** 2, _MOST)


def sample_values(
    task: Task, row: int, known: Floats | None, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return the values of a row and their standard errors, (n_players, n_outputs).

    ``known``: the values (n_players, n_raw) of the raw output; None where they are not exact.
    """
    n, total = task.n_players, task.totals(row)
    n_outputs, draws, n_new = len(total) - task.rows.shape[1], [], FIRST_DRAWS
    while True:
        draws += _draw(task, row, n_new, rng)
        found = np.concatenate(draws)  # (n_draws, n_players, outputs and raw outputs), less equal shares
        values, errors = _settle(found, n_outputs, None if known is None else known - total[n_outputs:] / n)
        values += (total[:n_outputs] - values.sum(axis=0)) / n  # tables of the raw output have rounding
        needed = task.draws_needed(values, errors, len(found))
        if needed <= len(found):
            return values, errors
        n_new = max(math.ceil(min(needed, _GROWTH * len(found))) - len(found), FIRST_DRAWS)


def count_draws(task: Task, row: int, is_known: bool, rng: np.random.Generator) -> float:
    """Return about how many draws a row will need, from the first ones; ``is_known``: see `sample_values`."""
    total = task.totals(row)
    n_outputs = len(total) - task.rows.shape[1]
    found = np.concatenate(_draw(task, row, FIRST_DRAWS, rng))
    values, errors = _settle(found, n_outputs, found.mean(axis=0)[:, n_outputs:] if is_known else None)
    return max(
        task.draws_needed(values + total[:n_outputs] / task.n_players, errors, FIRST_DRAWS), FIRST_DRAWS
    )


def _draw(task: Task, row: int, n_draws: int, rng: np.random.Generator) -> list[Floats]:
    """Return what each player adds, (n, n_players, outputs and raw outputs), of draws in parts; less equal shares."""
    n, n_background, margin, parts = task.n_players, len(task.margins), task.rows[row], []
    size = max(_HYBRIDS // (2 * n), 1)
    deck = rng.choice(n_background, n_draws, p=task.weights) if task.weights is not None else None
    if deck is None:  # shuffled decks, in which every row comes equally often
        n_decks = -(-n_draws // n_background)
        deck = np.concatenate([rng.permutation(n_background) for _ in range(n_decks)])[:n_draws]
    for first in range(0, n_draws, size):
        z = deck[first : first + size]
        places = task.places(len(z), n, rng)
        ends = np.broadcast_to(margin, (len(z), 2, 1, len(margin)))
        begins = np.broadcast_to(task.margins[z][:, None, None], ends.shape)
        raw = np.concatenate([begins, task.hybrids.chains(row, z, places), ends], axis=2)
        outputs = task.function(raw.reshape(-1, len(margin))).reshape(*raw.shape[:3], -1)
        steps = np.diff(np.concatenate([outputs, raw], axis=3), axis=2)
        forward = np.take_along_axis(steps[:, 0], places[:, 0, :, None], axis=1)
        backward = np.take_along_axis(steps[:, 1], places[:, 1, :, None], axis=1)
        parts.append((forward + backward) / 2 - steps[:, 0].sum(axis=1, keepdims=True) / n)
    return parts


def _settle(found: Floats, n_outputs: int, known: Floats | None) -> tuple[Floats, Floats]:
    """Return the mean of draws, less what raw outputs explain, and its standard error; ``known``: their true mean."""
    n_draws = len(found)
    mean = found.mean(axis=0)
    outputs, raw = np.split(found - mean, [n_outputs], axis=2)
    values = mean[:, :n_outputs]
    if known is not None:
        flat = raw.reshape(-1, raw.shape[2])
        slopes = np.linalg.lstsq(flat, outputs.reshape(-1, n_outputs), rcond=None)[0]
        outputs = outputs - raw @ slopes
        values = values - (mean[:, n_outputs:] - known) @ slopes
    return values, np.sqrt((outputs**2).sum(axis=0) / (n_draws * max(n_draws - 1 - raw.shape[2], 1)))
