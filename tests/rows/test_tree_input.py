"""What `TreeExplainer` says to wrong input, and what it answers at the edges of right input."""

import sys

import numpy as np
import pandas as pd
import pytest

import fouriershap as fs
from models import CASES, XGBOOST_KEEPS_LABELS, classes, numbers, raw_output, target
from shap_oracle import assert_within, brute_force, with_outputs


@pytest.fixture(scope="module")
def tree():
    from sklearn.ensemble import RandomForestRegressor

    X = numbers()
    return RandomForestRegressor(4, max_depth=4, random_state=0).fit(X, target(X)), X


def unfitted():
    import catboost
    import lightgbm
    import xgboost
    from sklearn import ensemble, tree

    sklearn = [tree.DecisionTreeClassifier(), ensemble.RandomForestRegressor(), ensemble.IsolationForest()]
    sklearn += [ensemble.GradientBoostingRegressor(), ensemble.HistGradientBoostingRegressor()]
    return [*sklearn, xgboost.XGBRegressor(), lightgbm.LGBMClassifier(), catboost.CatBoostRegressor()]


@pytest.mark.parametrize("model", unfitted(), ids=lambda model: type(model).__name__)
def test_unfitted_models(model):
    with pytest.raises(fs.InputError, match=rf"{type(model).__name__} that is not fitted.*fit"):
        fs.TreeExplainer(model, np.zeros((2, 3)))


def test_unsupported_models(tree):
    import xgboost
    from sklearn.linear_model import LinearRegression

    X = numbers()
    for model in (LinearRegression().fit(X, target(X)), lambda rows: rows, None, 3, {"trees": []}):
        with pytest.raises(fs.UnsupportedModelError, match=r"not a tree model|cannot be read"):
            fs.TreeExplainer(model, X)
    with pytest.raises(fs.UnsupportedModelError, match="gblinear"):
        fs.TreeExplainer(xgboost.XGBRegressor(booster="gblinear", n_estimators=2).fit(X, target(X)), X)
    with pytest.raises(fs.InputError, match="no file"):
        fs.TreeExplainer("missing.json", X)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.zeros((2, 2, 4)), r"shape \(2, 2, 4\)"),
        (np.zeros((2, 3)), "3 columns, but the model has 4 features"),
        (np.zeros((2, 5)), "5 columns, but the model has 4 features"),
        (None, "X is None; give a matrix of rows"),
        ([[1, 2, 3, 4], [1, 2]], "not a matrix of rows"),
        (np.array([["red", "1", "2", "3"]]), "column 0 has a value that is not a number.*'red'"),
        (np.array([["1", "1", "2", "3"]]), "column 0 has a value that is not a number"),
        (np.array([[1, 2, "x", 3]], dtype=object), "column 2 has a value that is not a number.*'x'"),
        (np.array([[1, 2, [], 3]], dtype=object), "column 2 has a value that is not a number"),
        ([[10**400, 0, 0, 0]], "column 0 has a value that is not a number"),
        (np.zeros((2, 4), dtype=complex), "dtype complex128; give numbers"),
        (np.zeros((2, 4), dtype="datetime64[s]"), "dtype datetime64"),
        (pd.DataFrame({"a": ["x"], "b": [1], "c": [1], "d": [1]}), "column 'a' of type String"),
        (pd.DataFrame({c: pd.Series([1, 2], dtype=object) for c in "abcd"}), "column 'a' of type Object"),
        (pd.DataFrame({c: pd.to_datetime(["2020-01-01"]) for c in "abcd"}), "column 'a' of type Datetime"),
    ],
)
def test_rows_that_are_none(tree, rows, message):
    model, X = tree
    explainer = fs.TreeExplainer(model, X)
    with pytest.raises(fs.InputError, match=message):
        explainer.shap_values(rows)
    with pytest.raises(fs.InputError, match=message):
        explainer(rows)
    if rows is not None:
        with pytest.raises(fs.InputError, match=message):
            fs.TreeExplainer(model, rows)
    with pytest.raises(fs.InputError):
        explainer.with_background(rows)


def test_a_background_is_no_single_row(tree):
    model, X = tree
    with pytest.raises(fs.InputError, match=r"background has shape \(4,\).*reshape\(1, -1\)"):
        fs.TreeExplainer(model, X[0])
    with pytest.raises(fs.InputError, match="3 columns, but the model has 4 features"):
        fs.TreeExplainer(model, X).shap_values(np.zeros(3))


