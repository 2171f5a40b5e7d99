"""LightGBM's linear trees: values by the definition, asking LightGBM itself about every hybrid row."""

from __future__ import annotations

import pickle
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import fouriershap as fs
from fouriershap._libraries import read
from oracles import coalition_values, interaction_matrix, set_interactions, shap_values

RNG = np.random.default_rng(0)
N_COLUMNS = 5
PLAYERS = np.arange(N_COLUMNS)
X = RNG.normal(size=(600, N_COLUMNS))
X[:, 3] += 100.0  # far from 0
X[:, 4] = RNG.integers(0, 5, len(X))  # a category
Y = X[:, 0] * X[:, 1] + np.maximum(X[:, 2], 0) + (X[:, 4] == 2) * X[:, 0] + 0.1 * X[:, 3]
HOLES = X.copy()
HOLES[:, :3][RNG.random((len(X), 3)) < 0.15] = np.nan
BACKGROUND, SOME_HOLES = X[:20], HOLES[:20]
ROWS = np.concatenate([X[30:33], HOLES[33:42]])
WEIGHTS = RNG.random(20)


FEW = {"n_estimators": 4, "num_leaves": 8, "verbose": -1, "n_jobs": 1}


def train(rows: Any = HOLES, target: Any = Y, kind: Any = lightgbm.LGBMRegressor, **options: Any) -> Any:
    options = {"n_estimators": 8, "num_leaves": 8, "linear_tree": True, "verbose": -1, "n_jobs": 1} | options
    return kind(**options).fit(rows, target, categorical_feature=[4])


def raw(model: Any) -> Any:
    return lambda rows: np.asarray(model.predict(rows, raw_score=True))


MODEL = train()
CLASSES = train(X, np.digitize(Y, [9.5, 11]), lightgbm.LGBMClassifier, n_estimators=4)
BINARY = train(HOLES, Y > 10, lightgbm.LGBMClassifier)


@pytest.mark.parametrize("strategy", ["auto", "tables", "walk", "stream"])
@pytest.mark.parametrize("background", [BACKGROUND, SOME_HOLES], ids=["whole", "holes"])
@pytest.mark.parametrize("model", [MODEL, CLASSES], ids=["numbers", "classes"])
def test_values_by_the_definition(model: Any, background: NDArray[Any], strategy: str) -> None:
    explainer = fs.TreeExplainer(model, background, weights=WEIGHTS, strategy=strategy)
    assert explainer.kind == "trees" and explainer.checked and explainer.quality.is_exact
    values = explainer.shap_values(ROWS, check_additivity=True)
    want = shap_values(raw(model), ROWS, background, weights=WEIGHTS)
    tolerance = 1e-12 if strategy in ("auto", "walk") else 1e-6
    np.testing.assert_allclose(values.reshape(want.shape), want, atol=tolerance)
    mean = np.average(raw(model)(background), axis=0, weights=WEIGHTS)
    np.testing.assert_allclose(explainer.expected_value, mean, atol=tolerance)
    total = values.sum(axis=1) + explainer.expected_value
    np.testing.assert_allclose(total, raw(model)(ROWS), atol=10 * tolerance)


@pytest.mark.parametrize(
    "options",
    [
        {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.5},
        {"boosting_type": "dart"},
        {"linear_lambda": 1.0, "num_leaves": 2},
    ],
    ids=lambda options: next(iter(options.values())),
)
def test_kinds_of_boosting(options: dict[str, Any]) -> None:
    model = train(**options)
    explainer = fs.TreeExplainer(model, SOME_HOLES)
    np.testing.assert_allclose(explainer.predict(HOLES), model.predict(HOLES), rtol=1e-12)
    want = shap_values(model.predict, ROWS[:6], SOME_HOLES)[:, :, 0]
    np.testing.assert_allclose(explainer.shap_values(ROWS[:6]), want, atol=1e-12)


def test_files_of_models_and_fewer_trees(tmp_path: Any) -> None:
    path = tmp_path / "model.txt"
    MODEL.booster_.save_model(path)
    explainer = fs.TreeExplainer(path, BACKGROUND)
    live = fs.TreeExplainer(MODEL, BACKGROUND)
    np.testing.assert_array_equal(explainer.shap_values(ROWS), live.shap_values(ROWS))
    few = fs.TreeExplainer(MODEL, BACKGROUND, tree_limit=3)
    np.testing.assert_allclose(few.predict(ROWS), MODEL.predict(ROWS, num_iteration=3), rtol=1e-12)
    one = fs.TreeExplainer(CLASSES, BACKGROUND, output=1)
    whole = fs.TreeExplainer(CLASSES, BACKGROUND).shap_values(ROWS)
    np.testing.assert_allclose(one.shap_values(ROWS), whole[:, :, 1], atol=1e-12)


