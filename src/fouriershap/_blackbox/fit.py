"""From a model and data to a representation with its certificate, by way of the candidates."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import InputError
from fouriershap._base.units import unit_of
from fouriershap._blackbox.bit_code import BitCode, exact_code, interval_code, looks_discrete
from fouriershap._blackbox.candidates import enumeration, swht
from fouriershap._blackbox.candidates.waves import expected_seconds
from fouriershap._blackbox.fidelity import (
    NOTICED,
    Fidelity,
    Interval,
    certify,
    measure,
    noise_of,
    output_r2,
    r_squared,
    warn_if_noisy,
)
from fouriershap._blackbox.hybrid_model import HybridModel, first_rows, row_keys
from fouriershap._blackbox.hybrids import KNOWN_SHARE, draw_hybrids, hybrid_codes
from fouriershap._blackbox.repeats import ask_in_rounds, certify_mean
from fouriershap._blackbox.selection import CHOOSING, STAGES, Candidate, choose, fit_candidates
from fouriershap._blackbox.surrogates import Surrogate
from fouriershap._blackbox.task import CandidateFit, Task, make_folds
from fouriershap._blackbox.transform import Limits, Transform
from fouriershap._fourier.sparse_transform import N_CERTIFICATE
from fouriershap._fourier.spectrum import Spectrum
from fouriershap._rows.levels import Encoding, recode
from fouriershap._rows.pool import Pool
from fouriershap._shapley.engine import Floats

_ROUNDS = 4  # of drawing hybrids, while those drawn are known already
_LEAST_HYBRIDS = 100  # to fit anything
_REPEATED = 20  # rows that are asked twice
_WEIGHED = 20_000  # hybrids that estimate how often each combination of levels occurs
_MOST_HELD_OUT = 2000
COMPILING, CERTIFYING = "compiling the background", "certifying"  # stages of those who fit
TREE_SECONDS = 4e-5  # for an answer, a feature and an output, about
_COMPILE_SECONDS = 0.2
_MOST_CHECKS = 2000  # hybrids that are asked where the sparse transform is exact already


@dataclass(frozen=True, eq=False)
class FitResult:
    """Everything that fitting finds."""

    method: str
    surrogate: Surrogate
    encoding: Encoding
    fidelity: Fidelity
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True, eq=False)
class _Asked:
    """Hybrids ``index`` (n, n_players) with their answers."""

    index: NDArray[np.int32]
    answers: Floats
    noise: float


@dataclass(eq=False)
class Fitter:
    """What fitting works on.

    Attributes
    ----------
    pool : Pool
        Background rows first, then the data rows.
    first_rows, second_rows : int arrays
        Rows of the pool from which the two rows of a hybrid are drawn.
    known_rows : int array
        Rows of the pool that will be explained: a share of the hybrids is between these and the background.
    known_others : int array
        Rows of the background, with which they are mixed.
    reserved : int
        Queries that are left for others, unless the model is asked about every combination of levels.
    """

    model: HybridModel
    pool: Pool
    first_rows: NDArray[np.int64]
    second_rows: NDArray[np.int64]
    encoding: Encoding
    budget: int
    seed: int
    limits: Limits
    n_jobs: int = -1
    known_rows: NDArray[np.int64] = field(default_factory=lambda: np.arange(0))
    known_others: NDArray[np.int64] = field(default_factory=lambda: np.arange(0))
    reserved: int = 0

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        self.pool_codes = self.encoding.encode(self.pool, "data")
        self._result: FitResult | None = None
        self._fits: dict[str, CandidateFit] = {}
        self._choose_now: Callable[[], FitResult]

    def fit(self, method: str) -> FitResult:
        self._result = self._fit(method)
        return self._result

    def _fit(self, method: str) -> FitResult:
        if method == "enumerate":
            return self._fit_all(enumeration.check_fits(self.encoding, self.pool_codes, self.budget))
        if method == "auto" and looks_discrete(self.encoding, self.pool_codes):
            code = exact_code(self.encoding, self.pool_codes)
            if enumeration.fits(code, self.budget):
                return self._fit_all(code)
        self._check_budget()
        self.budget -= self.reserved
        return self._fit_hybrids(method, self._transform(method))

    def _fit_all(self, code: BitCode) -> FitResult:
        begin = time.perf_counter()
        rows, where = enumeration.combinations(code)
        index = code.index(enumeration.all_rows(code)[rows])
        answers = self.model.ask(self.pool, index, self._codes(index))
        unit = unit_of(answers)
        answers, fidelity, n_rounds = self._certify_all(code, index, answers / unit, unit)
        surrogate = enumeration.make_surrogate(code, answers[where]).scaled(unit)
        note = f"all {len(rows):,} combinations of levels" + f", {n_rounds:.3g} answers each" * (n_rounds > 1)
        line = Candidate("enumerate", fidelity.r2, time.perf_counter() - begin, True, note)
        return FitResult("enumerate", surrogate, self.encoding, fidelity, (line,))

    def _certify_all(
        self, code: BitCode, index: NDArray[np.int32], answers: Floats, unit: float
    ) -> tuple[Floats, Fidelity, float]:
        """Return the answers to explain, or, where they are noisy, the means of many, and their certificate."""
        left = self.budget - self.model.count
        rows = np.resize(self.rng.permutation(len(index)), min(_REPEATED, left))
        if not len(rows):  # no query is left to measure noise
            unknown = Interval(1.0, -np.inf, 1.0)
            return answers, Fidelity(*unknown, 0, self.model.count, noise=np.nan, cube=unknown), 1.0

        def ask_again(rows: NDArray[np.int64]) -> Floats:
            return self.model.ask_again(self.pool, index[rows]) / unit

        again = ask_again(rows)
        noise = noise_of(answers[rows], again, answers)
        if noise <= NOTICED:
            whole = Interval(1.0, 1.0, 1.0)
            return answers, Fidelity(*whole, 0, self.model.count, exact=True, noise=noise, cube=whole), 1.0
        warn_if_noisy(noise)
        repeats = ask_in_rounds(ask_again, answers, (rows, again), left - len(rows), self.rng)
        met = enumeration.find_combinations(code, code.bits(self._codes(self._draw(_WEIGHED))))
        weights = np.bincount(met, minlength=len(index)) / len(met)
        fidelity = certify_mean(repeats, weights, noise, self.model.count)
        return repeats.mean, fidelity, float(repeats.count.mean())

    def _transform(self, method: str) -> Transform | None:
        """Return the sparse transform, if it is asked for or promising."""
        if method == "swht":
            code = interval_code(self.encoding, self.pool_codes)
            return swht.transform(self._ask_bits(code), code, self.budget, self.limits, self.seed)
        if method == "auto" and looks_discrete(self.encoding, self.pool_codes):
            code = exact_code(self.encoding, self.pool_codes)
            return swht.probe(self._ask_bits(code), code, self.budget, self.limits, self.seed)
        return None

    def _ask_bits(self, code: BitCode) -> swht.Ask:
        def ask(bits: NDArray[np.uint8]) -> Floats:
            index = code.index(bits)
            return self.model.ask(self.pool, index, self._codes(index))

        return ask

    def _fit_hybrids(self, method: str, transform: Transform | None) -> FitResult:
        asked, transform = self._ask_hybrids(method, transform)
        codes, unit = self._codes(asked.index), unit_of(asked.answers)
        answers = asked.answers / unit
        # A tenth; more of few answers, for a useful certificate.
        n_held_out = min(max(len(codes) // 10, min(100, len(codes) // 5)), _MOST_HELD_OUT)
        train, held_out = np.arange(len(codes))[n_held_out:], np.arange(len(codes))[:n_held_out]
        folds = make_folds(len(train), self.rng)
        output = int(np.argmax(answers.var(axis=0)))
        encoding, changes = self.encoding.reordered(codes[train], answers[train][:, output])
        self.encoding, codes = encoding, recode(codes, changes)
        self.pool_codes = recode(self.pool_codes, changes)
        self.model.remap(lambda known: recode(known, changes))
        task = Task(
            encoding,
            self.pool_codes,
            codes[train],
            answers[train],
            folds,
            self.seed,
            None if transform is None else transform.recoded(changes).in_unit(unit),
            self.n_jobs,
            unit,
            self.model.queries.progress,
        )
        fits: dict[str, CandidateFit] = {}
        held = codes[held_out], answers[held_out]
        self._fits = fits
        self._choose_now = lambda: self._choose(task, method, fits, held, asked.noise)
        self.model.queries.progress.expect(_expected_seconds(task))
        fit_candidates(task, method, fits)
        return self._choose(task, method, fits, held, asked.noise)

    def _choose(
        self,
        task: Task,
        method: str,
        fits: dict[str, CandidateFit],
        held: tuple[Floats, Floats],
        noise: float,
    ) -> FitResult:
        """Choose the best fit, made from all answers, and certify it by those ``held`` back."""
        task.progress.enter(CHOOSING)
        fit, candidates = choose(task, method, fits)
        surrogate = fit.make()
        fidelity = self._certify(task, fit, held[1], surrogate.predict(held[0]))
        if fit.name == "swht" and task.transform is not None:
            fidelity = replace(fidelity, cube=_on_the_cube(task.transform, surrogate, self.rng))
        fidelity = replace(fidelity, noise=noise)
        return FitResult(fit.name, surrogate.scaled(task.unit), task.encoding, fidelity, candidates)

    @property
    def has_fits(self) -> bool:
        """Whether there is something to `finish`."""
        return self._result is not None or bool(self._fits)

    def finish(self) -> FitResult:
        """Return the best of what was fitted before an interruption, without another query."""
        return self._result or self._choose_now()

    def _ask_hybrids(self, method: str, transform: Transform | None) -> tuple[_Asked, Transform | None]:
        """Ask about hybrids that the transform has not seen, if the model is noisy; return them and the transform."""
        repeated = min(_REPEATED, self.budget // 50)
        most = self.budget - repeated
        if transform is not None and transform.is_exact:
            most = min(most, self.model.count + _MOST_CHECKS)
        is_settled = method == "swht" or (transform is not None and transform.is_exact)
        before = self.model.count
        index = self._collect(most, transform if is_settled else None)
        is_new = self.model.count - before >= len(index)
        answers = self.model.ask(self.pool, index, self._codes(index))
        noise = self._noise(index, answers)
        if transform is None or not transform.exhaustive or not noise > NOTICED:
            return _Asked(index, answers, noise), transform
        # A transform of the whole cube repeats the noise of the answers that it saw: others must judge it.
        if not is_new:
            index = self._draw(max((self.budget - self.model.count) * 4 // 5, 1))
            answers = self.model.ask_again(self.pool, index)
        n = min(N_CERTIFICATE, self.budget - self.model.count)
        bits = self.rng.integers(0, 2, (n, transform.code.n_bits), np.uint8)
        fresh = self.model.ask_again(self.pool, transform.code.index(bits))
        return _Asked(index, answers, noise), transform.certified(bits, fresh)

    def _certify(self, task: Task, fit: CandidateFit, answers: Floats, predictions: Floats) -> Fidelity:
        """Certify a fit by held-out answers with their predictions, and by the folds."""
        judged = task.is_judged(fit.predictions)
        interval = certify(
            np.concatenate([answers, task.answers[judged]]),
            np.concatenate([predictions, fit.predictions[judged]]),
            len(answers),
            self.rng,
        )
        by_output = output_r2(answers, predictions)
        return Fidelity(*interval, len(answers), self.model.count, k_fold=fit.r2, by_output=by_output)

    def _check_budget(self) -> None:
        least = max(200, 4 * self.encoding.n_players)
        if self.budget < least:
            raise InputError(
                f"budget is {self.budget} queries, too few for {self.encoding.n_players} "
                f"players; give at least {least}; some thousands are usual."
            )

    def _collect(self, n: int, transform: Transform | None) -> NDArray[np.int32]:
        """Return distinct hybrids in random order, asked until ``n`` queries are spent."""
        index = self._ask_new(n)
        if len(index) < _LEAST_HYBRIDS and transform is not None and transform.exhaustive:
            again = self._draw(_MOST_CHECKS)
            if self.model.is_known(self._codes(again)).all():  # the transform has asked every row there is
                return again
        if len(index) < _LEAST_HYBRIDS:
            raise InputError(
                f"the data give only {len(index)} different hybrids, too few to fit a representation. Give data= "
                "with more rows, or method='enumerate', which asks every combination of levels."
            )
        return index

    def _ask_new(self, n: int) -> NDArray[np.int32]:
        """Return distinct new rows in random order, asked until ``n`` queries are spent in all."""
        kept: list[NDArray[np.int32]] = [np.empty((0, self.encoding.n_players), dtype=np.int32)]
        share = KNOWN_SHARE
        for _ in range(_ROUNDS):
            if self.model.count >= n:
                break
            index = self._draw(n - self.model.count, share)
            codes = self._codes(index)
            fresh = np.array(first_rows(row_keys(codes)))
            fresh = fresh[~self.model.is_known(codes[fresh])]
            self.model.ask(self.pool, index[fresh], codes[fresh])
            kept.append(index[fresh])
            if len(fresh) < len(index) / 2:
                share = 0.0  # hybrids of few known rows are soon all asked
        return self.rng.permutation(np.concatenate(kept), axis=0)

    def _noise(self, index: NDArray[np.int32], answers: Floats) -> float:
        n = min(_REPEATED, len(index), max(self.budget // 50, 1), self.budget - self.model.count)
        if n < 1:
            return np.nan  # no query is left to look for noise
        noise = noise_of(answers[:n], self.model.ask_again(self.pool, index[:n]), answers)
        warn_if_noisy(noise)
        return noise

    def _draw(self, n: int, known_share: float = KNOWN_SHARE) -> NDArray[np.int32]:
        n_known = self.rng.binomial(n, known_share) if len(self.known_rows) else 0
        sources = self.first_rows, self.second_rows
        index = draw_hybrids(n - n_known, self.encoding.n_players, *sources, self.rng)
        if not n_known:
            return index
        sources = self.known_rows, self.known_others
        known = draw_hybrids(n_known, self.encoding.n_players, *sources, self.rng)
        return self.rng.permutation(np.concatenate([index, known]), axis=0)

    def _codes(self, index: NDArray[np.int32]) -> Floats:
        return hybrid_codes(self.pool_codes, self.encoding.player, index)


def _expected_seconds(task: Task) -> dict[str, float]:
    """Estimate the seconds of the stages after the queries, on one thread."""
    n_answers, n_features = task.codes.shape
    trees = TREE_SECONDS * n_answers * n_features * task.n_outputs
    return {
        STAGES["waves"]: expected_seconds(n_answers, n_features),
        STAGES["trees"]: trees,
        CHOOSING: 0.0,
        COMPILING: _COMPILE_SECONDS,
        CERTIFYING: 0.0,
    }


def _on_the_cube(transform: Transform, surrogate: Surrogate, rng: np.random.Generator) -> Interval | None:
    """Return R^2 at uniform points: all of them, or those of the transform's certificate; None if it has none."""
    if not len(transform.points):
        return None
    spectrum = surrogate.representation
    assert isinstance(spectrum, Spectrum)
    predictions = spectrum(transform.points).reshape(transform.answers.shape)
    if transform.exhaustive:
        r2 = r_squared(transform.answers, predictions)
        return Interval(r2, r2, r2)
    return measure(transform.answers, predictions, rng)
