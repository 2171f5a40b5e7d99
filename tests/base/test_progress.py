"""Long calls tell how far they are."""

from __future__ import annotations

import logging
import time

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

import fouriershap as fs
from fouriershap._base import progress
from fouriershap._base.parallel import enter, for_each_block, for_each_in_turn
from fouriershap._base.progress import Progress


def _nap(first: int, last: int) -> None:
    time.sleep(0.002 * (last - first))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_function_hears_of_every_stage(n_jobs):
    heard = []
    with Progress(lambda done, total, stage: heard.append((done, total, stage))):
        enter("first", 2)
        for _ in range(2):
            for_each_block(_nap, 60, 2, n_jobs)
        enter("second")
        for_each_in_turn(lambda k: _nap(k, k + 1), lambda _: None, 100, n_jobs)
    names = [stage.name for *_, stage in heard]
    assert names == sorted(names) and set(names) == {"first", "second"}
    shares = [stage.share for *_, stage in heard if stage.name == "first"]
    assert shares == sorted(shares) and 0.5 < shares[-1] <= 1
    assert all(done == int(stage.share * 100) and total == 100 for done, total, stage in heard)
    assert any(0 < stage.seconds_left < 10 for *_, stage in heard)


def test_a_function_of_two_numbers_will_do():
    heard = []
    with Progress(lambda done, total: heard.append(done / total)):
        for_each_block(_nap, 10, 1, 1)
    assert heard[-1] == 1


def test_loops_within_a_loop_are_not_counted():
    heard = []
    with Progress(lambda done, total: heard.append(done)):
        for_each_block(lambda first, last: for_each_block(_nap, 3, 1, 1), 4, 1, 1)
    assert heard == [25, 50, 75, 100]


def test_nothing_is_told_of_short_calls_or_where_nobody_wants_it(monkeypatch, caplog, capsys):
    with caplog.at_level(logging.INFO, "fouriershap"), Progress(None):
        for_each_block(_nap, 10, 1, 1)
    monkeypatch.setattr(progress, "SILENCE", 0.0)
    monkeypatch.setattr(progress, "_LOG_EVERY", 0.0)
    with caplog.at_level(logging.INFO, "fouriershap"), Progress(False):
        for_each_block(_nap, 10, 1, 1)
    assert not caplog.records and not capsys.readouterr().err


def test_long_calls_are_told_in_the_log_where_nobody_looks(monkeypatch, caplog):
    monkeypatch.setattr(progress, "SILENCE", 0.0)
    monkeypatch.setattr(progress, "_LOG_EVERY", 0.0)
    monkeypatch.setattr(progress, "is_seen", lambda: False)
    with caplog.at_level(logging.INFO, "fouriershap"), Progress(None):
        enter("walking")
        for_each_block(_nap, 10, 1, 1)
    assert "walking: 50 %, about" in caplog.text


def test_a_bar_in_a_terminal(monkeypatch, capsys):
    pytest.importorskip("tqdm")
    monkeypatch.setattr(progress, "SILENCE", 0.0)
    monkeypatch.setattr(progress, "is_seen", lambda: True)
    with Progress(None):
        enter("streaming")
        for_each_block(_nap, 10, 1, 1)
    assert "streaming" in capsys.readouterr().err


@pytest.mark.parametrize("strategy", ["walk", "stream", "tables"])
def test_every_road_of_trees_tells(strategy):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    model = RandomForestRegressor(12, max_depth=5, random_state=0).fit(X, X[:, 0] * X[:, 1])
    heard = set()
    explainer = fs.TreeExplainer(
        model, X, strategy=strategy, progress=lambda done, total, stage: heard.add(stage.name)
    )
    explainer.shap_values(X)
    assert heard & {"walk": {"walking"}, "stream": {"streaming"}, "tables": {"looking up"}}[strategy]
    heard.clear()
    explainer.progress = False
    explainer.shap_values(X)
    assert not heard


def test_progress_of_another_kind_is_refused():
    with pytest.raises(fs.InputError, match="progress is 'yes'; give None, True, False or a function"):
        fs.TreeExplainer(RandomForestRegressor(2).fit([[0.0], [1.0]], [0.0, 1.0]), progress="yes")


def test_the_estimate_follows_the_pace():
    shown = Progress(None, 10)
    shown.expect({"first": 1.0, "second": 100.0})
    shown.enter("first")
    shown._entered -= 10  # ten times as long as expected
    shown.enter("second")
    assert shown.stage.seconds_left == pytest.approx(1000, rel=0.01)


def test_work_that_is_stopped_ends_at_its_next_tick():
    shown = Progress(None, 0)
    shown.start(10.0)
    shown.tick(5.0)
    assert shown.stage.share == 0.5
    shown.stop()
    with pytest.raises(InterruptedError):
        shown.tick(1.0)
