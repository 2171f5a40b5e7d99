"""What is peculiar to scikit-learn; `test_readers.py` has what every reader must do."""

import numpy as np
import pytest
import shap
from sklearn.cluster import KMeans
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomTreesEmbedding,
)
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

import fouriershap as fs
from fouriershap import read_model
from fouriershap._base.errors import UnsupportedModelError
from fouriershap._base.links import IDENTITY, LOGISTIC
from models import CASES, numbers, target


def test_rows_rounded_to_float32_tie_as_in_scikit_learn():
    # 0.15 is above the double 0.15 once it is rounded to float32: what decides is the rounded row.
    X = np.array([[0.1], [0.2]], dtype=np.float64)
    model = DecisionTreeRegressor().fit(X, [0.0, 1.0])
    threshold = model.tree_.threshold[0]
    rows_around = threshold + np.linspace(-1e-8, 1e-8, 41)[:, None]
    np.testing.assert_array_equal(read_model(model).predict(rows_around)[:, 0], model.predict(rows_around))


def test_isolation_forest_is_explained_as_shap_explains_it():
    model, X, _ = CASES["sklearn"]["IsolationForest half the columns"]()
    explainer = shap.TreeExplainer(model)
    total = explainer.shap_values(X[:20]).sum(axis=1) + explainer.expected_value
    np.testing.assert_allclose(read_model(model).predict(X[:20])[:, 0], total, rtol=1e-5)


def test_stump_without_a_split():
    X = numbers()
    ensemble = read_model(HistGradientBoostingRegressor().fit(X[:5], np.ones(5)))
    np.testing.assert_array_equal(ensemble.predict(X), np.ones((len(X), 1)))


def test_what_cannot_be_read():
    X = numbers()
    y = target(X)
    for other in (KMeans(2).fit(X), object(), None):
        with pytest.raises(UnsupportedModelError, match="cannot be read"):
            read_model(other)
    with pytest.raises(UnsupportedModelError, match="cannot be read"):
        read_model(RandomTreesEmbedding(n_estimators=2).fit(X))
    with pytest.raises(UnsupportedModelError, match="initial estimator"):
        read_model(GradientBoostingRegressor(init=LinearRegression(), n_estimators=2).fit(X, y))


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
    assert read_model(Churn(n_estimators=2).fit(X, target(X) > 0)).link is LOGISTIC
    assert read_model(Robust(n_estimators=2, loss="huber").fit(X, target(X))).link is IDENTITY


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


def test_thresholds_that_are_no_number():
    """scikit-learn may take the middle of -inf and inf, NaN, for a threshold: no number goes left there."""
    X = np.random.default_rng(0).normal(size=(200, 2))
    X[::9] = np.nan
    model = HistGradientBoostingRegressor(max_iter=5, max_leaf_nodes=4).fit(X, np.nan_to_num(X).sum(axis=1))
    for (predictor,) in model._predictors[::2]:
        predictor.nodes["num_threshold"][0] = np.nan
    ensemble = read_model(model)
    np.testing.assert_allclose(ensemble.predict(X)[:, 0], model.predict(X), rtol=1e-12)
    assert fs.TreeExplainer(model, X).checked
