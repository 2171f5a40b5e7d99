import subprocess
import sys

import numpy as np
import pytest
import shap
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import (
    AdaBoostRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomTreesEmbedding,
)
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

import fouriershap as fs
from fouriershap._base.errors import InputError, UnsupportedModelError
from fouriershap._trees.readers import read_model
from models import CASES, LABELS, numbers, rows_of, target, version_of
from reader_checks import (
    EXTREME,
    assert_same_output,
    assert_well_formed,
    expected_value_by_cover,
    rows,
    rows_reaching,
    values_beside_thresholds,
)

NAMES = list(CASES["sklearn"])


def _pools(name, ensemble):
    pools = []
    for f in range(ensemble.n_features):
        if f in ensemble.vocabularies:
            labels = list(ensemble.vocabularies[f])
            unseen = [] if "frame" in name else [labels[0] + 0.25, -7.0, 300.0]
            pools.append([*labels, *unseen, np.nan])
        else:
            pools.append(values_beside_thresholds(ensemble, f))
            if "HistGradientBoosting" in name:
                pools[-1] += [*EXTREME, np.nan]
            elif "missing" in name:
                pools[-1].append(np.nan)
    return pools


@pytest.mark.parametrize("name", NAMES)
def test_training_rows(name):
    model, X, _ = CASES["sklearn"][name]()
    ensemble = read_model(model)
    assert_same_output(model, ensemble, X, 1e-12)
    assert_well_formed(ensemble)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_rows_beside_thresholds(name, data):
    model, X, _ = CASES["sklearn"][name]()
    ensemble = read_model(model)
    assert_same_output(model, ensemble, data.draw(rows(ensemble, _pools(name, ensemble), X)), 1e-12)


def test_rows_rounded_to_float32_tie_as_in_scikit_learn():
    # 0.15 is above the double 0.15 once it is rounded to float32: what decides is the rounded row.
    X = np.array([[0.1], [0.2]], dtype=np.float64)
    model = DecisionTreeRegressor().fit(X, [0.0, 1.0])
    threshold = model.tree_.threshold[0]
    rows_around = threshold + np.linspace(-1e-8, 1e-8, 41)[:, None]
    np.testing.assert_array_equal(read_model(model).predict(rows_around)[:, 0], model.predict(rows_around))


# Before 1.8 trees of scikit-learn sent some missing values elsewhere in training than in predicting.
COUNTED = ["DecisionTreeClassifier missing"] * (version_of("scikit-learn") >= (1, 8))


@pytest.mark.parametrize(
    "name", [*COUNTED, "HistGradientBoostingRegressor frame", "GradientBoostingRegressor"]
)
def test_cover_counts_the_training_rows(name):
    model, X, _ = CASES["sklearn"][name]()
    ensemble = read_model(model)
    np.testing.assert_array_equal(ensemble.cover, rows_reaching(ensemble, rows_of(ensemble, X)))


# What shap reads of these: no categories, no multi-class boosting, no init="zero".
PATH_DEPENDENT = [
    n for n in NAMES if not any(w in n for w in ("categories", "frame", "3 classes", "zero init"))
]


@pytest.mark.parametrize("name", PATH_DEPENDENT)
def test_cover_gives_the_base_value_of_shap(name):
    model, _, _ = CASES["sklearn"][name]()
    expected = shap.TreeExplainer(model).expected_value
    np.testing.assert_allclose(expected_value_by_cover(read_model(model)), np.ravel(expected), rtol=1e-5)


def test_isolation_forest_is_explained_as_shap_explains_it():
    model, X, _ = CASES["sklearn"]["IsolationForest half the columns"]()
    explainer = shap.TreeExplainer(model)
    total = explainer.shap_values(X[:20]).sum(axis=1) + explainer.expected_value
    np.testing.assert_allclose(read_model(model).predict(X[:20])[:, 0], total, rtol=1e-5)


