"""All benchmarks in a row: one that fails keeps none from running, stopping loses nothing, the status is told."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import _cells
import all as driver
from _cells import Cells

BENCHMARKS = Path(driver.__file__).parent


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(driver, "FOLDER", tmp_path)
    monkeypatch.setattr(driver, "RESULTS", tmp_path)
    return tmp_path


def script(folder: Path, name: str, body: str) -> driver.Step:
    (folder / name).write_text(body)
    return driver.Step(name, ("said",))


def test_every_step_is_a_script_that_keeps_cells() -> None:
    for step in driver.STEPS:
        text = (BENCHMARKS / step.script).read_text()
        assert "Cells(" in text and "wanted=" in text, step.script


def test_a_failure_keeps_none_from_running(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    steps = [
        script(folder, "bad.py", "raise SystemExit(3)"),
        driver.Step("none.py", modules=("no_such_module",), programs=("no_such_program",)),
        script(folder, "good.py", "import sys; print(sys.argv[1])"),
    ]
    assert driver.run(steps, 1.0) == ["bad.py said: exit code 3"]
    told = capfd.readouterr().out
    assert "left out, it needs no_such_module, no_such_program" in told and "\nsaid\n" in told


def test_when_the_time_is_over_the_rest_is_named(folder: Path) -> None:
    steps = [script(folder, "slow.py", "import time; time.sleep(60)"), script(folder, "never.py", "")]
    begin = time.monotonic()
    stopped, never = driver.run(steps, 0.01)
    assert time.monotonic() - begin < 30
    assert "slow.py said: stopped" in stopped and "never.py said: not begun" in never


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_benchmark_at_work_and_tells_the_status(folder: Path, how: signal.Signals) -> None:
    script(folder, "slow.py", "import os, time; print(os.getpid(), flush=True); time.sleep(60)")
    code = (
        "import signal, sys; from pathlib import Path; import all; all.FOLDER = all.RESULTS = Path(sys.argv.pop());"
        "signal.signal(signal.SIGINT, signal.default_int_handler);"  # in the background it is ignored
        "all.STEPS = (all.Step('slow.py'),); all.main()"
    )
    command = [sys.executable, "-c", code, str(folder)]
    run = subprocess.Popen(command, cwd=BENCHMARKS, stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None and "=== slow.py" in run.stdout.readline()
    child = int(run.stdout.readline())
    run.send_signal(how)
    told, _ = run.communicate(timeout=60)
    assert run.returncode == 1 and "finished cells are kept" in told and "not begun" in told
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_the_status_counts_what_is_missing_of_another_state_or_disturbed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "STEPS", (driver.Step("a.py"), driver.Step("b.py")))
    monkeypatch.setattr(os, "getloadavg", lambda: (1.0, 1.0, 1.0))
    monkeypatch.setattr(_cells, "source", lambda: "old")
    cells = Cells(folder / "a.json", ("pytest",), wanted=("x", "y", "z", "w"))
    cells.measure("x", dict)
    monkeypatch.setattr(_cells, "source", lambda: "new")
    cells = Cells(folder / "a.json", ("pytest",), wanted=("x", "y", "z", "w"))
    cells.measure("y", dict)
    monkeypatch.setattr(os, "getloadavg", lambda: (2.0, 2.0, 2.0))
    cells.measure("z", dict)
    (first, second), wrong = driver.status()
    assert first[:5] == ("a", "4", "2", "1", "1") and second[4] == "not begun"
    assert wrong == 4
    assert json.loads((folder / "a.json").read_text())["run"]["wanted"] == ["x", "y", "z", "w"]
