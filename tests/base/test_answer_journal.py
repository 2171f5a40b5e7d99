"""The journal of a file of answers: what a process that died leaves behind."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import zlib

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import fouriershap as fs
from asking_models import Counting
from fouriershap._base.asking.file_store import FileStore

BITS = np.random.default_rng(0).integers(0, 2, size=(60, 6))
OPTIONS = {"method": "exact", "budget": 100, "batch_size": 10}


def total(rows):
    return rows[:, 0] * rows[:, 1] + 2.0 * rows[:, 2] - rows[:, 5]


@functools.cache
def n_asked():
    """Rows that a fit asks which knows nothing yet: all 64, and some of them again."""
    return fs.BlackBoxExplainer(total, BITS, n_jobs=1, **OPTIONS).fidelity.n_queries


def fit(model, path, data=BITS, **more):
    return fs.BlackBoxExplainer(model, data, n_jobs=1, answers=path, **{**OPTIONS, **more})


def stopped(path):
    """A journal as a process that was killed leaves it: nothing is folded in."""
    store = FileStore(path, [f"Feature {i}" for i in range(6)])
    with store.session():
        store.settle(5)
        rows = [tuple(row) for row in np.unique(BITS, axis=0)[:30].tolist()]
        for first in range(0, 30, 10):
            part = rows[first : first + 10]
            store.add(part, total(np.array(part))[:, None])
        content = path.with_name("run.parquet.journal").read_bytes()
    path.unlink()
    path.with_name("run.parquet.journal").write_bytes(content)
    return content


def test_a_journal_is_folded_in_by_the_next_call(tmp_path):
    path = tmp_path / "run.parquet"
    stopped(path)
    model = Counting(total)
    fit(model, path)
    assert model.n_rows == n_asked() - 30 and len(pd.read_parquet(path)) == n_asked()
    assert json.loads(pq.read_schema(path).metadata[b"fouriershap_answers"])["random_state"] == 5
    assert [p.name for p in tmp_path.iterdir()] == ["run.parquet"]


@pytest.mark.parametrize("lost", [1, 5, 200])
@pytest.mark.parametrize("tail", [b"", b"\0" * 4096])
def test_a_torn_end_is_left_out(lost, tail, tmp_path):
    path = tmp_path / "run.parquet"
    content = stopped(path)
    path.with_name("run.parquet.journal").write_bytes(content[:-lost] + tail)
    model = Counting(total)
    fit(model, path)
    assert model.n_rows == n_asked() - 20


def test_a_torn_beginning_is_nothing(tmp_path):
    path = tmp_path / "run.parquet"
    first = stopped(path).split(b"\n")[0]
    for content in (b"", first[:4], first[:30], first, b"\0" * 100, first + b"\n"):
        path.unlink(missing_ok=True)
        path.with_name("run.parquet.journal").write_bytes(content)
        model = Counting(total)
        fit(model, path)
        assert model.n_rows == n_asked()


def test_what_was_folded_in_before_is_not_folded_in_twice(tmp_path):
    """The process died after the file was replaced, before the journal was removed."""
    path = tmp_path / "run.parquet"
    content = stopped(path)
    with FileStore(path, [f"Feature {i}" for i in range(6)]).session():
        pass
    assert len(pd.read_parquet(path)) == 30
    path.with_name("run.parquet.journal").write_bytes(content)
    model = Counting(total)
    fit(model, path)
    assert model.n_rows == n_asked() - 30 and len(pd.read_parquet(path)) == n_asked()


def line(content):
    text = json.dumps(content).encode()
    return f"{zlib.crc32(text):08x} ".encode() + text + b"\n"


GOOD = {"dtype": "<f8", "rows": [[0] * 6], "answers": [[1.0]]}


FOREIGN = "no journal of answers does"
SPOILED = {
    "changed": (
        lambda head, first, *rest: [head, first[:50] + b"x" + first[51:], *rest],
        "damaged from byte",
    ),
    "foreign": (lambda *lines: [b"hello\n"], "no journal of answers"),
    "foreign before": (
        lambda *lines: [b"dear diary, today I went to town\n", *lines],
        "no journal of answers",
    ),
    "newer": (
        lambda head, *rest: [checked(head.replace(b'"version": 1', b'"version": 9')), *rest],
        "version 9",
    ),
    "other columns": (
        lambda head, *rest: [checked(head.replace(b"Feature 3", b"age")), *rest],
        "column 'age'",
    ),
    "a list": (lambda head, *rest: [head, line([1, 2])], FOREIGN),
    "short rows": (lambda head, *rest: [head, line(GOOD | {"rows": [[0] * 5]})], "rows of another length"),
    "lists in rows": (lambda head, *rest: [head, line(GOOD | {"rows": [[[1]] * 6]})], FOREIGN),
    "objects": (lambda head, *rest: [head, line(GOOD | {"dtype": "O"})], "answers of type object"),
    "no type": (lambda head, *rest: [head, line(GOOD | {"dtype": 3})], FOREIGN),
    "flat": (lambda head, *rest: [head, line(GOOD | {"answers": [1.0]})], r"answers \(1,\) to 1 rows"),
    "not finite": (lambda head, *rest: [head, line(GOOD | {"answers": [[np.nan]]})], FOREIGN),
    "two widths": (
        lambda head, *rest: [head, line(GOOD), line(GOOD | {"answers": [[1.0, 2.0]]})],
        "cannot hold the new answers",
    ),
}


@pytest.mark.parametrize("name", list(SPOILED))
def test_a_journal_that_cannot_be_is_an_error_and_left_alone(name, tmp_path):
    spoil, message = SPOILED[name]
    path = tmp_path / "run.parquet"
    spoiled = spoil(*stopped(path).splitlines(keepends=True))
    journal = path.with_name("run.parquet.journal")
    journal.write_bytes(b"".join(spoiled))
    model = Counting(total)
    with pytest.raises((fs.FileFormatError, fs.InputError), match=message):
        fit(model, path)
    assert not model.calls and journal.read_bytes() == b"".join(spoiled) and not path.exists()


def checked(spoiled):
    return f"{zlib.crc32(spoiled[9:-1]):08x} ".encode() + spoiled[9:]


def test_the_advice_about_a_damaged_journal_holds(tmp_path):
    path = tmp_path / "run.parquet"
    lines = stopped(path).splitlines(keepends=True)
    journal = path.with_name("run.parquet.journal")
    journal.write_bytes(b"".join([*lines[:2], b"0" * len(lines[2][:-1]) + b"\n", lines[3]]))
    with pytest.raises(fs.FileFormatError, match="truncate -s") as caught:
        fit(total, path)
    size = int(str(caught.value).split("truncate -s ")[1].split("`")[0])
    journal.write_bytes(journal.read_bytes()[:size])
    model = Counting(total)
    fit(model, path)
    assert model.n_rows == n_asked() - 10


def test_a_file_in_use(tmp_path):
    path = tmp_path / "run.parquet"
    fit(total, path)
    before = path.read_bytes()
    program = (
        "import fouriershap as fs, numpy as np, sys\n"
        "fs.BlackBoxExplainer(lambda r: r[:, 0], np.eye(6), method='exact', budget=100, answers=sys.argv[1])"
    )

    def predict(rows):
        with pytest.raises(fs.InputError, match="in use by another explainer of this process"):
            fit(total, path)
        done = subprocess.run(
            [sys.executable, "-c", program, path], capture_output=True, text=True, check=False
        )
        assert "is in use by another process" in done.stderr, done.stderr
        assert path.read_bytes() == before
        return rows @ np.ones(6)

    rows = np.random.default_rng(0).integers(3, 5, size=(60, 6))
    fit(predict, path, rows, batch_size=1000)
    # In a notebook the first explainer is still there when the next one is made.
    first = fit(total, path)
    second = fit(total, path)
    np.testing.assert_array_equal(first.gap(BITS[:2]), second.gap(BITS[:2]))
