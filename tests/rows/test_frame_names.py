"""Frames as people have them: columns without names, batches of Arrow, categories that mean something."""

from __future__ import annotations

import lightgbm
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse
from sklearn.ensemble import RandomForestRegressor

import fouriershap as fs
from fitted_models import explain_fitted

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 3))
MODEL = RandomForestRegressor(6, max_depth=3, random_state=0).fit(X, X[:, 0] * X[:, 1])
NAMED = pd.DataFrame(X, columns=["a", "b", "c"])


def test_columns_that_are_numbered():
    numbered = pd.DataFrame(X)
    expected = fs.TreeExplainer(MODEL, X).shap_values(X)
    explainer = fs.TreeExplainer(MODEL, numbered)
    np.testing.assert_array_equal(explainer.shap_values(numbered), expected)
    assert explainer.feature_names == ("0", "1", "2")
    answer = pd.concat(explainer.explain_batches([numbered[:30], numbered[30:]]))
    np.testing.assert_allclose(answer[["0", "1", "2"]], expected, atol=1e-7)
    assert list(explainer.frame(numbered[:2], top_k=1)["row"]) == [0, 1]


def test_a_black_box_sees_the_numbers_that_name_its_columns():
    numbered = pd.DataFrame(X)
    seen = set()

    def predict(rows):
        seen.update(rows.columns)
        return rows[0] * rows[1]

    explainer = explain_fitted(
        predict, numbered[:10], data=numbered, method="trees", budget=400, random_state=0
    )
    assert seen == {0, 1, 2}
    assert explainer.shap_values(numbered[:3]).shape == (3, 3)


def test_two_columns_of_one_name():
    twice = pd.DataFrame(X, columns=[1, "1", "b"])
    for make in (
        lambda: fs.TreeExplainer(MODEL, twice),
        lambda: explain_fitted(lambda rows: rows, twice),
    ):
        with pytest.raises(fs.InputError, match="two columns of one name"):
            make()


def test_record_batches_have_names():
    model = RandomForestRegressor(6, max_depth=3, random_state=0).fit(NAMED, X[:, 0])
    explainer = fs.TreeExplainer(model, NAMED)
    expected = explainer.shap_values(NAMED)
    np.testing.assert_array_equal(explainer.shap_values(pa.RecordBatch.from_pandas(NAMED)), expected)
    mixed = pa.RecordBatch.from_pandas(NAMED[["c", "b", "a"]])
    np.testing.assert_array_equal(explainer.shap_values(mixed), expected)


def test_batches_of_sparse_matrices():
    explainer = fs.TreeExplainer(MODEL, X)
    sparse = scipy.sparse.csr_matrix(np.where(np.abs(X) > 1, X, 0))
    expected = explainer.shap_values(sparse)
    answer = np.concatenate(list(explainer.explain_batches([sparse[:50], sparse[50:]])))
    np.testing.assert_allclose(answer[:, :3], expected, atol=1e-7)
    assert len(next(iter(explainer.explain_batches([sparse[:5]], layout="array")))) == 5
    with pytest.raises(fs.InputError, match=r"`\[batch\]` for one"):
        explainer.explain_batches(sparse)


def test_a_missing_value_of_pandas_among_objects():
    from sklearn.ensemble import HistGradientBoostingRegressor

    model = HistGradientBoostingRegressor(max_iter=5).fit(X, X[:, 0])
    explainer = fs.TreeExplainer(model, X)
    rows = np.array([[1.0, pd.NA, 2.0]], dtype=object)
    np.testing.assert_array_equal(
        explainer.shap_values(rows), explainer.shap_values(np.array([[1.0, np.nan, 2.0]]))
    )


def labelled(n=300):
    """A frame with categories that LightGBM stores without saying which columns they are of."""
    return pd.DataFrame(
        {
            "number": rng.integers(0, 5, n),
            "size": pd.Categorical(rng.choice(["S", "M", "L"], n), categories=["S", "M", "L"], ordered=True),
            "same": pd.Categorical(["only"] * n),
            "city": pd.Categorical(rng.choice(["a", "b", "c", "d"], n)),
        }
    )


@pytest.mark.parametrize("categorical", ["auto", ["number", "city"], ["number"]])
def test_lightgbm_knows_categories_by_the_order_of_columns(categorical, tmp_path):
    frame = labelled()
    y = (frame["city"] == "b") * 2.0 + (frame["size"] == "L") + 0.3 * frame["number"]
    model = lightgbm.LGBMRegressor(n_estimators=12, min_child_samples=5, verbose=-1)
    model.fit(frame, y, categorical_feature=categorical)
    explainer = fs.TreeExplainer(model, frame)
    some = frame.iloc[[3, 50, 99]].copy()
    for column in ("city", "size", "same"):  # categories that the rows do not need
        some[column] = pd.Categorical(some[column].astype(str))
    explainer.save(tmp_path / "m.fshap")
    for one in (explainer, fs.load(tmp_path / "m.fshap")):
        sums = one.shap_values(some).sum(axis=1) + one.expected_value
        np.testing.assert_allclose(sums, model.predict(some), atol=1e-6)


def test_labels_that_nobody_knows_are_refused():
    frame = labelled()
    y = (frame["city"] == "b") * 2.0 + (frame["size"] == "L")
    model = lightgbm.LGBMRegressor(n_estimators=5, min_child_samples=5, verbose=-1).fit(frame, y)
    explainer = fs.TreeExplainer(model, frame)
    rows = frame.assign(same=0, size=frame["size"].cat.codes)  # one categorical column of three
    with pytest.raises(fs.InputError, match="which labels"):
        explainer.shap_values(rows)


def test_a_background_that_changes_later():
    from sklearn.ensemble import HistGradientBoostingRegressor

    model = HistGradientBoostingRegressor(max_iter=5).fit(X, X[:, 0])
    background = X.copy()
    explainer = fs.TreeExplainer(model, background)
    expected = fs.TreeExplainer(model, X).compile().shap_values(X)
    background[:] = 0.0
    np.testing.assert_array_equal(explainer.compile().shap_values(X), expected)
