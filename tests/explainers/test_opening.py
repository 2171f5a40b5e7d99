"""Wrappers are opened: what is explained is the model inside, exactly."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingRegressor,
)
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import RFE
from sklearn.linear_model import LinearRegression, PoissonRegressor, RANSACRegressor, Ridge
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV, RandomizedSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, PowerTransformer, StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor

import fouriershap as fs
from fitted_models import explain_fitted
from models import (
    CASES,
    XGBOOST_KEEPS_LABELS,
    frame,
    frame_target,
    numbers,
    target,
    version_of,
)
from shap_oracle import assert_within, brute_force, with_outputs

X = numbers()
Y = target(X)


def forest() -> RandomForestRegressor:
    return RandomForestRegressor(3, max_depth=3, random_state=0)


DEPTHS = {"max_depth": [2, 3]}
WRAPPED: dict[str, Callable[[], Any]] = {
    "search": lambda: GridSearchCV(forest(), DEPTHS, cv=2),
    "random search": lambda: RandomizedSearchCV(forest(), DEPTHS, n_iter=2, cv=2, random_state=0),
    "halving search": lambda: HalvingGridSearchCV(forest(), DEPTHS, cv=2, random_state=0),
    "search of a search": lambda: GridSearchCV(GridSearchCV(forest(), DEPTHS, cv=2), {"cv": [2]}, cv=2),
    "pipeline of one step": lambda: make_pipeline(forest()),
    "target that stays": lambda: TransformedTargetRegressor(forest()),
    "search of a target": lambda: GridSearchCV(
        TransformedTargetRegressor(forest()), {"check_inverse": [False]}, cv=2
    ),
    "sum of searches": lambda: VotingRegressor(
        [("a", GridSearchCV(forest(), DEPTHS, cv=2)), ("b", forest())]
    ),
}


@pytest.mark.parametrize("name", WRAPPED)
def test_the_model_inside_is_explained(name: str) -> None:
    model = WRAPPED[name]().fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        explainer = fs.Explainer(model, X[:15], precision="double")
    assert explainer.kind == "trees" and explainer.checked and not explainer.has_pipeline
    want, _ = brute_force(model, X[30:34], X[:15], output=lambda m, Z: m.predict(Z)[:, None])
    assert_within(with_outputs(explainer.shap_values(X[30:34])), want, 1e-6)
    assert np.allclose(fs.read_model(model).predict(X)[:, 0], model.predict(X))


def test_wrappers_that_train_on_arrays_keep_names() -> None:
    frame = pd.DataFrame(X, columns=[f"column {f}" for f in range(X.shape[1])])
    some = np.where(np.arange(len(Y)) % 2, Y > 0, -1).astype(int)
    models = {
        "products": RANSACRegressor(random_state=0).fit(frame, Y),
        "trees": RANSACRegressor(forest(), min_samples=40, random_state=0).fit(frame, Y),
    }
    for kind, model in models.items():
        explainer = fs.Explainer(model, frame[:15])
        assert explainer.kind == kind and explainer.checked
        total = explainer.shap_values(frame).sum(axis=1) + explainer.expected_value
        np.testing.assert_allclose(total, model.predict(frame), atol=1e-5)
        with pytest.raises(fs.InputError, match="'wrong'"):
            explainer.shap_values(frame.rename(columns={"column 1": "wrong"}))
    learner = SelfTrainingClassifier(RandomForestClassifier(3, max_depth=3, random_state=0)).fit(frame, some)
    explainer = fs.Explainer(learner, frame[:15])
    total = explainer.shap_values(frame).sum(axis=1) + explainer.expected_value
    np.testing.assert_allclose(total, learner.predict_proba(frame), atol=1e-6)


@pytest.mark.parametrize("inside", [Ridge, forest])
def test_selection_around_a_model(inside: Callable[[], Any]) -> None:
    model = RFE(inside(), n_features_to_select=2).fit(X, Y)
    explainer = fs.Explainer(model, X[:15], groups="input")
    assert explainer.checked and explainer.has_pipeline and len(explainer.player_names) == 2
    total = explainer.shap_values(X).sum(axis=1) + explainer.expected_value
    np.testing.assert_allclose(total, model.predict(X), atol=1e-6)


LOGS = {"log": (np.log, np.exp), "log1p": (np.log1p, np.expm1)}


@pytest.mark.parametrize("link", LOGS)
@pytest.mark.parametrize("inside", [Ridge, SVR, lambda: make_pipeline(StandardScaler(), Ridge())])
def test_targets_of_sums_of_products(inside: Callable[[], Any], link: str) -> None:
    before, after = LOGS[link]
    model = TransformedTargetRegressor(inside(), func=before, inverse_func=after).fit(X, np.exp(Y / 3))
    explainer = fs.Explainer(model, X[:12], output="response")
    assert explainer.kind == "products" and explainer.checked
    want, _ = brute_force(model, X[30:33], X[:12], output=lambda m, Z: m.predict(Z)[:, None])
    assert_within(with_outputs(explainer.shap_values(X[30:33])), want, 1e-7)
    with pytest.warns(fs.ModelWarning, match="units of the transformed target"):
        raw = fs.Explainer(model, X[:12])
    np.testing.assert_allclose(after(raw.shap_values(X).sum(axis=1) + raw.expected_value), model.predict(X))
    plain = TransformedTargetRegressor(inside()).fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fs.Explainer(plain, X[:12]).kind == "products"


BITS = (X > 0).astype(float)  # few levels: a black box asks about all of them, which is quick
UNKNOWN: dict[str, Callable[[], Any]] = {
    "linear": lambda: TransformedTargetRegressor(Ridge(), transformer=PowerTransformer()),
    "kernel": lambda: TransformedTargetRegressor(SVR(), func=np.sqrt, inverse_func=np.square),
    "trees": lambda: TransformedTargetRegressor(forest(), func=np.sqrt, inverse_func=np.square),
    "a link inside": lambda: TransformedTargetRegressor(
        PoissonRegressor(), func=np.log1p, inverse_func=np.expm1
    ),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_responses_of_targets_that_are_not_known_are_fitted(name: str) -> None:
    model = UNKNOWN[name]().fit(BITS, np.exp(Y / 3))
    class_ = fs.TreeExplainer if name == "trees" else fs.ProductExplainer
    with pytest.raises(
        fs.UnsupportedModelError, match=r"TransformedTargetRegressor.*model\.predict,"
    ) as found:
        class_(model, BITS, output="response")
    assert "predict_proba" not in str(found.value)
    for word in ("output", "model_output"):
        with pytest.warns(
            fs.ModelWarning, match=r"TransformedTargetRegressor.*what predict returns"
        ) as caught:
            explainer = fs.Explainer(model, BITS, **{word: "response"})
        assert len(caught) == 1 and explainer.kind == "black box"
        np.testing.assert_allclose(explainer.predict(BITS[:5]), model.predict(BITS[:5]))
    with pytest.warns(fs.ModelWarning, match="units of the transformed target"):
        assert fs.Explainer(model, BITS).kind == ("trees" if name == "trees" else "products")


class OwnPredictions(HistGradientBoostingRegressor):
    def predict(self, X: Any) -> Any:
        return super().predict(X)


class OwnObjective(lightgbm.LGBMRegressor):
    def predict(self, X: Any, **options: Any) -> Any:
        return super().predict(X, **options)


LINKED: dict[str, Callable[[], Any]] = {
    "loss": lambda: OwnPredictions(loss="poisson", max_iter=3),
    "objective": lambda: OwnObjective(objective="tweedie", n_estimators=3, verbose=-1),
    "target": lambda: TransformedTargetRegressor(KNeighborsRegressor(), func=np.log, inverse_func=np.exp),
}


@pytest.mark.parametrize("name", LINKED)
def test_a_raw_output_is_not_what_predict_returns_behind_a_link(name: str) -> None:
    model = LINKED[name]().fit(BITS, np.exp(Y / 3))
    for word in ("output", "model_output"):
        with pytest.raises(fs.InputError, match=r"output is 'raw'.*output='response'"):
            fs.Explainer(model, BITS, **{word: "raw"})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fs.ModelWarning)
        assert fs.Explainer(model, BITS, output="response").kind == "black box"
        near = KNeighborsRegressor().fit(BITS, Y)
        assert fs.Explainer(near, BITS, output="raw").kind == "black box"


def test_an_output_that_a_black_box_has_in_any_case() -> None:
    calibrated = CalibratedClassifierCV(RandomForestClassifier(3), method="isotonic", cv=2).fit(X, Y > 0)
    for word in ("output", "model_output"):
        with pytest.warns(fs.ModelWarning, match="in what predict_proba returns"):
            explainer = fs.Explainer(calibrated, X, **{word: "probability"})
        assert explainer.kind == "black box" and explainer.output_names == ("False", "True")
    with pytest.raises(fs.UnsupportedModelError, match="leave that out"):
        fs.Explainer(calibrated, X, output="log_loss")
    near = KNeighborsRegressor().fit(X, Y)
    assert fs.Explainer(near, X[:20], output="response").kind == "black box"
    with pytest.raises(fs.InputError, match="output is 'probability', but a black box has no outputs"):
        fs.Explainer(near, X[:20], output="probability")


def test_frozen_models_and_thresholds() -> None:
    if version_of("scikit-learn") < (1, 6):
        pytest.skip("this scikit-learn has no FrozenEstimator")
    from sklearn.frozen import FrozenEstimator
    from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV

    inside = RandomForestClassifier(3, max_depth=3, random_state=0).fit(X, Y > 0)
    want = fs.Explainer(inside, X[:15]).shap_values(X)
    assert np.array_equal(fs.Explainer(FrozenEstimator(inside), X[:15]).shap_values(X), want)
    for wrapper in (FixedThresholdClassifier, TunedThresholdClassifierCV):
        model = wrapper(RandomForestClassifier(3, max_depth=3, random_state=0)).fit(X, Y > 0)
        explainer = fs.Explainer(model, X[:15])
        total = explainer.shap_values(X).sum(axis=1) + explainer.expected_value
        np.testing.assert_allclose(total, model.predict_proba(X), atol=1e-6)


PIPELINES: dict[str, Callable[[], Any]] = {
    "pipeline of a pipeline": lambda: make_pipeline(StandardScaler(), make_pipeline(PCA(3), forest())),
    "search of a pipeline": lambda: GridSearchCV(
        Pipeline([("scale", StandardScaler()), ("model", forest())]), {"model__max_depth": [2, 3]}, cv=2
    ),
    "pipeline of a search of a pipeline": lambda: make_pipeline(
        StandardScaler(),
        GridSearchCV(Pipeline([("pca", PCA(3)), ("model", forest())]), {"model__max_depth": [2, 3]}, cv=2),
    ),
    "pipeline of a sum": lambda: make_pipeline(
        StandardScaler(), VotingRegressor([("a", forest()), ("b", GradientBoostingRegressor(n_estimators=3))])
    ),
    "target around a pipeline": lambda: TransformedTargetRegressor(make_pipeline(StandardScaler(), forest())),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_pipelines_at_any_depth(name: str) -> None:
    model = PIPELINES[name]().fit(X, Y)
    explainer = fs.Explainer(model, X[:20])
    assert explainer.kind == "trees" and explainer.checked and explainer.has_pipeline
    total = explainer.shap_values(X).sum(axis=1) + explainer.expected_value
    np.testing.assert_allclose(total, model.predict(X), atol=1e-5)
    with pytest.raises(fs.UnsupportedModelError, match="steps before its model"):
        fs.read_model(model)


def test_input_columns_through_several_pipelines() -> None:
    people = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "city": np.resize(["Bern", "Basel", "Zug"], len(X))})
    prepare = make_column_transformer((OneHotEncoder(), ["city"]), (StandardScaler(), ["a", "b"]))
    model = make_pipeline(
        prepare, GridSearchCV(make_pipeline(StandardScaler(), forest()), {"verbose": [False]}, cv=2)
    )
    model.fit(people, Y)
    features = fs.Explainer(model, people[:20], groups="encoded")
    assert features.player_names[:2] == ("onehotencoder__city_Basel", "onehotencoder__city_Bern")
    explainer = fs.Explainer(model, people[:15], groups="input", precision="double")
    assert explainer.player_names == ("a", "b", "city")
    want, _ = brute_force(model, people[30:34], people[:15], output=lambda m, Z: m.predict(Z)[:, None])
    assert_within(with_outputs(explainer.shap_values(people[30:34])), want, 1e-6)


def test_wrappers_that_hold_no_model() -> None:
    with pytest.raises(fs.InputError, match="GridSearchCV that is not fitted"):
        fs.Explainer(GridSearchCV(forest(), DEPTHS), X)
    kept = GridSearchCV(forest(), DEPTHS, cv=2, refit=False).fit(X, Y)
    with pytest.raises(fs.InputError, match="refit=False, which keeps no model"):
        fs.Explainer(kept, X)


def test_wrappers_around_other_models_are_black_boxes() -> None:
    bits = (X > 0).astype(float)
    model = GridSearchCV(LinearRegression(), {"positive": [False]}, cv=2).fit(bits, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", fs.ModelWarning)
        assert fs.Explainer(model, bits[:40]).kind == "products"


def test_wrappers_with_a_word_of_their_own_are_not_opened() -> None:
    class Doubled(GridSearchCV):
        def predict(self, rows: Any) -> Any:
            return 2 * super().predict(rows)

    bits = (X > 0).astype(float)
    model = Doubled(forest(), DEPTHS, cv=2).fit(bits, Y)
    explainer = fs.Explainer(model, bits[:40])
    assert explainer.kind == "black box"
    np.testing.assert_allclose(explainer.predict(bits[:5]), model.predict(bits[:5]))


# Models of libraries that TreeExplainer refuses are fitted, with one warning.


def linear_trees() -> tuple[Any, Any]:
    rows = (X > 0).astype(float)
    options = {"n_estimators": 5, "linear_tree": True, "verbose": -1, "min_child_samples": 5, "n_jobs": 1}
    return VotingRegressor([("trees", lightgbm.LGBMRegressor(**options))]).fit(rows, Y), rows


def own_predictions() -> tuple[Any, Any]:
    class Quantiles(DecisionTreeRegressor):
        def predict(self, rows: Any) -> Any:
            return np.quantile(np.stack([super().predict(rows), np.ones(len(rows))]), 0.3, axis=0)

    rows = (X > 0).astype(float)
    return Quantiles(max_depth=3).fit(rows, Y), rows


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (linear_trees, "linear_tree=True"),
        (own_predictions, "own predict"),
    ],
)
def test_what_trees_refuse_is_fitted(make: Callable[[], tuple[Any, Any]], why: str) -> None:
    model, rows = make()
    with pytest.raises(fs.UnsupportedModelError, match=f"{why}.*explains it as a black box"):
        fs.TreeExplainer(model, rows)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", fs.ModelWarning)
        explainer = fs.Explainer(model, rows[:60])
    told = [w for w in caught if w.category is fs.ModelWarning]
    assert len(told) == 1 and why in str(told[0].message) and told[0].filename == __file__
    assert explainer.kind == "black box"
    want, _ = brute_force(
        model, rows[60:63], rows[:60], output=lambda m, Z: np.asarray(m.predict(Z))[:, None]
    )
    values, errors = explainer.shap_values(rows[60:63], errors=True)
    assert (
        np.abs(with_outputs(values) - want) <= 4.5 * with_outputs(errors) + 1e-5 * np.abs(want).max()
    ).all()


def test_files_that_are_refused(tmp_path: Any) -> None:
    rows = numbers(missing=True)
    rows[:50] = 0.0
    options = {"n_estimators": 3, "verbose": -1, "n_jobs": 1}
    first = lightgbm.LGBMRegressor(zero_as_missing=True, **options).fit(rows, target(rows))
    model = lightgbm.LGBMRegressor(**options).fit(rows, target(rows), init_model=first)
    model.booster_.save_model(tmp_path / "model.txt")
    with pytest.raises(fs.UnsupportedModelError, match=r"zero_as_missing.*Load the model with its library"):
        fs.Explainer(tmp_path / "model.txt", rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fs.ModelWarning)
        assert fs.Explainer(model.booster_, rows[:60]).kind == "black box"


def test_linear_boosters_can_be_asked() -> None:
    import xgboost

    rows = (X > 0).astype(np.float32)
    booster = xgboost.train({"booster": "gblinear", "nthread": 1}, xgboost.DMatrix(rows, label=Y), 5)
    explainer = explain_fitted(booster, rows[:40])
    total = explainer.shap_values(rows[:5]).sum(axis=1) + explainer.expected_value
    np.testing.assert_allclose(total, booster.predict(xgboost.DMatrix(rows[:5])), atol=1e-5)


def test_a_model_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model, rows, _ = CASES["xgboost"]["regressor"]()
    calls = []
    booster = model.get_booster()
    save = type(booster).save_raw
    monkeypatch.setattr(
        type(booster), "save_raw", lambda *args, **options: calls.append(1) or save(*args, **options)
    )
    fs.Explainer(model, rows[:20])
    assert len(calls) == 1


class Named(RegressorMixin, BaseEstimator):
    """A stranger with the name of nothing that is known."""

    def fit(self, rows: Any, y: Any) -> Named:
        self.tree_ = DecisionTreeRegressor(max_depth=2).fit(rows, y)
        return self

    def predict(self, rows: Any) -> Any:
        return self.tree_.predict(rows)


def test_strangers_inside_a_search() -> None:
    bits = (X > 0).astype(float)
    model = GridSearchCV(Named(), {}, cv=2).fit(bits, Y)
    assert fs.Explainer(model, bits[:40]).kind == "black box"


@pytest.mark.skipif(not XGBOOST_KEEPS_LABELS, reason="this XGBoost keeps no labels")
def test_labels_inside_a_search() -> None:
    import xgboost

    rows = frame(missing=True)
    inside = xgboost.XGBRegressor(n_estimators=3, max_depth=3, enable_categorical=True, n_jobs=1)
    model = GridSearchCV(inside, {"max_depth": [2]}, cv=2).fit(rows, frame_target(rows))
    explainer = fs.Explainer(model, rows[:40])
    assert explainer.checked and explainer.known_labels.keys() == {"colour", "size"}
