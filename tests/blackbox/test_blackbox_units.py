"""Answers of any size: whether they are counted in metres or in light years must not matter."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import fouriershap as fs
from fitted_models import explain_fitted
from fouriershap._base.units import unit_of
from fouriershap._blackbox.fidelity import certify, measure, r_squared

RNG = np.random.default_rng(0)
LEVELS = RNG.integers(0, 3, size=(120, 5)).astype(float)
BITS = RNG.integers(0, 2, size=(120, 12)).astype(float)
SCALES = [1e-310, 1e-200, 1e200, 1e305]


def product(rows):
    return rows[:, 0] * rows[:, 1] - rows[:, 2] + 0.3 * rows[:, 3] * rows[:, 4]


def hard(rows):
    return np.sin(37 * rows @ np.arange(1, rows.shape[1] + 1))


def explain(model, scale, rows, method, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no overflow is hushed up
        warnings.simplefilter("ignore", fs.FidelityWarning)
        return explain_fitted(
            lambda x: scale * model(x), rows[:20], data=rows, method=method, random_state=0, **settings
        )


@pytest.fixture(scope="module")
def of_one():
    """Fidelity and values of each case with answers of about 1."""
    cases = {
        "trees": (product, LEVELS, "trees", {"budget": 200, "categorical": range(5)}),
        "unexplained": (hard, LEVELS, "trees", {"budget": 200, "categorical": range(5)}),
        "waves": (product, LEVELS, "waves", {"budget": 200, "categorical": range(5)}),
        "exact": (product, LEVELS, "enumerate", {"budget": 300}),
        "swht": (product, BITS, "swht", {"budget": 600, "max_degree": 2}),
        "swht, unexplained": (hard, BITS, "swht", {"budget": 600, "max_degree": 2, "n_terms": 8}),
    }
    return {name: (case, *outcome(1.0, case)) for name, case in cases.items()}


def outcome(scale, case):
    model, rows, method, settings = case
    explainer = explain(model, scale, rows, method, **settings)
    found = explainer.fidelity
    return np.array([found.r2, found.low, found.high, found.k_fold]), explainer.shap_values(rows[:5]) / scale


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", ["trees", "unexplained", "waves", "exact", "swht", "swht, unexplained"])
def test_the_unit_of_the_answers_does_not_matter(of_one, name, scale):
    case, fidelity, values = of_one[name]
    found, got = outcome(scale, case)
    # Rounding differs, and at 1e-310 numbers have few digits left: trees may split elsewhere.
    np.testing.assert_allclose(found, fidelity, atol=0.02)
    np.testing.assert_allclose(
        got, values, atol=(0.2 if "unexplained" in name else 0.05) * np.abs(values).max()
    )
    if "unexplained" in name:
        assert found[0] < 0.9  # and not 1, since all squares are zero


@pytest.mark.parametrize("scale", [*SCALES, 5e-324])
def test_r2_and_its_interval(scale):
    rng = np.random.default_rng(1)
    answers = rng.normal(size=(200, 2))
    predictions = answers + 0.5 * rng.normal(size=answers.shape)
    if scale < 1e-320:  # whole multiples of the smallest number there is
        answers, predictions = np.round(100 * answers), np.round(100 * predictions)
    expected = r_squared(answers, predictions)
    assert r_squared(scale * answers, scale * predictions) == pytest.approx(expected, rel=1e-9)
    for interval, *more in ((measure,), (certify, 50)):
        want = interval(answers, predictions, *more, np.random.default_rng(2))
        got = interval(scale * answers, scale * predictions, *more, np.random.default_rng(2))
        np.testing.assert_allclose(got, want, rtol=1e-9)
    assert r_squared(np.full((5, 1), scale), np.full((5, 1), scale)) == 1
    assert r_squared(np.full((5, 1), scale), np.zeros((5, 1))) == 0


def test_absurd_predictions_are_no_nan():
    assert r_squared(np.array([[1.0], [2.0]]), np.array([[1e200], [2.0]])) == -np.inf


@pytest.mark.parametrize("largest", [0.0, 5e-324, 1e-310, 0.3, 1.0, 1.5, 1e100, 1.7e308])
def test_units_are_powers_of_two(largest):
    unit = unit_of(np.array([0.0, -largest]))
    assert np.frexp(unit)[0] == 0.5
    assert unit == 1 if largest == 0 else 1 <= largest / unit < 2


@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e-120, 1e120, 1e200, 1e304])
@pytest.mark.parametrize("algorithm", ["coded", "robust"])
def test_the_sparse_transform_finds_terms_of_any_size(scale, algorithm):
    def h(rows):
        signs = 1.0 - 2.0 * rows
        return scale * (3 + signs[:, 3] - 0.5 * signs[:, 7] * signs[:, 21] + 0.25 * signs[:, 1])

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        spectrum = fs.sparse_walsh_hadamard(h, 30, 5, max_degree=3, algorithm=algorithm, random_state=0)
    size = sorted(spectrum.coefficients / scale)
    np.testing.assert_allclose(size, [-0.5, 0.25, 1, 3], rtol=1e-9 if scale > 1e-300 else 1e-6)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_the_sparse_transform_still_warns(scale):
    def noise(rows):
        return scale * np.sin(rows @ np.arange(1.0, 31.0) ** 2)

    with pytest.warns(fs.FidelityWarning):
        fs.sparse_walsh_hadamard(noise, 30, 5, budget=600, max_degree=2, random_state=0)
