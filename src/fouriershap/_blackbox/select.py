"""Choosing a candidate by evidence, and the table that shows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fouriershap._blackbox.candidates.blend import blend
from fouriershap._blackbox.candidates.kernel import MOST_FACTORED, fit_kernel
from fouriershap._blackbox.candidates.swht import EXACT, fit_swht
from fouriershap._blackbox.candidates.trees import fit_trees
from fouriershap._blackbox.task import Fit, Task

CANDIDATES: dict[str, Callable[[Task], Fit]] = {"swht": fit_swht, "trees": fit_trees, "kernel": fit_kernel}

BLEND = "blend"
WORTH_BLENDING = 0.95  # of what the best alone misses: less than that, or it is not worth twice the trees
# R^2 from which the kernel is not tried: it is slow, on many points very much so.
GOOD, GOOD_FOR_MANY = 0.999, 0.985


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


def choose(task: Task, method: str) -> tuple[Fit, tuple[Candidate, ...]]:
    """The candidate asked for, or the best by K-fold R^2, and the comparison."""
    fits: dict[str, Fit] = {}
    for name in {"auto": tuple(CANDIDATES), BLEND: ("trees", "kernel")}.get(method, (method,)):
        if method != "auto" or _worth_trying(name, task, fits):
            fits[name] = CANDIDATES[name](task)
    best = max(fits.values(), key=lambda fit: fit.r2)
    if {"trees", "kernel"} <= fits.keys():
        fits[BLEND] = blend(task, fits["trees"], fits["kernel"])
        if method == BLEND or 1 - fits[BLEND].r2 < WORTH_BLENDING * (1 - best.r2):
            best = fits[BLEND]
    table = [Candidate(fit.name, fit.r2, fit.seconds, fit is best, fit.note) for fit in fits.values()]
    return best, tuple(sorted(table, key=lambda line: -line.r2))


def _worth_trying(name: str, task: Task, fits: dict[str, Fit]) -> bool:
    best = max((fit.r2 for fit in fits.values()), default=-np.inf)
    if best >= EXACT:  # nothing can be better
        return False
    if name == "swht":
        return task.transform is not None
    return name != "kernel" or best < (GOOD if len(task.codes) <= MOST_FACTORED else GOOD_FOR_MANY)
