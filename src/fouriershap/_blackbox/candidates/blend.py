"""Candidate "blend": waves and trees together, by the weight that the folds ask for.

They miss different things: trees the smooth, waves the sharp.
"""

from __future__ import annotations

import time

from fouriershap._blackbox.surrogates import SumSurrogate
from fouriershap._blackbox.task import Fit, Task


def blend(task: Task, trees: Fit, waves: Fit) -> Fit:
    """Return the best weighted mean of two fits, judged where both are."""
    begin = time.perf_counter()
    share = task.best_share(trees.predictions, waves.predictions)
    predictions = (1 - share) * trees.predictions + share * waves.predictions

    def make() -> SumSurrogate:
        return SumSurrogate((trees.make().scaled(1 - share), waves.make().scaled(share)))

    seconds = trees.seconds + waves.seconds + time.perf_counter() - begin
    note = f"{share:.0%} waves, the rest trees"
    return Fit("blend", task.judge(predictions), predictions, make, seconds, note)
