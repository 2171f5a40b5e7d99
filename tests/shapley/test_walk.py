import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fouriershap import _kernels as kernels
from fouriershap._kernels import walk_numpy
from fouriershap._shapley.indices import SHAPLEY
from fouriershap._shapley.trees import walk
from fouriershap._trees.codes import code_trees
from fouriershap._trees.ensemble import TreeEnsemble
from tree_kernel_cases import ensembles
from tree_oracles import (
    RandomTrees,
    evaluate,
    interventional_game,
    path_dependent_game,
    random_codes,
    shapley_values,
)

ENGINES = {
    "joint": lambda: (kernels.walk.interventional, False),
    "rows": lambda: (kernels.walk.interventional, True),
    "numpy": lambda: (walk_numpy.interventional, False),
}


def arrays_of(trees):
    return [getattr(trees, name) for name in walk_numpy.Trees._fields]


def run(engine, trees, codes, background, weights=None):
    n_background = background.shape[1]
    weights = np.full(n_background, 1 / n_background) if weights is None else weights / weights.sum()
    out = np.zeros((codes.shape[1], trees.n_players, trees.n_outputs))
    kernel, by_row = ENGINES[engine]()
    bound = walk_numpy.Trees(*arrays_of(trees)) if engine == "numpy" else trees.bound
    moments = trees.moments(SHAPLEY)
    kernel(bound, codes, 0, codes.shape[1], background, weights, moments, by_row, out)
    return out


def assert_close(got, want, tolerance=1e-9):
    assert np.abs(got - want).max(initial=0) <= tolerance * max(np.abs(want).max(initial=0), 1e-3)


@given(ensembles(most_thresholds=8), st.booleans())
@settings(max_examples=40, deadline=None)
def test_interventional_matches_brute_force(model, weighted):
    coded, players, rng = model
    trees = walk.prepare(coded, players)
    codes, background = random_codes(rng, coded, 2), random_codes(rng, coded, 5)
    weights = rng.uniform(0.1, 3, size=5) if weighted else None
    want = np.array(
        [
            shapley_values(
                interventional_game(coded, row, background, weights, players),
                trees.n_players,
            )
            for row in codes.T
        ]
    )
    for engine in ENGINES:
        assert_close(run(engine, trees, codes, background, weights), want)


@given(ensembles(most_thresholds=8))
@settings(max_examples=40, deadline=None)
def test_path_dependent_matches_brute_force(model):
    coded, players, rng = model
    trees = walk.prepare(coded, players)
    codes = random_codes(rng, coded, 3)
    want = np.array(
        [shapley_values(path_dependent_game(coded, row, players), trees.n_players) for row in codes.T]
    )
    assert_close(walk.path_dependent(trees, codes), want)


@given(ensembles(most_features=30))
@settings(max_examples=30, deadline=None)
def test_predictions(model):
    coded, players, rng = model
    trees = walk.prepare(coded, players)
    codes = random_codes(rng, coded, 70)
    assert_close(walk.predict(trees, codes), np.array([evaluate(coded, row) for row in codes.T]))


def check_efficiency(trees, codes, background, phi):
    gap = walk.predict(trees, codes) - walk.predict(trees, background).mean(axis=0)
    assert_close(phi.sum(axis=1), gap)


@pytest.mark.parametrize("n_features", [40, 300])
def test_chain_of_depth_2000(n_features):
    rng = np.random.default_rng(n_features)
    grown = RandomTrees(rng, n_features, range(0, n_features, 7), n_thresholds=40)
    target = rng.integers(40, size=n_features)
    grown.chain(2000, target)
    coded = grown.coded()
    trees = walk.prepare(coded)
    # Rows that follow the chain nearly all the way down, so that every leaf on it matters.
    follow = coded.book.encode(target[None].astype(float))
    codes, background = (
        np.where(rng.random((n_features, n)) < 0.05, random_codes(rng, coded, n), follow) for n in (10, 70)
    )
    phi = run("joint", trees, codes, background)
    assert int(trees.tree_players[0]) > (64 if n_features > 64 else 30)
    check_efficiency(trees, codes, background, phi)
    assert_close(run("rows", trees, codes, background), phi)
    assert_close(run("numpy", trees, codes, background), phi)
    # Efficiency: the sum of a row's values and its prediction differ by the same number for all rows.
    base = walk.predict(trees, codes) - walk.path_dependent(trees, codes).sum(axis=1)
    assert_close(base, base[0])


