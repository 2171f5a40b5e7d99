"""What is peculiar to XGBoost; `test_readers.py` has what every reader must do."""

import json

import numpy as np
import pandas as pd
import pytest
import xgboost

from fouriershap import InputError, read_model
from fouriershap._base.errors import UnsupportedModelError
from models import CASES, LABELS, XGBOOST_KEEPS_LABELS, numbers, raw_output, target

RTOL = 1e-6  # XGBoost adds up in float32


def test_early_stopping_is_followed_as_each_interface_follows_it():
    estimator = CASES["xgboost"]["early stopping"]().model
    assert read_model(estimator).trees.n_trees == estimator.best_iteration + 1
    booster = estimator.get_booster()
    assert read_model(booster).trees.n_trees == booster.num_boosted_rounds()


@pytest.mark.skipif(not XGBOOST_KEEPS_LABELS, reason="this XGBoost keeps no labels")
def test_codes_of_labels():
    ensemble = read_model(CASES["xgboost"]["frame"]().model)
    assert ensemble.rules.vocabularies[1] == tuple(LABELS)
    codes = ensemble.rules.category_codes(1, np.array(["green", None, "red", "green"], dtype=object))
    np.testing.assert_array_equal(codes, [1, np.nan, 0, 1])
    with pytest.raises(InputError, match="'unseen', which is not in the model's training data"):
        ensemble.rules.category_codes(1, np.array(["green", "unseen"], dtype=object))
    np.testing.assert_array_equal(ensemble.rules.category_codes(3, np.array([30, 10])), [2.0, 0.0])


def test_labels_beyond_ascii():
    """XGBoost before 3.3 stores where they begin wrongly: these are left out."""
    X = pd.DataFrame({"colour": pd.Categorical(["grün", "rot", "blau", "rot"] * 20)})
    y = (X["colour"] == "rot").to_numpy(dtype=float)
    model = xgboost.XGBRegressor(n_estimators=3, enable_categorical=True).fit(X, y)
    ensemble = read_model(model)
    is_right = tuple(int(part) for part in xgboost.__version__.split(".")[:2]) >= (3, 3)
    assert ensemble.rules.vocabularies == ({0: ("blau", "grün", "rot")} if is_right else {})
    codes = X["colour"].cat.codes.to_numpy()[:, None]
    np.testing.assert_allclose(ensemble.predict(codes), raw_output(model, X), rtol=RTOL)


def test_base_score_as_older_versions_store_it(tmp_path):
    model, X, _ = CASES["xgboost"]["classifier base_score"]()
    document = json.loads(bytes(model.get_booster().save_raw("json")))
    parameters = document["learner"]["learner_model_param"]
    parameters["base_score"] = parameters["base_score"].strip("[]")
    document["learner"]["gradient_booster"]["model"].pop("cats", None)
    (tmp_path / "old.json").write_text(json.dumps(document))
    np.testing.assert_array_equal(read_model(tmp_path / "old.json").predict(X), read_model(model).predict(X))


def test_linear_boosters_are_read_as_products(tmp_path):
    X = numbers()
    model = xgboost.XGBRegressor(booster="gblinear", n_estimators=2).fit(X, target(X))
    np.testing.assert_allclose(read_model(model).predict(X)[:, 0], model.predict(X), rtol=1e-5, atol=1e-5)
    model.save_model(tmp_path / "linear.json")
    with pytest.raises(UnsupportedModelError, match="gblinear"):
        read_model(tmp_path / "linear.json")


def test_labels_that_are_all_alike():
    X = numbers()
    booster = xgboost.train({"objective": "binary:logistic"}, xgboost.DMatrix(X, np.zeros(len(X))), 2)
    margin = booster.predict(xgboost.DMatrix(X), output_margin=True)
    np.testing.assert_allclose(read_model(booster).predict(X)[:, 0], margin, rtol=1e-5)
