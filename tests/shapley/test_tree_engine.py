"""The compiled object: when tables are built, what they may cost, and that nothing else depends on it."""

import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import fouriershap as fs
import oracles
from fouriershap._shapley.trees import model as tree_model
from fouriershap._shapley.trees.engine import TreeEngine
from fouriershap._shapley.trees.plan import MOST_FEATURES
from fouriershap._shapley.trees.speed import SPEED
from models import CASES, classes, numbers
from shap_oracle import assert_within, brute_force, with_outputs
from tree_oracles import RandomTrees


@pytest.fixture(scope="module")
def forest():
    from sklearn.ensemble import RandomForestClassifier

    X = numbers(n_features=8)
    return RandomForestClassifier(12, max_depth=6, random_state=0).fit(X, classes(X, 3)), X


@pytest.fixture(scope="module")
def mixed():
    """Trees of very different sizes, a deep one among them."""
    rng = np.random.default_rng(0)
    grown = RandomTrees(rng, 24, [3, 5], n_thresholds=9)
    for depth in (2, 3, 4, 5, 6, 7):
        grown.grow(depth)
    grown.chain(60, target=rng.integers(9, size=24))
    rows = rng.choice([*np.arange(-1.0, 10.0), np.nan], size=(300, 24))
    return grown.coded(2).ensemble, rows


def test_tables_are_built_when_they_pay(forest):
    model, X = forest
    explainer = fs.TreeExplainer(model, X)
    assert "tables" not in repr(explainer)
    few = explainer.plan(1)
    many = explainer.plan(10**7)
    assert (few.strategy, many.strategy) == ("walk", "tables")
    assert few.n_walk_trees == many.n_table_trees == 12
    assert few.walk_row_seconds > few.row_seconds > 0 and few.build_seconds > 0
    assert "cost more" in few.reason and "cheaper" in many.reason
    first = explainer.shap_values(X[:1])
    assert explainer.engine.tables is None
    while explainer.engine.tables is None:  # rows explained by walking add up to the price of the tables
        again = explainer.shap_values(X[:200])
    assert "tables" in repr(explainer)
    assert explainer.plan(1).strategy == "tables"
    assert_within(first, again[:1], 1e-6)


def test_one_large_call_compiles_at_once(forest):
    model, X = forest
    explainer = fs.TreeExplainer(model, X)
    explainer.shap_values(np.tile(X, (60, 1)))
    assert explainer.engine.tables is not None


def test_memory_budget(mixed):
    ensemble, rows = mixed
    background, some = rows[:50], rows[50:80]
    reference = fs.TreeExplainer(ensemble, background, strategy="walk").shap_values(some)
    seen = set()
    for memory in (1, 2_000, 20_000, 200_000, 2e6, 1e9):
        explainer = fs.TreeExplainer(ensemble, background, memory=memory).compile()
        seen.add(explainer.plan().strategy)
        tables = explainer.engine.tables
        assert tables is None or tables.nbytes <= memory
        assert_within(explainer.shap_values(some, check_additivity=True), reference, 1e-6)
        other = explainer.with_background(rows[100:140])
        fresh = fs.TreeExplainer(ensemble, rows[100:140], strategy="walk")
        assert_within(other.shap_values(some), fresh.shap_values(some), 1e-6)
    assert seen == {"walk", "tables+walk"}
    with pytest.raises(fs.CapacityError, match=r"1 of 7 trees.*memory"):
        fs.TreeExplainer(ensemble, background, strategy="tables")


def test_tables_larger_than_estimated_stay_within_the_budget(mixed, monkeypatch):
    """The estimate of a tree's tables is rough; the tables themselves must keep to the budget."""
    ensemble, rows = mixed
    monkeypatch.setattr(tree_model, "feasible_trees", lambda coded, trees, *_: trees[:, 2] <= MOST_FEATURES)
    reference = fs.TreeExplainer(ensemble, rows[:50], strategy="walk").shap_values(rows[:20])
    for memory in (100, 5_000, 50_000):
        explainer = fs.TreeExplainer(ensemble, rows[:50], memory=memory).compile()
        tables = explainer.engine.tables
        assert (0 if tables is None else tables.nbytes) <= memory
        assert_within(explainer.shap_values(rows[:20], check_additivity=True), reference, 1e-6)
    small = ensemble.select(np.arange(7) < 6)
    with pytest.raises(fs.CapacityError, match="Raise `memory`"):
        fs.TreeExplainer(small, rows[:50], memory=5_000, strategy="tables")


