"""The model check: no alarm where a model is read right, and none missed where it is not."""

import warnings
from collections.abc import Callable
from typing import Any

import catboost
import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
import sklearn
import xgboost
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import fouriershap as fs
from fouriershap import read_model
from fouriershap._base.errors import UnsupportedModelError
from fouriershap._libraries import registry
from fouriershap._libraries import xgboost as xgboost_reader
from fouriershap._libraries.check import rounding, rows_at_thresholds
from fouriershap._trees.codes import code_trees
from fouriershap._trees.ensemble import TreeEnsemble
from models import CASES, classes, numbers, target

EVERY = [(library, name) for library, cases in CASES.items() for name in cases]
ONE_OF_EACH = [
    ("sklearn", "DecisionTreeRegressor"),
    ("sklearn", "RandomForestClassifier"),
    ("sklearn", "RandomForestRegressor 2 targets"),
    ("sklearn", "GradientBoostingClassifier 3 classes"),
    ("sklearn", "HistGradientBoostingRegressor frame"),
    ("sklearn", "IsolationForest"),
    ("xgboost", "3 classes"),
    ("xgboost", "booster after early stopping"),
    ("lightgbm", "frame"),
    ("lightgbm", "rf"),
    ("catboost", "frame"),
    ("catboost", "Lossguide"),
]
VERSIONS = {
    "sklearn": f"scikit-learn {sklearn.__version__}",
    "xgboost": f"XGBoost {xgboost.__version__}",
    "lightgbm": f"LightGBM {lightgbm.__version__}",
    "catboost": f"CatBoost {catboost.__version__}",
}


@pytest.fixture
def misread(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[TreeEnsemble], TreeEnsemble]], None]:
    """Have models read wrongly, as a version that stores them anew would."""

    def install(change: Callable[[TreeEnsemble], TreeEnsemble]) -> None:
        read = registry._read_opened

        def misread(opened: Any) -> Any:
            reading = read(opened)
            return reading.with_trees(change(reading.trees))

        monkeypatch.setattr(registry, "_read_opened", misread)

    return install


@pytest.mark.parametrize(("library", "name"), EVERY)
def test_no_model_is_refused_that_is_read_right(library, name):
    model, X, _ = CASES[library][name]()
    backgrounds = [X, X[:1], X[:50]]
    if fs.read_model(model).trees.has_cover:  # not in ONNX, nor in trees of several outputs of XGBoost 2.1
        backgrounds.append(None)
    for background in backgrounds:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # nor does the asking warn
            explainer = fs.TreeExplainer(model, background)
            assert explainer.checked == (background is not None)  # rows of our own are not the caller's
            explainer.predict(X[:3])
            assert explainer.checked


@pytest.mark.parametrize(("library", "name"), ONE_OF_EACH)
@pytest.mark.parametrize("with_background", [True, False])
def test_a_wrong_reading_is_an_error_that_names_the_library(library, name, with_background, misread):
    model, X, _ = CASES[library][name]()
    background = X if with_background else None
    misread(lambda e: e.replace(values=e.values * 1.001))
    with pytest.raises(UnsupportedModelError, match=VERSIONS[library]) as caught:
        fs.Explainer(model, background)
    for part in ("a difference of", "check=False", "BlackBoxExplainer"):
        assert part in str(caught.value)
    assert ("of the background" in str(caught.value)) == with_background
    explainer = fs.TreeExplainer(model, background, check=False)
    assert not explainer.checked and len(explainer.shap_values(X[:3])) == 3


CHANGES: dict[str, Callable[[TreeEnsemble], TreeEnsemble]] = {
    "base": lambda e: e.replace(base=e.base + 1e-3),
    "ties": lambda e: e.replace(threshold=np.nextafter(e.threshold.astype(e.dtype), e.dtype.type("inf"))),
    "missing values": lambda e: e.replace(missing_left=~e.missing_left & (e.feature >= 0)),
    "sides": lambda e: e.replace(left=e.right, right=e.left),
    "one tree less": lambda e: e.select(np.arange(e.n_trees) > 0),
    "outputs": lambda e: e.replace(n_outputs=2, base=np.append(e.base, 0.0)),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "catboost", "sklearn"])
def test_what_is_seen_without_a_background(library, change, misread):
    """Rows at the thresholds show what random rows would not: ties, and values that are missing."""
    names = {"catboost": "SymmetricTree", "sklearn": "HistGradientBoostingRegressor missing"}
    model = CASES[library][names.get(library, "regressor")]().model
    misread(CHANGES[change])
    with pytest.raises(UnsupportedModelError, match="outputs" if change == "outputs" else "difference of"):
        fs.TreeExplainer(model)


