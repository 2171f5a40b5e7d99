"""Candidate "blend": trees and kernel together, by the weight that the folds ask for.

They miss different things: trees the smooth, the kernel the sharp. Both end as trees, so their sum does, too.
"""

from __future__ import annotations

import time

import numpy as np

from fouriershap._blackbox.surrogates import TreeSurrogate, weighted_sum
from fouriershap._blackbox.task import Fit, Task


def blend(task: Task, trees: Fit, kernel: Fit) -> Fit:
    """The best weighted mean of two fits that both make trees."""
    begin = time.perf_counter()
    both = ~np.isnan(trees.predictions + kernel.predictions).any(axis=1)
    apart = (kernel.predictions - trees.predictions)[both]
    missed = (task.answers - trees.predictions)[both]
    share = float((apart * missed).sum() / max((apart**2).sum(), np.finfo(float).tiny))
    share = min(max(share, 0.0), 1.0)
    predictions = (1 - share) * trees.predictions + share * kernel.predictions

    def make() -> TreeSurrogate:
        parts = [trees.make(), kernel.make()]
        ensemble = weighted_sum([part.ensemble for part in parts], (1 - share, share))
        return TreeSurrogate(ensemble, task.encoding.player)

    seconds = trees.seconds + kernel.seconds + time.perf_counter() - begin
    return Fit(
        "blend", task.judge(predictions), predictions, make, seconds, f"{share:.0%} kernel, the rest trees"
    )