def test_trees_that_are_linear_beside_others_that_are_not() -> None:
    plain = lightgbm.LGBMRegressor(**FEW).fit(X, Y)
    model = lightgbm.LGBMRegressor(**FEW, linear_tree=True)
    model.fit(X, Y, init_model=plain)
    explainer = fs.TreeExplainer(model, BACKGROUND)
    np.testing.assert_allclose(explainer.predict(ROWS), model.predict(ROWS), rtol=1e-12)


def test_frames_with_labels() -> None:
    frame = pd.DataFrame(HOLES, columns=list("abcde"))
    frame["e"] = pd.Categorical(np.array(["x", "y", "z", "u", "v"])[X[:, 4].astype(int)])
    model = lightgbm.LGBMRegressor(**FEW, linear_tree=True).fit(frame, Y)
    explainer = fs.TreeExplainer(model, frame[:20])
    values = explainer.shap_values(frame[30:60])
    total = values.sum(axis=1) + explainer.expected_value
    np.testing.assert_allclose(total, model.predict(frame[30:60]), rtol=1e-6)


@pytest.mark.parametrize("strategy", ["tables", "walk"])
def test_interactions(strategy: str) -> None:
    explainer = fs.TreeExplainer(MODEL, BACKGROUND, strategy=strategy)
    games = [coalition_values(raw(MODEL), row, BACKGROUND, PLAYERS) for row in ROWS[:6]]
    want = np.stack([interaction_matrix(v, N_COLUMNS)[..., 0] for v in games])
    np.testing.assert_allclose(explainer.shap_interaction_values(ROWS[:6]), want, atol=1e-6)
    found = explainer.interactions(ROWS[:1], order=3, index="STII")
    sets = set_interactions(games[0], N_COLUMNS, "STII", 3)
    for players, value in zip(found.sets, found.values[0], strict=True):
        names = tuple(sorted(explainer.feature_names.index(name) for name in players))
        np.testing.assert_allclose(value, sets[names][0], atol=1e-6)


def test_groups_and_indices() -> None:
    groups = {"both": [0, 3], "one": [1], "more": [2, 4]}
    owner = np.array([0, 1, 2, 0, 2])
    explainer = fs.TreeExplainer(MODEL, BACKGROUND, groups=groups)
    want = shap_values(raw(MODEL), ROWS, BACKGROUND, owner)[:, :, 0]
    np.testing.assert_allclose(explainer.shap_values(ROWS), want, atol=1e-12)
    owen = fs.TreeExplainer(MODEL, BACKGROUND, groups=groups, coalitions="owen").shap_values(ROWS)
    np.testing.assert_allclose(owen[:, [0, 3]].sum(axis=1), want[:, 0], atol=1e-12)
    banzhaf = fs.TreeExplainer(MODEL, BACKGROUND, index="banzhaf").shap_values(ROWS[:1])[0]
    v = coalition_values(raw(MODEL), ROWS[0], BACKGROUND, PLAYERS)[:, 0]
    sets = np.arange(1 << N_COLUMNS)
    for player in range(N_COLUMNS):
        without = sets[sets >> player & 1 == 0]
        np.testing.assert_allclose(
            banzhaf[player], (v[without | 1 << player] - v[without]).mean(), atol=1e-12
        )


def test_partial_dependence() -> None:
    explainer = fs.TreeExplainer(MODEL, BACKGROUND)
    grid = np.array([-1.0, 0.3, np.nan])
    found = explainer.engine.partial_means(np.column_stack([grid, *X[:3, 1:].T]), [(0,)])
    for row, number in enumerate(grid):
        hybrids = BACKGROUND.copy()
        hybrids[:, 0] = number
        np.testing.assert_allclose(found[row, 0, 0], MODEL.predict(hybrids).mean(), atol=1e-6)


