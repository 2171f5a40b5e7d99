"""What XGBoost has stored in different ways from version to version, on whatever version is installed."""

import json
import struct
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import xgboost

from fouriershap import read_model
from fouriershap._base.errors import UnsupportedModelError
from models import CASES, classes, numbers, raw_output, target
from reader_checks import assert_same_output

DARTS = ["dart", "dart 3 classes"]
LAYOUTS = ["before 3.3", "3.3", "3.4"]
RTOL = 1e-6


def document_of(model: Any) -> dict[str, Any]:
    booster = model.get_booster() if hasattr(model, "get_booster") else model
    return json.loads(bytes(booster.save_raw("json")))


def laid_out(document: dict[str, Any], layout: str) -> dict[str, Any]:
    """A dart model with its weights where a version keeps them."""
    document = deepcopy(document)
    booster = document["learner"]["gradient_booster"]
    inner = booster.get("gbtree", booster)["model"]
    weights = booster.pop("weight_drop", None) or inner.pop("weight_drop")
    if layout == "before 3.3":
        parts = {"name": "dart", "gbtree": {"name": "gbtree", "model": inner}, "weight_drop": weights}
    elif layout == "3.3":
        parts = {"name": "gbtree", "model": inner, "weight_drop": weights}
    else:
        parts = {"name": "gbtree", "model": inner | {"weight_drop": weights}}
    document["learner"]["gradient_booster"] = parts
    return document


def ubjson(value: Any) -> bytes:
    """A document in binary, arrays untyped: as XGBoost writes the weights."""
    if isinstance(value, dict):
        return b"{" + b"".join(_sized(key) + ubjson(part) for key, part in value.items()) + b"}"
    if isinstance(value, list):
        return b"[#" + b"L" + struct.pack(">q", len(value)) + b"".join(map(ubjson, value))
    if isinstance(value, str):
        return b"S" + _sized(value)
    if isinstance(value, bool) or value is None:
        return {True: b"T", False: b"F", None: b"Z"}[value]
    return b"D" + struct.pack(">d", value) if isinstance(value, float) else b"L" + struct.pack(">q", value)


def _sized(text: str) -> bytes:
    return b"L" + struct.pack(">q", len(text.encode())) + text.encode()


@pytest.mark.parametrize("name", DARTS)
@pytest.mark.parametrize("suffix", ["json", "ubj"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_dart_in_the_layout_of_every_version(tmp_path, layout, suffix, name):
    model, X, _ = CASES["xgboost"][name]()
    document = laid_out(document_of(model), layout)
    path = tmp_path / f"model.{suffix}"
    path.write_bytes(json.dumps(document).encode() if suffix == "json" else ubjson(document))
    ensemble = read_model(path)
    assert_same_output(model, ensemble, X, RTOL)
    assert ensemble.kind == "xgboost dart"


@pytest.mark.parametrize("name", DARTS)
def test_dart_of_the_installed_version(tmp_path, name):
    model, X, _ = CASES["xgboost"][name]()
    booster = model.get_booster()
    for suffix in ("json", "ubj"):
        model.save_model(tmp_path / f"estimator.{suffix}")
        booster.save_model(tmp_path / f"booster.{suffix}")
    for given in (model, booster, *sorted(tmp_path.iterdir())):
        ensemble = read_model(given)
        assert_same_output(model, ensemble, X, RTOL)
        assert ensemble.kind == "xgboost dart"


def test_trees_without_a_weight_weigh_one(tmp_path):
    document = document_of(CASES["xgboost"]["regressor"]().model)
    inner = document["learner"]["gradient_booster"]["model"]
    inner["weight_drop"] = [1.0] * (len(inner["trees"]) - 3)
    path = tmp_path / "model.json"
    path.write_text(json.dumps(document))
    model, X, _ = CASES["xgboost"]["regressor"]()
    assert_same_output(model, read_model(path), X, RTOL)


def test_boosters_by_other_names_are_refused(tmp_path):
    document = document_of(CASES["xgboost"]["regressor"]().model)
    document["learner"]["gradient_booster"]["name"] = "of a later version"
    (tmp_path / "model.json").write_text(json.dumps(document))
    with pytest.raises(UnsupportedModelError, match="booster='of a later version'"):
        read_model(tmp_path / "model.json")


@pytest.mark.parametrize("score", [1e-7, 3e-6, 1e-3, 0.3, 1 - 1e-3, 1 - 1e-5, 1 - 3e-7])
@pytest.mark.parametrize("objective", ["binary:logistic", "reg:logistic"])
def test_base_score_goes_through_a_logit_in_single_precision(objective, score):
    X = numbers()
    settings = {"objective": objective, "base_score": score, "max_depth": 2, "nthread": 1}
    booster = xgboost.train(settings, xgboost.DMatrix(X, classes(X, 2)), 1)
    np.testing.assert_allclose(read_model(booster).predict(X), raw_output(booster, X), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("n_ones", [1, 1999])
def test_labels_that_are_nearly_all_alike(n_ones):
    X = np.random.default_rng(0).normal(size=(2_000, 3))
    y = np.arange(2_000) < n_ones
    model = xgboost.XGBClassifier(n_estimators=2, max_depth=2, n_jobs=1).fit(X, y)
    np.testing.assert_allclose(read_model(model).predict(X), raw_output(model, X), rtol=1e-6)


@pytest.mark.parametrize("n_alphas", [1, 3])
def test_expectiles(n_alphas):
    X = numbers()
    alphas = [0.2, 0.5, 0.9][:n_alphas]
    try:
        model = xgboost.XGBRegressor(
            objective="reg:expectileerror", expectile_alpha=alphas, n_estimators=4, max_depth=3, n_jobs=1
        ).fit(X, target(X))
    except xgboost.core.XGBoostError:
        pytest.skip(f"XGBoost {xgboost.__version__} has no expectiles")
    assert_same_output(model, read_model(model), X, RTOL)


@pytest.mark.parametrize("missing", [1 + 2.0**-24, 1 + 3 * 2.0**-24, 0.1, -1.0, 1e-45, 3.4e38])
def test_the_missing_value_is_rounded_from_its_digits(missing):
    rng = np.random.default_rng(0)
    near = np.float32(missing)
    pool = [
        near,
        np.nextafter(near, np.float32(-1e38)),
        np.nextafter(near, np.float32(np.inf)),
        np.float32(2),
    ]
    X = rng.choice(np.array(pool, dtype=np.float32), size=(300, 2))
    model = xgboost.XGBRegressor(n_estimators=4, max_depth=3, missing=missing, n_jobs=1)
    model.fit(X, rng.normal(size=300) + 5 * (X[:, 0] == near))
    ensemble = read_model(model)
    read = ensemble.predict(X)[:, 0]
    np.testing.assert_allclose(read, model.predict(X), rtol=1e-5)
