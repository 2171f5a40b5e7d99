"""The kernels for trees together: tables that are built and looked up, and walks."""

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fouriershap as fs
from fouriershap import _kernels as kernels
from fouriershap._shapley.trees.blocks import build_blocks, fill_tables
from reference_kernels import use_reference_kernels
from tree_kernel_cases import ensembles
from tree_oracles import RandomTrees, interventional_game, path_dependent_game, shapley_values

needs_native = pytest.mark.skipif(kernels.backend() == "numpy", reason="compares with the native kernels")


def fill(coded, players, background, weights, dtype):
    blocks = build_blocks(coded, players, int(players.max()) + 1)
    codes = None
    if background is not None:
        codes = coded.book.encode_columns(background, *blocks.columns)
    tables, expected = fill_tables(blocks, coded, codes, weights, np.dtype(dtype), 1)
    return blocks, tables, expected


def raw_rows(rng, n_rows, n_features):
    return rng.choice([*np.arange(-1.0, 91.0), np.nan], size=(n_rows, n_features))


@needs_native
@given(ensembles(), st.booleans(), st.booleans())
@settings(max_examples=20, deadline=None)
def test_tree_tables_and_looking_them_up(model, by_path, weighted):
    coded, players, rng = model
    n_features = coded.ensemble.n_features
    background = None if by_path else raw_rows(rng, 30, n_features)
    weights = rng.dirichlet(np.ones(30)) if weighted else None
    rows = raw_rows(rng, 70, n_features)
    results = []
    for reference in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            if reference:
                use_reference_kernels(patch)
            coded = replace(coded, book=replace(coded.book))  # without the levels that other kernels hold
            blocks, tables, expected = fill(coded, players, background, weights, np.float64)
            out = np.zeros((70, int(players.max()) + 1, coded.ensemble.n_outputs))
            tables.add(coded.book.encode_columns(rows, *blocks.columns), out)
            results.append((tables.values, expected, out))
    for got, want in zip(*results, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)


@given(ensembles(most_features=5), st.booleans())
@settings(max_examples=20, deadline=None)
def test_tables_hold_the_shapley_values(model, by_path):
    coded, players, rng = model
    e = coded.ensemble
    background = None if by_path else raw_rows(rng, 6, e.n_features)
    weights = None if by_path else rng.dirichlet(np.ones(6))
    rows = raw_rows(rng, 3, e.n_features)
    blocks, tables, expected = fill(coded, players, background, weights, np.float64)
    n_players = int(players.max()) + 1
    out = np.zeros((3, n_players, e.n_outputs))
    tables.add(coded.book.encode_columns(rows, *blocks.columns), out)
    for row, got in zip(coded.book.encode(rows).T, out, strict=True):
        if by_path:
            game = path_dependent_game(coded, row, players)
        else:
            game = interventional_game(coded, row, coded.book.encode(background), weights, players)
        np.testing.assert_allclose(got, shapley_values(game, n_players), rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(expected, game(np.zeros(n_players, dtype=bool)), rtol=1e-9, atol=1e-10)


@given(
    seed=st.integers(0, 2**32 - 1),
    n_features=st.integers(8, 16),
    n_outputs=st.integers(1, 4),
    vector=st.booleans(),
    by_path=st.booleans(),
    grouped=st.booleans(),
)
@settings(max_examples=25, deadline=None)
def test_tables_of_long_paths_agree_with_the_walk(seed, n_features, n_outputs, vector, by_path, grouped):
    """Up to 16 features on a path: blocks of two tables, and patterns of two bytes."""
    rng = np.random.default_rng(seed)
    grown = RandomTrees(rng, n_features, [1, 4], n_thresholds=int(rng.choice([3, 40, 400])))
    follow = rng.integers(3, size=n_features)
    grown.chain(int(rng.integers(10, 60)), follow)
    grown.grow(6)
    ensemble = grown.coded(n_outputs, vector).ensemble
    rows = rng.integers(-1, 400, size=(2000, n_features)).astype(float)
    rows = np.where(rng.random(rows.shape) < 0.8, follow, rows)
    rows[rng.random(rows.shape) < 0.02] = np.nan
    background = None if by_path else rows[:45]
    weights = None if by_path else rng.uniform(size=45)
    groups = rng.integers(5, size=n_features).astype(str).tolist() if grouped else None
    options = {"weights": weights, "groups": groups, "memory": 1e9}
    tables = fs.TreeExplainer(ensemble, background, **options, strategy="tables", precision="double")
    walked = fs.TreeExplainer(ensemble, background, **options, strategy="walk")
    got, want = tables.shap_values(rows), walked.shap_values(rows)
    largest = np.abs(want).max()
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-9 * largest)
    np.testing.assert_allclose(tables.expected_value, walked.expected_value, rtol=1e-9, atol=1e-9)
    # A row's values do not depend on the rows beside it.
    for first, last in ((0, 1), (1, 2), (7, 140), (1999, 2000)):
        np.testing.assert_allclose(
            tables.shap_values(rows[first:last]), got[first:last], rtol=0, atol=1e-12 * largest
        )
    single = fs.TreeExplainer(ensemble, background, **options, strategy="tables").shap_values(rows)
    np.testing.assert_allclose(single, want, rtol=0, atol=1e-6 * largest)


