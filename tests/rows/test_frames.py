"""Rows as users hold them: frames of three libraries, arrays, lists; names, categories, missing values."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import fouriershap as fs
from models import (
    CASES,
    LABELS,
    XGBOOST_KEEPS_LABELS,
    classes,
    frame,
    frame_target,
    numbers,
    target,
)
from shap_oracle import assert_within, brute_force, with_outputs

NAMES = ["a", "b", "c d", "e"]
AS = {
    "pandas": lambda X: X,
    "pandas float32": lambda X: X.astype("float32"),
    "pandas nullable": lambda X: X.convert_dtypes(),
    "pandas on arrow": lambda X: X.astype("float64[pyarrow]"),
    "polars": pl.from_pandas,
    "pyarrow": pa.Table.from_pandas,
    "pyarrow batch": pa.RecordBatch.from_pandas,
    "array": lambda X: X.to_numpy(),
    "Fortran order": lambda X: np.asfortranarray(X.to_numpy()),
    "strided": lambda X: np.repeat(X.to_numpy(), 2, axis=1)[:, ::2],
    "big endian": lambda X: X.to_numpy().astype(">f8"),
    "list": lambda X: X.to_numpy().tolist(),
    "objects": lambda X: X.to_numpy().astype(object),
}


@pytest.fixture(scope="module")
def named():
    from sklearn.ensemble import RandomForestRegressor

    X = pd.DataFrame(numbers(missing=True), columns=NAMES)
    return RandomForestRegressor(6, max_depth=5, random_state=0).fit(X, target(X.to_numpy())), X


@pytest.mark.parametrize("kind", AS)
def test_one_table_in_every_form(named, kind):
    model, X = named
    want = fs.TreeExplainer(model, X[:60]).shap_values(X)
    explainer = fs.TreeExplainer(model, AS[kind](X[:60]))
    assert explainer.feature_names == tuple(NAMES)
    assert_within(explainer.shap_values(AS[kind](X)), want, 1e-6)
    explanation = explainer(AS[kind](X[:7]))
    assert explanation.data.shape == (7, 4)
    assert list(explanation.feature_names) == NAMES


def test_missing_values_of_every_kind(named):
    model, X = named
    want = fs.TreeExplainer(model, X, strategy="tables").shap_values(X)
    whole = X.round().astype("Int64")
    whole_want = fs.TreeExplainer(model, X, strategy="tables").shap_values(whole.astype("float64"))
    explainer = fs.TreeExplainer(model, X, strategy="tables")
    assert whole.isna().any().any()
    assert np.array_equal(explainer.shap_values(whole), whole_want)
    assert np.array_equal(explainer.shap_values(pl.from_pandas(whole)), whole_want)
    assert np.array_equal(explainer.shap_values(pl.from_pandas(X, nan_to_null=True)), want)
    assert np.array_equal(explainer.shap_values(pl.from_pandas(X, nan_to_null=False)), want)
    assert np.array_equal(explainer.shap_values(pa.Table.from_pandas(X)), want)
    values = X.to_numpy()
    masked = np.ma.masked_array(np.nan_to_num(values), mask=np.isnan(values))
    assert np.array_equal(explainer.shap_values(masked), want)
    as_none = np.where(np.isnan(values), None, values.astype(object))
    assert np.array_equal(explainer.shap_values(as_none), want)


def test_booleans():
    from sklearn.tree import DecisionTreeRegressor

    X = pd.DataFrame(numbers() > 0, columns=list("abcd"))
    model = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, target(X.to_numpy() * 1.0))
    explainer = fs.TreeExplainer(model, X, strategy="tables")
    want = explainer.shap_values(X.to_numpy().astype(float))
    for form in (X, pl.from_pandas(X), X.to_numpy(), X.astype("boolean"), X.astype("uint8")):
        assert np.array_equal(explainer.shap_values(form), want)


def test_names_are_checked(named):
    model, X = named
    explainer = fs.TreeExplainer(model, X, strategy="tables")
    for wrong, message in (
        (X[["a", "b", "e"]], r"3 columns.*4 features.*Missing: 'c d'"),
        (X.assign(z=1.0), r"5 columns.*Not known to the model: 'z'"),
        (X.rename(columns={"b": "z"}), "column 'z' where the model has the feature 'b'"),
        (pd.concat([X[["a", "a"]], X[["b", "e"]]], axis=1), "two columns of one name"),
    ):
        with pytest.raises(fs.InputError, match=message):
            explainer.shap_values(wrong)
        with pytest.raises(fs.InputError, match=message.replace("^X", "background")):
            fs.TreeExplainer(model, wrong)
    for form in (pl.from_pandas, pa.Table.from_pandas):
        with pytest.raises(fs.InputError, match="column 'z' where"):
            explainer.shap_values(form(X.rename(columns={"b": "z"})))


def test_columns_are_found_by_name(named):
    model, X = named
    explainer = fs.TreeExplainer(model, X, strategy="tables")
    mixed, want = X[["e", "c d", "b", "a"]], explainer.shap_values(X)
    for form in (pd.DataFrame, pl.from_pandas, pa.Table.from_pandas, pa.RecordBatch.from_pandas):
        np.testing.assert_array_equal(explainer.shap_values(form(mixed)), want)
        other = fs.TreeExplainer(model, form(mixed), strategy="tables")
        assert other.feature_names == explainer.feature_names
        np.testing.assert_array_equal(other.shap_values(X), want)


def test_names_come_from_the_model_then_the_background_then_positions():
    from sklearn.tree import DecisionTreeRegressor

    X = numbers()
    model = DecisionTreeRegressor(max_depth=3).fit(X, target(X))
    as_frame = pd.DataFrame(X, columns=list("wxyz"))
    assert fs.TreeExplainer(model, X, strategy="tables").feature_names == tuple(
        f"Feature {i}" for i in range(4)
    )
    assert fs.TreeExplainer(model, as_frame).feature_names == tuple("wxyz")
    given = fs.TreeExplainer(model, as_frame, feature_names=np.array(list("abcd")))
    assert given.feature_names == tuple("abcd")
    assert given(X[:2]).feature_names == list("abcd")


def test_lightgbm_writes_spaces_as_underscores():
    import lightgbm

    X = pd.DataFrame(numbers(), columns=NAMES)
    model = lightgbm.LGBMRegressor(n_estimators=3, verbose=-1).fit(X, target(X.to_numpy()))
    explainer = fs.TreeExplainer(model, X, strategy="tables")
    assert np.array_equal(explainer.shap_values(X), explainer.shap_values(X.to_numpy()))


@pytest.mark.parametrize(
    ("library", "name"),
    [
        ("sklearn", "HistGradientBoostingRegressor frame"),
        ("xgboost", "frame"),
        ("lightgbm", "frame"),
        ("catboost", "frame"),
    ],
)
def test_models_trained_on_categories(library, name):
    model, X, _ = CASES[library][name]()
    rows, background = X[:12], X[60:90]
    want, _ = brute_force(model, rows, background)
    explainer = fs.TreeExplainer(model, background, strategy="tables")
    values = explainer.shap_values(rows)
    assert_within(with_outputs(values), want, 2e-6 if library == "xgboost" else 1e-6)
    if library == "xgboost" and not XGBOOST_KEEPS_LABELS:
        return
    # The same labels under other categories in another order, and in another library's frame.
    shuffled = rows.copy()
    if library != "catboost":
        shuffled["colour"] = rows["colour"].cat.set_categories(LABELS[::-1])
        assert np.array_equal(explainer.shap_values(shuffled), values)
    others = [rows.astype({"colour": dtype}) for dtype in ("string", "string[pyarrow]", object)]
    for other in [*others, rows.astype({"size": "int64"})]:
        if library in ("xgboost", "lightgbm"):  # which take labels from categorical columns alone
            with pytest.raises(fs.InputError, match="takes no labels"):
                explainer.shap_values(other)
            (streamed,) = explainer.explain_batches([other], layout="array")
            assert np.array_equal(np.stack(streamed["shap_values"]), values)
        else:
            assert np.array_equal(explainer.shap_values(other), values)


def test_polars_categories():
    import lightgbm

    X = frame(missing=True).drop(columns="size")
    model = lightgbm.LGBMRegressor(n_estimators=5, verbose=-1, min_child_samples=5, min_data_per_group=5)
    model.fit(X, frame_target(frame(missing=True)))
    explainer = fs.TreeExplainer(model, X, strategy="tables")
    want = explainer.shap_values(X)
    table = pl.from_pandas(X, nan_to_null=True)
    assert table["colour"].dtype in (pl.Categorical, pl.Enum)
    assert np.array_equal(explainer.shap_values(table), want)
    assert np.array_equal(explainer.shap_values(table.cast({"colour": pl.Enum(LABELS)})), want)
    assert np.array_equal(explainer.shap_values(table.cast({"colour": pl.String})), want)
    assert np.array_equal(explainer.shap_values(pa.Table.from_pandas(X)), want)


@pytest.mark.parametrize(
    ("library", "name"),
    [("sklearn", "HistGradientBoostingRegressor frame"), ("lightgbm", "frame"), ("catboost", "frame")],
)
def test_unseen_categories(library, name):
    model, X, _ = CASES[library][name]()
    rows = X[:10].copy()
    unseen = np.array(["never seen", *LABELS[1:3]] * 4)[:10]
    rows["colour"] = unseen
    if library != "catboost":
        rows["colour"] = rows["colour"].astype(pd.CategoricalDtype([*LABELS, "never seen"]))
    background = X[60:80].copy()
    background["colour"] = background["colour"].astype(rows["colour"].dtype)
    want, _ = brute_force(model, rows, background)
    assert_within(with_outputs(fs.TreeExplainer(model, background).shap_values(rows)), want, 1e-6)


def test_codes_where_the_model_has_no_labels():
    import xgboost

    X = numbers()
    X[:, 3] = np.random.default_rng(0).integers(0, 5, len(X))
    options = {"feature_types": ["q", "q", "q", "c"], "enable_categorical": True, "n_jobs": 1}
    model = xgboost.XGBClassifier(n_estimators=4, max_depth=3, **options).fit(X, classes(X, 3))
    explainer = fs.TreeExplainer(model, X, strategy="tables")
    want = explainer.shap_values(X)
    columns = pd.DataFrame(X, columns=list("abcd"))
    columns["d"] = pd.Categorical(columns["d"], categories=[0, 1, 2, 3, 4])
    assert np.array_equal(explainer.shap_values(columns), want)
    gaps = columns.copy()
    gaps.loc[:40, "d"] = None
    missing = np.where(np.arange(len(X))[:, None] <= 40, [[0, 0, 0, np.nan]], 0.0) + X
    assert np.array_equal(explainer.shap_values(gaps), explainer.shap_values(missing))
    labels = pl.from_pandas(columns.drop(columns="d")).with_columns(
        d=pl.Series(X[:, 3].astype(int).astype(str))
    )
    as_enum = labels.cast({"d": pl.Enum(list("01234"))})
    assert np.array_equal(explainer.shap_values(as_enum), want)
    for form in (labels.cast({"d": pl.Categorical}), pa.Table.from_pandas(columns)):
        with pytest.raises(fs.InputError, match="no fixed order"):
            explainer.shap_values(form)
    columns["a"] = pd.Categorical(columns["a"])
    with pytest.raises(fs.InputError, match="'a', but the model treats this feature as a number"):
        explainer.shap_values(columns)
