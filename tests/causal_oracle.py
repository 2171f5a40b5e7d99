"""Interventions on a Gaussian, one coalition and group at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def step_by_step(
    C: Floats, moved: Floats, known: list[bool], groups: list[list[int]], confounded: list[bool]
) -> tuple[Floats, Floats]:
    """Return mean deviations and covariance, by a linear equation for each feature that is not set."""
    mean, spread = np.where(known, moved, 0.0), np.zeros_like(C)
    earlier: list[int] = []
    for group, is_confounded in zip(groups, confounded, strict=True):
        told = earlier + ([] if is_confounded else [j for j in group if known[j]])
        drawn = [j for j in group if not known[j]]
        B = C[np.ix_(drawn, told)] @ np.linalg.inv(C[np.ix_(told, told)])
        mean[drawn] = B @ mean[told]
        noise = C[np.ix_(drawn, drawn)] - B @ C[np.ix_(told, drawn)]
        everything = [*earlier, *[j for j in group if known[j]]]
        across = B @ spread[np.ix_(told, everything)]
        spread[np.ix_(drawn, everything)], spread[np.ix_(everything, drawn)] = across, across.T
        spread[np.ix_(drawn, drawn)] = B @ spread[np.ix_(told, told)] @ B.T + noise
        earlier += group
    return mean, spread
