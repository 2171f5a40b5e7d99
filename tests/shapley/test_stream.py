"""Trees streamed by bottom subtrees: the definition, every kind of tree, independence of how work is cut."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import fouriershap as fs
from fouriershap._base.parallel import for_each_in_turn
from fouriershap._shapley.trees import plan, stream, walk
from fouriershap._shapley.trees.cut import cut_wide
from models import classes, numbers
from tree_kernel_cases import ensembles
from tree_oracles import RandomTrees, interventional_game, shapley_values


def raw_rows(rng, n_rows, n_features):
    return rng.choice([*np.arange(-1.0, 91.0), np.nan], size=(n_rows, n_features))


@given(ensembles(most_features=5), st.booleans())
@settings(max_examples=25, deadline=None)
def test_streaming_gives_the_shapley_values(model, weighted):
    coded, players, rng = model
    e = coded.ensemble
    background, rows = raw_rows(rng, 7, e.n_features), raw_rows(rng, 3, e.n_features)
    weights = rng.dirichlet(np.ones(7)) if weighted else None
    names = [f"x{i}" for i in range(e.n_features)]
    groups = {f"p{p}": [names[f] for f in np.flatnonzero(players == p)] for p in range(players.max() + 1)}
    explainer = fs.TreeExplainer(
        e,
        background,
        weights=weights,
        feature_names=names,
        groups=groups,
        strategy="stream",
        precision="double",
    )
    got = explainer.shap_values(rows)
    got = got[..., None] if got.ndim == 2 else got
    order = [list(groups).index(name) for name in explainer.player_names]
    share = np.full(7, 1 / 7) if weights is None else weights
    for row, values in zip(coded.book.encode(rows).T, got, strict=True):
        game = interventional_game(coded, row, coded.book.encode(background), share, players)
        want = shapley_values(game, int(players.max()) + 1)[order]
        np.testing.assert_allclose(values, want, rtol=1e-9, atol=1e-10)


@given(
    seed=st.integers(0, 2**32 - 1),
    n_features=st.integers(8, 28),
    n_outputs=st.integers(1, 4),
    vector=st.booleans(),
    index=st.sampled_from(["shapley", "banzhaf"]),
)
@settings(max_examples=25, deadline=None)
def test_long_paths_agree_with_the_walk(seed, n_features, n_outputs, vector, index):
    """Bottom subtrees with a table, with several, and by pairs; equal rows, missing values, categories."""
    rng = np.random.default_rng(seed)
    grown = RandomTrees(rng, n_features, [1, 4], n_thresholds=int(rng.choice([3, 40, 400])))
    follow = rng.integers(3, size=n_features)
    grown.chain(int(rng.integers(10, 60)), follow)
    grown.grow(6)
    ensemble = grown.coded(n_outputs, vector).ensemble
    rows = rng.integers(-1, 400, size=(700, n_features)).astype(float)
    rows = np.where(rng.random(rows.shape) < 0.8, follow, rows)
    rows[rng.random(rows.shape) < 0.02] = np.nan
    options = {"weights": rng.uniform(size=350), "index": index}
    want = fs.TreeExplainer(ensemble, rows[:350], **options, strategy="walk").shap_values(rows)
    largest = np.abs(want).max()
    for precision, atol in (("double", 1e-12), ("single", 2e-6)):
        explainer = fs.TreeExplainer(ensemble, rows[:350], **options, strategy="stream", precision=precision)
        np.testing.assert_allclose(explainer.shap_values(rows), want, rtol=0, atol=atol * largest)


@pytest.fixture(scope="module")
def forest():
    """Trees of unlimited depth, for three classes."""
    from sklearn.ensemble import RandomForestClassifier

    X = numbers(1200, n_features=20)
    return RandomForestClassifier(9, random_state=0).fit(X, classes(X, 3)), X


def test_neither_threads_nor_batches_change_a_bit(forest, monkeypatch):
    model, X = forest
    explainer = fs.TreeExplainer(model, X[:400], strategy="stream")
    monkeypatch.setattr(stream, "_WORTH_PARTS", 0.0)
    one = explainer.shap_values(X, n_jobs=1)
    streamed = explainer.engine.model.stream_trees
    assert len(stream._parts(streamed, plan.choose_limits(1200, 400), 1.0)) > 2
    assert (explainer.shap_values(X, n_jobs=3) == one).all()
    monkeypatch.setattr(plan, "_BATCH_ROWS", 256)
    again = fs.TreeExplainer(model, X[:400], strategy="stream")
    assert again.engine.model.bottom_subtrees.batch_rows == 256
    assert (again.shap_values(X, n_jobs=1) == again.shap_values(X, n_jobs=2)).all()
    np.testing.assert_allclose(again.shap_values(X), one, rtol=0, atol=1e-6 * np.abs(one).max())


def test_equal_rows_are_explained_once(forest, monkeypatch):
    """Merging, which large calls do, changes no value."""
    model, X = forest
    explainer = fs.TreeExplainer(model, X[:400], strategy="stream", precision="double")
    want = explainer.shap_values(X)
    monkeypatch.setattr(plan, "_MERGED_FROM", 1)
    few = np.round(X)  # many of which are equal
    again = fs.TreeExplainer(model, few[:400], strategy="stream", precision="double")
    walked = fs.TreeExplainer(model, few[:400], strategy="walk")
    np.testing.assert_allclose(explainer.shap_values(X), want, rtol=0, atol=1e-12)
    np.testing.assert_allclose(again.shap_values(few), walked.shap_values(few), rtol=0, atol=1e-12)


def test_probabilities_of_the_last_class_follow_from_the_others(forest):
    model, X = forest
    read = fs.TreeExplainer(model, X[:9]).engine.model
    assert read.walk_trees.outputs_sum_to_constant and read.walk_trees.drop_last_output.n_outputs == 2
    assert read.stream_trees.trees.n_outputs == 2
    rng = np.random.default_rng(0)
    grown = RandomTrees(rng, 4)
    grown.grow(3)
    unbalanced = fs.TreeExplainer(grown.coded(3, True).ensemble, raw_rows(rng, 5, 4))
    assert not unbalanced.engine.model.walk_trees.outputs_sum_to_constant


@given(ensembles(most_features=6), st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_what_is_cut_off_adds_up(model, most_players):
    coded, players, rng = model
    trees = walk.prepare(coded, players)
    near, far = cut_wide(trees, most_players)
    assert near.tree_players.max(initial=0) <= most_players
    codes = coded.book.encode(raw_rows(rng, 12, coded.ensemble.n_features).astype(coded.ensemble.dtype))
    rows, background = np.ascontiguousarray(codes[:, :5]), np.ascontiguousarray(codes[:, 5:])
    want = walk.interventional(trees, rows, background)
    got = walk.interventional(near, rows, background)
    if far is None:
        assert trees.tree_players.max(initial=0) <= most_players
    else:
        got = walk.interventional(far, rows, background, out=got)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-12 * max(np.abs(want).max(initial=0), 1e-3))


@pytest.mark.parametrize("kind", [DecisionTreeRegressor, DecisionTreeClassifier])
def test_trees_with_too_many_players_are_streamed_but_for_their_ends(kind):
    n = 3 * plan.MOST_PLAYERS // 2
    X = np.vstack([np.eye(n), np.random.default_rng(0).integers(0, 2, size=(30, n))])
    y = np.arange(len(X)) % 3 if kind is DecisionTreeClassifier else np.arange(len(X), dtype=float) ** 2
    chains = kind(random_state=0, max_features=1).fit(np.eye(n), y[:n])
    explainer = fs.TreeExplainer(chains, X[:40], strategy="stream", precision="double")
    ready = explainer.engine.model.stream_trees
    assert explainer.engine.model.walk_trees.tree_players.max() > plan.MOST_PLAYERS
    assert ready.trees.tree_players.max() <= plan.MOST_PLAYERS and len(ready.others) == 1
    want = fs.TreeExplainer(chains, X[:40], strategy="walk").shap_values(X)
    np.testing.assert_allclose(explainer.shap_values(X), want, rtol=0, atol=1e-12 * np.abs(want).max())


def test_trees_with_too_long_paths_are_walked():
    rng = np.random.default_rng(0)
    grown = RandomTrees(rng, 20, [3])
    target = rng.integers(90, size=20)
    grown.chain(2 * plan.MOST_STREAM_DEPTH, target)
    grown.grow(5)
    ensemble = grown.coded(1).ensemble
    rows = np.where(rng.random((150, 20)) < 0.9, target, raw_rows(rng, 150, 20))
    explainer = fs.TreeExplainer(ensemble, rows[:60], strategy="stream")
    planned = explainer.plan(150)
    assert (planned.strategy, planned.n_stream_trees, planned.n_walk_trees) == ("stream+walk", 1, 1)
    want = fs.TreeExplainer(ensemble, rows[:60], strategy="walk").shap_values(rows)
    np.testing.assert_allclose(explainer.shap_values(rows), want, rtol=0, atol=1e-6 * np.abs(want).max())


def test_trees_that_are_all_too_deep_to_stream():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1000, 400)), rng.standard_cauchy(1000) ** 7
    model = ExtraTreesRegressor(1, random_state=0).fit(X, y)
    explainer = fs.TreeExplainer(model, X)
    values = explainer.shap_values(X)
    want = model.predict(X) - explainer.expected_value
    np.testing.assert_allclose(values.sum(axis=1), want, rtol=0, atol=1e-12 * np.abs(values).max())
    assert explainer.plan(1000).n_walk_trees == 1


def test_a_forest_whose_tables_do_not_fit_is_streamed(forest):
    model, X = forest
    assert fs.TreeExplainer(model, X).plan(100_000).strategy == "tables"
    explainer = fs.TreeExplainer(model, X, memory=10_000)
    planned = explainer.plan(100_000)
    assert planned.strategy == "stream" and planned.stream_seconds < 100_000 * planned.walk_row_seconds
    assert fs.TreeExplainer(model, X[:2]).plan(1).strategy == "walk"


def test_streaming_needs_a_background(forest):
    model, _ = forest
    with pytest.raises(fs.InputError, match="strategy='stream' needs a background"):
        fs.TreeExplainer(model, strategy="stream")


def test_streaming_has_no_tables_for_xla(forest):
    pytest.importorskip("jax")
    model, X = forest
    with pytest.raises(fs.InputError, match="strategy='stream' does not build"):
        fs.TreeExplainer(model, X[:5], strategy="stream").to("jax")


def test_a_file_remembers_the_strategy(forest, tmp_path):
    model, X = forest
    explainer = fs.TreeExplainer(model, X[:50], strategy="stream")
    explainer.save(tmp_path / "forest.fshap")
    again = fs.load(tmp_path / "forest.fshap")
    assert again.plan(10).strategy == "stream"
    assert (again.shap_values(X[:100]) == explainer.shap_values(X[:100])).all()


def test_work_is_added_in_its_order():
    import time

    added = []

    def work(k):
        time.sleep(0.01 * (k % 3))
        return k

    for_each_in_turn(work, added.append, 12, 4)
    assert added == list(range(12))

    def fail(k):
        if k == 3:
            raise ValueError("three")
        return k

    added.clear()
    with pytest.raises(ValueError, match="three"):
        for_each_in_turn(fail, added.append, 12, 4)
    assert added == list(range(len(added)))
