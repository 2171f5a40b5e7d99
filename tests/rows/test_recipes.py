"""What a file keeps of a Pipeline gives what scikit-learn's own transformers give, and lies of files are found."""

from __future__ import annotations

import copy
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestRegressor
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)

import fouriershap as fs
from fouriershap._base import files
from fouriershap._libraries.sklearn.preprocessing import PipelineSteps
from fouriershap._rows.frames import densified
from fouriershap._rows.preprocessing import UnknownStepError
from fouriershap._rows.recipes import Recipe

NUMBERS, LABELS = ["age", "income", "flat", "empty"], ["city", "job", "size"]


def people(n: int = 120, seed: int = 0) -> pd.DataFrame:
    """Missing numbers and labels, rare labels, numbers as labels, a constant column, one without any value."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"age": rng.integers(20, 70, n).astype(float), "income": rng.normal(50, 15, n)})
    X = X.assign(flat=3, empty=np.nan)
    X["city"] = rng.choice(
        np.array(["Bern", "Basel", "Zug", np.nan], dtype=object), n, p=[0.5, 0.3, 0.1, 0.1]
    )
    X["job"] = rng.choice(["cook", "nurse", "clerk", "judge", "pilot"], n, p=[0.4, 0.3, 0.26, 0.02, 0.02])
    X["size"] = rng.choice([1, 2, 5], n)
    X.loc[rng.random(n) < 0.2, "age"] = np.nan
    return X


PEOPLE = people()
STRANGERS = people(60, 1).assign(city=["Genf", None, "Bern"] * 20, size=[1, 2, 7] * 20)


def recipe_of(transformer: Any, X: Any) -> tuple[Recipe, Any]:
    """The recipe as it comes out of a file, and the fitted transformer."""
    pipeline = make_pipeline(transformer).fit(X, np.arange(len(X)))
    made = PipelineSteps((pipeline,)).to_recipe(X, False)
    width = made.transform(X, "X").shape[1]
    return Recipe.from_json(json.loads(json.dumps(made.to_json())), width), pipeline


def assert_same(transformer: Any, X: Any, *others: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # unknown labels, columns without values
        recipe, pipeline = recipe_of(transformer, X)
        for rows in (X, X[:1], *others):
            want = np.asarray(densified(pipeline.transform(rows)))
            made = recipe.transform(rows, "X")
            np.testing.assert_array_equal(made, want.astype(made.dtype))


SCALERS = [
    StandardScaler(),
    StandardScaler(with_mean=False),
    StandardScaler(with_std=False),
    MinMaxScaler(),
    MinMaxScaler((-2, 3), clip=True),
    RobustScaler(),
    RobustScaler(with_centering=False, quantile_range=(5, 80)),
    RobustScaler(with_scaling=False),
    MaxAbsScaler(),
]


@pytest.mark.parametrize("scaler", SCALERS, ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_scalers(scaler: Any, dtype: Any) -> None:
    X = np.random.default_rng(0).normal(3, 7, size=(80, 3)).astype(dtype)
    X[:, 2] = 4  # no spread
    far = (X * 3 - 1).astype(dtype)
    if dtype is not np.int64:
        X[3, 0] = far[5, 1] = np.nan
    assert_same(scaler, X, far)
    assert_same(scaler, pd.DataFrame(X, columns=list("abc")), pd.DataFrame(far, columns=list("abc")))


@pytest.mark.parametrize("indicator", [False, True])
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("strategy", ["mean", "median", "most_frequent", "constant"])
def test_imputers_of_numbers(strategy: str, keep: bool, indicator: bool) -> None:
    imputer = SimpleImputer(strategy=strategy, keep_empty_features=keep, add_indicator=indicator)
    assert_same(make_column_transformer((imputer, NUMBERS)), PEOPLE, STRANGERS)


def test_imputers_of_labels_and_of_other_marks() -> None:
    for strategy in ("most_frequent", "constant"):
        filled = make_pipeline(
            SimpleImputer(strategy=strategy, fill_value="?" if strategy == "constant" else None),
            OneHotEncoder(handle_unknown="ignore"),
        )
        assert_same(make_column_transformer((filled, ["city", "job"])), PEOPLE, PEOPLE[40:])
    marked = np.where(np.random.default_rng(0).random((50, 3)) < 0.2, -1.0, np.arange(150).reshape(50, 3))
    assert_same(SimpleImputer(missing_values=-1, add_indicator=True), marked)
    assert_same(MissingIndicator(missing_values=-1, features="all"), marked)
    assert_same(make_column_transformer((MissingIndicator(), ["age"]), ("passthrough", ["flat"])), PEOPLE)


ENCODERS = [
    OneHotEncoder(handle_unknown="ignore"),
    OneHotEncoder(handle_unknown="ignore", sparse_output=False, dtype=np.float32),
    OneHotEncoder(handle_unknown="ignore", drop="first"),
    OneHotEncoder(handle_unknown="ignore", drop="if_binary"),
    OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=0.15),
    OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=2, drop="first"),
    OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=3),
    OneHotEncoder(handle_unknown="ignore", min_frequency=0.15),
    OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
    OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan),
    OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2),
    OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, min_frequency=0.15),
]


@pytest.mark.parametrize("encoder", ENCODERS, ids=str)
def test_encoders(encoder: Any) -> None:
    rows = STRANGERS.assign(job="actor")
    assert_same(make_column_transformer((encoder, LABELS), remainder="drop"), PEOPLE, rows)
    assert_same(encoder, PEOPLE[["size"]].to_numpy(), rows[["size"]].to_numpy())


@pytest.mark.parametrize("encoder", [OneHotEncoder(), OrdinalEncoder(), OneHotEncoder(drop="first")], ids=str)
def test_unknown_labels_are_refused_where_the_encoder_refuses_them(encoder: Any) -> None:
    recipe, pipeline = recipe_of(make_column_transformer((encoder, LABELS)), PEOPLE)
    with pytest.raises(ValueError, match="unknown categories"):
        pipeline.transform(PEOPLE.assign(job="actor"))
    with pytest.raises(fs.InputError, match="'actor' is not a label"):
        recipe.transform(PEOPLE.assign(job="actor"), "X")


def prepared() -> ColumnTransformer:
    numbers = make_pipeline(
        SimpleImputer(add_indicator=True), FeatureUnion([("s", StandardScaler()), ("m", MinMaxScaler())])
    )
    labels = make_pipeline(OneHotEncoder(handle_unknown="ignore"), SelectKBest(k=4))
    return ColumnTransformer(
        [("labels", labels, ["city", "job"]), ("n", numbers, [0, 1]), ("gone", "drop", ["empty"])],
        remainder="passthrough",
    )


def test_columns_apart_and_steps_inside_each_other() -> None:
    assert_same(prepared(), PEOPLE, STRANGERS, PEOPLE.astype({"age": "float32"}))
    chosen = make_pipeline(VarianceThreshold(), FunctionTransformer(), "passthrough", StandardScaler())
    assert_same(chosen, PEOPLE[["age", "income", "flat"]].fillna(1).to_numpy())


def test_frames_of_other_libraries_and_labels_of_pandas() -> None:
    polars = pytest.importorskip("polars")
    recipe, pipeline = recipe_of(prepared(), PEOPLE.drop(columns="city").assign(city="Bern"))
    rows = PEOPLE.drop(columns="city").assign(city="Bern")
    want = np.asarray(densified(pipeline.transform(rows)))
    np.testing.assert_array_equal(recipe.transform(polars.from_pandas(rows), "X"), want)
    as_category = rows.astype({"job": "category"})
    np.testing.assert_array_equal(recipe.transform(as_category, "X"), want)


def test_what_does_not_go_through_is_told() -> None:
    recipe, _ = recipe_of(prepared(), PEOPLE)
    for rows, message in (
        (PEOPLE.drop(columns="age"), r"X has 6 columns.*Missing: 'age'"),
        (PEOPLE.assign(age="old"), "X does not go through the pipeline: 'old' is text"),
        (PEOPLE.assign(income=np.inf), "infinite"),
        (np.zeros((2, 3)), "X has 3 columns"),
    ):
        with pytest.raises(fs.InputError, match=message):
            recipe.transform(rows, "X")


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (PCA(2), r"step 'pca' \(PCA\)"),
        (FunctionTransformer(np.log1p), "its function is unknown"),
        (make_pipeline(StandardScaler(), PCA(1)), r"'pipeline\.pca'"),
    ],
)
def test_saving_says_what_it_cannot_keep(tmp_path: Path, step: Any, words: str) -> None:
    X = np.abs(np.random.default_rng(0).normal(size=(60, 3)))
    pipeline = make_pipeline(step, RandomForestRegressor(3, max_depth=3, random_state=0)).fit(X, X[:, 0])
    explainer = fs.Explainer(pipeline, X)
    with pytest.warns(fs.ModelWarning, match=f"does not hold the steps.*{words}.*pipeline\\[:-1\\]"):
        explainer.save(tmp_path / "p.fshap")
    loaded = fs.load(tmp_path / "p.fshap")
    assert not loaded.has_pipeline
    np.testing.assert_array_equal(loaded.shap_values(pipeline[:-1].transform(X)), explainer.shap_values(X))


def test_a_step_that_does_something_else_is_not_kept() -> None:
    class Twice(StandardScaler):
        def transform(self, X: Any, copy: Any = None) -> Any:
            return 2 * super().transform(X)

    X = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(UnknownStepError, match=r"'twice' \(Twice\)"):
        recipe_of(Twice(), X)
    scaler = StandardScaler().fit(X)
    scaler.transform = lambda rows: 2 * rows  # as a new version might
    with pytest.raises(UnknownStepError, match="disagrees"):
        PipelineSteps((make_pipeline(scaler),)).to_recipe(X, False)
    with pytest.raises(UnknownStepError, match="no background rows"):
        PipelineSteps((make_pipeline(scaler),)).to_recipe(None, False)


@pytest.mark.parametrize("groups", [None, "input"])
@pytest.mark.parametrize("model", ["forest", "xgboost", "ridge"])
def test_a_loaded_explainer_takes_the_rows_of_the_pipeline(tmp_path: Path, model: str, groups: Any) -> None:
    pytest.importorskip("xgboost")
    from xgboost import XGBRegressor

    final = {
        "forest": RandomForestRegressor(4, max_depth=5, random_state=0),
        "xgboost": XGBRegressor(n_estimators=5, max_depth=3),
        "ridge": Ridge(),
    }[model]
    prepare = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), LABELS),
        (make_pipeline(SimpleImputer(), StandardScaler()), ["age", "income"]),
        sparse_threshold=1.0,  # what is not stored is missing to XGBoost
    )
    y = PEOPLE["income"] * (PEOPLE["city"] == "Zug") + PEOPLE["size"]
    pipeline = make_pipeline(prepare, final).fit(PEOPLE, y)
    explainer = fs.Explainer(pipeline, PEOPLE, groups=groups)
    explainer.save(tmp_path / "p.fshap")
    fs.load(tmp_path / "p.fshap").save(tmp_path / "again.fshap")
    for name in ("p.fshap", "again.fshap"):
        loaded = fs.load(tmp_path / name)
        assert loaded.has_pipeline and loaded.input_names == tuple(PEOPLE.columns)
        got = loaded.shap_values(STRANGERS)
        np.testing.assert_array_equal(got, explainer.compile().shap_values(STRANGERS))
        predictions = np.asarray(pipeline.predict(STRANGERS), dtype=float)
        np.testing.assert_allclose(got.sum(axis=1) + loaded.expected_value, predictions, rtol=1e-4, atol=1e-3)
        mixed = STRANGERS[STRANGERS.columns[::-1]]
        np.testing.assert_array_equal(loaded.shap_values(mixed), got)
        want, shown = explainer.frame(STRANGERS[:2], top_k=2), loaded.frame(STRANGERS[:2], top_k=2)
        pd.testing.assert_frame_equal(shown, want)
        with pytest.raises(fs.InputError, match="X has 6 columns"):
            loaded.shap_values(STRANGERS.drop(columns="age"))


def damaged(header: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return headers that no valid file has, by what is wrong."""

    def changed(change: Any) -> dict[str, Any]:
        copied = copy.deepcopy(header)
        change(copied["inputs"])
        return copied

    def deep(steps: Any) -> Any:
        for _ in range(40):
            steps = [{"kind": "parts", "columns": [list(range(7))], "steps": [steps]}]
        return steps

    made = {
        "no object": lambda h: h.__setitem__("steps", []),
        "an unknown kind": lambda h: h["steps"]["steps"][0].__setitem__("kind", "pickle"),
        "no such column": lambda h: h["steps"]["steps"][0]["columns"][0].__setitem__(0, 7),
        "a negative column": lambda h: h["steps"]["steps"][0]["columns"][0].__setitem__(0, -1),
        "fewer names": lambda h: h["steps"]["names"].pop(),
        "other columns": lambda h: h["steps"].__setitem__("n_columns", 8),
        "a part too few": lambda h: h["steps"]["steps"][0]["steps"].pop(),
        "another type": lambda h: h["steps"].__setitem__("dtype", "object"),
        "more features": lambda h: h["steps"]["steps"].append(
            {"kind": "parts", "columns": [[0]], "steps": [[]]}
        ),
        "too deep": lambda h: h["steps"].__setitem__("steps", deep(h["steps"]["steps"])),
        "no scale": lambda h: _first(h, "scale").__setitem__("minus", [1.0]),
        "text in a scale": lambda h: _first(h, "scale").__setitem__("divisor", ["1"] * 2),
        "wide one-hot": lambda h: _first(h, "one-hot")["widths"].__setitem__(0, 10**9),
        "outside one-hot": lambda h: _first(h, "one-hot")["columns"][0]["numbers"].__setitem__(0, 99),
        "half a column": lambda h: _first(h, "one-hot")["columns"][0]["numbers"].__setitem__(0, 0.5),
        "a missing label beyond": lambda h: _first(h, "one-hot")["columns"][0].__setitem__("nan", 99),
        "text for a number": lambda h: _first(h, "fill")["values"].__setitem__(0, "x"),
        "filling nothing": lambda h: _first(h, "fill")["kept"].append(0),
        "more than it knows": lambda h: _first(h, "fill").__setitem__("code", "x"),
        "other inputs": lambda h: h.__setitem__("input_columns", [["a", 0]] * 7),
        "inputs of other players": lambda h: h["input_columns"][0].__setitem__(1, 99),
    }
    return [(name, changed(change)) for name, change in made.items()]