@pytest.mark.parametrize("given", ["estimator", "booster"])
def test_dart_without_its_weights_is_found(given, monkeypatch):
    """The mistake that was made with the models of XGBoost 3.3."""
    model, X, _ = CASES["xgboost"]["dart"]()
    trees_and_weights = xgboost_reader._trees_and_weights
    monkeypatch.setattr(
        xgboost_reader, "_trees_and_weights", lambda booster: (trees_and_weights(booster)[0], np.empty(0))
    )
    with pytest.raises(UnsupportedModelError, match=VERSIONS["xgboost"]):
        fs.TreeExplainer(model if given == "estimator" else model.get_booster(), X)


def _labels(X: np.ndarray) -> np.ndarray:
    return (X[:, 0] > 0).astype(int)


MODELS: dict[str, Callable[[Any, np.ndarray], Any]] = {
    "xgboost": lambda X, y: xgboost.XGBRegressor(n_estimators=5, max_depth=3, n_jobs=1).fit(X, y),
    "xgboost booster": lambda X, y: xgboost.XGBRegressor(n_estimators=5, n_jobs=1).fit(X, y).get_booster(),
    "lightgbm": lambda X, y: lightgbm.LGBMRegressor(n_estimators=5, verbose=-1, n_jobs=1).fit(X, y),
    "lightgbm booster": lambda X, y: (
        lightgbm.LGBMRegressor(n_estimators=5, verbose=-1, n_jobs=1).fit(X, y).booster_
    ),
    "catboost": lambda X, y: catboost.CatBoostRegressor(
        iterations=5, verbose=0, thread_count=1, allow_writing_files=False
    ).fit(X, y),
    "forest": lambda X, y: RandomForestClassifier(5, max_depth=4, random_state=0).fit(X, y > 0),
    "gradient boosting": lambda X, y: GradientBoostingRegressor(n_estimators=5).fit(X, y),
    "hist": lambda X, y: HistGradientBoostingRegressor(max_iter=5).fit(X, y),
}
NAMES = ["a", "b", "c", "d"]
FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "float32": lambda Z: Z.astype(np.float32),
    "integers": lambda Z: (10 * Z).astype(np.int64),
    "booleans": lambda Z: Z > 0,
    "objects": lambda Z: Z.astype(object),
    "lists": lambda Z: Z.tolist(),
    "strided": lambda Z: np.asfortranarray(Z)[::-1],
    "masked": lambda Z: np.ma.masked_array(Z, np.zeros(Z.shape, dtype=bool)),
    "sparse": lambda Z: scipy.sparse.coo_matrix(np.where(Z > 0, Z, 0)),
    "pandas": lambda Z: pd.DataFrame(Z, columns=NAMES),
    "pandas numbered": lambda Z: pd.DataFrame(Z, index=np.arange(len(Z))[::-1]),
    "pandas mixed": lambda Z: pd.DataFrame(Z, columns=NAMES).astype(
        {"a": "float32", "b": int, "c": "Float64"}
    ),
    "polars": lambda Z: pl.DataFrame(Z, schema=NAMES),
    "pyarrow": lambda Z: pa.table(dict(zip(NAMES, Z.T, strict=True))),
}


@pytest.mark.parametrize("trained_on", ["arrays", "frames"])
@pytest.mark.parametrize("name", MODELS)
def test_backgrounds_in_every_form(name, trained_on):
    Z = numbers()
    X = pd.DataFrame(Z, columns=NAMES) if trained_on == "frames" else Z
    model = MODELS[name](X, target(Z))
    for form, make in FORMS.items():
        if form == "pandas numbered" and trained_on == "frames":
            continue  # its columns are not the model's
        background = make(Z)
        if form == "sparse" and name == "hist":
            with pytest.raises(fs.InputError, match="is sparse"):
                fs.TreeExplainer(model, background)
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert fs.TreeExplainer(model, background).checked, form


def _with_columns(X: pd.DataFrame, change: Callable[[pd.Series], Any]) -> pd.DataFrame:
    return X.assign(**{name: change(X[name]) for name in X if isinstance(X[name].dtype, pd.CategoricalDtype)})


