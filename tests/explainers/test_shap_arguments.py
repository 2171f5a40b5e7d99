"""What users of shap write: understood, or answered with our own word for it."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pandas as pd
import pytest

import fouriershap as fs

shap = pytest.importorskip("shap")
RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(60, 4)), columns=list("abcd"))
Y = X.a * X.b + X.c
BITS = (X > 0).astype(int)


def tree():
    from sklearn.tree import DecisionTreeRegressor

    return DecisionTreeRegressor(max_depth=4, random_state=0).fit(X, Y)


def linear():
    from sklearn.linear_model import LinearRegression

    return LinearRegression().fit(X, Y)


def rule(rows):
    rows = np.asarray(rows)
    return 1.0 * rows[:, 0] * rows[:, 1] - rows[:, 2]


KINDS = {"tree": "trees", "linear": "products", "black box": "black box", "spectrum": "spectrum"}
CASES = {
    "tree": (tree, X, fs.TreeExplainer),
    "linear": (linear, X, fs.ProductExplainer),
    "black box": (lambda: rule, BITS, fs.BlackBoxExplainer),
    "spectrum": (lambda: fs.Spectrum([[1, 0, 0, 0], [0, 1, 1, 0]], [1.0, 0.5]), BITS, fs.SpectrumExplainer),
}


@pytest.mark.parametrize("case", CASES)
def test_shaps_words_for_the_background(case):
    make, rows, kind = CASES[case]
    model, kind_name = make(), KINDS[case]
    same = {"random_state": 0} if case == "black box" else {}
    want = fs.Explainer(model, rows, **same).shap_values(rows[:5])
    for options in (
        {"data": rows},
        {"masker": rows},
        {"masker": shap.maskers.Independent(rows, max_samples=99)},
    ):
        for explainer in (
            fs.Explainer(model, **options, **same),
            kind(model, **options, **same),
            fs.Explainer(model=model, **options, **same),
        ):
            assert type(explainer) is fs.Explainer and explainer.kind == kind_name
            atol = 0.1 if case == "black box" else 1e-9  # maskers put rows into another order: other draws
            np.testing.assert_allclose(explainer.shap_values(rows[:5]), want, atol=atol)
    with pytest.raises(fs.InputError, match="background and masker are the same argument"):
        fs.Explainer(model, rows, masker=rows)


@pytest.mark.parametrize("case", ["linear", "black box", "spectrum"])
def test_no_background(case):
    make, _, kind = CASES[case]
    for call in (fs.Explainer, kind):
        with pytest.raises(fs.InputError, match="background is missing"):
            call(make())


@pytest.mark.parametrize("case", ["tree", "linear", "black box"])
@pytest.mark.parametrize("named", [True, False])
def test_clusters_of_shap_are_rows_with_weights(case, named):
    make, rows, _ = CASES[case]
    clusters = shap.kmeans(rows if named else rows.to_numpy(), 7)
    centres = pd.DataFrame(clusters.data, columns=rows.columns)
    want = fs.Explainer(make(), centres, weights=clusters.weights)
    for explainer in (fs.Explainer(make(), clusters), fs.Explainer(make(), data=clusters)):
        atol = 0.1 if case == "black box" else 1e-6  # a slow look may choose samples
        np.testing.assert_allclose(explainer.shap_values(rows[:5]), want.shap_values(rows[:5]), atol=atol)
        np.testing.assert_allclose(explainer.expected_value, want.expected_value, atol=1e-6)
    assert not np.isclose(want.expected_value, fs.Explainer(make(), centres).expected_value)
    with pytest.raises(fs.InputError, match=r"shap\.kmeans"):
        fs.Explainer(make(), clusters, weights=np.ones(7))


def test_words_for_the_output_and_the_seed():
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression().fit(X, Y > 0)
    ours = fs.Explainer(model, X, output="probability").shap_values(X[:5])
    np.testing.assert_array_equal(fs.Explainer(model, X, model_output="probability").shap_values(X[:5]), ours)
    assert fs.Explainer(rule, BITS, model_output="raw", seed=3).fit().fitted.method == "enumerate"
    for options, answer in (
        ({"model_output": "probability"}, "give a function that returns what you want explained"),
        ({"link": shap.links.logit}, "output='probability'"),
        ({"algorithm": "permutation"}, "leave it out"),
        ({"feature_names": list("abcd")}, "give the background as one"),
    ):
        with pytest.raises(fs.InputError, match=answer):
            fs.Explainer(rule, BITS, **options)
    with pytest.raises(fs.InputError, match="nothing is random here"):
        fs.Explainer(tree(), X, seed=3)
    with pytest.raises(fs.InputError, match="nonsense is not an argument"):
        fs.Explainer(tree(), X, nonsense=3)
    with pytest.raises(fs.InputError, match="Did you mean output"):
        fs.Explainer(tree(), X, ouput="raw")


def test_signatures_name_every_option():
    options = inspect.signature(fs.Explainer).parameters
    assert list(options)[:2] == ["model", "background"]
    documented = inspect.getdoc(fs.Explainer)
    for name, (_, _, kind) in CASES.items():
        parameters = inspect.signature(kind).parameters
        for option in list(parameters.values())[2:]:
            assert options[option.name].default in (None, option.default), option.name
            assert re.search(rf"^[*\w, ]*\b{option.name}\b[\w, ]*( :|$)", documented, re.M), option.name
        assert "background" in parameters and "options" not in parameters, name
        assert all(p.kind is inspect.Parameter.KEYWORD_ONLY for p in list(parameters.values())[2:])
        assert kind.__name__.endswith("Explainer") and "Parameters" in kind.__doc__
    assert "X" in inspect.signature(fs.Explainer(tree(), X)).parameters  # of an object: how it is called


@pytest.mark.parametrize("case", CASES)
def test_columns_in_any_order(case):
    make, rows, _ = CASES[case]
    explainer = fs.Explainer(make(), rows, **({"random_state": 0} if case == "black box" else {}))
    mixed = rows[list("dbca")]
    np.testing.assert_array_equal(explainer.shap_values(mixed), explainer.shap_values(rows))
    np.testing.assert_array_equal(explainer.predict(mixed), explainer.predict(rows))
    other = explainer.with_background(mixed[:9]).shap_values(rows)
    np.testing.assert_array_equal(other, explainer.with_background(rows[:9]).shap_values(rows))


@pytest.mark.parametrize("case", ["linear", "black box"])
def test_a_series_is_a_row_and_elsewhere_told_what_works(case):
    make, rows, _ = CASES[case]
    explainer = fs.Explainer(make(), rows)
    one = explainer.shap_values(rows.iloc[[0]])[0]
    np.testing.assert_array_equal(explainer.shap_values(rows.iloc[0]), one)
    np.testing.assert_array_equal(explainer.shap_values(rows.iloc[0].to_numpy()), one)
    np.testing.assert_array_equal(explainer.predict(rows.iloc[0]), explainer.predict(rows[:1]))
    with pytest.raises(fs.InputError, match=r"`X\.reshape\(1, -1\)`"):
        explainer.predict(rows.iloc[0].to_numpy())


def test_a_table_keeps_the_index():
    explainer = fs.Explainer(tree(), X)
    named = X[:2].set_axis(pd.Index(["ann", "bob"], name="who"), axis=0)
    table = explainer.frame(named, top_k=2)
    assert table.index.tolist() == ["ann", "ann", "bob", "bob"] and table.index.name == "who"
    assert table["row"].tolist() == [0, 0, 1, 1]
    assert explainer.frame(X[:2], top_k=2).index.tolist() == [0, 1, 2, 3]
    assert explainer.frame(X[3:5], top_k=1).index.tolist() == [3, 4]


def test_booleans_read_true_and_false():
    from sklearn.tree import DecisionTreeRegressor

    rows = X.assign(flag=X.a > 0)
    model = DecisionTreeRegressor(max_depth=3).fit(rows, 5.0 * rows.flag + X.b)
    explainer = fs.Explainer(model, rows)
    table = explainer.frame(rows[:6])
    assert table.loc[table.feature == "flag", "value"].tolist() == [str(flag) for flag in rows.flag[:6]]
    shown = explainer(rows[:6])
    assert shown.display_data[:, 4].tolist() == rows.flag[:6].tolist()
    assert shown.data[:, 4].tolist() == rows.flag[:6].astype(float).tolist()


@pytest.mark.parametrize("method", ["trees", "blend", "waves"])
def test_a_column_without_any_value_is_no_trouble(method):
    rows = X[["a", "b"]].assign(nothing=np.nan)
    explainer = fs.Explainer(rule_of_two, rows, random_state=0).fit(method=method, budget=600)
    assert np.abs(explainer.shap_values(rows[:5])[:, 2]).max() < 1e-12
    assert explainer.fidelity.r2 > 0.5


def rule_of_two(rows):
    return rows["a"].to_numpy() + np.abs(rows["b"].to_numpy())


def positive_classes():
    import lightgbm
    import xgboost
    from catboost import CatBoostClassifier
    from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression

    words = np.where(Y > 0, "good", "bad")
    yield xgboost.XGBClassifier(n_estimators=3, max_depth=2), (Y > 0).astype(int), "1"
    yield lightgbm.LGBMClassifier(n_estimators=3, num_leaves=4, verbose=-1), words, "good"
    yield CatBoostClassifier(iterations=3, depth=2, verbose=0, allow_writing_files=False), words, "good"
    yield HistGradientBoostingClassifier(max_iter=3), words, "good"
    yield GradientBoostingClassifier(n_estimators=3), words, "good"
    yield LogisticRegression(), words, "good"


def test_the_positive_class_is_named(tmp_path):
    for model, labels, positive in positive_classes():
        explainer = fs.Explainer(model.fit(X, labels), X)
        assert explainer.output_names == (positive,), type(model).__name__
        assert explainer.shap_values(X[:2]).shape == (2, 4)  # one output, as ever
        assert fs.Explainer(model, X, output="probability").output_names == (positive,)
        explainer.save(tmp_path / "binary.fshap")
        assert fs.load(tmp_path / "binary.fshap").output_names == (positive,)
        assert "output" not in explainer.frame(X[:2])
