"""Rows in every form: the library's own answer on the very same rows, or an error where it refuses them.

A file gives the same numbers as the live explainer that it was saved from, or refuses the same rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import catboost
import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xgboost
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, TargetEncoder
from sklearn.tree import DecisionTreeRegressor

import fouriershap as fs
from models import XGBOOST_KEEPS_LABELS

VOCABULARIES: dict[str, list[Any]] = {
    "words": ["blue", "green", "red"],
    "digits": ["1", "2", "3"],
    "integers": [10, 20, 30],
    "codes": [0, 1, 2],
    "from one": [1, 2, 3],
}
UNKNOWN: dict[str, Any] = {"words": "white", "digits": "7", "integers": 77, "codes": 7, "from one": 7}
N_ROWS = 6
KEPT = (
    "xgboost",
    "xgboost booster",
    "lightgbm",
    "lightgbm booster",
)  # take labels from categorical columns alone


@cache
def training(kind: str) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    code, x = rng.integers(0, 3, 300), rng.normal(size=300)
    known = VOCABULARIES[kind]
    X = pd.DataFrame({"x": x, "c": pd.Categorical([known[k] for k in code], categories=known)})
    return X, x + np.array([0.0, 3.0, -2.0])[code] * (1 + (x > 0))


def light(X: pd.DataFrame, y: np.ndarray) -> Any:
    model = lightgbm.LGBMRegressor(n_estimators=6, verbose=-1, n_jobs=1, min_child_samples=2, cat_smooth=0)
    return model.fit(X, y)


def boosted(X: pd.DataFrame, y: np.ndarray) -> Any:
    return xgboost.XGBRegressor(n_estimators=6, max_depth=3, enable_categorical=True, n_jobs=1).fit(X, y)


def cat(X: pd.DataFrame, y: np.ndarray) -> Any:
    settings: dict[str, Any] = {"iterations": 6, "depth": 3, "verbose": 0, "thread_count": 1}
    model = catboost.CatBoostRegressor(
        **settings, allow_writing_files=False, one_hot_max_size=20, cat_features=["c"]
    )
    return model.fit(of_plain_labels(X), y)


def of_plain_labels(X: pd.DataFrame) -> pd.DataFrame:
    return X.astype({"c": object}).infer_objects()


def encoded(encoder: Any, model: Any) -> Callable[[pd.DataFrame, np.ndarray], Any]:
    def fit(X: pd.DataFrame, y: np.ndarray) -> Any:
        steps = make_column_transformer((encoder, [c for c in X if c != "x"]), remainder="passthrough")
        return make_pipeline(steps, model).fit(of_plain_labels(X), y)

    return fit


FOREST = RandomForestRegressor(5, max_depth=4, random_state=0)
HIST = HistGradientBoostingRegressor(max_iter=6, min_samples_leaf=2)
UNSEEN: dict[str, Any] = {"handle_unknown": "use_encoded_value", "unknown_value": -1}
MODELS: dict[str, Callable[[pd.DataFrame, np.ndarray], Any]] = {
    "xgboost": boosted,
    "xgboost booster": lambda X, y: boosted(X, y).get_booster(),
    "lightgbm": light,
    "lightgbm booster": lambda X, y: light(X, y).booster_,
    "catboost": cat,
    "hist": lambda X, y: HistGradientBoostingRegressor(max_iter=6, min_samples_leaf=2).fit(X, y),
    "one-hot": encoded(OneHotEncoder(sparse_output=False), FOREST),
    "one-hot ignoring": encoded(OneHotEncoder(handle_unknown="ignore", sparse_output=False), FOREST),
    "ordinal": encoded(OrdinalEncoder(), HIST),
    "ordinal with others": encoded(OrdinalEncoder(**UNSEEN), FOREST),
    "target": encoded(TargetEncoder(random_state=0), FOREST),
}


def label_columns(kind: str) -> Iterator[tuple[str, Any]]:
    """Columns of labels of the training data, of others, of other types, and without some."""
    known, other = VOCABULARIES[kind], UNKNOWN[kind]
    base = [known[i % 3] for i in range(N_ROWS)]
    yield "category", pd.Categorical(base, known)
    yield "reordered", pd.Categorical(base, known[::-1])
    yield "fewer", pd.Categorical([known[1]] * N_ROWS)
    yield "unused", pd.Categorical(base, [*known, other])
    yield "unseen category", pd.Categorical([*base[1:], other], [*known, other])
    yield "missing category", pd.Categorical([*base[1:], None], known)
    yield "objects", pd.Series(base, dtype=object)
    for name, last in {
        "unseen": other,
        "None": None,
        "nan": np.nan,
        "NA": pd.NA,
        "True": True,
        "7.5": 7.5,
    }.items():
        yield f"objects and {name}", pd.Series([*base[1:], last], dtype=object)
    texts = [str(label) for label in base]
    yield "text", pd.Series(texts, dtype="str")
    yield "text and None", pd.Series([*texts[1:], None], dtype="str")
    yield "string", pd.Series(texts, dtype="string")
    yield "category of text", pd.Categorical(texts)
    numbers = [int(label) if str(label).isdigit() else k % 3 for k, label in enumerate(base)]
    yield "integers", pd.Series(numbers)
    yield "nullable", pd.Series([*numbers[1:], None], dtype="Int64")
    yield "floats", pd.Series(numbers, dtype=float)
    yield "category of integers", pd.Categorical(numbers)
    yield "category of floats", pd.Categorical([float(number) for number in numbers])
    yield "truth values", pd.Series([True, False] * 3)
    yield "category of truth values", pd.Categorical([True, False] * 3)


def forms(kind: str) -> Iterator[tuple[str, str, Any]]:
    for name, column in label_columns(kind):
        X = pd.DataFrame({"x": np.linspace(-1.5, 1.5, N_ROWS), "c": column})
        yield name, "pandas", X
        if not isinstance(column, pd.Categorical):
            yield name, "array", X.to_numpy()
        makers = (
            ("polars", pl.from_pandas),
            ("arrow", lambda X: pa.Table.from_pandas(X, preserve_index=False)),
        )
        for container, make in makers:
            try:
                yield name, container, make(X)
            except (pa.ArrowException, TypeError, pl.exceptions.PolarsError):
                continue  # columns of several types


def own_answer(model: Any, X: Any) -> np.ndarray | None:
    """The library's own prediction of the very same rows; None where it refuses them."""
    try:
        if isinstance(model, xgboost.Booster):
            matrix = xgboost.DMatrix(X, enable_categorical=True)
            return np.asarray(model.predict(matrix, validate_features=hasattr(X, "columns")))
        options = {"validate_features": hasattr(X, "columns")} if isinstance(model, xgboost.XGBModel) else {}
        return np.asarray(model.predict(X, **options), dtype=np.float64)
    except Exception:  # noqa: BLE001, each library refuses in its own way
        return None


