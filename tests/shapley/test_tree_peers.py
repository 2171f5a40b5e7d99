"""`TreeExplainer` against other explainers where they are right, and on what they get wrong."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fouriershap as fs
from models import CASES, classes, coded, coded_target, numbers, raw_output, target
from reader_checks import expected_value_by_cover
from shap_oracle import assert_within, brute_force, with_outputs
from tree_oracles import path_dependent_game, shapley_values

shap = pytest.importorskip("shap")


def shap_interventional(model, background, X):
    masker = shap.maskers.Independent(background, max_samples=len(background))
    return shap.TreeExplainer(model, masker).shap_values(X, check_additivity=False)


def smooth(n_features=6, n_rows=300, seed=0):
    """Rows that do not tie with thresholds, and are the same in float32: there shap is right."""
    X = np.random.default_rng(seed).normal(size=(n_rows, n_features))
    return X.astype(np.float32).astype(np.float64)


def trained(kind, X, y, n_classes, seed):
    labels = np.searchsorted(np.quantile(y, np.arange(1, n_classes) / n_classes), y) if n_classes else y
    suffix = "Classifier" if n_classes else "Regressor"
    if kind in ("RandomForest", "ExtraTrees", "GradientBoosting"):
        from sklearn import ensemble

        return getattr(ensemble, kind + suffix)(n_estimators=6, max_depth=5, random_state=seed).fit(X, labels)
    if kind == "xgboost":
        import xgboost

        return getattr(xgboost, "XGB" + suffix)(n_estimators=6, max_depth=5, n_jobs=1).fit(X, labels)
    if kind == "lightgbm":
        import lightgbm

        return getattr(lightgbm, "LGBM" + suffix)(n_estimators=6, n_jobs=1, verbose=-1).fit(X, labels)
    import catboost

    options = {"iterations": 6, "depth": 5, "verbose": 0, "thread_count": 1, "allow_writing_files": False}
    return getattr(catboost, "CatBoost" + suffix)(**options).fit(X, labels)


KINDS = ["RandomForest", "ExtraTrees", "GradientBoosting", "xgboost", "lightgbm", "catboost"]


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 1000), n_classes=st.sampled_from([0, 2, 3]))
@settings(max_examples=4, deadline=None)
def test_shap_agrees(kind, seed, n_classes):
    if kind in ("GradientBoosting", "catboost") and n_classes == 3:
        n_classes = 2  # of more classes, shap 0.51 refuses the first, and corrupts memory with the second
    X = smooth(seed=seed)
    model = trained(kind, X, target(X), n_classes, seed)
    # Between the training rows, away from thresholds: rows in float32 that tie with none.
    rows, background = smooth(seed=seed + 1)[:20], smooth(seed=seed + 2)[:40]
    want = shap_interventional(model, background, rows)
    for strategy in ("tables", "walk"):
        assert_within(fs.TreeExplainer(model, background, strategy=strategy).shap_values(rows), want, 1e-5)
    by_path = shap.TreeExplainer(model, feature_perturbation="tree_path_dependent")
    want = by_path.shap_values(rows, check_additivity=False)
    for strategy in ("tables", "walk"):
        explainer = fs.TreeExplainer(model, strategy=strategy)
        assert_within(explainer.shap_values(rows, check_additivity=True), want, 1e-5)
        expected = np.ravel(by_path.expected_value)
        np.testing.assert_allclose(np.ravel(explainer.expected_value), expected, rtol=1e-5, atol=1e-5)


def test_shapes_are_shaps():
    X = smooth()
    for kind in ("RandomForest", "xgboost", "lightgbm", "catboost"):
        for n_classes in (0, 2) if kind == "catboost" else (0, 2, 3):
            model = trained(kind, X, target(X), n_classes, 0)
            ours, theirs = fs.TreeExplainer(model, X[:20]), shap.TreeExplainer(model, X[:20])
            explanation, reference = ours(X[:5]), theirs(X[:5], check_additivity=False)
            assert explanation.values.shape == reference.values.shape
            assert np.shape(explanation.base_values) == np.shape(reference.base_values)
            assert np.ravel(ours.expected_value).shape == np.ravel(theirs.expected_value).shape
            if kind != "catboost":  # shap 0.51 leaves out its bias
                np.testing.assert_allclose(
                    explanation.base_values, reference.base_values, rtol=1e-5, atol=1e-5
                )


@pytest.mark.parametrize("name", CASES["xgboost"])
def test_path_dependent_is_xgboosts_own(name):
    import xgboost

    model, X, _ = CASES["xgboost"][name]()
    if "in one tree" in name:
        pytest.skip("XGBoost has no contributions of vector leaves")
    booster = model if isinstance(model, xgboost.Booster) else model.get_booster()
    missing = np.nan if isinstance(model, xgboost.Booster) else model.missing
    best = booster.attr("best_iteration") if not isinstance(model, xgboost.Booster) else None
    rounds = (0, 0 if best is None else int(best) + 1)
    types = booster.feature_types
    matrix = xgboost.DMatrix(X, missing=missing, feature_types=types, enable_categorical=True)
    own = booster.predict(matrix, pred_contribs=True, iteration_range=rounds)
    own = np.moveaxis(own, 1, 2) if own.ndim == 3 else own[:, :, None]
    for strategy in ("tables", "walk"):
        explainer = fs.TreeExplainer(model, strategy=strategy)
        got = with_outputs(explainer.shap_values(X))
        assert_within(got, own[:, :-1], 1e-5, np.abs(own).max())
        np.testing.assert_allclose(np.ravel(explainer.expected_value), own[0, -1], rtol=1e-4, atol=1e-4)


LIGHTGBM_BY_PATH = [name for name in CASES["lightgbm"] if "rf" not in name.split()]


@pytest.mark.parametrize("name", LIGHTGBM_BY_PATH)
def test_path_dependent_is_lightgbms_own(name):
    model, X, _ = CASES["lightgbm"][name]()
    own = np.asarray(model.predict(X, pred_contrib=True))
    explainer = fs.TreeExplainer(model)
    own = own.reshape(len(X), -1, explainer.representation.n_features + 1).transpose(0, 2, 1)
    assert_within(with_outputs(explainer.shap_values(X)), own[:, :-1], 1e-6)
    np.testing.assert_allclose(np.ravel(explainer.expected_value), own[0, -1], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", [name for name in CASES["catboost"] if "combinations" not in name])
def test_path_dependent_is_catboosts_own(name):
    import catboost

    model, X, _ = CASES["catboost"][name]()
    pool = catboost.Pool(X, cat_features=model.get_cat_feature_indices())
    own = model.get_feature_importance(pool, type="ShapValues")
    own = np.moveaxis(own, 1, 2) if own.ndim == 3 else own[:, :, None]
    if np.abs(own.sum(axis=1) - raw_output(model, X)).max() > 1e-6:
        pytest.skip(
            "CatBoost's own values of one output of non-symmetric trees do not add up (seen in 1.2.10)"
        )
    explainer = fs.TreeExplainer(model)
    assert_within(with_outputs(explainer.shap_values(X)), own[:, :-1], 1e-6)
    np.testing.assert_allclose(np.ravel(explainer.expected_value), own[0, -1], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("library", CASES)
def test_path_dependent_by_the_definition(library):
    """Categories, missing values, several outputs: against the recursion of the paper that defined it."""
    for name, make in CASES[library].items():
        model, X, _ = make()
        reading = fs.read_model(model)
        if not reading.trees.has_cover:  # no training rows were counted: there is nothing to compare
            with pytest.raises(fs.InputError, match="Give a background"):
                fs.TreeExplainer(model)
            continue
        explainer = fs.TreeExplainer(model, precision="double")
        e = explainer.representation
        rows = X.iloc[:2] if hasattr(X, "iloc") else X[:2]
        got = with_outputs(explainer.shap_values(rows))
        codes = explainer.engine.model.coded.book.encode(reading.rules.encode(rows))
        for row, values in zip(codes.T, got, strict=True):
            game = path_dependent_game(explainer.engine.model.coded, row, np.arange(e.n_features))
            assert_within(values, shapley_values(game, e.n_features), 1e-9)
        np.testing.assert_allclose(
            np.ravel(explainer.expected_value),
            expected_value_by_cover(reading),
            rtol=1e-6,
            atol=1e-12,
            err_msg=name,
        )


# What peers get wrong


def test_a_background_is_never_cut():
    X = smooth(n_rows=300)
    model = trained("RandomForest", X, target(X), 0, 0)
    few, all_ = fs.TreeExplainer(model, X[:100]), fs.TreeExplainer(model, X)
    assert all_.expected_value == pytest.approx(model.predict(X).mean())
    assert np.abs(few.shap_values(X[:5]) - all_.shap_values(X[:5])).max() > 1e-3
    masker = shap.maskers.Independent(X, max_samples=len(X))
    assert_within(fs.TreeExplainer(model, masker).shap_values(X[:5]), all_.shap_values(X[:5]), 1e-6)
    want = shap_interventional(model, X, X[:5])
    assert_within(all_.shap_values(X[:5]), want, 1e-5)


@pytest.mark.parametrize("strategy", ["tables", "walk"])
def test_trees_of_more_than_32767_nodes(strategy):
    from sklearn.tree import DecisionTreeRegressor

    X = smooth(3, 20_000)
    model = DecisionTreeRegressor(random_state=0).fit(X, np.random.default_rng(0).normal(size=len(X)))
    assert model.tree_.node_count > 32_767
    explainer = fs.TreeExplainer(model, X[50:60], strategy=strategy, precision="double")
    want, _ = brute_force(model, X[:5], X[50:60])
    assert_within(with_outputs(explainer.shap_values(X[:5])), want, 1e-9)


def test_categorical_splits_where_shap_is_wrong():
    import lightgbm
    from sklearn.ensemble import HistGradientBoostingRegressor

    X = coded()
    y = coded_target(X)
    lgb = lightgbm.LGBMRegressor(n_estimators=10, verbose=-1, min_child_samples=5, min_data_per_group=5)
    hist = HistGradientBoostingRegressor(max_iter=10, categorical_features=[3], min_samples_leaf=5)
    for model in (lgb.fit(X, y, categorical_feature=[3]), hist.fit(X, y)):
        want, _ = brute_force(model, X[:10], X[50:80])
        explainer = fs.TreeExplainer(model, X[50:80], precision="double")
        assert explainer.representation.is_categorical[3]
        assert_within(with_outputs(explainer.shap_values(X[:10])), want, 1e-9)


def test_float32_cast_on_rounded_data():
    """0.3 in float32 is above 0.3: which side a row takes is decided after scikit-learn's cast."""
    from sklearn.ensemble import RandomForestRegressor

    X = numbers()
    model = RandomForestRegressor(20, random_state=0).fit(X, target(X))
    rows, background = X[:20], X[100:140]
    want, _ = brute_force(model, rows, background)
    got = fs.TreeExplainer(model, background, precision="double").shap_values(rows)
    assert_within(with_outputs(got), want, 1e-9)
    in_float32 = fs.TreeExplainer(model, background.astype(np.float32)).shap_values(rows.astype(np.float32))
    assert_within(in_float32, got, 1e-6)


