"""The `waves` kernels in NumPy: what `waves.cpp` must compute. Shapes and meanings are documented here."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float32]


def _parts(values: _Floats, n_waves: int, n_columns: int, n_outputs: int) -> list[_Floats]:
    """Return views of the parts of the parameters, or of their gradient."""
    shapes = [(n_waves, n_columns), (n_waves,), (n_outputs, n_waves), (n_outputs, n_columns), (n_outputs,)]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
    return [part.reshape(shape) for part, shape in zip(np.split(values, ends[:-1]), shapes, strict=True)]


def train(
    inputs: _Floats,
    targets: _Floats,
    order: NDArray[np.int32],
    schedule: _Floats,
    n_waves: int,
    parameters: _Floats,
    moments: _Floats,
) -> None:
    """Fit a sum of waves by Adam's steps on the mean square error, summed over outputs.

    The sum is ``constant + linear x + sum_m amplitudes_m cos(frequencies_m x + phases_m)``.

    Parameters
    ----------
    inputs : (n_rows, n_columns) float32
    targets : (n_rows, n_outputs) float32
    order : (n_steps, n_batch) int32
        The rows of each step; n_batch is a multiple of 16.
    schedule : (n_steps, 3) float32
        Of each step: the rate over one less the first decay's power, one over one less the second decay's power,
        and the share of the frequencies that is left after it. The decays are 0.9 and 0.99.
    n_waves : int
    parameters : (n_parameters,) float32
        One after the other: frequencies (n_waves, n_columns), phases (n_waves,), amplitudes (n_outputs, n_waves),
        linear (n_outputs, n_columns), constant (n_outputs,). Changed in place.
    moments : (2, n_parameters) float32
        Of the gradient, first and second. Changed in place.
    """
    sizes = (n_waves, inputs.shape[1], targets.shape[1])
    frequencies, phases, amplitudes, linear, constant = _parts(parameters, *sizes)
    gradient = np.empty_like(parameters)
    slopes = _parts(gradient, *sizes)
    for rows, (rate, correction, kept) in zip(order, schedule, strict=True):
        x = inputs[rows]
        angle = x @ frequencies.T + phases
        cosine, sine = np.cos(angle), np.sin(angle)
        missed = constant + x @ linear.T + cosine @ amplitudes.T - targets[rows]
        missed *= np.float32(2 / len(rows))
        slope = -sine * (missed @ amplitudes)
        for part, value in zip(
            slopes, (slope.T @ x, slope.sum(0), missed.T @ cosine, missed.T @ x, missed.sum(0)), strict=True
        ):
            part[...] = value
        moments[0] = np.float32(0.9) * moments[0] + np.float32(0.1) * gradient
        moments[1] = np.float32(0.99) * moments[1] + np.float32(0.01) * gradient**2
        parameters -= rate * moments[0] / (np.sqrt(moments[1] * correction) + np.float32(1e-8))
        frequencies *= kept


def factors(
    values: NDArray[Any],
    slot: NDArray[np.int32],
    frequencies: NDArray[Any],
    player: NDArray[np.int32],
    out: NDArray[Any],
) -> None:
    """Compute the part of each player in the phase of each wave, as a point of the unit circle.

    Parameters
    ----------
    values : (n_rows, n_features) float32 or float64
    slot : (n_rows, n_features) int32
        The column that the feature takes in a row; its value there is in ``values``, and 0 in its other columns.
    frequencies : (n_columns, n_waves), of the same type
        ``n_waves`` is a multiple of 16.
    player : (n_features,) int32
    out : (n_rows, n_players, 2, n_waves), of the same type
        Written: cosine and sine.
    """
    angle = np.zeros((len(values), out.shape[1], out.shape[3]), dtype=out.dtype)
    for f, p in enumerate(player):
        angle[:, p] += frequencies[slot[:, f]] * values[:, f, None]
    out[:, :, 0], out[:, :, 1] = np.cos(angle), np.sin(angle)