@pytest.mark.parametrize("strategy", ["tables", "walk"])
@pytest.mark.parametrize("by_path", [False, True])
def test_everything_runs_on_the_numpy_kernels(strategy, by_path, monkeypatch):
    rng = np.random.default_rng(0)
    grown = RandomTrees(rng, 6, [1])
    grown.grow(4)
    grown.grow(3)
    ensemble = grown.coded(2).ensemble
    background = None if by_path else raw_rows(rng, 20, 6)
    rows = raw_rows(rng, 12, 6)
    native = fs.TreeExplainer(ensemble, background, strategy=strategy, precision="double")
    want, expected = native.shap_values(rows), native.expected_value
    use_reference_kernels(monkeypatch)
    reference = fs.TreeExplainer(ensemble, background, strategy=strategy, precision="double")
    np.testing.assert_allclose(
        reference.shap_values(rows, check_additivity=True), want, rtol=1e-9, atol=1e-12
    )
    np.testing.assert_allclose(reference.expected_value, expected, rtol=1e-12)


_BASELINE = """
import sys
import numpy as np
import fouriershap as fs
values = fs.load(sys.argv[1]).shap_values(np.load(sys.argv[2]))
np.save(sys.argv[3], values)
from fouriershap import _kernels
print(_kernels.instruction_set())
"""


@needs_native
def test_without_avx2(tmp_path):
    rng = np.random.default_rng(3)
    grown = RandomTrees(rng, 9, [1], n_thresholds=300)
    for _ in range(20):
        grown.grow(5)
    rows = rng.choice([*np.arange(-1.0, 301.0), np.nan], size=(500, 9))
    explainer = fs.TreeExplainer(grown.coded().ensemble, rows[:200])
    explainer.save(tmp_path / "e.fshap")
    np.save(tmp_path / "rows.npy", rows)
    files = [str(tmp_path / name) for name in ("e.fshap", "rows.npy", "values.npy")]
    environment = os.environ | {"FOURIERSHAP_KERNELS": "baseline"}
    done = subprocess.run(
        [sys.executable, "-c", _BASELINE, *files], env=environment, check=True, capture_output=True, text=True
    )
    assert "avx2" not in done.stdout
    want = explainer.shap_values(rows)
    np.testing.assert_allclose(np.load(files[2]), want, rtol=0, atol=1e-6 * np.abs(want).max())


def one_feature_each(rng, n_thresholds):
    """Two fully grown trees, on a feature each, with this many thresholds."""
    from sklearn.tree import DecisionTreeRegressor

    parts = []
    for f in (0, 1):
        X = np.zeros((n_thresholds + 1, 2))
        X[:, f] = np.arange(n_thresholds + 1)
        model = DecisionTreeRegressor(random_state=0).fit(X, rng.normal(size=len(X)))
        parts.append(fs.read_model(model).trees)
    first, second = parts
    names = ("feature", "threshold", "missing_left", "category_set", "cover", "values", "tree_output")
    joined = {name: np.concatenate([getattr(first, name), getattr(second, name)]) for name in names}
    for name in ("left", "right"):
        moved = np.where(getattr(second, name) < 0, -1, getattr(second, name) + first.n_nodes)
        joined[name] = np.concatenate([getattr(first, name), moved])
    return first, first.replace(**joined, roots=[0, first.n_nodes])


@pytest.mark.parametrize(("n_thresholds", "strategy"), [(5_000, "tables"), (66_000, "walk")])
def test_many_codes(n_thresholds, strategy):
    """More than 256 codes take two bytes; with more than 65,536 there is no table, and trees are walked."""
    rng = np.random.default_rng(1)
    first, both = one_feature_each(rng, n_thresholds)
    rows = rng.integers(-5, n_thresholds + 5, size=(200, 2)).astype(float)
    explainer = fs.TreeExplainer(both, rows[:50], precision="double")
    values = explainer.compile().shap_values(rows, check_additivity=True)
    assert explainer.plan().strategy == strategy
    # The trees add up, so the value of the first feature is the first tree's output, centred.
    alone = first.predict(rows)[:, 0]
    np.testing.assert_allclose(values[:, 0], alone - alone[:50].mean(), atol=1e-9)