def _first(header: Any, kind: str) -> Any:
    """The first step of a kind, at any depth."""
    waiting = list(header["steps"]["steps"])
    while waiting:
        step = waiting.pop(0)
        if step["kind"] == kind:
            return step
        waiting += [inner for steps in step.get("steps", []) for inner in steps]
    raise AssertionError(kind)


def test_damaged_steps(tmp_path: Path) -> None:
    prepare = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), LABELS),
        (make_pipeline(SimpleImputer(), StandardScaler()), ["age", "income"]),
    )
    model = RandomForestRegressor(2, max_depth=3, random_state=0)
    pipeline = make_pipeline(prepare, model).fit(PEOPLE, PEOPLE["income"])
    fs.Explainer(pipeline, PEOPLE, groups="input").save(tmp_path / "p.fshap")
    contents = files.read(tmp_path / "p.fshap")
    found = damaged(contents.header)
    for name, header in found:
        files.write(tmp_path / "damaged.fshap", contents.kind, contents.arrays, header)
        with pytest.raises(fs.FileFormatError):
            fs.load(tmp_path / "damaged.fshap")
            pytest.fail(name)


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_nulls_are_what_the_encoder_knows_as_missing(library: str) -> None:
    """None or NaN, by how pandas read the training data; of texts and of numbers."""
    pytest.importorskip(library)
    words, numbers = ["a", None, "b", "a", None], [1, None, 2, 2, 1]
    for missing in (None, np.nan):
        columns = {
            name: pd.Series([missing if entry is None else entry for entry in entries], dtype=object)
            for name, entries in (("word", words), ("number", numbers))
        }
        X = pd.DataFrame(columns)
        encoder = OneHotEncoder(handle_unknown="ignore").fit(X)
        recipe = PipelineSteps((make_pipeline(encoder),)).to_recipe(X, False)
        want = densified(encoder.transform(X))
        if library == "polars" and missing is not None:
            continue  # there null is None, as for the encoder itself: a label that it does not know
        given: Any = {"word": words, "number": numbers}
        if library == "polars":
            import polars

            rows: Any = polars.DataFrame(given)
        else:
            import pyarrow

            rows = pyarrow.table(given)
        np.testing.assert_array_equal(recipe.transform(rows, "X"), want)
