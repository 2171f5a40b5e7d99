"""Slopes of an output between two margins, and the few margins whose slopes tell all others.

The slope r(a, b) = (f(a) - f(b)) / (a - b) of an explained row's margin a and a background row's margin b is smooth in
both, so as a matrix it has a small rank: with the right reference margins t_q,

    r(a, b) = sum over q of r(a, t_q) c_q(b),

to a tolerance, for every a, and every b in the range of the background. A sum over the background of slopes times
anything is then one of a few sums over the background, with weights c_q(b): about 8 for margins of -3 to 3, 12 for
-10 to 10, 17 for -40 to 40.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Function = Callable[[Floats], Floats]

_STEP = 3e-3  # half of the distance below which a slope is interpolated, as a difference would cost digits
_POINTS = 129  # margins by quantiles of the background, and as many by its range
_NEAREST, _FARTHEST, _BEYOND = 1e-4, 1e6, 40  # explained margins beyond that range, in units of it
_ROUNDING = 4 * np.finfo(np.float64).eps  # of a function and its argument


def slope(function: Function, a: Floats, b: Floats) -> Floats:
    """Return (f(a) - f(b)) / (a - b), the derivative where a = b; to about 13 digits of f."""
    a, b = np.broadcast_arrays(a, b)
    middle, half = (a + b) / 2, (a - b) / 2
    step = _STEP * np.maximum(1.0, np.abs(middle) / 1e3)
    near = np.abs(half) < step
    width = np.where(near, step, half)
    out = np.asarray((function(middle + width) - function(middle - width)) / (2 * width))
    if near.any():  # even in the half distance: a parabola through one and two steps
        twice = (function(middle + 2 * step) - function(middle - 2 * step)) / (4 * step)
        out += np.where(near, (twice - out) * ((half / step) ** 2 - 1) / 3, 0.0)
    return out


class Channels(NamedTuple):
    """Reference margins (n_channels,), and what they count for each background row, (n_background, n_channels)."""

    margins: Floats
    shares: Floats


def find_channels(
    functions: Sequence[Function], margins: Floats, weights: Floats | None, tolerance: float
) -> Channels:
    """Return the channels of a background with these margins (n,) and weights.

    For every explained margin, the errors of its slopes add up, over the background, to at most ``tolerance`` of the
    mean slope. Several functions share the channels.
    """
    low, high = float(margins.min()), float(margins.max())
    order = np.argsort(margins)
    below = np.cumsum(np.ones(len(margins)) if weights is None else weights[order])
    at = np.searchsorted(below, np.linspace(0, below[-1], _POINTS)).clip(max=len(margins) - 1)
    typical, theirs = margins[order][at], np.unique(margins)
    if len(theirs) > 2 * _POINTS:
        theirs = np.unique(np.concatenate([typical, np.linspace(low, high, _POINTS)]))
    beyond = max(high - low, 1.0) * np.geomspace(_NEAREST, _FARTHEST, _BEYOND)
    mine = np.concatenate([low - beyond, np.linspace(low, high, _POINTS), high + beyond])
    parts, lines = [], []
    with np.errstate(all="ignore"):
        for k, function in enumerate(functions):
            slopes = slope(function, mine[:, None], theirs[None])
            size = np.maximum(_rounding(function, mine)[:, None], _rounding(function, theirs))
            noise = size / np.maximum(np.abs(mine[:, None] - theirs), _STEP)
            usual = np.abs(slopes[:, np.searchsorted(theirs, typical)]).mean(axis=1)
            scale = np.maximum(usual, noise.max(axis=1) / tolerance)
            usable = np.isfinite(slopes).all(axis=1) & np.isfinite(scale) & (scale > 0)
            parts.append(slopes[usable] / scale[usable, None])
            lines += [(k, *pair) for pair in zip(mine[usable], scale[usable], strict=True)]
    rows, columns = cross(np.concatenate(parts), tolerance)
    if not len(rows):  # a constant output
        return Channels(theirs[:1].copy(), np.zeros((len(margins), 1)))
    chosen = np.empty((len(rows), len(columns)))
    everyone = np.empty((len(rows), len(margins)))
    for i, row in enumerate(rows):
        k, margin, size = lines[row]
        chosen[i] = slope(functions[k], margin, theirs[columns]) / size
        everyone[i] = slope(functions[k], margin, margins) / size
    return Channels(theirs[columns], np.ascontiguousarray(np.linalg.solve(chosen, everyone).T))


def _rounding(function: Function, at: Floats) -> Floats:
    """Return the error of the function where slopes evaluate it."""
    beside = np.maximum(np.abs(function(at)), np.abs(function(at + _STEP)))
    return np.asarray(_ROUNDING * (beside + np.abs(at * slope(function, at, at))))


def cross(matrix: Floats, tolerance: float) -> tuple[list[int], list[int]]:
    """Return rows and columns of a matrix A that determine it: A = A[:, columns] A[rows, columns]^-1 A[rows].

    No entry is off by more than ``tolerance``. Gaussian elimination with the largest entry as pivot.
    """
    rows: list[int] = []
    columns: list[int] = []
    rest = matrix.copy()
    while len(rows) < min(matrix.shape):
        row, column = (int(i) for i in np.unravel_index(np.abs(rest).argmax(), rest.shape))
        pivot = rest[row, column]
        if abs(pivot) <= tolerance:
            break
        rest -= np.outer(rest[:, column], rest[row] / pivot)
        rows.append(row)
        columns.append(column)
    return rows, columns