def test_xgboost_ties_on_training_rows():
    import xgboost

    X = numbers(n_features=4).astype(np.float64)
    model = xgboost.XGBRegressor(n_estimators=30, max_depth=6, tree_method="exact", n_jobs=1).fit(
        X, target(X)
    )
    explainer = fs.TreeExplainer(model, X, precision="double")
    total = explainer.shap_values(X).sum(axis=1) + explainer.expected_value
    np.testing.assert_allclose(total, raw_output(model, X)[:, 0], atol=1e-5)
    want, _ = brute_force(model, X[:10], X[:30])
    got = fs.TreeExplainer(model, X[:30]).shap_values(X[:10])
    assert_within(with_outputs(got), want, 1e-5)


@pytest.mark.parametrize("name", ["zero_as_missing", "zero_as_missing, nothing missing"])
def test_zero_as_missing(name):
    model, X, _ = CASES["lightgbm"][name]()
    rng = np.random.default_rng(0)
    rows, background = (np.where(rng.random((n, 4)) < 0.4, 0.0, X[:n]) for n in (15, 25))
    want, _ = brute_force(model, rows, background)
    got = fs.TreeExplainer(model, background, precision="double").shap_values(rows)
    assert_within(with_outputs(got), want, 1e-9)


def test_xgboost_missing_is_a_number():
    model, X, _ = CASES["xgboost"]["missing=0.5"]()
    assert (X[:30] == 0.5).any()
    want, _ = brute_force(model, X[:30], X[40:60])
    assert_within(with_outputs(fs.TreeExplainer(model, X[40:60]).shap_values(X[:30])), want, 2e-6)