@pytest.mark.parametrize("background", [BACKGROUND, SOME_HOLES], ids=["whole", "holes"])
def test_probabilities(background: NDArray[Any], tmp_path: Any) -> None:
    def probability(rows: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(BINARY.predict_proba(rows))[:, 1]

    exact = fs.TreeExplainer(BINARY, background, output="probability", exact=True)
    want = shap_values(probability, ROWS[:4], background)[:, :, 0]
    np.testing.assert_allclose(exact.shap_values(ROWS[:4]), want, atol=1e-10)
    # Rescaled: the values of the margin for each background row, times the slope between both margins.
    want = np.zeros((len(ROWS), N_COLUMNS))
    for b in background:
        values = shap_values(raw(BINARY), ROWS, b[None])[:, :, 0]
        gap = raw(BINARY)(ROWS) - raw(BINARY)(b[None])
        slope = (probability(ROWS) - probability(b[None])) / gap
        want += values * slope[:, None] / len(background)
    for strategy in ("auto", "tables", "walk"):
        explainer = fs.TreeExplainer(BINARY, background, output="probability", strategy=strategy)
        np.testing.assert_allclose(explainer.shap_values(ROWS), want, atol=1e-6)
        explainer.save(tmp_path / "probability.fshap")
        loaded = fs.load(tmp_path / "probability.fshap")
        np.testing.assert_allclose(loaded.shap_values(ROWS), want, atol=1e-6)
    loss = fs.TreeExplainer(BINARY, background, output="log_loss")
    labels = np.arange(len(ROWS)) % 2
    sums = loss.shap_values(ROWS, labels).sum(axis=1) + [loss.expected_loss(label) for label in labels]
    p = np.where(labels == 1, probability(ROWS), 1 - probability(ROWS))
    np.testing.assert_allclose(sums, -np.log(p), atol=1e-5)


@pytest.mark.parametrize("strategy", ["auto", "walk"])
def test_explainers_in_files(tmp_path: Any, strategy: str) -> None:
    explainer = fs.TreeExplainer(CLASSES, BACKGROUND, weights=WEIGHTS, strategy=strategy)
    explainer.save(tmp_path / "file.fshap", interactions=True)
    loaded = fs.load(tmp_path / "file.fshap")
    np.testing.assert_array_equal(loaded.shap_values(ROWS[:3]), explainer.shap_values(ROWS[:3]))
    np.testing.assert_array_equal(
        loaded.shap_interaction_values(ROWS[:3]), explainer.shap_interaction_values(ROWS[:3])
    )
    np.testing.assert_array_equal(loaded.expected_value, explainer.expected_value)
    np.testing.assert_array_equal(loaded.predict(ROWS), explainer.predict(ROWS))
    if strategy == "walk":
        np.testing.assert_array_equal(loaded.shap_values(ROWS), explainer.shap_values(ROWS))
    else:  # tables without the background do not know these rows
        with pytest.raises(fs.InputError, match="without background rows"):
            loaded.shap_values(ROWS)
        again = loaded.with_background(BACKGROUND, weights=WEIGHTS)
        np.testing.assert_allclose(again.shap_values(ROWS), explainer.shap_values(ROWS), atol=1e-6)


def test_other_backgrounds_copies_and_outputs(tmp_path: Any) -> None:
    explainer = fs.TreeExplainer(MODEL, BACKGROUND)
    other = explainer.with_background(SOME_HOLES)
    want = fs.TreeExplainer(MODEL, SOME_HOLES).shap_values(ROWS)
    np.testing.assert_array_equal(other.shap_values(ROWS), want)
    copy = pickle.loads(pickle.dumps(explainer.compile()))
    np.testing.assert_array_equal(copy.shap_values(ROWS), explainer.shap_values(ROWS))
    response = fs.TreeExplainer(MODEL, BACKGROUND, output="response")
    response.save(tmp_path / "response.fshap")
    assert fs.load(tmp_path / "response.fshap").output == response.output == "response"
    assert explainer.plan(10).strategy == "tables" and explainer.info.n_trees == 8


def test_a_long_tail_takes_double_precision() -> None:
    rows = X.copy()
    rows[5, 0] = -1e6  # a number that stands for "unknown"
    model = train(X)
    explainer = fs.TreeExplainer(model, rows[:20], strategy="tables")
    want = shap_values(raw(model), ROWS[:3], rows[:20])[:, :, 0]
    np.testing.assert_allclose(explainer.shap_values(ROWS[:3]), want, rtol=1e-9, atol=1e-9)


def test_what_is_refused() -> None:
    with pytest.raises(fs.InputError, match=r"means of its training rows in each leaf.*Give a background"):
        fs.TreeExplainer(MODEL)
    with pytest.raises(fs.InputError, match="Leave feature_perturbation out"):
        fs.TreeExplainer(MODEL, BACKGROUND, feature_perturbation="tree_path_dependent")
    endless = ROWS.copy()
    endless[1, 2] = np.inf
    with pytest.raises(fs.InputError, match="X has an infinite number in row 1, column 2"):
        fs.TreeExplainer(MODEL, BACKGROUND).shap_values(endless)
    with pytest.raises(fs.InputError, match="background has an infinite number"):
        fs.TreeExplainer(MODEL, endless)
    with pytest.raises(fs.UnsupportedModelError, match="linear_tree=True"):
        _ = read(MODEL).trees


def test_damaged_linear_functions(tmp_path: Any) -> None:
    text = MODEL.booster_.model_to_string()
    last = text.rindex("leaf_coeff=")
    broken = text[:last] + "leaf_coeff=1 " + text[last + len("leaf_coeff=") + 2 :]
    path = tmp_path / "model.txt"
    path.write_text(broken)
    with pytest.raises(fs.InputError, match=r"linear functions of tree 7|tree_sizes"):
        read(path)
