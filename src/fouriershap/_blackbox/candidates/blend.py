"""Candidate "blend": waves and trees together, by the weight that the folds ask for.

They miss different things: trees the smooth, waves the sharp.
"""

from __future__ import annotations

import time

import numpy as np

from fouriershap._blackbox.sum_surrogate import SumSurrogate
from fouriershap._blackbox.task import Fit, Task
from fouriershap._shapley.engine import Floats


def best_share(task: Task, first: Floats, second: Floats) -> float:
    """Of the second of two predictions, in the mean of both that misses least where both are judged."""
    both = task.is_judged(first + second)
    apart, missed = (second - first)[both], (task.answers - first)[both]
    share = float((apart * missed).sum() / max((apart**2).sum(), np.finfo(float).tiny))
    return min(max(share, 0.0), 1.0)


def blend(task: Task, trees: Fit, waves: Fit) -> Fit:
    """The best weighted mean of two fits, judged where both are."""
    begin = time.perf_counter()
    share = best_share(task, trees.predictions, waves.predictions)
    predictions = (1 - share) * trees.predictions + share * waves.predictions

    def make() -> SumSurrogate:
        return SumSurrogate((trees.make().scaled(1 - share), waves.make().scaled(share)))

    seconds = trees.seconds + waves.seconds + time.perf_counter() - begin
    note = f"{share:.0%} waves, the rest trees"
    return Fit("blend", task.judge(predictions), predictions, make, seconds, note)
