"""Candidate "waves": sums of cosines fitted without each fold, and a kernel; what they say is taught to one sum."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.asking.report import Meter
from fouriershap._base.parallel import for_each_block
from fouriershap._base.threads import one_blas_thread
from fouriershap._blackbox.candidates.kernel import Kernel, can_fit_kernel, fit_kernel, kernel_work
from fouriershap._blackbox.task import N_FOLDS, Fit, Task, r_squared
from fouriershap._blackbox.wave_surrogate import WaveSurrogate
from fouriershap._rows.levels import NUMBER
from fouriershap._shapley.engine import Floats
from fouriershap._waves.columns import Columns, columns_of
from fouriershap._waves.training import Fitted, Settings, fit_waves
from fouriershap._waves.waves import Waves

FEW, MANY = 64, 256  # waves; many are tried where answers are, too
ROUNDS = 2  # fits without each fold where answers and waves are few; else one
DOUBTFUL = 0.1  # share of the variance: where less is hopeless, few waves are tried before many
WORTH_MANY = 0.85  # of what few waves miss: many must miss less
STUDENT, MOST_STUDENT, FEW_PLAYERS = 128, 256, 16  # waves of the student, and the most, where players are few
STUDENT_EPOCHS, STUDENT_RATE = 10, 1e-2  # it begins with the waves of its teachers
FEW_LABELS = 20_000  # up to which it learns twice as long
GOOD_ENOUGH, ALWAYS_GOOD = (
    0.05,
    2e-4,
)  # what the student may miss, as a share of what its teachers do, and at least
LEAST_KERNEL, MOSTLY = (
    0.1,
    0.5,
)  # shares of the kernel: less is not worth its time; from more on few waves are not tried
DAMPED = 1.5  # power of that share: in values, which are means, the chance of fits fades, a kernel's smoothing does not
LEAST_MISSED = 1e-4  # by waves alone, for a kernel to be worth its time
COMPRESSED, LEAST_COMPRESSED = (
    0.1,
    2e-4,
)  # likewise what a compressed background may miss, and what it always may
FREE, MOST_FREE, N_CHECK = (
    16,
    40_000,
    2_000,
)  # hybrids that the mean labels itself: per answer, at most; to check
_LEAST = 1e-6  # misses below it are rounding
_FEW_ANSWERS, _MANY_ANSWERS = 3_000, 10_000
_PER_SECOND = 8e9  # multiplications, about
_ODDS = 1e-4  # probabilities nearer to 0 or 1 than this are as sure


@dataclass(frozen=True, eq=False)
class _Answers:
    """Answers as waves are fitted to them.

    Attributes
    ----------
    columns : Columns
    inputs : (n, n_columns) float32
    targets : (n, n_targets) float64
        Outputs of mean 0 and spread 1; of probabilities the logits, too, which help to find frequencies.
    centre, scale : (n_outputs,) float64
        Of the outputs; the scale of a constant is 0, so that waves say nothing about it.
    """

    columns: Columns
    inputs: NDArray[np.float32]
    targets: Floats
    centre: Floats
    scale: Floats

    def outputs(self, fitted: Fitted, inputs: NDArray[np.float32]) -> Floats:
        """What fitted waves say, in the unit of the answers."""
        return fitted.predict(inputs)[:, : len(self.centre)] * self.scale + self.centre

    def waves(self, fitted: Fitted) -> Waves:
        n = len(self.centre)
        weights = fitted.weights[:, :n] * self.scale
        ends = [len(fitted.frequencies), len(weights) - 1]
        amplitudes, linear, constant = np.split(weights, ends)
        frequencies, phases = (part.astype(np.float64) for part in (fitted.frequencies, fitted.phases))
        return Waves(frequencies, amplitudes, phases, linear, constant[0] + self.centre, self.columns)


@dataclass(frozen=True, eq=False)
class _Teachers:
    """Waves of several fits, and, where it helps, a kernel.

    Attributes
    ----------
    nets : list of Fitted
    kernel : Kernel or None
    share : float
        Of the kernel in what they say together.
    """

    nets: list[Fitted]
    kernel: Kernel | None = None
    share: float = 0.0

    def say(self, inputs: NDArray[np.float32], n_outputs: int) -> Floats:
        """Outputs (n_rows, n_outputs) of mean 0 and spread 1."""
        said = np.mean([net.predict(inputs)[:, :n_outputs] for net in self.nets], axis=0)
        if self.kernel is None:
            return np.asarray(said)
        return np.asarray((1 - self.share) * said + self.share * self.kernel.predict(inputs))


def fit_waves_candidate(task: Task, hopeless: float = np.inf) -> Fit:
    """Waves, all outputs together; only one fit is made where that misses more of the answers than is ``hopeless``."""
    begin = time.perf_counter()
    with one_blas_thread():
        answers = _prepare(task)
        nets = _fit_folds(task, answers, hopeless)
        predictions = np.full(task.answers.shape, np.nan)
        for k in range(min(N_FOLDS, len(nets))):
            inside = task.fold == k
            said = [answers.outputs(net, answers.inputs[inside]) for net in nets[k::N_FOLDS]]
            predictions[inside] = np.mean(said, axis=0)
        teachers = _Teachers(nets)
        if (
            len(nets) > 1
            and 1 - task.judge(predictions) > LEAST_MISSED
            and can_fit_kernel(answers.columns.n_columns)
        ):
            teachers, predictions = _with_kernel(task, answers, nets, predictions)
    r2 = task.judge(predictions)
    note = f"{len(nets[0].frequencies)} waves on {answers.columns.n_columns} columns"
    if teachers.kernel is not None:
        note += f", {teachers.share:.0%} of a kernel of {len(teachers.kernel.centres):,} rows"
    make = partial(_distil, task, answers, teachers, max(1 - r2, _LEAST))
    return Fit("waves", r2, predictions, make, time.perf_counter() - begin, note)


def _with_kernel(
    task: Task, answers: _Answers, nets: list[Fitted], predictions: Floats
) -> tuple[_Teachers, Floats]:
    """A kernel beside the waves, by the share that the folds ask for, and what both say of the folds."""
    n = task.n_outputs
    rng = np.random.default_rng([task.seed, N_FOLDS])
    kernel, said = fit_kernel(answers.inputs, answers.targets[:, :n], task.fold, nets, rng)
    said = said * answers.scale + answers.centre
    share = task.best_share(predictions, said)
    if share < LEAST_KERNEL:
        return _Teachers(nets), predictions
    share **= DAMPED
    return _Teachers(nets, kernel, share), (1 - share) * predictions + share * said


def _prepare(task: Task) -> _Answers:
    features = task.encoding.features
    n_levels = np.array([0 if f.kind == NUMBER else len(f.levels) for f in features], dtype=np.int32)
    missing = np.array([f.missing for f in features])
    columns = columns_of(task.pool_codes, n_levels, missing, task.encoding.player)
    targets = task.answers
    chances = task.answers * task.unit
    if chances.min() >= 0 and chances.max() <= 1:
        sure = np.clip(chances, _ODDS, 1 - _ODDS)
        targets = np.concatenate([targets, np.log(sure / (1 - sure))], axis=1)
    centre, scale = targets.mean(axis=0), targets.std(axis=0)
    scale[~(scale > 1e-12 * np.abs(centre))] = 0.0  # a constant
    n = task.n_outputs
    inputs = columns.design(task.codes)
    standard = (targets - centre) / np.where(scale > 0, scale, 1.0)
    return _Answers(columns, inputs, standard, centre[:n], scale[:n])


def expected_seconds(n_answers: int, n_columns: int) -> tuple[float, float]:
    """About what fitting the folds and teaching the student take, on one thread."""
    n = n_answers * (N_FOLDS - 1) // N_FOLDS
    sizes = [FEW] * (_rounds(n, FEW) * N_FOLDS) + [MANY] * (n >= _MANY_ANSWERS)
    folds = sum(_settings(n, n_waves).work(n, n_columns) for n_waves in sizes) + kernel_work(n_answers)
    n_labels = min(FREE * n_answers, MOST_FREE)
    return folds / _PER_SECOND, _student_settings(STUDENT, n_labels).work(n_labels, n_columns) / _PER_SECOND


def _rounds(n_answers: int, n_waves: int) -> int:
    return ROUNDS if n_waves == FEW and n_answers < _FEW_ANSWERS else 1


def _student_settings(n_waves: int, n_labels: int) -> Settings:
    return Settings(n_waves, 256, STUDENT_EPOCHS * (1 + (n_labels < FEW_LABELS)), STUDENT_RATE)


def _student_sizes(teachers: _Teachers, n_players: int) -> list[int]:
    """Waves of the student, more where fewer miss too much of its teachers: a row costs waves times players."""
    if (teachers.kernel is None and len(teachers.nets[0].frequencies) == FEW) or n_players > FEW_PLAYERS:
        return [FEW, STUDENT]
    return [STUDENT, MOST_STUDENT] if teachers.share < MOSTLY else [MOST_STUDENT]


def _settings(n_answers: int, n_waves: int) -> Settings:
    n_batch = 64 if n_answers < _MANY_ANSWERS else 256
    n_epochs = 150 if n_answers < _FEW_ANSWERS else 50 if n_answers < _MANY_ANSWERS or n_waves > FEW else 90
    return Settings(n_waves, n_batch, n_epochs)


def _fit_folds(task: Task, answers: _Answers, hopeless: float) -> list[Fitted]:
    """Some fits without each fold, in turn; the first says how many waves there are."""
    n_inside, n_columns = int((task.fold != 0).sum()), answers.columns.n_columns
    work = {n_waves: _settings(n_inside, n_waves).work(n_inside, n_columns) for n_waves in (FEW, MANY)}
    rounds = {n_waves: _rounds(n_inside, n_waves) for n_waves in (FEW, MANY)}
    sizes = (FEW, MANY) if n_inside >= _MANY_ANSWERS else (FEW,)
    meter = Meter(task.report, (rounds[FEW] * N_FOLDS - 1) * work[FEW] + sum(work[size] for size in sizes))

    def fit(which: int, n_waves: int) -> Fitted:
        inside, outside = task.fold != which % N_FOLDS, task.fold == which % N_FOLDS
        rng = np.random.default_rng([task.seed, which, n_waves])
        judges = answers.inputs[outside], answers.targets[outside]
        settings = _settings(int(inside.sum()), n_waves)
        some = answers.inputs[inside], answers.targets[inside]
        return fit_waves(*some, settings, rng, judges, tick=meter.tick)

    first: dict[int, Fitted] = {}
    outside = task.fold == 0

    def try_sizes(sizes: tuple[int, ...]) -> dict[int, float]:
        """What each of these numbers of waves misses."""

        def work_on(begin: int, end: int) -> None:
            first.update((n_waves, fit(0, n_waves)) for n_waves in sizes[begin:end])

        for_each_block(work_on, len(sizes), 1, task.n_jobs, meter.stop)
        truth, inputs = task.answers[outside], answers.inputs[outside]
        return {n: 1 - r_squared(truth, answers.outputs(first[n], inputs)) for n in sizes}

    missed = try_sizes(sizes[:1] if hopeless < DOUBTFUL else sizes)
    if missed[FEW] > hopeless and MANY not in missed:
        return [first[FEW]]
    missed |= try_sizes(tuple(size for size in sizes if size not in missed))
    n_waves = MANY if missed.get(MANY, np.inf) < WORTH_MANY * missed[FEW] else FEW
    nets = {0: first[n_waves]}
    n_nets = N_FOLDS * rounds[n_waves] if missed[n_waves] <= hopeless else 1
    meter.total = sum(work[size] for size in sizes) + (n_nets - 1) * work[n_waves]

    def fit_some(begin: int, end: int) -> None:
        nets.update((which, fit(which, n_waves)) for which in range(begin + 1, end + 1))

    for_each_block(fit_some, n_nets - 1, 1, task.n_jobs, meter.stop)
    return [nets[which] for which in range(n_nets)]


def _distil(task: Task, answers: _Answers, teachers: _Teachers, missed: float) -> WaveSurrogate:
    """One sum of waves that repeats its teachers: what they say of more hybrids costs no query."""
    with one_blas_thread():
        n_free = min(FREE * len(task.codes), MOST_FREE)
        inputs = np.concatenate([answers.columns.design(task.draw(n_free + N_CHECK)), answers.inputs])
        labels = teachers.say(inputs, task.n_outputs)
        check, train = slice(N_CHECK), slice(N_CHECK, None)
        judges = inputs[check], labels[check]
        for n_waves in _student_sizes(teachers, task.encoding.n_players):
            settings = _student_settings(n_waves, n_free)
            meter = Meter(task.report, settings.work(len(inputs) - N_CHECK, inputs.shape[1]))
            rng = np.random.default_rng([task.seed, N_FOLDS, n_waves])
            start = _join(teachers.nets, n_waves)
            student = fit_waves(inputs[train], labels[train], settings, rng, judges, start, meter.tick)
            if 1 - r_squared(labels[check], student.predict(judges[0])) < max(
                GOOD_ENOUGH * missed, ALWAYS_GOOD
            ):
                break
        return WaveSurrogate(answers.waves(student), max(COMPRESSED * missed, LEAST_COMPRESSED))


def _join(nets: list[Fitted], n_waves: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Frequencies and phases of so many waves: those of as few nets as have them, the strongest first."""
    some = nets[: -(-n_waves // len(nets[0].frequencies))]
    strength = [(net.weights[: len(net.frequencies)] ** 2).sum(axis=1) for net in some]
    kept = np.argsort(-np.concatenate(strength), kind="stable")[:n_waves]
    frequencies = np.concatenate([net.frequencies for net in some])[kept]
    return frequencies, np.concatenate([net.phases for net in some])[kept]
