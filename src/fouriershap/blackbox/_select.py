"""Choosing a candidate by evidence, and the table that shows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fouriershap._errors import InputError
from fouriershap.blackbox._boosting import fit_trees
from fouriershap.blackbox._distil import MOST_FACTORED, fit_kernel
from fouriershap.blackbox._surrogates import Surrogate
from fouriershap.blackbox._swht import EXACT, fit_swht
from fouriershap.blackbox._task import Fit, Task

CANDIDATES: dict[str, Callable[[Task], Fit]] = {"swht": fit_swht, "trees": fit_trees, "kernel": fit_kernel}


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


def choose(task: Task, method: str) -> tuple[str, Surrogate, tuple[Candidate, ...]]:
    """The candidate asked for, or the best by K-fold R^2, built from all answers."""
    if method != "auto" and method not in CANDIDATES:
        raise InputError(f"method is {method!r}; choose 'auto' or one of {', '.join(CANDIDATES)}.")
    names = [name for name in CANDIDATES if _worth_trying(name, task)] if method == "auto" else [method]
    fits: list[Fit] = []
    for name in names:
        fits.append(CANDIDATES[name](task))
        if fits[-1].r2 >= EXACT:  # nothing can be better
            break
    best = max(fits, key=lambda fit: fit.r2)
    table = [Candidate(fit.name, fit.r2, fit.seconds, fit is best, fit.note) for fit in fits]
    return best.name, best.make(), tuple(sorted(table, key=lambda line: -line.r2))


def _worth_trying(name: str, task: Task) -> bool:
    if name == "swht":
        return task.transform is not None
    # With more points the kernel is slow, and its trees lose a good part of it, which the folds do not see.
    return name != "kernel" or len(task.codes) <= MOST_FACTORED
