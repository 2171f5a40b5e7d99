"""Candidate "waves": sums of cosines fitted without each fold; one sum is fitted to their predictions."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.parallel import for_each_block
from fouriershap._base.threads import one_blas_thread
from fouriershap._blackbox.candidates.wave_answers import WaveTargets, prepare
from fouriershap._blackbox.fidelity import r_squared
from fouriershap._blackbox.surrogates import WaveSurrogate
from fouriershap._blackbox.task import N_FOLDS, CandidateFit, Task
from fouriershap._shapley.engine import Floats
from fouriershap._waves.training import Fitted, Settings, fit_waves

FEW, MANY = 64, 256  # waves; many are tried where answers are, too
ROUNDS = 2  # fits without each fold where answers and waves are few; else one
DOUBTFUL = 0.1  # share of the variance: where less is hopeless, few waves are tried before many
WORTH_MANY = 0.85  # of what few waves miss: many must miss less
WORTH_LOGITS = 0.9  # of what waves miss: waves of logits must miss less
STUDENT, MOST_STUDENT, FEW_PLAYERS = 128, 256, 25  # waves of the student, and the most, where players are few
STUDENT_EPOCHS, STUDENT_RATE = 10, 1e-2  # it begins with the waves of its teachers
FEW_LABELS = 20_000  # up to which it learns twice as long
GOOD_ENOUGH, ALWAYS_GOOD = (
    0.05,
    2e-4,
)  # what the student may miss, as a share of what its teachers do, and at least
COMPRESSED, LEAST_COMPRESSED = (
    0.1,
    8e-4,
)  # likewise what a compressed background may miss, and what it always may
FREE, MOST_FREE, N_CHECK = 16, 40_000, 2_000  # hybrids that teachers label: per answer, at most; to check
MANY_FREE, MOST_CELLS = 200_000, 20_000_000  # by many logits, and numbers that these hybrids may be
MANY_FREE_EPOCHS = 7
_MOST_DRAWN = MOST_FREE + N_CHECK  # hybrids at a time
_LEAST = 1e-6  # misses below it are rounding
_FEW_ANSWERS, _MANY_ANSWERS = 3_000, 10_000
_PER_SECOND = 8e9  # multiplications, about


@dataclass(frozen=True, eq=False)
class _Teachers:
    """Waves of several fits.

    Attributes
    ----------
    answers : WaveTargets
        That they are fitted to.
    nets : list of Fitted
    start : list of Fitted
        Nets with whose waves a student begins.
    """

    answers: WaveTargets
    nets: list[Fitted]
    start: list[Fitted]

    @property
    def has_many(self) -> bool:
        """Whether the answers are many."""
        return len(self.answers.inputs) >= _MANY_ANSWERS

    def predict(self, inputs: NDArray[np.float32]) -> Floats:
        """Return outputs (n_rows, n_outputs) of mean 0 and spread 1."""
        return self.answers.mean(self.nets, inputs)


def fit_waves_candidate(task: Task, hopeless: float = np.inf) -> CandidateFit:
    """Fit waves to all outputs together; stop after one fit if that misses more than is ``hopeless``."""
    begin = time.perf_counter()
    with one_blas_thread():
        answers, nets, plain = _fit_folds(task, prepare(task), hopeless)
        predictions = np.full(task.answers.shape, np.nan)
        for k in range(min(N_FOLDS, len(nets))):
            inside = task.fold == k
            said = answers.mean(nets[k::N_FOLDS], answers.inputs[inside])
            predictions[inside] = answers.outputs.back(said)
        # What is good for logits need not be for probabilities: a student begins with waves of both.
        teachers = _Teachers(answers, nets, [plain, *nets] if answers.linked else nets)
    r2 = task.judge(predictions)
    note = f"{len(nets[0].frequencies)} waves on {answers.columns.n_columns} columns"
    if answers.linked:
        note += ", of logits"
    make = partial(_distil, task, teachers, max(1 - r2, _LEAST))
    fit = CandidateFit("waves", r2, predictions, make, time.perf_counter() - begin, note)
    if answers.linked and len(nets) > 1:
        return replace(fit, taught=partial(_taught, task, teachers, fit))
    return fit


def _taught(task: Task, teachers: _Teachers, fit: CandidateFit) -> CandidateFit:
    """Judge what will be explained: a sum of waves cannot repeat a sigmoid of waves exactly."""
    begin, missed = time.perf_counter(), max(1 - fit.r2, _LEAST)
    student = _teach(task, teachers, missed)
    predictions = fit.predictions + student.strayed * teachers.answers.outputs.scale
    make = partial(student.surrogate, teachers.answers, missed)
    seconds = fit.seconds + time.perf_counter() - begin
    return CandidateFit("waves", task.judge(predictions), predictions, make, seconds, fit.note)


def expected_seconds(n_answers: int, n_columns: int) -> tuple[float, float]:
    """Estimate the seconds for fitting the folds and for teaching the student, on one thread."""
    n = n_answers * (N_FOLDS - 1) // N_FOLDS
    sizes = [FEW] * (_rounds(n, FEW) * N_FOLDS) + [MANY] * (n >= _MANY_ANSWERS)
    folds = sum(_settings(n, n_waves).work(n, n_columns) for n_waves in sizes)
    n_labels = min(FREE * n_answers, MOST_FREE)
    return folds / _PER_SECOND, _student_settings(STUDENT, n_labels).work(n_labels, n_columns) / _PER_SECOND


def _rounds(n_answers: int, n_waves: int) -> int:
    return ROUNDS if n_waves == FEW and n_answers < _FEW_ANSWERS else 1


def _student_settings(n_waves: int, n_labels: int) -> Settings:
    n_epochs = STUDENT_EPOCHS * (1 + (n_labels < FEW_LABELS))
    return Settings(n_waves, 256, n_epochs if n_labels < MANY_FREE else MANY_FREE_EPOCHS, STUDENT_RATE)


def _student_sizes(teachers: _Teachers, n_players: int) -> list[int]:
    """Return numbers of waves to try for the student; a row costs waves times players."""
    linked = teachers.answers.linked
    if (len(teachers.nets[0].frequencies) == FEW and not linked) or n_players > FEW_PLAYERS:
        return [FEW, STUDENT]
    if linked and teachers.has_many:
        return [MOST_STUDENT]
    return [STUDENT, MOST_STUDENT]


def _n_free(teachers: _Teachers) -> int:
    """Return the number of hybrids that the student learns from: more where they are what limits it."""
    n_answers, n_columns = teachers.answers.inputs.shape
    most = MOST_FREE
    if teachers.answers.linked and teachers.has_many:
        most = max(min(MANY_FREE, MOST_CELLS // n_columns), MOST_FREE)
    return int(min(FREE * n_answers, most))


def _settings(n_answers: int, n_waves: int) -> Settings:
    n_batch = 64 if n_answers < _MANY_ANSWERS else 256
    n_epochs = 150 if n_answers < _FEW_ANSWERS else 50 if n_answers < _MANY_ANSWERS or n_waves > FEW else 90
    return Settings(n_waves, n_batch, n_epochs)


def _fit_folds(task: Task, answers: WaveTargets, hopeless: float) -> tuple[WaveTargets, list[Fitted], Fitted]:
    """Fit waves without each fold, in turn; the first fits decide the targets and the number of waves.

    Then, beside them, the first fit of outputs.
    """
    n_inside, n_columns = int((task.fold != 0).sum()), answers.columns.n_columns
    work = {n_waves: _settings(n_inside, n_waves).work(n_inside, n_columns) for n_waves in (FEW, MANY)}
    rounds = {n_waves: _rounds(n_inside, n_waves) for n_waves in (FEW, MANY)}
    sizes = (FEW, MANY) if n_inside >= _MANY_ANSWERS else (FEW,)
    ways = [answers]
    if answers.logits is not None and n_inside >= _FEW_ANSWERS:
        ways.append(replace(answers, linked=True))
    trying = (len(ways) - 1) * work[FEW] + sum(work[size] for size in sizes)
    progress = task.progress
    progress.start((rounds[FEW] * N_FOLDS - 1) * work[FEW] + trying)

    def fit(which: int, n_waves: int, way: WaveTargets) -> Fitted:
        inside, outside = task.fold != which % N_FOLDS, task.fold == which % N_FOLDS
        rng = np.random.default_rng([task.seed, which, n_waves])
        judges = way.inputs[outside], way.targets[outside]
        settings = _settings(int(inside.sum()), n_waves)
        some = way.inputs[inside], way.targets[inside]
        return fit_waves(*some, settings, rng, judges, tick=progress.tick)

    first: dict[tuple[int, bool], Fitted] = {}
    together: dict[tuple[int, bool], float] = {}  # missed of all outputs, as candidates are compared
    outside = task.fold == 0

    def try_fits(fits: list[tuple[int, WaveTargets]]) -> dict[tuple[int, bool], float]:
        """Return what each of these numbers of waves, fitted to these targets, misses; every output counts alike."""

        def work_on(begin: int, end: int) -> None:
            first.update(((n, way.linked), fit(0, n, way)) for n, way in fits[begin:end])

        for_each_block(work_on, len(fits), 1, task.n_jobs, progress.stop)
        inputs, outputs = answers.inputs[outside], answers.outputs
        said = {(n, way.linked): way.mean([first[n, way.linked]], inputs) for n, way in fits}
        for which, each in said.items():
            together[which] = 1 - r_squared(task.answers[outside], outputs.back(each))
        return {which: 1 - r_squared(outputs.values[outside], each) for which, each in said.items()}

    at_once = sizes[:1] if hopeless < DOUBTFUL or len(ways) > 1 else sizes
    missed = try_fits([(size, way) for way in ways for size in at_once])
    if missed.get((FEW, True), np.inf) < WORTH_LOGITS * missed[FEW, False]:
        answers = ways[1]
    linked = answers.linked
    if together[FEW, linked] > hopeless and hopeless < DOUBTFUL:
        return answers, [first[FEW, linked]], first[FEW, False]
    missed |= try_fits([(size, answers) for size in sizes if (size, linked) not in missed])
    n_waves = MANY if missed.get((MANY, linked), np.inf) < WORTH_MANY * missed[FEW, linked] else FEW
    nets = {0: first[n_waves, linked]}
    n_nets = N_FOLDS * rounds[n_waves] if together[n_waves, linked] <= hopeless else 1
    progress.adjust(trying + (n_nets - 1) * work[n_waves])

    def fit_some(begin: int, end: int) -> None:
        nets.update((which, fit(which, n_waves, answers)) for which in range(begin + 1, end + 1))

    for_each_block(fit_some, n_nets - 1, 1, task.n_jobs, progress.stop)
    return answers, [nets[which] for which in range(n_nets)], first[FEW, False]


@dataclass(frozen=True, eq=False)
class _Student:
    """One sum of waves, taught by others.

    Attributes
    ----------
    waves : Fitted
    untaught : float
        The share of its teachers' variance that it misses, on hybrids that took no part.
    strayed : (n_answers, n_outputs) float64
        Its predictions minus theirs at the rows that were answered, in the unit of the scaled outputs.
    """

    waves: Fitted
    untaught: float
    strayed: Floats

    def surrogate(self, answers: WaveTargets, missed: float) -> WaveSurrogate:
        """Return the surrogate; its background may be compressed by a share of what it and its teachers miss."""
        return answers.surrogate(self.waves, max(COMPRESSED * (missed + self.untaught), LEAST_COMPRESSED))


def _distil(task: Task, teachers: _Teachers, missed: float) -> WaveSurrogate:
    return _teach(task, teachers, missed).surrogate(teachers.answers, missed)


def _teach(task: Task, teachers: _Teachers, missed: float) -> _Student:
    """Fit one sum of waves to its teachers' predictions of many hybrids, which cost no query."""
    answers = teachers.answers
    with one_blas_thread():
        n_free = _n_free(teachers)
        free = [answers.columns.design(task.draw(n)) for n in _parts(n_free + N_CHECK)]
        inputs = np.concatenate([*free, answers.inputs])
        labels = teachers.predict(inputs)
        check, train = slice(N_CHECK), slice(N_CHECK, None)
        judges = inputs[check], labels[check]
        for n_waves in _student_sizes(teachers, task.encoding.n_players):
            settings = _student_settings(n_waves, n_free)
            task.progress.start(settings.work(len(inputs) - N_CHECK, inputs.shape[1]))
            rng = np.random.default_rng([task.seed, N_FOLDS, n_waves])
            start = _join(teachers.start, n_waves)
            student = fit_waves(
                inputs[train], labels[train], settings, rng, judges, start, task.progress.tick
            )
            untaught = 1 - r_squared(labels[check], student.predict(judges[0]))
            if untaught < max(GOOD_ENOUGH * missed, ALWAYS_GOOD):
                break
        strayed = student.predict(answers.inputs) - labels[-len(answers.inputs) :]
        return _Student(student, untaught, strayed)


def _parts(n: int) -> list[int]:
    """Return sizes of parts in which hybrids are drawn: drawing takes several times the memory of the result."""
    return [min(_MOST_DRAWN, n - begin) for begin in range(0, n, _MOST_DRAWN)]


def _join(nets: list[Fitted], n_waves: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return frequencies and phases of at most so many waves, the strongest of as few nets as have them."""
    some = nets[: -(-n_waves // len(nets[0].frequencies))]
    strength = [(net.weights[: len(net.frequencies)] ** 2).sum(axis=1) for net in some]
    kept = np.argsort(-np.concatenate(strength), kind="stable")[:n_waves]
    frequencies = np.concatenate([net.frequencies for net in some])[kept]
    return frequencies, np.concatenate([net.phases for net in some])[kept]
