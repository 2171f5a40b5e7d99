"""Arguments that are no such thing: an error of ours that names them, and before anything is paid for."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier

import fouriershap as fs

X = np.random.default_rng(0).normal(size=(60, 3))
MODEL = GradientBoostingClassifier(n_estimators=3, random_state=0).fit(X, X[:, 0] > 0)
ARRAY = np.array(["auto", "walk"])
HUGE = 10**400
WRONG_FOR_TREES = {
    "method": ARRAY,
    "precision": ARRAY,
    "feature_perturbation": ARRAY,
    "check": ARRAY,
    "device": ARRAY,
    "index": np.array([1, 2]),
    "output": ARRAY,
    "exact": np.array([True, False]),
    "n_jobs": np.array([1, 2]),
    "memory": HUGE,
    "weights": [HUGE] * 60,
}
WRONG_FOR_BLACK_BOXES = {
    "method": ARRAY,
    "index": ARRAY,
    "device": ARRAY,
    "budget": HUGE,
    "batch_size": HUGE,
    "n_jobs": np.array([1, 2]),
    "weights": [HUGE] * 60,
}


@pytest.mark.parametrize("name", WRONG_FOR_TREES)
def test_arrays_and_huge_numbers_are_named(name):
    with pytest.raises(fs.InputError, match=f"^{name} ") as caught:
        fs.TreeExplainer(MODEL, X, **{name: WRONG_FOR_TREES[name]})
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("name", WRONG_FOR_BLACK_BOXES)
def test_black_boxes_name_them_and_ask_nothing(name):
    refused(name, WRONG_FOR_BLACK_BOXES[name])


@pytest.mark.parametrize(
    "wrong", ["x", None, [0.9], np.array([0.9, 0.8]), np.nan, pytest.param(HUGE, id="huge")]
)
def test_min_fidelity_is_checked_before_the_model_is_asked(wrong):
    refused("min_fidelity", wrong)


@pytest.mark.parametrize("wrong", ["x", -1, np.nan, object()])
def test_random_state_is_checked_before_the_model_is_asked(wrong):
    refused("random_state", wrong)


def refused(name, wrong):
    asked = []

    def predict(rows):
        asked.append(len(rows))
        return rows[:, 0]

    with pytest.raises(fs.InputError, match=f"^{name} "):
        fs.BlackBoxExplainer(predict, X, **({"budget": 300, "method": "trees"} | {name: wrong}))
    assert not asked


@pytest.mark.parametrize("wrong", [pytest.param(HUGE, id="huge"), np.array([0.1, 0.2]), "x", -1, np.nan])
def test_tolerance(wrong):
    with pytest.raises(fs.InputError, match=r"^tolerance "):
        fs.TreeExplainer(MODEL, X).shap_values(X, check_additivity=True, tolerance=wrong)


def test_weights_whose_sum_overflows_are_an_error():
    """They would all become zero."""
    with pytest.raises(fs.InputError, match="sum"):
        fs.TreeExplainer(MODEL, X, weights=np.full(60, 1e308))


def test_a_budget_of_memory_that_no_machine_has_is_no_error():
    explainer = fs.TreeExplainer(MODEL, X, memory=2**62, strategy="tables")
    np.testing.assert_allclose(explainer.shap_values(X), fs.TreeExplainer(MODEL, X).shap_values(X), atol=1e-6)


def test_a_loss_needs_labels_and_batches_have_none():
    explainer = fs.TreeExplainer(MODEL, X, output="log_loss")
    for batches in ([X], [pd.DataFrame(X[:0])]):
        with pytest.raises(fs.InputError, match=r"shap_values\(X, y\)"):
            list(explainer.explain_batches(batches))
    with pytest.raises(fs.InputError, match=r"shap_values\(X, y\)"):
        explainer.output_schema()
    for wrong in ("x", HUGE, None):
        with pytest.raises(fs.InputError, match=r"^y "):
            explainer.expected_loss(wrong)
    with pytest.raises(fs.InputError, match=r"^y "):
        explainer.shap_values(X, [HUGE] * 60)


@pytest.mark.parametrize("wrong", [np.array(["columns", "array"]), None, "x"])
def test_what_batches_are_answered_with(wrong):
    with pytest.raises(fs.InputError, match=r"^layout is"):
        fs.TreeExplainer(MODEL, X).explain_batches([X], layout=wrong)