def test_lazy_rows(tree):
    import polars as pl

    model, X = tree
    with pytest.raises(fs.InputError, match="collect"):
        fs.TreeExplainer(model, X).shap_values(pl.DataFrame(X).lazy())


@pytest.mark.parametrize("method", ["tables", "walk", "auto"])
def test_no_rows_at_all(method):
    for name, shape in (("RandomForestRegressor", (0, 4)), ("DecisionTreeClassifier", (0, 4, 3))):
        model, X, _ = CASES["sklearn"][name]()
        explainer = fs.TreeExplainer(model, X, strategy=method)
        assert explainer.shap_values(X[:0], check_additivity=True).shape == shape
        assert explainer(X[:0]).values.shape == shape
        assert fs.TreeExplainer(model, strategy=method).shap_values(X[:0]).shape == shape


def test_backgrounds(tree):
    model, X = tree
    with pytest.raises(fs.InputError, match="background has no rows"):
        fs.TreeExplainer(model, X[:0])
    with pytest.raises(fs.InputError, match=r"background has shape \(4,\)"):
        fs.TreeExplainer(model, X[0])
    explainer = fs.TreeExplainer(model, X[:1], precision="double")
    want, _ = brute_force(model, X[:9], X[:1])
    assert_within(with_outputs(explainer.shap_values(X[:9])), want, 1e-9)
    assert not explainer.shap_values(X[:1]).any()
    twice = fs.TreeExplainer(model, X[[0, 1, 1]], precision="double")
    weighted = fs.TreeExplainer(model, X[:2], weights=[1, 2], precision="double")
    assert_within(weighted.shap_values(X), twice.shap_values(X), 1e-9)
    ignored = fs.TreeExplainer(model, X[:2], weights=[3, 0], precision="double")
    assert_within(ignored.shap_values(X), explainer.shap_values(X), 1e-9)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 2], r"shape \(2,\)"),
        (np.zeros(300), "not all zero"),
        (np.full(300, -1.0), "weights must be finite"),
        (np.full(300, np.nan), "weights must be finite"),
        (["a"] * 300, "as numbers"),
    ],
)
def test_wrong_weights(tree, weights, message):
    model, X = tree
    with pytest.raises(fs.InputError, match=message):
        fs.TreeExplainer(model, X, weights=weights)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"feature_perturbation": "observational"}, "feature_perturbation is 'observational'; choose"),
        ({"output": "odds"}, "output is 'odds'"),
        ({"precision": "half"}, "precision is 'half'"),
        ({"strategy": "fast"}, "strategy is 'fast'"),
        ({"memory": -1}, "memory is -1"),
        ({"memory": "1 GB"}, "memory is '1 GB'"),
        ({"n_jobs": 0}, "n_jobs is 0"),
        ({"n_jobs": "two"}, "n_jobs is 'two'"),
        ({"feature_names": ["a"]}, "1 names for 4 features"),
        ({"groups": 5}, "groups is 5"),
    ],
)
def test_wrong_options(tree, options, message):
    model, X = tree
    with pytest.raises(fs.InputError, match=message):
        fs.TreeExplainer(model, X, **options)


def test_options_that_need_a_background(tree):
    model, X = tree
    with pytest.raises(fs.InputError, match="needs a background"):
        fs.TreeExplainer(model, feature_perturbation="interventional")
    with pytest.raises(fs.InputError, match="weights"):
        fs.TreeExplainer(model, weights=[1.0])
    with pytest.raises(fs.InputError, match="background is None"):
        fs.TreeExplainer(model).with_background(None)
    by_path = fs.TreeExplainer(model, feature_perturbation="tree_path_dependent")
    assert np.array_equal(by_path.shap_values(X), fs.TreeExplainer(model).shap_values(X))
    assert_within(by_path.with_background(X).shap_values(X), fs.TreeExplainer(model, X).shap_values(X), 1e-6)


@pytest.mark.parametrize("n_rows", [-1, 2.5, "many", True])
def test_wrong_numbers_of_rows_to_plan(tree, n_rows):
    model, X = tree
    with pytest.raises(fs.InputError, match="n_rows is"):
        fs.TreeExplainer(model, X).plan(n_rows)


@pytest.mark.parametrize("tolerance", [-1.0, "small", None, np.nan])
def test_wrong_tolerances(tree, tolerance):
    model, X = tree
    with pytest.raises(fs.InputError, match="tolerance is"):
        fs.TreeExplainer(model, X).shap_values(X, check_additivity=True, tolerance=tolerance)


