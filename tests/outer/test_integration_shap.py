"""shap patched: its own results, shapes, types, warnings and errors, computed by fouriershap."""

from __future__ import annotations

import copy
import logging
import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingRegressor, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression

import fouriershap as fs
from shap_oracle import brute_force

shap = pytest.importorskip("shap")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4)).astype(np.float32)
Y = X[:, 0] * X[:, 1] + np.maximum(X[:, 2], 0)
CLASSES = np.digitize(Y, [-0.3, 0.5])
MODELS = {
    "xgboost": xgboost.XGBRegressor(n_estimators=12, max_depth=3),
    "xgboost, 3 classes": xgboost.XGBClassifier(n_estimators=6, max_depth=3),
    "xgboost, 2 classes": xgboost.XGBClassifier(n_estimators=6, max_depth=3),
    "lightgbm": LGBMRegressor(n_estimators=8, min_child_samples=5, verbose=-1),
    "lightgbm, 3 classes": LGBMClassifier(n_estimators=5, min_child_samples=5, verbose=-1),
    "forest": RandomForestClassifier(8, max_depth=4, random_state=0),
    "gradient boosting": GradientBoostingClassifier(n_estimators=8, random_state=0),
    "histogram": HistGradientBoostingRegressor(max_iter=6, min_samples_leaf=5),
}


@pytest.fixture(autouse=True)
def unpatched() -> Iterator[None]:
    yield
    fs.unpatch_shap()


def fitted(name: str) -> Any:
    two = name in ("xgboost, 2 classes", "gradient boosting")
    labels = (CLASSES > 0).astype(int) if two else CLASSES
    return MODELS[name].fit(X, labels if two or "classes" in name or name == "forest" else Y)


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "fouriershap"]


def is_patched() -> bool:
    return shap.TreeExplainer.shap_values is not SHAP_VALUES


SHAP_VALUES = shap.TreeExplainer.shap_values


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("with_background", [True, False])
def test_values_like_those_of_shap(
    name: str, with_background: bool, caplog: pytest.LogCaptureFixture
) -> None:
    model, background = fitted(name), X[:30] if with_background else None
    explainer = shap.TreeExplainer(model, background)
    values, explanation = explainer.shap_values(X), explainer(X)
    expected = explainer.expected_value
    with caplog.at_level(logging.INFO, "fouriershap"), fs.patched_shap():
        ours = shap.TreeExplainer(model, background)
        found, called = ours.shap_values(X), ours(pd.DataFrame(X, columns=list("abcd")))
    assert messages(caplog) == ["shap.TreeExplainer: computed by fouriershap"] * 2
    assert type(ours) is type(explainer) and ours.model.num_outputs == explainer.model.num_outputs
    assert found.shape == values.shape and found.dtype == values.dtype
    scale = np.abs(values).max()
    np.testing.assert_allclose(found, values, atol=2e-6 * scale)
    np.testing.assert_allclose(ours.expected_value, expected, rtol=1e-5)
    assert type(ours.expected_value) is type(expected)
    np.testing.assert_allclose(called.values, explanation.values, atol=2e-6 * scale)
    np.testing.assert_allclose(called.base_values, explanation.base_values, rtol=1e-5)
    assert called.feature_names == list("abcd")


@pytest.mark.parametrize("name", MODELS)
def test_interactions_like_those_of_shap(name: str, caplog: pytest.LogCaptureFixture) -> None:
    explainer = shap.TreeExplainer(fitted(name))
    pairs = explainer.shap_interaction_values(X[:9])
    with caplog.at_level(logging.INFO, "fouriershap"), fs.patched_shap():
        found = explainer.shap_interaction_values(X[:9])
    assert messages(caplog) == ["shap.TreeExplainer: computed by fouriershap"]
    assert found.shape == pairs.shape and found.dtype == pairs.dtype
    np.testing.assert_allclose(found, pairs, atol=5e-6 * np.abs(pairs).max())


def test_interactions_with_a_background_which_shap_does_not_have() -> None:
    for name in ("forest", "xgboost"):
        explainer = shap.TreeExplainer(fitted(name), X[:30])
        with fs.patched_shap():
            pairs, values = explainer.shap_interaction_values(X[:5]), explainer.shap_values(X[:5])
        want = fs.TreeExplainer(fitted(name), X[:30]).shap_interaction_values(X[:5])
        np.testing.assert_allclose(pairs, want, atol=1e-5)
        np.testing.assert_allclose(pairs.sum(axis=2), values, atol=1e-5)


