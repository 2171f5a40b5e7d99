"""Numbers of every type go to the leaf that the library sends them to, those that no float32 or float64 holds too."""

from collections.abc import Callable
from functools import cache
from typing import Any

import catboost
import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
import xgboost
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)

import fouriershap as fs
from fouriershap import read_model

N_ROWS = 40
# Beyond 2^24, where float32 has gaps, and beyond 2^53, where float64 has: there int64 -> float64 -> float32 is not
# int64 -> float32.
SCALES = {
    "2^25": lambda rng: 2**25 + 2 * np.arange(N_ROWS) + rng.integers(0, 2, N_ROWS),
    "2^60": lambda rng: 2**60 + np.arange(N_ROWS) * 2**37 + 2**36 + rng.integers(-3, 4, N_ROWS),
}


@cache
def integers(scale: str) -> np.ndarray:
    column = SCALES[scale](np.random.default_rng(0)).astype(np.int64)
    return np.column_stack([column, column])


def _frame(first: Any, second: Any) -> pd.DataFrame:
    return pd.DataFrame({"a": first, "b": second})


def _nullable(column: np.ndarray, with_missing: bool) -> Any:
    made = pd.array(column, "Int64")
    if with_missing:
        made[0] = pd.NA
    return made


def _null_first(column: np.ndarray) -> list[Any]:
    return [None, *column[1:].tolist()]


FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "int64": lambda Z: Z,
    "uint64": lambda Z: Z.astype(np.uint64),
    "float64": lambda Z: Z.astype(np.float64),
    "float32": lambda Z: Z.astype(np.float32),
    "long double": lambda Z: Z.astype(np.longdouble),
    "objects": lambda Z: Z.astype(object),
    "objects of floats": lambda Z: Z.astype(np.float64).astype(object),
    "lists": lambda Z: Z.tolist(),
    "sparse integers": scipy.sparse.csr_matrix,
    "sparse floats": lambda Z: scipy.sparse.csr_matrix(Z.astype(np.float64)),
    "pandas": lambda Z: _frame(Z[:, 0], Z[:, 1]),
    "pandas unsigned": lambda Z: _frame(*Z.T.astype(np.uint64)),
    "pandas and float64": lambda Z: _frame(Z[:, 0], Z[:, 1].astype(np.float64)),
    "pandas and float32": lambda Z: _frame(Z[:, 0], Z[:, 1].astype(np.float32)),
    "pandas and bool": lambda Z: _frame(Z[:, 0], Z[:, 1] % 2 == 0),
    "pandas, bool and float64": lambda Z: _frame(Z[:, 0], Z[:, 1] % 2 == 0).astype({"b": float}),
    "pandas nullable": lambda Z: _frame(_nullable(Z[:, 0], False), _nullable(Z[:, 1], False)),
    "pandas nullable and float64": lambda Z: _frame(_nullable(Z[:, 0], False), Z[:, 1].astype(np.float64)),
    "pandas nullable with NA": lambda Z: _frame(_nullable(Z[:, 0], True), Z[:, 1]),
    "pandas on Arrow": lambda Z: _frame(Z[:, 0], Z[:, 1]).astype("int64[pyarrow]"),
    "polars": lambda Z: pl.DataFrame({"a": Z[:, 0], "b": Z[:, 1]}),
    "polars and float64": lambda Z: pl.DataFrame({"a": Z[:, 0], "b": Z[:, 1].astype(np.float64)}),
    "polars with null": lambda Z: pl.DataFrame({"a": _null_first(Z[:, 0]), "b": Z[:, 1]}),
    "pyarrow": lambda Z: pa.table({"a": Z[:, 0], "b": Z[:, 1]}),
    "pyarrow and float64": lambda Z: pa.table({"a": Z[:, 0], "b": Z[:, 1].astype(np.float64)}),
    "pyarrow with null": lambda Z: pa.table({"a": pa.array(_null_first(Z[:, 0])), "b": Z[:, 1]}),
}


def _lightgbm() -> Any:
    return lightgbm.LGBMRegressor(
        n_estimators=3, min_child_samples=1, min_data_in_bin=1, learning_rate=1.0, verbose=-1, n_jobs=1
    )


