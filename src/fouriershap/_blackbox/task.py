"""What every candidate is given: the same answers and the same folds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fouriershap._base.progress import Progress
from fouriershap._blackbox.fidelity import r_squared
from fouriershap._blackbox.transform import Transform
from fouriershap._rows.levels import Encoding

N_FOLDS = 5


@dataclass(frozen=True, eq=False)
class Task:
    """Answers to fit.

    Attributes
    ----------
    encoding : Encoding
    pool_codes : (n_pool, n_features) float64
        The data rows from which hybrids are made.
    codes : (n, n_features) float64
    answers : (n, n_outputs) float64
    fold : (n,) int64
        Fold of each row, 0 to N_FOLDS - 1.
    seed : int
    transform : Transform or None
        The sparse transform of the model, where it was tried and is worth a candidate.
    n_jobs : int
        Threads.
    unit : float
        By which answers were divided.
    progress : Progress
        Shows how far fitting is.
    """

    encoding: Encoding
    pool_codes: NDArray[np.float64]
    codes: NDArray[np.float64]
    answers: NDArray[np.float64]
    fold: NDArray[np.int64]
    seed: int
    transform: Transform | None = None
    n_jobs: int = -1
    unit: float = 1.0
    progress: Progress = field(default_factory=lambda: Progress(False))

    @property
    def n_outputs(self) -> int:
        return int(self.answers.shape[1])

    def judge(self, predictions: NDArray[np.float64]) -> float:
        """Return R^2 of predictions (n, n_outputs) by models that were fitted without the row's fold; NaN for none."""
        judged = self.is_judged(predictions)
        return r_squared(self.answers[judged], predictions[judged])

    def is_judged(self, predictions: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which rows have a prediction by a model that was fitted without their fold."""
        return np.asarray(~np.isnan(predictions).any(axis=1))

    def best_share(self, first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
        """Return the share of the second of two predictions in the mean of both that misses least."""
        both = self.is_judged(first + second)
        apart, missed = (second - first)[both], (self.answers - first)[both]
        share = float((apart * missed).sum() / max((apart**2).sum(), np.finfo(float).tiny))
        return min(max(share, 0.0), 1.0)


@dataclass(frozen=True, eq=False)
class CandidateFit:
    """What a candidate found.

    Attributes
    ----------
    name : str
    r2 : float
        R^2 of the answers by models that were fitted without their fold.
    predictions : (n, n_outputs) float64
        Of those models; NaN for rows that are not judged.
    make : callable
        Builds the surrogate from all answers; only the winner's is called.
    seconds : float
    note : str
    """

    name: str
    r2: float
    predictions: NDArray[np.float64]
    make: Callable[[], Any]
    seconds: float
    note: str


def make_folds(n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return a random fold of each of n rows, all of one size but for rounding."""
    return rng.permutation(np.arange(n) % N_FOLDS)