def test_the_number_of_threads_changes_no_bit(mixed, monkeypatch):
    monkeypatch.setattr(
        SPEED, "learn", lambda *_: None
    )  # else calls may choose another way than those before
    ensemble, rows = mixed
    many = np.tile(rows, (60, 1))
    for strategy, data in (("auto", many), ("stream", many), ("walk", many[:1500])):
        results = []
        for n_jobs in (1, 2, 5, -1):
            explainer = fs.TreeExplainer(ensemble, rows[:70], strategy=strategy, n_jobs=n_jobs)
            results.append((explainer.shap_values(data), explainer.expected_value))
        for values, expected in results[1:]:
            assert np.array_equal(values, results[0][0]) and np.array_equal(expected, results[0][1])


def test_threads_share_one_fresh_explainer(mixed):
    ensemble, rows = mixed
    want = fs.TreeExplainer(ensemble, rows[:70]).compile().shap_values(rows)
    fresh = [fs.TreeExplainer(ensemble, rows[:70], n_jobs=2) for _ in range(3)]
    for explainer in fresh:
        with ThreadPoolExecutor(8) as pool:
            jobs = [pool.submit(explainer.shap_values, rows) for _ in range(12)]
            jobs += [pool.submit(lambda e: e.compile().shap_values(rows), explainer) for _ in range(2)]
            expected = [pool.submit(lambda e: e.expected_value, explainer) for _ in range(4)]
            for job in jobs:
                assert_within(job.result(), want, 1e-6)
            for job in expected:
                np.testing.assert_allclose(job.result(), explainer.expected_value)


def test_with_background_is_a_fresh_explainer_on_the_same_blocks(forest, monkeypatch):
    model, X = forest
    first = fs.TreeExplainer(model, X[:100]).compile()
    weights = np.linspace(1, 2, 50)
    fresh = fs.TreeExplainer(model, X[100:150], weights=weights).compile()

    def never(*_):
        raise AssertionError("the blocks were built again")

    monkeypatch.setattr(tree_model, "build_blocks", never)
    monkeypatch.setattr(tree_model, "code_trees", never)
    other = first.with_background(X[100:150], weights=weights).compile()
    assert np.array_equal(other.shap_values(X), fresh.shap_values(X))
    assert np.array_equal(other.expected_value, fresh.expected_value)
    assert other.feature_names == first.feature_names
    with pytest.raises(fs.InputError, match="columns"):
        first.with_background(X[:, :3])


def variants(forest):
    model, X = forest
    yield fs.TreeExplainer(model, X[:60]), X
    yield fs.TreeExplainer(model, X[:60], strategy="walk"), X
    yield fs.TreeExplainer(model, X[:60], strategy="tables", precision="double"), X
    yield fs.TreeExplainer(model, X[:60], memory=30_000, weights=np.arange(1.0, 61.0)), X
    yield fs.TreeExplainer(model), X
    yield fs.TreeExplainer(model, X[:60], groups={"g": [0, 3]}), X
    for library, name in (("sklearn", "HistGradientBoostingRegressor frame"), ("catboost", "frame")):
        model, frame, _ = CASES[library][name]()
        yield fs.TreeExplainer(model, frame[:60]), frame
    for library, name in (("xgboost", "frame"), ("lightgbm", "frame"), ("xgboost", "missing=0.5")):
        model, frame, _ = CASES[library][name]()
        yield fs.TreeExplainer(model, frame[:60]), frame


def test_files_and_pickles_hold_everything(forest, tmp_path):
    for k, (explainer, X) in enumerate(variants(forest)):
        expected = explainer.expected_value
        explainer.save(tmp_path / f"{k}.fshap")
        want = explainer.shap_values(X[:40])
        copies = [fs.load(tmp_path / f"{k}.fshap")]
        copies += [pickle.loads(pickle.dumps(explainer)), pickle.loads(pickle.dumps(copies[0]))]
        for copy in copies:
            assert np.array_equal(copy.shap_values(X[:40], check_additivity=True), want)
            assert np.array_equal(copy.expected_value, expected)
            assert copy.feature_names == explainer.feature_names
            assert copy.player_names == explainer.player_names
            assert copy.plan(10).strategy == explainer.plan(10).strategy
            if explainer.engine.background is None:
                continue
            other = copy.with_background(X[100:130]).shap_values(X[:40])
            direct = explainer.with_background(X[100:130]).shap_values(X[:40])
            assert_within(other, direct, 1e-6)


