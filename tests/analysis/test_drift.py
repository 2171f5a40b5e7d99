"""Drift: exact against the definition, antisymmetric, with intervals that cover."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

import fouriershap as fs
from fitted_models import explain_fitted
from fouriershap.analysis.moments import Moments, interval, student_quantile
from oracles import coalition_values, interaction_matrix, shap_values, variance_freedom


def sample(n: int, seed: int, n_columns: int = 4, shift: float = 0.0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, n_columns)) + shift


def forest() -> Any:
    X = sample(300, 0)
    return GradientBoostingRegressor(n_estimators=8, max_depth=3, random_state=0).fit(
        X, 3 * X[:, 0] * X[:, 1] + np.abs(X[:, 2]) + X[:, 3]
    )


def explainer_of(kind: str, background: np.ndarray) -> tuple[Any, Any]:
    """An explainer, and the function that it explains."""
    if kind == "trees":
        model = forest()
        return fs.TreeExplainer(model, background, precision="double"), model.predict
    if kind == "products":
        X = sample(300, 0)
        linear = LinearRegression().fit(X, X @ [1.0, -2.0, 0.5, 0.0])
        return fs.Explainer(linear, background), linear.predict
    if kind == "spectrum":
        spectrum = fs.walsh_hadamard(lambda x: 3.0 * x[:, 0] * x[:, 1] - x[:, 2] + x[:, 3], n_bits=4)
        return fs.Explainer(spectrum, (background > 0).astype(np.uint8)), spectrum

    def model(rows: np.ndarray) -> Any:
        return rows[:, 0] * rows[:, 1] + rows[:, 2]

    bits = (background > 0).astype(float)
    return explain_fitted(model, bits, method="enumerate"), model


@pytest.mark.parametrize("kind", ["trees", "products", "spectrum", "black box"])
def test_drift_is_the_definition_and_adds_up(kind: str) -> None:
    background, new = sample(30, 1), sample(20, 2, shift=0.3)
    explainer, predict = explainer_of(kind, background)
    if kind in ("spectrum", "black box"):
        background, new = ((rows > 0).astype(float) for rows in (background, new))
    weights = np.random.default_rng(3).uniform(0.5, 2, size=20)
    drift = explainer.drift(new.astype(np.uint8) if kind == "spectrum" else new, weights=weights)
    truth = np.average(shap_values(predict, new, background), axis=0, weights=weights)
    np.testing.assert_allclose(drift.values[0], truth, atol=1e-9)
    change = np.average(predict(new), weights=weights) - predict(background).mean()
    np.testing.assert_allclose(drift.values.sum(axis=1)[0], change, atol=1e-9)
    np.testing.assert_allclose(drift.change[0], change, atol=1e-9)
    assert drift.counts_background
    assert (drift.low <= drift.values + 1e-12).all()
    assert (drift.values <= drift.high + 1e-12).all()


def test_background_rows_bring_what_pairs_say() -> None:
    """The variance has the first-order terms of both samples, by brute force over all pairs of rows."""
    background, new = sample(15, 1), sample(12, 2, shift=0.3)
    model = forest()
    pairs = np.stack([shap_values(model.predict, new, b[None])[:, :, 0] for b in background], axis=1)
    by_new, by_old = pairs.mean(axis=1), pairs.mean(axis=0)  # (rows, players)
    variance = by_new.var(axis=0, ddof=1) / 12 + by_old.var(axis=0, ddof=1) / 15
    drift = fs.TreeExplainer(model, background, precision="double").drift(new)
    welch = variance**2 / sum(
        (rows.var(axis=0, ddof=1) / len(rows)) ** 2 / variance_freedom(rows) for rows in (by_new, by_old)
    )
    half = student_quantile(1.959963984540054, welch) * np.sqrt(variance)
    np.testing.assert_allclose((drift.high - drift.low)[0, :, 0] / 2, half, rtol=1e-7)


@pytest.mark.parametrize("freedom", [5.0, 12.0, 60.0])
def test_student_quantiles(freedom: float) -> None:
    stats = pytest.importorskip("scipy.stats")
    z = stats.norm.ppf(0.975)
    assert float(student_quantile(z, np.array(freedom))) == pytest.approx(
        stats.t.ppf(0.975, freedom), rel=5e-3
    )


def test_drift_back_is_minus_the_drift() -> None:
    old, new = sample(40, 1), sample(25, 2, shift=0.4)
    there = fs.TreeExplainer(forest(), old, precision="double").drift(new)
    back = fs.TreeExplainer(forest(), new, precision="double").drift(old)
    np.testing.assert_allclose(there.values, -back.values, atol=1e-12)
    np.testing.assert_allclose(there.low, -back.high, atol=1e-12)


def test_interactions_are_the_definition() -> None:
    background, new = sample(10, 1), sample(8, 2, shift=0.3)
    model = forest()
    drift = fs.TreeExplainer(model, background, precision="double").drift(new, interactions=True)
    players = np.arange(4)
    matrices = [
        interaction_matrix(coalition_values(model.predict, row, background, players), 4) for row in new
    ]
    mean = np.mean(matrices, axis=0)[:, :, 0]
    found = dict(zip(drift.names, drift.values[0, :, 0], strict=True))
    for i in range(4):
        assert found[f"Feature {i}"] == pytest.approx(mean[i, i], abs=1e-9)
        for j in range(i + 1, 4):
            assert found.get(f"Feature {i} x Feature {j}", 0.0) == pytest.approx(2 * mean[i, j], abs=1e-9)
    assert drift.values.sum() == pytest.approx(model.predict(new).mean() - model.predict(background).mean())
    # Errors are those of brute force over the pairs of rows, which need the symmetry of interactions.
    alone = [
        np.mean(
            [interaction_matrix(coalition_values(model.predict, x, b[None], players), 4) for x in new], axis=0
        )
        for b in background
    ]
    by_old = np.stack(alone)[:, 0, 1, 0] * 2
    by_new = np.stack(matrices)[:, 0, 1, 0] * 2
    variance = by_old.var(ddof=1) / 10 + by_new.var(ddof=1) / 8
    freedom = variance**2 / sum(
        (rows.var(ddof=1) / len(rows)) ** 2 / variance_freedom(rows) for rows in (by_old, by_new)
    )
    half = float(student_quantile(1.959963984540054, np.array(freedom))) * variance**0.5
    k = drift.names.index("Feature 0 x Feature 1")
    assert (drift.high - drift.low)[0, k, 0] / 2 == pytest.approx(half)


def test_several_outputs_and_probabilities() -> None:
    X = sample(200, 0)
    y = np.digitize(X[:, 0] + X[:, 1], [-0.5, 0.5])
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(X, y)
    drift = fs.TreeExplainer(model, X[:100]).drift(X[100:] + 0.5)
    change = model.predict_proba(X[100:] + 0.5).mean(axis=0) - model.predict_proba(X[:100]).mean(axis=0)
    np.testing.assert_allclose(drift.values[0].sum(axis=0), change, atol=1e-6)
    binary = HistGradientBoostingClassifier(max_iter=5, random_state=0).fit(X, y > 0)
    explainer = fs.TreeExplainer(binary, X[:30], output="probability")
    share = explainer.drift(X[30:60])
    change = binary.predict_proba(X[30:60])[:, 1].mean() - binary.predict_proba(X[:30])[:, 1].mean()
    assert share.change[0, 0] == pytest.approx(change, abs=1e-6)
    assert drift.outputs == ("0", "1", "2") and share.outputs == ("probability of True",)
    title = share.plot(output="True").get_title()
    assert title.startswith("mean probability of True ")
    reasons = explainer.reasons(X[:3], output="probability of True")
    assert reasons.frame().to_dict() == explainer.reasons(X[:3], output="True").frame().to_dict()
    with pytest.raises(fs.InputError, match="output names 'False'"):
        share.plot(output="False")
    # Rescaled values of pairs of rows are antisymmetric, too.
    back = fs.TreeExplainer(binary, X[30:60], output="probability").drift(X[:30])
    np.testing.assert_allclose(share.low, -back.high, atol=1e-6)


def test_a_series_over_time_from_a_column_that_is_no_feature() -> None:
    model, old = forest(), sample(60, 1)
    names = ["a", "b", "c", "d"]
    explainer = fs.TreeExplainer(model, pd.DataFrame(old, columns=names))
    new = pd.DataFrame(sample(90, 2), columns=names)
    new["when"] = pd.date_range("2025-01-30", periods=90, freq="D")
    drift = explainer.drift(new, by="when", every="month")
    assert drift.groups == ("2025-01", "2025-02", "2025-03", "2025-04")
    assert drift.n_rows.tolist() == [2, 28, 31, 29]
    february = new[new["when"].dt.month == 2][names]
    alone = explainer.drift(february)
    np.testing.assert_allclose(drift.values[1], alone.values[0], atol=1e-9)
    np.testing.assert_allclose(drift.high[1], alone.high[0], atol=1e-6)
    frame = drift.frame()
    assert list(frame.columns) == ["group", "feature", "change", "low", "high"]
    assert len(frame) == 16
    assert explainer.drift(new[names], by=new["when"].astype(str), every="quarter").groups == (
        "2025-Q1",
        "2025-Q2",
    )
    assert explainer.drift(new[names], by=new["when"].to_numpy(), every="week").groups[0] == "2025-01-27"
    assert explainer.drift(new[names], by="a", bins=3).n_rows.sum() == 90


def test_one_row_constant_columns_and_missing_values() -> None:
    X = sample(80, 0)
    X[:, 3] = 1.0
    X[::7, 0] = np.nan
    model = DecisionTreeRegressor(max_depth=4, random_state=0).fit(X, np.nan_to_num(X[:, 0]) + X[:, 1])
    explainer = fs.TreeExplainer(model, X)
    one = explainer.drift(X[:1])
    assert np.isnan(one.low).all()
    assert one.change[0, 0] == pytest.approx(model.predict(X[:1])[0] - model.predict(X).mean(), abs=1e-6)
    drift = explainer.drift(X[:40])
    assert drift.values[0, 3, 0] == drift.low[0, 3, 0] == drift.high[0, 3, 0] == 0
    assert json.loads(one.to_json())["rows"][0]["low"] is None


def test_loaded_explainers_count_the_new_rows_alone_unless_given_the_background(tmp_path: Any) -> None:
    old, new = sample(60, 1), sample(50, 2)
    explainer = fs.TreeExplainer(forest(), old)
    explainer.save(tmp_path / "model.fshap")
    loaded = fs.load(tmp_path / "model.fshap")
    alone, both = loaded.drift(new), loaded.drift(new, background=old)
    assert not alone.counts_background
    assert "alone" in repr(alone)
    assert both.counts_background
    np.testing.assert_allclose(both.high, explainer.drift(new).high, atol=1e-6)
    assert ((alone.high - alone.low) < (both.high - both.low)).all()
    by_path = fs.TreeExplainer(forest()).drift(new)
    assert not by_path.counts_background


def test_answers_are_written_and_drawn(tmp_path: Any) -> None:
    drift = fs.TreeExplainer(forest(), sample(60, 1)).drift(sample(50, 2), by=np.arange(50) % 2)
    text = drift.to_json(tmp_path / "drift.json")
    assert (tmp_path / "drift.json").read_text() == text
    assert json.loads(text)["analysis"] == "drift"
    pytest.importorskip("matplotlib").use("Agg")
    assert drift.in_order
    assert len(drift.plot(top_k=2).lines) == 2 * (1 + 2)  # the whole and two players, each with its zero
    depots = np.array(["north", "south"])[np.arange(50) % 2]
    named = fs.TreeExplainer(forest(), sample(60, 1)).drift(sample(50, 2), by=depots)
    assert not named.in_order  # no line leads from the north to the south
    assert [text.get_text() for text in named.plot(top_k=2).get_legend().get_texts()] == ["north", "south"]
    assert fs.TreeExplainer(forest(), sample(60, 1)).drift(sample(50, 2)).plot(top_k=2) is not None
    assert "both samples" in repr(drift)


def test_errors_name_the_argument() -> None:
    explainer, X = fs.TreeExplainer(forest(), sample(20, 1)), sample(5, 2)
    for arguments, words in (
        ({"by": "when"}, "no column names"),
        ({"by": [1, 2]}, "2 entries for 5 rows"),
        ({"level": 2}, "level is 2"),
        ({"weights": [1, 2]}, "weights has shape"),
        ({"weights": [0, 0, 1, 1, 1], "by": [0, 0, 1, 1, 1]}, "the group '0'"),
        ({"by": X[:, 0], "every": "month"}, "needs dates"),
        ({"by": ["a"] * 5, "bins": 2}, "needs numbers"),
        ({"background_weights": [1.0]}, "without background"),
    ):
        with pytest.raises(fs.InputError, match=words):
            explainer.drift(X, **arguments)  # type: ignore[arg-type]
    with pytest.raises(fs.InputError, match="0 rows"):
        explainer.drift(X[:0])
    with pytest.raises(fs.InputError, match="index='shapley'"):
        fs.TreeExplainer(forest(), X, index="banzhaf").drift(X)
    frame = pd.DataFrame(sample(300, 3), columns=list("abcd"))
    with pytest.raises(fs.InputError, match="bins="):
        fs.TreeExplainer(forest(), frame).drift(frame, by="a")


def test_intervals_cover() -> None:
    """Of skewed rows, weighted, both samples small: 90 to 97 % of the intervals hold the true change.

    The truth is the drift of large samples; players interact, so that the background's error matters.
    """
    rng = np.random.default_rng(5)
    X = rng.exponential(size=(2000, 3))
    model = GradientBoostingRegressor(n_estimators=15, max_depth=3, random_state=0).fit(
        X, X[:, 0] * X[:, 1] + X[:, 2]
    )
    engine = fs.TreeExplainer(model, X, strategy="tables", n_jobs=1)
    draw_old = rng.exponential(size=(60_000, 3))
    draw_new = rng.exponential(size=(60_000, 3)) * [1.4, 1.0, 0.8]
    truth = engine.with_background(draw_old).drift(draw_new, level=None).values[0, :, 0]
    hits, n = np.zeros(3), 400
    for _ in range(n):
        old, new = draw_old[rng.integers(60_000, size=70)], draw_new[rng.integers(60_000, size=50)]
        found = engine.with_background(old).drift(new)
        hits += (found.low[0, :, 0] <= truth) & (truth <= found.high[0, :, 0])
    assert (hits / n >= 0.90).all(), hits / n
    assert (hits / n <= 0.975).all(), hits / n


def test_few_rows_with_most_of_the_spread_widen_the_interval() -> None:
    """95 % intervals of skewed samples with uneven weights hold the truth in 90 to 97 % of draws."""
    rng = np.random.default_rng(0)
    hits, n_draws = np.zeros(2), 2000
    for _ in range(n_draws):
        found = Moments()
        weights = rng.uniform(0.2, 2, size=30)
        found.add(np.stack([rng.normal(size=30), rng.exponential(size=30)], axis=1), weights)
        low, high = interval(found.mean, [found.error()], 0.95)
        hits += (low <= [0, 1]) & (high >= [0, 1])
    share = hits / n_draws
    assert (share > 0.915).all(), share
    assert (share < 0.97).all(), share
