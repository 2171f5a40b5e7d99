"""Fit waves to answers: Adam on frequencies and amplitudes, then least squares for everything linear."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fouriershap import _kernels as kernels

Singles = NDArray[np.float32]
Floats = NDArray[np.float64]

RATE, DECAY = 2e-2, 2e-2
_FIRST_RIDGE = 1e-3
RIDGES = (1e-7, 1e-6, 1e-5, 1e-4)  # of the last least squares, chosen by held-out answers
_WORK_PER_CALL = 4e8  # multiplications, some 50 ms: Ctrl-C works between calls
_BATCH = 16  # batches are multiples of it
_ROWS_PER_BLOCK = 4096

Tick = Callable[[float], None]


@dataclass(frozen=True)
class Settings:
    """Number of waves, and length of their training.

    Attributes
    ----------
    n_waves, n_batch, n_epochs : int
    rate : float
        Learning rate of Adam at the start.
    """

    n_waves: int
    n_batch: int
    n_epochs: int
    rate: float = RATE

    def work(self, n_rows: int, n_columns: int) -> float:
        """Estimate the multiplications of training."""
        return 4.0 * self.n_epochs * n_rows * self.n_waves * (n_columns + 12)


@dataclass(frozen=True, eq=False)
class Fitted:
    """Waves on columns.

    Attributes
    ----------
    frequencies : (n_waves, n_columns) float32
    phases : (n_waves,) float32
    weights : (n_waves + n_columns + 1, n_outputs) float64
        Amplitudes, then the linear part, then the constant.
    """

    frequencies: Singles
    phases: Singles
    weights: Floats

    def predict(self, inputs: Singles) -> Floats:
        """Return outputs (n_rows, n_outputs) of columns (n_rows, n_columns)."""
        blocks = range(0, len(inputs), _ROWS_PER_BLOCK)
        parts = [self.terms(inputs[i : i + _ROWS_PER_BLOCK]) @ self.weights for i in blocks]
        return np.concatenate(parts) if parts else np.empty((0, self.weights.shape[1]))

    def terms(self, inputs: Singles) -> Singles:
        """Return cosines, columns and a one, to be weighted: (n_rows, n_waves + n_columns + 1)."""
        return _terms(inputs, self.frequencies, self.phases)


def fit_waves(
    inputs: Singles,
    targets: Floats,
    settings: Settings,
    rng: np.random.Generator,
    held_out: tuple[Singles, Floats],
    tick: Tick = lambda _: None,
) -> Fitted:
    """Fit waves to answers.

    Parameters
    ----------
    inputs : (n_rows, n_columns) float32
    targets : (n_rows, n_outputs) float64
        With mean 0 and a standard deviation of about 1.
    held_out : inputs and targets
        Other answers, which choose how smooth the last least squares are.
    tick : callable
        Called now and then with the number of multiplications done since; an exception that it raises ends the fit.
    """
    n_waves, n_columns, n_outputs = settings.n_waves, inputs.shape[1], targets.shape[1]
    frequencies = (rng.standard_normal((n_waves, n_columns)) / np.sqrt(n_columns)).astype(np.float32)
    phases = rng.uniform(0, 2 * np.pi, n_waves).astype(np.float32)
    weights = _least_squares(inputs, targets, frequencies, phases, (_FIRST_RIDGE,))[0].astype(np.float32)
    parts = (frequencies, phases, *np.split(weights.T, [n_waves, n_waves + n_columns], axis=1))
    parameters = np.concatenate([part.ravel() for part in parts])
    _train(inputs, targets.astype(np.float32), settings, rng, parameters, tick)
    sizes = np.cumsum([n_waves * n_columns, n_waves, n_outputs * n_waves, n_outputs * n_columns])
    found = np.split(parameters, sizes)
    frequencies, phases = found[0].reshape(n_waves, n_columns), found[1]
    trained = np.concatenate([part.reshape(n_outputs, -1).T for part in found[2:]]).astype(np.float64)
    solved = _least_squares(inputs, targets, frequencies, phases, RIDGES)
    candidates = [trained, *solved]
    return Fitted(frequencies, phases, candidates[_best(frequencies, phases, candidates, *held_out)])


def mean_of(nets: Sequence[Fitted]) -> Fitted:
    """Return the mean of several fits as one."""
    n_waves = [len(net.frequencies) for net in nets]
    waves = [net.weights[:n] for net, n in zip(nets, n_waves, strict=True)]
    rest = np.mean([net.weights[n:] for net, n in zip(nets, n_waves, strict=True)], axis=0)
    frequencies, phases = (
        np.concatenate([getattr(net, name) for net in nets]) for name in ("frequencies", "phases")
    )
    return Fitted(frequencies, phases, np.concatenate([np.concatenate(waves) / len(nets), rest]))


def weigh_again(
    nets: Sequence[Fitted], inputs: Singles, targets: Floats, held_out: NDArray[np.bool_]
) -> Fitted:
    """Return the waves of several fits, weighted by all answers; those held out choose how smooth that is."""
    frequencies = np.concatenate([net.frequencies for net in nets])
    phases = np.concatenate([net.phases for net in nets])
    tried = _least_squares(inputs[~held_out], targets[~held_out], frequencies, phases, RIDGES)
    ridge = RIDGES[_best(frequencies, phases, tried, inputs[held_out], targets[held_out])]
    return Fitted(frequencies, phases, _least_squares(inputs, targets, frequencies, phases, (ridge,))[0])


def _best(
    frequencies: Singles, phases: Singles, tried: list[Floats], inputs: Singles, targets: Floats
) -> int:
    """Return which weights miss least of these answers."""
    terms = _terms(inputs, frequencies, phases)
    return int(np.argmin([float(((terms @ weights - targets) ** 2).sum()) for weights in tried]))


def _train(
    inputs: Singles,
    targets: Singles,
    settings: Settings,
    rng: np.random.Generator,
    parameters: Singles,
    tick: Tick,
) -> None:
    n_batch = max(min(settings.n_batch, len(inputs)) // _BATCH, 1) * _BATCH
    # Every row once per epoch, except for an incomplete batch.
    each = max(len(inputs) // n_batch, 1) * n_batch
    epochs = [np.resize(rng.permutation(len(inputs)), each) for _ in range(settings.n_epochs)]
    order = np.concatenate(epochs).reshape(-1, n_batch).astype(np.int32)  # (n_steps, n_batch)
    step = np.arange(1, len(order) + 1)
    rate = settings.rate * 0.5 * (1 + np.cos(np.pi * step / len(order)))
    schedule = np.stack([rate / (1 - 0.9**step), 1 / (1 - 0.99**step), 1 - rate * DECAY], axis=1)
    schedule = schedule.astype(np.float32)
    moments = np.zeros((2, len(parameters)), dtype=np.float32)
    work = settings.work(len(inputs), inputs.shape[1]) / len(order)
    n_steps = max(int(_WORK_PER_CALL / work), 1)
    for i in range(0, len(order), n_steps):
        part = slice(i, i + n_steps)
        kernels.waves.train(
            inputs, targets, order[part], schedule[part], settings.n_waves, parameters, moments
        )
        tick(work * len(order[part]))


def _terms(inputs: Singles, frequencies: Singles, phases: Singles) -> Singles:
    ones = np.ones((len(inputs), 1), dtype=np.float32)
    return np.concatenate([np.cos(inputs @ frequencies.T + phases), inputs, ones], axis=1)


def _least_squares(
    inputs: Singles, targets: Floats, frequencies: Singles, phases: Singles, ridges: tuple[float, ...]
) -> list[Floats]:
    """Return weights (n_terms, n_outputs) for each ridge."""
    n_terms = len(frequencies) + inputs.shape[1] + 1
    gram, moment = np.zeros((n_terms, n_terms)), np.zeros((n_terms, targets.shape[1]))
    for i in range(0, len(inputs), _ROWS_PER_BLOCK):
        part = slice(i, i + _ROWS_PER_BLOCK)
        terms = _terms(inputs[part], frequencies, phases)
        gram += terms.T @ terms
        moment += terms.T @ targets[part]
    diagonal = np.eye(n_terms) * len(inputs)
    return [np.asarray(np.linalg.solve(gram + ridge * diagonal, moment)) for ridge in ridges]