LABELLED: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda X: X,
    "other order": lambda X: _with_columns(
        X, lambda s: s.cat.reorder_categories(s.cat.categories[::-1].tolist())
    ),
    "fewer labels": lambda X: _with_columns(X[:7], lambda s: s.cat.remove_unused_categories()),
    "objects in a frame": lambda X: _with_columns(X, lambda s: s.astype(object)),
    "objects": lambda X: X.astype(object).to_numpy(),
    "pyarrow": lambda X: pa.Table.from_pandas(X, preserve_index=False),
    "batch": lambda X: pa.Table.from_pandas(X, preserve_index=False).to_batches()[0],
    "polars": pl.from_pandas,
}


@pytest.mark.parametrize("form", LABELLED)
@pytest.mark.parametrize(
    "given", ["xgboost", "xgboost booster", "lightgbm", "lightgbm booster", "catboost", "sklearn"]
)
def test_labels_in_every_form(given, form, capfd):
    library, _, part = given.partition(" ")
    model, X, _ = CASES[library]["HistGradientBoostingRegressor frame" if library == "sklearn" else "frame"]()
    if part == "booster":
        model = model.get_booster() if library == "xgboost" else model.booster_
    if (
        library == "xgboost"
        and not read_model(model).rules.vocabularies
        and form not in ("pandas", "fewer labels")
    ):
        pytest.skip(f"XGBoost {xgboost.__version__} keeps no labels")
    try:
        background = LABELLED[form](X)
    except pl.exceptions.ComputeError:
        pytest.skip("this version of polars has no labels that are numbers")
    if library in ("xgboost", "lightgbm") and form in ("objects in a frame", "objects", "polars"):
        with pytest.raises(
            fs.InputError, match="categor"
        ):  # objects are refused, and numbers in polars not labels
            fs.TreeExplainer(model, background)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fs.TreeExplainer(model, background).checked
    assert capfd.readouterr() == ("", "")


def test_masked_values_are_missing_to_the_check_too():
    Z = numbers()
    background = np.ma.masked_array(np.where(Z > 1, 1e6, Z), Z > 1)
    for name in ("xgboost", "lightgbm", "hist"):
        assert fs.TreeExplainer(MODELS[name](numbers(missing=True), target(Z)), background).checked


def test_parts_of_boosters():
    X = numbers(missing=True)
    booster = xgboost.XGBRegressor(n_estimators=8, n_jobs=1).fit(X, target(X)).get_booster()
    assert fs.TreeExplainer(booster[2:5], X).checked
    first = lightgbm.LGBMRegressor(n_estimators=8, verbose=-1, n_jobs=1).fit(X, target(X)).booster_
    assert fs.TreeExplainer(lightgbm.Booster(model_str=first.model_to_string(num_iteration=3)), X).checked
    model = catboost.CatBoostRegressor(iterations=8, verbose=0, thread_count=1, allow_writing_files=False)
    model.fit(X, target(X))
    model.shrink(5)
    model.set_scale_and_bias(2.0, -3.0)
    assert fs.TreeExplainer(model, X).checked


def test_models_that_count_elsewhere():
    """Training weights, custom losses and margins to begin with change what is learnt, not how it is read."""
    X = numbers()
    y = classes(X, 2)
    weighted = xgboost.XGBClassifier(n_estimators=4, scale_pos_weight=7, max_delta_step=1, n_jobs=1).fit(X, y)
    assert fs.TreeExplainer(weighted, X).checked
    begun = xgboost.XGBClassifier(n_estimators=4, n_jobs=1).fit(X, y, base_margin=np.full(len(X), 2.0))
    assert fs.TreeExplainer(begun, X).checked
    own = xgboost.XGBRegressor(n_estimators=4, n_jobs=1, objective=lambda t, p: (p - t, np.ones_like(t)))
    assert fs.TreeExplainer(own.fit(X, target(X)), X).checked
    score = lightgbm.LGBMClassifier(n_estimators=4, verbose=-1, n_jobs=1, is_unbalance=True)
    assert fs.TreeExplainer(score.fit(X, y, init_score=np.full(len(X), 2.0)), X).checked