def answer(explainer: fs.Explainer, X: Any) -> np.ndarray | str:
    try:
        return np.asarray(explainer.predict(X))
    except fs.InputError as error:
        return str(error)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kind", VOCABULARIES)
def test_the_library_judges_every_form(name: str, kind: str, tmp_path: Path, capfd: Any) -> None:
    if name.startswith("xgboost") and not XGBOOST_KEEPS_LABELS:
        pytest.skip("this XGBoost keeps no labels")
    X, y = training(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MODELS[name](X, y)
        plain = X if name in (*KEPT, "hist") else of_plain_labels(X)
        explainer = fs.TreeExplainer(model, plain)
        assert explainer.checked
        explainer.save(tmp_path / "e.fshap")
        loaded = fs.load(tmp_path / "e.fshap")
        if loaded.has_pipeline != explainer.has_pipeline:
            loaded = explainer  # a step that files do not keep
        faults, n_answered = [], 0
        is_pipeline = explainer.has_pipeline
        for column, container, rows in forms(kind):
            if column == "category of truth values" and container == "arrow" and name == "hist":
                continue  # taken for numbers, as in pandas; scikit-learn refuses this table
            if is_pipeline and container == "array":
                continue  # its columns have names, which a file needs less than scikit-learn
            where = f"{column} in {container}"
            ours, kept = answer(explainer, rows), answer(loaded, rows)
            # CatBoost crashes on labels in polars, and takes no tables of Arrow; LightGBM and XGBoost take labels from
            # other frames than those of pandas in some types only: what they are asked is the same rows in pandas.
            bridged = container in ("polars", "arrow") and not is_pipeline
            theirs = own_answer(model, rows.to_pandas() if bridged and name in ("catboost", *KEPT) else rows)
            # Numbers against labels that scikit-learn keeps as objects fail inside NumPy, and truth values are
            # numbers to some of its versions: a file compares labels by their types.
            is_version = is_pipeline and (
                container == "arrow" or "truth values" in column or "'isnan' not supported" in str(ours)
            )
            if isinstance(ours, str) != isinstance(kept, str) and not is_version:
                faults.append(f"{where}: live {ours}, from the file {kept}")
            elif not isinstance(ours, str) and not isinstance(kept, str) and not np.array_equal(ours, kept):
                faults.append(f"{where}: the file answers something else")
            if isinstance(ours, str):
                continue  # a library may take what is not a label; we need not
            n_answered += 1
            if theirs is None and bridged and name in KEPT:
                theirs = own_answer(model, rows.to_pandas().astype({"c": object}).astype({"c": "category"}))
            if theirs is None:
                faults.append(f"{where}: answered, and the library refuses it")
            elif not np.allclose(ours, theirs, rtol=1e-5, atol=1e-5):
                faults.append(f"{where}: {ours}, the library {theirs}")
    assert not faults, "\n".join(faults)
    assert n_answered > 5


def test_unknown_labels_are_counted(tmp_path: Path) -> None:
    X, y = training("words")
    rows = X[:9].assign(c=pd.Categorical(["white"] * 4 + ["red"] * 3 + ["pink"] * 2))
    for name in ("hist", "lightgbm"):
        model = MODELS[name](X, y)
        explainer = fs.TreeExplainer(model, X)
        with pytest.warns(fs.LabelWarning, match=r"'c', has 6 values that the model does not know.*'white'"):
            found = explainer.predict(rows)
        np.testing.assert_allclose(found, model.predict(rows), rtol=1e-6)
    model = cat(X, y)  # which keeps hashes of the labels in its splits alone
    explainer = fs.TreeExplainer(model, of_plain_labels(X))
    explainer.save(tmp_path / "e.fshap")
    plain = of_plain_labels(rows)
    for one in (explainer, fs.load(tmp_path / "e.fshap")):
        with pytest.warns(
            fs.LabelWarning, match=r"'c', has 6 values .*'white', 'pink'.* background have them"
        ):
            np.testing.assert_allclose(one.predict(plain), model.predict(plain), rtol=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error", fs.LabelWarning)
        explainer.predict(of_plain_labels(X))
        fs.TreeExplainer(model).predict(plain)  # no background says what else it has seen
    with pytest.raises(
        fs.InputError, match=r"'c', has the label 'pink'.*XGBoost refuses.*'blue', 'green', 'red'"
    ):
        fs.TreeExplainer(boosted(X, y), X).predict(rows)


def test_truth_values_are_ones_and_zeros_to_catboost(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=200), "c": rng.random(200) < 0.5})
    model = cat(X, X["x"] + 3 * X["c"])
    model.save_model(tmp_path / "model.cbm")
    explainer = fs.TreeExplainer(model, X)
    explainer.save(tmp_path / "e.fshap")
    for one in (explainer, fs.TreeExplainer(tmp_path / "model.cbm", X), fs.load(tmp_path / "e.fshap")):
        for rows in (X, X.astype({"c": int}), X.astype({"c": object}), X.astype({"c": "category"})):
            np.testing.assert_allclose(one.predict(rows), model.predict(X), rtol=1e-6)


