"""The interval of `fidelity` against the R^2 of a huge sample of hybrids, fit by fit."""

from __future__ import annotations

import numpy as np
import pytest

from fouriershap._blackbox.fidelity import bootstrap_interval, measure
from fouriershap._blackbox.hybrids import draw_hybrids
from fouriershap._blackbox.task import r_squared

N_COLUMNS = 20
N_REPETITIONS = 100


def light(x):
    """Pairs, and a smooth rest that few terms do not reach."""
    return x[:, 0] * x[:, 1] + 0.7 * x[:, 2] * x[:, 3] - x[:, 4] + np.sin(x[:, 5:].sum(axis=1))


def heavy(x):
    """The same, on a scale where few rows have most of the variance."""
    return np.exp(0.6 * light(x))


@pytest.mark.parametrize("model", [light, heavy])
def test_the_interval_covers_the_true_r2(model):
    """A linear fit to 400 hybrids per repetition, certified on 100 others."""
    covered, widths = 0, []
    for repetition in range(N_REPETITIONS):
        rng = np.random.default_rng(repetition)
        X = (rng.random((300, N_COLUMNS)) < 0.3).astype(float)
        index = draw_hybrids(8_500, N_COLUMNS, np.arange(300), np.arange(300), rng)
        rows = X[index, np.arange(N_COLUMNS)]
        answers, design = model(rows)[:, None], np.column_stack([np.ones(len(rows)), rows])
        fitted = np.linalg.lstsq(design[:400], answers[:400])[0]
        predictions = design @ fitted
        _, low, high = measure(answers[400:500], predictions[400:500], rng)
        covered += low <= r_squared(answers[500:], predictions[500:]) <= high
        widths.append(high - low)
    assert covered >= 90
    assert np.median(widths) < 0.5  # an interval that says something


@pytest.mark.parametrize("degrees_of_freedom", [5, 8])
def test_heavy_tailed_errors(degrees_of_freedom):
    """A fifth of the variance unexplained, errors of Student's t: at least 90 of 100 intervals must cover."""
    rng = np.random.default_rng(0)
    scale = 0.5 / np.sqrt(degrees_of_freedom / (degrees_of_freedom - 2))
    covered = 0
    for _ in range(N_REPETITIONS):
        signal = rng.normal(size=(200, 1))
        y = signal + scale * rng.standard_t(degrees_of_freedom, size=(200, 1))
        low, high = bootstrap_interval(y, signal, rng, n_resamples=300)
        covered += low <= 1 - 0.25 / 1.25 <= high
    assert covered >= 90
