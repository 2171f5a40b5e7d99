"""Waves from answers: what they must represent, their certificate, backgrounds, files."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest

import fouriershap as fs
import oracles
from fitted_models import explain_fitted
from fouriershap._blackbox import selection as select
from fouriershap._blackbox.candidates import waves as module
from fouriershap._blackbox.surrogates import without_compression


def smooth(rows):
    return np.tanh(rows[:, 0] + rows[:, 1] * rows[:, 2]) + 0.3 * rows[:, 3]


@pytest.fixture(scope="module")
def numbers():
    return np.random.default_rng(0).normal(size=(400, 4))


@pytest.fixture(scope="module")
def explainer(numbers):
    return explain_fitted(smooth, numbers[:100], data=numbers, method="waves", budget=1500, random_state=0)


def test_smooth_models_are_waves(numbers, explainer):
    rows = numbers[100:110]
    assert explainer.fidelity.r2 > 0.97
    truth = oracles.shap_values(smooth, rows, numbers[:100])[..., 0]
    values = explainer.shap_values(rows)
    assert ((values - truth) ** 2).sum() < 0.005 * (truth**2).sum()
    fresh = np.random.default_rng(1).normal(size=(2000, 4))
    assert isinstance(explainer.representation, fs.Waves)
    np.testing.assert_allclose(explainer.representation(fresh), explainer.predict(fresh))
    missed = ((smooth(fresh) - explainer.predict(fresh)) ** 2).mean() / smooth(fresh).var()
    assert 1 - missed > explainer.fidelity.low - 0.01


def test_the_same_seed_gives_the_same_waves_whatever_the_threads(numbers, explainer):
    again = explain_fitted(
        smooth,
        numbers[:100],
        data=numbers,
        method="waves",
        budget=1500,
        random_state=0,
        n_jobs=1,
    )
    np.testing.assert_array_equal(again.shap_values(numbers[:5]), explainer.shap_values(numbers[:5]))


def test_files(numbers, explainer, tmp_path):
    explainer.save(tmp_path / "waves.fshap")
    again = fs.load(tmp_path / "waves.fshap")
    np.testing.assert_array_equal(again.shap_values(numbers[:9]), explainer.shap_values(numbers[:9]))
    assert again.fidelity == explainer.fidelity and again.fitted.method == "waves"
    other = again.with_background(numbers[:3])
    assert other.plan().strategy in ("pairs", "subsets")
    np.testing.assert_allclose(
        other.shap_values(numbers[:9]).sum(axis=1),
        again.predict(numbers[:9]) - other.expected_value,
        atol=1e-10,
    )


def test_frames_with_labels_missing_values_groups_and_several_outputs():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.normal(size=300), "price": rng.normal(size=300)})
    frame["town"] = rng.choice(["Ulm", "Bonn", "Kiel"], 300)
    frame["age"] = np.where(rng.random(300) < 0.3, np.nan, rng.normal(size=300))
    frame["door"] = rng.normal(size=300)

    def predict(rows):
        town = rows["town"].map({"Ulm": 1.0, "Bonn": 0.0, "Kiel": -1.0}).to_numpy(float)
        age = rows["age"].to_numpy(float)
        first = town * rows["size"] + np.where(np.isnan(age), 0.5, np.sin(np.nan_to_num(age)))
        second = 0.1 * np.cos(rows["price"] + rows["door"])
        return np.column_stack([first, second])

    groups = {"size": ["size"], "deal": ["price", "door"], "town": ["town"], "age": ["age"]}
    explainer = explain_fitted(
        predict, frame[:50], data=frame, method="waves", groups=groups, budget=4000, random_state=0
    )
    assert min(explainer.fidelity.by_output) > 0.98
    values = explainer.shap_values(frame[100:130])
    assert values.shape == (30, 4, 2)
    outputs = predict(frame[100:130]) - predict(frame[:50]).mean(axis=0)
    missed = ((values.sum(axis=1) - outputs) ** 2).sum(axis=0) / (outputs**2).sum(axis=0)
    assert missed.max() < 0.05
    # By their names: the second output is the deal's alone.
    deal = explainer.player_names.index("deal")
    others = np.delete(values[:, :, 1], deal, axis=1)
    assert (others**2).sum() < 0.05 * (values[:, deal, 1] ** 2).sum()


def test_a_compressed_background_says_what_it_misses():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 14)) @ (np.eye(14) + 0.3)
    weights = rng.normal(size=14) / 6

    def predict(rows):
        return np.tanh(rows @ weights)

    options = {"data": X, "method": "waves", "budget": 1500, "random_state": 0}
    quick = explain_fitted(predict, X[:200], **options)
    exact = without_compression(quick.fitted.result.surrogate).compile(X[:200], None)
    assert (quick.plan().strategy, exact.plan(None).strategy) == ("mixture", "pairs")
    assert exact.quality.background_error == 0 < quick.fidelity.background
    truth = exact.shap_values(X[200:220])[..., 0]
    missed = ((quick.shap_values(X[200:220]) - truth) ** 2).sum() / (truth**2).sum()
    assert missed < 4 * quick.fidelity.background


def test_rows_far_from_the_data_do_no_harm():
    """A number ten times as far out as all others is drawn in, not extrapolated along waves."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 8))
    X[::50, 0] *= 8

    def predict(rows):
        return 1 / (1 + np.exp(-rows.sum(axis=1)))

    explainer = explain_fitted(predict, X[:100], data=X, method="waves", budget=1500, random_state=0)
    far = X[:5].copy()
    far[:, 0] = 30.0
    assert np.abs(explainer.predict(far) - predict(far)).max() < 0.5


@pytest.mark.parametrize("hopeless", [0.2, 0.0])
def test_waves_are_hopeless_by_what_all_outputs_miss_together(numbers, monkeypatch, hopeless):
    """As trees are, with which they are compared: an output of small spread that nothing can fit does not end them."""

    def outputs(rows):
        rough = np.random.default_rng(0).normal(size=len(rows))
        return np.stack([smooth(rows), 1e-3 * rough], axis=1)

    fits = []
    whole = module._fit_nets
    monkeypatch.setattr(module, "_fit_nets", lambda *given: fits.append(whole(*given)) or fits[-1])
    monkeypatch.setitem(select.CANDIDATES, "waves", partial(module.fit_waves_candidate, hopeless=hopeless))
    options = {"data": numbers, "method": "waves", "budget": 1000, "random_state": 0}
    with pytest.warns(fs.NoiseWarning):
        explain_fitted(outputs, numbers[:20], **options)
    (nets,) = fits
    assert len(nets) == (module.N_MEAN if hopeless else 1)


def test_constants_are_exactly_nothing(numbers):
    def outputs(rows):
        return np.stack([np.full(len(rows), 0.1), smooth(rows)], axis=1)

    options = {"data": numbers, "method": "waves", "budget": 1000, "random_state": 0}
    explainer = explain_fitted(outputs, numbers[:20], **options)
    assert (explainer.shap_values(numbers[:9])[:, :, 0] == 0).all()
    np.testing.assert_allclose(explainer.predict(numbers[:9])[:, 0], 0.1, rtol=1e-12)