@pytest.mark.parametrize("name", ["xgboost", "lightgbm", "catboost"])
def test_categories_in_a_column_of_numbers(name: str, tmp_path: Path) -> None:
    # Nothing in `idle` is worth a split: files, too, know that it held numbers.
    X, y = training("words")
    X = X.assign(idle=0.0)
    model = MODELS[name](X, y)
    explainer = fs.TreeExplainer(model, of_plain_labels(X) if name == "catboost" else X)
    explainer.save(tmp_path / "e.fshap")
    rows = X[:9].assign(idle=pd.Categorical(["a"] * 9))
    assert own_answer(model, rows) is None
    for one in (explainer, fs.load(tmp_path / "e.fshap")):
        with pytest.raises(fs.InputError, match=r"categorical columns? .*'idle'"):
            one.predict(rows)


def test_catboost_takes_no_dates_for_labels(tmp_path: Path) -> None:
    X, y = training("words")
    model = cat(X, y)
    explainer = fs.TreeExplainer(model, of_plain_labels(X))
    explainer.save(tmp_path / "e.fshap")
    dates = pd.Series(pd.Timestamp("2020-01-01"), index=range(9))
    for column in (dates.astype(object), dates.astype("category")):
        rows = X[:9].assign(c=column)
        assert own_answer(model, rows) is None
        for one in (explainer, fs.load(tmp_path / "e.fshap")):
            with pytest.raises(fs.InputError, match="takes text and integers for labels"):
                one.predict(rows)


