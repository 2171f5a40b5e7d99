import json

import numpy as np
import pandas as pd
import pytest
import xgboost
from hypothesis import given, settings
from hypothesis import strategies as st

from fouriershap._base.errors import InputError, UnsupportedModelError
from fouriershap._trees.labels import category_codes
from fouriershap._trees.readers import read_model
from models import CASES, LABELS, XGBOOST_KEEPS_LABELS, numbers, raw_output, rows_of, target
from reader_checks import (
    assert_same_output,
    assert_well_formed,
    expected_value_by_cover,
    rows,
    rows_reaching,
    values_beside_thresholds,
)

NAMES = list(CASES["xgboost"])
RTOL = 1e-6  # XGBoost adds up in float32


def _pools(name, ensemble):
    pools = []
    for f in range(ensemble.n_features):
        if f in ensemble.vocabularies:  # XGBoost refuses labels that it does not know
            pools.append([*ensemble.vocabularies[f], None])
        elif ensemble.is_categorical[f]:
            pools.append([*map(float, range(13)), -0.0, -0.5, -1.0, -3.0, 40.0, 1e6, 3e7, 2.5, np.nan])
        else:
            pools.append([*values_beside_thresholds(ensemble, f), np.nan])
    return pools


@pytest.mark.parametrize("name", NAMES)
def test_training_rows(name):
    model, X, _ = CASES["xgboost"][name]()
    ensemble = read_model(model)
    assert_same_output(model, ensemble, X, RTOL)
    assert_well_formed(ensemble)
    assert ensemble.computes_in == np.float32


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_rows_beside_thresholds(name, data):
    model, X, _ = CASES["xgboost"][name]()
    ensemble = read_model(model)
    assert_same_output(model, ensemble, data.draw(rows(ensemble, _pools(name, ensemble), X)), RTOL)


@pytest.mark.parametrize("name", ["regressor", "lossguide", "categories", "frame", "missing=0.5"])
def test_cover_counts_the_training_rows(name):
    model, X, _ = CASES["xgboost"][name]()
    ensemble = read_model(model)
    np.testing.assert_array_equal(ensemble.cover, rows_reaching(ensemble, rows_of(ensemble, X)))


@pytest.mark.parametrize(
    "name",
    ["regressor", "classifier", "3 classes", "parallel trees", "dart", "2 targets", "categories", "cox"],
)
def test_cover_gives_the_base_value_of_path_dependent_shap_values(name):
    model, X, _ = CASES["xgboost"][name]()
    booster = model.get_booster()
    rows_given = xgboost.DMatrix(X[:1], feature_types=booster.feature_types)
    expected = np.ravel(booster.predict(rows_given, pred_contribs=True)[..., -1])
    np.testing.assert_allclose(expected_value_by_cover(read_model(model)), expected, rtol=1e-4, atol=1e-5)


def test_early_stopping_is_followed_as_each_interface_follows_it():
    estimator = CASES["xgboost"]["early stopping"]().model
    assert read_model(estimator).n_trees == estimator.best_iteration + 1
    booster = estimator.get_booster()
    assert read_model(booster).n_trees == booster.num_boosted_rounds()


@pytest.mark.skipif(not XGBOOST_KEEPS_LABELS, reason="this XGBoost keeps no labels")
def test_labels_of_a_frame():
    ensemble = read_model(CASES["xgboost"]["frame"]().model)
    assert ensemble.feature_names == ("a", "colour", "b", "size")
    assert ensemble.vocabularies == {1: tuple(LABELS), 3: (10, 20, 30, 40)}
    codes = category_codes(ensemble, 1, np.array(["green", None, "red", "unseen", "green"], dtype=object))
    np.testing.assert_array_equal(codes, [1, np.nan, 0, -1, 1])
    np.testing.assert_array_equal(category_codes(ensemble, 3, np.array([2, 0])), [2.0, 0.0])


def test_labels_that_xgboost_stores_wrongly_are_left_out():
    X = pd.DataFrame({"colour": pd.Categorical(["grün", "rot", "blau", "rot"] * 20)})
    y = (X["colour"] == "rot").to_numpy(dtype=float)
    model = xgboost.XGBRegressor(n_estimators=3, enable_categorical=True).fit(X, y)
    ensemble = read_model(model)
    assert ensemble.vocabularies == {}
    codes = X["colour"].cat.codes.to_numpy()[:, None]
    np.testing.assert_allclose(ensemble.predict(codes), raw_output(model, X), rtol=RTOL)


@pytest.mark.parametrize("suffix", ["json", "ubj"])
def test_files(tmp_path, suffix):
    model, X, _ = CASES["xgboost"]["categories"]()
    path = tmp_path / f"model.{suffix}"
    model.save_model(path)
    for given_path in (path, str(path)):
        np.testing.assert_array_equal(read_model(given_path).predict(X), read_model(model).predict(X))


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


def test_base_score_as_older_versions_store_it(tmp_path):
    model, X, _ = CASES["xgboost"]["classifier base_score"]()
    document = json.loads(bytes(model.get_booster().save_raw("json")))
    parameters = document["learner"]["learner_model_param"]
    parameters["base_score"] = parameters["base_score"].strip("[]")
    document["learner"]["gradient_booster"]["model"].pop("cats", None)
    (tmp_path / "old.json").write_text(json.dumps(document))
    np.testing.assert_array_equal(read_model(tmp_path / "old.json").predict(X), read_model(model).predict(X))


def test_what_cannot_be_read():
    X = numbers()
    with pytest.raises(InputError, match="XGBRegressor that is not fitted"):
        read_model(xgboost.XGBRegressor())
    with pytest.raises(UnsupportedModelError, match="gblinear"):
        read_model(xgboost.XGBRegressor(booster="gblinear", n_estimators=2).fit(X, target(X)))


def test_labels_that_are_all_alike():
    X = numbers()
    booster = xgboost.train({"objective": "binary:logistic"}, xgboost.DMatrix(X, np.zeros(len(X))), 2)
    margin = booster.predict(xgboost.DMatrix(X), output_margin=True)
    np.testing.assert_allclose(read_model(booster).predict(X)[:, 0], margin, rtol=1e-5)
