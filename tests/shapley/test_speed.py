"""Choosing between tables, streaming and walking follows the speed of the machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import ExtraTreesRegressor, GradientBoostingRegressor, RandomForestRegressor
from typer.testing import CliRunner

import fouriershap as fs
from fouriershap._shapley.trees import stream, walk
from fouriershap._shapley.trees.calibrate import measure_factors
from fouriershap._shapley.trees.compiled import compile_trees
from fouriershap._shapley.trees.speed import (
    NEUTRAL,
    SPEED,
    Factors,
    Speed,
    calibration_file,
    save_factors,
    saved_factors,
)
from fouriershap.cli._app import app

ENGINE = "fouriershap._shapley.trees.engine"


def slowed(work: Callable[..., Any], times: float) -> Callable[..., Any]:
    """Return the same, which takes so many times the processor's time."""

    def slow(*args: Any, **kwargs: Any) -> Any:
        begin = time.thread_time()
        found = work(*args, **kwargs)
        now = time.thread_time()
        while time.thread_time() < begin + times * (now - begin):
            pass
        return found

    return slow


@pytest.fixture
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 8))
    return X, X[:, 0] * X[:, 1] + np.sin(X[:, 2])


def test_the_plan_follows_streaming_that_is_slow(data, monkeypatch):
    X, y = data
    model = RandomForestRegressor(3, random_state=0).fit(X, y)
    explainer = fs.TreeExplainer(model, X, n_jobs=1, memory=1_000_000)
    assert "stream" in explainer.plan(100).strategy
    want, before = explainer.shap_values(X[:100]), explainer.plan(100).seconds
    monkeypatch.setattr(stream, "interventional", slowed(stream.interventional, 10))
    for _ in range(3):
        np.testing.assert_allclose(explainer.shap_values(X[:100]), want, atol=1e-6)
    plan = explainer.plan(100)
    assert "stream" not in plan.strategy or plan.seconds > 3 * before
    assert SPEED.factors.stream >= 4 and SPEED.factors.walk == 1


def test_the_plan_follows_walking_that_is_slow(data, monkeypatch):
    X, y = data
    explainer = fs.TreeExplainer(ExtraTreesRegressor(20, random_state=0).fit(X, y), X[:500], n_jobs=1)
    assert explainer.plan(10).strategy == "walk"
    monkeypatch.setattr(walk, "interventional", slowed(walk.interventional, 20))
    for _ in range(3):
        explainer.shap_values(X[:10])
    assert explainer.plan(10).strategy != "walk"
    assert SPEED.factors.walk >= 4 and SPEED.factors.stream == 1


def test_the_plan_follows_building_that_is_slow(data, monkeypatch):
    X, y = data
    model = GradientBoostingRegressor(max_depth=6, n_estimators=100, random_state=0).fit(X, y)
    n_rows = next(
        n for n in (10**k for k in range(1, 9)) if "tables" in fs.TreeExplainer(model, X).plan(n).strategy
    )
    monkeypatch.setattr(f"{ENGINE}.compile_trees", slowed(compile_trees, 50))
    for _ in range(3):
        fs.TreeExplainer(model, X, strategy="tables")
    assert SPEED.factors.build >= 8
    assert "tables" not in fs.TreeExplainer(model, X).plan(n_rows).strategy


@given(st.lists(st.floats(0.6, 1.7), min_size=1, max_size=30))
def test_small_differences_change_nothing(times):
    speed = Speed()
    for ratio in times:
        speed.learn("walk", speed.factors, 1.0, ratio)
    assert speed.factors is NEUTRAL


@given(st.floats(-10, 10), st.lists(st.floats(-0.3, 0.3), min_size=12, max_size=12))
def test_a_factor_comes_close(true, noise):
    """Powers of 2; estimates are made with the factors of then."""
    speed = Speed()
    for more in noise:
        factors = speed.factors
        speed.learn("stream", factors, 1024.0 * factors.stream, 1024.0 * 2.0 ** (true + more))
    assert abs(np.log2(speed.factors.stream) - true) < 2


def test_a_calibration_is_kept_and_damaged_ones_are_told(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert saved_factors() == NEUTRAL
    path = save_factors(Factors(tables=0.5, walk=3.0))
    assert path == calibration_file() and saved_factors() == Factors(tables=0.5, walk=3.0)
    path.write_text('{"walk": "2"}')
    assert saved_factors() == Factors(walk=2.0)
    for text in ("", "[1]", '{"walk": "quick"}', '{"walk": -1}', '{"walk": NaN}', '{"fly": 1}'):
        path.write_text(text)
        with pytest.warns(fs.CostWarning, match="speed.json is damaged"):
            assert saved_factors() == NEUTRAL


def test_the_command_measures_this_machine(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    begin = time.process_time()
    result = CliRunner().invoke(app, ["calibrate"])
    assert result.exit_code == 0 and "stream" in result.output
    assert time.process_time() - begin < 20
    assert saved_factors() == SPEED.factors != NEUTRAL


def test_calibration_sees_a_slow_strategy(monkeypatch):
    neutral = measure_factors()
    monkeypatch.setattr(stream, "interventional", slowed(stream.interventional, 10))
    slow = measure_factors()
    assert slow.stream > 4 * neutral.stream and slow.walk < 3 * neutral.walk