def test_missing_values_where_the_library_takes_none():
    from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor

    X = numbers()
    rows = X[:9].copy()
    rows[3, 1] = np.nan
    model = GradientBoostingRegressor(n_estimators=3).fit(X, target(X))
    with pytest.raises(fs.InputError, match="X has a missing value in row 3, column 1"):
        fs.TreeExplainer(model, X).shap_values(rows)
    with pytest.raises(fs.InputError, match="background has a missing value"):
        fs.TreeExplainer(model, rows)
    # A forest that saw none in training sends them with the majority.
    model = RandomForestRegressor(5, random_state=0).fit(X, target(X))
    want, _ = brute_force(model, rows, rows)
    explainer = fs.TreeExplainer(model, rows, precision="double")
    assert_within(with_outputs(explainer.shap_values(rows)), want, 1e-9)


@pytest.mark.parametrize("name", ["regressor", "categories", "zero_as_missing"])
def test_infinite_and_huge_values(name):
    """LightGBM takes them, and so do we: they are numbers beyond every threshold, and no category."""
    model, X, _ = CASES["lightgbm"][name]()
    rows = X[:12].copy()
    rows[np.arange(12), np.arange(12) % 3] = np.tile([np.inf, -np.inf, 1e300], 4)
    want, _ = brute_force(model, rows, X[20:40])
    explainer = fs.TreeExplainer(model, X[20:40], precision="double")
    assert_within(with_outputs(explainer.shap_values(rows, check_additivity=True)), want, 1e-9)


def test_without_shap_the_error_gives_the_command(tree, monkeypatch):
    model, X = tree
    explainer = fs.TreeExplainer(model, X)
    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(fs.MissingDependencyError, match=r"pip install 'fouriershap\[shap\]'"):
        explainer(X[:3])
    assert explainer.shap_values(X[:3]).shape == (3, 4)


def test_explanations_for_plots(tree):
    shap = pytest.importorskip("shap")
    import matplotlib.pyplot as plt

    model, X = tree
    explanation = fs.TreeExplainer(model, X)(X[:20])
    assert isinstance(explanation, shap.Explanation)
    assert np.array_equal(explanation.data, X[:20]) and explanation.compute_time > 0
    total = explanation.base_values + explanation.values.sum(axis=1)
    assert_within(total, model.predict(X[:20]), 1e-6)
    shap.plots.waterfall(explanation[0], show=False)
    shap.plots.beeswarm(explanation, show=False)
    plt.close("all")
    several, data, _ = CASES["sklearn"]["DecisionTreeClassifier"]()
    explanation = fs.TreeExplainer(several, data)(data[:5])
    assert explanation.output_names == ["0", "1", "2"]
    assert explanation.base_values.shape == (5, 3)
    grouped = fs.TreeExplainer(model, X, groups={"g": [0, 1]})(X[:5])
    assert grouped.feature_names == ["g", "Feature 2", "Feature 3"]
    assert np.isnan(grouped.data[:, 0]).all() and np.array_equal(grouped.data[:, 1:], X[:5, 2:])


def test_the_arrays_of_an_ensemble_must_fit_together():
    ensemble = fs.read_model(CASES["sklearn"]["RandomForestRegressor"]()[0]).representation
    vector = fs.read_model(CASES["sklearn"]["DecisionTreeClassifier"]()[0]).representation
    for wrong in (
        lambda: ensemble.replace(
            tree_output=np.full(ensemble.n_trees, 1), n_outputs=2, base=np.zeros(2)
        ).replace(tree_output=np.full(ensemble.n_trees, 2)),
        lambda: ensemble.replace(n_outputs=2, base=np.zeros(2), tree_output=np.full(ensemble.n_trees, -1)),
        lambda: vector.replace(tree_output=np.zeros(vector.n_trees)),
        lambda: ensemble.replace(left=np.zeros(ensemble.n_nodes)),
        lambda: ensemble.replace(base=np.zeros(3)),
    ):
        with pytest.raises(fs.InputError, match="do not fit together"):
            wrong()
    assert (ensemble.replace(tree_output=np.full(ensemble.n_trees, -1)).tree_output == 0).all()


