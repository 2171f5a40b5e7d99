"""Importance: mean sizes, SAGE by the definition, streams, intervals and the test."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.linear_model import LinearRegression

import fouriershap as fs
from fitted_models import explain_fitted
from oracles import coalition_values, shapley_values


def data(n: int, seed: int = 0, n_columns: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_columns))
    return X, 2 * X[:, 0] * X[:, 1] + X[:, 0] + rng.normal(size=n)


def boosted() -> Any:
    return GradientBoostingRegressor(n_estimators=20, max_depth=3, random_state=0).fit(*data(300))


def sage(
    predict: Any, X: np.ndarray, y: np.ndarray, background: np.ndarray, loss: Any, weights: Any = None
) -> np.ndarray:
    """By the exponential definition, row by row: (n_rows, n_players)."""
    n, rows = X.shape[1], []
    for row, label in zip(X, y, strict=True):
        v = coalition_values(predict, row, background, np.arange(n), weights)
        rows.append(shapley_values(-loss(v, label)[:, None], n)[:, 0])
    return np.stack(rows)


def squared(v: np.ndarray, label: float) -> np.ndarray:
    return np.asarray((v[:, 0] - label) ** 2)


def test_mean_sizes_are_those_of_the_values() -> None:
    X, _ = data(200)
    explainer = fs.TreeExplainer(boosted(), X)
    weights = np.random.default_rng(1).uniform(size=200)
    found = explainer.importance(X, weights=weights)
    sizes = np.abs(explainer.shap_values(X))
    np.testing.assert_allclose(found.values[:, 0], np.average(sizes, axis=0, weights=weights), atol=1e-6)
    assert (found.low <= found.values).all()
    assert (found.low >= 0).all()
    assert found.p_values is None


def test_squared_error_is_the_definition_where_all_coalitions_are_payable() -> None:
    X, y = data(25, 1)
    background = data(12, 2)[0]
    model = boosted()
    share = np.random.default_rng(0).uniform(0.5, 2, size=12)
    found = fs.TreeExplainer(model, background, weights=share, precision="double").importance(X, y)
    truth = sage(model.predict, X, y, background, squared, share)
    assert found.method == "exact"
    np.testing.assert_allclose(found.values[:, 0], truth.mean(axis=0), atol=1e-9)
    assert found.saved == pytest.approx(found.values.sum())
    assert (found.error == 0).all()


def test_log_loss_of_margins_and_of_probabilities_is_the_definition() -> None:
    X, y = data(20, 1)
    background, labels = data(10, 2)[0], (y > 0).astype(int)
    rows, target = data(300)
    model = GradientBoostingClassifier(n_estimators=10, max_depth=2, random_state=0).fit(rows, target > 0)
    found = fs.TreeExplainer(model, background, precision="double").importance(X, labels, loss="log_loss")

    def of_margin(v: np.ndarray, label: float) -> np.ndarray:
        return np.asarray(np.log1p(np.exp(v[:, 0])) - label * v[:, 0])

    truth = sage(model.decision_function, X, labels, background, of_margin)
    np.testing.assert_allclose(found.values[:, 0], truth.mean(axis=0), atol=1e-8)
    by_default = fs.TreeExplainer(model, background, precision="double").importance(X, labels)
    assert by_default.loss == "log_loss"  # a squared error between log odds and labels would mean nothing
    np.testing.assert_array_equal(by_default.values, found.values)
    forest = RandomForestClassifier(5, max_depth=3, random_state=0).fit(rows, np.digitize(target, [-1, 1]))
    classes = np.digitize(y, [-1, 1])
    found = fs.TreeExplainer(forest, background, precision="double").importance(X, classes, loss="log_loss")

    def of_share(v: np.ndarray, label: int) -> np.ndarray:
        return np.asarray(-np.log(np.clip(v[:, label], 1e-7, None)))

    truth = sage(forest.predict_proba, X, classes, background, of_share)
    np.testing.assert_allclose(found.values[:, 0], truth.mean(axis=0), atol=1e-8)


def test_spectra_and_black_boxes_are_the_definition_too() -> None:
    rng = np.random.default_rng(0)
    X, background = (rng.integers(0, 2, size=(n, 4)).astype(np.uint8) for n in (20, 10))
    y = rng.normal(size=20)
    spectrum = fs.walsh_hadamard(lambda x: 3.0 * x[:, 0] * x[:, 1] - x[:, 2] * x[:, 3] + x[:, 3], n_bits=4)
    truth = sage(spectrum, X, y, background, squared).mean(axis=0)
    found = fs.Explainer(spectrum, background).importance(X, y)
    np.testing.assert_allclose(found.values[:, 0], truth, atol=1e-9)
    box = explain_fitted(
        lambda rows: spectrum(rows.astype(np.uint8)), background.astype(float), method="enumerate"
    )
    found = box.importance(X.astype(float), y)
    np.testing.assert_allclose(found.values[:, 0], truth, atol=1e-9)


def test_a_linear_model_has_nothing_to_estimate() -> None:
    """The additive part is all there is: drawing orders of players adds exactly nothing."""
    X, y = data(60, 1)
    background = data(10, 2)[0]
    model = LinearRegression().fit(*data(300))
    found = fs.Explainer(model, background).importance(X, y, budget=2000)
    truth = sage(model.predict, X, y, background, squared)
    assert found.method == "sampled"
    np.testing.assert_allclose(found.values[:, 0], truth.mean(axis=0), atol=1e-9)
    assert found.error.max() < 1e-9


@pytest.mark.parametrize("loss", ["squared_error", "log_loss"])
def test_estimates_agree_with_the_definition_within_their_error(loss: str) -> None:
    X, y = data(300, 1)
    background = data(40, 2)[0]
    rows, target = data(300)
    if loss == "log_loss":
        y, target = (y > 0).astype(float), target > 0
        model: Any = GradientBoostingClassifier(n_estimators=20, max_depth=3, random_state=0).fit(
            rows, target
        )
    else:
        model = boosted()
    explainer = fs.TreeExplainer(model, background)
    exact = explainer.importance(X, y, loss=loss, budget=10**7)
    assert exact.method == "exact"
    for seed in range(3):
        found = explainer.importance(X, y, loss=loss, budget=16 * 3 * 300 * (1 + 3 * seed), random_state=seed)
        assert (found.method, found.n_sampled) == ("sampled", 300)
        gap = np.abs(found.values - exact.values)[:, 0]
        assert (gap < 4.5 * found.error + 1e-9).all(), gap / found.error
        assert found.saved == pytest.approx(exact.saved)


def test_streams_say_the_same_as_one_frame() -> None:
    X, y = data(1000, 1)
    explainer = fs.TreeExplainer(boosted(), data(50, 2)[0], precision="double")
    whole = explainer.importance(X)
    parts = explainer.importance(X[k : k + 300] for k in range(0, 1000, 300))
    np.testing.assert_allclose(parts.values, whole.values, rtol=1e-9)
    np.testing.assert_allclose(parts.high, whole.high, rtol=1e-9)
    np.testing.assert_allclose(explainer.importance(X.astype(object)).values, whole.values, rtol=1e-9)
    labelled = explainer.importance(
        ((X[k : k + 300], y[k : k + 300]) for k in range(0, 1000, 300)), budget=10_000
    )
    assert labelled.n_rows == 1000
    assert labelled.n_sampled == 10_000 // 48
    np.testing.assert_allclose(
        labelled.p_values, explainer.importance(X, y, budget=10_000).p_values, rtol=1e-6
    )


def test_players_that_only_fit_noise_are_found_out() -> None:
    """The test keeps its size for columns that only the model knows, and finds those that matter."""
    hits, n = np.zeros(6), 40
    for seed in range(n):
        X, y = data(200, seed, 6)
        model = GradientBoostingRegressor(n_estimators=30, max_depth=3, random_state=0).fit(X, y)
        new, labels = data(300, 1000 + seed, 6)
        found = fs.TreeExplainer(model, X, n_jobs=1).importance(new, labels, budget=50)
        hits += np.asarray(found.p_values) < 0.05
    assert (hits[:2] >= 0.9 * n).all(), hits
    assert (hits[2:] <= 5).all(), hits  # 5 of 40 or more at a size of 5 % has odds of 1 in 20 per column


def test_intervals_cover() -> None:
    rng = np.random.default_rng(3)
    rows, target = data(1000)
    target = (
        target + np.abs(rows[:, 2]) + rows[:, 3]
    )  # a player with few values that are not 0 needs more rows
    model = GradientBoostingRegressor(n_estimators=20, max_depth=3, random_state=0).fit(rows, target)
    explainer = fs.TreeExplainer(model, data(60, 2)[0], strategy="tables", n_jobs=1)
    X, y = data(20_000, 5)
    truth = explainer.importance(X).values
    saved = explainer.importance(X[:3000], y[:3000], budget=3000 * 60 * 16).values
    size, loss, n = np.zeros(4), np.zeros(4), 80
    for _ in range(n):
        some = rng.integers(20_000, size=80)
        found = explainer.importance(X[some])
        size += ((found.low <= truth) & (truth <= found.high))[:, 0]
        some = rng.integers(3000, size=200)
        judged = explainer.importance(
            X[some], y[some], budget=48 * 1500, random_state=int(rng.integers(1000))
        )
        loss += ((judged.low <= saved) & (saved <= judged.high))[:, 0]
    assert (size / n >= 0.87).all(), size / n
    assert (loss / n >= 0.87).all(), loss / n


def test_frames_pictures_and_errors() -> None:
    X, y = data(60, 1)
    frame = pd.DataFrame(X, columns=list("abcd"))
    explainer = fs.TreeExplainer(boosted(), frame)
    found = explainer.importance(frame, y)
    assert list(found.frame().columns) == ["feature", "importance", "low", "high", "p_value", "error"]
    assert json.loads(found.to_json())["loss"] == "squared_error"
    assert "p = " in repr(found)
    pytest.importorskip("matplotlib").use("Agg")
    assert found.plot(top_k=3) is not None
    for arguments, words in (
        ({"loss": "squared_error"}, "without y"),
        ({"y": y[:3]}, "y has shape"),
        ({"y": y, "loss": "log_loss"}, "link='logit'"),
        ({"y": y, "loss": "log_loss", "link": "logit"}, "labels other than 0 to 1"),
        ({"y": np.full(60, np.nan)}, "missing"),
        ({"y": y, "loss": "hinge"}, "loss is 'hinge'"),
        ({"budget": 0}, "budget is 0"),
    ):
        with pytest.raises(fs.InputError, match=words):
            explainer.importance(frame, **arguments)  # type: ignore[arg-type]
    with pytest.raises(fs.InputError, match="Give background="):
        fs.TreeExplainer(boosted()).importance(X, y)
    with pytest.raises(fs.InputError, match="batch 1 lacks labels"):
        explainer.importance([(frame, y), frame])


def test_classes_by_their_names() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    for names in (["minor", "severe"], ["a", "b", "c"]):
        which = np.digitize(X[:, 0], [0] if len(names) == 2 else [-0.5, 0.5])
        model = GradientBoostingClassifier(n_estimators=4, random_state=0).fit(X, np.array(names)[which])
        explainer = fs.TreeExplainer(model, X)
        by_name = explainer.importance(X, np.array(names)[which])
        np.testing.assert_array_equal(by_name.values, explainer.importance(X, which).values)
        with pytest.raises(fs.InputError, match="y holds the label 'other'; the model knows"):
            explainer.importance(X, ["other", "odd", *["a"] * 118])


def test_the_log_of_a_prediction_is_not_compared_with_labels() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y = rng.poisson(np.exp(X[:, 0]))
    model = HistGradientBoostingRegressor(loss="poisson", max_iter=4).fit(X, y)
    with pytest.raises(fs.InputError, match="log of the prediction, which is not on the scale of y"):
        fs.TreeExplainer(model, X).importance(X, y)
    assert fs.TreeExplainer(model, X).importance(X, y, loss="squared_error").names
    assert fs.TreeExplainer(model, X, output="response").importance(X, y).values[0, 0] > 0


def test_classes_of_a_forest_are_compared_by_the_log_loss() -> None:
    X = np.random.default_rng(0).normal(size=(120, 3))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    explainer = fs.TreeExplainer(RandomForestClassifier(5, max_depth=3, random_state=0).fit(X, y), X)
    assert explainer.importance(X, y).loss == "log_loss"
    assert explainer.importance(X, np.eye(3)[y]).loss == "squared_error"
