"""Cohorts: means of groups, differences from the others, and trees that find groups."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingRegressor

import fouriershap as fs
from fouriershap.analysis import cohort_tree
from fouriershap.analysis.cohort_tree import Split, describe_leaf, find_leaves, grow
from fouriershap.analysis.moments import student_quantile
from oracles import shap_values, variance_freedom


def data(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, 3))


def target(X: np.ndarray) -> Any:
    return np.where(X[:, 0] > 0.3, 3 * X[:, 1], -1.0) + X[:, 2]


def boosted() -> Any:
    X = data(500)
    return GradientBoostingRegressor(n_estimators=30, max_depth=3, random_state=0).fit(X, target(X))


def test_means_and_differences_are_the_definition() -> None:
    background, X = data(15, 1), data(30, 2)
    model = boosted()
    by, weights = (
        np.array(["a", "b", "c"])[np.arange(30) % 3],
        np.random.default_rng(0).uniform(0.5, 2, size=30),
    )
    found = fs.TreeExplainer(model, background, precision="double").cohorts(X, by, weights=weights)
    values = shap_values(model.predict, X, background)[:, :, 0]
    assert found.groups == ("a", "b", "c")
    for g, group in enumerate("abc"):
        mine = by == group
        mean = np.average(values[mine], axis=0, weights=weights[mine])
        rest = np.average(values[~mine], axis=0, weights=weights[~mine])
        np.testing.assert_allclose(found.values[g, :, 0], mean, atol=1e-9)
        np.testing.assert_allclose(found.differences[g, :, 0], mean - rest, atol=1e-9)
        prediction = np.average(model.predict(X[mine]), weights=weights[mine])
        assert found.predictions[g, 0] == pytest.approx(prediction)


def test_differences_count_the_background_they_share() -> None:
    """By brute force over pairs of rows: what a background row brings to the difference of two groups."""
    background, X = data(12, 1), data(20, 2)
    model = boosted()
    first = np.arange(20) < 8
    found = fs.TreeExplainer(model, background, precision="double").cohorts(X, ~first)
    pairs = np.stack([shap_values(model.predict, X, b[None])[:, :, 0] for b in background], axis=1)
    rows, shared = pairs.mean(axis=1), pairs[first].mean(axis=0) - pairs[~first].mean(axis=0)
    samples = (rows[first], rows[~first], shared)
    parts = [(each.var(axis=0, ddof=1) / len(each), variance_freedom(each)) for each in samples]
    variance = np.sum([part for part, _ in parts], axis=0)
    freedom = variance**2 / np.sum([part**2 / v for part, v in parts], axis=0)
    half = student_quantile(1.959963984540054, freedom) * np.sqrt(variance)
    np.testing.assert_allclose((found.difference_high - found.difference_low)[0, :, 0] / 2, half, rtol=1e-7)


def test_the_tree_finds_the_split_that_was_planted() -> None:
    X = data(2000, 3)
    explainer = fs.TreeExplainer(boosted(), data(200, 1))
    found = explainer.cohorts(X, max_leaves=2)
    assert len(found.groups) == 2
    assert found.n_rows.sum() == 1000
    name, cut = found.groups[0].split(" < ")
    assert name in ("Feature 0", "Feature 1")
    assert found.groups[1] == f"{name} >= {cut}"
    four = explainer.cohorts(X)
    assert 3 <= len(four.groups) <= 4
    assert explainer.cohorts(X, random_state=1).groups is not None
    # A split never explains less of the values than no split: groups differ where the tree says so.
    k = found.names.index(name)
    assert found.difference_low[1, k, 0] > 0 or found.difference_high[1, k, 0] < 0


def test_labels_and_missing_values_in_trees() -> None:
    X = data(400, 3)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["kind"] = pd.Categorical(np.where(np.random.default_rng(9).random(400) > 0.5, "yes", "no"))
    frame.loc[::9, "b"] = np.nan
    lightgbm = pytest.importorskip("lightgbm")
    y = np.where(frame["kind"] == "yes", 5.0, 0.0) + X[:, 2]
    model = lightgbm.LGBMRegressor(n_estimators=20, verbose=-1).fit(frame, y)
    found = fs.TreeExplainer(model, frame).cohorts(frame, max_leaves=2)
    assert sorted(found.groups) == ["kind is no", "kind is not no"]
    alone = fs.TreeExplainer(model, frame).cohorts(frame, by="kind")
    assert alone.groups == ("no", "yes")


def test_leaves_read_as_people_say_them() -> None:
    path = (
        (Split(0, 2.0, False, True), False),
        (Split(1, "red", True), True),
        (Split(0, 1.0, False, True), True),
    )
    assert describe_leaf(path, ("a", "b")) == "1 <= a < 2 and b is red"
    assert describe_leaf(path[:1], ("a", "b")) == "a < 2 or missing"
    assert describe_leaf((), ("a", "b")) == "all rows"
    column = np.array([np.nan, 1.0, 1.0, np.nan] * 10)  # whether it is missing is all there is to ask
    (low, high) = grow([column], np.nan_to_num(column)[:, None], 4)
    assert (describe_leaf(low, ("a",)), describe_leaf(high, ("a",))) == ("a < 1 or missing", "a >= 1")
    assert find_leaves([low, high], [column]).tolist() == [0, 1, 1, 0] * 10


def test_groups_that_do_not_differ_are_not_said_to() -> None:
    rng = np.random.default_rng(1)
    explainer = fs.TreeExplainer(boosted(), data(100, 1), strategy="tables", n_jobs=1)
    X, hits, n = data(20_000, 4), np.zeros(3), 200
    for _ in range(n):
        some = rng.integers(20_000, size=100)
        found = explainer.cohorts(X[some], rng.random(100) < 0.4)
        hits += ((found.difference_low <= 0) & (found.difference_high >= 0))[0, :, 0]
    assert (hits / n >= 0.90).all(), hits / n
    assert (hits / n <= 0.99).all(), hits / n


def test_frames_pictures_and_errors() -> None:
    X = data(60, 1)
    explainer = fs.TreeExplainer(boosted(), X)
    found = explainer.cohorts(X, X[:, 0], bins=3)
    assert len(found.frame()) == 9
    assert json.loads(found.to_json())["groups"] == list(found.groups)
    assert "group minus all others" in repr(found)
    one = explainer.cohorts(X, np.zeros(60))
    assert np.isnan(one.differences).all()
    pytest.importorskip("matplotlib").use("Agg")
    assert found.plot(top_k=2) is not None
    with pytest.raises(fs.InputError, match="leaves is 5"):
        explainer.cohorts(X, max_leaves=5)
    with pytest.raises(fs.InputError, match="needs 40"):
        explainer.cohorts(X[:10])


def test_conditions_that_allow_for_missing_numbers_stand_in_brackets() -> None:
    low, high = cohort_tree.Split(0, 5.0, False, True), cohort_tree.Split(1, 2.0, False)
    names = ("age", "debt")
    assert cohort_tree.describe_leaf(((low, False),), names) == "age < 5 or missing"
    assert (
        cohort_tree.describe_leaf(((low, False), (high, True)), names) == "(age < 5 or missing) and debt >= 2"
    )