def test_all_classes_and_all_targets():
    from sklearn.ensemble import ExtraTreesRegressor, RandomForestClassifier

    X = numbers()
    y = np.stack([target(X), X[:, 0] ** 2, -X[:, 1]], axis=1)
    for model in (
        RandomForestClassifier(5, max_depth=5, random_state=0).fit(X, classes(X, 4)),
        ExtraTreesRegressor(5, max_depth=5, random_state=0).fit(X, y),
    ):
        want, expected = brute_force(model, X[:6], X[20:40])
        explainer = fs.TreeExplainer(model, X[20:40], precision="double")
        assert_within(explainer.shap_values(X[:6]), want, 1e-9)
        np.testing.assert_allclose(explainer.expected_value, expected, rtol=1e-9)


def test_lightgbm_forest_is_the_mean_over_its_trees():
    model, X, _ = CASES["lightgbm"]["rf"]()
    explainer = fs.TreeExplainer(model, X[:50])
    total = explainer.shap_values(X).sum(axis=1) + explainer.expected_value
    assert_within(total, model.predict(X), 1e-6)


def test_80_features_on_a_path():
    """1 where all features are 1, else 0: a row of ones shares it among those that the background lacks."""
    n = 80
    inner, leaves = np.arange(n), np.arange(n, 2 * n + 1)
    none = np.full(n + 1, -1)
    ensemble = fs.TreeEnsemble(
        n_features=n,
        n_outputs=1,
        dtype=np.float64,
        roots=[0],
        tree_output=[0],
        feature=np.concatenate([inner, none]),
        threshold=np.ones(2 * n + 1),
        left=np.concatenate([leaves[:-1], none]),
        right=np.concatenate([inner[1:], leaves[-1:], none]),
        missing_left=np.zeros(2 * n + 1, dtype=bool),
        category_set=np.full(2 * n + 1, -1),
        set_start=[0],
        set_categories=[],
        cover=np.ones(2 * n + 1),
        values=np.append(np.zeros(2 * n), 1.0)[:, None],
        base=[0.5],
    )
    background = (np.random.default_rng(0).random((30, n)) < np.linspace(0, 1, 30)[:, None]).astype(float)
    lacks = background == 0
    share = lacks / np.maximum(lacks.sum(axis=1, keepdims=True), 1)
    explainer = fs.TreeExplainer(ensemble, background)
    assert explainer.plan().strategy == "walk"
    values = explainer.shap_values(np.ones((9, n)), check_additivity=True)
    assert_within(values, np.tile(share.mean(axis=0), (9, 1)), 1e-9)