@pytest.mark.parametrize("estimated", [True, False])
def test_files_hold_background_rows_instead_of_large_tables(forest, tmp_path, monkeypatch, estimated):
    monkeypatch.setattr("fouriershap._shapley.trees.engine.FILE_TABLES", 100)
    for k, (explainer, X) in enumerate(variants(forest)):
        if not estimated:
            explainer.compile()
        explainer.save(path := tmp_path / f"{k}.fshap")
        loaded = fs.load(path)
        assert_within(loaded.shap_values(X[:40]), explainer.shap_values(X[:40]), 1e-6)
        np.testing.assert_allclose(loaded.expected_value, explainer.expected_value, rtol=1e-6)
        if explainer.engine.model.strategy == "tables":
            assert loaded.engine.tables is not None
            continue
        assert loaded.engine.tables is None
        built = loaded.compile()
        assert_within(built.shap_values(X[:40]), explainer.shap_values(X[:40]), 1e-6)
        assert (built.engine.tables is None) == (explainer.compile().engine.tables is None)


def test_a_pickle_before_compiling(forest):
    model, X = forest
    explainer = pickle.loads(pickle.dumps(fs.TreeExplainer(model, X)))
    assert_within(explainer.shap_values(X[:5]), fs.TreeExplainer(model, X).shap_values(X[:5]), 1e-9)


_NO_LIBRARIES = """
import pickle, sys
for name in ("sklearn", "xgboost", "lightgbm", "catboost", "shap", "pandas", "scipy"):
    sys.modules[name] = None
import numpy as np
import fouriershap as fs
folder, kind = sys.argv[1:]
path = f"{folder}/explainer.{kind}"
explainer = fs.load(path) if kind == "fshap" else pickle.load(open(path, "rb"))
np.save(f"{folder}/{kind}.npy", explainer.shap_values(np.load(f"{folder}/rows.npy"), check_additivity=True))
"""


@pytest.mark.parametrize("kind", ["fshap", "pickle"])
@pytest.mark.parametrize(
    "case", [("sklearn", "RandomForestClassifier"), ("xgboost", "3 classes"), ("catboost", "SymmetricTree")]
)
def test_explaining_needs_no_model_library(case, kind, tmp_path):
    model, X, _ = CASES[case[0]][case[1]]()
    explainer = fs.TreeExplainer(model, X[:60]).compile()
    explainer.save(tmp_path / "explainer.fshap")
    (tmp_path / "explainer.pickle").write_bytes(pickle.dumps(explainer))
    np.save(tmp_path / "rows.npy", X)
    command = [sys.executable, "-c", _NO_LIBRARIES, str(tmp_path), kind]
    subprocess.run(command, check=True, env=os.environ.copy(), timeout=120)
    assert np.array_equal(np.load(tmp_path / f"{kind}.npy"), explainer.shap_values(X))


def test_additivity_failures_say_where_and_why(forest):
    pytest.importorskip("shap")
    model, X = forest
    explainer = fs.TreeExplainer(model, X[:60], strategy="tables")
    assert explainer(X[:5]).values.shape == (5, 8, 3)
    engine = explainer.engine
    broken = engine.tables.values.copy()
    broken *= 1.01
    engine.policy.built = replace(engine.compiled, tables=replace(engine.tables, values=broken))
    with pytest.raises(
        fs.AdditivityError, match=r"row \d+ \(output \d\).*difference of.*Likely causes.*double"
    ):
        explainer(X, check_additivity=True)
    with pytest.raises(fs.AdditivityError, match=r"tolerance = 0\.0001"):
        explainer.shap_values(X, check_additivity=True)
    with pytest.raises(fs.AdditivityError, match="copy of the model, which agreed with the model itself,"):
        explainer(X, check_additivity=True)
    explainer.inputs.check.answered = False
    with pytest.raises(fs.AdditivityError, match="copy of the model gives"):
        explainer(X, check_additivity=True)
    explainer.shap_values(X)
    assert explainer(X, check_additivity=True, tolerance=0.1).values.shape == explainer(X).values.shape
    explainer.shap_values(X, check_additivity=True, tolerance=0.1)
    broken[0] = np.nan
    wrong = replace(engine.tables, values=np.full_like(broken, np.nan))
    engine.policy.built = replace(engine.compiled, tables=wrong)
    with pytest.raises(fs.AdditivityError, match="row 0"):
        explainer(X, check_additivity=True, tolerance=0.1)