def test_large_integers_in_arrow() -> None:
    X = pd.DataFrame({"x": 2**30 + np.arange(100)})
    settings: dict[str, Any] = {"n_estimators": 1, "min_child_samples": 1, "min_data_in_bin": 1}
    model = lightgbm.LGBMRegressor(**settings, n_jobs=1, verbose=-1).fit(X, np.arange(100) >= 50)
    rows = pa.Table.from_pandas(X)
    explainer = fs.TreeExplainer(model, X)
    try:
        found = explainer.predict(rows)
    except fs.UnsupportedModelError:  # of LightGBM before 4.6, which rounds them on the way
        assert not np.allclose(model.predict(rows), explainer.predict(X))
    else:
        np.testing.assert_allclose(found, model.predict(rows))


@pytest.mark.parametrize("kind", ["integers", "codes"])
def test_infinity_is_not_a_label(kind: str, tmp_path: Path) -> None:
    X, y = training(kind)
    explainer = fs.TreeExplainer(MODELS["hist"](X, y), X)
    explainer.save(tmp_path / "e.fshap")
    for one in (explainer, fs.load(tmp_path / "e.fshap")):
        with pytest.raises(fs.InputError, match="column 'c', has inf, which is not a label"):
            one.predict(pl.DataFrame({"x": [0.0, 1.0], "c": [VOCABULARIES[kind][1], np.inf]}, strict=False))


def test_infinity_is_no_unknown_label_to_files_of_pipelines(tmp_path: Path) -> None:
    X = pd.DataFrame({"c": [1.0, 2.0, 3.0] * 20})
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    pipeline = make_pipeline(encoder, DecisionTreeRegressor(max_depth=2)).fit(X, X["c"])
    explainer = fs.TreeExplainer(pipeline, X)
    explainer.save(tmp_path / "e.fshap")
    for cell, is_known in ((7.0, True), (np.inf, False)):
        rows = pd.DataFrame({"c": pd.Categorical([1.0, cell])})
        assert (own_answer(pipeline, rows) is not None) == is_known
        for one in (explainer, fs.load(tmp_path / "e.fshap")):
            if is_known:
                np.testing.assert_allclose(one.predict(rows), pipeline.predict(rows), rtol=1e-6)
            else:
                with pytest.raises(fs.InputError, match="infinit"):
                    one.predict(rows)


def test_text_is_not_a_number_to_files_of_pipelines(tmp_path: Path) -> None:
    X, y = training("words")
    explainer = fs.TreeExplainer(MODELS["one-hot"](X, y), of_plain_labels(X))
    explainer.save(tmp_path / "e.fshap")
    loaded = fs.load(tmp_path / "e.fshap")
    rows = of_plain_labels(X)[:9]
    np.testing.assert_array_equal(loaded.predict(rows.astype({"x": object})), loaded.predict(rows))
    with pytest.raises(fs.InputError, match="is text"):
        loaded.predict(rows.assign(x=rows["x"].astype(str).astype(object)))


@pytest.mark.skipif(not XGBOOST_KEEPS_LABELS, reason="older versions look at codes alone")
@pytest.mark.parametrize("labels", [[True, False], [0.5, 1.5]])
def test_categories_of_other_types_for_codes(labels: list[Any], tmp_path: Path) -> None:
    X, y = training("codes")
    codes = np.column_stack([X["x"], X["c"].astype(int)])
    settings: dict[str, Any] = {"n_estimators": 3, "n_jobs": 1, "feature_types": ["q", "c"]}
    model = xgboost.XGBRegressor(**settings, enable_categorical=True).fit(codes, y)
    explainer = fs.TreeExplainer(model, codes)
    explainer.save(tmp_path / "e.fshap")
    rows = pd.DataFrame({"x": [0.0, 1.0], "c": pd.Categorical(labels)})
    assert own_answer(model, rows) is None
    for one in (explainer, fs.load(tmp_path / "e.fshap")):
        with pytest.raises(fs.InputError, match="takes text and integers for labels"):
            one.predict(rows)


