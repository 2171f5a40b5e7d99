"""SHAP values of fitted representations: rows known beforehand, and the certificate of the values."""

from __future__ import annotations

import numpy as np
import pytest

import fouriershap as fs
import oracles
from fitted_models import explain_fitted

N = 8


def rough(rows):
    """Too sharp for few answers."""
    return (
        np.tanh(3 * rows[:, 0] * rows[:, 1])
        + np.sign(rows[:, 2]) * rows[:, 3]
        + 0.2 * rows[:, 4:].sum(axis=1)
    )


@pytest.fixture(scope="module")
def numbers():
    return np.random.default_rng(0).normal(size=(500, N))


def fitted(X, **options):
    options = {
        "data": X[40:],
        "method": "waves",
        "budget": 500,
        "random_state": 0,
    } | options
    return explain_fitted(rough, X[:40], **options)


@pytest.fixture(scope="module")
def explainer(numbers):
    return fitted(numbers)


@pytest.fixture(scope="module")
def truth(numbers):
    return oracles.shap_values(rough, numbers[100:125], numbers[:40])[..., 0]


def missed(values, truth):
    return ((values - truth) ** 2).sum() / ((truth - truth.mean()) ** 2).sum()


@pytest.mark.parametrize("outputs", [[0.1], [0.0], [1 / 3, 2 / 3], [1e8 / 3]])
def test_of_a_constant_nothing_is_missed(numbers, outputs):
    def constant(rows):
        return np.tile(outputs, (len(rows), 1))

    explainer = explain_fitted(constant, numbers[:40], budget=3000, random_state=0)  # no warning
    assert explainer.fidelity.shap == (1, 1, 1)


@pytest.mark.parametrize("method", ["waves", "trees"])
def test_an_output_that_is_constant_is_not_missed(numbers, method):
    """A class that the model never names."""

    def two(rows):
        return np.stack([np.full(len(rows), 0.3), 0.3 + np.tanh(rows[:, 0] * rows[:, 1])], axis=1)

    explainer = explain_fitted(two, numbers[:40], method=method, budget=500, random_state=0)
    assert explainer.fidelity.by_output[0] == 1
    assert np.abs(explainer.shap_values(numbers[:5])[..., 0]).max() < 1e-12


def test_rows_known_beforehand_are_explained_better(numbers, explainer, truth):
    known = fitted(numbers, rows=numbers[100:125])
    assert known.fidelity.n_queries <= 500
    rows = numbers[100:125]
    assert missed(known.shap_values(rows), truth) < missed(explainer.shap_values(rows), truth)
    with pytest.raises(fs.InputError, match="rows"):
        fitted(numbers, rows=numbers[:5, :3])


def test_few_rows_known_beforehand_do_not_save_queries():
    """Their hybrids are soon all asked; what is left of the budget goes to others."""
    X = np.random.default_rng(0).normal(size=(300, 6))
    options = {"data": X, "method": "trees", "budget": 4000, "random_state": 0}
    explainer = explain_fitted(lambda rows: rows.sum(axis=1), X[:10], rows=X[:1], **options)
    assert 3900 <= explainer.fidelity.n_queries <= 4000


def test_another_background_has_no_certificate_of_the_first():
    X = np.random.default_rng(0).normal(size=(60, 2))
    explainer = explain_fitted(
        lambda rows: rows[:, 0] * rows[:, 1], X, method="trees", budget=600, random_state=0
    )
    other = explainer.with_background(X[:1] + 3)
    assert explainer.fidelity.shap is not None and other.fidelity.shap is None
    assert "SHAP" not in repr(other)


def test_the_certificate_holds_on_rows_that_took_no_part(numbers):
    """Fifteen fits, each judged at rows of its own: intervals hold the R^2 of other rows."""
    rows = np.random.default_rng(1).normal(size=(40, N))
    true = oracles.shap_values(rough, rows, numbers[:40])[..., 0]
    held = []
    for seed in range(15):
        explainer = fitted(numbers, budget=1500, random_state=seed)
        found = explainer.fidelity.shap
        assert "rows of data that took no part" in explainer.fidelity.judged_on
        assert explainer.fidelity.n_queries <= 1500 and found.low <= found.r2 <= found.high
        held.append(found.low - 0.01 <= 1 - missed(explainer.shap_values(rows), true) <= found.high + 0.01)
    assert sum(held) >= 13


@pytest.mark.parametrize("n_players", [3, 100])
def test_there_is_a_certificate_whatever_the_number_of_players(n_players):
    X = np.random.default_rng(0).normal(size=(200, n_players))
    explainer = explain_fitted(
        lambda rows: rows[:, 0] + rows[:, 1], X, method="trees", random_state=0, budget=8000
    )
    assert explainer.fidelity.shap is not None and "background" in explainer.fidelity.judged_on