# Deep and large trees


@pytest.mark.parametrize("by_path", [False, True])
def test_a_chain_of_depth_2000(by_path):
    rng = np.random.default_rng(0)
    grown = RandomTrees(rng, 200, range(0, 200, 9), n_thresholds=40)
    follow = rng.integers(40, size=200)
    grown.chain(2000, follow)
    ensemble = grown.coded().ensemble
    rows = np.where(rng.random((40, 200)) < 0.03, rng.integers(40, size=(40, 200)), follow).astype(float)
    explainer = fs.TreeExplainer(ensemble, None if by_path else rows[10:], n_jobs=2)
    explainer.shap_values(rows[:10], check_additivity=True, tolerance=1e-9)
    # The same player for half of the features: two players are few enough for the definition.
    if not by_path:
        owner = np.arange(200) % 2
        grouped = fs.TreeExplainer(ensemble, rows[10:], groups=owner.astype(str).tolist())
        want, _ = brute_force(ensemble, rows[:10], rows[10:], owner, output=lambda e, X: e.predict(X))
        assert_within(with_outputs(grouped.shap_values(rows[:10])), want, 1e-9)


def test_a_deep_chain_on_few_features_is_walked():
    rng = np.random.default_rng(1)
    grown = RandomTrees(rng, 2, n_thresholds=3000)
    grown.chain(2000, rng.integers(3000, size=2))
    rows = rng.integers(3000, size=(30, 2)).astype(float)
    ensemble = grown.coded().ensemble
    explainer = fs.TreeExplainer(ensemble, rows[10:]).compile()
    assert explainer.plan().strategy == "walk"
    want, _ = brute_force(ensemble, rows[:10], rows[10:], output=lambda e, X: e.predict(X))
    assert_within(with_outputs(explainer.shap_values(rows[:10])), want, 1e-9)


@pytest.mark.parametrize("n_features", [3, 25])
def test_100000_leaves(n_features):
    from sklearn.tree import DecisionTreeRegressor

    rng = np.random.default_rng(0)
    X = rng.random((100_000, n_features), dtype=np.float32)
    model = DecisionTreeRegressor(random_state=0, max_features=1).fit(X, rng.normal(size=len(X)))
    assert model.get_n_leaves() == 100_000
    rows = X[:10].astype(float)
    for background in (X[50:60], None):
        explainer = fs.TreeExplainer(model, background)
        values = explainer.shap_values(rows, check_additivity=True, tolerance=1e-6)
    explainer = fs.TreeExplainer(model, X[50:60])
    if n_features == 3:
        values = explainer.compile().shap_values(rows, check_additivity=True)
        want, _ = brute_force(model, rows, X[50:60])
        assert_within(with_outputs(values), want, 1e-6)


def test_a_forest_of_unlimited_depth():
    from sklearn.ensemble import RandomForestRegressor

    X = numbers(n_features=6, seed=3)
    X = np.concatenate([X + k for k in (0.013, 0.027, 0.031)])
    model = RandomForestRegressor(10, random_state=0).fit(X, np.random.default_rng(0).normal(size=len(X)))
    want, _ = brute_force(model, X[:4], X[300:320])
    for strategy in ("tables", "walk", "auto"):
        got = fs.TreeExplainer(model, X[300:320], strategy=strategy, precision="double").shap_values(X[:4])
        assert_within(with_outputs(got), want, 1e-9)


def test_leaf_values_of_very_different_size():
    """A large constant in every leaf costs float32 tables no digits."""
    model, X, _ = CASES["sklearn"]["RandomForestRegressor"]()
    near = fs.TreeExplainer(model, X[:50], strategy="tables")
    e = near.representation
    far = fs.TreeExplainer(
        e.replace(values=e.values + 1e6 * (e.feature < 0)[:, None]), X[:50], strategy="tables"
    )
    assert_within(far.shap_values(X), near.shap_values(X), 1e-6)
    assert far.expected_value == pytest.approx(near.expected_value + 1e6 * e.n_trees)


