"""What a black box is asked: never the same row twice, nothing kept for longer than it is of use."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import fouriershap as fs
from fitted_models import explain_fitted

X = np.random.default_rng(0).normal(size=(50, 3))


class Asked:
    """A model that remembers how often it was asked what."""

    def __init__(self, function):
        self.function, self.rows = function, []

    def __call__(self, rows):
        self.rows.append(np.asarray(rows).copy())
        return self.function(rows)


def test_rows_with_missing_values_are_asked_and_counted_once():
    """Were equal rows with NaN held apart, those held out would have been fitted, and anything looked faithful."""
    rng = np.random.default_rng(0)
    rows = rng.choice([0.0, 1.0, np.nan], size=(300, 6))
    table = rng.normal(size=3**6)

    def scatter(x):
        digits = np.where(np.isnan(x), 2, x).astype(int)
        return table[digits @ 3 ** np.arange(6)]

    model = Asked(scatter)
    explainer = explain_fitted(model, rows[:20], data=rows, method="trees", budget=3000, random_state=0)
    asked = np.concatenate(model.rows)
    n_different = len({row.tobytes() for row in np.where(np.isnan(asked), np.nan, asked)})
    assert len(asked) - n_different <= 20  # those that look for noise
    assert explainer.fidelity.n_points <= n_different // 5 + 1
    assert explainer.fidelity.r2 < 0.5


@pytest.mark.parametrize("n_bits", [3, 10])
def test_swht_on_a_cube_that_it_asks_whole(n_bits):
    rng = np.random.default_rng(0)
    table = rng.normal(size=2**n_bits)
    bits = rng.integers(0, 2, size=(400, n_bits))

    def predict(rows):
        return table[rows @ 2 ** np.arange(n_bits)]

    explainer = explain_fitted(predict, bits[:30], data=bits, method="swht", budget=5000, random_state=0)
    assert explainer.fitted.method == "swht" and explainer.fidelity.n_queries <= 2**n_bits + 20
    exact = explain_fitted(predict, bits[:30], data=bits, method="enumerate", budget=5000)
    if explainer.fidelity.r2 > 1 - 1e-9:
        np.testing.assert_allclose(explainer.shap_values(bits[:5]), exact.shap_values(bits[:5]), atol=1e-6)
    else:
        assert explainer.fidelity.r2 > 0.5


def test_rows_of_an_error_are_the_callers_whatever_the_method():
    frame = pd.DataFrame(
        np.random.default_rng(0).integers(0, 2, (200, 20)), columns=[f"c{j}" for j in range(20)]
    )
    calls = []

    def predict(rows):
        calls.append(len(rows))
        if len(calls) > 2:
            raise RuntimeError("the server is gone")
        return np.column_stack([rows["c0"], rows["c1"] * rows["c2"]]).astype(float)

    with pytest.raises(fs.QueryError, match="the server is gone") as caught:
        explain_fitted(predict, frame, method="swht", budget=4000, random_state=0, batch_size=200)
    rows = pd.concat(caught.value.rows)
    assert list(rows.columns) == list(frame.columns)
    answers = [caught.value.answers[row] for row in rows.itertuples(index=False, name=None)]
    np.testing.assert_array_equal(rows["c1"] * rows["c2"], [both[0][1] for both in answers])


@pytest.mark.parametrize("wrong", [{"weights": [1.0, 2.0]}, {"n_jobs": 0}])
def test_arguments_are_checked_before_the_model_is_asked(wrong):
    model = Asked(lambda rows: rows[:, 0])
    with pytest.raises(fs.InputError):
        explain_fitted(model, X, method="trees", budget=400, **wrong)
    assert not model.rows


def test_an_output_of_small_spread_counts():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 3))

    def predict(x):
        return np.column_stack([1e4 * x[:, 0], np.sin(1e4 * x[:, 1])])

    with pytest.warns(fs.FidelityWarning, match="of that of output 1"):
        explainer = explain_fitted(predict, rows, method="trees", budget=600, random_state=0)
    clear, hidden = explainer.fidelity.by_output
    assert clear > 0.9 > 0.5 > hidden and explainer.fidelity.r2 > 0.9


def test_the_folds_are_those_of_the_chosen_candidate():
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 3, size=(300, 8)).astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fs.FidelityWarning)
        explainer = explain_fitted(
            lambda x: np.sin(x @ np.linspace(0.2, 0.9, 8)), rows, budget=500, random_state=0
        )
    chosen = next(line for line in explainer.fitted.candidates if line.chosen)
    assert explainer.fidelity.k_fold == chosen.r2 and explainer.fitted.method == chosen.name


def test_missing_labels_of_pandas_and_texts_that_look_like_numbers():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"a": rng.choice(["x", "y", None], 60), "b": rng.integers(0, 2, 60)}
    ).convert_dtypes()
    explainer = explain_fitted(
        lambda rows: (rows["a"] == "x").fillna(value=False).to_numpy(float) + rows["b"].to_numpy(float), frame
    )
    assert explainer.fidelity.exact and explainer.shap_values(frame[:5]).shape == (5, 2)
    texts = np.array([["1", "0"], ["01", "1"], ["1", "1"], ["01", "0"]] * 5, dtype=object)
    told_apart = explain_fitted(lambda rows: (rows[:, 0] == "01").astype(float), texts)
    np.testing.assert_allclose(told_apart.shap_values(texts[:2]), [[-0.5, 0.0], [0.5, 0.0]])


def test_no_rows_and_missing_values_that_were_never_asked_about(tmp_path):
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(b=np.where(X[:, 1] > 0, np.nan, X[:, 1]))
    explainer = explain_fitted(
        lambda rows: rows["a"] + rows["b"].fillna(3.0), frame, method="trees", budget=400
    )
    explainer.save(tmp_path / "b.fshap")
    for one in (explainer, fs.load(tmp_path / "b.fshap")):
        assert one.shap_values(frame[:0]).shape == (0, 3)
        assert one.shap_values(frame.assign(b=np.nan)[:2]).shape == (2, 3)
        with pytest.raises(fs.InputError, match="missing value in 'a'"):
            one.shap_values(frame.assign(a=np.nan)[:2])
