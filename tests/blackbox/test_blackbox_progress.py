"""Progress by stage, and what an interruption leaves: the answers, and whatever is fitted."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from typing import Any

import numpy as np
import pytest

import fouriershap as fs
from fitted_models import explain_fitted
from fouriershap import Stage

STAGES = ["asking", "fitting waves", "fitting trees", "choosing", "certifying", "compiling the background"]
AT_ONCE = ("fitting trees", "choosing", "compiling the background")  # where no shares, or few, are told
RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))


def network(rows: Any) -> Any:
    return np.tanh(rows[:, 0] - rows[:, 1]) + np.sin(2 * rows[:, 2]) + 0.3 * (rows[:, 0] > 0.5)


class Listener:
    """Keeps the stages that it is told; raises at one of them."""

    def __init__(self, raise_at: str = "", error: type[BaseException] = KeyboardInterrupt) -> None:
        self.seen: list[tuple[int, int, Stage]] = []
        self._raise_at, self._error = raise_at, error

    def __call__(self, done: int, total: int, stage: Stage) -> None:
        self.seen.append((done, total, stage))
        if stage.name == self._raise_at and (stage.share > 0.3 or stage.name in AT_ONCE):
            self._raise_at = ""  # once
            raise self._error("stopped")

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys(stage.name for _, _, stage in self.seen))


def fit(**options: Any) -> fs.Explainer:
    settings: dict[str, Any] = {"budget": 1000, "random_state": 0, "batch_size": 200}
    return explain_fitted(network, X[:50], data=X, **(settings | options))


@pytest.fixture(scope="module")
def whole() -> fs.Explainer:
    return fit()


def test_stages_come_in_order_with_a_guess_of_what_is_left(whole: fs.Explainer) -> None:
    told = Listener()
    same = fit(progress=told)
    assert told.names == STAGES
    np.testing.assert_array_equal(same.shap_values(X[:5]), whole.shap_values(X[:5]))
    for name in STAGES:
        shares = [stage.share for _, _, stage in told.seen if stage.name == name]
        assert shares == sorted(shares) and 0 <= shares[0] <= shares[-1] <= 1
    done = [n for n, _, _ in told.seen]
    assert done == sorted(done) and done[-1] <= 1000 == told.seen[0][1]
    left = [stage.seconds_left for _, _, stage in told.seen if stage.name == "fitting waves"]
    assert all(math.isfinite(each) and each >= 0 for each in left)


def test_progress_can_be_silent(capsys: pytest.CaptureFixture[str]) -> None:
    for silent in (None, False):
        fit(progress=silent, budget=400)
    assert capsys.readouterr() == ("", "")


def test_the_line_names_the_stages(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fouriershap._base.progress._NEXT_LINE", 0.0)
    fit(progress=True)
    shown = capsys.readouterr().err
    assert "fitting waves" in shown and "s left" in shown


@pytest.mark.parametrize("stage", STAGES)
def test_an_interruption_in_any_stage_leaves_something_usable(stage: str, whole: fs.Explainer) -> None:
    with pytest.raises(KeyboardInterrupt) as caught:
        fit(progress=Listener(stage))
    asked = len(caught.value.answers)  # type: ignore[attr-defined]
    assert asked > 0
    if stage in ("asking", "fitting waves"):
        assert not hasattr(caught.value, "finish")
    else:
        explainer = caught.value.finish()  # type: ignore[attr-defined]
        assert explainer.fitted.n_asked <= whole.fitted.n_asked
        values = explainer.shap_values(X[:20])
        assert np.corrcoef(values.ravel(), whole.shap_values(X[:20]).ravel())[0, 1] > 0.99
        assert explainer.fidelity.r2 > 0.9
        return
    again = fit(answers=caught.value.answers)  # type: ignore[attr-defined]
    assert again.fitted.n_asked <= whole.fitted.n_asked - asked
    np.testing.assert_array_equal(again.shap_values(X[:5]), whole.shap_values(X[:5]))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_is_heard_while_waves_are_trained(n_jobs: int) -> None:
    """Bounds are loose, since machines are shared; one call of the kernel takes some 50 ms."""
    wide = np.random.default_rng(1).normal(size=(400, 60))
    sent: list[float] = []

    def told(done: int, total: int, stage: Stage) -> None:
        if stage.name == "fitting waves" and stage.share > 0.05 and not sent:
            sent.append(time.perf_counter())
            os.kill(os.getpid(), signal.SIGINT)

    assert threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt) as caught:
            explain_fitted(
                lambda rows: np.tanh(rows @ np.linspace(-1, 1, 60)),
                wide,
                method="waves",
                budget=10_000,
                random_state=0,
                n_jobs=n_jobs,
                progress=told,
            )
        took = time.perf_counter() - sent[0]
    finally:
        signal.signal(signal.SIGINT, before)
    assert took < 3.0
    assert len(caught.value.answers) > 7000  # type: ignore[attr-defined]


def test_a_function_of_two_arguments_counts_queries() -> None:
    seen: list[tuple[int, int]] = []
    fit(budget=400, progress=lambda done, total: seen.append((done, total)))
    assert [total for _, total in seen] == [400] * len(seen)
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})
