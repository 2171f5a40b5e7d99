"""`BlackBoxExplainer` against the exponential definition, on models that are small enough for it."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fouriershap as fs
import oracles
from fitted_models import explain_fitted
from fouriershap._blackbox.bit_code import exact_code
from fouriershap._blackbox.candidates import enumeration as _exact
from fouriershap._blackbox.hybrids import draw_hybrids, second_rows
from fouriershap._rows.levels import make_encoding
from fouriershap._rows.pool import Pool


def random_table(rng, levels, n_outputs=1):
    """A function on rows of integer levels with every interaction there is."""
    table = rng.normal(size=(*levels, n_outputs))
    return lambda x: table[tuple(np.asarray(x).astype(int).T)]


def additive(x):
    x = np.asarray(x, dtype=float)
    return 2 * x[:, 0] + x[:, 1] * x[:, 2] - x[:, 3]


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    levels=st.lists(st.integers(1, 4), min_size=1, max_size=5),
    n_outputs=st.sampled_from([1, 3]),
)
def test_exact_equals_the_exponential_definition(seed, levels, n_outputs):
    rng = np.random.default_rng(seed)
    h = random_table(rng, levels, n_outputs)
    X = rng.integers(0, levels, size=(30, len(levels)))
    X = np.concatenate([X, [[0] * len(levels)]])  # at least one level that is sure to be there
    weights = rng.random(8) + 0.1
    explainer = explain_fitted(
        h, X[:8], data=X, method="enumerate", categorical=range(len(levels)), weights=weights, random_state=0
    )
    truth = oracles.shap_values(h, X[:4], X[:8], weights=weights)
    values = explainer.shap_values(X[:4]).reshape(truth.shape)
    np.testing.assert_allclose(values, truth, atol=1e-9)
    expected = np.average(h(X[:8]), axis=0, weights=weights)
    np.testing.assert_allclose(np.atleast_1d(explainer.expected_value), expected, atol=1e-9)
    assert explainer.fidelity.exact and explainer.fidelity.r2 == 1


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_exact_groups_are_players(seed):
    rng = np.random.default_rng(seed)
    h = random_table(rng, (2,) * 5)
    X = rng.integers(0, 2, size=(40, 5))
    players = np.array([0, 1, 0, 2, 1])
    explainer = explain_fitted(h, X, groups=[f"g{p}" for p in players], method="enumerate")
    truth = oracles.shap_values(h, X[:3], X, players=players)
    np.testing.assert_allclose(explainer.shap_values(X[:3]), truth[:, :, 0], atol=1e-9)
    assert explainer.player_names == ("g0", "g1", "g2")


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, lambda d: pl.DataFrame(d).to_arrow()])
def test_the_model_sees_valid_rows_of_the_callers_type(make):
    rng = np.random.default_rng(0)
    columns = {
        "colour": rng.choice(["red", "green", "blue"], 60).tolist(),
        "size": rng.integers(0, 3, 60).tolist(),
    }
    background = make(columns)
    seen = []

    def predict(frame):
        seen.append(type(frame))
        colours = frame["colour"]
        colour = np.array(colours.to_pylist() if hasattr(colours, "to_pylist") else list(colours))
        size = np.array(frame["size"], dtype=float)
        assert set(colour) <= {"red", "green", "blue"}
        return (colour == "red") * size + (colour == "blue")

    explainer = explain_fitted(predict, background, random_state=0)
    assert explainer.fitted.method == "enumerate" and set(seen) == {type(background)}
    codes = np.column_stack([[("red", "green", "blue").index(c) for c in columns["colour"]], columns["size"]])
    truth = oracles.shap_values(lambda x: (x[:, 0] == 0) * x[:, 1] + (x[:, 0] == 2), codes[:5], codes)
    np.testing.assert_allclose(explainer.shap_values(background[:5]), truth[:, :, 0], atol=1e-9)


def test_pandas_categories_keep_their_type():
    frame = pd.DataFrame({"c": pd.Categorical(list("abca") * 10), "x": np.arange(40) % 3})

    def predict(rows):
        assert isinstance(rows["c"].dtype, pd.CategoricalDtype)
        return rows["c"].cat.codes.to_numpy() * rows["x"].to_numpy()

    explainer = explain_fitted(predict, frame)
    assert explainer.shap_values(frame[:2]).shape == (2, 2)
    with pytest.raises(fs.InputError, match="level 'z'"):
        explainer.shap_values(pd.DataFrame({"c": ["z"], "x": [0]}))


@pytest.fixture(scope="module")
def trees():
    """Trees on a model with numbers and labels, asked for by name."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 4))
    X[:, 3] = rng.integers(0, 5, 150)
    asked = []

    def predict(x):
        asked.append(len(x))
        return additive(x)

    explainer = explain_fitted(
        predict, X[:40], data=X, method="trees", categorical=[3], budget=1500, random_state=0
    )
    return explainer, X, asked