def test_labels_of_a_frame():
    ensemble = read_model(CASES["sklearn"]["HistGradientBoostingRegressor frame"]().model)
    assert ensemble.feature_names == ("a", "colour", "b", "size")
    assert sorted(ensemble.vocabularies[1]) == sorted(LABELS)
    assert ensemble.vocabularies[3] == (10, 20, 30, 40)
    assert ensemble.numbers_are_labels


def test_class_names():
    X = numbers()
    model = RandomForestClassifier(n_estimators=2).fit(X, np.where(X[:, 0] > 0, "yes", "no"))
    assert read_model(model).output_names == ("no", "yes")


def test_stump_without_a_split():
    X = numbers()
    ensemble = read_model(HistGradientBoostingRegressor().fit(X[:5], np.ones(5)))
    np.testing.assert_array_equal(ensemble.predict(X), np.ones((len(X), 1)))


def test_what_cannot_be_read():
    X = numbers()
    y = target(X)
    with pytest.raises(InputError, match="DecisionTreeRegressor that is not fitted"):
        read_model(DecisionTreeRegressor())
    for unfitted in (GradientBoostingRegressor(), HistGradientBoostingRegressor(), IsolationForest()):
        with pytest.raises(InputError, match="not fitted"):
            read_model(unfitted)
    for other in (LinearRegression().fit(X, y), AdaBoostRegressor().fit(X, y), object(), None):
        with pytest.raises(UnsupportedModelError, match="no tree model"):
            read_model(other)
    with pytest.raises(UnsupportedModelError, match="no tree model"):
        read_model(RandomTreesEmbedding(n_estimators=2).fit(X))
    with pytest.raises(UnsupportedModelError, match="initial estimator"):
        read_model(GradientBoostingRegressor(init=LinearRegression(), n_estimators=2).fit(X, y))
    two = np.stack([y > 0, y > 1], axis=1)
    with pytest.raises(UnsupportedModelError, match="2 targets"):
        read_model(RandomForestClassifier(n_estimators=2).fit(X, two))


def test_subclasses():
    class Renamed(DecisionTreeRegressor):
        pass

    class Squared(Renamed):
        def predict(self, X):
            return super().predict(X) ** 2

    X = numbers()
    np.testing.assert_array_equal(
        read_model(Renamed().fit(X, target(X))).predict(X)[:, 0], Renamed().fit(X, target(X)).predict(X)
    )
    with pytest.raises(UnsupportedModelError, match=r"Squared.*own predict"):
        read_model(Squared().fit(X, target(X)))


def test_a_subclass_means_what_its_base_means():
    class Churn(GradientBoostingClassifier):
        pass

    class Robust(GradientBoostingRegressor):
        pass

    X = numbers()
    assert read_model(Churn(n_estimators=2).fit(X, target(X) > 0)).objective == "binary"
    assert read_model(Robust(n_estimators=2, loss="huber").fit(X, target(X))).objective == ""


@pytest.mark.parametrize(("n_columns", "max_features"), [(1, 1.0), (4, 1)])
def test_isolation_trees_of_one_column(n_columns, max_features):
    X = numbers()[:, :n_columns]
    model = IsolationForest(n_estimators=5, max_features=max_features, random_state=0).fit(X)
    values = fs.TreeExplainer(model, X[:20]).shap_values(X[:5])
    np.testing.assert_allclose(
        values.sum(axis=1) + fs.TreeExplainer(model, X[:20]).expected_value,
        read_model(model).predict(X[:5])[:, 0],
        atol=1e-5,
    )


def test_no_library_is_imported():
    script = "import sys, fouriershap._trees; print([m for m in sys.modules if m in {!r}])"
    libraries = {"sklearn", "xgboost", "lightgbm", "catboost", "treelite", "pandas", "scipy"}
    run = [sys.executable, "-c", script.format(libraries)]
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_rows_of_another_width_are_refused():
    ensemble = read_model(CASES["sklearn"]["DecisionTreeRegressor"]().model)
    with pytest.raises(InputError, match=r"\(2, 3\).*\(n_rows, 4\)"):
        ensemble.predict(np.zeros((2, 3)))
    assert read_model(ensemble) is ensemble