MODELS: dict[str, Callable[[np.ndarray, np.ndarray], Any]] = {
    "xgboost": lambda X, y: xgboost.XGBRegressor(
        n_estimators=3, tree_method="exact", learning_rate=1.0, n_jobs=1
    ).fit(X, y),
    "lightgbm": lambda X, y: _lightgbm().fit(X, y),
    "lightgbm booster": lambda X, y: _lightgbm().fit(X, y).booster_,
    "catboost": lambda X, y: catboost.CatBoostRegressor(
        iterations=5, learning_rate=1.0, verbose=0, thread_count=1, allow_writing_files=False
    ).fit(X, y),
    "forest": lambda X, y: RandomForestRegressor(3, random_state=0).fit(X, y),
    "gradient boosting": lambda X, y: GradientBoostingRegressor(n_estimators=3, learning_rate=1.0).fit(X, y),
    "hist": lambda X, y: HistGradientBoostingRegressor(max_iter=3, min_samples_leaf=1).fit(X, y),
}


@cache
def model(name: str, scale: str) -> Any:
    y = np.random.default_rng(1).normal(size=N_ROWS)
    return MODELS[name](integers(scale).astype(np.float64), y)


RAW = {
    "xgboost": {"output_margin": True},
    "lightgbm": {"raw_score": True},
    "catboost": {"prediction_type": "RawFormulaVal"},
}


def by_the_library(fitted: Any, X: Any) -> np.ndarray | None:
    """Its own answers; None where it takes no such rows."""
    options = RAW.get(type(fitted).__module__.partition(".")[0], {})
    try:
        return np.asarray(fitted.predict(X, **options), dtype=np.float64).reshape(N_ROWS, 1)
    except Exception:  # noqa: BLE001, whatever it says
        return None


def knows(library: Any, *version: int) -> bool:
    return tuple(int(part) for part in library.__version__.split(".")[:3]) >= version


# Older versions take these by detours: XGBoost 2 turns frames of polars into sparse matrices, LightGBM 4.5 into
# arrays of integers, CatBoost 1.2.8 makes integers float64 before anything else.
DETOURS = {
    "xgboost": ("po", "py") if not knows(xgboost, 3) else (),
    "lightgbm": ("po", "py") if not knows(lightgbm, 4, 6) else (),
    "catboost": ("po", "py", "int", "uint", "pandas nullable with NA")
    if not knows(catboost, 1, 2, 10)
    else (),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", MODELS)
def test_rows_go_where_the_library_sends_them(name, scale):
    fitted = model(name, scale)
    ensemble = read_model(fitted)
    compared = 0
    for form, make in FORMS.items():
        if form.startswith(DETOURS.get(name, ())):
            continue
        X = make(integers(scale))
        expected = by_the_library(fitted, X)
        if expected is not None:
            found = ensemble.predict(X)
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5, err_msg=form)
            compared += 1
    assert compared > 10


def test_every_form_is_taken_by_some_library():
    """What no library takes, the test above would not see."""
    for form, make in FORMS.items():
        X = make(integers("2^60"))
        assert any(by_the_library(model(name, "2^60"), X) is not None for name in MODELS), form


@pytest.mark.parametrize("name", MODELS)
def test_what_is_loaded_casts_as_the_model_did(name, tmp_path):
    fitted, Z = model(name, "2^60"), integers("2^60")
    explainer = fs.TreeExplainer(fitted, Z.astype(np.float64))
    explainer.save(tmp_path / "e.fshap")
    loaded = fs.load(tmp_path / "e.fshap")
    if "int" in DETOURS.get(name, ()):
        with pytest.raises(fs.UnsupportedModelError, match="disagrees with CatBoost"):
            explainer.inputs.encode(Z)
        return
    np.testing.assert_array_equal(loaded.inputs.encode(Z).codes, explainer.inputs.encode(Z).codes)


def test_integers_that_float64_cannot_hold_are_taken_from_arrow():
    for form in ("pyarrow", "pyarrow with null"):
        table = FORMS[form](integers("2^60"))
        for name in ("xgboost", "lightgbm", "hist"):
            check = "py" not in DETOURS.get(name, ())
            explainer = fs.TreeExplainer(model(name, "2^60"), table, feature_names=["a", "b"], check=check)
            assert len(explainer.frame(table)) == 2 * N_ROWS
