"""Processes that die in the middle of a fit: by a kill, by Ctrl-C, and on a full disk."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import json, os, resource, signal, sys
import numpy as np
import fouriershap as fs
from fitted_models import explain_fitted
from asking_models import fingerprint

path, log, method, batch_size, stop, how, random_state = json.loads(sys.argv[1])
rng = np.random.default_rng(0)
data = rng.integers(0, 2, size=(80, 8)) if method == "enumerate" else rng.normal(size=(60, 3))
calls = 0

def predict(rows):
    global calls
    if calls == stop and how == "full disk":
        size = os.path.getsize(path + "-wal") + 100  # what is there, and too little for a batch
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, -1))
    elif calls == stop:
        os.kill(os.getpid(), getattr(signal, how))
    calls += 1
    with open(log, "a") as file:
        print(len(rows), file=file)
    return rows[:, 0] * rows[:, 1] + 0.3 * rows[:, 2]

try:
    asked = fs.BlackBoxExplainer(
        predict, data, n_jobs=1, batch_size=batch_size, answers=path, random_state=random_state
    )
    explainer = asked.fit(method=method, budget=300)
except fs.DiskFullError as error:
    resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))
    print(json.dumps([str(error), error.__notes__, len(error.answers)]))
    raise
print(json.dumps([fingerprint(explainer), explainer.fidelity.n_queries, explainer.fitted.n_asked]))
"""


class Run:
    """A fit in a process of its own, which writes down how many rows it was asked for in each call."""

    def __init__(self, folder, method, batch_size):
        folder.mkdir(exist_ok=True)
        self.log, self.path = folder / "log", folder / "run.sqlite"
        self.log_ahead = folder / "run.sqlite-wal"  # of SQLite, while the file is open
        self.method, self.batch_size = method, batch_size
        self.log.touch()

    def start(self, stop=None, how="", random_state=None):
        given = [str(self.path), str(self.log), self.method, self.batch_size, stop, how, random_state]
        command = [sys.executable, "-W", "ignore", "-c", PROGRAM, json.dumps(given)]
        return subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[1]
        )

    def finish(self, random_state=None):
        done = self.start(random_state=random_state)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    @property
    def asked(self):
        return [int(line) for line in self.log.read_text().splitlines()]

    @property
    def random_state(self):
        return json.loads(self._read("SELECT value FROM about WHERE name = 'random_state'"))

    @property
    def n_kept(self):
        return self._read("SELECT count(*) FROM answers")

    def _read(self, question):
        file = sqlite3.connect(self.path)
        (found,) = file.execute(question).fetchone()
        file.close()
        return found


@pytest.mark.parametrize(("method", "batch_size"), [("enumerate", 20), ("trees", 64)])
def test_a_fit_that_is_killed_goes_on(method, batch_size, tmp_path):
    """Twice, by a signal that nobody can handle; and it ends as one that was left alone."""
    run = Run(tmp_path / "killed", method, batch_size)
    for stop in (2, 1):
        killed = run.start(stop, "SIGKILL")
        assert killed.returncode == -signal.SIGKILL and run.log_ahead.stat().st_size > 0
    assert len(run.asked) == 3
    found, n_queries, n_asked = run.finish()
    assert sum(run.asked) == n_queries and n_asked == sum(run.asked[3:])  # nothing was asked twice
    assert not run.log_ahead.exists() and run.n_kept == n_queries

    alone = Run(tmp_path / "alone", method, batch_size)
    assert alone.finish(run.random_state) == [found, n_queries, n_queries]
    assert alone.asked == run.asked  # the same batches, even


def test_a_kill_in_the_middle_of_writing_costs_one_batch(tmp_path):
    run = Run(tmp_path, "enumerate", 20)
    assert run.start(4, "SIGKILL").returncode == -signal.SIGKILL
    content = run.log_ahead.read_bytes()
    run.log_ahead.write_bytes(content[:-30])
    _, n_queries, n_asked = run.finish()
    assert n_asked == n_queries - 60 and sum(run.asked) == n_queries + 20


def test_ctrl_c_leaves_one_file(tmp_path):
    run = Run(tmp_path, "enumerate", 20)
    done = run.start(3, "SIGINT")
    assert done.returncode == -signal.SIGINT and "KeyboardInterrupt" in done.stderr
    assert "answers so far are kept in" in done.stderr and "run.sqlite" in done.stderr
    kept = run.n_kept
    assert not run.log_ahead.exists() and kept >= 60
    _, n_queries, n_asked = run.finish()
    assert n_asked == n_queries - kept


def test_a_full_disk_is_an_error_that_keeps_everything(tmp_path):
    run = Run(tmp_path, "enumerate", 40)
    done = run.start(3, "full disk")
    assert done.returncode == 1 and "DiskFullError" in done.stderr
    message, notes, n_carried = json.loads(done.stdout)
    assert "run.sqlite cannot be written: the disk is full" in message
    assert "120 answers so far are kept in" in notes[0]
    assert n_carried == 160 == sum(run.asked)  # with those that could not be written
    found, n_queries, n_asked = run.finish()
    assert n_asked == n_queries - 120
    alone = Run(tmp_path / "alone", "enumerate", 40)
    assert alone.finish(run.random_state)[0] == found