@pytest.mark.parametrize("name", ["forest", "xgboost", "hist"])
def test_pipelines(name, misread):
    X = pd.DataFrame(numbers(), columns=NAMES).assign(colour=np.resize(["red", "green", "blue"], 300))
    steps = ColumnTransformer(
        [("scale", StandardScaler(), NAMES), ("encode", OneHotEncoder(sparse_output=False), ["colour"])]
    )
    for output in ("default", "pandas"):
        y = target(X[NAMES].to_numpy())
        Z = steps.set_output(transform=output).fit_transform(X)
        model = make_pipeline(steps, MODELS[name](Z, y))
        for background in (X, None):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                explainer = fs.Explainer(model, background, groups="input")
                explainer.predict(X[:3])
                assert explainer.checked
    misread(lambda e: e.replace(values=e.values * 1.001))
    with pytest.raises(UnsupportedModelError, match="disagrees with"):
        fs.Explainer(model, X)


def test_many_trees_whose_sums_cancel_are_no_alarm():
    X = numbers()
    y = target(X) * 1e6
    model = xgboost.XGBRegressor(n_estimators=1500, max_depth=2, base_score=1e7, n_jobs=1).fit(X, y)
    assert fs.TreeExplainer(model, X).checked
    assert rounding(read_model(model), X, np.zeros((1, 1))) < 1e-3 * 1e7


def test_outputs_beyond_single_precision_are_not_compared():
    X = np.arange(100.0)[:, None]
    model = xgboost.XGBRegressor(
        n_estimators=2, max_depth=1, learning_rate=1.0, reg_lambda=0, base_score=3e38, n_jobs=1
    )
    model.fit(X, np.where(X[:, 0] < 50, 0.0, 3e38))
    assert fs.TreeExplainer(model, X).expected_value


@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "catboost"])
def test_no_live_model_no_comparison(library, tmp_path):
    model, X, _ = CASES[library]["classifier"]()
    path = tmp_path / {"xgboost": "m.json", "lightgbm": "m.txt", "catboost": "m.cbm"}[library]
    (model.booster_ if library == "lightgbm" else model).save_model(str(path))
    assert not fs.TreeExplainer(path, X).checked
    assert not fs.TreeExplainer(read_model(model).representation, X).checked


def test_what_the_library_refuses_is_refused():
    X = numbers()
    model = GradientBoostingRegressor(n_estimators=3).fit(X, target(X))
    infinite = np.where(X > 2, np.inf, X)
    with pytest.raises(ValueError, match="infinity"):
        model.predict(infinite)
    with pytest.raises(fs.InputError, match=r"background has inf in row \d+, column"):
        fs.TreeExplainer(model, infinite)


def test_a_library_that_refuses_all_rows_says_why(monkeypatch):
    model, X, _ = CASES["xgboost"]["regressor"]()

    def refuse(*args: Any, **options: Any) -> None:
        raise RuntimeError("the device is gone")

    monkeypatch.setattr(xgboost.XGBModel, "predict", refuse)
    with pytest.raises(fs.InputError, match=r"XGBoost.* refuses .*the device is gone.*check=False"):
        fs.TreeExplainer(model, X)
    explainer = fs.TreeExplainer(model, X, check=False)
    assert not explainer.checked and explainer.shap_values(X[:2]).shape == (2, 4)


def test_what_is_made_from_a_checked_explainer_is_checked_but_for_files(tmp_path):
    model, X, _ = CASES["lightgbm"]["regressor"]()
    explainer = fs.TreeExplainer(model, X)
    assert explainer.with_background(X[:20]).checked
    explainer.save(tmp_path / "e.fshap")
    assert not fs.load(tmp_path / "e.fshap").checked


@pytest.mark.parametrize(
    ("library", "name"), [("xgboost", "categories"), ("sklearn", "RandomForestRegressor")]
)
def test_rows_at_thresholds(library, name):
    ensemble = read_model(CASES[library][name]().model).trees
    book = code_trees(ensemble).book
    rows = rows_at_thresholds(ensemble, missing=True)
    np.testing.assert_array_equal(rows, rows_at_thresholds(ensemble, missing=True))
    assert rows.shape == (32, ensemble.n_features) and rows.dtype == ensemble.dtype
    for f in range(ensemble.n_features):
        levels = book.levels[book.start[f] : book.start[f + 1]]
        if len(levels):
            beside = np.concatenate(
                [levels, *(np.nextafter(levels, end) for end in levels.dtype.type([-9e9, 9e9]))]
            )
            known = levels if book.categorical[f] else beside
            assert np.isin(rows[:, f], levels).any() and np.isnan(rows[:, f]).any()
            assert (np.isin(rows[:, f], known) | np.isnan(rows[:, f])).all()
    assert not np.isnan(rows_at_thresholds(ensemble, missing=False)).any()
