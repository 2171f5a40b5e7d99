"""Long calls tell how far they are."""

from __future__ import annotations

import subprocess
import sys
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


def test_nothing_is_told_of_short_calls_or_where_nobody_wants_it(monkeypatch, capsys):
    with Progress(None):
        for_each_block(_nap, 10, 1, 1)
    monkeypatch.setattr(progress, "SILENCE", 0.0)
    with Progress(False):
        for_each_block(_nap, 10, 1, 1)
    assert not capsys.readouterr().err


def test_a_plain_script_shows_lines(monkeypatch, capsys):
    monkeypatch.setattr(progress, "SILENCE", 0.0)
    monkeypatch.setattr(progress, "_NEXT_LINE", 0.0)
    with Progress(None):
        enter("walking")
        for_each_block(_nap, 10, 1, 1)
    lines = capsys.readouterr().err.splitlines()
    assert any(line.startswith("fouriershap: walking 50%, 0 s, about 0 s left") for line in lines)


def test_a_terminal_shows_one_line_that_goes(monkeypatch, capsys):
    monkeypatch.setattr(progress, "SILENCE", 0.0)
    monkeypatch.setattr(progress, "_REDRAW", 0.0)
    monkeypatch.setattr(progress, "is_rewritten", lambda: True)
    with Progress(None):
        enter("streaming")
        for_each_block(_nap, 10, 1, 1)
    shown = capsys.readouterr().err
    assert "\n" not in shown and shown.endswith(" \r")
    lines = shown.split("\r")
    assert lines[0] == "" and "streaming 100%" in lines[-3] and not lines[-2].strip()


def test_a_script_of_its_own_shows_where_it_is():
    program = """
import time, numpy as np, fouriershap as fs
from fouriershap._base import progress
progress.SILENCE = 0.2
def slow(rows):
    time.sleep(0.1)
    return np.tanh(rows[:, 0] * rows[:, 1])
X = np.random.default_rng(0).normal(size=(40, 3))
explainer = fs.Explainer(slow, X, batch_size=50{})
explainer.shap_values(X[:3])
"""
    shown, silent = (
        subprocess.run(
            [sys.executable, "-c", program.format(more)], capture_output=True, text=True, check=True
        )
        for more in ("", ", progress=False")
    )
    assert "fouriershap: asking" in shown.stderr and " queries, " in shown.stderr
    assert not silent.stderr and not shown.stdout


def test_a_black_box_is_not_done_before_it_is():
    """No more than its last query is left where all are done, whatever was expected."""
    heard = []
    X = np.random.default_rng(0).normal(size=(60, 8))
    model = RandomForestRegressor(10, random_state=0).fit(X, X[:, 0] * X[:, 1])
    explainer = fs.BlackBoxExplainer(
        model.predict,
        X,
        random_state=0,
        progress=lambda done, total, stage: heard.append((done, total, stage)),
    )
    explainer.shap_values(X[:5])
    assert all(total > 0 and done <= total and stage.share < 1 for done, total, stage in heard)
    n = heard[-1][0]
    asking = [(done, stage.share) for done, _, stage in heard if stage.name == "asking"]
    assert asking[-1][0] == n


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


def test_first_queries_do_not_promise_an_end() -> None:
    """How many queries follow is known once they are answered; then what is left is counted for all rows."""
    X = np.random.default_rng(0).normal(size=(40, 9))
    heard: list[progress.Stage] = []

    def show(done: int, total: int, stage: progress.Stage) -> None:
        heard.append(stage)

    explainer = fs.BlackBoxExplainer(
        lambda rows: np.tanh(rows @ np.arange(9.0)), X, progress=show, random_state=0
    )
    explainer.shap_values(X[:3])
    first = [stage for stage in heard if stage.name == progress.FIRST_QUERIES]
    assert first and heard[: len(first)] == first
    assert all(np.isnan(stage.seconds_left) for stage in first)
    assert any(np.isfinite(stage.seconds_left) for stage in heard[len(first) :])


def test_loops_within_a_call_of_a_black_box_have_no_lines() -> None:
    """Its queries and fits report the progress."""
    X = np.random.default_rng(0).normal(size=(40, 3))
    seen = []

    def model(rows: np.ndarray) -> np.ndarray:
        seen.append(progress.current_progress())
        return rows[:, 0]

    explainer = fs.BlackBoxExplainer(model, X, random_state=0)
    explainer.expected_value  # noqa: B018
    seen.clear()
    explainer.shap_values(X[:3])
    assert seen and seen == [None] * len(seen)
