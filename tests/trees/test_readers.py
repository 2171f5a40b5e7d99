"""What every reader must do, in one suite over all libraries; what is peculiar to one is in its own file."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pytest
import shap
import xgboost
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
)
from sklearn.tree import DecisionTreeRegressor

from format_readers import format_readers
from fouriershap import read_model
from fouriershap._base.errors import InputError
from fouriershap._libraries import Reading, libraries
from models import CASES, LABELS, XGBOOST_KEEPS_LABELS, classes, numbers, raw_output, rows_of, version_of
from reader_checks import (
    EXTREME,
    assert_same_output,
    assert_well_formed,
    expected_value_by_cover,
    rows,
    rows_reaching,
    values_beside_thresholds,
)


def _numbers_pool(name: str, ensemble: Reading, f: int) -> list[Any]:
    return [*values_beside_thresholds(ensemble, f), np.nan]


class Reader(NamedTuple):
    """What the suite has to know of a library; nothing, if it has numbers alone and files of no kind."""

    pool: Callable[[str, Reading, int], list[Any]] = _numbers_pool  # values to try, by case and feature
    counted: tuple[str, ...] = ()  # cases in which covers count training rows
    based: tuple[str, ...] = ()  # cases whose base value of path-dependent SHAP values somebody else tells
    base_value: Callable[[Any, Any], Any] | None = None  # of a model and a row
    unfitted: tuple[Any, ...] = ()
    classifier: Callable[[], Any] | None = None  # one that takes words for classes
    files: tuple[str, ...] = ()  # suffixes of the library's own files
    save: Callable[[Any, Path], None] | None = None
    filed: tuple[str, ...] = ()  # cases that are saved
    frame: str | None = None  # the case of a frame with labels
    rtol: float = 1e-12
    base_rtol: float = 1e-9


def _sklearn_pool(name: str, ensemble: Reading, f: int) -> list[Any]:
    if f in ensemble.rules.vocabularies:
        labels = list(ensemble.rules.vocabularies[f])
        unseen = [] if "frame" in name else [labels[0] + 0.25, -7.0, 300.0]
        return [*labels, *unseen, np.nan]
    beside = values_beside_thresholds(ensemble, f)
    if "HistGradientBoosting" in name:
        return [*beside, *EXTREME, np.nan]
    return [*beside, np.nan] if "missing" in name else beside


def _xgboost_pool(name: str, ensemble: Reading, f: int) -> list[Any]:
    if f in ensemble.rules.vocabularies:  # XGBoost refuses labels that it does not know
        return [*ensemble.rules.vocabularies[f], None]
    if f in ensemble.rules.categorical:
        return [*map(float, range(13)), -0.0, -0.5, -1.0, -3.0, 40.0, 1e6, 3e7, 2.5, np.nan]
    return _numbers_pool(name, ensemble, f)


def _lightgbm_pool(name: str, ensemble: Reading, f: int) -> list[Any]:
    if f in ensemble.rules.vocabularies:
        return [*ensemble.rules.vocabularies[f], None]
    if f in ensemble.rules.categorical:
        return [*map(float, range(13)), -1.0, -3.0, -0.5, 40.0, 1e6, 3e9, 2.5, np.inf, -np.inf, np.nan]
    return [*values_beside_thresholds(ensemble, f), *EXTREME, np.nan]


def _catboost_pool(name: str, ensemble: Reading, f: int) -> list[Any]:
    if f in ensemble.rules.vocabularies:
        return [*LABELS, "unseen", "", "10"] if f == 1 else [10, 20, 30, 40, 50, 0, -10]
    beside = [*values_beside_thresholds(ensemble, f), *EXTREME]
    takes_missing = not any(word in name for word in ("nothing missing", "frame", "2 targets"))
    return [*beside, np.nan] if takes_missing else beside


def _xgboost_base_value(model: Any, X: Any) -> Any:
    booster = model.get_booster()
    row = xgboost.DMatrix(X, feature_types=booster.feature_types)
    return booster.predict(row, pred_contribs=True)[..., -1]


# Before 1.8 trees of scikit-learn sent some missing values elsewhere in training than in predicting.

_COUNTED = ("DecisionTreeClassifier missing",) if version_of("scikit-learn") >= (1, 8) else ()
READERS = {
    "sklearn": Reader(
        _sklearn_pool,
        (*_COUNTED, "HistGradientBoostingRegressor frame", "GradientBoostingRegressor"),
        # What shap reads of these: no categories, no multi-class boosting, no init="zero".
        tuple(
            name
            for name in CASES["sklearn"]
            if not any(word in name for word in ("categories", "frame", "3 classes", "zero init"))
        ),
        lambda model, X: shap.TreeExplainer(model).expected_value,
        (
            DecisionTreeRegressor(),
            GradientBoostingRegressor(),
            HistGradientBoostingRegressor(),
            IsolationForest(),
        ),
        lambda: RandomForestClassifier(n_estimators=2),
        frame="HistGradientBoostingRegressor frame",
        base_rtol=1e-5,
    ),
    "xgboost": Reader(
        _xgboost_pool,
        ("regressor", "lossguide", "categories", "frame", "missing=0.5"),
        ("regressor", "classifier", "3 classes", "parallel trees", "dart", "2 targets", "categories", "cox"),
        _xgboost_base_value,
        (xgboost.XGBRegressor(),),
        None,
        ("json", "ubj"),
        lambda model, path: model.save_model(path),
        ("categories", "dart 3 classes"),
        "frame",
        rtol=1e-6,  # XGBoost adds up in float32
        base_rtol=1e-4,
    ),
    "lightgbm": Reader(
        _lightgbm_pool,
        ("regressor", "dart", "categories", "frame", "zero_as_missing"),
        ("regressor", "classifier", "3 classes", "dart", "zero_as_missing", "categories"),
        lambda model, X: model.predict(X, pred_contrib=True).reshape(-1, X.shape[1] + 1)[:, -1],
        (lightgbm.LGBMRegressor(),),
        lambda: lightgbm.LGBMClassifier(n_estimators=2, verbose=-1),
        ("txt",),
        lambda model, path: model.booster_.save_model(path),
        ("categories", "frame", "rf 3 classes"),
        "frame",
    ),
    "catboost": Reader(
        _catboost_pool,
        tuple(name for name in CASES["catboost"] if not ("combinations" in name or "statistics" in name)),
        ("SymmetricTree", "SymmetricTree 3 classes", "classifier", "2 targets"),
        lambda model, X: model.get_feature_importance(catboost.Pool(X), type="ShapValues")[..., -1],
        (catboost.CatBoostRegressor(),),
        lambda: catboost.CatBoostClassifier(iterations=2, depth=2, verbose=0, allow_writing_files=False),
        ("cbm", "json"),
        lambda model, path: model.save_model(str(path), format=path.suffix[1:]),
        ("frame", "Depthwise 3 classes"),
        "frame",
    ),
}
READERS |= {library: reader for library, reader in format_readers(Reader).items() if library in CASES}
READERS |= {library: Reader() for library in CASES if library not in READERS}
EVERY = [(library, name) for library, cases in CASES.items() for name in cases]


def cases_of(attribute: str) -> list[tuple[str, str]]:
    return [(library, name) for library, reader in READERS.items() for name in getattr(reader, attribute)]


def test_every_library_is_in_the_suite():
    tree_libraries = {library.package for library in libraries() if library.trees and library.ask}
    assert READERS.keys() == CASES.keys() == {name for name in tree_libraries if find_spec(name)}


@pytest.mark.parametrize(("library", "name"), EVERY)
def test_training_rows(library, name):
    model, X, _ = CASES[library][name]()
    ensemble = read_model(model)
    assert_same_output(model, ensemble, X, READERS[library].rtol)
    assert_well_formed(ensemble)
    in_single = library in ("xgboost", "ydf") or (library == "onnx" and "double" not in name)
    assert ensemble.computes_in == (np.float32 if in_single else np.float64)


@pytest.mark.parametrize(("library", "name"), EVERY)
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_rows_beside_thresholds(library, name, data):
    """Ties, neighbours of thresholds, extremes, missing values, categories that no split names."""
    model, X, _ = CASES[library][name]()
    ensemble, reader = read_model(model), READERS[library]
    pools = [reader.pool(name, ensemble, f) for f in range(ensemble.n_features)]
    assert_same_output(model, ensemble, data.draw(rows(pools, X)), reader.rtol)


@pytest.mark.parametrize(("library", "name"), EVERY)
def test_some_of_the_trees(library, name):
    """Parts of the trees add up to all of them."""
    model, X, _ = CASES[library][name]()
    ensemble = read_model(model)
    trees, some = ensemble.trees, ensemble.rules.clean(rows_of(ensemble, X)[:20])
    first = np.arange(trees.n_trees) % 2 == 0
    parts = sum(trees.select(kept).predict(some) for kept in (first, ~first) if kept.any())
    n_parts = 1 + (not first.all())
    np.testing.assert_allclose(
        parts - (n_parts - 1) * trees.base, trees.predict(some), rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize(("library", "name"), cases_of("counted"))
def test_cover_counts_the_training_rows(library, name):
    model, X, _ = CASES[library][name]()
    ensemble = read_model(model)
    np.testing.assert_array_equal(ensemble.trees.cover, rows_reaching(ensemble, rows_of(ensemble, X)))


@pytest.mark.parametrize(("library", "name"), cases_of("based"))
def test_cover_gives_the_base_value_of_path_dependent_shap_values(library, name):
    model, X, _ = CASES[library][name]()
    expected, rtol = np.ravel(READERS[library].base_value(model, X[:1])), READERS[library].base_rtol
    np.testing.assert_allclose(
        expected_value_by_cover(read_model(model)), expected, rtol=rtol, atol=rtol / 10
    )


@pytest.mark.parametrize("library", [library for library, reader in READERS.items() if reader.frame])
def test_labels_of_a_frame(library):
    ensemble = read_model(CASES[library][READERS[library].frame]().model)
    assert ensemble.feature_names == ("a", "colour", "b", "size")
    if library == "xgboost" and not XGBOOST_KEEPS_LABELS:
        pytest.skip("this XGBoost keeps no labels")
    assert ensemble.rules.vocabularies.keys() == {1, 3}
    assert ensemble.rules.labels.hashed == (library == "catboost")
    if not ensemble.rules.labels.hashed:
        assert sorted(ensemble.rules.vocabularies[1]) == sorted(LABELS)
        assert ensemble.rules.vocabularies[3] == (10, 20, 30, 40)


@pytest.mark.parametrize("library", [library for library, reader in READERS.items() if reader.classifier])
def test_class_names(library):
    X, names = numbers(), np.array(["low", "middle", "high"])
    model = READERS[library].classifier().fit(X, names[classes(X, 3)])
    assert read_model(model).output_names == tuple(model.classes_)


@pytest.mark.parametrize(
    ("library", "name", "suffix"),
    [(library, name, suffix) for library, name in cases_of("filed") for suffix in READERS[library].files],
)
def test_files(tmp_path, library, name, suffix):
    model, X, _ = CASES[library][name]()
    path = tmp_path / f"model.{suffix}"
    READERS[library].save(model, path)
    for given_path in (path, str(path)):
        assert_same_output(model, read_model(given_path), X, READERS[library].rtol)


@pytest.mark.parametrize("library", READERS)
def test_models_that_are_not_fitted_are_refused(library):
    for unfitted in READERS[library].unfitted:
        with pytest.raises(InputError, match=f"{type(unfitted).__name__} that is not fitted"):
            read_model(unfitted)


@pytest.mark.parametrize(("library", "name"), EVERY)
def test_the_library_itself_is_asked_as_the_suite_asks_it(library, name):
    if (library, name) == ("xgboost", "frame") and not XGBOOST_KEEPS_LABELS:
        pytest.skip("this XGBoost keeps no labels")
    model, X, _ = CASES[library][name]()
    ensemble = read_model(model)
    columns = ensemble.feature_names or [f"{f}" for f in range(ensemble.n_features)]
    frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame(X, columns=list(columns))
    np.testing.assert_allclose(ensemble.library_output(frame[:20]), raw_output(model, X[:20]), rtol=1e-5)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match="suffix"):
        read_model(tmp_path / "model.pkl")
    with pytest.raises(InputError, match="no file"):
        read_model(tmp_path / "model.json")
    for name, text in [("a.json", "{"), ("b.json", "{}"), ("c.json", '{"learner": {}}'), ("d.json", "[1]")]:
        (tmp_path / name).write_text(text)
        with pytest.raises(InputError, match=name):
            read_model(tmp_path / name)
    for name in ("e.ubj", "f.cbm", "g.txt"):
        (tmp_path / name).write_bytes(b"nonsense")
        with pytest.raises(InputError, match=name):
            read_model(tmp_path / name)


def test_no_library_is_imported():
    script = (
        "import sys, fouriershap._libraries as f; f.libraries(); print([m for m in sys.modules if m in {!r}])"
    )
    libraries = {"sklearn", "xgboost", "lightgbm", "catboost", "treelite", "pandas", "scipy"}
    run = [sys.executable, "-c", script.format(libraries)]
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_rows_of_another_width_are_refused():
    ensemble = read_model(CASES["sklearn"]["DecisionTreeRegressor"]().model)
    with pytest.raises(InputError, match="3 columns, but the model has 4"):
        ensemble.predict(np.zeros((2, 3)))
    assert read_model(ensemble) is ensemble
