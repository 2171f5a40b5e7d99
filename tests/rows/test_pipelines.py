"""Pipelines that end in a tree model: in the features of the model, and in the pipeline's input columns."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)

import fouriershap as fs
from shap_oracle import assert_within, brute_force, with_outputs

NUMBERS, LABELS = ["age", "income"], ["city", "job"]


def people(n=200):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "age": rng.integers(20, 70, n).astype(float),
            "city": rng.choice(["Bern", "Basel", "Zug"], n),
            "income": rng.normal(50, 15, n).round(1),
            "job": rng.choice(
                ["cook", "nurse", "clerk", "judge", "pilot"], n, p=[0.4, 0.3, 0.26, 0.02, 0.02]
            ),
        }
    )
    X.loc[rng.random(n) < 0.15, "age"] = np.nan
    y = X["age"].fillna(30) / 10 * (X["city"] == "Zug") + X["income"] / 20 + (X["job"] == "nurse") * 2
    return X, y.to_numpy() + rng.normal(size=n) * 0.1


PEOPLE, TARGET = people()


def one_hot(**options):
    return OneHotEncoder(handle_unknown="ignore", **options)


def preparations():
    """Every way of preparing people that keeps their columns apart."""
    impute = SimpleImputer(add_indicator=True)
    both = ColumnTransformer([("n", impute, NUMBERS), ("c", one_hot(), LABELS)])
    yield "one-hot", both
    nested = Pipeline([("impute", SimpleImputer()), ("scale", StandardScaler())])
    yield "nested", ColumnTransformer([("c", one_hot(sparse_output=False), LABELS), ("n", nested, NUMBERS)])
    kept = ColumnTransformer([("c", OrdinalEncoder(), LABELS)], remainder="passthrough")
    yield "remainder", Pipeline([("encode", kept), ("fill", SimpleImputer())])
    by_type = [("c", one_hot(drop="first"), make_column_selector(dtype_include=["object", "string"]))]
    yield "selector", ColumnTransformer([*by_type, ("n", SimpleImputer(), slice("age", "age"))])
    rare = one_hot(min_frequency=0.1)
    yield "rare labels", ColumnTransformer([("c", rare, [1, 3]), ("n", SimpleImputer(), [0, 2])])
    filled = make_pipeline(
        SimpleImputer(), FeatureUnion([("s", StandardScaler()), ("k", KBinsDiscretizer(3))])
    )
    yield "union", ColumnTransformer([("n", filled, NUMBERS), ("t", TargetEncoder(random_state=0), LABELS)])
    splines = make_pipeline(SimpleImputer(), SplineTransformer(3), SelectKBest(k=5))
    yield "splines", ColumnTransformer([("n", splines, NUMBERS), ("c", one_hot(), ["job"])])
    masks = [("missing", MissingIndicator(), ["age"]), ("n", SimpleImputer(), [True, False, True, False])]
    yield "masks", ColumnTransformer([*masks, ("text", TfidfVectorizer(), "job")])
    log = make_pipeline(SimpleImputer(), FunctionTransformer(np.log1p), VarianceThreshold())
    squeezed = make_pipeline(one_hot(sparse_output=False), PCA(2))  # of one input column: still its own
    yield (
        "functions",
        ColumnTransformer([("n", log, NUMBERS), ("p", squeezed, ["job"]), ("x", "drop", ["city"])]),
    )


PREPARATIONS = dict(preparations())


def fitted(preparation, model=None):
    model = model or RandomForestRegressor(5, max_depth=6, random_state=0)
    from sklearn.base import clone

    return Pipeline([("prepare", clone(preparation)), ("model", model)]).fit(PEOPLE, TARGET)


def predicted(pipeline, X):
    return np.asarray(pipeline.predict(X), dtype=np.float64)


@pytest.mark.parametrize("name", PREPARATIONS)
def test_input_columns_by_brute_force(name):
    pipeline = fitted(PREPARATIONS[name])
    rows, background = PEOPLE[:10], PEOPLE[50:75]
    explainer = fs.Explainer(pipeline, background, groups="input", precision="double")
    want, expected = brute_force(pipeline, rows, background, output=predicted)
    dropped = [c for c in PEOPLE.columns if c not in explainer.player_names]
    used = [i for i, c in enumerate(PEOPLE.columns) if c not in dropped]
    assert explainer.player_names == tuple(PEOPLE.columns[used])
    assert_within(with_outputs(explainer.shap_values(rows)), want[:, used], 1e-9)
    np.testing.assert_allclose(want[:, [i for i in range(4) if i not in used]], 0, atol=1e-12)
    np.testing.assert_allclose(explainer.expected_value, expected[0])
    explanation = explainer(rows)
    assert explanation.feature_names == list(explainer.player_names)
    if "city" in explainer.player_names:
        city = explainer.player_names.index("city")
        assert explanation.display_data[:, city].tolist() == rows["city"].tolist()


def test_groups_name_input_columns_or_encoded_ones(tmp_path):
    pipeline = fitted(PREPARATIONS["one-hot"])
    rows, background = PEOPLE[:10], PEOPLE[50:75]
    groups = {"work": ["job", "income"]}
    explainer = fs.Explainer(pipeline, background, groups=groups, precision="double")
    assert sorted(explainer.player_names) == ["age", "city", "work"]
    players = [PEOPLE.columns.isin(groups.get(name, [name])) for name in explainer.player_names]
    values = explainer.shap_values(rows)
    for r in range(3):
        assert_within(values[r], _by_definition(pipeline, rows[r : r + 1], background, players), 1e-9)
    explainer.save(tmp_path / "m.fshap")
    loaded = fs.load(tmp_path / "m.fshap")
    np.testing.assert_allclose(loaded.shap_values(rows), values, rtol=1e-12)
    shown = loaded.frame(rows[:1]).set_index("feature")["value"]
    assert shown["work"] == explainer.frame(rows[:1]).set_index("feature")["value"]["work"]
    encoded = fs.Explainer(pipeline, background, groups={"home": ["c__city_Bern", "c__city_Zug"]})
    assert "home" in encoded.player_names and len(encoded.player_names) > 4
    with pytest.raises(fs.InputError, match="names 'street', which does not exist; there are 'age'"):
        fs.Explainer(pipeline, background, groups={"home": ["city", "street"]})


def _by_definition(pipeline, row, background, players):
    """SHAP values of one row; a player is a mask of columns."""
    n, worth = len(players), {}
    for number in range(2**n):
        hybrids = background.copy()
        for k in range(n):
            if number >> k & 1:
                for column in background.columns[players[k]]:
                    hybrids[column] = row[column].iloc[0]
        worth[number] = predicted(pipeline, hybrids).mean()
    weight = [math.factorial(s) * math.factorial(n - 1 - s) / math.factorial(n) for s in range(n)]
    values = [
        sum(weight[S.bit_count()] * (worth[S | 1 << k] - worth[S]) for S in range(2**n) if not S >> k & 1)
        for k in range(n)
    ]
    return np.array(values)


@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "catboost"])
def test_sparse_one_hot_columns_of_other_libraries(library):
    """XGBoost takes what a sparse matrix does not store for missing; the others for 0."""
    if library == "xgboost":
        from xgboost import XGBRegressor as Model

        options = {"n_estimators": 5, "max_depth": 4}
    elif library == "lightgbm":
        from lightgbm import LGBMRegressor as Model

        options = {"n_estimators": 5, "verbose": -1, "min_child_samples": 3}
    else:
        from catboost import CatBoostRegressor as Model

        options = {"n_estimators": 5, "verbose": 0, "allow_writing_files": False}
    preparation = ColumnTransformer(
        [("c", one_hot(), LABELS), ("n", SimpleImputer(), NUMBERS)], sparse_threshold=1.0
    )
    pipeline = fitted(preparation, Model(**options))
    want, _ = brute_force(pipeline, PEOPLE[:8], PEOPLE[50:70], output=predicted)
    explainer = fs.Explainer(pipeline, PEOPLE[50:70], groups="input", precision="double")
    assert_within(with_outputs(explainer.shap_values(PEOPLE[:8])), want, 1e-6)


def test_features_of_the_final_model():
    pipeline = fitted(PREPARATIONS["nested"])
    names = tuple(pipeline[:-1].get_feature_names_out())
    explainer = fs.TreeExplainer(pipeline, PEOPLE[:60], groups="encoded")
    assert explainer.feature_names == explainer.player_names == names
    rows = pipeline[:-1].transform(PEOPLE)
    plain = fs.TreeExplainer(pipeline[-1], rows[:60])
    assert np.array_equal(explainer.shap_values(PEOPLE), plain.shap_values(rows))
    assert np.array_equal(explainer(PEOPLE[:5]).data, rows[:5])
    other, same = explainer.with_background(PEOPLE[9:20]), plain.with_background(rows[9:20])
    assert np.array_equal(other.shap_values(PEOPLE), same.shap_values(rows))
    grouped = fs.TreeExplainer(pipeline, PEOPLE[:60], groups={"numbers": ["n__age", "n__income"]})
    assert grouped.player_names[-1] == "numbers"
    by_path = fs.TreeExplainer(pipeline, groups="encoded")
    assert np.array_equal(by_path.shap_values(PEOPLE), fs.TreeExplainer(pipeline[-1]).shap_values(rows))
    assert pickle.loads(pickle.dumps(explainer)).shap_values(PEOPLE[:3]).shape == (3, len(names))


def test_several_outputs_and_frames_between_the_steps():
    preparation = PREPARATIONS["nested"].set_output(transform="pandas")
    pipeline = Pipeline(
        [("prepare", preparation), ("model", RandomForestClassifier(4, max_depth=5, random_state=0))]
    )
    pipeline.fit(PEOPLE, np.array(["low", "mid", "high"])[np.searchsorted([3, 6], TARGET)])
    explainer = fs.Explainer(pipeline, PEOPLE[50:70], groups="input", precision="double")
    want, _ = brute_force(pipeline, PEOPLE[:5], PEOPLE[50:70], output=lambda model, X: model.predict_proba(X))
    assert_within(explainer.shap_values(PEOPLE[:5]), want, 1e-9)
    assert explainer(PEOPLE[:5]).output_names == ["high", "low", "mid"]


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (PCA(2), r"step 'prepare\.n\.pca' \(PCA\).*BlackBoxExplainer"),
        (PolynomialFeatures(2), r"'prepare\.n\.polynomialfeatures'"),
        (Normalizer(), r"'prepare\.n\.normalizer'"),
        (FunctionTransformer(lambda X: X[:, ::-1]), "one-to-one"),
        (
            FunctionTransformer(lambda X: X[:, ::-1], feature_names_out="one-to-one"),
            "'age' and 'income'|'income' and 'age'",
        ),
    ],
)
def test_columns_that_are_made_of_several(step, message):
    mixed = make_pipeline(SimpleImputer(), step)
    pipeline = fitted(ColumnTransformer([("n", mixed, NUMBERS), ("c", one_hot(), LABELS)]))
    with pytest.raises(fs.UnsupportedModelError, match=message):
        fs.Explainer(pipeline, PEOPLE, groups="input")
    with pytest.warns(fs.ModelWarning, match="features that enter the final model are explained"):
        assert len(fs.Explainer(pipeline, PEOPLE[:40]).player_names) > len(NUMBERS) + 1
    explainer = fs.Explainer(pipeline, PEOPLE[:40], groups="encoded")
    total = explainer.shap_values(PEOPLE).sum(axis=1) + explainer.expected_value
    assert_within(total, pipeline.predict(PEOPLE), 1e-5)


def test_arrays_and_pipelines_of_one_step():
    X = PEOPLE[NUMBERS].fillna(0).to_numpy()
    model = GradientBoostingRegressor(n_estimators=5, random_state=0)
    pipeline = make_pipeline(StandardScaler(), model).fit(X, TARGET)
    want, _ = brute_force(pipeline, X[:9], X[20:50], output=predicted)
    for groups in (None, "input"):
        explainer = fs.Explainer(pipeline, X[20:50], groups=groups, precision="double")
        assert_within(with_outputs(explainer.shap_values(X[:9])), want, 1e-9)
    alone = make_pipeline(model)
    assert np.array_equal(fs.Explainer(alone, X).shap_values(X), fs.Explainer(model, X).shap_values(X))
    with pytest.raises(fs.InputError, match="needs a Pipeline"):
        fs.Explainer(model, X, groups="input")


def test_wrong_columns_are_named():
    pipeline = fitted(PREPARATIONS["one-hot"])
    explainer = fs.Explainer(pipeline, PEOPLE)
    for wrong, message in (
        (PEOPLE[["age", "city", "job"]], r"X has 3 columns.*Missing: 'income'"),
        (PEOPLE.assign(id=1), r"Not known to the model: 'id'"),
        (PEOPLE.assign(income="much"), "X does not go through the pipeline"),
        (np.zeros((2, 4)), "X does not go through the pipeline"),
    ):
        with pytest.raises(fs.InputError, match=message):
            explainer.shap_values(wrong)
    mixed = PEOPLE[["city", "age", "income", "job"]]
    assert np.array_equal(explainer.shap_values(mixed), explainer.shap_values(PEOPLE))
    with pytest.raises(fs.InputError, match="background has 3 columns"):
        fs.Explainer(pipeline, PEOPLE[["age", "city", "job"]])


def test_a_saved_explainer_of_steps_that_no_file_keeps_takes_transformed_rows(tmp_path):
    pipeline = fitted(PREPARATIONS["splines"])
    explainer = fs.Explainer(pipeline, PEOPLE, groups="input")
    with pytest.warns(fs.ModelWarning, match=r"'prepare\.n\.splinetransformer' \(SplineTransformer\)"):
        explainer.save(tmp_path / "p.fshap")
    others = []
    for name in ("p.fshap", "again.fshap"):
        with pytest.warns(
            fs.ModelWarning, match="transformers are not in the file: give it transformed rows"
        ):
            others.append(fs.load(tmp_path / name))
        others[0].save(tmp_path / "again.fshap")
    rows = pipeline[:-1].transform(PEOPLE)
    for other in others:
        assert np.array_equal(other.shap_values(rows), explainer.shap_values(PEOPLE))
        assert other.player_names == explainer.player_names
        with pytest.raises(
            fs.InputError, match=r"transformers are not in the file.*pipeline\[:-1\]\.transform\(X\)"
        ):
            other.shap_values(PEOPLE)


def test_a_pipeline_that_ends_in_no_tree_model():
    from sklearn.neighbors import KNeighborsRegressor

    labels = PEOPLE[LABELS]
    pipeline = make_pipeline(one_hot(), KNeighborsRegressor()).fit(labels, TARGET)
    explainer = fs.Explainer(pipeline, labels).fit()  # 3 x 5 combinations: enumerated
    assert explainer.kind == "black box" and explainer.player_names == tuple(LABELS)
    want, _ = brute_force(pipeline, labels[:9], labels, output=predicted)
    assert_within(with_outputs(explainer.shap_values(labels[:9])), want, 1e-9)


@pytest.mark.parametrize("groups", [None, "input"])
def test_streams_of_batches(groups):
    pipeline = fitted(PREPARATIONS["one-hot"])
    explainer = fs.Explainer(pipeline, PEOPLE, groups=groups).compile()
    batches = [PEOPLE[:7].assign(id=range(7)), PEOPLE[7:9].assign(id=[7, 8])]
    found = pd.concat(list(explainer.explain_batches(batches, ids=["id"])))
    got = found[list(explainer.player_names)].to_numpy()
    np.testing.assert_array_equal(got, explainer.shap_values(PEOPLE[:9]))
    reasons = next(explainer.explain_batches(batches, ids=["id"], layout="top_k", top_k=2))
    want = explainer.frame(PEOPLE[:7], top_k=1)
    assert reasons["feature_1"].tolist() == want["feature"].tolist()
    assert reasons["contribution_1"].tolist() == want["contribution"].tolist()
    if groups == "input":
        assert reasons["value_1"].tolist() == want["value"].tolist()
