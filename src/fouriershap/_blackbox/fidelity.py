"""The certificate: R^2 of a representation on rows that it has never seen, and the noise of the model."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import FidelityWarning, NoiseWarning
from fouriershap._base.messages import truncated_repr
from fouriershap._base.units import unit_of
from fouriershap._base.warn import warn

Floats = NDArray[np.float64]
N_RESAMPLES = 1000
MOST_GROUPS = 2000  # of points that are resampled as one: memory and time are those of the resamples
NOTICED = 1e-4  # noise, as a share of the spread of all answers; less is single precision in other batches
_ROUNDINGS = 32.0  # that answers may differ by, in units of their last digit
LEAST = 0.95  # R^2 below which a warning is emitted
UNSEEN = 3.0  # an event that n answers do not show is, at 95 %, no more likely than 3 / n


class Interval(NamedTuple):
    """An R^2 with the ends of its 95 % interval."""

    r2: float
    low: float
    high: float


@dataclass(frozen=True)
class Fidelity:
    """How faithful a representation is.

    Attributes
    ----------
    r2 : float
        R^2 on hybrids that took no part in fitting or choosing, pooled over outputs. Where every row that can be made
        was asked: 1, or, if the model is noisy, that of the mean of repeated answers against the model's own mean.
    low, high : float
        A 95 % interval of it, from the held-out hybrids and from the folds; ``low`` is never above ``k_fold``. Of 100
        fits to 300, 580 or 2,000 answers it held the R^2 of a huge sample in 97 or more, with light and with heavy
        tails (Student's t with 3 degrees of freedom, lognormal errors or answers). What no answer has shown it cannot
        know: with a spike in one row of 100 to 1,000 it held in 331 of the 338 fits that saw a single one, and in
        hardly any other.
    n_points : int
        Hybrids held out; 0 where every combination of levels was asked.
    n_queries : int
        Rows that the model was asked in all.
    exact : bool
        Whether every combination of levels was asked, of a model that repeats its answers.
    noise : float
        Spread of a repeated answer, as a share of the spread of all answers, of the output where that is largest;
        NaN where no query was left to repeat one.
    k_fold : float
        R^2 of the chosen candidate by K folds of the answers that it was fitted to. More points than were held
        out: where answers have a heavy tail, it may see what the held-out ones missed.
    cube : Interval, optional
        The same on uniform points of the cube, each level of each player as likely as the next: methods
        "enumerate" and "swht". It says nothing about SHAP values; it is what the literature on spectra reports.
    by_output : tuple of float
        ``r2`` of each output where there are several: pooled, an output of small spread hardly counts.
    background : float
        What is missed of the SHAP values since a few products of marginals stand for the background (waves only): a
        share of their square sum, measured at rows of the background. 0 where every row counts.
    shap : Interval, optional
        R^2 of the SHAP values themselves against the model's own, at rows that took no part in the fit, estimated
        without bias, with a 95 % interval. ``r2`` is that of the function: where the two differ, this one is about the
        values. An estimate may be above 1 by chance. None if every combination of levels was asked, with fewer than
        ten rows to hold some out of, and against another background than that of the fit. Misses that are rarer than
        these rows show are not in the interval.
    judged_on : str
        Which rows these were.
    """

    r2: float
    low: float
    high: float
    n_points: int
    n_queries: int
    exact: bool = False
    noise: float = 0.0
    k_fold: float = 1.0
    cube: Interval | None = None
    by_output: tuple[float, ...] = ()
    background: float = 0.0
    shap: Interval | None = None
    judged_on: str = ""

    def __float__(self) -> float:
        return self.r2


def r_squared(answers: Floats, predictions: Floats) -> float:
    """Return R^2 (n, n_outputs) pooled over outputs; 1 where there is nothing to explain and nothing is missed."""
    unit = unit_of(answers)
    with np.errstate(over="ignore"):  # predictions may be absurd
        error = float(((answers / unit - predictions / unit) ** 2).sum())
    if is_constant(answers):
        return 1.0 if error <= 1e-20 * float(((answers / unit) ** 2).sum()) else 0.0
    spread = answers / unit - (answers / unit).mean(axis=0)
    return 1.0 - error / float((spread**2).sum())


def is_constant(answers: Floats) -> bool:
    """Return whether answers (n, n_outputs) differ by rounding alone."""
    scaled = answers / unit_of(answers)
    spread = float(((scaled - scaled.mean(axis=0)) ** 2).sum())
    return spread <= 1e-24 * float((scaled**2).sum())


def measure(answers: Floats, predictions: Floats, rng: np.random.Generator) -> Interval:
    """Return R^2 with its interval, from answers and predictions (n, n_outputs) that did not see them.

    That of `bootstrap_interval`, or, end by end, what these answers cannot rule out, if that is wider: events so rare
    that none of n answers shows one have a chance of up to 3 / n (at 95 %). They are taken to be as bad as the worst
    error that was seen, or, for the upper end, as far from the mean as the answer farthest out.
    """
    r2 = r_squared(answers, predictions)
    low, high = bootstrap_interval(answers, predictions, rng)
    if not is_constant(answers):
        error, centred = _in_one_unit(answers, predictions)
        error, spread = (error**2).sum(axis=1), (centred**2).sum(axis=1)
        low = min(low, r2 - UNSEEN * float(error.max() / spread.sum()))
        high = max(high, 1 - (1 - r2) / (1 + UNSEEN * float(spread.max() / spread.sum())))
    return Interval(r2, min(low, r2), max(high, r2))


def certify(answers: Floats, predictions: Floats, n_held_out: int, rng: np.random.Generator) -> Interval:
    """Return R^2 of a representation on held-out answers, with an interval that uses the K folds, too.

    Answers (n, n_outputs) are the held-out ones, with the predictions of the representation; then those of the
    folds, each with the prediction of a fit to four fifths of the rest, which has not seen its fold. Few are held
    out, many are in the folds: what is rare or has a heavy tail shows there first. So the interval is the wider, end
    by end, of that of the held-out answers and that of all, and it never leaves out the R^2 of the folds where that
    is lower.
    """
    held_out, folds = slice(n_held_out), slice(n_held_out, None)
    r2 = r_squared(answers[held_out], predictions[held_out])
    low, high = bootstrap_interval(answers[held_out], predictions[held_out], rng)
    every = measure(answers, predictions, rng)
    k_fold = r_squared(answers[folds], predictions[folds])
    return Interval(r2, min(low, every.low, r2, k_fold), max(high, every.high, r2))


def output_r2(answers: Floats, predictions: Floats) -> tuple[float, ...]:
    """Return R^2 of each output, where there are several."""
    if answers.shape[1] == 1:
        return ()
    return tuple(r_squared(a[:, None], p[:, None]) for a, p in zip(answers.T, predictions.T, strict=True))


def bootstrap_interval(
    answers: Floats,
    predictions: Floats,
    rng: np.random.Generator,
    level: float = 0.95,
    n_resamples: int = N_RESAMPLES,
) -> tuple[float, float]:
    """Return the wider, end by end, of a bootstrap-t and a percentile interval of R^2.

    Both on the scale of log(1 - R^2), where its law is least skewed. Errors of surrogates have heavy tails:
    either interval alone is at times too narrow, and so is this one where few points have most of the error: of
    100 fits, 76 to 92 held the truth with heavy tails. `measure` and `certify` widen it by what it cannot see.
    """
    if len(answers) < 3:
        return -np.inf, 1.0
    r2 = r_squared(answers, predictions)
    if is_constant(answers):
        return r2, r2
    sums = _Sums.make(answers, predictions)
    n = len(sums.size)
    center, scale = sums.log_ratio(np.ones((1, n)))
    counts = rng.multinomial(n, np.full(n, 1 / n), size=n_resamples).astype(np.float64)
    resampled, scales = sums.log_ratio(counts)
    usable = np.isfinite(resampled) & (scales > 0)
    if not np.isfinite(center[0]) or not usable.any():  # nothing is missed
        return r2, r2
    t = (resampled[usable] - center) / scales[usable]
    tails = [(1 - level) / 2, (1 + level) / 2]
    below, above = np.quantile(t, tails)
    least, most = np.quantile(resampled[usable], tails)
    middle, unit = float(center[0]), float(scale[0])
    # With few points or one huge error, t has no upper end worth the name: twice the percentiles' reach at most.
    worst = max(min(middle - below * unit, 2 * most - middle), most)
    best = min(max(middle - above * unit, 2 * least - middle), least)
    return 1 - float(np.exp(worst)), 1 - float(np.exp(best))


@dataclass(frozen=True, eq=False)
class _Sums:
    """Points in groups that are resampled as one: single points, or, of many, as many as `MOST_GROUPS` groups need."""

    size: Floats  # (n_groups,) number of points
    error: Floats  # (n_groups,) sum of squared errors
    square: Floats  # (n_groups,) sum of squared distances from the mean
    centred: Floats  # (n_groups, n_outputs) sum of the distances themselves

    @classmethod
    def make(cls, answers: Floats, predictions: Floats) -> _Sums:
        error, centred = _in_one_unit(answers, predictions)
        starts = np.arange(0, len(answers), -(-len(answers) // MOST_GROUPS))
        parts = np.ones(len(answers)), (error**2).sum(axis=1), (centred**2).sum(axis=1), centred
        return cls(*(np.add.reduceat(part, starts, axis=0) for part in parts))

    def log_ratio(self, counts: Floats) -> tuple[Floats, Floats]:
        """Return log(1 - R^2) and its standard error for resamples given by how often each group occurs."""
        n = counts @ self.size
        error = counts @ self.error
        spread = counts @ self.square - ((counts @ self.centred) ** 2).sum(axis=1) / n
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.log(error) - np.log(spread)
            # First-order influence of a group: its share of all error less its share of all spread.
            a, b = 1 / error, 1 / spread
            variance = a**2 * (counts @ self.error**2) - 2 * a * b * (counts @ (self.error * self.square))
            variance += b**2 * (counts @ self.square**2)
        return value, np.sqrt(np.maximum(variance, 0.0))


def _in_one_unit(answers: Floats, predictions: Floats) -> tuple[Floats, Floats]:
    """Return errors and distances from the mean, (n, n_outputs) each, in a unit in which fourth powers are safe."""
    unit = unit_of(answers)
    error, centred = answers / unit - predictions / unit, answers / unit
    centred -= centred.mean(axis=0)
    unit = unit_of(centred)
    return error / unit, centred / unit


def warn_if_low(fidelity: Fidelity, method: str, of: str = "", ways_out: str | None = None) -> None:
    """Warn if the fidelity is below `LEAST`, or may be; ``of`` names what was fitted."""
    judged = (fidelity.low, *fidelity.by_output)
    if fidelity.shap is not None:  # which is about the values
        judged = (fidelity.shap.r2,)
    if min(judged) >= LEAST:
        return
    text, usual = _of_repeats(fidelity) if fidelity.n_points == 0 else _of_hybrids(fidelity)
    warn(
        f"{of}the representation (method {truncated_repr(method)}) {text}: less than {LEAST} cannot be ruled out. "
        f"Ways out: {ways_out or usual}.",
        FidelityWarning,
    )


_LIVE = ", or leave out fit(): then the model is asked about each row, and every value has an error"


def _of_hybrids(fidelity: Fidelity) -> tuple[str, str]:
    shap = fidelity.shap
    values = (
        ""
        if shap is None
        else f"has SHAP values of R^2 {shap.r2:.3f} ({shap.low:.3f} to {shap.high:.3f}) at {fidelity.judged_on}; it "
    )
    text = values + (
        f"explains {fidelity.r2:.3f} of the model's variance{_worst_output(fidelity)} on {fidelity.n_points} held-out "
        f"hybrids, and {fidelity.k_fold:.3f} by K folds (95 % interval {fidelity.low:.3f} to {fidelity.high:.3f})"
    )
    ways_out = (
        f"a larger budget= (now {fidelity.n_queries:,} queries), more rows in data=, one-hot columns declared by "
        "groups=, labels declared by categorical="
    )
    return text, ways_out + _LIVE


def _of_repeats(fidelity: Fidelity) -> tuple[str, str]:
    """Describe a model that was asked about every combination of levels, but may be noisy."""
    budget = f"a larger budget= (now {fidelity.n_queries:,} queries)"
    if np.isnan(fidelity.noise):
        text = "holds one answer to every combination of levels, and none was left to see whether the model is noisy"
        return text, f"{budget}, a few more than there are combinations{_LIVE}"
    text = (
        f"explains {fidelity.r2:.3f} of the variance of the model's mean answer{_worst_output(fidelity)} by repeated "
        f"answers (95 % interval {fidelity.low:.3f} to {fidelity.high:.3f})"
    )
    return text, f"{budget}, which repeats more; method='trees', which averages over similar rows{_LIVE}"


def _worst_output(fidelity: Fidelity) -> str:
    if not fidelity.by_output:
        return ""
    worst = int(np.argmin(fidelity.by_output))
    return f" ({fidelity.by_output[worst]:.3f} of that of output {worst})"


def noise_of(answers: Floats, again: Floats, every: Floats) -> float:
    """Return the spread of a repeated answer as a share of the spread of all, of the output where that is largest.

    Answers (n_repeated, n_outputs) to the same rows, the answers ``again``, and ``every`` answer (n, n_outputs).
    """
    if not len(answers):
        return 0.0
    worst = 0.0
    for first, second, column in zip(answers.T, again.T, every.T, strict=True):
        unit = unit_of(column)
        scaled = column / unit
        noise = math.sqrt(float(((first / unit - second / unit) ** 2).mean()) / 2)
        # Answers in single precision carry that rounding, whatever they are converted to.
        is_single = np.array_equal(scaled, scaled.astype(np.float32))
        rounding = _ROUNDINGS * float(np.finfo(np.float32 if is_single else np.float64).eps)
        if noise > rounding:
            spread = float(scaled.std())
            worst = max(worst, noise / spread if spread > 0 else math.inf)
    return worst


def warn_if_noisy(noise: float) -> None:
    """Warn if repeated answers differ by more than rounding."""
    if noise > NOTICED:
        warn(
            f"the model answers the same row differently: repeated answers spread by {noise:.2g} of the spread of "
            "all answers. The values explain its mean answer, and the noise lowers fidelity. Fix the model's random "
            "state (dropout off, evaluation mode) if it should not be random.",
            NoiseWarning,
        )