@pytest.mark.parametrize(("depth", "precision"), [(5, "single"), (12, "single"), (12, "double")])
def test_the_plan_knows_how_large_tables_are(depth, precision):
    from sklearn.ensemble import RandomForestRegressor

    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, size=(2000, 40)).astype(float)
    y = bits @ rng.normal(size=40) + bits[:, 0] * bits[:, 1]
    model = RandomForestRegressor(4, max_depth=depth, max_leaf_nodes=60, random_state=0).fit(bits, y)
    explainer = fs.TreeExplainer(model, bits[:50], precision=precision)
    expected = explainer.plan().table_bytes
    found = explainer.compile().engine.tables.nbytes
    assert found / 3 < expected < 3 * found


def test_sparse_rows_are_walked_where_dense_ones_are_streamed():
    """Pairs of rows that are nearly all zeros come to few leaves, and how many is counted on different rows."""
    from sklearn.ensemble import RandomForestRegressor

    rng, strategies = np.random.default_rng(0), {}
    for share in (0.02, 0.5):
        X = (rng.random((2000, 60)) < share).astype(float)
        model = RandomForestRegressor(20, max_depth=8, random_state=0).fit(X, X @ rng.normal(size=60))
        explainer = fs.TreeExplainer(model, X[:100])
        strategies[share] = explainer.plan(100).strategy
        one, two = (fs.TreeExplainer(model, X[:n]).engine.tree_background.visits for n in (1, 2))
        np.testing.assert_array_equal(one, 1.0)  # a row and itself
        assert two.mean() > 1.0
    assert strategies == {0.02: "walk", 0.5: "stream"}


def test_a_small_walk_is_not_shared_out(monkeypatch):
    """Cutting a millisecond of work into parts would cost twice as much as the work, on any number of threads."""
    from sklearn.ensemble import RandomForestRegressor

    rng = np.random.default_rng(0)
    X = (rng.random((500, 40)) < 0.1).astype(float)
    model = RandomForestRegressor(20, max_depth=6, random_state=0).fit(X, X @ rng.normal(size=40))
    monkeypatch.setattr(TreeEngine, "_walk_in_parts", None)
    explainer = fs.TreeExplainer(model, X[:100], strategy="walk")
    np.testing.assert_array_equal(
        explainer.shap_values(X[:50], n_jobs=1), explainer.shap_values(X[:50], n_jobs=2)
    )


@pytest.mark.parametrize("strategy", ["tables", "stream", "walk"])
@pytest.mark.parametrize("size", [1e-300, 1e-40, 1e38, 1e39, 1e200])
def test_leaves_of_any_size(size, strategy):
    from sklearn.tree import DecisionTreeRegressor

    X = numbers(n_features=4)
    model = DecisionTreeRegressor(random_state=0).fit(X, X[:, 0] * X[:, 1] + X[:, 2])
    model.tree_.value[:] *= size
    values = fs.TreeExplainer(model, X[:40], strategy=strategy).shap_values(X[:3])
    want = oracles.shap_values(lambda rows: model.predict(rows) / size, X[:3], X[:40])
    assert_within(with_outputs(values) / size, want, 1e-12)


@pytest.mark.parametrize("strategy", ["tables", "stream"])
def test_rows_of_usual_size_beside_a_large_leaf(strategy):
    """Errors are small beside each row's own largest value, not only beside that of all rows."""
    from sklearn.tree import DecisionTreeRegressor

    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 10))
    model = DecisionTreeRegressor(random_state=0).fit(X, np.exp(2 * X[:, :4].sum(axis=1)))
    values, want = (
        fs.TreeExplainer(model, X[:1], **options).shap_values(X[:200])
        for options in ({"strategy": strategy}, {"strategy": "walk"})
    )
    assert (np.abs(values - want).max(axis=1) <= 1e-5 * np.abs(want).max(axis=1)).all()


def test_leaves_whose_sums_overflow_are_refused():
    from sklearn.tree import DecisionTreeRegressor

    X = numbers(n_features=4)
    model = DecisionTreeRegressor(random_state=0).fit(X, X[:, 0])
    model.tree_.value[:] *= 1e307
    with pytest.raises(fs.UnsupportedModelError, match="overflow"):
        fs.TreeExplainer(model, X[:40])
