"""Waves of logits, where a model ends in a sigmoid."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import fouriershap as fs
from fitted_models import explain_fitted
from fouriershap._blackbox import selection as select
from fouriershap._blackbox.candidates import waves as module
from fouriershap._blackbox.candidates.wave_answers import Scaled, WaveTargets
from fouriershap._waves.columns import number_columns


def rough(rows: np.ndarray) -> np.ndarray:
    """A sigmoid of a network of rectified units."""
    rng = np.random.default_rng(3)
    hidden = np.maximum(rows @ rng.normal(size=(rows.shape[1], 32)) + rng.normal(size=32), 0)
    return 1 / (1 + np.exp(-0.3 * (hidden @ rng.normal(size=32))))


def fitted(model, monkeypatch: pytest.MonkeyPatch, worth: float) -> fs.BlackBoxExplainer:
    monkeypatch.setattr(module, "WORTH_LOGITS", worth)
    data = np.random.default_rng(0).normal(size=(400, 12))
    options = {"method": "waves", "budget": 5000, "random_state": 0, "n_jobs": 1}
    return explain_fitted(model, data[:20], data=data, **options)


def missed(explainer: fs.BlackBoxExplainer, model) -> float:
    fresh = np.random.default_rng(1).normal(size=(2000, 12))
    truth = model(fresh)
    return float(np.mean((explainer.representation(fresh) - truth) ** 2) / np.var(truth))


def test_logits_miss_less_of_a_rough_sigmoid(monkeypatch):
    plain, linked = (fitted(rough, monkeypatch, worth) for worth in (0.0, 0.9))
    assert "logits" not in plain.fitted.candidates[0].note
    assert "of logits" in linked.fitted.candidates[0].note
    assert missed(linked, rough) < missed(plain, rough)


def test_logits_that_are_a_line_have_too_few_waves_for_the_sigmoid_which_does_no_harm(monkeypatch):
    """A student begins with waves of probabilities, too."""

    def steep(rows: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-3 * rows[:, :3].sum(axis=1)))

    explainer = fitted(steep, monkeypatch, 0.9)
    assert missed(explainer, steep) < 1e-3  # 0.0004; waves of probabilities alone 0.0001


def test_a_student_of_more_waves_than_its_teachers_have(monkeypatch):
    """Where waves seem hopeless there is one net of each kind, and the other waves of the student are new."""
    monkeypatch.setitem(select.CANDIDATES, "waves", partial(module.fit_waves_candidate, hopeless=0.0))
    monkeypatch.setattr(module, "_MANY_ANSWERS", 4500)
    explainer = fitted(rough, monkeypatch, 0.9)
    assert "of logits" in explainer.fitted.candidates[0].note
    assert len(explainer.representation.frequencies) == module.MOST_STUDENT > 2 * module.FEW
    assert missed(explainer, rough) < 0.1


def test_folds_tell_of_what_is_explained(monkeypatch):
    """A student that learns little is seen by the folds, not only by the answers that are held back."""
    good = fitted(rough, monkeypatch, 0.9)
    monkeypatch.setattr(module, "_student_sizes", lambda *_: [2])
    poor = fitted(rough, monkeypatch, 0.9)
    assert "of logits" in poor.fitted.candidates[0].note
    assert poor.fitted.candidates[0].r2 == good.fitted.candidates[0].r2  # by what the teachers know
    assert abs(poor.fidelity.k_fold - poor.fidelity.r2) < 0.05 < good.fidelity.k_fold - poor.fidelity.k_fold


def test_a_class_too_rare_for_logits_is_explained_as_it_is(monkeypatch):
    """Chances far below one in ten thousand are all the same as logits; waves of chances tell them apart."""

    def classes(rows: np.ndarray) -> np.ndarray:
        rare = 1e-5 * (1 + 0.5 * np.tanh(rows[:, 0]))
        first = rough(rows) * (1 - rare)
        return np.stack([first, 1 - rare - first, rare], axis=1)

    explainer = fitted(classes, monkeypatch, 0.9)
    background = np.random.default_rng(0).normal(size=(400, 12))[:20]
    np.testing.assert_allclose(explainer.expected_value[2], classes(background)[:, 2].mean(), rtol=0.05)
    assert explainer.fidelity.by_output[2] > 0.9


def test_an_interruption_while_a_student_is_taught_leaves_something(monkeypatch):
    whole = module._teach

    def stopped(*given):
        monkeypatch.setattr(module, "_teach", whole)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "_teach", stopped)
    with pytest.raises(KeyboardInterrupt) as caught:
        fitted(rough, monkeypatch, 0.9)
    explainer = caught.value.finish()
    assert "of logits" in explainer.fitted.candidates[0].note and explainer.fidelity.r2 > 0.9


def test_answers_outside_of_0_and_1_have_no_logits(monkeypatch):
    explainer = fitted(lambda rows: rough(rows) * 1.5, monkeypatch, np.inf)
    assert "logits" not in explainer.fitted.candidates[0].note


def test_what_is_said_of_logits_is_read_as_outputs():
    rng = np.random.default_rng(2)
    chances, unit = rng.uniform(0.01, 0.99, (30, 2)), 0.25
    logits = np.log(chances / (1 - chances))
    scaled = [Scaled((v - v.mean(0)) / v.std(0), v.mean(0), v.std(0)) for v in (chances / unit, logits)]
    inputs = rng.normal(size=(30, 3)).astype(np.float32)
    plain = WaveTargets(number_columns(3), inputs, *scaled, unit)
    linked = replace(plain, linked=True)
    assert plain.targets.shape == (30, 4)
    np.testing.assert_array_equal(linked.targets, scaled[1].values)
    np.testing.assert_allclose(linked.read(linked.targets), scaled[0].values, atol=1e-12)
    np.testing.assert_array_equal(plain.read(plain.targets), scaled[0].values)
