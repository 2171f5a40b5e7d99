"""Answers as waves are fitted to them: in the unit of the outputs or, of probabilities, as logits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fouriershap._blackbox.surrogates import WaveSurrogate
from fouriershap._blackbox.task import Task
from fouriershap._rows.levels import NUMBER
from fouriershap._shapley.engine import Floats
from fouriershap._waves.columns import Columns, columns_of
from fouriershap._waves.training import Fitted
from fouriershap._waves.waves import Waves

_ODDS = 1e-4  # probabilities nearer to 0 or 1 than this are as sure


@dataclass(frozen=True, eq=False)
class Scaled:
    """Numbers of mean 0 and spread 1.

    Attributes
    ----------
    values : (n, n_outputs) float64
    centre, scale : (n_outputs,) float64
        What takes them back; the scale of a constant is 0, so that waves do not fit it.
    """

    values: Floats
    centre: Floats
    scale: Floats

    def there(self, values: Floats) -> Floats:
        return _standard(values, self.centre, self.scale)

    def back(self, values: Floats) -> Floats:
        return values * self.scale + self.centre


@dataclass(frozen=True, eq=False)
class WaveTargets:
    """Answers as waves are fitted to them.

    Attributes
    ----------
    columns : Columns
    inputs : (n, n_columns) float32
    outputs : Scaled
    logits : Scaled or None
        Of answers that are probabilities.
    unit : float
        What probabilities are divided by to be answers.
    linked : bool
        Whether teachers are fitted to logits alone: a model that ends in a sigmoid is simpler before it. Their
        probabilities are then not a sum of waves and have no SHAP values in closed form; waves are fitted to them.
    """

    columns: Columns
    inputs: NDArray[np.float32]
    outputs: Scaled
    logits: Scaled | None
    unit: float
    linked: bool = False

    @property
    def n_outputs(self) -> int:
        return len(self.outputs.centre)

    @property
    def targets(self) -> Floats:
        """(n, n_targets): what teachers are fitted to; logits beside outputs help to find frequencies."""
        if self.logits is None:
            return self.outputs.values
        if self.linked:
            return self.logits.values
        return np.concatenate([self.outputs.values, self.logits.values], axis=1)

    def read(self, said: Floats) -> Floats:
        """Return outputs (n_rows, n_outputs) of mean 0 and spread 1, from a teacher's predictions of the targets."""
        said = said[:, : self.n_outputs]
        if not self.linked or self.logits is None:
            return said
        chances = 0.5 * (1 + np.tanh(0.5 * self.logits.back(said)))
        return self.outputs.there(chances / self.unit)

    def mean(self, nets: list[Fitted], inputs: NDArray[np.float32]) -> Floats:
        """Return outputs of mean 0 and spread 1, from the mean of several nets' predictions of the targets."""
        return self.read(np.mean([net.predict(inputs) for net in nets], axis=0))

    def surrogate(self, fitted: Fitted, tolerance: float) -> WaveSurrogate:
        """Return the surrogate of waves that were fitted to the outputs."""
        weights = fitted.weights[:, : self.n_outputs] * self.outputs.scale
        ends = [len(fitted.frequencies), len(weights) - 1]
        amplitudes, linear, constant = np.split(weights, ends)
        frequencies, phases = (part.astype(np.float64) for part in (fitted.frequencies, fitted.phases))
        constant = constant[0] + self.outputs.centre
        waves = Waves(frequencies, amplitudes, phases, linear, constant, self.columns)
        return WaveSurrogate(waves, tolerance)


def prepare(task: Task) -> WaveTargets:
    """Return the answers of a task; they count as probabilities if all are from 0 to 1."""
    features = task.encoding.features
    n_levels = np.array([0 if f.kind == NUMBER else len(f.levels) for f in features], dtype=np.int32)
    missing = np.array([f.missing for f in features])
    columns = columns_of(task.pool_codes, n_levels, missing, task.encoding.player)
    chances = task.answers * task.unit
    logits = None
    if chances.min() >= 0 and chances.max() <= 1:
        sure = np.clip(chances, _ODDS, 1 - _ODDS)
        logits = _scaled(np.log(sure / (1 - sure)))
    return WaveTargets(columns, columns.design(task.codes), _scaled(task.answers), logits, task.unit)


def _scaled(values: Floats) -> Scaled:
    centre, scale = values.mean(axis=0), values.std(axis=0)
    scale[~(scale > 1e-12 * np.abs(centre))] = 0.0  # a constant
    return Scaled(_standard(values, centre, scale), centre, scale)


def _standard(values: Floats, centre: Floats, scale: Floats) -> Floats:
    standard: Floats = np.where(scale > 0, values - centre, 0.0) / np.where(scale > 0, scale, 1.0)
    return standard
