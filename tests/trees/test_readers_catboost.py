"""What is peculiar to CatBoost; `test_readers.py` has what every reader must do."""

import catboost
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fouriershap import read_model
from fouriershap._base.errors import UnsupportedModelError
from models import CASES, LABELS, numbers, raw_output, target
from reader_checks import assert_same_output

QUIET = {"verbose": 0, "allow_writing_files": False, "thread_count": 1}


@settings(max_examples=25, deadline=None)
@given(labels=st.lists(st.text(max_size=90), min_size=2, max_size=6, unique=True))
def test_hashes_of_labels(labels):
    # A one-hot split tells one label from the others only if our hash of it is CatBoost's.
    labels = [label.replace("\0", " ").encode("utf-8", "ignore").decode() for label in labels]
    X = pd.DataFrame({"label": labels * 20})
    y = X["label"].map({label: float(i**2) for i, label in enumerate(labels)})
    if y.nunique() < 2:
        return
    model = catboost.CatBoostRegressor(iterations=6, depth=3, one_hot_max_size=20, **QUIET)
    model.fit(X, y, cat_features=["label"])
    ensemble = read_model(model)
    assert ensemble.trees.is_categorical.all()
    assert np.unique(raw_output(model, X)).size > 1
    np.testing.assert_allclose(ensemble.predict(X), raw_output(model, X), rtol=1e-12)


@pytest.mark.parametrize("length", [1, 3, 4, 8, 9, 16, 17, 32, 33, 64, 65, 128, 129, 200])
def test_hashes_of_every_length_of_label(length):
    rng = np.random.default_rng(length)
    labels = ["".join(rng.choice(list("abcdefghij"), length)) for _ in range(2)] + ["é" * length]
    X = pd.DataFrame({"label": [labels[0], labels[1], labels[2]] * 20})
    model = catboost.CatBoostRegressor(iterations=6, depth=3, one_hot_max_size=20, **QUIET)
    model.fit(X, np.tile([0.0, 5.0, 9.0], 20), cat_features=["label"])
    ensemble = read_model(model)
    assert np.unique(raw_output(model, X)).size == 3
    np.testing.assert_allclose(ensemble.predict(X), raw_output(model, X), rtol=1e-12)


def test_numbers_are_labels():
    ensemble = read_model(CASES["catboost"]["frame"]().model)
    assert ensemble.rules.labels.hashed
    assert ensemble.feature_names == ("a", "colour", "b", "size")
    expected = ensemble.rules.category_codes(3, np.array(["10", "20", "77"]))
    for dtype in (np.int64, np.uint8, object):
        np.testing.assert_array_equal(
            ensemble.rules.category_codes(3, np.array([10, 20, 77], dtype=dtype)), expected
        )
    assert expected[2] == -1


def test_scale_and_bias():
    model, X, _ = CASES["catboost"]["SymmetricTree"]()
    scaled = model.copy()
    scaled.set_scale_and_bias(2.5, -7.0)
    assert_same_output(scaled, read_model(scaled), X, 1e-12)


def test_what_cannot_be_read():
    X = numbers()
    labels = pd.DataFrame({"a": X[:, 0], "colour": np.resize(LABELS, len(X))})
    y = target(X) + labels["colour"].str.len()
    with pytest.raises(UnsupportedModelError, match="text features"):
        read_model(catboost.CatBoostRegressor(iterations=5, **QUIET).fit(labels, y, text_features=["colour"]))
