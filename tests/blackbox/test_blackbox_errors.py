"""Black boxes that misbehave, and data that say too little."""

from __future__ import annotations

import numpy as np
import pytest

import fitted_models
import fouriershap as fs
from fitted_models import explain_fitted

X = np.random.default_rng(0).normal(size=(50, 3))


def answer_in_batch(number, wrong):
    """A model whose ``number``-th batch comes back as ``wrong`` makes of the right one."""
    calls = []

    def predict(x):
        calls.append(len(x))
        right = x.sum(axis=1)
        return wrong(right) if len(calls) == number + 1 else right

    return predict


def shorten(y):
    return y[:-1]


def poison(y):
    return np.where(np.arange(len(y)) == 3, np.nan, y)


def fail(y):
    raise RuntimeError("the server is gone")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (shorten, r"shape \(49,\) for 50 rows"),
        (poison, "not finite, the first at row 3"),
        (lambda y: y.astype(str), "return numbers"),
        (fail, "RuntimeError: the server is gone"),
        (lambda y: np.stack([y, y], axis=1), "2 numbers a row, but 1 before"),
    ],
)
def test_a_bad_batch_is_named_and_answers_are_kept(wrong, message):
    with pytest.raises(fs.QueryError, match=message) as caught:
        explain_fitted(
            answer_in_batch(2, wrong), X, method="trees", budget=500, batch_size=50, random_state=0
        )
    error = caught.value
    assert error.batch == 2 and "batch 2" in str(error)
    assert len(error.answers) == (149 if wrong is poison else 100)  # one bad answer does not spoil the others
    for row in np.concatenate(error.rows):
        assert error.answers[tuple(row)] == [(row.sum(),)]


def test_noise_is_found_and_reported():
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, size=(60, 4))
    with pytest.warns(fs.NoiseWarning, match="answers the same row differently") as caught:
        explainer = explain_fitted(lambda x: x.sum(axis=1) + rng.normal(size=len(x)), bits)
    assert caught[0].filename == fitted_models.__file__
    assert 0.2 < explainer.fidelity.noise < 2


def test_low_fidelity_warns_with_the_ways_out():
    rng = np.random.default_rng(0)
    with pytest.warns(fs.FidelityWarning, match="Ways out: a larger budget=") as caught:
        explain_fitted(
            lambda x: np.sin(1e6 * x).sum(axis=1), rng.normal(size=(100, 3)), method="trees", budget=300
        )
    assert caught[0].filename == fitted_models.__file__


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"background": X[:1]}, "background has one row"),
        ({"budget": 20}, "give at least 200"),
        ({"budget": 0}, "budget is 0"),
        ({"method": "magic"}, "method is 'magic'"),
        ({"method": "enumerate"}, "Raise the budget"),
        ({"predict": 3}, "predict is a int"),
        ({"categorical": ["nope"]}, "'nope', which does not exist"),
        ({"categorical": "abc"}, "give a list of column names"),
        ({"data": X[:, :2]}, "data has 2 columns"),
        ({"background": X[0]}, "background has shape"),
        ({"progress": 3}, "progress is 3"),
        ({"background": X[:0]}, "0 rows"),
    ],
)
def test_bad_arguments(arguments, message):
    arguments = {"predict": lambda x: x.sum(axis=1), "background": X, **arguments}
    with pytest.raises(fs.InputError, match=message):
        explain_fitted(**arguments)


def test_one_background_row_with_data():
    explainer = explain_fitted(
        lambda x: x[:, 0] - 2 * x[:, 1], np.zeros((1, 3)), data=(X > 0).astype(float), random_state=0
    )
    np.testing.assert_allclose(explainer.shap_values([[1.0, 1.0, 1.0]]), [[1, -2, 0]], atol=1e-9)


@pytest.mark.parametrize("constant", [0.0, 3.7])
@pytest.mark.parametrize("method", ["auto", "waves", "trees", "blend", "swht"])
def test_a_constant_model_explains_nothing(method, constant):
    X = np.random.default_rng(0).normal(size=(300, 3))
    explainer = explain_fitted(
        lambda rows: np.full(len(rows), constant), X, budget=300, method=method, random_state=0
    )
    assert explainer.expected_value == pytest.approx(constant, abs=1e-12)
    assert explainer.fidelity.r2 == 1.0
    np.testing.assert_allclose(explainer.shap_values(X[:5]), 0.0, atol=1e-12)


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_zero_has_no_terms(n_outputs):
    bits = np.random.default_rng(0).integers(0, 2, size=(40, 5)).astype(float)
    explainer = explain_fitted(
        lambda rows: np.zeros((len(rows), n_outputs)), bits, method="enumerate", budget=64
    )
    assert not explainer.shap_values(bits[:3]).any()


def test_one_of_two_outputs_may_be_constant():
    X = np.random.default_rng(0).normal(size=(300, 3))

    def both(rows):
        return np.column_stack([rows[:, 0], np.full(len(rows), 2.0)])

    explainer = explain_fitted(both, X, budget=400, method="blend", random_state=0)
    phi = explainer.shap_values(X[:5])
    np.testing.assert_allclose(phi[:, :, 1], 0.0, atol=1e-12)
    np.testing.assert_allclose(phi[:, 0, 0], X[:5, 0] - X[:, 0].mean(), atol=0.1)


def test_a_constant_column_gets_nothing():
    data = np.column_stack([X[:, 0] > 0, np.ones(50), X[:, 1] > 0]).astype(float)
    explainer = explain_fitted(lambda x: x[:, 0] * x[:, 1], data)
    assert not explainer.shap_values(data)[:, 1].any()
    constant = explain_fitted(lambda x: np.full(len(x), 3.0), np.ones((5, 2)))
    assert constant.expected_value == 3 and not constant.shap_values(np.ones((2, 2))).any()


def test_a_thousand_columns():
    wide = np.random.default_rng(0).integers(0, 2, size=(40, 1000)).astype(float)
    explainer = explain_fitted(
        lambda x: x[:, 3] * x[:, 700] - x[:, 999], wide, method="swht", budget=6000, random_state=0
    )
    assert explainer.fidelity.r2 == pytest.approx(1)
    values = explainer.shap_values(wide)
    assert set(np.flatnonzero(np.abs(values).max(axis=0) > 1e-9)) == {3, 700, 999}
    auto = explain_fitted(lambda x: x[:, 3] * x[:, 700] - x[:, 999], wide, budget=22_000, random_state=0)
    assert (
        auto.fitted.method == "swht" and auto.fidelity.n_queries < 6000
    )  # exact at first sight: no need for more
    np.testing.assert_allclose(auto.shap_values(wide), values, atol=1e-9)
    with pytest.raises(fs.InputError, match="give at least 4000"):
        explain_fitted(lambda x: x[:, 0], wide, budget=1000)


def test_progress_is_reported():
    seen = []
    bits = np.random.default_rng(0).integers(0, 2, size=(60, 4))
    explain_fitted(lambda x: x.sum(axis=1), bits, progress=lambda done, total: seen.append((done, total)))
    assert seen and seen[-1][1] == 20_000