def test_none_stays_none_in_hybrids() -> None:
    X, y = training("words")
    X = X.assign(c=X["c"].astype(object).where(np.arange(len(X)) % 5 > 0, None))
    assert X["c"].dtype == object and X["c"].iloc[0] is None
    steps = make_column_transformer((OneHotEncoder(sparse_output=False), ["c"]), remainder="passthrough")
    pipeline = make_pipeline(steps, RandomForestRegressor(3, random_state=0)).fit(X, y)
    explainer = fs.TreeExplainer(pipeline, X[:20], groups="input")
    np.testing.assert_allclose(
        explainer.shap_values(X[:9]).sum(axis=1) + explainer.expected_value,
        pipeline.predict(X[:9]),
        rtol=1e-6,
    )
    seen = set()

    def model(rows: pd.DataFrame) -> np.ndarray:
        seen.update(type(label).__name__ for label in rows["c"])
        return pipeline.predict(rows)

    fs.Explainer(model, X[:20]).shap_values(X[:9])
    assert seen == {"str", "NoneType"}


@pytest.mark.parametrize("kind", ["words", "integers"])
def test_lists_keep_their_types(kind: str, tmp_path: Path) -> None:
    X, y = training(kind)
    X = X.assign(d=np.where(np.arange(len(X)) % 2, "a", "b"))
    model = MODELS["ordinal with others"](X[["c", "d"]], y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fs.TreeExplainer(model, of_plain_labels(X[["c", "d"]])).save(tmp_path / "e.fshap")
    rows = of_plain_labels(X[["c", "d"]][:9])
    found = fs.load(tmp_path / "e.fshap").predict(rows.astype(object).to_numpy().tolist())
    np.testing.assert_allclose(found, model.predict(rows))


def test_lists_of_texts_and_numbers(tmp_path: Path) -> None:
    """NumPy would make texts of the numbers: "nan" is a label to CatBoost, and NaN none."""
    X = pd.DataFrame({"c": ["a", "b", "nan"] * 30, "x": np.arange(90.0)})
    settings: dict[str, Any] = {"iterations": 3, "depth": 2, "verbose": 0, "allow_writing_files": False}
    model = catboost.CatBoostRegressor(**settings, cat_features=[0]).fit(X, X["x"] * (X["c"] == "a"))
    explainer = fs.TreeExplainer(model, X)
    explainer.save(tmp_path / "e.fshap")
    rows = [["a", 60.0], ["nan", 3.0]]
    for one in (explainer, fs.load(tmp_path / "e.fshap")):
        np.testing.assert_allclose(one.predict(rows), model.predict(rows), atol=1e-6)
        with pytest.raises(fs.InputError, match="has a missing value"):
            one.predict([["a", 60.0], [np.nan, 3.0]])


def test_a_form_is_asked_about_once() -> None:
    X, y = training("words")
    model = light(X, y)
    explainer = fs.TreeExplainer(model, X)
    asked, predict = [], model.booster_.predict
    model.booster_.predict = lambda *args, **options: asked.append(args[0]) or predict(*args, **options)
    explainer.predict(X[:50])
    assert not asked  # in the form of the background
    rows = X[:50].assign(x=X["x"].astype(np.float32))
    rows.loc[40, "c"] = np.nan
    explainer.predict(rows)
    explainer.predict(rows)
    assert len(asked) == 1 and len(asked[0]) <= 32 and 40 in asked[0].index


def test_rows_that_scikit_learn_refuses() -> None:
    X, y = training("words")
    model = RandomForestRegressor(5, random_state=0).fit(X[["x"]].to_numpy(), y)
    explainer = fs.TreeExplainer(model, X[["x"]].to_numpy())
    for number in (np.inf, -np.inf, 1e39):
        with pytest.raises(ValueError, match="infinity"):
            model.predict([[number]])
        with pytest.raises(fs.InputError, match="row 1, column 0; give finite numbers"):
            explainer.shap_values([[0.0], [number]])
