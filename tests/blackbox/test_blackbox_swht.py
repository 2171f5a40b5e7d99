"""Candidate "swht": spectra of black boxes against brute force."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fouriershap as fs
import oracles
from fitted_models import explain_fitted
from fouriershap._blackbox.bit_code import exact_code, interval_code
from fouriershap._blackbox.candidates import swht as _swht
from fouriershap._rows.levels import make_encoding
from fouriershap._rows.pool import Pool


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 10**6), n_outputs=st.sampled_from([1, 2]))
def test_sparse_models_are_exact(seed, n_outputs):
    """Binary columns and labels with three levels; the spectrum gives the model's own SHAP values."""
    rng = np.random.default_rng(seed)
    levels = np.array([2] * 12 + [3] * 4)
    X = rng.integers(0, levels, size=(80, 16))
    table = rng.normal(size=(3, 3, n_outputs))

    def predict(x):
        pair = x[:, [0]] * x[:, [1]] * (1 - x[:, [2]]) * np.arange(1, n_outputs + 1)
        return (table[x[:, 12], x[:, 13]] + pair + x[:, [5]])[:, : None if n_outputs > 1 else 1]

    explainer = explain_fitted(
        predict, X[:12], data=X, method="swht", budget=6000, categorical=range(12, 16), random_state=seed
    )
    assert explainer.fitted.method == "swht" and explainer.fidelity.n_queries <= 6000
    used = np.array([0, 1, 2, 5, 12, 13])

    def small(x):  # the other players are dummies: brute force over the six that matter
        full = np.zeros((len(x), 16), dtype=int)
        full[:, used] = x
        return predict(full)

    truth = oracles.shap_values(small, X[:3][:, used], X[:12][:, used])
    values = explainer.shap_values(X[:3]).reshape(3, 16, n_outputs)
    np.testing.assert_allclose(values[:, used], truth, atol=1e-8)
    np.testing.assert_allclose(np.delete(values, used, axis=1), 0, atol=1e-8)
    assert explainer.fidelity.cube is not None and explainer.fidelity.cube.r2 == pytest.approx(1)


def test_every_query_is_a_valid_row():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"b{i}": rng.integers(0, 2, 60) for i in range(14)})
    frame["colour"] = pd.Categorical(rng.choice(["red", "green", "blue"], 60))
    frame["size"] = rng.normal(size=60)

    def predict(rows):
        assert list(rows.dtypes) == list(frame.dtypes)
        assert rows["size"].isin(frame["size"]).all()
        return (rows["colour"] == "red").to_numpy() * (1 + rows["b0"].to_numpy()) + rows["b1"].to_numpy()

    explainer = explain_fitted(predict, frame, method="swht", budget=4000, random_state=0)
    assert explainer.fidelity.r2 == pytest.approx(1)
    values = explainer.shap_values(frame[:5])
    np.testing.assert_allclose(values[:, [*range(2, 14), 15]], 0, atol=1e-8)


def test_numbers_are_cut_at_quantiles():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 3))
    X[::20, 1] = np.nan
    encoding = make_encoding(Pool(X), np.arange(3, dtype=np.int32), ("a", "b", "c"), None)
    codes = encoding.encode(Pool(X))
    code = interval_code(encoding, codes)
    assert [player.n_levels for player in code.players] == [8, 9, 8]
    bits = code.bits(codes)
    shown = codes[code.index(bits), np.arange(3)]
    np.testing.assert_array_equal(code.bits(shown), bits)  # a level's row is in the level
    np.testing.assert_array_equal(np.isnan(shown), np.isnan(X))
    level = code.players[0].find(codes, "X")
    assert (np.bincount(level) >= 20).all() and (np.diff(level[np.argsort(X[:, 0])]) >= 0).all()
    new = rng.normal(size=(5, 3)) * 10  # beyond the data: the outer intervals
    assert code.bits(new).shape == (5, bits.shape[1])


def test_levels_are_found_whatever_they_are():
    rng = np.random.default_rng(2)
    X = rng.integers(0, 3, size=(50, 4)).astype(float)
    X[rng.random((50, 4)) < 0.2] = np.nan
    players = np.array([0, 1, 1, 2], dtype=np.int32)
    encoding = make_encoding(Pool(X), players, ("a", "b", "c"), None)
    codes = encoding.encode(Pool(X))
    for player in exact_code(encoding, codes).players:
        level = player.find(codes, "X")
        np.testing.assert_array_equal(player.levels[level], codes[:, player.features])
    with pytest.raises(fs.InputError, match="does not know"):
        exact_code(encoding, codes).players[0].find(np.full((1, 4), 9.0), "X")


def test_noise_is_averaged():
    rng = np.random.default_rng(3)
    X = rng.integers(0, 2, size=(300, 20))
    noise = np.random.default_rng(4)

    def clean(x):
        return 2.0 * x[:, 0] * x[:, 1] - x[:, 2] + x[:, 3]

    with pytest.warns(fs.NoiseWarning):
        explainer = explain_fitted(
            lambda x: clean(x) + 0.1 * noise.normal(size=len(x)),
            X[:20],
            data=X,
            method="swht",
            budget=4000,
            random_state=0,
        )
    truth = explain_fitted(clean, X[:20], data=X, method="swht", budget=4000, random_state=0)
    np.testing.assert_allclose(explainer.shap_values(X[:30]), truth.shap_values(X[:30]), atol=0.03)
    assert 0.02 < explainer.fidelity.noise < 0.3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "swht", "budget": 210}, "needs at least"),
        ({"method": "trees", "n_terms": 5}, "does not use it"),
        ({"method": "swht", "n_terms": 0}, "n_terms is 0"),
        ({"method": "swht", "max_degree": 2.5}, "max_degree is 2.5"),
        ({"method": "swht", "groups": ["g"] * 2 + ["h"] * 28}, "levels into bits, but 'g'"),
    ],
)
def test_bad_arguments(arguments, message):
    X = np.random.default_rng(0).normal(size=(300, 30))
    with pytest.raises(fs.InputError, match=message):
        explain_fitted(lambda x: x[:, 0], X, **arguments)


def test_the_number_of_queries_that_would_do_does():
    X = np.random.default_rng(0).integers(0, 2, size=(100, 40))
    with pytest.raises(fs.InputError, match="needs at least") as caught:
        explain_fitted(lambda x: x[:, 0], X, method="swht", budget=250)
    needed = int(str(caught.value).split("at least ")[1].split()[0])
    explainer = explain_fitted(lambda x: x[:, 0], X, method="swht", budget=needed, random_state=0)
    assert explainer.fidelity.n_queries <= needed


@pytest.mark.parametrize(("dense", "budget"), [(True, 14_000), (False, 14_000), (False, 5_000)])
def test_auto_looks_before_it_spends(dense, budget):
    """Only a sparse model and a budget of which an eighth is enough to see that get a transform."""
    rng = np.random.default_rng(5)
    X = rng.integers(0, 2, size=(300, 24)).astype(float)
    weights = rng.normal(size=(24, 6))
    asked = []

    def ask(bits):
        asked.append(len(bits))
        h = np.sin(3 * bits @ weights).sum(axis=1) if dense else bits[:, 0] * bits[:, 1] - bits[:, 2]
        return h[:, None].astype(float)

    encoding = make_encoding(Pool(X), np.arange(24, dtype=np.int32), tuple(map(str, range(24))), None)
    found = _swht.probe(ask, exact_code(encoding, X), budget, _swht.Limits(), 0)
    assert sum(asked) <= 14_000 / 8 + 200
    assert (found is not None) == (not dense and budget == 14_000)
    assert bool(asked) == (budget == 14_000)
