"""Interactions and the Banzhaf index: brute force, shap, files, chosen and strongest pairs, groups."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor

import fouriershap as fs
import oracles
from fitted_models import explain_fitted
from fouriershap._base import parallel
from fouriershap._base.checks import check_memory
from fouriershap._shapley.indices import SII, find_index
from fouriershap._shapley.interactions import interaction_matrices
from fouriershap._shapley.sets import pair_keys
from fouriershap._shapley.spectrum.engine import make_engine
from fouriershap._shapley.trees.engine import TreeEngine
from fouriershap._shapley.trees.model import make_background, make_model
from reference_kernels import use_reference_kernels
from strategies import generators, random_frequencies, random_players
from tree_kernel_cases import ensembles
from tree_oracles import interventional_game, path_dependent_game

INDICES = ("shapley", "banzhaf")


def game_values(game: Any, n_players: int) -> np.ndarray:
    """v(S) by number, from a game on tuples of flags."""
    return np.array([game(np.array(S[::-1], dtype=bool)) for S in product((0, 1), repeat=n_players)])


def close(got: np.ndarray, want: np.ndarray, tolerance: float = 1e-8) -> None:
    assert got.shape == want.shape
    assert np.abs(got - want).max(initial=0) <= tolerance * max(np.abs(want).max(initial=0), 1e-6)


@given(
    ensembles(most_features=5),
    st.booleans(),
    st.booleans(),
    st.sampled_from(INDICES),
    st.sampled_from(["auto", "walk"]),
)
@settings(max_examples=30, deadline=None)
def test_trees_match_brute_force(
    model: Any, by_path: bool, weighted: bool, index: str, strategy: str
) -> None:
    coded, players, rng = model
    players = np.unique(players, return_inverse=True)[1].astype(np.int32)
    e = coded.ensemble
    values = [*np.arange(-1.0, 9.0), np.nan]
    background = None if by_path else rng.choice(values, size=(6, e.n_features))
    weights = rng.dirichlet(np.ones(6)) if weighted and not by_path else None
    rows = rng.choice(values, size=(2, e.n_features))
    trees = make_model(e, players, check_memory(None), np.dtype("f8"), strategy, find_index(index))
    engine = TreeEngine(trees, make_background(trees, background, weights))
    got = interaction_matrices(engine, rows, 1)
    for row, found in zip(coded.book.encode(rows).T, got, strict=True):
        if by_path:
            game = path_dependent_game(coded, row, players)
        else:
            game = interventional_game(coded, row, coded.book.encode(background), weights, players)
        v = game_values(game, engine.n_players)
        close(found, oracles.interaction_matrix(v, engine.n_players, index == "banzhaf"))
        phi = engine.shap_values(rows)
    close(got.sum(axis=2), phi)


@given(generators(), st.integers(2, 7), st.integers(1, 3), st.sampled_from(INDICES), st.booleans())
@settings(max_examples=30, deadline=None)
def test_spectra_match_brute_force(
    rng: np.random.Generator, n_bits: int, n_outputs: int, index: str, direct: bool
) -> None:
    players = random_players(rng, n_bits, int(rng.integers(1, n_bits + 1)))
    n_players = int(players.max()) + 1
    frequencies = random_frequencies(rng, 12, n_bits, n_bits)
    spectrum = fs.Spectrum(frequencies, rng.normal(size=(12, n_outputs)))
    background, rows = rng.integers(0, 2, size=(5, n_bits)), rng.integers(0, 2, size=(3, n_bits))
    weights = rng.dirichlet(np.ones(5))
    memory = 1 if direct else None
    given_ = {"players": players, "weights": weights, "memory": memory, "index": index}
    got = interaction_matrices(make_engine(spectrum, background, **given_), rows.astype(np.uint8), 1)
    phi = fs.spectra.shap_values(spectrum, rows, background, **given_)
    for row, found, values in zip(rows, got, phi, strict=True):
        v = oracles.coalition_values(spectrum, row, background, players, weights)
        want = oracles.interaction_matrix(v, n_players, index == "banzhaf")
        close(found, want)
        close(values, want.sum(axis=1))


def test_one_parity_has_the_closed_form() -> None:
    """Of m players that differ, each pair gets 4 / (m - 1) for even m, else nothing."""
    for m in range(2, 8):
        explainer = fs.Explainer(fs.Spectrum([[1] * m], [1.0]), [[0] * m])
        matrix = explainer.shap_interaction_values([[1] * m])[0]
        off = matrix[~np.eye(m, dtype=bool)]
        np.testing.assert_allclose(off, 2 / (m - 1) if m % 2 == 0 else 0.0, atol=1e-12)


def boosted(n_classes: int = 0, seed: int = 0) -> tuple[Any, np.ndarray]:
    xgboost = pytest.importorskip("xgboost")
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(600, 7)).round(1).astype(np.float32)
    X[rng.random(X.shape) < 0.1] = np.nan
    Z = np.nan_to_num(X)
    y = Z[:, 0] * Z[:, 1] + Z[:, 2] * (Z[:, 3] > 0) + Z[:, 4]
    if n_classes:
        y = np.searchsorted(np.quantile(y, np.arange(1, n_classes) / n_classes), y)
        return xgboost.XGBClassifier(n_estimators=8, max_depth=4).fit(X, y), X
    return xgboost.XGBRegressor(n_estimators=12, max_depth=4).fit(X, y), X


@pytest.mark.parametrize("n_classes", [0, 3])
def test_shap_path_dependent(n_classes: int) -> None:
    shap = pytest.importorskip("shap")
    model, X = boosted(n_classes)
    want = shap.TreeExplainer(model).shap_interaction_values(X[:30])
    got = fs.TreeExplainer(model).shap_interaction_values(X[:30])
    close(got, np.asarray(want, dtype=np.float64), 1e-5)


def test_deep_trees_beyond_any_table() -> None:
    """Many features on a path: tables of some trees, a walk of the rest, and both agree with the definition."""
    from sklearn.ensemble import ExtraTreesRegressor

    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 24)).astype(np.float32)
    y = (X[:, :12] * X[:, 12:]).sum(axis=1)
    model = ExtraTreesRegressor(2, min_samples_leaf=2, random_state=0).fit(X, y)
    groups = [str(i % 6) for i in range(24)]
    for background in (X[:20], None):
        explainer = fs.TreeExplainer(model, background, groups=groups, precision="double")
        small = fs.TreeExplainer(model, background, groups=groups, precision="double", memory=1)
        got = explainer.shap_interaction_values(X[50:52])
        close(got, small.shap_interaction_values(X[50:52]))
        assert small.engine.interactions(SII, 2, min_order=2).rest is not None
        close(got.sum(axis=2), explainer.shap_values(X[50:52]))
    players = explainer.engine.model.player
    assert explainer.engine.model.profile[:, 2].max() > 10
    got = fs.TreeExplainer(model, X[:20], groups=groups).shap_interaction_values(X[50:51])[0]
    v = oracles.coalition_values(model.predict, X[50], X[:20], players)
    close(got, oracles.interaction_matrix(v, 6)[..., 0], 1e-5)


def test_pairs_and_top() -> None:
    model, X = boosted(3)
    explainer = fs.TreeExplainer(model, X[:50], feature_names=list("abcdefg"), precision="double")
    full = explainer.shap_interaction_values(X[:40])
    fresh = explainer.with_background(X[:50])
    wanted = [("b", "a"), (2, 3), ("g", 0)]
    close(fresh.shap_interaction_values(X[:40], pairs=wanted), full[:, [1, 2, 6], [0, 3, 0]])
    one = pair_keys(np.array([0]), np.array([1]), 7)
    assert len(fresh.engine.interactions(SII, 2, one, 2).keys) <= 3
    top = explainer.interactions(X[:40], order=2, min_order=2, index="SII", top_k=4)
    full = 2 * full  # a matrix has each pair twice
    strength = np.abs(full).mean(axis=(0, 3))
    i, j = np.triu_indices(7, 1)
    best = np.argsort(-strength[i, j])[:4]
    assert list(top.positions) == list(zip(i[best], j[best], strict=True))
    assert top.sets == tuple(("abcdefg"[a], "abcdefg"[b]) for a, b in top.positions)
    close(top.strength, strength[i, j][best])
    close(top.values, full[:, i[best], j[best]])
    assert len(top) == 4
    assert f"{top.sets[0][0]} x {top.sets[0][1]}" in repr(top)


def test_the_result_does_not_depend_on_threads_or_blocks() -> None:
    model, X = boosted()
    explainer = fs.TreeExplainer(model, X[:50])
    many = explainer.shap_interaction_values(np.tile(X, (30, 1)), n_jobs=2)
    one = explainer.shap_interaction_values(X, n_jobs=1)
    np.testing.assert_array_equal(many[: len(X)], one)
    assert explainer.shap_interaction_values(X[:0]).shape == (0, 7, 7)


def test_twins() -> None:
    """The NumPy kernels fill the same pair tables."""
    model, X = boosted()
    for background in (X[:30], None):
        results = []
        for twins in (False, True):
            with pytest.MonkeyPatch.context() as patch:
                if twins:
                    use_reference_kernels(patch)
                ensemble = fs.TreeExplainer(model).representation.select(np.arange(12) < 2)
                explainer = fs.TreeExplainer(ensemble, background, precision="double")
                results.append(explainer.shap_interaction_values(X[:20]))
        close(*results)


@pytest.mark.parametrize("by_path", [False, True])
def test_files(tmp_path: Path, by_path: bool) -> None:
    model, X = boosted()
    explainer = fs.TreeExplainer(model, None if by_path else X[:50], index="banzhaf")
    want = explainer.shap_interaction_values(X[:9])
    explainer.save(tmp_path / "with.fshap", interactions=True)
    loaded = fs.load(tmp_path / "with.fshap")
    close(loaded.shap_interaction_values(X[:9]), want, 1e-6)  # the diagonal came from a walk before
    np.testing.assert_array_equal(loaded.shap_values(X[:9]), explainer.shap_values(X[:9]))
    explainer.save(tmp_path / "without.fshap")
    loaded = fs.load(tmp_path / "without.fshap")
    if by_path:
        close(loaded.shap_interaction_values(X[:9]), want, 1e-6)
    else:
        with pytest.raises(fs.InputError, match="interactions=True"):
            loaded.shap_interaction_values(X[:9])


def test_files_of_spectra(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    spectrum = fs.Spectrum(rng.integers(0, 2, size=(9, 6)), rng.normal(size=9))
    background, rows = rng.integers(0, 2, size=(20, 6)), rng.integers(0, 2, size=(5, 6))
    tables = fs.SpectrumExplainer(spectrum, background, index="banzhaf")
    want = tables.shap_interaction_values(rows)
    tables.save(tmp_path / "with.fshap", interactions=True)
    np.testing.assert_array_equal(fs.load(tmp_path / "with.fshap").shap_interaction_values(rows), want)
    tables.save(tmp_path / "without.fshap")
    loaded = fs.load(tmp_path / "without.fshap")
    np.testing.assert_array_equal(loaded.shap_values(rows), tables.shap_values(rows))
    with pytest.raises(fs.InputError, match="interactions=True"):
        loaded.shap_interaction_values(rows)


@pytest.mark.parametrize("method", ["enumerate", "trees"])
@pytest.mark.parametrize("index", INDICES)
def test_black_boxes(tmp_path: Path, method: str, index: str) -> None:
    tolerance = 1e-8 if method == "enumerate" else 1e-6  # tables of fitted trees are in single precision
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, size=(60, 5)).astype(float)
    X[:, 3] = 1.0  # never varies

    def model(x: np.ndarray) -> np.ndarray:
        return x[:, 0] * x[:, 1] + (x[:, 2] > x[:, 4]) * x[:, 0]

    groups = {"both": [1, 4]}
    explainer = explain_fitted(model, X, method=method, groups=groups, index=index, random_state=0)
    representation = explainer.predict
    got = explainer.shap_interaction_values(X[:3])
    owner = np.array([0, 1, 2, 3, 1])
    for row, found in zip(X[:3], got, strict=True):
        v = oracles.coalition_values(representation, row, X, owner)
        close(found, oracles.interaction_matrix(v, 4, index == "banzhaf")[..., 0], tolerance)
    chosen = explainer.shap_interaction_values(X[:3], pairs=[("both", 0), (3, "both")])
    close(chosen, got[:, [1, 3], [0, 1]], tolerance)
    if index == "shapley":
        top = explainer.interactions(X[:3], order=2, min_order=2, index="SII", top_k=1)
        assert top.sets[0] == (explainer.player_names[0], "both")
    explainer.save(tmp_path / "b.fshap", interactions=True)
    loaded = fs.load(tmp_path / "b.fshap")
    close(loaded.shap_interaction_values(X[:3]), got, tolerance)
    close(loaded.shap_values(X[:3]), got.sum(axis=2), tolerance)


def test_groups_carry_their_names() -> None:
    pytest.importorskip("shap")
    model, X = boosted()
    explainer = fs.TreeExplainer(model, X[:50], groups={"left": [0, 1], "right": [3, 5]})
    explanation = explainer(X[:4])
    assert explanation.feature_names == list(explainer.player_names)
    assert set(explainer.player_names) >= {"left", "right"}
    top = explainer.interactions(X[:30], order=2, min_order=2, index="SII", top_k=3)
    assert all(name in explainer.player_names for pair in top.sets for name in pair)
    assert explainer.shap_interaction_values(X[:4], pairs=[("left", "right")]).shape == (4, 1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"pairs": "ab"}, "list of pairs"),
        ({"pairs": [(0, 0)]}, "diagonal"),
        ({"pairs": [(0, 7)]}, "positions from 0 to 6"),
        ({"pairs": [("x", 0)]}, "'x'"),
        ({"pairs": [(0, 1, 2)]}, "pairs of players"),
    ],
)
def test_wrong_arguments(options: dict[str, Any], words: str) -> None:
    model, X = boosted()
    with pytest.raises(fs.InputError, match=words):
        fs.TreeExplainer(model, X[:20]).shap_interaction_values(X[:2], **options)


def test_unknown_index() -> None:
    model, X = boosted()
    with pytest.raises(fs.InputError, match="'shapley', 'banzhaf'"):
        fs.TreeExplainer(model, X, index="owen")
    with pytest.raises(fs.InputError, match="'shapley', 'banzhaf'"):
        fs.SpectrumExplainer(fs.Spectrum([[1]], [1.0]), [[0]], index="owen")


def test_what_takes_long_is_told_before_it_starts(monkeypatch: pytest.MonkeyPatch, recwarn: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 14))
    deep = RandomForestRegressor(3, max_features=1, random_state=0).fit(X, rng.normal(size=400))
    explainer = fs.TreeExplainer(deep, X[:30])
    want = explainer.shap_interaction_values(X[:2])
    assert not [w for w in recwarn if w.category is fs.CostWarning]
    monkeypatch.setattr(parallel, "_LONG", 0.0)
    with pytest.warns(
        fs.CostWarning, match="3 trees with up to 13 players on a path, 91 sets each, for 2 rows and 30"
    ):
        np.testing.assert_array_equal(explainer.shap_interaction_values(X[:2]), want)
    model, X = boosted()
    fs.TreeExplainer(model, X).shap_interaction_values(X[:2])  # by tables: no reason to warn


def test_pairs_on_a_path_of_many_players_are_refused() -> None:
    X = np.eye(70)
    model = DecisionTreeRegressor(random_state=0).fit(
        X, 3.0 ** np.arange(70)
    )  # splits off one row after the other
    most = int(fs.TreeExplainer(model, X).engine.model.walk_trees.tree_players.max())
    assert most > 64
    with pytest.raises(fs.CapacityError, match=f"a path of these trees has {most} players"):
        fs.TreeExplainer(model, X).shap_interaction_values(X[:2])
