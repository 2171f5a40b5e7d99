"""scikit-learn's models of models that are sums of trees: by brute force against what they themselves predict."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import xgboost
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import fouriershap as fs
from fouriershap._trees import readers
from fouriershap._trees.arithmetic import add, average, on_columns, side_by_side
from fouriershap._trees.ensemble import MIXED
from fouriershap._trees.readers import read_model, read_opened
from models import CASES, classes, coded, coded_target, numbers, rows_of, target
from reader_checks import assert_well_formed, rows, values_beside_thresholds
from shap_oracle import assert_within, brute_force, with_outputs

X, MISSING = numbers(), numbers(missing=True)
Y, WORDS = target(X), np.array(["low", "mid", "high"])[classes(X, 3)]
TWO = classes(X, 2)


def forest(**options: Any) -> RandomForestRegressor:
    return RandomForestRegressor(3, max_depth=3, random_state=0, **options)


def forest_classifier() -> RandomForestClassifier:
    return RandomForestClassifier(3, max_depth=3, random_state=0)


def boosted(name: str = "XGBRegressor", **options: Any) -> Any:
    return getattr(xgboost, name)(n_estimators=3, max_depth=3, n_jobs=1, **options)


def light(name: str = "LGBMRegressor", **options: Any) -> Any:
    return getattr(lightgbm, name)(
        n_estimators=3, num_leaves=6, verbose=-1, n_jobs=1, min_child_samples=5, **options
    )


def cat() -> Any:
    return catboost.CatBoostRegressor(
        iterations=3, depth=2, verbose=0, thread_count=1, allow_writing_files=False
    )


def logit(probability: np.ndarray) -> np.ndarray:
    return np.log(probability) - np.log1p(-probability)


# Each: a fitted model, whether it takes missing values, and the raw output (n_rows, n_outputs) by the model itself.
Models = dict[str, tuple[Callable[[], Any], bool, Callable[[Any, Any], Any]]]


def predict(model: Any, rows: Any) -> Any:
    return model.predict(rows)


def proba(model: Any, rows: Any) -> Any:
    return model.predict_proba(rows)


def decision(model: Any, rows: Any) -> Any:
    return model.decision_function(rows)


def every_target(model: Any, rows: Any) -> Any:
    return np.hstack(model.predict_proba(rows))


def scores(model: Any, rows: Any) -> Any:
    """One against the rest, before the division by the sum."""
    return np.stack([member.predict_proba(rows)[:, 1] for member in model.estimators_], axis=1)


def columns() -> Any:
    return np.stack([Y, X[:, 0] - X[:, 1]], axis=1)


MODELS: Models = {
    "bagging, some columns": (
        lambda: BaggingRegressor(
            DecisionTreeRegressor(max_depth=3), 4, max_features=0.5, random_state=0, bootstrap_features=True
        ).fit(X, Y),
        False,
        predict,
    ),
    "bagging, missing": (
        lambda: BaggingRegressor(boosted(), 3, random_state=0, max_features=3).fit(MISSING, Y),
        True,
        predict,
    ),
    "bagging, two targets": (
        lambda: BaggingRegressor(forest(), 2, random_state=0).fit(X, columns()),
        False,
        predict,
    ),
    "bagging, samples without some classes": (
        lambda: BaggingClassifier(DecisionTreeClassifier(max_depth=3), 5, max_samples=5, random_state=0).fit(
            X, WORDS
        ),
        False,
        proba,
    ),
    "voting, Pipelines inside": (
        lambda: VotingRegressor(
            [
                ("a", make_pipeline(StandardScaler(), forest())),
                ("b", make_pipeline(MinMaxScaler(), boosted())),
            ]
        ).fit(X, Y),
        False,
        predict,
    ),
    "voting, imputers inside": (
        lambda: VotingRegressor(
            [
                ("a", make_pipeline(SimpleImputer(add_indicator=True), StandardScaler(), forest())),
                ("b", boosted()),
            ]
        ).fit(MISSING, Y),
        True,
        predict,
    ),
    "voting over four libraries": (
        lambda: VotingRegressor(
            [("a", forest()), ("b", boosted()), ("c", light()), ("d", cat()), ("e", "drop")],
            weights=[1, 2, 0.5, 3, 1],
        ).fit(X, Y),
        False,
        predict,
    ),
    "voting, missing": (
        lambda: VotingRegressor(
            [("a", forest()), ("b", boosted()), ("c", HistGradientBoostingRegressor(max_iter=3))]
        ).fit(MISSING, Y),
        True,
        predict,
    ),
    "soft voting": (
        lambda: VotingClassifier(
            [("a", forest_classifier()), ("b", DecisionTreeClassifier(max_depth=3))],
            voting="soft",
            weights=[1, 3],
        ).fit(X, WORDS),
        False,
        proba,
    ),
    "voting over a search": (
        lambda: VotingRegressor(
            [("a", GridSearchCV(forest(), {"max_depth": [2, 3]}, cv=2)), ("b", BaggingRegressor(forest(), 2))]
        ).fit(X, Y),
        False,
        predict,
    ),
    "several targets": (lambda: MultiOutputRegressor(boosted()).fit(X, columns()), True, predict),
    "several classes of several targets": (
        lambda: MultiOutputClassifier(forest_classifier()).fit(X, np.stack([WORDS, TWO.astype(str)], axis=1)),
        False,
        every_target,
    ),
    "a forest of several targets": (
        lambda: forest_classifier().fit(X, np.stack([classes(X, 3), TWO], axis=1)),
        False,
        every_target,
    ),
    "one against the rest": (lambda: OneVsRestClassifier(forest_classifier()).fit(X, WORDS), False, scores),
    "one against the other": (lambda: OneVsRestClassifier(forest_classifier()).fit(X, TWO), False, proba),
    "one against the rest, several labels": (
        lambda: OneVsRestClassifier(forest_classifier()).fit(
            X, np.stack([TWO, X[:, 0] > 1, X[:, 1] > 0], axis=1)
        ),
        False,
        proba,
    ),
    "one against the rest, margins": (
        lambda: OneVsRestClassifier(GradientBoostingClassifier(n_estimators=3)).fit(X, WORDS),
        False,
        decision,
    ),
    "one against the rest, a class that is never there": (
        lambda: OneVsRestClassifier(GradientBoostingClassifier(n_estimators=3)).fit(
            X, np.stack([TWO, np.zeros(len(X)), X[:, 0] > 1], axis=1)
        ),
        False,
        decision,
    ),
    "AdaBoost": (lambda: AdaBoostClassifier(n_estimators=5, random_state=0).fit(X, TWO), False, decision),
    "AdaBoost, 3 classes": (
        lambda: AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=5, random_state=0).fit(
            X, WORDS
        ),
        False,
        decision,
    ),
    "stacking": (
        lambda: StackingRegressor([("a", forest()), ("b", light()), ("c", boosted())], cv=2).fit(MISSING, Y),
        True,
        predict,
    ),
    "stacking classes": (
        lambda: StackingClassifier(
            [("a", forest_classifier()), ("b", DecisionTreeClassifier(max_depth=2))], cv=2
        ).fit(X, WORDS),
        False,
        decision,
    ),
    "stacking decision functions": (
        lambda: StackingClassifier(
            [("a", GradientBoostingClassifier(n_estimators=3)), ("b", AdaBoostClassifier(n_estimators=3))],
            cv=2,
            stack_method="decision_function",
        ).fit(X, TWO),
        False,
        decision,
    ),
    "calibrated forest": (
        lambda: CalibratedClassifierCV(forest_classifier(), ensemble=False, cv=2).fit(X, TWO),
        False,
        lambda model, rows: logit(model.predict_proba(rows)[:, 1]),
    ),
    "calibrated margins": (
        lambda: CalibratedClassifierCV(GradientBoostingClassifier(n_estimators=3), ensemble=False, cv=2).fit(
            X, TWO
        ),
        False,
        lambda model, rows: logit(model.predict_proba(rows)[:, 1]),
    ),
    "one column": (
        lambda: VotingRegressor([("a", forest()), ("b", light())]).fit(X[:, :1], Y),
        False,
        predict,
    ),
}


@cache
def fitted(name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn on names of columns, and on AdaBoost's old algorithm
        return MODELS[name][0]()


def raw(name: str, rows: Any) -> np.ndarray:
    return np.asarray(MODELS[name][2](fitted(name), rows), dtype=np.float64).reshape(len(rows), -1)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_rows_beside_thresholds(name: str, data: st.DataObject) -> None:
    ensemble = read_model(fitted(name))
    more = [np.nan] if MODELS[name][1] else []
    pools = [
        [v for v in values_beside_thresholds(ensemble, f) if abs(v) < 1e30] + more
        for f in range(ensemble.n_features)
    ]
    drawn = data.draw(rows(ensemble, pools, X))
    want = raw(name, drawn)
    scale = max(1.0, np.abs(want).max())
    rtol = 1e-6 if ensemble.computes_in == np.float32 else 1e-9
    np.testing.assert_allclose(ensemble.predict(drawn), want, rtol=rtol, atol=rtol * scale)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("name", MODELS)
def test_values_by_brute_force(name: str) -> None:
    model = fitted(name)
    given_rows = (MISSING if MODELS[name][1] else X)[:, : model.n_features_in_]
    explainer = fs.Explainer(model, given_rows[:15], precision="double")
    assert type(explainer) is fs.TreeExplainer and explainer.checked
    want, expected = brute_force(model, given_rows[40:44], given_rows[:15], output=lambda m, Z: raw(name, Z))
    assert_within(with_outputs(explainer.shap_values(given_rows[40:44])), want, 3e-6)
    np.testing.assert_allclose(np.atleast_1d(explainer.expected_value), expected, rtol=1e-5, atol=1e-6)
    assert_well_formed(explainer.ensemble)


@pytest.mark.parametrize("name", MODELS)
def test_the_referee_sees_a_wrong_reading(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    change = lambda e: e.replace(base=e.base + 0.01 * np.arange(1, e.n_outputs + 1))  # noqa: E731
    monkeypatch.setattr(readers, "read_opened", lambda opened: change(read_opened(opened)))
    model = fitted(name)
    for background in (X[:20, : model.n_features_in_], None):
        with pytest.raises(fs.UnsupportedModelError, match=r"not read right.*scikit-learn"):
            fs.Explainer(model, background)


def test_names_of_outputs_and_columns() -> None:
    assert read_model(fitted("soft voting")).output_names == ("high", "low", "mid")
    names = read_model(fitted("several classes of several targets")).output_names
    assert names == ("target 0: high", "target 0: low", "target 0: mid", "target 1: 0", "target 1: 1")
    assert read_model(fitted("several targets")).output_names == ("target 0", "target 1")
    frame = pd.DataFrame(X, columns=list("abcd"))
    explainer = fs.Explainer(VotingRegressor([("a", forest()), ("b", boosted())]).fit(frame, Y), frame)
    assert explainer.feature_names == tuple("abcd") and explainer.checked
    mixed = explainer.shap_values(frame[["b", "a", "c", "d"]])
    np.testing.assert_array_equal(mixed, explainer.shap_values(frame))


def test_missing_values_are_refused_where_the_model_refuses_them() -> None:
    for name in ("AdaBoost", "one against the rest, margins"):
        with pytest.raises(fs.InputError, match="takes none"):
            fs.Explainer(fitted(name), X[:20]).shap_values(MISSING)


def test_probabilities_of_sums() -> None:
    """Links on top of sums: AdaBoost's and Platt's sigmoid, logistic regression on a stack, shares of scores."""
    for name in ("AdaBoost", "calibrated forest", "stacking classes", "one against the rest"):
        model = fitted(name)
        exact = fs.Explainer(model, X[:10], output="probability", exact=True)
        values = with_outputs(exact.shap_values(X[30:33]))
        want, _ = brute_force(model, X[30:33], X[:10], output=lambda m, Z: np.asarray(m.predict_proba(Z)))
        assert_within(values, want[:, :, -values.shape[2] :], 1e-6)


# What is no sum is said to be none by TreeExplainer, and fitted by Explainer.

REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "median": (lambda: AdaBoostRegressor(n_estimators=3, random_state=0).fit(X, Y), "weighted median"),
    "mean of sigmoids": (
        lambda: VotingClassifier(
            [("a", forest_classifier()), ("b", boosted("XGBClassifier"))], voting="soft"
        ).fit(X, TWO),
        "XGBClassifier predicts a sigmoid of a sum of trees",
    ),
    "mean of exponentials": (
        lambda: VotingRegressor([("a", forest()), ("b", light(objective="poisson"))]).fit(X, np.exp(Y / 3)),
        "LGBMRegressor predicts an exponential",
    ),
    "stacked trees": (
        lambda: StackingRegressor([("a", forest())], final_estimator=forest(), cv=2).fit(X, Y),
        "last step is a RandomForestRegressor",
    ),
    "columns beside a stack": (
        lambda: StackingRegressor([("a", forest())], passthrough=True, cv=2).fit(X, Y),
        "passthrough=True",
    ),
    "stacked names": (
        lambda: StackingClassifier([("a", forest_classifier())], stack_method="predict", cv=2).fit(X, TWO),
        "the classes that its members name",
    ),
    "several calibrations": (
        lambda: CalibratedClassifierCV(forest_classifier(), cv=2).fit(X, TWO),
        "the mean of 2 models",
    ),
    "a pipeline inside": (
        lambda: VotingRegressor([("a", make_pipeline(PCA(2), forest())), ("b", forest())]).fit(X, Y),
        "trees behind steps through which they cannot be read",
    ),
    "another model inside": (
        lambda: VotingRegressor([("a", LinearRegression()), ("b", forest())]).fit(X, Y),
        "has a LinearRegression for a member, which is no tree model",
    ),
    "different readings of missing": (
        lambda: VotingRegressor([("a", boosted(missing=0.5)), ("b", forest())]).fit(X, Y),
        r"0.5.*counts as missing",
    ),
    "a forest that votes": (
        lambda: AdaBoostClassifier(forest_classifier(), n_estimators=2).fit(X, TWO),
        "members vote",
    ),
}


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_sum_is_fitted_with_one_warning(name: str) -> None:
    make, why = REFUSED[name]
    model = make()
    with pytest.raises(
        fs.UnsupportedModelError, match=rf"(?s){why}.*fs\.Explainer\(model, background\) fits"
    ):
        fs.TreeExplainer(model, X[:20])
    bits = (X[:30] > 0).astype(float)  # few levels: asked about all of them, which is quick
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", fs.FourierShapWarning)
        explainer = fs.Explainer(model, bits)
    ours = [w for w in caught if issubclass(w.category, fs.FourierShapWarning)]
    assert [w.category for w in ours] == [fs.ModelWarning] and ours[0].filename == __file__
    assert type(explainer) is fs.BlackBoxExplainer and "fitted as a black box" in str(ours[0].message)
    assert np.abs(explainer.gap(bits[:5])).max() < 1e-6


def test_what_cannot_be_fitted_either_is_refused() -> None:
    hard = VotingClassifier([("a", forest_classifier())]).fit(X, TWO)
    with pytest.raises(fs.UnsupportedModelError, match="voting='hard'"):
        fs.Explainer(hard, X)
    median = REFUSED["median"][0]()
    with pytest.raises(fs.UnsupportedModelError, match=r"median.*With a background"):
        fs.Explainer(median)
    with pytest.raises(fs.UnsupportedModelError, match=r"median.*takes no 'precision'"):
        fs.Explainer(median, X, precision="double")


def test_sums_of_no_trees_are_plain_black_boxes() -> None:
    model = VotingRegressor([("a", LinearRegression()), ("b", LinearRegression())]).fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", fs.ModelWarning)
        assert type(fs.Explainer(model, (X[:30] > 0).astype(float))) is fs.BlackBoxExplainer
    with pytest.raises(fs.InputError, match="VotingRegressor that is not fitted"):
        fs.Explainer(VotingRegressor([("a", forest())]), X)


def test_rows_that_members_would_read_differently() -> None:
    explainer = fs.Explainer(fitted("voting over four libraries"), X[:20])
    assert explainer.ensemble.casting == MIXED
    with pytest.raises(fs.InputError, match=r"sparse.*may be missing to others"):
        explainer.shap_values(scipy.sparse.csr_matrix(X))
    whole = np.full((2, 4), 2**24 + 1)
    for given_rows in (whole, pd.DataFrame(whole)):
        with pytest.raises(fs.InputError, match=r"16777217.*different ways"):
            explainer.shap_values(given_rows)
    assert explainer.shap_values(whole.astype(float)).shape == (2, 4)


UNTESTED: dict[str, Callable[[int], Any]] = {
    "text": lambda n: ["x", "y"] * (n // 2),
    "dates": lambda n: pd.date_range("2020", periods=n),
    "None": lambda n: [None] * n,
    "missing": lambda n: np.full(n, np.nan),
    "float32": lambda n: np.zeros(n, np.float32),
    "large integers": lambda n: np.full(n, 10**17),
}


@pytest.mark.parametrize("kind", UNTESTED)
def test_columns_that_steps_drop_may_hold_anything(kind: str) -> None:
    data = pd.DataFrame({"a": X[:, 0], "z": UNTESTED[kind](len(X)), "b": X[:, 1]})
    steps = make_column_transformer((StandardScaler(), ["a", "b"]))
    model = VotingRegressor([("v", make_pipeline(steps, forest()))]).fit(data, Y)
    explainer = fs.TreeExplainer(model, data[:20])
    values = explainer.shap_values(data)
    np.testing.assert_allclose(values.sum(axis=1) + explainer.expected_value, model.predict(data), atol=1e-5)
    assert not values[:, 1].any()
    assert np.array_equal(explainer.shap_values(data.to_numpy(dtype=object)), values)
    renamed = data.rename(columns={"z": "other"})
    with pytest.raises(fs.InputError, match="other"):
        explainer.shap_values(renamed)


def test_small_integers_beside_single_precision_become_single() -> None:
    data = pd.DataFrame({"a": (10 * X[:, 0]).astype(np.int16), "z": np.zeros(len(X), np.float32)})
    model = VotingRegressor([("v", make_pipeline(StandardScaler(), forest()))]).fit(data, Y)
    with pytest.raises(fs.InputError, match="float32"):
        fs.TreeExplainer(model, data)
    assert fs.TreeExplainer(model, data.astype({"a": np.int32})).checked


@pytest.mark.parametrize("outer", [lambda m: m, lambda m: make_pipeline(MinMaxScaler(), m)])
def test_single_precision_before_steps_is_fitted(outer: Callable[[Any], Any]) -> None:
    bits = (X > 0).astype(np.float32)  # few levels: asked about all of them, which is quick
    model = outer(VotingRegressor([("v", make_pipeline(StandardScaler(), forest()))])).fit(bits, Y)
    with pytest.raises(fs.InputError, match=r"float32.*Give float64"):
        fs.TreeExplainer(model, bits[:30])
    with pytest.warns(fs.ModelWarning, match=r"background has float32.*fitted as a black box") as caught:
        explainer = fs.Explainer(model, bits[:30])
    assert len(caught) == 1 and type(explainer) is fs.BlackBoxExplainer
    assert np.abs(explainer.gap(bits[:5])).max() < 1e-5
    assert type(fs.Explainer(model, bits[:30].astype(float))) is fs.TreeExplainer


def test_integers_before_steps() -> None:
    whole = np.random.default_rng(0).integers(1_600_000_000, 1_600_000_300, (200, 2))
    times = pd.DataFrame(whole, columns=["t", "u"])
    late = (whole[:, 0] > 1_600_000_151) + 0.5 * (whole[:, 1] > 1_600_000_077)
    model = VotingRegressor([("v", make_pipeline(StandardScaler(), forest()))]).fit(times, late)
    for given_rows in (whole, times):
        explainer = fs.TreeExplainer(model, given_rows[:20])
        total = explainer.shap_values(given_rows).sum(axis=1) + explainer.expected_value
        np.testing.assert_allclose(total, model.predict(times), atol=1e-5)
        with pytest.raises(fs.InputError, match="which float64 does not hold"):
            explainer.shap_values(given_rows * 0 + 2**53 + 1)
    light_too = VotingRegressor([("v", make_pipeline(StandardScaler(), forest())), ("l", light())])
    for model in (light_too, VotingRegressor([("v", make_pipeline(VarianceThreshold(), light()))])):
        with pytest.raises(fs.InputError, match=r"integer 1600.*may round in different ways"):
            fs.TreeExplainer(model.fit(times, late), times)


# The arithmetic by itself.

FLOAT32_EDGES = [
    0.0,
    1e-45,
    -1e-45,
    1.1754944e-38,
    3.4028235e38,
    -3.4028235e38,
    np.inf,
    -np.inf,
    1.0,
    16777216.0,
]


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.floats(width=32, allow_nan=False) | st.sampled_from(FLOAT32_EDGES), min_size=1, max_size=5)
)
def test_thresholds_of_float32_decide_the_same_in_float64(thresholds: list[float]) -> None:
    narrow = CASES["sklearn"]["DecisionTreeRegressor"]().model
    e = read_model(narrow)
    inner = np.flatnonzero(e.feature >= 0)
    changed = e.threshold.copy()
    changed[inner] = np.resize(np.array(thresholds, dtype=np.float32).astype(float), len(inner))
    e = e.replace(threshold=changed)
    wide = read_model(CASES["sklearn"]["HistGradientBoostingRegressor"]().model)
    total = add([e, wide])
    assert total.dtype == np.float64
    near = [np.float32(t) for t in thresholds]
    with np.errstate(over="ignore"):
        near += [np.nextafter(t, np.float32(end)) for t in near for end in ("inf", "-inf")]
    middles = [float(a) / 2 + float(b) / 2 for a in near for b in near if np.isfinite(a) and np.isfinite(b)]
    values = np.array(
        [*map(float, near), *middles, *np.nextafter(middles, np.inf), *np.nextafter(middles, -np.inf)]
    )
    drawn = np.random.default_rng(0).choice(values, (200, 4))
    np.testing.assert_allclose(total.predict(drawn), e.predict(drawn) + wide.predict(drawn), rtol=1e-12)


def test_categories_of_different_members() -> None:
    """CatBoost numbers labels as they come up in splits, scikit-learn as they come in a sample: one vocabulary."""
    _, frame, _ = CASES["catboost"]["frame"]()
    parts = [read_model(CASES["catboost"][name]().model) for name in ("frame", "frame Lossguide")]
    assert parts[0].vocabularies != parts[1].vocabularies
    total = add(parts)
    want = sum(part.predict(rows_of(part, frame)) for part in parts)
    np.testing.assert_allclose(total.predict(rows_of(total, frame)), want, rtol=1e-12)

    Z = coded(True)
    hist = HistGradientBoostingRegressor(max_iter=3, categorical_features=[3], min_samples_leaf=3)
    model = BaggingRegressor(hist, 4, max_samples=25, random_state=0).fit(Z, coded_target(Z))
    ensemble = read_model(model)
    np.testing.assert_allclose(ensemble.predict(rows_of(ensemble, Z))[:, 0], model.predict(Z), rtol=1e-9)
    assert fs.Explainer(model, Z[:30]).checked


def test_sums_that_there_are_none_of() -> None:
    numbers_only = read_model(fitted("several targets"))
    labels = read_model(CASES["lightgbm"]["categories"]().model)
    one = read_model(forest().fit(X, Y))
    with pytest.raises(fs.UnsupportedModelError, match="numbers of outputs"):
        add([numbers_only, one])
    with pytest.raises(fs.UnsupportedModelError, match="numbers of features"):
        add([one, read_model(forest().fit(X[:, :2], Y))])
    with pytest.raises(fs.UnsupportedModelError, match=r"precision|a category to others"):
        add([labels, one])
    zeros = read_model(CASES["lightgbm"]["zero_as_missing"]().model)
    plain = read_model(CASES["lightgbm"]["regressor"]().model)
    with pytest.raises(fs.UnsupportedModelError, match="zero counts as missing"):
        add([zeros, plain])
    same = average([zeros, zeros])
    np.testing.assert_allclose(same.predict(X), zeros.predict(X))
    wider = on_columns(one, [3, 1, 0, 2], 6)
    np.testing.assert_array_equal(wider.predict(np.c_[X[:, [2, 1, 3, 0]], X[:, :2]]), one.predict(X))
    both = side_by_side([one, numbers_only, one])
    np.testing.assert_allclose(
        both.predict(X), np.hstack([one.predict(X), numbers_only.predict(X), one.predict(X)]), rtol=1e-6
    )


def test_files_keep_sums(tmp_path: Any) -> None:
    explainer = fs.Explainer(fitted("voting over four libraries"), X[:20])
    explainer.save(tmp_path / "sum.fshap")
    loaded = fs.load(tmp_path / "sum.fshap")
    assert np.array_equal(loaded.shap_values(X[:5]), explainer.compile().shap_values(X[:5]))


def test_extra_trees_inside() -> None:
    model = BaggingRegressor(ExtraTreesRegressor(3, max_depth=3), 2, random_state=0).fit(X, Y)
    np.testing.assert_allclose(read_model(model).predict(X)[:, 0], model.predict(X))
    logistic = StackingClassifier(
        [("a", forest_classifier())], final_estimator=LogisticRegression(), cv=2
    ).fit(X, TWO)
    assert read_model(logistic).objective == "binary"


def test_log_links_side_by_side() -> None:
    """Margins of several targets; the model itself predicts their exponentials."""
    counts = np.exp(columns() / 3).round() + 1
    model = MultiOutputRegressor(light(objective="poisson")).fit(X, counts)
    explainer = fs.Explainer(model, X[:20], output="response")
    assert explainer.checked
    total = explainer.shap_values(X[:5]).sum(axis=1) + explainer.expected_value
    np.testing.assert_allclose(total, model.predict(X[:5]), rtol=1e-9)
    wrapped = TransformedTargetRegressor(
        MultiOutputRegressor(light()), func=np.log, inverse_func=np.exp, check_inverse=False
    ).fit(X, counts)
    explainer = fs.Explainer(wrapped, X[:20], output="response")
    assert explainer.checked
    total = explainer.shap_values(X[:5]).sum(axis=1) + explainer.expected_value
    np.testing.assert_allclose(total, wrapped.predict(X[:5]), rtol=1e-9)
