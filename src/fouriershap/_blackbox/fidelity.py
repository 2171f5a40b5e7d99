"""The certificate: how much of the model a representation explains, on rows that it has never seen."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.errors import FidelityWarning, NoiseWarning
from fouriershap._base.headers import from_json
from fouriershap._base.short import short
from fouriershap._base.warn import warn
from fouriershap._blackbox.task import r_squared

Floats = NDArray[np.float64]
N_RESAMPLES = 1000


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
        R^2 on hybrids that took no part in fitting or choosing, pooled over outputs; 1 if every row that can
        be made was asked.
    low, high : float
        A 95 % bootstrap interval.
    n_points : int
        Hybrids held out.
    n_queries : int
        Rows that the model was asked in all.
    exact : bool
        Whether every combination of levels was asked.
    noise : float
        Spread of a repeated answer, as a share of the spread of all answers.
    k_fold : float
        R^2 of the chosen candidate by K folds of the answers that it was fitted to. More points than were held
        out: where answers have a heavy tail, it may see what the held-out ones missed.
    cube : Interval, optional
        The same on uniform points of the cube, each level of each player as likely as the next: methods "exact"
        and "swht". It says nothing about SHAP values; it is what the literature on spectra reports.
    by_output : tuple of float
        ``r2`` of each output where there are several: pooled, an output of small spread hardly counts.
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

    def __float__(self) -> float:
        return self.r2

    def to_header(self) -> dict[str, Any]:
        """For a file."""
        return asdict(self)

    @classmethod
    def from_header(cls, header: dict[str, Any]) -> Fidelity:
        """The inverse of `to_header`."""
        found: Fidelity = from_json(cls, header, "fidelity")
        return found


def measure(answers: Floats, predictions: Floats, rng: np.random.Generator) -> tuple[float, float, float]:
    """R^2 and the ends of its interval, from held-out answers and predictions (n, n_outputs)."""
    r2 = r_squared(answers, predictions)
    low, high = bootstrap_interval(answers, predictions, rng)
    return r2, min(low, r2), max(high, r2)


def output_r2(answers: Floats, predictions: Floats) -> tuple[float, ...]:
    """R^2 of each output, where there are several."""
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
    """The wider, end by end, of a bootstrap-t and a percentile interval of R^2.

    Both on the scale of log(1 - R^2), where its law is least skewed. Errors of surrogates have heavy tails:
    either interval alone is at times too narrow. Where the errors have no fourth moment (Student's t with 3
    degrees of freedom), about 88 of 100 intervals cover, not 95.
    """
    n = len(answers)
    error = ((answers - predictions) ** 2).sum(axis=1)
    centred = answers - answers.mean(axis=0)
    spread = (centred**2).sum(axis=1)
    if n < 3 or spread.sum() == 0 or error.sum() == 0:
        r2 = r_squared(answers, predictions)
        return r2, r2
    center, scale = _log_ratio(np.ones((1, n)), error, centred)
    counts = rng.multinomial(n, np.full(n, 1 / n), size=n_resamples).astype(np.float64)
    resampled, scales = _log_ratio(counts, error, centred)
    usable = np.isfinite(resampled) & (scales > 0)
    t = (resampled[usable] - center) / scales[usable]
    if not len(t):
        r2 = r_squared(answers, predictions)
        return r2, r2
    tails = [(1 - level) / 2, (1 + level) / 2]
    below, above = np.quantile(t, tails)
    least, most = np.quantile(resampled[usable], tails)
    middle, unit = float(center[0]), float(scale[0])
    # With few points or one huge error, t has no upper end worth the name: twice the percentiles' reach at most.
    worst = max(min(middle - below * unit, 2 * most - middle), most)
    best = min(max(middle - above * unit, 2 * least - middle), least)
    return 1 - float(np.exp(worst)), 1 - float(np.exp(best))


def _log_ratio(counts: Floats, error: Floats, centred: Floats) -> tuple[Floats, Floats]:
    """log(1 - R^2) and its standard error for resamples given by how often each point occurs."""
    n = counts.sum(axis=1)
    mean_error = counts @ error / n
    mean_square = counts @ (centred**2).sum(axis=1) / n
    mean_spread = mean_square - ((counts @ centred / n[:, None]) ** 2).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.log(mean_error) - np.log(mean_spread)
        # First-order influence of a point: error_i / mean error - spread_i / mean spread.
        a, b = 1 / mean_error, 1 / mean_spread
        spread = (centred**2).sum(axis=1)
        second = a**2 * (counts @ error**2) - 2 * a * b * (counts @ (error * spread))
        second += b**2 * (counts @ spread**2)
        mean = a * (counts @ error) - b * (counts @ spread)
        variance = np.maximum(second / n - (mean / n) ** 2, 0.0) / n
    return value, np.sqrt(variance)


def warn_if_low(fidelity: Fidelity, minimum: float, method: str) -> None:
    """Say so where the certificate, or the K folds, are below what was asked for."""
    if min(fidelity.r2, fidelity.k_fold, *fidelity.by_output) >= minimum:
        return
    outputs = ""
    if fidelity.by_output:
        worst = int(np.argmin(fidelity.by_output))
        outputs = f" ({fidelity.by_output[worst]:.3f} of that of output {worst})"
    warn(
        f"the representation (method {short(method)}) explains {fidelity.r2:.3f} of the model's variance{outputs} on "
        f"{fidelity.n_points} held-out hybrids (95 % interval {fidelity.low:.3f} to {fidelity.high:.3f}), and "
        f"{fidelity.k_fold:.3f} by K folds, less than min_fidelity = {minimum}. Ways out: a larger budget= "
        f"(now {fidelity.n_queries:,} queries), more rows in data=, one-hot columns declared by "
        "groups=, labels declared by categorical=, or shap_values(X, refine=...) for the rows that matter.",
        FidelityWarning,
    )


def check_noise(answers: Floats, again: Floats, spread: float) -> float:
    """Spread of repeated answers as a share of the spread of all; warns where it is more than rounding."""
    if not len(answers) or spread == 0:
        difference = float(np.abs(answers - again).max(initial=0.0))
        return float(np.inf) if difference > 1e-9 * (1 + float(np.abs(answers).max(initial=0.0))) else 0.0
    noise = float(np.sqrt(((answers - again) ** 2).mean() / 2)) / spread
    if noise <= 1e-4:  # single precision in batches of another size
        return noise
    warn(
        f"the model answers the same row differently: repeated answers spread by {noise:.2g} of the spread of "
        "all answers. The values explain its mean answer; fidelity cannot rise above the noise. Fix the "
        "model's random state (dropout off, evaluation mode) if it should not be random.",
        NoiseWarning,
    )
    return noise