def test_model_files_and_boosters(tmp_path):
    import lightgbm
    import xgboost

    X = numbers(missing=True)
    xgb = xgboost.XGBClassifier(n_estimators=4, max_depth=3, n_jobs=1).fit(X, classes(X, 3))
    lgb = lightgbm.LGBMRegressor(n_estimators=4, n_jobs=1, verbose=-1).fit(X, target(X))
    xgb.save_model(tmp_path / "m.json")
    xgb.save_model(tmp_path / "m.ubj")
    lgb.booster_.save_model(tmp_path / "m.txt")
    for model, same in (
        (xgb, [tmp_path / "m.json", tmp_path / "m.ubj", xgb.get_booster()]),
        (lgb, [tmp_path / "m.txt", str(tmp_path / "m.txt"), lgb.booster_]),
    ):
        want = fs.TreeExplainer(model, X[:50]).shap_values(X)
        for other in same:
            assert np.array_equal(fs.TreeExplainer(other, X[:50]).shap_values(X), want)
        explainer = fs.TreeExplainer(model, X[:50])
        total = want.sum(axis=1) + explainer.expected_value
        np.testing.assert_allclose(total.reshape(len(X), -1), raw_output(model, X), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_numbers_of_a_frame_are_labels_where_the_labels_are_numbers(library):
    """Other libraries of frames, and files, give categories of numbers back as plain numbers."""
    import lightgbm
    import xgboost

    if library == "xgboost" and not XGBOOST_KEEPS_LABELS:
        pytest.skip("this XGBoost keeps no labels")
    rng = np.random.default_rng(0)
    plain = pd.DataFrame({"plan": rng.integers(1, 4, 200), "age": rng.normal(size=200)})
    y = plain["plan"].map({1: 0.0, 2: 5.0, 3: -5.0}) + plain["age"]
    X = plain.astype({"plan": "category"})
    if library == "lightgbm":
        model = lightgbm.LGBMRegressor(n_estimators=10, verbose=-1).fit(X, y)
    else:
        model = xgboost.XGBRegressor(n_estimators=10, enable_categorical=True).fit(X, y)
    explainer = fs.TreeExplainer(model, X)
    want = explainer.shap_values(X)
    other = plain.astype({"plan": float})
    for rows in (plain, other, pytest.importorskip("polars").from_pandas(plain)):
        with pytest.raises(fs.InputError, match=r"'plan'.*takes no labels.*1, 2, 3.*as an array"):
            explainer.shap_values(rows)  # as the library itself refuses it
    with pytest.raises(fs.InputError, match=r"'plan'.*takes no labels"):
        fs.TreeExplainer(model, plain)

    def streamed(rows):  # which cannot hold categories
        (made,) = explainer.explain_batches([rows], layout="array")
        return np.stack(list(made["shap_values"]))

    for rows in (plain, pytest.importorskip("polars").from_pandas(plain)):
        np.testing.assert_allclose(streamed(rows), want, atol=1e-5)
    missing, plain_missing = X.copy(), plain.astype({"plan": "Int64"})
    missing.loc[3, "plan"], plain_missing.loc[3, "plan"] = np.nan, pd.NA
    np.testing.assert_allclose(streamed(plain_missing), explainer.shap_values(missing), atol=1e-5)
    codes = np.column_stack(
        [plain["plan"] - 1, plain["age"]]
    )  # arrays hold codes, as they do for the library
    np.testing.assert_allclose(explainer.shap_values(codes), want, atol=1e-5)


def test_codes_beside_categories_of_a_frame_stay_codes(tmp_path):
    """LightGBM takes a list of columns, by which a category of the frame may be a number and a number a category."""
    import lightgbm

    rng = np.random.default_rng(0)
    X = pd.DataFrame({"plan": rng.integers(1, 4, 200), "group": rng.integers(1, 4, 200)})
    y = X["plan"].map({1: 5.0, 2: -5.0, 3: 2.0}) + X["group"].map({1: 1.0, 2: -3.0, 3: 3.0})
    X = X.astype({"group": "category"})
    model = lightgbm.LGBMRegressor(n_estimators=10, min_child_samples=5, verbose=-1)
    model.fit(X, y, categorical_feature=["plan"])
    model.booster_.save_model(tmp_path / "model.txt")
    for given in (model, tmp_path / "model.txt"):
        explainer = fs.TreeExplainer(given, X)
        sums = explainer.shap_values(X).sum(axis=1) + explainer.expected_value
        np.testing.assert_allclose(sums, model.predict(X), atol=1e-5)