@pytest.mark.parametrize("output", ["probability", "log_loss"])
def test_other_outputs(output: str) -> None:
    y = (CLASSES > 0).astype(int)
    explainer = shap.TreeExplainer(fitted("xgboost, 2 classes"), X[:30], model_output=output)
    want = explainer.shap_values(X[:20], y[:20])
    with fs.patched_shap():
        found = explainer.shap_values(X[:20], y[:20])
    np.testing.assert_allclose(found, want, atol=1e-6)


def test_exact_where_shap_rounds_thresholds() -> None:
    rows = np.round(X.astype(float), 1)  # most values are also thresholds, which shap rounds to float32
    model = HistGradientBoostingRegressor(max_iter=6, min_samples_leaf=5).fit(rows, Y)
    with fs.patched_shap():
        found = shap.TreeExplainer(model, rows[:20]).shap_values(rows[:9])
    want, _ = brute_force(model, rows[:9], rows[:20])
    np.testing.assert_allclose(found, want[..., 0], atol=1e-12)


@pytest.mark.parametrize("name", ["xgboost", "xgboost, 3 classes", "lightgbm", "forest"])
def test_fewer_trees_and_one_row(name: str) -> None:
    explainer = shap.TreeExplainer(fitted(name))
    rounds = 3 if "classes" not in name else 6
    few = explainer.shap_values(X[:5], tree_limit=rounds, check_additivity=False)
    one = shap.TreeExplainer(fitted(name), X[:30])
    row = one.shap_values(X[3])
    with fs.patched_shap():
        found = explainer.shap_values(X[:5], tree_limit=rounds, check_additivity=False)
        np.testing.assert_allclose(one.shap_values(X[3]), row, atol=1e-6)
    np.testing.assert_allclose(found, few, atol=1e-6)


def test_early_stopping() -> None:
    model = xgboost.XGBRegressor(n_estimators=60, max_depth=3, early_stopping_rounds=2, learning_rate=0.9)
    model.fit(X[:80], Y[:80], eval_set=[(X[80:], Y[80:])], verbose=False)
    assert model.best_iteration + 1 < model.get_booster().num_boosted_rounds()
    explainer = shap.TreeExplainer(model)
    want = explainer.shap_values(X)
    with fs.patched_shap():
        np.testing.assert_allclose(explainer.shap_values(X), want, atol=1e-5)


def test_columns_go_by_position_as_for_shap() -> None:
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = xgboost.XGBRegressor(n_estimators=5).fit(frame, Y)
    explainer, mixed = shap.TreeExplainer(model), frame[list("dcba")]
    want = explainer.shap_values(mixed)
    with fs.patched_shap():
        np.testing.assert_allclose(explainer.shap_values(mixed), want, atol=1e-5)


def test_what_is_left_to_shap(caplog: pytest.LogCaptureFixture) -> None:
    forest, booster = shap.TreeExplainer(fitted("forest")), shap.TreeExplainer(fitted("xgboost"))
    bagged = LGBMRegressor(
        n_estimators=5, boosting_type="rf", bagging_freq=1, bagging_fraction=0.6, verbose=-1
    )
    sums = shap.TreeExplainer(bagged.fit(X, Y))  # LightGBM's contributions are not those of its predictions
    want = (
        forest.shap_values(X, approximate=True),
        booster.shap_values(X, approximate=True),
        sums.shap_values(X),
    )
    with caplog.at_level(logging.INFO, "fouriershap"), fs.patched_shap():
        np.testing.assert_array_equal(forest.shap_values(X, approximate=True), want[0])
        np.testing.assert_array_equal(booster.shap_values(X, approximate=True), want[1])
        np.testing.assert_array_equal(sums.shap_values(X), want[2])
        assert type(shap.Explainer(lambda rows: rows[:, 0], X)).__name__ == "ExactExplainer"
    left = [text.partition("left to shap: ")[2] for text in messages(caplog)]
    assert left[:2] == ["approximate=True"] * 2 and "other values" in left[2] and "ExactExplainer" in left[3]


