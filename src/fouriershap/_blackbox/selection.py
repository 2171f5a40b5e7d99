"""Choosing a candidate by evidence, and the table that shows it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fouriershap._blackbox.candidates.swht import fit_swht
from fouriershap._blackbox.candidates.trees import fit_trees, missed_at_a_look
from fouriershap._blackbox.candidates.waves import fit_waves_candidate
from fouriershap._blackbox.fidelity import r_squared
from fouriershap._blackbox.surrogates import SumSurrogate
from fouriershap._blackbox.task import CandidateFit, Task
from fouriershap._blackbox.transform import EXACT

CANDIDATES: dict[str, Callable[[Task], CandidateFit]] = {
    "swht": fit_swht,
    "waves": fit_waves_candidate,
    "trees": fit_trees,
}

BLEND = "blend"
CHOOSING = "choosing"
STAGES = {"waves": "fitting waves", "trees": "fitting trees"}
WORTH_BLENDING = 0.95  # of what the best alone misses: less than that, or it is not worth two representations
PROMISING = 2.0  # times what others miss: a first look at trees may miss no more
USELESS = 0.75  # 1 - R^2 of a first fit of waves: what explains less is not fitted to the end
HOPELESS = 2.0  # times what a first look at trees misses: waves that miss more are not fitted to the end
GOOD = 1e-4  # 1 - R^2 of waves below which no trees are tried


@dataclass(frozen=True)
class Candidate:
    """One line of the comparison.

    Attributes
    ----------
    name : str
    r2 : float
        K-fold R^2 on hybrids; 1 for exact enumeration.
    seconds : float
        What fitting it took.
    chosen : bool
    note : str
    """

    name: str
    r2: float
    seconds: float
    chosen: bool
    note: str


def fit_candidates(task: Task, method: str, fits: dict[str, CandidateFit]) -> None:
    """Fit what is asked for, or what is worth a try: into ``fits``, so that what is there outlasts an interruption."""
    if method == "auto":
        _try(task, fits)
    else:
        for name in ("waves", "trees") if method == BLEND else (method,):
            task.progress.enter(STAGES.get(name, CHOOSING))
            fits[name] = CANDIDATES[name](task)


def choose(
    task: Task, method: str, fits: dict[str, CandidateFit]
) -> tuple[CandidateFit, tuple[Candidate, ...]]:
    """Return the candidate asked for, or the best by K-fold R^2, and the comparison."""
    fits = dict(fits)
    r2 = _on_common_rows(task, fits)
    best = max(fits.values(), key=lambda fit: r2[fit.name])
    if {"trees", "waves"} <= fits.keys():
        fits[BLEND] = _blend(task, fits["trees"], fits["waves"])
        missed = 1 - _on_common_rows(task, fits)[BLEND]
        if method == BLEND or missed < WORTH_BLENDING * (1 - r2[best.name]):
            best = fits[BLEND]
    table = [Candidate(fit.name, fit.r2, fit.seconds, fit is best, fit.note) for fit in fits.values()]
    return best, tuple(sorted(table, key=lambda line: -line.r2))


def _try(task: Task, fits: dict[str, CandidateFit]) -> None:
    """Fit the sparse transform if promising, waves, and trees where they come near."""
    if task.transform is not None:
        fits["swht"] = fit_swht(task)
        if fits["swht"].r2 >= EXACT:  # nothing can be better
            return
    task.progress.enter(STAGES["waves"])
    by_trees = missed_at_a_look(task)
    fits["waves"] = fit_waves_candidate(task, min(HOPELESS * by_trees, USELESS))
    task.progress.enter(STAGES["trees"])
    missed = 1 - max(fit.r2 for fit in fits.values())
    if missed > GOOD and by_trees < PROMISING * missed:
        fits["trees"] = fit_trees(task)


def _blend(task: Task, trees: CandidateFit, waves: CandidateFit) -> CandidateFit:
    """Return the best weighted mean of two fits: trees miss what is smooth, waves what is sharp."""
    begin = time.perf_counter()
    share = task.best_share(trees.predictions, waves.predictions)
    predictions = (1 - share) * trees.predictions + share * waves.predictions

    def make() -> SumSurrogate:
        return SumSurrogate((trees.make().scaled(1 - share), waves.make().scaled(share)))

    seconds = trees.seconds + waves.seconds + time.perf_counter() - begin
    note = f"{share:.0%} waves, the rest trees"
    return CandidateFit(BLEND, task.judge(predictions), predictions, make, seconds, note)


def _on_common_rows(task: Task, fits: dict[str, CandidateFit]) -> dict[str, float]:
    """Return R^2 of each fit on the answers that all of them are judged by."""
    common = np.logical_and.reduce([task.is_judged(fit.predictions) for fit in fits.values()])
    return {name: r_squared(task.answers[common], fit.predictions[common]) for name, fit in fits.items()}
