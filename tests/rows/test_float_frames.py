"""Frames of floats alone take a short way in and out: it says what arrays and the long way say."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import fouriershap as fs

NAMES = ("a", "b", "c")
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 0.1, 1e-45, 1e300, 16777217.0]


@cache
def model_of(library: str) -> Any:
    import catboost
    import lightgbm
    import xgboost
    from sklearn.ensemble import HistGradientBoostingRegressor

    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, len(NAMES))), columns=list(NAMES))
    y = X["a"] * X["b"] + X["c"]
    made = {
        "xgboost": lambda: xgboost.XGBRegressor(n_estimators=4, max_depth=3, n_jobs=1),
        "lightgbm": lambda: lightgbm.LGBMRegressor(n_estimators=4, num_leaves=6, verbose=-1, n_jobs=1),
        "catboost": lambda: catboost.CatBoostRegressor(
            iterations=4, depth=3, verbose=False, allow_writing_files=False, thread_count=1
        ),
        "scikit-learn": lambda: HistGradientBoostingRegressor(max_iter=4, max_depth=3),
    }[library]().fit(X, y)
    return made, X


def frames_of(X: np.ndarray) -> dict[str, Any]:
    """The same numbers in frames; NaN is null in some of them, columns come in several pieces in one."""
    pandas = pd.DataFrame(X, columns=list(NAMES))
    table = pa.Table.from_pandas(pandas, preserve_index=False)
    exact = pa.table({name: pa.array(column) for name, column in zip(NAMES, X.T, strict=True)})
    cut = len(X) // 2
    return {
        "pandas": pandas,
        "pandas, column by column": pd.DataFrame({name: X[:, j].copy() for j, name in enumerate(NAMES)}),
        "arrow": exact,
        "arrow, nulls": table,
        "arrow, in pieces": pa.concat_tables([exact[:cut], exact[cut:]]),
        "arrow batch": pa.RecordBatch.from_arrays(
            [pa.array(X[:, j].copy()) for j in range(len(NAMES))], names=list(NAMES)
        ),
    }


def floats() -> st.SearchStrategy[np.ndarray]:
    values = st.one_of(st.sampled_from(SPECIAL), st.floats(-5, 5))
    shapes = st.integers(1, 6).map(lambda n: (n, len(NAMES)))
    doubles = shapes.flatmap(lambda shape: arrays(np.float64, shape, elements=values))
    with np.errstate(over="ignore"):
        return st.tuples(doubles, st.sampled_from([np.float32, np.float64])).map(_cast)


def _cast(drawn: tuple[np.ndarray, Any]) -> np.ndarray:
    with np.errstate(over="ignore"):
        return drawn[0].astype(drawn[1])


@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "catboost", "scikit-learn"])
@settings(max_examples=40, deadline=None)
@given(X=floats())
def test_frames_of_floats_are_read_as_arrays_and_by_the_long_way(library: str, X: np.ndarray) -> None:
    model, _ = model_of(library)
    rules = fs.read_model(model).rules
    expected = rules.encode(X)
    long_way = rules.encode(pl.DataFrame(X, schema=list(NAMES)))
    np.testing.assert_array_equal(long_way, expected)
    for kind, frame in frames_of(X).items():
        found = rules.encode(frame)
        assert found.dtype == expected.dtype, kind
        np.testing.assert_array_equal(found, expected, err_msg=kind)


def test_columns_of_several_types_take_the_long_way() -> None:
    model, X = model_of("xgboost")
    rules = fs.read_model(model).rules
    mixed = X.astype({"a": np.float32, "b": "Float64"}).assign(c=np.arange(len(X)))
    np.testing.assert_array_equal(rules.encode(mixed), rules.encode(mixed.to_numpy(dtype=np.float64)))


@pytest.mark.parametrize("n_rows", [0, 1, 7])
def test_answers_are_the_values_in_columns_of_their_own(n_rows: int) -> None:
    model, background = model_of("xgboost")
    explainer = fs.TreeExplainer(model, background)
    X = background[:n_rows].astype(np.float32)
    X.index = pd.Index([5] * n_rows)  # an index may repeat
    values = explainer.shap_values(X) if n_rows else np.empty((0, len(NAMES)))
    given_rows = X.assign(key=np.arange(n_rows))
    batch = pa.RecordBatch.from_pandas(given_rows, preserve_index=False)
    answers = {
        kind: next(explainer.explain_batches([native], ids=["key"]))
        for kind, native in {
            "pandas": given_rows,
            "table": pa.Table.from_batches([batch]),
            "batch": batch,
        }.items()
    }
    assert isinstance(answers["batch"], pa.RecordBatch) and isinstance(answers["table"], pa.Table)
    pd.testing.assert_index_equal(answers["pandas"].index, given_rows.index)
    for kind, answer in answers.items():
        frame = answer if kind == "pandas" else answer.to_pandas()
        assert list(frame.columns) == ["key", *NAMES, "base_value"], kind
        assert (frame.dtypes[1:] == np.float64).all(), kind
        np.testing.assert_array_equal(frame["key"], np.arange(n_rows))
        np.testing.assert_allclose(frame[list(NAMES)], values, rtol=0, atol=1e-12, err_msg=kind)
    if n_rows:  # an answer is the caller's own
        answers["pandas"].loc[:, "a"] = 0.0
        np.testing.assert_array_equal(answers["pandas"]["a"], 0.0)
        np.testing.assert_allclose(answers["pandas"]["b"], values[:, 1], rtol=0, atol=1e-12)


def test_reading_leaves_the_caller_s_frame_alone() -> None:
    model, background = model_of("xgboost")
    model = type(model)(n_estimators=2, missing=-1.0).fit(background, background["a"])
    X = background[:5].astype(np.float32).assign(b=np.float32(-1.0))
    before = X.copy()
    rows = fs.read_model(model).rules.encode(X)
    assert np.isnan(rows[:, 1]).all()
    pd.testing.assert_frame_equal(X, before)