@pytest.mark.parametrize("n_classes", [1, 3])
def test_linear(n_classes: int, caplog: pytest.LogCaptureFixture) -> None:
    model = LinearRegression().fit(X, Y) if n_classes == 1 else LogisticRegression().fit(X, CLASSES)
    explainer = shap.Explainer(model, X)
    want = explainer(pd.DataFrame(X, columns=list("abcd")))
    with caplog.at_level(logging.INFO, "fouriershap"), fs.patched_shap():
        found = explainer(pd.DataFrame(X, columns=list("abcd")))
        explainer(X, silent=True)
    assert [("left" in text) for text in messages(caplog)] == [False, True]
    for name in ("values", "base_values", "data", "main_effects"):
        np.testing.assert_allclose(getattr(found, name), getattr(want, name), rtol=1e-12)
        assert getattr(found, name).dtype == getattr(want, name).dtype
    for name in ("feature_names", "output_names", "clustering", "hierarchical_values", "error_std"):
        assert getattr(found, name) == getattr(want, name)
    np.testing.assert_array_equal(explainer(X).feature_names, [f"Feature {f}" for f in range(4)])


def test_errors_and_warnings_of_shap() -> None:
    with fs.patched_shap():
        with pytest.raises(Exception, match="not yet supported by TreeExplainer") as caught:
            shap.TreeExplainer(LinearRegression())
        assert type(caught.value).__name__ == "InvalidModelError"
        with pytest.warns(FutureWarning, match="interventional"):
            shap.TreeExplainer(fitted("forest"), feature_perturbation="interventional")
        explainer = shap.TreeExplainer(fitted("forest"), X[:30])
        explainer.expected_value = explainer.expected_value + 1.0
        with pytest.raises(Exception, match="Additivity check failed"):  # shap's own check, of our values
            explainer.shap_values(X)


def test_changed_trees_are_seen() -> None:
    explainer = shap.TreeExplainer(fitted("forest"), X[:30])
    with fs.patched_shap():
        before = explainer.shap_values(X[:5])
        explainer.model.values *= 2.0
        after = explainer.shap_values(X[:5], check_additivity=False)
    np.testing.assert_allclose(after, 2.0 * before, atol=1e-12)


def test_classes_stay_those_of_shap() -> None:
    class Mine(shap.TreeExplainer):  # made before the patch, as by a library
        pass

    own = shap.TreeExplainer
    explainer = Mine(fitted("xgboost"))
    want = explainer.shap_values(X)
    with fs.patched_shap():
        assert shap.TreeExplainer is own is shap.explainers.Tree and isinstance(explainer, shap.TreeExplainer)
        np.testing.assert_allclose(explainer.shap_values(X), want, atol=1e-5)
        other = copy.copy(own(fitted("xgboost")))
        np.testing.assert_allclose(other.shap_values(X), want, atol=1e-5)
        stored = pickle.dumps(own(fitted("forest"), X[:30]))
    assert b"fouriershap" not in stored and pickle.loads(stored).shap_values(X).shape == (120, 4, 3)


def test_patching_and_undoing() -> None:
    calls = vars(shap.LinearExplainer).get("__call__"), shap.Explainer.__init__
    kernels = shap.explainers._tree._cext
    fs.unpatch_shap()  # nothing to undo
    assert not is_patched()
    fs.patch_shap()
    fs.patch_shap()
    with fs.patched_shap(), fs.patched_shap():
        assert is_patched()
    assert is_patched()  # as before the block
    fs.unpatch_shap()
    assert not is_patched() and shap.explainers._tree._cext is kernels
    assert (vars(shap.LinearExplainer).get("__call__"), shap.Explainer.__init__) == calls
    with pytest.raises(KeyError), fs.patched_shap():
        fs.unpatch_shap()  # the block goes on
        assert is_patched()
        raise KeyError
    assert not is_patched()


def test_threads() -> None:
    explainer = shap.TreeExplainer(fitted("forest"), X[:30])
    want = explainer.shap_values(X)

    def work(_: int) -> bool:
        with fs.patched_shap():
            assert is_patched()
            return np.allclose(explainer.shap_values(X), want, atol=1e-6)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(40)))
    assert not is_patched()