def test_more_than_64_players_on_a_path():
    # A conjunction of all features: its SHAP values are known for every pair of rows.
    n = 100
    grown = RandomTrees(np.random.default_rng(0), n)
    nodes = np.arange(2 * n + 1)
    inner = nodes < 2 * n
    inner &= nodes % 2 == 0
    grown.roots = [0]
    grown.cover = [1.0] * (2 * n + 1)
    grown.columns = {
        "feature": np.where(inner, nodes // 2, -1),
        "threshold": np.zeros(2 * n + 1),
        "left": np.where(inner, nodes + 1, -1),
        "right": np.where(inner, nodes + 2, -1),
        "missing": np.ones(2 * n + 1, dtype=bool),
        "set": np.full(2 * n + 1, -1),
    }
    coded = grown.coded()
    values = np.zeros((2 * n + 1, 1))
    values[-1] = 1.0
    coded = code_trees(coded.ensemble.replace(values=values))
    trees = walk.prepare(coded)
    rng = np.random.default_rng(1)
    codes = (rng.random((n, 12)) < 0.95).astype(np.int32)
    background = (rng.random((n, 80)) < 0.95).astype(np.int32)
    want = np.zeros((12, n))
    for i, x in enumerate(codes.T == 1):
        for b in background.T == 1:
            if (x | b).all():
                z, c = (~x).sum(), (~b).sum()
                beta = np.prod(np.arange(1, min(z, c) + 1) / (max(z, c) + np.arange(1, min(z, c) + 1)))
                want[i, ~b] += beta / max(c, 1) / 80
                want[i, ~x] -= beta / max(z, 1) / 80
    assert trees.tree_players[0] == n
    for engine in ENGINES:
        assert_close(run(engine, trees, codes, background)[:, :, 0], want)


def test_row_ranges_touch_no_other_rows():
    rng = np.random.default_rng(5)
    grown = RandomTrees(rng, 6, [2])
    grown.grow(5)
    coded = grown.coded()
    trees = walk.prepare(coded)
    codes, background = random_codes(rng, coded, 40), random_codes(rng, coded, 10)
    whole = walk.interventional(trees, codes, background)
    parts = np.zeros_like(whole)
    for rows in (slice(0, 3), slice(3, 25), slice(25, 40)):
        walk.interventional(trees, codes, background, rows=rows, out=parts)
    assert_close(parts, whole)
    some = walk.path_dependent(trees, codes, rows=slice(7, 30))
    assert not some[:7].any() and not some[30:].any()
    assert_close(some[7:30], walk.path_dependent(trees, codes)[7:30])
    assert walk.leaf_visits(trees, background)[0] >= 1


def forest_as_trees(forest):
    """A scikit-learn forest as a TreeEnsemble; x <= threshold on float32 is x < the next float32 above."""
    parts = [estimator.tree_ for estimator in forest.estimators_]
    roots = np.concatenate([[0], np.cumsum([p.node_count for p in parts])[:-1]])
    thresholds = np.concatenate([p.threshold for p in parts])
    down = thresholds.astype(np.float32)
    down = np.where(down > thresholds, np.nextafter(down, np.float32(-np.inf)), down)

    def children(name):
        return np.concatenate(
            [
                np.where(getattr(p, name) < 0, -1, getattr(p, name) + r)
                for p, r in zip(parts, roots, strict=True)
            ]
        )

    feature = np.concatenate([np.where(p.children_left < 0, -1, p.feature) for p in parts])
    values = np.concatenate([p.value[:, 0, :] for p in parts]) / len(parts)
    n_nodes, width = values.shape
    return TreeEnsemble(
        n_features=forest.n_features_in_,
        n_outputs=width,
        dtype=np.float32,
        roots=roots,
        tree_output=np.full(len(parts), -1),
        feature=feature,
        threshold=np.nextafter(down, np.float32(np.inf)).astype(float),
        left=children("children_left"),
        right=children("children_right"),
        missing_left=np.concatenate([p.missing_go_to_left.astype(bool) for p in parts]),
        category_set=np.full(n_nodes, -1),
        set_start=[0],
        set_categories=[],
        cover=np.concatenate([p.weighted_n_node_samples for p in parts]),
        values=np.where(feature[:, None] < 0, values, 0.0),
        base=np.zeros(width),
    )


def test_matches_shap_on_a_forest():
    shap = pytest.importorskip("shap")
    ensemble = pytest.importorskip("sklearn.ensemble")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 8)).astype(np.float32)
    y = (X[:, 0] * X[:, 1] + X[:, 2] > 0).astype(int) + (X[:, 3] > 1)
    forest = ensemble.RandomForestClassifier(5, random_state=0).fit(X, y)
    coded = code_trees(forest_as_trees(forest))
    trees = walk.prepare(coded)
    codes = coded.book.encode(X[:40])
    assert_close(walk.predict(trees, codes), forest.predict_proba(X[:40]))
    want = shap.TreeExplainer(forest, feature_perturbation="tree_path_dependent").shap_values(X[:40])
    assert_close(walk.path_dependent(trees, codes), want, 1e-5)
    background = coded.book.encode(X[100:150])
    masker = shap.maskers.Independent(X[100:150], max_samples=50)
    want = shap.TreeExplainer(forest, masker).shap_values(X[:40], check_additivity=False)
    # shap rounds thresholds to the nearest float32, which can move a row to the other side.
    difference = np.abs(walk.interventional(trees, codes, background) - want)
    assert np.quantile(difference, 0.9) <= 1e-5