def test_trees_follow_the_model_within_the_budget(trees):
    explainer, X, asked = trees
    assert sum(asked) == explainer.fidelity.n_queries <= 1500
    assert explainer.fitted.method == "trees" and explainer.fidelity.r2 > 0.95
    assert explainer.fidelity.low <= explainer.fidelity.r2 <= explainer.fidelity.high
    truth = oracles.shap_values(additive, X[:20], X[:40])[:, :, 0]
    values = explainer.shap_values(X[:20])
    assert 1 - ((values - truth) ** 2).sum() / ((truth - truth.mean()) ** 2).sum() > 0.95
    np.testing.assert_allclose(
        values.sum(axis=1) + explainer.expected_value, explainer.predict(X[:20]), atol=1e-9
    )


def test_a_new_background_asks_nothing(trees):
    explainer, X, asked = trees
    before = sum(asked)
    other = explainer.with_background(X[100:])
    np.testing.assert_allclose(
        other.shap_values(X[:5]).sum(axis=1) + other.expected_value, explainer.predict(X[:5]), atol=1e-9
    )
    assert sum(asked) == before


def test_save_and_load_need_no_model(trees, tmp_path):
    explainer, X, _ = trees
    explainer.save(tmp_path / "box.fshap")
    loaded = fs.load(tmp_path / "box.fshap")
    np.testing.assert_array_equal(loaded.shap_values(X), explainer.shap_values(X))
    np.testing.assert_allclose(
        loaded.with_background(X[:9]).shap_values(X[:4]),
        explainer.with_background(X[:9]).shap_values(X[:4]),
        atol=1e-9,
    )
    assert (loaded.fidelity, loaded.fitted.candidates) == (explainer.fidelity, explainer.fitted.candidates)


def test_an_exact_spectrum_is_saved_too(tmp_path):
    rng = np.random.default_rng(1)
    h = random_table(rng, (3, 2, 2), 2)
    X = rng.integers(0, (3, 2, 2), size=(50, 3))
    explainer = explain_fitted(h, X)
    explainer.save(tmp_path / "box.fshap")
    loaded = fs.load(tmp_path / "box.fshap")
    np.testing.assert_allclose(loaded.shap_values(X[:5]), explainer.shap_values(X[:5]), atol=1e-12)
    assert isinstance(loaded.representation, fs.Spectrum)


@pytest.mark.parametrize(("n_background", "n_pool"), [(20, 5020), (20, 20), (300, 400), (1, 2)])
def test_half_of_the_second_rows_are_background_rows(n_background, n_pool):
    found = second_rows(n_background, n_pool)
    np.testing.assert_array_equal(np.unique(found), np.arange(n_pool))
    share = (found < n_background).mean()
    assert share == pytest.approx(max(0.5, n_background / n_pool), abs=0.02)


def test_the_size_of_coalitions_follows_the_shapley_kernel():
    rng = np.random.default_rng(0)
    index = draw_hybrids(40_000, 5, np.array([0]), np.array([1]), rng)
    sizes = np.bincount((index == 0).sum(axis=1), minlength=6) / len(index)
    s = np.arange(1, 5)
    kernel = 1 / (s * (5 - s))
    np.testing.assert_allclose(sizes[1:5], 0.95 * kernel / kernel.sum(), atol=0.01)
    np.testing.assert_allclose(sizes[5], 0.05, atol=0.005)


def test_one_hot_groups_become_levels():
    rng = np.random.default_rng(0)
    level = rng.integers(0, 4, 50)
    hot = np.eye(4)[level]
    pool = Pool(np.column_stack([hot, rng.integers(0, 2, 50)]))
    encoding = make_encoding(pool, np.array([0, 0, 0, 0, 1], dtype=np.int32), ("g", "x"), None)
    codes = encoding.encode(pool)
    assert [f.kind for f in encoding.features] == ["one-hot", "number"]
    np.testing.assert_array_equal(codes[:, 0], level)
    assert _exact.n_combinations(exact_code(encoding, codes)) == 8
    queries = []

    def predict(x):
        queries.append(x)
        return x[:, 0] + 2 * x[:, 1] * x[:, 4]

    explainer = explain_fitted(predict, pool.native, groups=["g"] * 4 + ["x"])
    assert (np.concatenate(queries)[:, :4].sum(axis=1) == 1).all()
    truth = oracles.shap_values(predict, pool.native[:3], pool.native, players=np.array([0, 0, 0, 0, 1]))
    np.testing.assert_allclose(explainer.shap_values(pool.native[:3]), truth[:, :, 0], atol=1e-9)


def test_the_same_seed_gives_the_same_values():
    X = np.random.default_rng(3).normal(size=(60, 4))
    runs = []
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", fs.FidelityWarning)
            explainer = explain_fitted(additive, X, method="trees", budget=300, random_state=7)
        runs.append(explainer.shap_values(X[:3]))
    np.testing.assert_array_equal(*runs)


def test_exact_stays_within_a_budget_that_just_fits():
    X = oracles.all_rows(5)
    asked = []

    def predict(x):
        asked.append(len(x))
        return x[:, 0] * x[:, 1]

    with pytest.warns(fs.FidelityWarning, match="none was left to see whether the model is noisy"):
        explain_fitted(predict, X, budget=32, random_state=0)
    assert sum(asked) == 32
