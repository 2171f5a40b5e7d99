"""What is peculiar to LightGBM; `test_readers.py` has what every reader must do."""

import re

import lightgbm
import numpy as np
import pandas as pd
import pytest

import fouriershap as fs
from fouriershap import read_model
from fouriershap._base.errors import UnsupportedModelError
from models import CASES, frame, frame_target, numbers, target
from reader_checks import assert_same_output


def test_a_forest_gives_what_predict_gives():
    model, X, _ = CASES["lightgbm"]["rf"]()
    np.testing.assert_allclose(read_model(model).predict(X)[:, 0], model.predict(X), rtol=1e-12)


def test_zeros_count_as_missing_where_the_model_says_so():
    assert read_model(CASES["lightgbm"]["zero_as_missing"]().model).rules.zero_as_missing == (0, 1, 2, 3)
    assert not read_model(CASES["lightgbm"]["regressor"]().model).rules.zero_as_missing


def test_thresholds_at_the_edge_of_the_zero_band():
    # Zero is a bin of its own, bounded by +-1e-35 as a float32: thresholds lie on these bounds.
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 0.0, 1.0], size=(200, 2))
    y = (X == 0) @ [1.0, 3.0] + X @ [0.1, 0.2]
    model = lightgbm.LGBMRegressor(n_estimators=4, verbose=-1, min_child_samples=2, n_jobs=1).fit(X, y)
    ensemble = read_model(model)
    edge = float(np.float32(1e-35))
    pool = [edge, -edge, 1e-36, -1e-36, 0.0, -0.0, np.nextafter(edge, 1), np.nextafter(-edge, -1), np.nan]
    grid = np.stack(np.meshgrid(pool, pool), axis=-1).reshape(-1, 2)
    assert np.abs(ensemble.trees.threshold[ensemble.trees.feature >= 0]).min() < 1e-30
    assert_same_output(model, ensemble, grid, 1e-12)


def test_a_truncated_text_is_refused_wherever_it_is_cut(tmp_path):
    case = CASES["lightgbm"]["frame"]()
    text, path = case.model.booster_.model_to_string(), tmp_path / "model.txt"
    ends = {text.index("\nend of parameters") + n for n in (18, 19, 20)}  # as LightGBM's own tools end a file
    cuts = {m.start() for m in re.finditer("\n", text)} | set(range(0, len(text) - 1, 97))
    for cut in sorted(cuts - ends - {len(text) - 1}):
        path.write_text(text[:cut])
        with pytest.raises(fs.InputError, match=r"does not read as a model|not one that LightGBM"):
            read_model(path)
    path.write_text(text.replace("leaf_value=", "leaf_value= ", 1))
    with pytest.raises(fs.InputError, match="tree_sizes"):
        read_model(path)


def test_labels_are_left_out_where_their_columns_are_not_known():
    X = frame()
    X["size"] = pd.Categorical(X["size"], ordered=True)  # coded, but split as a number
    model = lightgbm.LGBMRegressor(n_estimators=2, verbose=-1).fit(X, frame_target(frame()))
    assert read_model(model).rules.vocabularies == {}


def test_mixed_kinds_of_missing_values_are_refused():
    X = numbers(missing=True)
    X[:50] = 0.0
    first = lightgbm.LGBMRegressor(n_estimators=3, verbose=-1, zero_as_missing=True).fit(X, target(X))
    both = lightgbm.LGBMRegressor(n_estimators=3, verbose=-1).fit(X, target(X), init_model=first)
    with pytest.raises(UnsupportedModelError, match="zero_as_missing"):
        read_model(both)


def test_a_feature_that_is_number_and_category_is_refused():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 6, 300), rng.normal(size=300)]).astype(float)
    y = X[:, 0] + (X[:, 0] == 3) * 2 + X[:, 1]
    settings = {"verbose": -1, "min_data_in_leaf": 5, "min_data_per_group": 5}
    first = lightgbm.train(settings, lightgbm.Dataset(X, y, free_raw_data=False), 3)
    data = lightgbm.Dataset(X, y, categorical_feature=[0], free_raw_data=False)
    both = lightgbm.train(settings, data, 3, init_model=first)
    with pytest.raises(UnsupportedModelError, match="feature 0 both as a number and as a category"):
        fs.TreeExplainer(both, X)
