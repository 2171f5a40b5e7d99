"""Explanations of streams of batches: every kind of frame, ids, orders, nulls, categories, empty batches."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier

import fouriershap as fs
from fitted_models import explain_fitted
from models import CASES, XGBOOST_KEEPS_LABELS, frame

KINDS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda X: X,
    "polars": pl.from_pandas,
    "arrow table": lambda X: pa.Table.from_pandas(X, preserve_index=False),
    "arrow batch": lambda X: pa.RecordBatch.from_pandas(X, preserve_index=False),
}


def to_pandas(answer: Any) -> pd.DataFrame:
    return answer if isinstance(answer, pd.DataFrame) else answer.to_pandas()


@cache
def explainer_of(which: str) -> tuple[Any, pd.DataFrame]:
    explainer, X = make_explainer(which)
    for _ in range(20):  # the first rows are walked, and differ by rounding from those that tables explain
        explainer.shap_values(pd.concat([X] * 5))
    return explainer, X


def make_explainer(which: str) -> tuple[Any, pd.DataFrame]:
    """An explainer and rows with nulls and categories where the model takes them."""
    if which == "several outputs":
        X = frame().drop(columns=["colour", "size"])
        model = RandomForestClassifier(5, max_depth=4, random_state=0).fit(X, np.arange(len(X)) % 3)
        return fs.TreeExplainer(model, X), X
    if which == "groups":
        case = CASES["lightgbm"]["frame"]()
        groups = {"numbers": ["a", "b"], "colour": ["colour"], "size": ["size"]}
        return fs.TreeExplainer(case.model, case.X, groups=groups), case.X
    if which == "black box":
        X = frame().drop(columns=["size"]).astype({"colour": str})
        return explain_fitted(
            lambda Z: Z["a"] * (Z["colour"] == "red") + Z["b"], X, method="trees", budget=300
        ), X
    case = CASES[which]["frame"]()
    return fs.TreeExplainer(case.model, case.X), case.X


EXPLAINERS = ["xgboost", "lightgbm", "catboost", "several outputs", "groups", "black box"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("which", EXPLAINERS)
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_batches_say_what_shap_values_says(which: str, kind: str, seed: int) -> None:
    if which == "xgboost" and kind != "pandas" and not XGBOOST_KEEPS_LABELS:
        pytest.skip("XGBoost before 3.1 keeps no labels, and only frames of pandas keep their order")
    explainer, X = explainer_of(which)
    rng = np.random.default_rng(seed)
    X = X.iloc[rng.permutation(len(X))[:40]].reset_index(drop=True)
    if kind == "polars" and which in ("xgboost", "lightgbm", "groups"):
        X = X.assign(size=X["size"].cat.codes)  # polars has no categories that are numbers
    values = explainer.shap_values(X).reshape(len(X), len(explainer.player_names), -1)
    shuffled = X.assign(key=np.arange(len(X)), name=[f"row {i}" for i in range(len(X))])
    shuffled = shuffled[list(rng.permutation(shuffled.columns))]
    bounds = [0, *sorted(rng.integers(0, len(X) + 1, size=4).tolist()), len(X)]  # some of them empty
    batches = [KINDS[kind](shuffled[first:last]) for first, last in pairwise(bounds)]
    for out in ("columns", "array", "top_k"):
        answers = list(explainer.explain_batches(iter(batches), ids=["name", "key"], layout=out, top_k=2))
        schema = explainer.output_schema(ids=["name", "key"], layout=out, top_k=2)
        names = ["name", "key", *(column.name for column in schema)]
        for answer, batch in zip(answers, batches, strict=True):
            assert type(answer) is type(batch)
            assert list(to_pandas(answer).columns) == names
        whole = pd.concat([to_pandas(answer) for answer in answers if len(answer)])
        assert whole["key"].tolist() == list(range(len(X)))
        assert whole["name"].tolist() == shuffled["name"].tolist()
        check_content(explainer, whole, values, X, out)


def check_content(
    explainer: Any, answer: pd.DataFrame, values: np.ndarray, X: pd.DataFrame, out: str
) -> None:
    outputs = explainer.output_names or [str(o) for o in range(values.shape[2])]
    suffixes = [f"__{name}" for name in outputs] if values.shape[2] > 1 else [""]
    for o, suffix in enumerate(suffixes):
        np.testing.assert_array_equal(answer["base_value" + suffix], explainer.engine.expected[o])
        if out == "columns":
            found = answer[[name + suffix for name in explainer.player_names]].to_numpy()
            np.testing.assert_array_equal(found, values[:, :, o])
        elif out == "array":
            np.testing.assert_array_equal(np.stack(answer["shap_values" + suffix]), values[:, :, o])
        else:
            check_reasons(explainer, answer, values[:, :, o], X, suffix)


def check_reasons(
    explainer: Any, answer: pd.DataFrame, values: np.ndarray, X: pd.DataFrame, suffix: str
) -> None:
    for i in range(len(values)):
        order = sorted(range(values.shape[1]), key=lambda player: (-abs(values[i, player]), player))
        for rank, player in enumerate(order[:2], start=1):
            row, name = answer.iloc[i], explainer.player_names[player]
            assert row[f"feature_{rank}{suffix}"] == name
            assert row[f"contribution_{rank}{suffix}"] == values[i, player]
            text = row[f"value_{rank}{suffix}"]
            if name == "numbers":
                assert text.startswith("a=") and ", b=" in text
            elif pd.isna(X[name].iloc[i]):
                assert pd.isna(text)
            elif X[name].dtype.kind == "f":
                assert float(text) == X[name].iloc[i]
            else:
                assert text == str(X[name].iloc[i])


def test_arrays_give_arrays() -> None:
    explainer, X = explainer_of("several outputs")
    values = explainer.shap_values(X)
    rows = X.to_numpy()
    (matrix,) = explainer.explain_batches([rows])
    np.testing.assert_array_equal(matrix[:, 0], values[:, 0, 0])
    np.testing.assert_array_equal(matrix[:, 3], values[:, 1, 1])
    np.testing.assert_array_equal(matrix[:, -3:], np.tile(explainer.expected_value, (len(X), 1)))
    parts = list(explainer.explain_batches([rows[:0], rows[:1], rows[1:]], layout="array"))
    assert [part.shape for part in parts] == [(0, 2, 3), (1, 2, 3), (len(X) - 1, 2, 3)]
    np.testing.assert_array_equal(np.concatenate(parts), values)
    case = CASES["xgboost"]["regressor"]()
    single = fs.TreeExplainer(case.model, case.X).compile()
    (array,) = single.explain_batches([case.X], layout="array", n_jobs=1)
    np.testing.assert_array_equal(array, single.shap_values(case.X))


def test_a_frame_without_known_names_is_read_by_position() -> None:
    case = CASES["xgboost"]["regressor"]()
    explainer = fs.TreeExplainer(case.model, case.X).compile()
    X = pl.DataFrame({"id": ["a"], "w": [1.0], "x": [2.0], "y": [None], "z": [0.5]}, strict=False)
    (answer,) = explainer.explain_batches([X], ids=["id"])
    assert answer.columns == ["id", *explainer.player_names, "base_value"]
    np.testing.assert_array_equal(
        answer.to_numpy()[0, 1:-1].astype(float), explainer.shap_values([[1.0, 2.0, np.nan, 0.5]])[0]
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_in_which_a_column_holds_nothing(kind: str) -> None:
    explainer, X = explainer_of("lightgbm")
    X = X[:5].assign(size=pd.Categorical([None] * 5, categories=X["size"].cat.categories), a=np.nan)
    batch = KINDS[kind](X.assign(size=[None] * 5, a=[None] * 5))
    (answer,) = explainer.explain_batches([batch], layout="array")
    np.testing.assert_array_equal(
        np.stack(to_pandas(answer)["shap_values"].tolist()), explainer.shap_values(X)
    )


@pytest.mark.parametrize("groups", ["input", None])
def test_pipelines_take_their_own_columns(groups: str | None) -> None:
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder
    from sklearn.tree import DecisionTreeRegressor

    X = frame()[["a", "colour", "b"]].astype({"colour": str})
    encode = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["colour"]), remainder="passthrough"
    )
    model = make_pipeline(encode, DecisionTreeRegressor(max_depth=4)).fit(X, X["a"] * (X["colour"] == "red"))
    explainer = fs.Explainer(model, X, groups=groups).compile()
    batch = X[:9].assign(key=range(9))[["b", "key", "colour", "a"]]
    (answer,) = explainer.explain_batches([batch], ids=["key"], layout="top_k", top_k=1)
    values = explainer.shap_values(X[:9])
    np.testing.assert_array_equal(answer["contribution_1"].abs(), np.abs(values).max(axis=1))
    largest = np.abs(values).argmax(axis=1)
    assert answer["feature_1"].tolist() == [explainer.player_names[player] for player in largest]
    if groups:
        texts = zip(answer["feature_1"], answer["value_1"], range(9), strict=True)
        assert all(text == str(X[name].iloc[row]) for name, text, row in texts)


def test_pandas_keeps_its_index() -> None:
    explainer, X = explainer_of("xgboost")
    X = X[:4].set_axis(["a", "b", "b", "c"])
    (answer,) = explainer.explain_batches([X.assign(key=1)], ids=["key"])
    assert answer.index.tolist() == ["a", "b", "b", "c"]
    assert next(explainer.explain_batches([X])).index.tolist() == ["a", "b", "b", "c"]


def test_spaces_that_lightgbm_has_turned_into_underscores() -> None:
    import lightgbm

    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(100, 2)), columns=["my age", "height"])
    model = lightgbm.LGBMRegressor(n_estimators=3, verbose=-1).fit(X, X["my age"])
    explainer = fs.TreeExplainer(model, X).compile()
    (answer,) = explainer.explain_batches([X[["height", "my age"]]], layout="array")
    np.testing.assert_array_equal(np.stack(answer["shap_values"]), explainer.shap_values(X))


def test_batches_are_lazy_and_memory_is_constant() -> None:
    explainer, X = explainer_of("xgboost")
    alive: list[weakref.ref[Any]] = []
    asked = 0

    def batches() -> Iterator[pd.DataFrame]:
        nonlocal asked
        for _ in range(5):
            asked += 1
            batch = X.copy()
            alive.append(weakref.ref(batch))
            yield batch
            del batch

    answers = explainer.explain_batches(batches())
    assert asked == 0
    for number, _ in enumerate(answers, start=1):
        assert asked == number
        gc.collect()
        assert sum(reference() is not None for reference in alive) <= 1  # the one that is being explained


def test_loaded_explainers_explain_batches(tmp_path: Path) -> None:
    for which in EXPLAINERS:
        explainer, X = explainer_of(which)
        explainer.save(tmp_path / "e.fshap")
        loaded: Any = fs.load(tmp_path / "e.fshap")
        explainers = (explainer, loaded)
        first, second = (next(iter(e.explain_batches([X[:9]], layout="top_k"))) for e in explainers)
        pd.testing.assert_frame_equal(first, second)


X = explainer_of("xgboost")[1]


@pytest.mark.parametrize(
    ("batches", "options", "message"),
    [
        ([X], {"layout": "rows"}, "layout is 'rows'"),
        ([X], {"layout": "top_k", "top_k": 0}, "top_k is 0"),
        ([X], {"layout": "top_k", "top_k": 1.5}, r"top_k is 1\.5"),
        ([X], {"ids": "a"}, "ids is 'a'; give a list"),
        ([X], {"ids": [1]}, "give a list of column names"),
        ([X], {"ids": ["a"]}, "'a', which is a feature"),
        ([X], {"ids": ["base_value"]}, "two columns named 'base_value'"),
        ([X], {"ids": ["k", "k"]}, "two columns named 'k'"),
        ([X], {"ids": ["key"]}, "batch 0: the batch has no column 'key'"),
        (X, {}, "batches is a DataFrame; give an iterable"),
        (X.to_numpy(dtype=object).astype(str), {}, "batches is a ndarray"),
        (pl.from_pandas(X[["a"]]), {}, "batches is a DataFrame"),
        (pa.table({"a": [1]}), {}, "batches is a Table"),
        (3, {}, "batches is a int"),
        ([X, X.drop(columns="b")], {}, "batch 1: the batch lacks the column 'b'"),
        ([X.drop(columns=["a", "b"])], {}, "lacks the columns 'a', 'b'; it has"),
        ([X.assign(z=1, y=2)], {}, "batch 0: the batch has the columns 'z', 'y', which the model does not"),
        ([X.assign(a="much")], {}, "batch 0: X has a column 'a'"),
        ([X[:0].drop(columns="b")], {}, "batch 0: the batch lacks the column 'b'"),
        ([np.zeros((2, 4))], {"ids": ["key"]}, "an array, which has no columns"),
        ([np.zeros((2, 4))], {"layout": "top_k"}, "give data frames"),
        ([np.zeros((2, 5))], {}, "batch 0: X has 5 columns"),
        ([np.zeros(4)], {}, "batch 0: X has shape"),
        (["rows"], {}, "batch 0"),
        ([None], {}, "batch 0"),
        ([X.set_axis(["a", "a", "b", "size"], axis=1)], {}, "batch 0: the batch has two columns of one name"),
    ],
)
def test_what_cannot_be_explained(batches: Any, options: dict[str, Any], message: str) -> None:
    explainer, _ = explainer_of("xgboost")
    with pytest.raises(fs.InputError, match=message):
        list(explainer.explain_batches(batches, **options))


def test_arguments_are_checked_before_the_first_batch() -> None:
    with pytest.raises(fs.InputError, match="layout is"):
        explainer_of("xgboost")[0].explain_batches(iter([]), layout="rows")


def test_the_schema_says_kinds_and_lengths() -> None:
    explainer, _ = explainer_of("several outputs")
    assert explainer.output_schema(layout="array") == (
        *(("shap_values__" + name, "array", 2) for name in "012"),
        *(("base_value__" + name, "float64", 1) for name in "012"),
    )
    single, _ = explainer_of("groups")
    assert single.output_schema(layout="top_k", top_k=1) == (
        ("feature_1", "string", 1),
        ("value_1", "string", 1),
        ("contribution_1", "float64", 1),
        ("base_value", "float64", 1),
    )
    assert len(single.output_schema(layout="top_k", top_k=99)) == 3 * 3 + 1
