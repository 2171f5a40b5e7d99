"""`TreeExplainer` against the definition, for every library: the model's own predictions of all hybrids."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fouriershap as fs
from models import CASES, classes, coded, coded_target, numbers, raw_output, rows_of, target
from reader_checks import values_beside_thresholds
from shap_oracle import assert_within, brute_force, take, with_outputs

ENGINES = [("tables", "single"), ("tables", "double"), ("walk", "single"), ("auto", "single")]
ALL = [(library, name) for library, cases in CASES.items() for name in cases]


def some_rows(rng, ensemble, X, n_rows):
    """Rows of the training data, and rows that sit on and beside thresholds."""
    chosen = take(X, rng.integers(len(X), size=n_rows))
    if isinstance(X, pd.DataFrame):
        return chosen
    beside = np.stack(
        [rng.choice([*values_beside_thresholds(ensemble, f), *X[:, f]], n_rows) for f in range(X.shape[1])],
        axis=1,
    )
    fresh = rng.random((n_rows, 1)) < 0.6
    return np.where(fresh, beside, chosen)


def predict_exactly(reading):
    """The trees added up in float64, where the library itself adds up in float32."""
    return lambda _, X: reading.trees.predict(reading.rules.clean(rows_of(reading, X)))


@pytest.mark.parametrize(("library", "name"), ALL, ids=lambda part: part)
def test_every_model_by_the_definition(library, name):
    model, X, _ = CASES[library][name]()
    rng = np.random.default_rng(len(name))
    ensemble = fs.read_model(model)
    rows, background = some_rows(rng, ensemble, X, 5), some_rows(rng, ensemble, X, 7)
    weights = rng.uniform(0.1, 2, size=7) if rng.random() < 0.5 else None
    want, expected = brute_force(model, rows, background, weights=weights)
    exact = want
    if ensemble.computes_in == np.float32:
        exact, _ = brute_force(model, rows, background, weights=weights, output=predict_exactly(ensemble))
    # The largest value there is, not only of these rows; a float32 sum is only as good as its largest part.
    largest = np.abs(want).max()
    in_float32 = 1e-6 * np.abs(raw_output(model, rows)).max() if ensemble.computes_in == np.float32 else 0.0
    for method, precision in ENGINES:
        explainer = fs.TreeExplainer(model, background, weights=weights, strategy=method, precision=precision)
        got = explainer.shap_values(rows, check_additivity=True)
        assert got.ndim == (2 if ensemble.n_outputs == 1 else 3)
        values = with_outputs(got)
        assert np.abs(values - want).max() <= 1e-6 * largest + in_float32 + 1e-12
        assert np.abs(values - exact).max() <= (1e-9 if precision == "double" else 1e-6) * largest + 1e-12
        scale = max(np.abs(expected).max(), largest)
        assert_within(np.atleast_1d(explainer.expected_value), expected, 1e-6, scale)


def train(library, draw, X, y):
    """A small model with drawn settings."""
    n_trees, depth = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    n_classes = draw(st.sampled_from([0, 2, 3]))
    y = np.searchsorted(np.quantile(y, np.arange(1, n_classes) / n_classes), y) if n_classes else y
    kind = "Classifier" if n_classes else "Regressor"
    if library == "sklearn":
        from sklearn import ensemble

        name = draw(st.sampled_from(["RandomForest", "HistGradientBoosting"]))
        size = {"n_estimators": n_trees} if name == "RandomForest" else {"max_iter": n_trees}
        size |= {"min_samples_leaf": draw(st.sampled_from([1, 5]))}
        return getattr(ensemble, name + kind)(max_depth=depth, random_state=0, **size).fit(X, y)
    if library == "xgboost":
        import xgboost

        options = {"booster": draw(st.sampled_from(["gbtree", "dart"]))}
        if draw(st.booleans()):
            options |= {"grow_policy": "lossguide", "max_leaves": 9}
        model = getattr(xgboost, "XGB" + kind)
        return model(n_estimators=n_trees, max_depth=depth, n_jobs=1, **options).fit(X, y)
    if library == "lightgbm":
        import lightgbm

        options = {"zero_as_missing": draw(st.booleans()), "use_missing": draw(st.booleans())}
        options |= {"min_child_samples": draw(st.sampled_from([1, 8])), "min_data_per_group": 5}
        model = getattr(lightgbm, "LGBM" + kind)(
            n_estimators=n_trees, num_leaves=2**depth, n_jobs=1, verbose=-1, **options
        )
        return model.fit(X, y, categorical_feature=draw(st.sampled_from([[], [3]])))
    import catboost

    options = {"grow_policy": draw(st.sampled_from(["SymmetricTree", "Depthwise", "Lossguide"]))}
    options |= {"nan_mode": draw(st.sampled_from(["Min", "Max"]))}
    model = getattr(catboost, "CatBoost" + kind)
    silent = {"verbose": 0, "thread_count": 1, "allow_writing_files": False}
    return model(iterations=n_trees, depth=depth, **options, **silent).fit(X, y)


@pytest.mark.parametrize("library", CASES)
@given(data=st.data())
@settings(max_examples=8, deadline=None)
def test_drawn_models_by_the_definition(library, data):
    X = coded(missing=True)
    model = train(library, data.draw, X, coded_target(X))
    ensemble = fs.read_model(model)
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    rows = some_rows(rng, ensemble, X, data.draw(st.integers(1, 9)))
    background = some_rows(rng, ensemble, X, data.draw(st.integers(1, 12)))
    player = np.array(data.draw(st.sampled_from([[0, 1, 2, 3], [0, 0, 1, 2], [0, 1, 0, 1], [0, 0, 0, 0]])))
    groups = None if player.max() == 3 else [f"group {p}" for p in player]
    output = predict_exactly(ensemble) if library == "xgboost" else raw_output
    want, _ = brute_force(model, rows, background, player, output=output)
    for method, precision in ENGINES:
        options = {"strategy": method, "precision": precision, "groups": groups}
        values = with_outputs(fs.TreeExplainer(model, background, **options).shap_values(rows))
        # Where leaves cancel, what is left is rounding, of the size of the leaves.
        scale = max(np.abs(want).max(), np.abs(ensemble.trees.values).max())
        assert_within(values, want, 1e-9 if precision == "double" else 1e-6, scale)


@pytest.mark.parametrize("method", ["tables", "walk"])
def test_ten_features(method):
    from sklearn.ensemble import GradientBoostingRegressor

    X = numbers(n_features=10)
    model = GradientBoostingRegressor(n_estimators=20, max_depth=4, random_state=0).fit(X, target(X))
    want, _ = brute_force(model, X[:3], X[50:70])
    got = fs.TreeExplainer(model, X[50:70], strategy=method, precision="double").shap_values(X[:3])
    assert_within(with_outputs(got), want, 1e-9)


def test_one_feature_one_row_one_background_row():
    from sklearn.ensemble import RandomForestRegressor

    X = numbers(n_features=1)
    model = RandomForestRegressor(5, random_state=0).fit(X, np.sin(X[:, 0]))
    explainer = fs.TreeExplainer(model, X[:1], precision="double")
    want = model.predict(X[1:2]) - model.predict(X[:1])
    np.testing.assert_allclose(explainer.shap_values(X[1:2]), want[:, None], atol=1e-12)
    assert explainer.expected_value == pytest.approx(model.predict(X[:1])[0])


@pytest.mark.parametrize("method", ["tables", "walk"])
def test_constant_models(method):
    """Trees that are one leaf, beside others and alone; features that no tree asks for get exactly 0."""
    import lightgbm
    from sklearn.dummy import DummyRegressor
    from sklearn.tree import DecisionTreeRegressor

    X = numbers()
    alone = DecisionTreeRegressor().fit(X, np.full(len(X), 2.5))
    constant = lightgbm.LGBMRegressor(n_estimators=3, verbose=-1).fit(X, np.full(len(X), 2.5))
    for model in (alone, constant):
        explainer = fs.TreeExplainer(model, X[:10], strategy=method)
        assert explainer.expected_value == pytest.approx(2.5)
        assert not explainer.shap_values(X, check_additivity=True).any()
    some = np.concatenate([X[:, :2], np.zeros((len(X), 2))], axis=1)
    model = DecisionTreeRegressor(max_depth=4).fit(some, target(X))
    assert not fs.TreeExplainer(model, some, strategy=method).shap_values(some)[:, 2:].any()
    with pytest.raises(fs.UnsupportedModelError):
        fs.TreeExplainer(DummyRegressor().fit(X, target(X)), X)


@pytest.mark.parametrize("method", ["tables", "walk"])
def test_a_group_of_many_features(method):
    """20 features on one path are too many for a table, even where they are one player."""
    from tree_oracles import RandomTrees

    rng = np.random.default_rng(0)
    grown = RandomTrees(rng, 20, n_thresholds=2)
    grown.chain(30, target=np.zeros(20, dtype=int))
    grown.grow(3)
    ensemble = grown.coded().ensemble
    rows = rng.integers(0, 2, size=(12, 20)) * (rng.random((12, 20)) < 0.2) * 1.0
    groups = ["a"] * 15 + ["b"] * 5
    want, _ = brute_force(
        ensemble, rows[:4], rows, np.repeat([0, 1], [15, 5]), output=lambda model, X: model.predict(X)
    )
    if method == "tables":
        with pytest.raises(fs.CapacityError, match="1 of 2 trees"):
            fs.TreeExplainer(ensemble, rows, groups=groups, strategy="tables")
        explainer = fs.TreeExplainer(ensemble, rows, groups=groups, precision="double").compile()
        assert explainer.plan().strategy == "tables+stream"
    else:
        explainer = fs.TreeExplainer(ensemble, rows, groups=groups, strategy="walk")
    assert_within(with_outputs(explainer.shap_values(rows[:4])), want, 1e-9)


def test_groups_by_name_and_position():
    import xgboost

    X = numbers()
    model = xgboost.XGBClassifier(n_estimators=5, max_depth=3).fit(X, classes(X, 3))
    names = ["a", "b", "c", "d"]
    explainer = fs.TreeExplainer(model, X[:30], feature_names=names, groups={"both": ["b", 3]})
    assert explainer.player_names == ("a", "both", "c")
    same = fs.TreeExplainer(model, X[:30], groups=[None, "both", None, "both"])
    values = explainer.shap_values(X[:9])
    assert values.shape == (9, 3, 3)
    assert np.array_equal(values, same.shap_values(X[:9]))
    # A group's value is not the sum of its members' values.
    alone = fs.TreeExplainer(model, X[:30]).shap_values(X[:9])
    assert np.abs(alone[:, 1] + alone[:, 3] - values[:, 1]).max() > 1e-3


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({"g": ["a", "z"]}, "'z', which does not exist"),
        ({"g": ["a"], "h": ["a"]}, "twice"),
        ({"g": "a"}, "list of columns"),
        ({"g": [7]}, "positions from 0 to 3"),
        (["x", "y"], "2 entries"),
        ("abcd", "one group name per column"),
    ],
)
def test_wrong_groups(groups, message):
    model, X, _ = CASES["sklearn"]["DecisionTreeRegressor"]()
    with pytest.raises(fs.InputError, match=message):
        fs.TreeExplainer(model, X, feature_names=["a", "b", "c", "d"], groups=groups)


def test_a_class_selects_its_output():
    from sklearn.ensemble import RandomForestClassifier

    X = np.random.default_rng(0).normal(size=(100, 3))
    y = np.where(X[:, 0] > 0, "good", np.where(X[:, 1] > 0, "bad", "ugly"))
    model = RandomForestClassifier(5, random_state=0).fit(X, y)
    by_name, by_number = (fs.TreeExplainer(model, X, output=output) for output in ("good", 1))
    np.testing.assert_array_equal(by_name.shap_values(X), by_number.shap_values(X))
    with pytest.raises(fs.InputError, match="or a class: 'bad', 'good', 'ugly'"):
        fs.TreeExplainer(model, X, output="Good")
