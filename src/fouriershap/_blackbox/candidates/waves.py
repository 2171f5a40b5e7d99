"""Candidate "waves": sums of cosines, each fitted without a fold; all their waves together are weighted once more."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.parallel import for_each_block
from fouriershap._base.threads import one_blas_thread
from fouriershap._blackbox.fidelity import r_squared
from fouriershap._blackbox.surrogates import WaveSurrogate
from fouriershap._blackbox.task import N_FOLDS, CandidateFit, Task
from fouriershap._rows.levels import NUMBER
from fouriershap._shapley.engine import Floats
from fouriershap._waves.columns import Columns, columns_of
from fouriershap._waves.training import Fitted, Settings, fit_waves, mean_of, weigh_again
from fouriershap._waves.waves import Waves

FEW, MANY = 64, 256  # waves; many are tried where answers are, too
N_NETS = {FEW: 4, MANY: 2}  # sums that are put together and weighted again
N_MEAN = 8  # sums of few waves whose mean is taken, where answers are few
DOUBTFUL = 0.1  # share of the variance: where less is hopeless, few waves are tried before many
WORTH_MANY = 0.85  # of what few waves miss: many must miss less
COMPRESSED, LEAST_COMPRESSED = 0.1, 8e-4  # of what waves miss: a compressed background may, and always may
_LEAST = 1e-6  # misses below it are rounding
_FEW_ANSWERS, _MANY_ANSWERS = 3_000, 10_000
_PER_SECOND = 8e9  # multiplications, about


@dataclass(frozen=True, eq=False)
class WaveTargets:
    """Answers as waves are fitted to them.

    Attributes
    ----------
    columns : Columns
    inputs : (n, n_columns) float32
    values : (n, n_outputs) float64
        Of mean 0 and spread 1.
    centre, scale : (n_outputs,) float64
        What takes them back; the scale of a constant is 0, so that waves do not fit it.
    """

    columns: Columns
    inputs: NDArray[np.float32]
    values: Floats
    centre: Floats
    scale: Floats

    @classmethod
    def make(cls, task: Task) -> WaveTargets:
        """Return the answers of a task."""
        features = task.encoding.features
        n_levels = np.array([0 if f.kind == NUMBER else len(f.levels) for f in features], dtype=np.int32)
        missing = np.array([f.missing for f in features])
        columns = columns_of(task.pool_codes, n_levels, missing, task.encoding.player)
        centre, scale = task.answers.mean(axis=0), task.answers.std(axis=0)
        scale[~(scale > 1e-12 * np.abs(centre))] = 0.0  # a constant
        values = np.where(scale > 0, task.answers - centre, 0.0) / np.where(scale > 0, scale, 1.0)
        return cls(columns, columns.design(task.codes), values, centre, scale)

    def back(self, values: Floats) -> Floats:
        return values * self.scale + self.centre

    def surrogate(self, fitted: Fitted, tolerance: float) -> WaveSurrogate:
        """Return the surrogate of waves that were fitted to the values."""
        weights = fitted.weights * self.scale
        ends = [len(fitted.frequencies), len(weights) - 1]
        amplitudes, linear, constant = np.split(weights, ends)
        frequencies, phases = (part.astype(np.float64) for part in (fitted.frequencies, fitted.phases))
        waves = Waves(frequencies, amplitudes, phases, linear, constant[0] + self.centre, self.columns)
        return WaveSurrogate(waves, tolerance)


def fit_waves_candidate(task: Task, hopeless: float = np.inf) -> CandidateFit:
    """Fit waves to all outputs together; stop after one fit if that misses more than is ``hopeless``."""
    begin, targets = time.perf_counter(), WaveTargets.make(task)
    with one_blas_thread():
        nets = _fit_nets(task, targets, hopeless)
        predictions = np.full(task.answers.shape, np.nan)
        for k in range(min(N_FOLDS, len(nets))):
            inside = task.fold == k
            said = [net.predict(targets.inputs[inside]) for net in nets[k::N_FOLDS]]
            predictions[inside] = targets.back(np.mean(said, axis=0))
    r2 = task.judge(predictions)
    note = f"{sum(len(net.frequencies) for net in nets)} waves on {targets.columns.n_columns} columns"
    make = partial(_together, task, targets, nets, max(1 - r2, _LEAST))
    return CandidateFit("waves", r2, predictions, make, time.perf_counter() - begin, note)


def expected_seconds(n_answers: int, n_columns: int) -> float:
    """Estimate the seconds of a fit, on one thread."""
    sizes = [FEW] + [MANY] * N_NETS[MANY] if n_answers >= _MANY_ANSWERS else [FEW] * _n_nets(n_answers, FEW)
    return sum(_settings(n_answers, n).work(n_answers, n_columns) for n in sizes) / _PER_SECOND


def _n_nets(n_answers: int, n_waves: int) -> int:
    return N_MEAN if n_answers < _FEW_ANSWERS else N_NETS[n_waves]


def _settings(n_answers: int, n_waves: int) -> Settings:
    n_batch = 64 if n_answers < _MANY_ANSWERS else 256
    n_epochs = 150 if n_answers < _FEW_ANSWERS else 50 if n_answers < _MANY_ANSWERS or n_waves > FEW else 90
    return Settings(n_waves, n_batch, n_epochs)


def _fit_nets(task: Task, targets: WaveTargets, hopeless: float) -> list[Fitted]:
    """Fit waves without fold 0, with many waves if that is worth it, and then without other folds."""
    n_inside, n_columns = int((task.fold != 0).sum()), targets.columns.n_columns
    progress = task.progress
    progress.start(expected_seconds(n_inside, n_columns) * _PER_SECOND)

    def fit(k: int, n_waves: int) -> Fitted:
        inside, outside = task.fold != k % N_FOLDS, task.fold == k % N_FOLDS
        rng = np.random.default_rng([task.seed, k, n_waves])
        judges = targets.inputs[outside], targets.values[outside]
        settings = _settings(int(inside.sum()), n_waves)
        some = targets.inputs[inside], targets.values[inside]
        return fit_waves(*some, settings, rng, judges, tick=progress.tick)

    def missed(net: Fitted) -> float:
        outside = task.fold == 0
        said = targets.back(net.predict(targets.inputs[outside]))
        return 1 - r_squared(task.answers[outside], said)

    n_waves, first = FEW, fit(0, FEW)
    least = missed(first)
    if n_inside >= _MANY_ANSWERS and (least <= hopeless or hopeless >= DOUBTFUL):
        many = fit(0, MANY)
        if missed(many) < WORTH_MANY * least:
            n_waves, first, least = MANY, many, missed(many)
    nets = {0: first}

    def fit_some(begin: int, end: int) -> None:
        nets.update((k, fit(k, n_waves)) for k in range(begin + 1, end + 1))

    if least <= hopeless:
        for_each_block(fit_some, _n_nets(n_inside, n_waves) - 1, 1, task.n_jobs, progress.stop)
    return [nets[k] for k in sorted(nets)]


def _together(task: Task, targets: WaveTargets, nets: list[Fitted], missed: float) -> WaveSurrogate:
    """Return the waves of all nets, weighted by all answers; the background may be compressed by a share of a miss."""
    with one_blas_thread():
        if len(nets) == N_MEAN:  # of few answers, their mean has less chance in it than any weights
            fitted = mean_of(nets)
        else:
            fitted = weigh_again(nets, targets.inputs, targets.values, task.fold == 0)
    return targets.surrogate(fitted, max(COMPRESSED * missed, LEAST_COMPRESSED))
