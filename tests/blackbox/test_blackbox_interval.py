"""The interval of `fidelity` against the R^2 of a huge sample of hybrids, fit by fit."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from fouriershap._blackbox.fidelity import (
    MOST_GROUPS,
    Fidelity,
    Interval,
    bootstrap_interval,
    certify,
    measure,
    r_squared,
    warn_if_low,
)
from fouriershap._blackbox.hybrids import draw_hybrids
from fouriershap._blackbox.task import make_folds

N_COLUMNS = 20
N_REPETITIONS = 100
N_FITS = 40


def light(x, rng=None):
    """Pairs, and a smooth rest that few terms do not reach."""
    return x[:, 0] * x[:, 1] + 0.7 * x[:, 2] * x[:, 3] - x[:, 4] + np.sin(x[:, 5:].sum(axis=1))


def heavy(x, rng=None):
    """The same, on a scale where few rows have most of the variance."""
    return np.exp(0.6 * light(x))


def heavier(x, rng=None):
    return np.exp(1.5 * light(x))


def normal_errors(x, rng):
    return x[:, :5].sum(axis=1) + 0.5 * rng.normal(size=len(x))


def student_errors(x, rng):
    """Without a fourth moment."""
    return x[:, :5].sum(axis=1) + 0.3 * rng.standard_t(3, size=len(x))


def lognormal_errors(x, rng):
    return x[:, :5].sum(axis=1) + 0.1 * rng.lognormal(0, 1.5, size=len(x))


def meeting(x, rng=None):
    """Four rare features that together do much: one hybrid in 130."""
    return x[:, 5] + x[:, 6] + 50 * x[:, :4].all(axis=1)


def spike(x, rng):
    """One row in a hundred, wherever it is."""
    return x[:, :5].sum(axis=1) + 50.0 * (rng.random(len(x)) < 0.01)


def certificates(model, n=500, n_held_out=100):
    """Of linear fits: the certificate, the K-fold R^2, the interval of held-out answers alone, the true R^2."""
    for repetition in range(N_FITS):
        rng = np.random.default_rng(repetition)
        X = (rng.random((300, N_COLUMNS)) < 0.3).astype(float)
        index = draw_hybrids(n + 6_000, N_COLUMNS, np.arange(300), np.arange(300), rng)
        rows = X[index, np.arange(N_COLUMNS)]
        answers, design = model(rows, rng)[:, None], np.column_stack([np.ones(len(rows)), rows])
        train, fold = slice(n_held_out, n), make_folds(n - n_held_out, rng)
        predictions = design @ np.linalg.lstsq(design[train], answers[train])[0]
        true = r_squared(answers[n:], predictions[n:])
        for k in range(5):
            inside = np.arange(n_held_out, n)[fold != k]
            outside = np.arange(n_held_out, n)[fold == k]
            predictions[outside] = design[outside] @ np.linalg.lstsq(design[inside], answers[inside])[0]
        found = certify(answers[:n], predictions[:n], n_held_out, rng)
        alone = bootstrap_interval(answers[:n_held_out], predictions[:n_held_out], rng)
        yield found, r_squared(answers[train], predictions[train]), alone, true


@pytest.mark.parametrize(
    ("model", "least", "widest"),
    [
        (light, 38, 1.3),
        (normal_errors, 38, 1.3),
        (heavy, 38, 1.7),
        (heavier, 38, None),
        (student_errors, 38, 1.7),
        (lognormal_errors, 36, None),
        (meeting, 36, None),
        (spike, 36, None),
    ],
)
def test_the_certificate_covers_the_true_r2(model, least, widest):
    """In so many of 40 fits; where answers are benign, hardly wider than what the held-out answers alone say."""
    covered, widths, alone_widths = 0, [], []
    for found, k_fold, alone, true in certificates(model):
        covered += found.low <= true <= found.high
        assert found.low <= min(found.r2, k_fold) and found.r2 <= found.high
        widths.append(found.high - found.low)
        alone_widths.append(alone[1] - alone[0])
    assert covered >= least
    if widest is not None:
        assert np.median(widths) < widest * np.median(alone_widths)


@pytest.mark.parametrize("degrees_of_freedom", [3, 5, 8])
def test_heavy_tailed_errors(degrees_of_freedom):
    """A fifth of the variance unexplained, errors of Student's t: at least 90 of 100 intervals must cover."""
    rng = np.random.default_rng(0)
    scale = 0.5 / np.sqrt(degrees_of_freedom / (degrees_of_freedom - 2))
    covered = 0
    for _ in range(N_REPETITIONS):
        signal = rng.normal(size=(200, 1))
        y = signal + scale * rng.standard_t(degrees_of_freedom, size=(200, 1))
        _, low, high = measure(y, signal, rng)
        covered += low <= 1 - 0.25 / 1.25 <= high
    assert covered >= 90


def test_what_only_the_folds_have_seen_is_in_the_interval():
    """Held-out answers without an error, beside one in the folds that is as large as all there is to explain."""
    rng = np.random.default_rng(0)
    answers = rng.normal(size=(1000, 1))
    predictions = answers + 0.01 * rng.normal(size=answers.shape)
    predictions[500] += 30.0
    found = certify(answers, predictions, 100, rng)
    k_fold = r_squared(answers[100:], predictions[100:])
    assert found.r2 > 0.999 > 0.2 > k_fold > found.low and found.high > 0.999


def test_many_points_are_resampled_in_groups():
    rng = np.random.default_rng(0)
    answers = rng.normal(size=(5 * MOST_GROUPS + 3, 2))
    predictions = answers + 0.3 * rng.standard_t(4, size=answers.shape)
    low, high = bootstrap_interval(answers, predictions, rng)
    parts = [bootstrap_interval(answers[k::5], predictions[k::5], rng) for k in range(5)]
    widths = [part[1] - part[0] for part in parts]
    assert low < r_squared(answers, predictions) < high
    assert 0.6 < (high - low) / (np.median(widths) / np.sqrt(5)) < 1.7  # five times as many points


def test_two_points_say_nothing():
    found = measure(np.array([[1.0], [2.0]]), np.array([[1.0], [2.0]]), np.random.default_rng(0))
    assert found.r2 == 1 and found.low == -np.inf


def test_the_warning_heeds_the_lower_end():
    def warned(found):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warn_if_low(found, "trees")
        return [str(each.message) for each in caught]

    known = {"n_points": 100, "n_queries": 1000, "k_fold": 0.97}
    (text,) = warned(Fidelity(0.97, 0.93, 0.98, **known))
    assert "95 % interval 0.930 to 0.980" in text and "cannot be ruled out" in text
    assert not warned(Fidelity(0.97, 0.96, 0.98, **known))
    assert warned(Fidelity(0.97, 0.96, 0.98, **known, by_output=(0.99, 0.5)))
    # Where values were judged themselves, these count.
    judged = {"judged_on": "30 rows of data that took no part"}
    (text,) = warned(Fidelity(0.99, 0.98, 0.99, **known, shap=Interval(0.9, 0.8, 0.99), **judged))
    assert "SHAP values of R^2 0.900 (0.800 to 0.990) at 30 rows of data" in text
    assert not warned(Fidelity(0.9, 0.8, 0.99, **known, shap=Interval(0.99, 0.96, 1.0), **judged))
