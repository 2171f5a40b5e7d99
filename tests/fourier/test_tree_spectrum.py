import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fouriershap as fs
from fouriershap import CapacityError, FourierShapWarning, InputError
from models import raw_output
from tree_oracles import RandomTrees


def cube(n):
    return (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(np.float64)


def binary_data(seed, n_features, n_rows=200):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, size=(n_rows, n_features)).astype(np.float64)
    effects = rng.normal(size=n_features)
    y = X @ effects + (X[:, 0] * X[:, -1] - X[:, n_features // 2]) * 2 + rng.normal(size=n_rows) * 0.1
    return X, y


def train(library, X, y, seed, n_classes=0):
    labels = np.searchsorted(np.quantile(y, np.arange(1, n_classes) / n_classes), y) if n_classes else y
    if library == "sklearn":
        from sklearn import ensemble

        kind = ensemble.RandomForestClassifier if n_classes else ensemble.RandomForestRegressor
        return kind(6, max_depth=5, random_state=seed).fit(X, labels)
    if library == "xgboost":
        import xgboost

        kind = xgboost.XGBClassifier if n_classes else xgboost.XGBRegressor
        return kind(n_estimators=6, max_depth=4, n_jobs=1, random_state=seed).fit(X, labels)
    if library == "lightgbm":
        import lightgbm

        kind = lightgbm.LGBMClassifier if n_classes else lightgbm.LGBMRegressor
        options = {"n_estimators": 6, "num_leaves": 12, "min_child_samples": 5, "n_jobs": 1, "verbose": -1}
        return kind(**options, random_state=seed).fit(X, labels)
    import catboost

    kind = catboost.CatBoostClassifier if n_classes else catboost.CatBoostRegressor
    options = {"iterations": 6, "depth": 4, "verbose": 0, "thread_count": 1, "allow_writing_files": False}
    return kind(**options, random_seed=seed).fit(X, labels)


@pytest.mark.parametrize("library", ["sklearn", "xgboost", "lightgbm", "catboost"])
@given(seed=st.integers(0, 10**6), n_features=st.integers(2, 8), n_classes=st.sampled_from([0, 0, 3]))
@settings(max_examples=6, deadline=None)
def test_equals_the_model_and_its_explainer(library, seed, n_features, n_classes):
    X, y = binary_data(seed, n_features)
    model = train(library, X, y, seed % 1000, n_classes)
    spectrum = fs.tree_spectrum(model)
    everywhere = cube(n_features)
    want = raw_output(model, everywhere)
    tolerance = 1e-5 if library == "xgboost" else 1e-9  # XGBoost adds up in float32
    got = spectrum(everywhere).reshape(len(everywhere), -1)
    assert np.abs(got - want).max() <= tolerance * np.abs(want).max()
    explainer = fs.TreeExplainer(model, X[:50], precision="double")
    values = fs.spectra.shap_values(spectrum, X[:20], X[:50])
    expected = explainer.shap_values(X[:20])
    assert values.shape == expected.shape
    assert np.abs(values - expected).max() <= 1e-9 * np.abs(expected).max()


@given(seed=st.integers(0, 2**32 - 1), n_features=st.integers(1, 6), vector=st.booleans())
@settings(max_examples=25, deadline=None)
def test_any_trees_on_the_cube(seed, n_features, vector):
    """Random splits: some do not separate 0 from 1, sets of categories, features twice on a path, leaves."""
    rng = np.random.default_rng(seed)
    grown = RandomTrees(rng, n_features, range(0, n_features, 2), n_thresholds=3)
    for depth in (0, 3, 5):
        grown.grow(depth)
    grown.chain(9)
    ensemble = grown.coded(3, vector).ensemble
    ensemble = ensemble.replace(base=np.array([1.0, 0.0, -2.0]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FourierShapWarning)
        spectrum = fs.tree_spectrum(ensemble)
    everywhere = cube(n_features)
    assert spectrum.coefficients.shape == (len(spectrum), 3)
    np.testing.assert_allclose(spectrum(everywhere), ensemble.predict(everywhere), rtol=0, atol=1e-12)


def test_many_features_take_many_words():
    X, y = binary_data(0, 200, 400)
    model = train("sklearn", X, y, 0)
    np.testing.assert_allclose(fs.tree_spectrum(model)(X), model.predict(X), rtol=1e-12)


def test_chunks_add_up(monkeypatch):
    from fouriershap._fourier import tree_spectrum as _spectrum

    X, y = binary_data(3, 12)
    model = train("sklearn", X, y, 3)
    whole = fs.tree_spectrum(model)
    monkeypatch.setattr(_spectrum, "_CHUNK", 16)
    parts = fs.tree_spectrum(model)
    assert np.array_equal(whole.frequencies, parts.frequencies)
    np.testing.assert_allclose(parts.coefficients, whole.coefficients, rtol=0, atol=1e-13)


def test_what_cancels_is_left_out():
    """A tree that asks about x1 on both sides of x0, for nothing."""
    from sklearn.tree import DecisionTreeRegressor

    X = cube(3)
    model = DecisionTreeRegressor(random_state=0).fit(X, X[:, 0] * 0.3 + 0.1)
    spectrum = fs.tree_spectrum(model)
    assert spectrum.frequencies.tolist() == [[False] * 3, [True, False, False]]
    np.testing.assert_allclose(spectrum.coefficients, [0.25, -0.15])


def test_zero_that_counts_as_missing():
    import lightgbm
    import xgboost

    X, y = binary_data(5, 5)
    lgb = lightgbm.LGBMRegressor(n_estimators=5, verbose=-1, zero_as_missing=True, min_child_samples=5)
    for model in (lgb.fit(X, y), xgboost.XGBRegressor(n_estimators=5, max_depth=3, missing=0.0).fit(X, y)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FourierShapWarning)
            spectrum = fs.tree_spectrum(model)
        np.testing.assert_allclose(spectrum(cube(5)), raw_output(model, cube(5))[:, 0], rtol=1e-5, atol=1e-6)


def test_binary_categories():
    import catboost
    import lightgbm

    X, y = binary_data(6, 4)
    as_ints = X.astype(int)
    lgb = lightgbm.LGBMRegressor(n_estimators=5, verbose=-1, min_child_samples=5, min_data_per_group=5)
    cat = catboost.CatBoostRegressor(
        iterations=5, depth=3, verbose=0, one_hot_max_size=5, allow_writing_files=False
    )
    for model in (
        lgb.fit(X, y, categorical_feature=[0, 2]),
        cat.fit(as_ints, y, cat_features=[0, 2]),
    ):
        spectrum = fs.tree_spectrum(model)
        want = raw_output(model, cube(4).astype(int))[:, 0]
        np.testing.assert_allclose(spectrum(cube(4)), want, rtol=1e-9, atol=1e-12)


def test_pruning_is_the_papers_and_carries_its_bound():
    X, y = binary_data(7, 10)
    model = train("sklearn", X, y, 7)
    whole, pruned = fs.tree_spectrum(model), fs.tree_spectrum(model, prune=True)
    assert len(pruned) < len(whole)
    assert pruned == whole.prune(energy=0.9995, min_amplitude=0.005)
    moved = np.abs(fs.spectra.shap_values(pruned, X[:50], X) - fs.spectra.shap_values(whole, X[:50], X)).max(
        axis=0
    )
    assert (moved <= pruned.prune_bound() + 1e-12).all()


def test_an_explosion_is_announced_by_its_size():
    n = 40
    grown = RandomTrees(np.random.default_rng(0), n, n_thresholds=2)
    grown.chain(n)
    ensemble = grown.coded().ensemble
    # A chain that tests every feature once: leaves at 1, 2, ..., n, and the last twice.
    feature = np.where(ensemble.feature >= 0, np.cumsum(ensemble.feature >= 0) - 1, -1)
    ensemble = ensemble.replace(feature=feature, threshold=np.ones(len(feature)))
    expected = sum(2**d for d in range(1, n + 1)) + 2**n
    with pytest.raises(CapacityError, match=f"{expected:,} terms"):
        fs.tree_spectrum(ensemble)
    small = ensemble.select(np.array([True]))
    with pytest.raises(CapacityError, match="max_terms = 100"):
        fs.tree_spectrum(small, max_terms=100)


def test_features_that_are_not_binary_are_noticed():
    from sklearn.tree import DecisionTreeRegressor

    X = np.random.default_rng(0).normal(size=(100, 2)) * 5
    model = DecisionTreeRegressor(max_depth=4, random_state=0).fit(X, X[:, 0])
    with pytest.warns(FourierShapWarning, match="not binary"):
        spectrum = fs.tree_spectrum(model)
    np.testing.assert_allclose(spectrum(cube(2)), model.predict(cube(2)))
    binary = DecisionTreeRegressor(random_state=0).fit(cube(2), [1.0, 2.0, 3.0, 5.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fs.tree_spectrum(binary)


@pytest.mark.parametrize("max_terms", [0, -1, 2.5, True, "many"])
def test_wrong_limits(max_terms):
    from sklearn.tree import DecisionTreeRegressor

    with pytest.raises(InputError, match="max_terms"):
        fs.tree_spectrum(DecisionTreeRegressor().fit(cube(2), [0, 1, 2, 3]), max_terms=max_terms)


def test_other_models_are_refused():
    from sklearn.linear_model import LinearRegression

    model = LinearRegression().fit([[0.0], [1.0]], [0.0, 1.0])
    with pytest.raises(fs.UnsupportedModelError, match="not a tree model"):
        fs.tree_spectrum(model)
