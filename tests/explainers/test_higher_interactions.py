"""`Explainer.interactions`: every kind of explainer, the answer as an object, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor, RandomForestClassifier

import fouriershap as fs
import oracles
from fitted_models import explain_fitted

NAMES = ["a", "b", "c", "d"]


def sample(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, 4))


def boosted() -> Any:
    X = sample(300, 0)
    y = 3 * X[:, 0] * (X[:, 1] > 0) * (X[:, 2] > 0) + np.abs(X[:, 2]) + X[:, 3]
    return GradientBoostingRegressor(n_estimators=10, max_depth=4, random_state=0).fit(X, y)


def truth(
    predict: Any, X: np.ndarray, background: np.ndarray, index: str, order: int, **game: Any
) -> list[dict[tuple[int, ...], np.ndarray]]:
    players = game.pop("players", np.arange(X.shape[1]))
    n = int(players.max()) + 1
    games = [oracles.coalition_values(predict, row, background, players, **game) for row in X]
    return [oracles.set_interactions(v, n, index, order) for v in games]


@pytest.mark.parametrize("index", ["k-SII", "STII", "FSII", "SII"])
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_trees_have_what_the_definition_says(index: str, order: int) -> None:
    model, X, background = boosted(), sample(4, 1), sample(20, 2)
    weights = np.random.default_rng(3).uniform(0.5, 2, size=20)
    explainer = fs.TreeExplainer(model, background, weights=weights, feature_names=NAMES)
    found = explainer.interactions(X, order=order, index=index)
    for r, want in enumerate(truth(model.predict, X, background, index, order, weights=weights)):
        for players, value in want.items():
            assert found.value_of(*players)[r] == pytest.approx(value[0], abs=1e-9)
    if index != "SII":
        np.testing.assert_allclose(found.base + found.values.sum(axis=1), model.predict(X), atol=1e-9)
        np.testing.assert_array_equal(found.rest, 0.0)
    if order == 1:
        np.testing.assert_allclose(found.value_of("b"), explainer.shap_values(X)[:, 1], atol=1e-6)


def test_order_two_is_what_matrices_hold() -> None:
    explainer = fs.TreeExplainer(boosted(), sample(30, 2), feature_names=NAMES)
    X = sample(6, 1)
    matrices = explainer.shap_interaction_values(X)
    found = explainer.interactions(X, order=2, index="k-SII")
    for i in range(4):
        np.testing.assert_allclose(found.value_of(i), matrices[:, i, i], atol=1e-6)
        for j in range(i):
            np.testing.assert_allclose(found.value_of(i, j), 2 * matrices[:, i, j], atol=1e-6)


def test_groups_and_several_outputs() -> None:
    X, y = make_classification(200, 6, n_informative=5, n_redundant=0, n_classes=3, random_state=0)
    model = RandomForestClassifier(5, max_depth=5, random_state=0).fit(X, y)
    groups = {"first": [0, 3], "second": [1], "third": [2, 4], "fourth": [5]}
    players = np.array([0, 1, 2, 0, 2, 3])
    found = fs.TreeExplainer(model, X[:15], groups=groups).interactions(X[20:22], order=3, index="FSII")
    for r, want in enumerate(truth(model.predict_proba, X[20:22], X[:15], "FSII", 3, players=players)):
        for those, value in want.items():
            np.testing.assert_allclose(found.value_of(*those)[r], value, atol=1e-9)
    assert found.values.shape == (2, len(found), 3)
    frame = found.frame()
    assert list(frame.columns) == ["set", "size", "output", "mean", "strength"]
    assert len(frame) == 3 * len(found)


def spectrum(background: np.ndarray) -> tuple[Any, Any]:
    h = fs.walsh_hadamard(lambda x: 3.0 * x[:, 0] * x[:, 1] * x[:, 2] - x[:, 2] + x[:, 3], n_bits=4)
    return fs.Explainer(h, background), h


def black_box(background: np.ndarray) -> tuple[Any, Any]:
    def model(rows: np.ndarray) -> Any:
        return rows[:, 0] * rows[:, 1] * rows[:, 3] + rows[:, 2]

    return explain_fitted(model, background.astype(float), method="enumerate"), model


def probability(background: np.ndarray) -> tuple[Any, Any]:
    X = np.random.default_rng(5).integers(0, 2, size=(200, 4))
    model = GradientBoostingClassifier(n_estimators=8, random_state=0).fit(X, X.sum(axis=1) > 2)
    explainer = fs.TreeExplainer(model, background, output="probability", exact=True)
    return explainer, lambda rows: model.predict_proba(rows)[:, 1]


@pytest.mark.parametrize("make", [spectrum, black_box, probability])
def test_every_representation_that_can(make: Any) -> None:
    rng = np.random.default_rng(0)
    background, X = (rng.integers(0, 2, size=(n, 4)).astype(np.uint8) for n in (12, 3))
    explainer, predict = make(background)
    found = explainer.interactions(X, order=3, index="STII")
    for r, want in enumerate(truth(predict, X, background, "STII", 3)):
        for players, value in want.items():
            assert found.value_of(*players)[r] == pytest.approx(float(value[0]), abs=1e-9)


def test_the_answer_is_an_object(tmp_path: Path) -> None:
    X = pd.DataFrame(sample(50, 1), columns=NAMES)
    explainer = fs.TreeExplainer(boosted(), X, feature_names=NAMES)
    whole = explainer.interactions(X, order=3)
    found = explainer.interactions(X, order=3, top_k=5)
    assert len(found) == 5 and found.n_met == len(whole) and found.sets == whole.sets[:5]
    total = found.base + found.values.sum(axis=1) + found.rest
    np.testing.assert_allclose(total, explainer.predict(X), atol=1e-6)
    assert repr(found).startswith(f"Interactions(k-SII of order 3, 50 rows, 5 of {len(whole)} sets")
    frame = found.frame()
    assert isinstance(frame, pd.DataFrame) and frame["strength"].is_monotonic_decreasing
    np.testing.assert_allclose(frame["mean"], found.values.mean(axis=0))
    answer = json.loads(found.to_json(tmp_path / "answer.json"))
    assert answer["analysis"] == "interactions" and answer["rows"][0]["set"] == found.names[0]
    assert json.loads((tmp_path / "answer.json").read_text()) == answer
    row = found.row(7)
    assert row["value"].abs().is_monotonic_decreasing
    assert dict(zip(row["set"], row["value"], strict=True))[found.names[2]] == found.values[7, 2]
    triples = explainer.interactions(X, order=3, min_order=3)
    assert {len(players) for players in triples.sets} == {3}
    np.testing.assert_allclose(triples.value_of("a", "b", "c"), whole.value_of("c", "b", "a"), atol=1e-12)
    for axes in (found.plot(top_k=3), found.plot(row=7)):
        assert axes.get_title().startswith("k-SII of order 3")


def test_another_background() -> None:
    X, other = sample(5, 1), sample(9, 4)
    model = boosted()
    here = fs.TreeExplainer(model, sample(30, 2)).interactions(X, background=other)
    there = fs.TreeExplainer(model, other).interactions(X)
    np.testing.assert_array_equal(here.values, there.values)


def test_what_is_refused(tmp_path: Path) -> None:
    X = sample(20, 1)
    model = boosted()
    explainer = fs.TreeExplainer(model, X)
    for options, match in (
        ({"order": 0}, "order is 0"),
        ({"index": "SHAP"}, "index is 'SHAP'"),
        ({"top_k": 0}, "top_k is 0"),
        ({"min_order": 4}, "min_order is 4"),
    ):
        with pytest.raises(fs.InputError, match=match):
            explainer.interactions(X, **options)
    with pytest.raises(fs.InputError, match="0 rows"):
        explainer.interactions(X[:0])
    found = explainer.interactions(X, top_k=2)
    with pytest.raises(fs.InputError, match="not among the 2 strongest"):
        found.value_of(1, 2, 3)
    with pytest.raises(fs.InputError, match="different"):
        found.value_of(1, 1)
    with pytest.raises(fs.InputError, match="there are 20 rows"):
        found.row(20)
    with pytest.raises(fs.InputError, match="index='banzhaf'"):
        fs.TreeExplainer(model, X, index="banzhaf").interactions(X)
    with pytest.raises(fs.InputError, match="have no interactions"):
        classifier = GradientBoostingClassifier(n_estimators=3).fit(X, X[:, 0] > 0)
        fs.TreeExplainer(classifier, X, output="probability").interactions(X)
    explainer.save(tmp_path / "explainer.fshap")
    with pytest.raises(fs.InputError, match="with_background"):
        fs.load(tmp_path / "explainer.fshap").interactions(X)
